/* Whole commands with one allocation failing: 1, 2, 3, ... of the command, those of the C library
 * and of the picture and compression libraries too, because malloc itself is this program's. Every
 * one of the first hundreds fails in turn, then a spread of the rest. Each run ends well (a fault
 * that costs nothing) or with exit status 1 and "out of memory"; an output that was there before
 * stays whole. Crashes and leaks are the sanitizers' to find.
 *
 * Not counted are the allocations of OpenMP's runtime, which ends the process by itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <ftw.h>
#include <unistd.h>

#include "../cli/commands.h"
#include "base/base.h"

/* ---- malloc ---- */

#if defined(__SANITIZE_ADDRESS__)
#define REAL(name) __interceptor_##name
#else
#define REAL(name) __libc_##name
#endif
void *REAL(malloc)(size_t bytes);
void *REAL(calloc)(size_t n, size_t size);
void *REAL(realloc)(void *p, size_t bytes);

/* Called before the sanitizer has set itself up. */
#define BARE __attribute__((no_sanitize("address", "undefined")))

static volatile bool is_armed;
static long n_seen, fails_at;

BARE static bool is_openmp(const void *caller)
{
    Dl_info info;
    return dladdr(caller, &info) != 0 && info.dli_fname != NULL &&
           (strstr(info.dli_fname, "libgomp") != NULL ||
            strstr(info.dli_fname, "ld-linux") != NULL);
}

BARE static bool must_fail(const void *caller)
{
    if (!is_armed)
        return false;
    is_armed = false; /* dladdr may allocate */
    bool counts = !is_openmp(caller);
    is_armed = true;
    if (!counts || n_seen++ != fails_at)
        return false;
    errno = ENOMEM;
    return true;
}

BARE void *malloc(size_t bytes)
{
    return must_fail(__builtin_return_address(0)) ? NULL : REAL(malloc)(bytes);
}

BARE void *calloc(size_t n, size_t size)
{
    return must_fail(__builtin_return_address(0)) ? NULL : REAL(calloc)(n, size);
}

BARE void *realloc(void *p, size_t bytes)
{
    return must_fail(__builtin_return_address(0)) ? NULL : REAL(realloc)(p, bytes);
}

/* ---- commands ---- */

enum { MAX_ARGS = 24, EVERY = 250, SPREAD = 40 };

static char log_text[1 << 16];

/* Runs "a b c" without the program's name; exit status. */
static int run(const char *line, long fault)
{
#define ADDRESS(name) &pnb__cmd_##name,
    static const pnb__command *const commands[] = {PNB__COMMANDS(ADDRESS) NULL};
#undef ADDRESS
    static char words[4096];
    static const volatile sig_atomic_t interrupted;
    char *argv[MAX_ARGS + 1] = {(char[]){"penumbra"}};
    int argc = 1;
    snprintf(words, sizeof words, "%s", line);
    for (char *word = strtok(words, " "); word != NULL && argc < MAX_ARGS; word = strtok(NULL, " "))
        argv[argc++] = word;
    memset(log_text, 0, sizeof log_text);
    FILE *out = fopen("/dev/null", "w"), *in = fopen("/dev/null", "r");
    FILE *log = fmemopen(log_text, sizeof log_text - 1, "w");
    assert_true(out != NULL && in != NULL && log != NULL);
    setvbuf(log, NULL, _IONBF, 0);
    pnb__program program = {.name = "penumbra",
                            .summary = "",
                            .commands = commands,
                            .in = in,
                            .out = out,
                            .log = log,
                            .interrupted = &interrupted};
    n_seen = 0;
    fails_at = fault;
    is_armed = true;
    int status = pnb__program_run(&program, argc, argv);
    is_armed = false;
    fclose(out);
    fclose(in);
    fclose(log);
    return status;
}

/* What a file holds, 0 without one. */
static uint64_t hash_of(const char *path)
{
    char *data = NULL;
    size_t n = 0;
    if (path == NULL || pnb__read_file(path, (size_t)1 << 30, &data, &n, NULL) != PNB_OK)
        return 0;
    uint64_t hash = pnb__hash_bytes(data, n, 1) | 1;
    pnb__free(data);
    return hash;
}

static int remove_entry(const char *path, const struct stat *s, int kind, struct FTW *at)
{
    (void)s;
    (void)kind;
    (void)at;
    return remove(path);
}

/* `output`: a file that is whole after each run, or as it was before. `folder`: one that the
 * command makes, removed before each run; a command that fails leaves none, or it was done already
 * and only could not tell. How many runs went wrong. */
static long fail_each(const char *line, const char *output, const char *folder)
{
    if (folder != NULL)
        nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    int clean = run(line, -1);
    if (clean != 0)
        fail_msg("%s: %d: %s", line, clean, log_text);
    long n = n_seen, n_failed = 0, n_wrong = 0;
    uint64_t wanted = hash_of(output);
    for (long k = 0; k < n; k += k < EVERY ? 1 : 1 + (n - EVERY) / SPREAD) {
        if (folder != NULL)
            nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
        uint64_t before = hash_of(output);
        int status = run(line, k);
        bool told = status == 1 && strstr(log_text, "out of memory") != NULL;
        uint64_t after = hash_of(output);
        bool whole = after == wanted || (status != 0 && after == before);
        whole = whole && (folder == NULL || access(folder, F_OK) != 0 || after == wanted);
        n_failed += told;
        /* zlib's window: libspng tells its lack as a broken stream, and the picture is left out by
         * name; where memory is really at an end the decoder sees it */
        if (status == 3 && strstr(log_text, "PNG: IDAT stream error") != NULL)
            continue;
        if ((status != 0 && !told) || !whole) {
            n_wrong++;
            print_message("%s: allocation %ld: status %d%s: %s\n", line, k, status,
                          whole ? "" : ", output not whole", log_text);
        }
    }
    print_message("%s: %ld allocations, %ld told\n", line, n, n_failed);
    return n_wrong + (n_failed <= 5);
}

static void each_command_survives(void **state)
{
    static const struct {
        const char *line, *output, *folder;
    } cases[] = {
        {"tokenizer train --captions shapes/train/captions.jsonl --vocab-size 300 --out tok.json "
         "-q -t 1",
         "tok.json", NULL},
        {"tokenize --tokenizer tok.json --json -t 1 --text red-star", NULL, NULL},
        {"info model --json", NULL, NULL},
        {"check model -t 1 --json", NULL, NULL},
        {"embed -m model --images shapes/val -o i.safetensors -q -t 1", "i.safetensors", NULL},
        {"embed -m model --texts captions.txt -o t.safetensors -q -t 1", "t.safetensors", NULL},
        {"search --index t.safetensors --queries i.safetensors --json -t 1", NULL, NULL},
        {"eval retrieval --images i.safetensors --texts i.safetensors --bootstrap 0 --json -t 1",
         NULL, NULL},
        {"duplicates --set i.safetensors --json -t 1", NULL, NULL},
        {"outliers --set i.safetensors -k 1 --json -t 1", NULL, NULL},
        {"include --index t.safetensors --queries i.safetensors --json -t 1", NULL, NULL},
        {"data shapes --out made --n 3 --size 16 --shard-size 2 --val-share 0.3 --test-share 0 -q "
         "-t 1",
         "made/train/sizes.json", "made"},
        {"init --config tiny --force-image-size 16 --tokenizer tok.json --out fresh -q -t 1 "
         "--override {\"embed_dim\":8,\"vision_cfg\":{\"layers\":1,\"width\":16,"
         "\"head_width\":8,\"patch_size\":8},\"text_cfg\":{\"layers\":1,\"width\":16,"
         "\"heads\":2}}",
         "fresh/model.safetensors", "fresh"},
    };
    (void)state;
    long n_bad = 0;
    for (size_t i = 0; i < PNB_COUNT(cases); i++)
        n_bad += fail_each(cases[i].line, cases[i].output, cases[i].folder);
    assert_int_equal(n_bad, 0);
}

static int setup(void **state)
{
    static char dir[] = "/dev/shm/pnb-test-XXXXXX"; /* outputs are synced thousands of times */
    *state = dir;
    if (mkdtemp(dir) == NULL || chdir(dir) != 0)
        return -1;
    static const char captions[] = "a red star\na blue ring\n";
    return pnb__write_file("captions.txt", captions, sizeof captions - 1, NULL) == PNB_OK &&
                   run("data shapes --out shapes --n 6 --size 16 --shard-size 20 --val-share 0.3 "
                       "--test-share 0.2 -q -t 1",
                       -1) == 0 &&
                   run("tokenizer train --captions shapes/train/captions.jsonl --vocab-size 300 "
                       "--out tok.json -q",
                       -1) == 0 &&
                   run("init --config tiny --force-image-size 16 --tokenizer tok.json --out model "
                       "-q --override {\"embed_dim\":8,\"vision_cfg\":{\"layers\":1,\"width\":16,"
                       "\"head_width\":8,\"patch_size\":8},\"text_cfg\":{\"layers\":1,\"width\":16,"
                       "\"heads\":2}}",
                       -1) == 0
               ? 0
               : -1;
}

static int teardown(void **state)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", (const char *)*state);
    return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_command_survives)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
