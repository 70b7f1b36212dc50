/* A folder of its own for a test of truth, files written into it, and what is read of them. */
#ifndef PNB_TESTS_TRUTH_SUPPORT_H
#define PNB_TESTS_TRUTH_SUPPORT_H

#include <sys/stat.h>
#include <unistd.h>

#include "penumbra/truth.h"
#include "tests/prob/support.h"

static char dir[] = "/tmp/penumbra_truth_XXXXXX";

static inline int make_dir(void **state)
{
    (void)state;
    return mkdtemp(dir) == NULL ? -1 : 0;
}

static inline int remove_dir(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    return system(command);
}

/* DIR/NAME, valid until the next call but three. */
static inline const char *in_dir(const char *name)
{
    static char paths[4][256];
    static unsigned n_paths;
    char *path = paths[n_paths++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", dir, name);
    return path;
}

static inline const char *write_file(const char *name, const char *text)
{
    const char *path = in_dir(name);
    assert_ok(pnb__write_file(path, text, strlen(text), err));
    return path;
}

static inline void make_folder(const char *name)
{
    assert_ok(pnb__make_dirs(in_dir(name), err));
}

static inline pnb_truth_rows rows(const char *const *ids, size_t n)
{
    return (pnb_truth_rows){.n = n, .ids = ids};
}

/* The pairs of a truth, given as query, item, query, item, ... */
static inline void expect_pairs(const pnb_truth *t, const int64_t *pairs, size_t n)
{
    size_t i = 0;
    assert_int_equal(t->n_pairs, n);
    assert_int_equal(t->offset[0], 0);
    assert_int_equal(t->offset[t->n_queries], n);
    for (size_t q = 0; q < t->n_queries; q++)
        for (size_t j = t->offset[q]; j < t->offset[q + 1]; j++, i++) {
            assert_int_equal(pairs[2 * i], q);
            assert_int_equal(pairs[2 * i + 1], t->item[j]);
        }
}

/* Reads and checks the pairs, given as picture, caption, picture, caption, ... */
static inline void expect(const char *path, const pnb_truth_read_opts *opts, pnb_truth_rows images,
                          pnb_truth_rows texts, const size_t *want, size_t n_pairs,
                          pnb_truth_report *report)
{
    pnb_truth *t = NULL;
    pnb_truth_report own;
    report = report == NULL ? &own : report;
    assert_ok(pnb_truth_read(&t, path, &images, &texts, opts, report, err));
    assert_int_equal(t->n_pairs, n_pairs);
    assert_true(t->n_queries == images.n && t->n_items == texts.n);
    for (size_t q = 0, i = 0; q < t->n_queries; q++)
        for (size_t p = t->offset[q]; p < t->offset[q + 1]; p++, i++) {
            assert_int_equal(want[2 * i], q);
            assert_int_equal(want[2 * i + 1], t->item[p]);
        }
    pnb_truth_free(t);
    pnb_truth_report_reset(report == &own ? report : NULL);
}

/* Two pictures and two captions, and texts of files that are read against them. */
static const char *const TWO_IMAGES[] = {"a.jpg", "42"}, *const TWO_TEXTS[] = {"7", "8"};
static const pnb_truth_rows IMAGE_ROWS = {.n = 2, .ids = TWO_IMAGES};
static const pnb_truth_rows TEXT_ROWS = {.n = 2, .ids = TWO_TEXTS};

typedef struct truth_case {
    const char *name, *text, *says; /* NULL: is read */
    pnb_truth_format format;
} truth_case;

static inline void expect_cases(const truth_case *cases, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        const truth_case *c = &cases[k];
        const pnb_truth_read_opts o = {.format = c->format};
        pnb_error err = PNB_ERROR_INIT;
        pnb_truth *t = NULL;
        const char *path = write_file(c->name, c->text);
        pnb_status status = pnb_truth_read(&t, path, &IMAGE_ROWS, &TEXT_ROWS, &o, NULL, &err);
        if (c->says == NULL && status != PNB_OK)
            fail_msg("case %zu: %s", k, err.text);
        if (c->says != NULL && (status == PNB_OK || strstr(err.text, c->says) == NULL))
            fail_msg("case %zu says '%s', '%s' is wanted", k, err.text, c->says);
        pnb_truth_free(t);
    }
}

/* Of COCO's captions, in their true form: two pictures, three captions. */
static const char COCO[] =
    "{\"info\":{},\"licenses\":[],\"images\":["
    "{\"license\":3,\"file_name\":\"COCO_val2014_000000391895.jpg\",\"height\":360,\"id\":391895},"
    "{\"license\":1,\"file_name\":\"COCO_val2014_000000000042.jpg\",\"height\":478,\"id\":42}],"
    "\"annotations\":["
    "{\"image_id\":42,\"id\":770337,\"caption\":\"A shoe rack with some shoes. \"},"
    "{\"image_id\":391895,\"id\":771687,\"caption\":\"A man with a red helmet\"},"
    "{\"image_id\":42,\"id\":772707,\"caption\":\"A dog sleeping on shoes\"}]}";

#endif
