/* Runs a fuzz target on every file of a corpus folder: the ordinary test beside each libFuzzer
 * program. A missing folder, or one without files, fails: a test that ran nothing proves nothing.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"

#define MAX_FILE_BYTES ((size_t)64 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool replay_file(const char *path)
{
    char *bytes = NULL;
    size_t size = 0;
    pnb_error err = PNB_ERROR_INIT;
    if (pnb__read_file(path, MAX_FILE_BYTES, &bytes, &size, &err) != PNB_OK) {
        fprintf(stderr, "%s\n", err.text);
        return false;
    }
    /* A copy of exactly the right size, so that ASan sees reads past its end. */
    unsigned char *exact = pnb__alloc(size);
    if (exact != NULL && size > 0)
        memcpy(exact, bytes, size);
    pnb__free(bytes);
    printf("%s (%zu bytes)\n", path, size);
    fflush(stdout); /* says which file it was when the target crashes */
    if (exact != NULL)
        (void)LLVMFuzzerTestOneInput(exact, size);
    pnb__free(exact);
    return exact != NULL;
}

/* Number of files replayed, -1 when one could not be read. */
static long replay_dir(const char *dir)
{
    DIR *entries = opendir(dir);
    if (entries == NULL) {
        perror(dir);
        return -1;
    }
    long n_files = 0;
    for (struct dirent *entry = readdir(entries); entry != NULL && n_files >= 0;
         entry = readdir(entries)) {
        char *path = pnb__path_join(dir, entry->d_name);
        if (path != NULL && pnb__path_is_file(path))
            n_files = replay_file(path) ? n_files + 1 : -1;
        pnb__free(path);
    }
    closedir(entries);
    return n_files;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s CORPUS_DIR\n", argv[0]);
        return 2;
    }
    long n_files = replay_dir(argv[1]);
    printf("%ld files replayed\n", n_files);
    return n_files > 0 ? 0 : 1;
}
