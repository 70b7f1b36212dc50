/* An experiment that learns nothing: its figures are functions of the seed. */
#ifndef TESTS_COMMANDS_REPRODUCE_MADE_UP_H
#define TESTS_COMMANDS_REPRODUCE_MADE_UP_H

#include "commands/reproduce/reproduce.h"
#include "tests/prob/support.h"
#include <string.h>
#include <unistd.h>

static const pnb__figure figures[] = {{"r1", "R@1", 100, 1}, {"cost", "cost", 1, 0}};
static const pnb__repro_row rows[] = {{"a", "method a"}, {"b", "method b"}, {"c", "of others"}};
static const pnb__paper_line lines[] = {
    {"a", "Table 9, X", {60, 1}, true, {2, NAN}}, {"b", "Table 9, Y", {90, 3}, false, {0}},
    {"b", "Table 9, X", {55, 2}, false, {0}},     {"a", "Table 9, Z", {70, NAN}, false, {0}},
    {"b", "Table 9, Z", {58, 2}, false, {0}},     {"c", "Table 9, X", {NAN, 7}, false, {0}}};
static const pnb__repro_claim claims[] = {{"a", "b", "r1", "a finds more"},
                                          {"b", "a", "r1", "b finds more"},
                                          {"a", "b", "cost", "a costs more"},
                                          {"c", "a", "r1", "c was not measured"}};
static const char *const stages[] = {"one", "two", NULL};
static const char *const differs[] = {"Everything.", NULL};

typedef struct fixture {
    pnb__app app;
    pnb__reproduce_opts opts;
    char dir[64], out[96];
    char *said;
    size_t n_said;
} fixture;

static inline int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    strcpy(f->dir, "/tmp/pnb-reproduce-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->out, sizeof f->out, "%s/out", f->dir);
    f->opts = (pnb__reproduce_opts){.out = f->out, .n_seeds = 2, .n_items = 60};
    f->app.log = open_memstream(&f->said, &f->n_said);
    f->app.common.seed = 7;
    assert_ok(pnb_ctx_create(&f->app.ctx, NULL, err));
    *state = f;
    return 0;
}

static inline int tear_down(void **state)
{
    fixture *f = *state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", f->dir);
    fclose(f->app.log);
    free(f->said);
    pnb_ctx_free(f->app.ctx);
    int failed = system(command);
    free(f);
    return failed;
}

/* The row of a table whose `key` is `text`; NULL: there is none. */
static inline const json_t *row_of(const pnb__result *r, const char *table, const char *key,
                                   const char *text, size_t skip)
{
    const json_t *of = pnb__result_get(r, table);
    for (size_t i = 0; i < json_array_size(of); i++) {
        const json_t *row = json_array_get(of, i);
        if (strcmp(json_string_value(json_object_get(row, key)), text) == 0 && skip-- == 0)
            return row;
    }
    return NULL;
}

#endif
