/* Every allocation fails once in each of filtering, duplicates, outliers, selection, subset files,
 * answers and copying shards: an error each time, nothing leaked, nothing left behind. */
#include "tests/io/scratch.h"

#include <math.h>
#include <sys/stat.h>

#include "io/tables/tar.h"
#include "penumbra/duplicates.h"
#include "penumbra/filter.h"
#include "penumbra/outliers.h"
#include "penumbra/selection.h"
#include "penumbra/vqa.h"

#ifdef PNB_FAULTS
enum { N = 40, DIM = 4 };

typedef struct rows {
    float mean[N * DIM], log_var[N * DIM];
    double u[N];
    pnb_gaussians view;
} rows;

static void fill(rows *r)
{
    for (size_t i = 0; i < (size_t)N * DIM; i++) {
        r->mean[i] = (float)((i / DIM) % 3 == i % DIM);
        r->log_var[i] = -3;
    }
    for (size_t i = 0; i < N; i++)
        r->u[i] = (double)i;
    r->view = (pnb_gaussians){.n = N, .dim = DIM, .mean = r->mean, .log_var = r->log_var};
}

static pnb_status filter(scratch *s, pnb_error *err)
{
    static const char *const texts[3] = {"a cat and a cat", "dog", NULL}, *const words[1] = {
                                                                              "bird"};
    const double score[3] = {1, 2, 3};
    const pnb_pair_figures pairs = {
        .n = 3, .score = score, .image_u = score, .text_u = score, .texts = texts};
    pnb_pair_filter_opts opts = pnb_pair_filter_opts_default();
    pnb_pair_filter f;
    (void)s;
    opts.certain_images = 0.9;
    opts.top = 0.5;
    opts.texts.max_repeated = 0.9;
    opts.texts.match = "a";
    opts.texts.blocked = words;
    opts.texts.n_blocked = 1;
    pnb_status status = pnb_pair_filter_apply(&pairs, &opts, &f, err);
    pnb_pair_filter_reset(&f);
    return status;
}

static pnb_status find_duplicates(scratch *s, pnb_error *err)
{
    rows r;
    pnb_duplicates d;
    (void)s;
    fill(&r);
    pnb_status status = pnb_duplicates_find(NULL, &r.view, r.u, NULL, &d, err);
    assert_true(status == PNB_OK ? d.n_groups == 3 : d.pair == NULL && d.row == NULL);
    pnb_duplicates_reset(&d);
    return status;
}

static pnb_status list_duplicates(scratch *s, pnb_error *err)
{
    rows r;
    pnb_duplicates d;
    pnb_duplicates_opts opts = pnb_duplicates_opts_default();
    (void)s;
    fill(&r);
    opts.max_pairs = 5;
    pnb_status status = pnb_duplicates_find(NULL, &r.view, r.u, &opts, &d, err);
    assert_true(status == PNB_OK ? d.n_groups == 3 : d.pair == NULL && d.row == NULL);
    pnb_duplicates_reset(&d);
    return status;
}

static pnb_status rank_outliers(scratch *s, pnb_error *err)
{
    rows r;
    pnb_outliers o;
    (void)s;
    fill(&r);
    pnb_status status = pnb_outliers_rank(NULL, &r.view, r.u, NULL, &o, err);
    assert_true(status == PNB_OK || o.order == NULL);
    pnb_outliers_reset(&o);
    return status;
}

static pnb_status choose_rows(scratch *s, pnb_error *err)
{
    rows r;
    size_t row[5];
    const pnb_k_centre_opts opts = {.with_spread = true};
    pnb_status status;
    (void)s;
    fill(&r);
    PNB_TRY(pnb_select_uncertain(r.u, N, NULL, 5, row, err));
    PNB_TRY(pnb_select_random(N, NULL, 5, 1, row, err));
    status = pnb_select_k_centre(NULL, &r.view, NULL, 5, &opts, row, NULL, err);
done:
    return status;
}

static pnb_status keep_uids(scratch *s, pnb_error *err)
{
    pnb_uid uids[3] = {{3, 1}, {1, 2}, {3, 1}}, *back = NULL;
    size_t n = 0;
    const char *path = scratch_path(s, "u.npy");
    pnb_status status = pnb_uids_save(path, uids, 3, NULL, err);
    if (status == PNB_OK)
        status = pnb_uids_load(&back, &n, path, err);
    assert_true(status == PNB_OK ? n == 2 : back == NULL);
    pnb_uids_free(back);
    return status;
}

static pnb_status answer(scratch *s, pnb_error *err)
{
    static const char *const words[2] = {"Two dogs", "don't"};
    const double scores[2] = {1, 2}, half[2] = {0.5, 0.5};
    const pnb_vqa_question q = {2, words, scores, NULL, 2, words};
    pnb_vqa_answer a;
    pnb_answer_calibration c = {0};
    (void)s;
    pnb_status status = pnb_vqa_score(&q, NULL, &a, err);
    if (status == PNB_OK)
        status = pnb_answer_calibration_compute(half, half, 2, 4, true, &c, err);
    return status;
}

/* Shards made without faults; the copy is removed again, so that each run begins alike. */
static void write_shard(scratch *s)
{
    pnb__tar_writer w;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb__tar_writer_open(&w, scratch_path(s, "in.tar"), &err), &err);
    assert_ok(pnb__tar_writer_add(&w, "0.jpg", "picture", 7, &err), &err);
    assert_ok(pnb__tar_writer_add(&w, "0.txt", "caption", 7, &err), &err);
    assert_ok(pnb__tar_writer_add(&w, "1.jpg", "picture", 7, &err), &err);
    assert_ok(pnb__tar_writer_commit(&w, &err), &err);
}

static pnb_status copy_shards(scratch *s, pnb_error *err)
{
    char out[128], file[160];
    static const char *const names[] = {"00000.tar", "00001.tar", "sizes.json"};
    const unsigned char keep[2] = {1, 1};
    const pnb_copy_opts opts = {.shard_size = 1};
    pnb_dataset_opts how = pnb_dataset_opts_default();
    pnb_dataset *ds = NULL;
    pnb_copied copied;
    snprintf(out, sizeof out, "%s/out", s->dir);
    how.allow_no_caption = true;
    pnb_status status = pnb_dataset_open(&ds, scratch_path(s, "in.tar"), &how, err);
    if (status == PNB_OK)
        status = pnb_dataset_copy(ds, keep, out, &opts, &copied, err);
    pnb_dataset_free(ds);
    assert_int_equal(scratch_count(s), status == PNB_OK ? 2 : 1);
    for (size_t i = 0; status == PNB_OK && i < PNB_COUNT(names); i++) {
        snprintf(file, sizeof file, "%s/%s", out, names[i]);
        assert_int_equal(unlink(file), 0);
    }
    if (status == PNB_OK)
        assert_int_equal(rmdir(out), 0);
    return status;
}

static void every_allocation(void **state)
{
    scratch *s = *state;
    static const faulty_fn scenarios[] = {
        filter, find_duplicates, list_duplicates, rank_outliers, choose_rows, keep_uids, answer};
    for (size_t i = 0; i < PNB_COUNT(scenarios); i++)
        fail_every_allocation(scenarios[i], s);
    scratch_clear(s);
    write_shard(s);
    fail_every_allocation(copy_shards, s);
}
#else
static void every_allocation(void **state)
{
    (void)state;
    skip(); /* needs a build with PNB_FAULTS */
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
