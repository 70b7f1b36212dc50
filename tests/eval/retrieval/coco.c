/* Intervals of the COCO table against a bootstrap that ranks every drawn query by sorting. */
#include "penumbra/coco.h"
#include "eval/resample/interval.h"
#include "penumbra/bootstrap.h"
#include "penumbra/ctx.h"
#include "penumbra/pmrp.h"
#include "penumbra/retrieval.h"
#include "tests/eval/expected.h"

enum { IMAGES = 15, TEXTS = 75, RESAMPLES = 120 };
enum { R1, R5, R10, R_PRECISION, MAP_AT_R, N_KINDS_OF_FIGURE };

/* Pictures and captions with three truths; picture i has captions 5i .. 5i+4. */
typedef struct world {
    double score[IMAGES * TEXTS];
    pnb_truth *truth[2][PNB_N_COCO_KINDS]; /* by direction; original twice */
    int32_t image_fold[IMAGES], text_fold[TEXTS];
} world;

static void image_row(void *user, size_t image, double *score)
{
    memcpy(score, ((const world *)user)->score + image * TEXTS, TEXTS * sizeof *score);
}

static void text_row(void *user, size_t text, double *score)
{
    for (size_t i = 0; i < IMAGES; i++)
        score[i] = ((const world *)user)->score[i * TEXTS + text];
}

/* Pairs from picture to caption: the original ones, and `n_more` at random for some pictures. */
static pnb_truth *make_truth(size_t n_more, uint64_t seed)
{
    int64_t pairs[2 * (TEXTS + 60)];
    size_t n = 0;
    pnb_truth *truth = NULL;
    pnb__rng rng;
    pnb__rng_init(&rng, seed, 0);
    for (size_t t = 0; t < TEXTS; t++) {
        if (n_more > 0 && t / 5 % 3 == 0) /* a picture without any of its own */
            continue;
        pairs[2 * n] = (int64_t)(t / 5);
        pairs[2 * n++ + 1] = (int64_t)t;
    }
    for (size_t i = 0; i < n_more; i++) {
        pairs[2 * n] = 1 + (int64_t)pnb__rng_below(&rng, IMAGES - 1); /* picture 0 has none */
        pairs[2 * n++ + 1] = (int64_t)pnb__rng_below(&rng, TEXTS);
    }
    assert_ok(pnb_truth_create_pairs(&truth, IMAGES, TEXTS, pairs, n, err));
    return truth;
}

/* Captions find their picture often in the last folds and hardly in the first. */
static void make_world(world *w)
{
    pnb__rng rng;
    pnb__rng_init(&rng, 5, 0);
    for (size_t i = 0; i < IMAGES; i++)
        for (size_t t = 0; t < TEXTS; t++)
            w->score[i * TEXTS + t] =
                pnb__rng_uniform(&rng) + (t / 5 == i ? 0.2 * (double)(i / 3) : 0.0);
    for (size_t k = 0; k < PNB_N_COCO_KINDS; k++) {
        w->truth[0][k] = make_truth(k == PNB_COCO_CXC ? 20 : k == PNB_COCO_ECCV ? 45 : 0, k);
        assert_ok(pnb_truth_transpose(&w->truth[1][k], w->truth[0][k], err));
    }
    assert_ok(pnb_coco_folds(w->truth[1][PNB_COCO_1K], NULL, 0, w->image_fold, w->text_fold, err));
}

static void free_world(world *w)
{
    for (size_t k = 0; k < 2 * PNB_N_COCO_KINDS; k++)
        pnb_truth_free(w->truth[k / PNB_N_COCO_KINDS][k % PNB_N_COCO_KINDS]);
}

static pnb_coco_truth truth_of(const world *w)
{
    return (pnb_coco_truth){.original_i2t = w->truth[0][PNB_COCO_5K],
                            .original_t2i = w->truth[1][PNB_COCO_5K],
                            .cxc_i2t = w->truth[0][PNB_COCO_CXC],
                            .cxc_t2i = w->truth[1][PNB_COCO_CXC],
                            .eccv_i2t = w->truth[0][PNB_COCO_ECCV],
                            .eccv_t2i = w->truth[1][PNB_COCO_ECCV],
                            .image_fold = w->image_fold,
                            .text_fold = w->text_fold};
}

static pnb_coco_ranks rank(const world *w)
{
    const pnb_coco_truth truth = truth_of(w);
    const pnb_coco_rows rows = {image_row, text_row, (void *)(uintptr_t)w};
    pnb_coco_ranks ranks;
    assert_ok(pnb_coco_rank_rows(NULL, &rows, &truth, &ranks, err));
    return ranks;
}

/* ---- the slow way ---- */

static double score_of(const world *w, int way, size_t query, size_t item)
{
    return way == 0 ? w->score[query * TEXTS + item] : w->score[item * TEXTS + query];
}

static bool is_positive(const pnb_truth *truth, size_t query, size_t item)
{
    for (size_t p = truth->offset[query]; p < truth->offset[query + 1]; p++)
        if (truth->item[p] == item)
            return true;
    return false;
}

/* Figures of one query by sorting its gallery, the fold's if fold is not negative. */
static void judge(const world *w, int way, size_t kind, size_t query, double out[])
{
    const pnb_truth *truth = w->truth[way][kind];
    const int32_t *item_fold = way == 0 ? w->text_fold : w->image_fold;
    int32_t fold = way == 0 ? w->image_fold[query] : w->text_fold[query];
    size_t order[TEXTS], n = 0, n_positive = 0, first = 0, found = 0;
    double precision = 0.0;
    for (size_t j = 0; j < truth->n_items; j++) {
        if (kind == PNB_COCO_1K && item_fold[j] != fold)
            continue;
        size_t at = n++;
        for (; at > 0 && score_of(w, way, query, order[at - 1]) < score_of(w, way, query, j); at--)
            order[at] = order[at - 1];
        order[at] = j;
        n_positive += is_positive(truth, query, j);
    }
    out[R_PRECISION] = out[MAP_AT_R] = 0.0;
    for (size_t i = 0; i < n; i++) {
        if (!is_positive(truth, query, order[i]))
            continue;
        first = first == 0 ? i + 1 : first;
        found++;
        if (i < n_positive) {
            out[R_PRECISION] = (double)found / (double)n_positive;
            precision += (double)found / (double)(i + 1);
        }
    }
    out[MAP_AT_R] = precision / (double)n_positive;
    out[R1] = first <= 1;
    out[R5] = first <= 5;
    out[R10] = first <= 10;
}

/* Sums of one sample, of a fold. */
typedef struct tally {
    double sum[N_KINDS_OF_FIGURE], n;
} tally;

/* Queries of picture `picture` that have a match, in fold `fold` if it is not negative. */
static void add_image(const world *w, int way, size_t kind, size_t image, tally *t)
{
    const pnb_truth *truth = w->truth[way][kind];
    size_t begin = way == 0 ? image : 5 * image, end = way == 0 ? begin + 1 : begin + 5;
    for (size_t q = begin; q < end; q++) {
        double one[N_KINDS_OF_FIGURE];
        if (truth->offset[q + 1] == truth->offset[q])
            continue;
        judge(w, way, kind, q, one);
        t->n += 1.0;
        for (size_t f = 0; f < N_KINDS_OF_FIGURE; f++)
            t->sum[f] += one[f];
    }
}

static bool has_queries(const world *w, int way, size_t kind, size_t image)
{
    tally t = {.n = 0};
    add_image(w, way, kind, image, &t);
    return t.n > 0;
}

/* One sample of one truth: pictures with their captions are drawn, each fold's among themselves or
 * all; or, for r >= RESAMPLES, picture number r - RESAMPLES is left out. Returns how many there
 * are. */
static size_t resample(const world *w, int way, size_t kind, uint64_t r, double out[])
{
    size_t n_folds = kind == PNB_COCO_1K ? PNB_COCO_FOLDS : 1, seen = 0, n_filled = 0;
    pnb__rng rng;
    pnb__rng_init(&rng, 9, r);
    for (size_t f = 0; f < N_KINDS_OF_FIGURE; f++)
        out[f] = 0.0;
    for (size_t s = 0; s < n_folds; s++) {
        size_t image[IMAGES], n = 0;
        tally t = {.n = 0};
        for (size_t i = 0; i < IMAGES; i++)
            if (has_queries(w, way, kind, i) && (n_folds == 1 || w->image_fold[i] == (int)s))
                image[n++] = i;
        for (size_t i = 0; i < n; i++)
            if (r < RESAMPLES)
                add_image(w, way, kind, image[pnb__rng_below(&rng, n)], &t);
            else if (seen + i != r - RESAMPLES)
                add_image(w, way, kind, image[i], &t);
        seen += n;
        n_filled += t.n > 0;
        for (size_t f = 0; f < N_KINDS_OF_FIGURE; f++)
            out[f] += t.n > 0 ? t.sum[f] / t.n : 0.0;
    }
    for (size_t f = 0; f < N_KINDS_OF_FIGURE; f++)
        out[f] /= (double)n_filled;
    return seen;
}

static double pick(const pnb_coco_figures *f, int way, size_t kind, size_t figure)
{
    const pnb_both_ways *const recall[] = {[PNB_COCO_1K] = f->coco_1k_r,
                                           [PNB_COCO_5K] = f->coco_5k_r,
                                           [PNB_COCO_CXC] = f->cxc_r,
                                           [PNB_COCO_ECCV] = f->eccv_r};
    const pnb_both_ways *b = figure <= R10           ? &recall[kind][figure]
                             : figure == R_PRECISION ? &f->eccv_rprecision
                                                     : &f->eccv_map_at_r;
    return way == 0 ? b->i2t : b->t2i;
}

static void equal_the_slow_way(void **state)
{
    (void)state;
    static const pnb_bootstrap_opts opts = {.n_resamples = RESAMPLES, .level = 0.9, .seed = 9};
    world w;
    make_world(&w);
    pnb_coco_ranks ranks = rank(&w);
    pnb_coco_intervals got;
    pnb_coco_figures figures;
    assert_ok(pnb_coco_summarise(&ranks, &figures, err));
    assert_ok(pnb_coco_bootstrap(NULL, &ranks, &opts, &got, err));
    assert_memory_equal(&got.value, &figures, sizeof figures);
    for (int way = 0; way < 2; way++)
        for (size_t kind = 0; kind < PNB_N_COCO_KINDS; kind++) {
            double slow[N_KINDS_OF_FIGURE][RESAMPLES + IMAGES], one[N_KINDS_OF_FIGURE];
            size_t n_clusters = resample(&w, way, kind, 0, one);
            for (size_t r = 0; r < RESAMPLES + n_clusters; r++) {
                resample(&w, way, kind, r, one);
                for (size_t f = 0; f < N_KINDS_OF_FIGURE; f++)
                    slow[f][r] = one[f];
            }
            for (size_t f = 0; f < (kind == PNB_COCO_ECCV ? N_KINDS_OF_FIGURE : R10 + 1u); f++) {
                double low, high;
                pnb__replicates r = {.value = pick(&figures, way, kind, f),
                                     .resample = slow[f],
                                     .n_resamples = RESAMPLES,
                                     .jackknife = slow[f] + RESAMPLES,
                                     .n_jackknife = n_clusters,
                                     .n_clusters = n_clusters,
                                     .n_strata = kind == PNB_COCO_1K ? PNB_COCO_FOLDS : 1,
                                     .agreement = PNB__AGREE_SHARE};
                pnb__interval_settle(&r, 0.9, &low, &high);
                assert_near(pick(&got.low, way, kind, f), low, 1e-12, 0);
                assert_near(pick(&got.high, way, kind, f), high, 1e-12, 0);
            }
        }
    assert_true(got.low.coco_1k_r[0].t2i < got.value.coco_1k_r[0].t2i &&
                got.value.coco_1k_r[0].t2i < got.high.coco_1k_r[0].t2i);
    pnb_coco_ranks_reset(&ranks);
    free_world(&w);
}

/* Folds are drawn apart: the variance of their mean is the mean of their variances, over 25. */
static void folds_are_drawn_apart(void **state)
{
    (void)state;
    static const pnb_bootstrap_opts opts = {.n_resamples = 8000, .level = 0.6826895, .seed = 1};
    enum { N = 2000 };
    pnb_coco_ranks ranks = {0};
    int64_t rank[N];
    int32_t fold[N];
    double zeros[N] = {0}, n[PNB_COCO_FOLDS] = {0}, hits[PNB_COCO_FOLDS] = {0}, variance = 0.0;
    pnb_coco_intervals got;
    pnb__rng rng;
    pnb__rng_init(&rng, 3, 0);
    for (size_t q = 0; q < N; q++) {
        fold[q] = (int32_t)(q * q * PNB_COCO_FOLDS / ((size_t)N * N)); /* of different sizes */
        rank[q] = pnb__rng_uniform(&rng) < 0.1 + 0.19 * fold[q] ? 1 : 2;
        n[fold[q]] += 1;
        hits[fold[q]] += rank[q] == 1;
    }
    for (size_t f = 0; f < PNB_COCO_FOLDS; f++)
        variance += hits[f] / n[f] * (1 - hits[f] / n[f]) / n[f] / 25;
    for (size_t way = 0; way < 2; way++) {
        pnb_ranks *r = &ranks.side[way].ranks[PNB_COCO_1K];
        *r =
            (pnb_ranks){.n_queries = N, .best_rank = rank, .r_precision = zeros, .map_at_r = zeros};
        ranks.side[way].fold = fold;
    }
    assert_ok(pnb_coco_bootstrap(NULL, &ranks, &opts, &got, err));
    assert_near((got.high.coco_1k_r[0].i2t - got.low.coco_1k_r[0].i2t) / 2, sqrt(variance), 0,
                0.04);
    /* always within 5: Wilson's limit with a case a query */
    assert_true(got.high.coco_1k_r[1].t2i == 1.0);
    assert_near(got.low.coco_1k_r[1].t2i, 1.0 - 1.0 / (N + 1.0), 1e-4, 0);
    assert_true(isnan(got.low.coco_5k_r[0].i2t) && isnan(got.high.eccv_map_at_r.t2i));
}

static void one_query_and_all_hits(void **state)
{
    (void)state;
    int64_t one[2 * 2] = {3, 7, 3, 9};
    world w;
    make_world(&w);
    pnb_coco_intervals got;
    for (size_t i = 0; i < IMAGES * TEXTS; i++)
        w.score[i] = i % TEXTS / 5 == i / TEXTS;
    pnb_truth_free(w.truth[0][PNB_COCO_ECCV]);
    assert_ok(pnb_truth_create_pairs(&w.truth[0][PNB_COCO_ECCV], IMAGES, TEXTS, one, 2, err));
    pnb_coco_ranks ranks = rank(&w);
    assert_ok(pnb_coco_bootstrap(NULL, &ranks, NULL, &got, err));
    for (size_t k = 0; k < 3; k++) { /* never wrong is no proof of never being wrong */
        assert_true(got.low.coco_1k_r[k].i2t < 1.0 && got.high.coco_1k_r[k].t2i == 1.0);
        assert_true(got.low.coco_5k_r[k].t2i < 0.8 && got.high.coco_5k_r[k].i2t == 1.0);
        assert_near(got.low.coco_5k_r[k].t2i, got.low.coco_5k_r[k].i2t, 1e-12, 0);
    }
    assert_true(isnan(got.low.eccv_r[2].i2t) && isnan(got.high.eccv_map_at_r.i2t)); /* one query */
    pnb_coco_ranks_reset(&ranks);
    free_world(&w);
}

static void seed_and_threads(void **state)
{
    (void)state;
    pnb_ctx_opts many = pnb_ctx_opts_default();
    pnb_bootstrap_opts opts = {.n_resamples = 50, .level = 0.95, .seed = 4};
    pnb_coco_intervals a, b;
    pnb_ctx *ctx = NULL;
    world w;
    make_world(&w);
    pnb_coco_ranks ranks = rank(&w);
    many.n_threads = 3;
    assert_ok(pnb_ctx_create(&ctx, &many, err));
    assert_ok(pnb_coco_bootstrap(NULL, &ranks, &opts, &a, err));
    assert_ok(pnb_coco_bootstrap(ctx, &ranks, &opts, &b, err));
    assert_memory_equal(&a, &b, sizeof a);
    opts.seed = 5;
    assert_ok(pnb_coco_bootstrap(ctx, &ranks, &opts, &b, err));
    assert_memory_not_equal(&a.low, &b.low, sizeof a.low);
    opts.level = 1.0;
    assert_fails(pnb_coco_bootstrap(ctx, &ranks, &opts, &b, err), PNB_ARG, "level 1");
    opts = (pnb_bootstrap_opts){.n_resamples = 0, .level = 0.95};
    assert_ok(pnb_coco_bootstrap(ctx, &ranks, &opts, &b, err));
    assert_near(b.value.coco_1k_r[0].i2t, a.value.coco_1k_r[0].i2t, 0, 0);
    assert_true(isnan(b.low.coco_1k_r[0].i2t) && isnan(b.high.eccv_map_at_r.t2i));
    pnb_ctx_free(ctx);
    memset(ranks.side[1].ranks[PNB_COCO_CXC].best_rank, 0, TEXTS * sizeof(int64_t));
    assert_fails(pnb_coco_bootstrap(NULL, &ranks, NULL, &b, err), PNB_ARG, "none of the 75");
    pnb_coco_ranks_reset(&ranks);
    pnb_coco_ranks_reset(NULL);
    free_world(&w);
}

/* ---- plausible matches ---- */

/* Rows of R-Precision at zeta 0 and 1; the first zeta leaves some queries out. */
static void pmrp_intervals(void **state)
{
    (void)state;
    enum { N = 40 };
    pnb_bootstrap_opts opts = {.n_resamples = RESAMPLES, .level = 0.9, .seed = 9};
    double per_query[N + 1][2], slow[3][RESAMPLES + N / 4];
    int64_t cluster[N + 1] = {0};
    size_t drawn = 0;
    pnb_pmrp_intervals got;
    pnb__rng rng;
    pnb__rng_init(&rng, 3, 0);
    for (size_t q = 0; q < N; q++) {
        per_query[q][0] = q % 3 == 0 ? NAN : pnb__rng_uniform(&rng);
        per_query[q][1] = pnb__rng_uniform(&rng);
    }
    per_query[N][0] = per_query[N][1] = NAN; /* in no resample */
    for (size_t q = 0; q < N; q++)
        cluster[q] = INT64_MAX - (int64_t)(q / 4); /* any numbers are labels */
    for (size_t r = 0; r < RESAMPLES + N / 4; r++) {
        double sum[2] = {0, 0}, n[2] = {0, 0};
        pnb__rng_init(&rng, 9, r);
        for (size_t i = 0; i < N; i++) {
            size_t c = r >= RESAMPLES ? i / 4 : i % 4 == 0 ? pnb__rng_below(&rng, N / 4) : drawn;
            const double *row = per_query[4 * c + i % 4];
            drawn = c;
            for (size_t z = 0; z < 2 && c != r - RESAMPLES; z++) {
                sum[z] += isnan(row[z]) ? 0.0 : row[z];
                n[z] += !isnan(row[z]);
            }
        }
        slow[0][r] = sum[0] / n[0];
        slow[1][r] = sum[1] / n[1];
        slow[2][r] = 0.5 * (slow[0][r] + slow[1][r]);
    }
    pnb_pmrp_values values = {per_query[0], NULL, cluster, N + 1, 1};
    assert_ok(pnb_pmrp_bootstrap(NULL, &values, &opts, &got, err));
    for (size_t z = 0; z < 3; z++) {
        const pnb_interval *i = z < 2 ? &got.r_precision[z] : &got.pmrp;
        double low, high;
        pnb__replicates r = {.value = i->value,
                             .resample = slow[z],
                             .n_resamples = RESAMPLES,
                             .jackknife = slow[z] + RESAMPLES,
                             .n_jackknife = N / 4,
                             .n_clusters = N / 4,
                             .n_strata = 1,
                             .agreement = PNB__AGREE_SHARE};
        pnb__interval_settle(&r, 0.9, &low, &high);
        assert_near(i->low, low, 1e-12, 0);
        assert_near(i->high, high, 1e-12, 0);
        assert_true(i->low < i->value && i->value < i->high);
    }
    values = (pnb_pmrp_values){per_query[N], NULL, NULL, 1, 1};
    assert_fails(pnb_pmrp_bootstrap(NULL, &values, &opts, &got, err), PNB_ARG, "no rows");
    values = (pnb_pmrp_values){per_query[0], NULL, NULL, 1, 9};
    assert_fails(pnb_pmrp_bootstrap(NULL, &values, &opts, &got, err), PNB_ARG, "zeta");
}

/* ---- memory that runs out ---- */

#ifdef PNB_FAULTS
/* Every allocation on the way from sets to intervals fails in turn: reported, and nothing leaks. */
static void no_memory(void **state)
{
    (void)state;
    static const pnb_bootstrap_opts opts = {.n_resamples = 5, .level = 0.9, .seed = 9};
    gaussians images = random_gaussians(IMAGES, 4, -4, -1, 1);
    gaussians texts = random_gaussians(TEXTS, 4, -4, -1, 2);
    long n = 0;
    world w;
    make_world(&w);
    const pnb_coco_truth truth = truth_of(&w);
    for (pnb_status status = PNB_NOMEM; status != PNB_OK; n++) {
        pnb_error error = PNB_ERROR_INIT;
        pnb_coco_ranks ranks;
        pnb_coco_intervals got;
        pnb__alloc_fail_after(n);
        status = pnb_coco_rank(NULL, &images.view, &texts.view, &truth, NULL, &ranks, &error);
        if (status != PNB_OK)
            assert_true(ranks.side[0].ranks[PNB_COCO_5K].best_rank == NULL);
        else
            status = pnb_coco_bootstrap(NULL, &ranks, &opts, &got, &error);
        pnb__alloc_fail_after(-1);
        pnb_coco_ranks_reset(&ranks);
        if (status != PNB_OK && status != PNB_NOMEM)
            fail_msg("allocation %ld: %s: %s", n, pnb_status_name(status), error.text);
        assert_true(n < 5000);
    }
    assert_true(n > 100);
    free_gaussians(&images);
    free_gaussians(&texts);
    free_world(&w);
}
#else
static void no_memory(void **state)
{
    (void)state;
    skip();
}
#endif

/* Folds of pictures are blocks of the order that is given; what is left over is in none. */
static void folds_of_images(void **state)
{
    (void)state;
    enum { N_IMAGES = 11, EACH = 2 };
    size_t order[N_IMAGES];
    int32_t image_fold[N_IMAGES], text_fold[N_IMAGES * EACH];
    int64_t pairs[2 * N_IMAGES * EACH];
    pnb_truth *truth = NULL, *shared = NULL;
    for (size_t i = 0; i < N_IMAGES; i++)
        order[i] = 7 * i % N_IMAGES;
    for (size_t t = 0; t < N_IMAGES * EACH; t++) {
        pairs[2 * t] = (int64_t)(t / EACH);
        pairs[2 * t + 1] = (int64_t)t;
    }
    assert_ok(
        pnb_truth_create_pairs(&truth, N_IMAGES, N_IMAGES * EACH, pairs, N_IMAGES * EACH, err));
    assert_ok(pnb_coco_folds_by_image(truth, order, N_IMAGES, image_fold, text_fold, err));
    for (size_t i = 0; i < N_IMAGES; i++) {
        int32_t fold = i < 10 ? (int32_t)(i / 2) : -1;
        assert_int_equal(image_fold[order[i]], fold);
        for (size_t t = 0; t < EACH; t++)
            assert_int_equal(text_fold[order[i] * EACH + t], fold);
    }
    assert_fails(pnb_coco_folds_by_image(truth, order, 4, image_fold, text_fold, err), PNB_ARG,
                 "4 pictures");
    pairs[1] = N_IMAGES * EACH - 1; /* a caption of the first picture and of the last */
    assert_ok(
        pnb_truth_create_pairs(&shared, N_IMAGES, N_IMAGES * EACH, pairs, N_IMAGES * EACH, err));
    assert_fails(pnb_coco_folds_by_image(shared, order, N_IMAGES, image_fold, text_fold, err),
                 PNB_ARG, "belongs to pictures in folds");
    order[3] = N_IMAGES;
    assert_fails(pnb_coco_folds_by_image(truth, order, N_IMAGES, image_fold, text_fold, err),
                 PNB_ARG, "order[3] is picture 11 of 11");
    pnb_truth_free(truth);
    pnb_truth_free(shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_the_slow_way),
        cmocka_unit_test(folds_are_drawn_apart),
        cmocka_unit_test(one_query_and_all_hits),
        cmocka_unit_test(seed_and_threads),
        cmocka_unit_test(folds_of_images),
        cmocka_unit_test(pmrp_intervals),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
