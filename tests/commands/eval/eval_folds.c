/* COCO 1K, 5K and PMRP in folds from a Karpathy file alone, against sorting by hand; and what is
 * said where there are no folds. */
#include "commands/eval/eval_retrieval.h"
#include "tests/prob/support.h"
#include <unistd.h>

/* 30 pictures of the test split between 6 of another; a fold has 6 of them. */
enum { N_TEST = 30, N_OTHER = 6, N = N_TEST + N_OTHER, FOLD = 6, DIM = 4, L = 5, MAX_TEXTS = 220 };
enum { N_ZETA = 3 };

typedef struct world {
    char dir[64], images[128], texts[128], truth[128], labels[128];
    float image[N][DIM], text[MAX_TEXTS][DIM]; /* by place in the file */
    size_t owner[MAX_TEXTS], n_texts;          /* place of a caption's picture */
    uint8_t label[N][L];
    char *said;
    size_t n_said;
    pnb__app app;
} world;

static bool is_test(size_t place)
{
    return place % 6 != 5;
}

/* Rows stand in another order than the file; n is no multiple of 5. */
static size_t row_of(size_t place, size_t n)
{
    return (place * 5 + 3) % n;
}

static void make_values(world *w)
{
    pnb__rng rng;
    pnb__rng_init(&rng, 31, 0);
    for (size_t i = 0; i < N; i++) {
        for (size_t d = 0; d < DIM; d++)
            w->image[i][d] = (float)pnb__rng_normal(&rng);
        for (size_t l = 0; l < L; l++)
            w->label[i][l] = (uint8_t)pnb__rng_below(&rng, 2);
        for (size_t k = 0; k < 5 + (i % 7 == 0); k++, w->n_texts++) {
            w->owner[w->n_texts] = i;
            for (size_t d = 0; d < DIM; d++)
                w->text[w->n_texts][d] = w->image[i][d] + 0.9F * (float)pnb__rng_normal(&rng);
        }
    }
    assert_true(w->n_texts % 5 != 0 && w->n_texts <= MAX_TEXTS);
}

static void write_sets(const world *w, size_t n_images)
{
    pnb_embeddings *images = NULL, *texts = NULL;
    char id[64];
    assert_ok(pnb_embeddings_create(&images, PNB_POINT, N, DIM, err));
    assert_ok(pnb_embeddings_create(&texts, PNB_POINT, w->n_texts, DIM, err));
    snprintf(images->info.modality, sizeof images->info.modality, "image");
    snprintf(texts->info.modality, sizeof texts->info.modality, "text");
    snprintf(images->info.weights_sha256, sizeof images->info.weights_sha256, "w");
    snprintf(texts->info.weights_sha256, sizeof texts->info.weights_sha256, "w");
    for (size_t i = 0; i < N; i++) {
        size_t row = row_of(i, N);
        snprintf(id, sizeof id, "COCO_val2014_%012zu.jpg", 1000 + i);
        memcpy(images->mean + row * DIM, w->image[i], sizeof w->image[i]);
        assert_ok(pnb_embeddings_set_id(images, row, id, err));
    }
    for (size_t t = 0; t < w->n_texts; t++) {
        size_t row = row_of(t, w->n_texts);
        snprintf(id, sizeof id, "%zu", 5000 + t);
        memcpy(texts->mean + row * DIM, w->text[t], sizeof w->text[t]);
        assert_ok(pnb_embeddings_set_id(texts, row, id, err));
    }
    if (n_images < N) {
        size_t first[N];
        pnb_embeddings *all = images;
        for (size_t i = 0; i < n_images; i++)
            first[i] = i;
        assert_ok(pnb_embeddings_select(&images, all, first, n_images, err));
        pnb_embeddings_free(all);
    }
    assert_ok(pnb_embeddings_save(images, w->images, err));
    assert_ok(pnb_embeddings_save(texts, w->texts, err));
    pnb_embeddings_free(images);
    pnb_embeddings_free(texts);
}

static void write_files(const world *w)
{
    pnb__buf json = {0}, csv = {0};
    size_t t = 0;
    pnb__buf_puts(&json, "{\"images\":[");
    pnb__buf_puts(&csv, "id,a,b,c,d,e\n");
    for (size_t i = 0; i < N; i++) {
        pnb__buf_printf(&json,
                        "%s{\"filename\":\"COCO_val2014_%012zu.jpg\",\"cocoid\":%zu,\"split\":"
                        "\"%s\",\"sentences\":[",
                        i > 0 ? "," : "", 1000 + i, 1000 + i, is_test(i) ? "test" : "val");
        for (size_t k = 0; t < w->n_texts && w->owner[t] == i; k++, t++)
            pnb__buf_printf(&json, "%s{\"sentid\":%zu,\"raw\":\"c\"}", k > 0 ? "," : "", 5000 + t);
        pnb__buf_puts(&json, "]}");
        pnb__buf_printf(&csv, "COCO_val2014_%012zu.jpg", 1000 + i);
        for (size_t l = 0; l < L; l++)
            pnb__buf_printf(&csv, ",%d", w->label[i][l]);
        pnb__buf_puts(&csv, "\n");
    }
    pnb__buf_puts(&json, "],\"dataset\":\"coco\"}");
    assert_ok(pnb__write_file(w->truth, json.data, json.size, err));
    assert_ok(pnb__write_file(w->labels, csv.data, csv.size, err));
    pnb__buf_reset(&json);
    pnb__buf_reset(&csv);
}

static int set_up(void **state)
{
    world *w = calloc(1, sizeof *w);
    pnb_ctx_opts opts = pnb_ctx_opts_default();
    assert_non_null(w);
    strcpy(w->dir, "/tmp/pnb-folds-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    snprintf(w->images, sizeof w->images, "%s/i.safetensors", w->dir);
    snprintf(w->texts, sizeof w->texts, "%s/t.safetensors", w->dir);
    snprintf(w->truth, sizeof w->truth, "%s/dataset_coco.json", w->dir);
    snprintf(w->labels, sizeof w->labels, "%s/labels.csv", w->dir);
    opts.n_threads = 2;
    w->app.log = open_memstream(&w->said, &w->n_said);
    assert_ok(pnb_ctx_create(&w->app.ctx, &opts, err));
    make_values(w);
    write_sets(w, N);
    write_files(w);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    world *w = *state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", w->dir);
    fclose(w->app.log);
    free(w->said);
    pnb_ctx_free(w->app.ctx);
    int failed = system(command);
    free(w);
    return failed;
}

static pnb__retrieval_opts opts_of(const world *w)
{
    pnb__retrieval_opts o = pnb__retrieval_opts_default();
    o.images = w->images;
    o.texts = w->texts;
    o.truth = w->truth;
    o.read.split = "test";
    o.label_vectors = w->labels;
    o.measure = PNB_MEASURE_MEAN;
    o.fold_images = FOLD;
    return o;
}

/* ---- by hand ---- */

/* One side of a search: values and the picture behind each entry, fold -1: not of the split. */
typedef struct side {
    const float *value;
    size_t n, image[MAX_TEXTS];
    int fold[MAX_TEXTS];
} side;

static side side_of(const world *w, bool images)
{
    side s = {images ? w->image[0] : w->text[0], images ? N : w->n_texts, {0}, {0}};
    for (size_t i = 0; i < s.n; i++) {
        size_t place = images ? i : w->owner[i], before = 0;
        for (size_t p = 0; p < place; p++)
            before += is_test(p);
        s.image[i] = place;
        s.fold[i] = is_test(place) ? (int)(before / FOLD) : -1;
    }
    return s;
}

static double cosine(const float *a, const float *b)
{
    double ab = 0, aa = 0, bb = 0;
    for (size_t d = 0; d < DIM; d++) {
        ab += (double)a[d] * b[d];
        aa += (double)a[d] * a[d];
        bb += (double)b[d] * b[d];
    }
    return ab / sqrt(aa * bb);
}

/* Items of the query's gallery, best first; fold -1: all of the split. */
static size_t search(const side *queries, const side *items, size_t q, int fold, size_t *order)
{
    double score[MAX_TEXTS];
    size_t n = 0;
    for (size_t j = 0; j < items->n; j++) {
        double own = cosine(queries->value + q * DIM, items->value + j * DIM);
        size_t at = n;
        if (items->fold[j] < 0 || (fold >= 0 && items->fold[j] != fold))
            continue;
        for (; at > 0 && score[at - 1] < own; at--) {
            score[at] = score[at - 1];
            order[at] = order[at - 1];
        }
        score[at] = own;
        order[at] = j;
        n++;
    }
    return n;
}

/* Share of the first R that are plausible, R of them in the gallery. */
static double plausible(const world *w, const side *queries, const side *items, size_t q,
                        const size_t *order, size_t n, int zeta)
{
    bool fits[MAX_TEXTS];
    size_t r = 0, hits = 0;
    for (size_t i = 0; i < n; i++) {
        int differ = 0;
        for (size_t l = 0; l < L; l++)
            differ += w->label[queries->image[q]][l] != w->label[items->image[order[i]]][l];
        fits[i] = differ <= zeta;
        r += fits[i];
    }
    for (size_t i = 0; i < r; i++)
        hits += fits[i];
    return (double)hits / (double)r;
}

enum { R1, R5, R10, ZETA0, N_BY_HAND = ZETA0 + N_ZETA };

/* Mean over the galleries (5 folds, or one) of the mean over their queries. */
static void by_hand(const world *w, int way, int n_folds, double out[N_BY_HAND])
{
    static const size_t k[] = {1, 5, 10};
    const side queries = side_of(w, way == 0), items = side_of(w, way == 1);
    memset(out, 0, N_BY_HAND * sizeof *out);
    for (int f = 0; f < n_folds; f++) {
        double sum[N_BY_HAND] = {0}, n_queries = 0;
        for (size_t q = 0; q < queries.n; q++) {
            size_t order[MAX_TEXTS], n, rank = 0;
            if (queries.fold[q] < 0 || (n_folds > 1 && queries.fold[q] != f))
                continue;
            n = search(&queries, &items, q, n_folds > 1 ? f : -1, order);
            while (items.image[order[rank]] != queries.image[q])
                rank++;
            for (size_t i = 0; i < 3; i++)
                sum[i] += rank < k[i];
            for (int z = 0; z < N_ZETA; z++)
                sum[ZETA0 + z] += plausible(w, &queries, &items, q, order, n, z);
            n_queries++;
        }
        for (size_t i = 0; i < N_BY_HAND; i++)
            out[i] += sum[i] / n_queries / n_folds;
    }
}

/* ---- tests ---- */

static const pnb__coco_row *row(const pnb__retrieval *run, const char *key)
{
    for (size_t i = 0; i < run->n_coco; i++)
        if (strcmp(run->coco[i].key, key) == 0)
            return &run->coco[i];
    fail_msg("no figure %s", key);
    return NULL;
}

static void check_figures(const world *w, const pnb__retrieval *run, int n_folds,
                          const char *const keys[N_BY_HAND], const char *pmrp)
{
    for (int way = 0; way < 2; way++) {
        double want[N_BY_HAND];
        by_hand(w, way, n_folds, want);
        for (size_t i = 0; i < N_BY_HAND; i++) {
            const pnb_interval *got = &row(run, keys[i])->side[way];
            assert_near(got->value, want[i], 1e-12, 0);
            assert_true(got->low <= got->value && got->value <= got->high);
        }
        assert_near(row(run, pmrp)->side[way].value,
                    (want[ZETA0] + want[ZETA0 + 1] + want[ZETA0 + 2]) / 3, 1e-12, 0);
    }
}

static void equal_by_hand(void **state)
{
    world *w = *state;
    static const char *const in_folds[] = {"coco_1k_r1",    "coco_1k_r5",    "coco_1k_r10",
                                           "pmrp_1k_zeta0", "pmrp_1k_zeta1", "pmrp_1k_zeta2"};
    static const char *const whole[] = {"coco_5k_r1", "coco_5k_r5", "coco_5k_r10",
                                        "pmrp_zeta0", "pmrp_zeta1", "pmrp_zeta2"};
    pnb__retrieval_opts o = opts_of(w);
    pnb__retrieval run = {0}, bare = {0};
    o.n_resamples = 60;
    assert_int_equal(pnb__retrieval_run(&w->app, &o, &run), PNB_OK);
    assert_int_equal(run.n_coco, 14);
    check_figures(w, &run, 5, in_folds, "pmrp_1k");
    check_figures(w, &run, 1, whole, "pmrp");
    assert_int_equal(row(&run, "coco_1k_r1")->n_queries[0], N_TEST);
    assert_true(row(&run, "coco_1k_r1")->side[1].value > row(&run, "coco_5k_r1")->side[1].value);
    o.n_resamples = 0;
    assert_int_equal(pnb__retrieval_run(&w->app, &o, &bare), PNB_OK);
    for (size_t i = 0; i < run.n_coco; i++) {
        assert_true(bare.coco[i].side[0].value == run.coco[i].side[0].value);
        assert_true(isnan(bare.coco[i].side[0].low) && isnan(bare.coco[i].side[1].high));
    }
    pnb__retrieval_reset(&run);
    pnb__retrieval_reset(&bare);
}

/* Runs, finds no folds, and finds `text` among what was said. */
static void expect_none(world *w, const pnb__retrieval_opts *o, const char *text)
{
    pnb__retrieval run = {0};
    rewind(w->app.log);
    assert_int_equal(pnb__retrieval_run(&w->app, o, &run), PNB_OK);
    fflush(w->app.log);
    assert_int_equal(run.n_coco, 4); /* PMRP of the whole gallery */
    assert_null(run.image_fold);
    if (strstr(w->said, text) == NULL)
        fail_msg("'%s' does not say '%s'", w->said, text);
    pnb__retrieval_reset(&run);
}

static void says_why_not(void **state)
{
    world *w = *state;
    pnb__retrieval_opts o = opts_of(w);
    o.fold_images = 1000;
    expect_none(w, &o, "1000 pictures each of a split of 5000");
    expect_none(w, &o, "(split test) has 30");
    o.fold_images = FOLD;
    o.read.split = NULL;
    expect_none(w, &o, "6 pictures and ");
    expect_none(w, &o, "--split test leaves them out");
    write_sets(w, N - 4);
    o.read.split = "test";
    expect_none(w, &o, "the sets hold 2");
    write_sets(w, N);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(equal_by_hand),
                                       cmocka_unit_test(says_why_not)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
