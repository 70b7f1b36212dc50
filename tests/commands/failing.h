/* Whole commands with one allocation failing: 1, 2, 3, ... of the command, those of the C library
 * and of the picture and compression libraries too, because malloc itself is the test program's.
 * Each of the first fails in turn, then a spread of the rest. Each run ends well (a fault that
 * costs nothing) or with exit status 1 and "out of memory"; an output that was there before stays
 * whole, and no temporary file is left. Crashes and leaks are the sanitizers' to find.
 *
 * Not counted are the allocations of OpenMP's runtime, GLib and Rust, which end the process by
 * themselves, of HarfBuzz, which goes on with less, and the C library's own in other threads than
 * the first: the sanitizer looks at each new one through them. Those inside a drawing of librsvg
 * are counted and never fail.
 */
#ifndef PNB_TESTS_COMMANDS_FAILING_H
#define PNB_TESTS_COMMANDS_FAILING_H

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
#include <unwind.h>

#include "base/base.h"
#include "commands/commands.h"
#include "program/frame.h"

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

BARE static bool is_from(const void *caller, const char *const *libraries)
{
    Dl_info info;
    if (dladdr(caller, &info) == 0 || info.dli_fname == NULL)
        return false;
    for (; *libraries != NULL; libraries++)
        if (strstr(info.dli_fname, *libraries) != NULL)
            return true;
    return false;
}

/* Asked for each allocation, of few callers: what was found is kept, a caller's address above two
 * bits, so that threads see whole entries. */
BARE static bool is_runtime(const void *caller)
{
    static const char *const always[] = {"libgomp", "ld-linux",    "libglib", "libgobject",
                                         "libgio",  "libharfbuzz", "librsvg", NULL},
                             *const libc[] = {"libc.so", NULL};
    static volatile uintptr_t known[1 << 14];
    volatile uintptr_t *at = &known[((uintptr_t)caller >> 1) % PNB_COUNT(known)];
    uintptr_t entry = *at;
    if (entry >> 2 != (uintptr_t)caller) {
        entry = (uintptr_t)caller << 2 | is_from(caller, always) |
                (uintptr_t)is_from(caller, libc) << 1;
        *at = entry;
    }
    return (entry & 1) != 0 || ((entry & 2) != 0 && gettid() != getpid());
}

BARE static _Unwind_Reason_Code look_for_drawing(struct _Unwind_Context *frame, void *found)
{
    static const char *const drawing[] = {"librsvg", NULL};
    if (!is_from((void *)_Unwind_GetIP(frame), drawing))
        return _URC_NO_REASON;
    *(bool *)found = true;
    return _URC_END_OF_STACK;
}

/* Is a drawing being drawn? What libxml2 and cairo tell librsvg of memory it does not tell us. */
BARE static bool is_drawing(void)
{
    bool found = false;
    _Unwind_Backtrace(look_for_drawing, &found);
    return found;
}

BARE static bool must_fail(const void *caller)
{
    if (!is_armed)
        return false;
    is_armed = false; /* dladdr may allocate */
    bool fails = !is_runtime(caller) && n_seen++ == fails_at && !is_drawing();
    is_armed = true;
    if (fails)
        errno = ENOMEM;
    return fails;
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

enum { MAX_ARGS = 40 };

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

static long n_temporary;

static int count_temporary(const char *path, const struct stat *s, int kind, struct FTW *at)
{
    (void)s;
    (void)kind;
    n_temporary += strstr(path + at->base, ".tmp-") != NULL;
    return 0;
}

typedef struct failing_case {
    const char *line;
    const char *output; /* a file that is whole after each run, or as it was before; or NULL */
    const char *folder; /* what the command makes, removed before each run; or NULL */
    bool keeps_folder;  /* a failed run may leave it, without `output` or with a whole one */
} failing_case;

static void remove_all(const char *folder)
{
    if (folder != NULL)
        nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* Runs with one fault; was it as it must be? *told: ended for want of memory. */
static bool fail_one(const failing_case *c, long k, uint64_t wanted, bool *told)
{
    remove_all(c->folder);
    uint64_t before = hash_of(c->output);
    int status = run(c->line, k);
    *told = status == 1 && strstr(log_text, "out of memory") != NULL;
    uint64_t after = hash_of(c->output);
    bool whole = after == wanted || (status != 0 && after == before);
    if (c->folder != NULL && !c->keeps_folder)
        whole = whole && (access(c->folder, F_OK) != 0 || after == wanted);
    n_temporary = 0;
    nftw(".", count_temporary, 16, FTW_PHYS);
    if ((status == 0 || *told) && whole && n_temporary == 0)
        return true;
    print_message("%s: allocation %ld: status %d%s%s: %s\n", c->line, k, status,
                  whole ? "" : ", output not whole", n_temporary > 0 ? ", a temporary file" : "",
                  log_text);
    return false;
}

/* Fails each of the first `every` allocations and about `spread` of the rest; how many runs went
 * wrong. */
static long fail_each(const failing_case *c, long every, long spread)
{
    remove_all(c->folder);
    int clean = run(c->line, -1);
    if (clean != 0)
        fail_msg("%s: %d: %s", c->line, clean, log_text);
    long n = n_seen, n_told = 0, n_wrong = 0;
    uint64_t wanted = hash_of(c->output);
    for (long k = 0; k < n; k += k < every ? 1 : 1 + (n - every) / spread) {
        bool told;
        n_wrong += !fail_one(c, k, wanted, &told);
        n_told += told;
    }
    print_message("%s: %ld allocations, %ld told\n", c->line, n, n_told);
    return n_wrong + (n_told <= 5);
}

/* In a folder of its own: a data set of shapes, a tokenizer and a model of a few hundred weights.
 */
#define SMALL_MODEL                                                                                \
    "--config tiny --force-image-size 16 --tokenizer tok.json -q --override "                      \
    "{\"embed_dim\":8,\"vision_cfg\":{\"layers\":1,\"width\":16,\"head_width\":8,"                 \
    "\"patch_size\":8},\"text_cfg\":{\"layers\":1,\"width\":16,\"heads\":2}}"

static int failing_setup(void **state)
{
    static char dir[] = "/dev/shm/pnb-test-XXXXXX"; /* outputs are synced thousands of times */
    static const char texts[] = "a red star\na blue ring\n";
    static const char *const lines[] = {
        "data shapes --out shapes --n 6 --size 16 --shard-size 20 --val-share 0.3 --test-share 0.2 "
        "-q -t 1",
        "tokenizer train --captions shapes/train/captions.jsonl --vocab-size 300 --out tok.json -q",
        "init --out model " SMALL_MODEL,
    };
    *state = dir;
    if (mkdtemp(dir) == NULL || chdir(dir) != 0 ||
        pnb__write_file("captions.txt", texts, sizeof texts - 1, NULL) != PNB_OK)
        return -1;
    for (size_t i = 0; i < PNB_COUNT(lines); i++)
        if (run(lines[i], -1) != 0) {
            print_message("%s: %s\n", lines[i], log_text);
            return -1;
        }
    return 0;
}

static int failing_teardown(void **state)
{
    remove_all(*state);
    return chdir("/");
}

#endif
