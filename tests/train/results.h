/* What a run wrote of a term of its loss, read back. */
#ifndef PNB_TESTS_TRAIN_RESULTS_H
#define PNB_TESTS_TRAIN_RESULTS_H

#include "io/json/json.h"
#include "tests/train/fixture.h"

enum { MAX_STEPS = 8 };

/* The values of one term, step by step. */
typedef struct losses {
    double of[MAX_STEPS];
} losses;

static inline losses read_losses(const fixture *f, const char *run, const char *term)
{
    losses out = {{0}};
    char *path = pnb__format("%s/%s/results.jsonl", f->logs, run), *text = NULL;
    size_t size = 0, n = 0;
    ASSERT_OK(pnb__read_file(path, 1 << 24, &text, &size, &err));
    for (char *line = strtok(text, "\n"); line != NULL && n < MAX_STEPS;
         line = strtok(NULL, "\n")) {
        json_t *value = NULL;
        ASSERT_OK(pnb__json_load_bytes(&value, line, strlen(line), "line", &err));
        assert_true(json_is_number(json_object_get(value, term)));
        out.of[n++] = json_number_value(json_object_get(value, term));
        json_decref(value);
    }
    pnb__free(text);
    pnb__free(path);
    return out;
}

/* Does out.log of a run hold the words? */
static inline bool log_holds(const fixture *f, const char *run, const char *part)
{
    char *path = pnb__format("%s/%s/out.log", f->logs, run), *text = NULL;
    size_t n = 0;
    ASSERT_OK(pnb__read_file(path, 1 << 20, &text, &n, &err));
    bool found = strstr(text, part) != NULL;
    pnb__free(text);
    pnb__free(path);
    return found;
}

#endif
