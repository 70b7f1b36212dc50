/* Rank figures of weighted rows: how well scores follow what is known, with cluster intervals.
 *
 * A resample is a weight a row (weighted.h); orders are found once, so that one costs
 *   Spearman  rho = sum w (R - R')(S - S') / sqrt(...), R and S average ranks        O(n)
 *   tau-b     (C - D)/sqrt((n0 - n1)(n0 - n2)); C and D counted by a Fenwick tree    O(n log n)
 *   AUROC     sum over high rows of (weight of the others below + half of the ties)  O(n)
 * exactly the figures of statistics.h on rows written out as often as they were drawn. All scores
 * share each resample, so that what makes rows easy for all of them does not widen a lead. */
#include "penumbra/rank_agreement.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "eval/resample/clusters.h"
#include "eval/resample/interval.h"
#include "eval/sorted.h"
#include "eval/weighted.h"

/* ---- orders ---- */

/* Rows ascending by a value; place[row] numbers the runs of equal values from 0. */
typedef struct order {
    size_t *row, *place;
    size_t n_places;
} order;

static void order_reset(order *o)
{
    pnb__free(o->row);
    pnb__free(o->place);
}

static pnb_status order_init(order *o, const double *value, size_t n, const char *what,
                             pnb_error *err)
{
    pnb__valued *sorted = NULL;
    pnb_status status = PNB_OK;
    *o = (order){0};
    PNB_TRY(PNB_ALLOC(o->row, n, err));
    PNB_TRY(PNB_ALLOC(o->place, n, err));
    PNB_TRY(pnb__sorted(&sorted, value, n, what, err));
    for (size_t i = 0; i < n; i++) {
        o->row[i] = sorted[i].place;
        o->n_places += i == 0 || sorted[i].value != sorted[i - 1].value;
        o->place[sorted[i].place] = o->n_places - 1;
    }
done:
    pnb__free(sorted);
    return status;
}

/* End of the run of equal values that begins at place i of the order. */
static size_t run_end(const order *o, size_t n, size_t i)
{
    size_t end = i + 1;
    while (end < n && o->place[o->row[end]] == o->place[o->row[i]])
        end++;
    return end;
}

static double run_weight(const order *o, const uint32_t *weight, size_t begin, size_t end)
{
    double sum = 0.0;
    for (size_t i = begin; i < end; i++)
        sum += (double)pnb__weight(weight, o->row[i]);
    return sum;
}

/* ---- one sample ---- */

/* Of a score: its figures by pnb_agreement, then what the first has where this one is held fixed.
 */
enum { HELD = PNB_N_AGREEMENTS, N_COLUMNS };
/* Ranks that one sample needs at a time: of what is known, of the first score, of another one. */
enum { KNOWN, FIRST, OTHER, N_RANKS };

typedef struct rank_job {
    const pnb_known_rows *rows;
    order known, *score; /* [n_scores] */
    unsigned char *is_high;
    pnb_bootstrap_opts boot;
    pnb__clusters clusters;
    size_t n_groups;
    double *value;    /* [n_resamples + n_groups][n_scores][N_COLUMNS] */
    uint32_t *weight; /* [threads][n] */
    double *ranks;    /* [threads][N_RANKS][n] */
    double *tree;     /* [threads][n + 1] */
} rank_job;

/* Average ranks less their mean, of weighted rows; rows of weight 0 get one too, which nothing
 * reads. */
static void centred_ranks(const order *o, size_t n, const uint32_t *weight, double total,
                          double *rank)
{
    double seen = 0.0;
    for (size_t i = 0; i < n;) {
        size_t end = run_end(o, n, i);
        double here = run_weight(o, weight, i, end);
        for (size_t j = i; j < end; j++)
            rank[o->row[j]] = seen + 0.5 * (here + 1.0) - 0.5 * (total + 1.0);
        seen += here;
        i = end;
    }
}

static double spearman(const double *a, const double *b, size_t n, const uint32_t *weight)
{
    double aa = 0.0, bb = 0.0, ab = 0.0;
    for (size_t i = 0; i < n; i++) {
        double w = (double)pnb__weight(weight, i);
        aa += w * a[i] * a[i];
        bb += w * b[i] * b[i];
        ab += w * a[i] * b[i];
    }
    if (!(aa > 0.0) || !(bb > 0.0))
        return (double)NAN;
    return fmin(fmax(ab / sqrt(aa) / sqrt(bb), -1.0), 1.0);
}

/* Pairs of rows that are equal in o, the copies of one row among them. */
static double tied_pairs(const order *o, size_t n, const uint32_t *weight)
{
    double pairs = 0.0;
    for (size_t i = 0; i < n;) {
        size_t end = run_end(o, n, i);
        double here = run_weight(o, weight, i, end);
        pairs += 0.5 * here * (here - 1.0);
        i = end;
    }
    return pairs;
}

static void tree_add(double *tree, size_t n, size_t place, double w)
{
    for (size_t i = place + 1; i <= n; i += i & (~i + 1))
        tree[i] += w;
}

/* Weight at places below `place`. */
static double tree_below(const double *tree, size_t place)
{
    double sum = 0.0;
    for (size_t i = place; i > 0; i -= i & (~i + 1))
        sum += tree[i];
    return sum;
}

/* Knight's count with a tree in place of the merge: rows come in order of what is known, and each
 * looks how many before it lie below and above. Rows of one run of it are entered after all looked.
 */
static double kendall(const order *known, const order *score, size_t n, const uint32_t *weight,
                      double total, double *tree)
{
    double difference = 0.0, entered = 0.0;
    size_t n_places = score->n_places;
    memset(tree, 0, (n_places + 1) * sizeof *tree);
    for (size_t i = 0; i < n;) {
        size_t end = run_end(known, n, i);
        for (size_t j = i; j < end; j++) {
            size_t row = known->row[j], place = score->place[row];
            double w = (double)pnb__weight(weight, row);
            if (w == 0.0)
                continue;
            double above = entered - tree_below(tree, place + 1);
            difference += w * (tree_below(tree, place) - above);
        }
        for (size_t j = i; j < end; j++) {
            double w = (double)pnb__weight(weight, known->row[j]);
            tree_add(tree, n_places, score->place[known->row[j]], w);
            entered += w;
        }
        i = end;
    }
    double all = 0.5 * total * (total - 1.0);
    double x = all - tied_pairs(known, n, weight), y = all - tied_pairs(score, n, weight);
    if (!(x > 0.0) || !(y > 0.0))
        return (double)NAN;
    return fmin(fmax(difference / sqrt(x) / sqrt(y), -1.0), 1.0); /* rounding may pass 1 */
}

static double auroc(const order *score, const unsigned char *is_high, size_t n,
                    const uint32_t *weight)
{
    double low = 0.0, high = 0.0, pairs = 0.0;
    for (size_t i = 0; i < n;) {
        size_t end = run_end(score, n, i);
        double here[2] = {0.0, 0.0};
        for (size_t j = i; j < end; j++)
            here[is_high[score->row[j]]] += (double)pnb__weight(weight, score->row[j]);
        pairs += here[1] * (low + 0.5 * here[0]);
        low += here[0];
        high += here[1];
        i = end;
    }
    return low > 0.0 && high > 0.0 ? pairs / low / high : (double)NAN;
}

/* Correlation of the ranks of x and y where those of z are held fixed, from the three of pairs:
 * (xy - xz yz) / sqrt((1 - xz^2)(1 - yz^2)). NaN where z says all of one of them. */
static double partial(double xy, double xz, double yz)
{
    double left = (1.0 - xz * xz) * (1.0 - yz * yz);
    if (!(left > 1e-12))
        return (double)NAN;
    return fmin(fmax((xy - xz * yz) / sqrt(left), -1.0), 1.0);
}

/* Spearman, tau and what is left of the first score's Spearman beside this one; out of score s. */
static void rank_figures(const rank_job *job, size_t s, const uint32_t *weight, double total,
                         double *ranks, double *tree, const double *of_first, double *out)
{
    size_t n = job->rows->n;
    double *own = ranks + (s == 0 ? FIRST : OTHER) * n;
    centred_ranks(&job->score[s], n, weight, total, own);
    out[PNB_AGREEMENT_SPEARMAN] = spearman(ranks + KNOWN * n, own, n, weight);
    out[PNB_AGREEMENT_KENDALL] = kendall(&job->known, &job->score[s], n, weight, total, tree);
    if (s > 0)
        out[HELD] = partial(of_first[PNB_AGREEMENT_SPEARMAN], out[PNB_AGREEMENT_SPEARMAN],
                            spearman(ranks + FIRST * n, own, n, weight));
}

/* All figures of all scores on one weighting of the rows. */
static void figures_on(const rank_job *job, const uint32_t *weight, int thread, double *out)
{
    size_t n = job->rows->n;
    double *ranks = job->ranks + (size_t)thread * N_RANKS * n;
    double *tree = job->tree + (size_t)thread * (n + 1);
    double total = run_weight(&job->known, weight, 0, n);
    const double *of_first = out;
    bool all = !job->rows->only_auroc;
    if (all)
        centred_ranks(&job->known, n, weight, total, ranks + KNOWN * n);
    for (size_t s = 0; s < job->rows->n_scores; s++, out += N_COLUMNS) {
        out[PNB_AGREEMENT_SPEARMAN] = out[PNB_AGREEMENT_KENDALL] = out[HELD] = (double)NAN;
        if (all)
            rank_figures(job, s, weight, total, ranks, tree, of_first, out);
        out[PNB_AGREEMENT_AUROC] = auroc(&job->score[s], job->is_high, n, weight);
    }
}

/* ---- resamples ---- */

static size_t n_values(const rank_job *job)
{
    return job->rows->n_scores * N_COLUMNS;
}

static void run_resamples(void *user, size_t begin, size_t end, int thread)
{
    const rank_job *job = user;
    uint32_t *weight = job->weight + (size_t)thread * job->rows->n;
    for (size_t r = begin; r < end; r++) {
        if (r < job->boot.n_resamples)
            pnb__clusters_draw(&job->clusters, job->boot.seed, r, weight);
        else
            pnb__clusters_leave_out(&job->clusters, r - job->boot.n_resamples, weight);
        figures_on(job, weight, thread, job->value + r * n_values(job));
    }
}

/* The interval of the values of column a, or of a less b where b is a column too. */
static void settle(const rank_job *job, size_t a, size_t b, double *room, pnb_interval *out)
{
    size_t n_runs = job->boot.n_resamples + job->n_groups, width = n_values(job);
    *out = (pnb_interval){out->value, (double)NAN, (double)NAN};
    if (n_runs == 0)
        return;
    for (size_t r = 0; r < n_runs; r++)
        room[r] = job->value[r * width + a] - (b == SIZE_MAX ? 0.0 : job->value[r * width + b]);
    pnb__replicates replicates = {.value = out->value,
                                  .resample = room,
                                  .n_resamples = job->boot.n_resamples,
                                  .jackknife = room + job->boot.n_resamples,
                                  .n_jackknife = job->n_groups,
                                  .n_clusters = job->clusters.n,
                                  .n_strata = 1,
                                  .agreement = PNB__AGREE_NONE};
    pnb__interval_settle(&replicates, job->boot.level, &out->low, &out->high);
}

/* Points first: settling sorts the room it is given, never the values. */
static pnb_status summarise(const rank_job *job, const double *point, pnb_rank_agreement *out,
                            pnb_error *err)
{
    double *room = NULL;
    pnb_status status =
        PNB_ALLOC(room, PNB_MAX(job->boot.n_resamples + job->n_groups, (size_t)1), err);
    if (status != PNB_OK)
        return status;
    for (size_t s = 0; s < job->rows->n_scores; s++) {
        for (size_t f = 0; f < PNB_N_AGREEMENTS; f++) {
            size_t own = s * N_COLUMNS + f;
            out[s].figure[f].value = point[own];
            out[s].lead[f].value = point[f] - point[own];
            settle(job, own, SIZE_MAX, room, &out[s].figure[f]);
            settle(job, f, own, room, &out[s].lead[f]);
        }
        out[s].held.value = point[s * N_COLUMNS + HELD];
        settle(job, s * N_COLUMNS + HELD, SIZE_MAX, room, &out[s].held);
    }
    pnb__free(room);
    return PNB_OK;
}

/* ---- the whole ---- */

/* Average ranks of runs of t equal values have the variance of ranks 1..n less
 * sum (t^3 - t) / (12 n); an order of all rows that is right, and chance within runs, correlates
 * with them by the root of the share that is left. */
static double most_spearman(const pnb__valued *sorted, size_t n)
{
    double left = (double)n * ((double)n * (double)n - 1.0), all = left;
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && !(sorted[end].value > sorted[i].value);)
            end++;
        double t = (double)(end - i);
        left -= t * (t * t - 1.0);
    }
    return left > 0.0 ? sqrt(left / all) : (double)NAN;
}

pnb_status pnb_known_split_of(const double *known, size_t n, pnb_known_split *out, pnb_error *err)
{
    pnb__valued *sorted = NULL;
    if (n == 0)
        return pnb__fail(err, PNB_ARG, "no rows whose truth is known; at least one is needed");
    pnb_status status = pnb__sorted(&sorted, known, n, "known value", err);
    if (status != PNB_OK)
        return status;
    double median = 0.5 * (sorted[(n - 1) / 2].value + sorted[n / 2].value);
    bool at = !(sorted[n - 1].value > median);
    *out = (pnb_known_split){
        .median = median, .includes_median = at, .most_spearman = most_spearman(sorted, n)};
    for (size_t i = 0; i < n; i++)
        out->n_high += at ? sorted[i].value >= median : sorted[i].value > median;
    pnb__free(sorted);
    return PNB_OK;
}

static pnb_status check(const pnb_known_rows *rows, const pnb_bootstrap_opts *o, pnb_error *err)
{
    if (rows->n == 0 || rows->n_scores == 0)
        return pnb__fail(err, PNB_ARG, "%zu rows and %zu scores; at least one of each is needed",
                         rows->n, rows->n_scores);
    if (!(o->level > 0.0 && o->level < 1.0))
        return pnb__fail(err, PNB_ARG, "intervals at level %g; it lies between 0 and 1", o->level);
    return PNB_OK;
}

static pnb_status job_init(rank_job *job, size_t n_threads, pnb_error *err)
{
    const pnb_known_rows *rows = job->rows;
    pnb_known_split split;
    pnb_status status;
    PNB_TRY(order_init(&job->known, rows->known, rows->n, "known value", err));
    PNB_TRY(PNB_ALLOC_ZERO(job->score, rows->n_scores, err));
    for (size_t s = 0; s < rows->n_scores; s++)
        PNB_TRY(order_init(&job->score[s], rows->score[s], rows->n, "score", err));
    PNB_TRY(pnb_known_split_of(rows->known, rows->n, &split, err));
    PNB_TRY(PNB_ALLOC(job->is_high, rows->n, err));
    for (size_t i = 0; i < rows->n; i++)
        job->is_high[i] =
            split.includes_median ? rows->known[i] >= split.median : rows->known[i] > split.median;
    PNB_TRY(pnb__clusters_init(&job->clusters, job->boot.cluster, rows->n, err));
    job->n_groups = job->boot.n_resamples > 0 ? pnb__clusters_groups(&job->clusters) : 0;
    PNB_TRY(
        PNB_ALLOC_ROWS(job->value, job->boot.n_resamples + job->n_groups + 1, n_values(job), err));
    PNB_TRY(PNB_ALLOC_ROWS(job->weight, n_threads, rows->n, err));
    PNB_TRY(PNB_ALLOC_ROWS(job->ranks, n_threads, N_RANKS * rows->n, err));
    status = PNB_ALLOC_ROWS(job->tree, n_threads, rows->n + 1, err);
done:
    return status;
}

static void job_reset(rank_job *job)
{
    for (size_t s = 0; job->score != NULL && s < job->rows->n_scores; s++)
        order_reset(&job->score[s]);
    order_reset(&job->known);
    pnb__clusters_reset(&job->clusters);
    pnb__free(job->score);
    pnb__free(job->is_high);
    pnb__free(job->value);
    pnb__free(job->weight);
    pnb__free(job->ranks);
    pnb__free(job->tree);
}

pnb_status pnb_rank_agreement_compute(const pnb_ctx *ctx, const pnb_known_rows *rows,
                                      const pnb_bootstrap_opts *opts, pnb_rank_agreement *out,
                                      pnb_error *err)
{
    rank_job job = {.rows = rows};
    pnb_status status;
    job.boot = opts == NULL ? pnb_bootstrap_opts_default() : *opts;
    PNB_TRY(check(rows, &job.boot, err));
    PNB_TRY(job_init(&job, ctx == NULL ? 1 : (size_t)ctx->n_threads, err));
    size_t n_runs = job.boot.n_resamples + job.n_groups;
    double *point = job.value + n_runs * n_values(&job);
    figures_on(&job, NULL, 0, point);
    pnb__parallel_for(ctx, n_runs, 1, run_resamples, &job);
    status = summarise(&job, point, out, err);
done:
    job_reset(&job);
    return status;
}
