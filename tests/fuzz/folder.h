/* A folder of files for a fuzz target. The input is chunks divided by the byte 0x1E; the first byte
 * of a chunk chooses its file from the target's list, the rest is what the file holds. */
#ifndef PNB_TESTS_FUZZ_FOLDER_H
#define PNB_TESTS_FUZZ_FOLDER_H

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fuzz/scratch.h"

typedef struct folder {
    char dir[40];
    const char *const *names; /* plain, or one folder and a plain name */
    size_t n;
} folder;

static inline const char *folder_path(const folder *f, const char *name, char path[160])
{
    snprintf(path, 160, "%s/%s", f->dir, name);
    return path;
}

static inline void folder_remove(const folder *f)
{
    char path[160];
    for (size_t i = 0; i < f->n; i++)
        unlink(folder_path(f, f->names[i], path));
    for (size_t i = 0; i < f->n; i++) {
        folder_path(f, f->names[i], path);
        *strrchr(path, '/') = '\0';
        rmdir(path);
    }
    rmdir(f->dir);
}

static inline bool folder_make(folder *f, const char *const *names, size_t n, const uint8_t *data,
                               size_t size)
{
    char path[160];
    *f = (folder){"/dev/shm/penumbra_fuzz_XXXXXX", names, n};
    if (mkdtemp(f->dir) == NULL) {
        strcpy(f->dir, "/tmp/penumbra_fuzz_XXXXXX");
        if (mkdtemp(f->dir) == NULL)
            return false;
    }
    for (size_t i = 0; i < n; i++) {
        folder_path(f, names[i], path);
        *strrchr(path, '/') = '\0';
        mkdir(path, 0700);
    }
    while (size > 0) {
        const uint8_t *end = memchr(data, 0x1E, size);
        size_t length = end != NULL ? (size_t)(end - data) : size;
        if (length > 0)
            scratch_write(folder_path(f, names[data[0] % n], path), data + 1, length - 1);
        length += end != NULL;
        data += length;
        size -= length;
    }
    return true;
}

/* A failure has a status and words. */
#define REQUIRE_TOLD(found, record)                                                                \
    do {                                                                                           \
        if ((found) != PNB_OK && ((record).status == PNB_OK || (record).text[0] == '\0'))          \
            abort();                                                                               \
    } while (0)

#endif
