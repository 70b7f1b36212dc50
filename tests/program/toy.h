/* A program of a command and a family of two, run inside the test: what it printed, what it said
 * and how it ended. */
#ifndef PNB_TESTS_PROGRAM_TOY_H
#define PNB_TESTS_PROGRAM_TOY_H

#include "program/frame.h"

#include "tests/data/fixture.h"

typedef struct paint_args {
    bool wet;
    int64_t size;
    const char *name, *mode, *from, *out;
    pnb__text_list colours, words;
} paint_args;

#define AT(field) PNB__FIELD(paint_args, field)
static const pnb__option paint_rows[] = {
    PNB__ROW_TEXT("name", AT(name), "WORD", "What it's called", .required = true),
    PNB__ROW_CHOICE("mode", AT(mode), "M", "slow|fast", "How it goes", .fallback = "slow"),
    PNB__ROW_INT("size", AT(size), "N", "Its size [in metres]: round", PNB__RANGE(1, 9),
                 .fallback = "3", .letter = 's', .group = "Form"),
    PNB__ROW_FLAG("wet", AT(wet), "Whether it is wet"),
    PNB__ROW_FILE("from", AT(from), "A|B", "What is read"),
    PNB__ROW_FILE("out", AT(out), "PATH", "What is written", .writes = ".txt|.csv"),
    PNB__ROW_LIST("colours", AT(colours), "C...", "Of which colours"),
    PNB__ROW_REST("words", AT(words), "WORD...", "What is said")};
#undef AT

/* What the command does; its test says. */
static pnb_status (*paint)(pnb__app *app, const paint_args *args);

static pnb_status run_paint(pnb__app *app, void *args, struct pnb__result *r)
{
    (void)r;
    return paint != NULL ? paint(app, args) : PNB_OK;
}

static pnb_status run_nothing(pnb__app *app, void *args, struct pnb__result *r)
{
    (void)r;
    (void)app;
    (void)args;
    return PNB_OK;
}

static const pnb__command paint_command = {.name = "paint",
                                           .summary = "cover a wall",
                                           .about = "The first paragraph\nof two.\n\nThe second.",
                                           .examples =
                                               "toy paint --name a\ntoy paint --name b --wet",
                                           .options = paint_rows,
                                           .n_options = PNB_COUNT(paint_rows),
                                           .args_bytes = sizeof(paint_args),
                                           .run = run_paint};
static const pnb__command rough_command = {
    .name = "rough", .summary = "by eye", .run = run_nothing};
static const pnb__command exact_command = {
    .name = "exact", .summary = "by rule", .about = "With a rule.", .run = run_nothing};
static const pnb__command *const measures[] = {&rough_command, &exact_command, NULL};
static const pnb__command measure_command = {
    .name = "measure", .summary = "tell lengths", .about = "Lengths.", .subs = measures};
static const pnb__command *const commands[] = {&paint_command, &measure_command, NULL};

static const pnb__command old_command = {.name = "daub",
                                         .summary = "cover a wall",
                                         .options = paint_rows,
                                         .n_options = PNB_COUNT(paint_rows),
                                         .args_bytes = sizeof(paint_args),
                                         .run = run_paint};
static const pnb__retired retired[] = {{&old_command, "paint", "paint"}, {NULL, NULL, NULL}};

static const pnb__program toy = {
    .name = "toy", .summary = "paint and measure", .commands = commands, .retired = retired};

/* ---- running ---- */

typedef struct outcome {
    int status;
    char *out, *log;
    size_t n_out, n_log;
} outcome;

/* Runs `toy WORDS...`; words end with NULL. */
__attribute__((unused)) static outcome run_toy(const pnb__program *program,
                                               const char *const *words)
{
    outcome o = {0};
    pnb__program p = *program;
    char *argv[16] = {(char *)(uintptr_t) "toy"};
    int argc = 1;
    for (; words[argc - 1] != NULL; argc++)
        argv[argc] = (char *)(uintptr_t)words[argc - 1];
    if (p.out == NULL)
        p.out = open_memstream(&o.out, &o.n_out);
    p.log = open_memstream(&o.log, &o.n_log);
    assert_true(p.out != NULL && p.log != NULL);
    o.status = pnb__program_run(&p, argc, argv);
    fclose(p.log);
    if (program->out == NULL)
        fclose(p.out);
    return o;
}
#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

__attribute__((unused)) static void free_outcome(outcome *o)
{
    free(o->out);
    free(o->log);
    *o = (outcome){0};
}

/* All that was written to `out`, as a text of its own; closes it. */
__attribute__((unused)) static char *read_back(FILE *out)
{
    long n = ftell(out);
    assert_true(n >= 0);
    char *text = calloc(1, (size_t)n + 1);
    assert_non_null(text);
    rewind(out);
    assert_int_equal(fread(text, 1, (size_t)n, out), n);
    fclose(out);
    return text;
}

/* What `CALL` prints to the stream `out` that it is given; free it. */
#define PRINTED(TEXT, CALL)                                                                        \
    char *TEXT = NULL;                                                                             \
    do {                                                                                           \
        FILE *out = tmpfile();                                                                     \
        assert_non_null(out);                                                                      \
        CALL;                                                                                      \
        TEXT = read_back(out);                                                                     \
    } while (0)

/* Both texts stand in `text`, the first before the second. */
__attribute__((unused)) static void expect_in_order(const char *text, const char *first,
                                                    const char *second)
{
    const char *at = strstr(text, first);
    if (at == NULL || strstr(at + strlen(first), second) == NULL)
        fail_msg("\"%s\", then \"%s\" are not in:\n%s", first, second, text);
}

__attribute__((unused)) static void expect_opening(const char *text, const char *opening)
{
    size_t n = strlen(opening);
    if (strncmp(text, opening, n) != 0)
        fail_msg("not\n%s\nbut\n%.*s", opening, (int)n, text);
}

#endif
