/* PCME's losses over samples of all pairs.
 *
 * s(l) in the paper is e^l/(e^l + e^-l) in the code, the logistic function of 2l, so a pair's
 *   m l - log(e^l + e^-l) = log s(2 m l).
 * Distances and the log-sum-exp of a pair are one op (tensor/ops/samples.c), which never holds all
 * of them. The released code reads its log sigma as a log-variance in the divergence; here log_var
 * is the log-variance and the divergence that of the distribution, and the code's form has a name
 * of its own. */
#include "train/losses/soft_contrastive.h"

#include <math.h>

#include "penumbra/prob.h"

/* (n,D) and (n,J,D) -> (n,J,D): the mean and the spread go to all samples of a row. */
static pnb__tensor *spread_noise(pnb__tensor *mean, pnb__tensor *log_var, pnb__tensor *noise)
{
    const size_t rows[3] = {pnb__dim(noise, 0), 1, pnb__dim(noise, 2)};
    pnb__tensor *std = pnb__apply(PNB__EXP, pnb__affine(log_var, 0.5, 0));
    pnb__tensor *away = pnb__mul(noise, pnb__reshape(std, 3, rows));
    return pnb__add(away, pnb__reshape(mean, 3, rows));
}

pnb__tensor *pnb__draw_rows(const pnb__sampled_side *side, size_t first, size_t n)
{
    if (side->noise != NULL)
        return spread_noise(pnb__slice(side->mean, 0, first, n),
                            pnb__slice(side->log_var, 0, first, n),
                            pnb__slice(side->noise, 0, first, n));
    const pnb__draw_in in = {side->mean, side->log_var,  side->pairs, side->key, first,
                             n,          side->n_samples};
    return pnb__draw(&in);
}

pnb__tensor *pnb__draw_samples(const pnb__sampled_side *side)
{
    return pnb__draw_rows(side, 0, pnb__dim(side->mean, 0));
}

/* Noise that is given is held anyway: its rows are one block. */
size_t pnb__sample_block_rows(const pnb__sampled_side *side, size_t numbers)
{
    size_t n = pnb__dim(side->mean, 0), each = side->n_samples * pnb__dim(side->mean, 1);
    if (side->noise != NULL)
        return PNB_MAX(n, (size_t)1);
    numbers = numbers > 0 ? numbers : PNB__SAMPLE_BLOCK;
    return PNB_MAX((size_t)1, numbers / PNB_MAX(each, (size_t)1));
}

/* Sums of many blocks, added in pairs: a float holds as many digits of them as of one. */
typedef struct block_sum {
    pnb__tensor *(*add)(pnb__tensor *a, pnb__tensor *b);
    pnb__tensor *part[64]; /* of 2^i blocks; NULL: none */
} block_sum;

static pnb__tensor *add_values(pnb__tensor *a, pnb__tensor *b)
{
    return pnb__add(a, b);
}

static void add_block(block_sum *s, pnb__tensor *x)
{
    size_t i = 0;
    for (; s->part[i] != NULL; i++) {
        x = s->add(s->part[i], x);
        s->part[i] = NULL;
    }
    s->part[i] = x;
}

static pnb__tensor *sum_of_blocks(const block_sum *s)
{
    pnb__tensor *all = NULL;
    for (size_t i = 0; i < PNB_COUNT(s->part); i++)
        if (s->part[i] != NULL)
            all = all == NULL ? s->part[i] : s->add(s->part[i], all);
    return all;
}

/* The factor is fixed: released a and b were trained with it. */
pnb__tensor *pnb__soft_contrastive_pairs(pnb__tensor *x, pnb__tensor *y, pnb__tensor *scale,
                                         pnb__tensor *shift, pnb__tensor *signs)
{
    const pnb__match_in in = {x, y, scale, shift, signs, PNB_MATCH_FACTOR};
    return pnb__match_nll(&in);
}

/* Image to text and text to image are the same J^2 terms of a pair: one sum, counted twice. */
pnb__tensor *pnb__soft_contrastive(const pnb__sampled_side *images, const pnb__sampled_side *texts,
                                   pnb__tensor *scale, pnb__tensor *shift, pnb__tensor *signs)
{
    pnb__tensor *each = pnb__soft_contrastive_pairs(pnb__draw_samples(images),
                                                    pnb__draw_samples(texts), scale, shift, signs);
    return pnb__affine(pnb__sum(each, PNB__ALL_AXES), 2, 0);
}

/* Images first .. against texts first .., n of each; the images' marks begin at `mark`. Samples are
 * drawn inside the segment, so they are gone behind it and drawn again for the gradient. */
static pnb__tensor *marked_block(const pnb__marked_pairs *in, const size_t first[2],
                                 const size_t n[2], size_t mark)
{
    size_t begin = pnb__segment_begin(in->graph);
    const pnb__match_in pairs = {.x = pnb__draw_rows(&in->images, first[0], n[0]),
                                 .y = pnb__draw_rows(&in->texts, first[1], n[1]),
                                 .scale = in->scale,
                                 .shift = in->shift,
                                 .factor = PNB_MATCH_FACTOR};
    pnb__marks marks = in->marks;
    marks.row = mark;
    marks.column = first[1];
    pnb__tensor *rows = pnb__match_sums(&pairs, &marks, in->is_hard);
    pnb__tensor *sum = pnb__sum(rows, PNB__ALL_AXES);
    pnb__segment_end(in->graph, begin, sum);
    return sum;
}

/* A run of image rows in blocks, each against all blocks of texts. */
static void add_marked_run(const pnb__marked_pairs *in, size_t run_begin, size_t run_n, size_t mark,
                           block_sum *sum)
{
    size_t rows[2] = {pnb__sample_block_rows(&in->images, in->block),
                      pnb__sample_block_rows(&in->texts, in->block)};
    size_t n_texts = pnb__dim(in->texts.mean, 0);
    for (size_t i = 0; i < run_n; i += rows[0])
        for (size_t t = 0; t < n_texts; t += rows[1]) {
            const size_t n[2] = {PNB_MIN(rows[0], run_n - i), PNB_MIN(rows[1], n_texts - t)};
            add_block(sum, marked_block(in, (size_t[]){run_begin + i, t}, n, mark + i));
        }
}

/* 1 - P loses digits where P is near 1, so the second share is computed for itself. */
pnb__tensor *pnb__soft_contrastive_marked(const pnb__marked_pairs *in)
{
    block_sum sum = {.add = add_values};
    if (in->images.mean == NULL || in->texts.mean == NULL)
        return NULL;
    const pnb__row_share ours = pnb__share_runs(&in->share, pnb__dim(in->images.mean, 0));
    for (size_t run = 0, mark = 0; run < PNB__SHARE_RUNS; mark += ours.n[run++])
        add_marked_run(in, ours.begin[run], ours.n[run], mark, &sum);
    return pnb__affine(sum_of_blocks(&sum), 2, 0);
}

/* 1/2 sum (m^2 + e^l - l - 1), m of any shape whose last two dims are those of l */
static pnb__tensor *divergence(pnb__tensor *mean, pnb__tensor *log_var)
{
    pnb__tensor *spread = pnb__sub(pnb__apply(PNB__EXP, log_var), log_var);
    pnb__tensor *each = pnb__add(spread, pnb__apply(PNB__SQUARE, mean));
    return pnb__affine(pnb__sum(each, PNB__ALL_AXES), 0.5, -0.5 * (double)pnb__n(each));
}

/* Of the distribution itself: no sample is read. */
pnb__tensor *pnb__sampled_divergence(pnb__tensor *mean, pnb__tensor *log_var)
{
    return divergence(mean, log_var);
}

/* log sigma = log_var/2 in the place of the log-variance, as kl_divergence of the code has it. */
static void add_published_run(pnb__graph *g, const pnb__sampled_side *side, const size_t run[2],
                              size_t block, block_sum *sum)
{
    size_t rows = pnb__sample_block_rows(side, block);
    for (size_t i = 0; i < run[1]; i += rows) {
        size_t n = PNB_MIN(rows, run[1] - i), begin = pnb__segment_begin(g);
        pnb__tensor *log_var = pnb__slice(side->log_var, 0, run[0] + i, n);
        pnb__tensor *mean = pnb__mean(pnb__draw_rows(side, run[0] + i, n), 1);
        pnb__tensor *part = divergence(mean, pnb__affine(log_var, 0.5, 0));
        pnb__segment_end(g, begin, part);
        add_block(sum, part);
    }
}

pnb__tensor *pnb__sampled_divergence_published(pnb__graph *g, const pnb__sampled_side *side,
                                               const pnb__row_share *share, size_t block)
{
    block_sum sum = {.add = add_values};
    if (side->mean == NULL)
        return NULL;
    const pnb__row_share ours = pnb__share_runs(share, pnb__dim(side->mean, 0));
    for (size_t run = 0; run < PNB__SHARE_RUNS; run++)
        add_published_run(g, side, (size_t[]){ours.begin[run], ours.n[run]}, block, &sum);
    return sum_of_blocks(&sum);
}

/* ---- uniformity ---- */

#define UNIFORMITY_RATE 2.0

/* log sum_i e^(r_i), (1): r_0 - log_softmax(r)_0, taken as the mean over all i, which are equal. */
static pnb__tensor *log_sum(pnb__tensor *r)
{
    return pnb__reshape(pnb__mean(pnb__sub(r, pnb__log_softmax(r)), 0), 1, (size_t[]){1});
}

/* A log-sum over all pairs of n rows, (1), less the logarithm of their number. */
static pnb__tensor *less_log_pairs(pnb__tensor *sum, double n)
{
    return pnb__affine(pnb__reshape(sum, 0, NULL), 1, -log(n * (n - 1) / 2));
}

pnb__tensor *pnb__uniformity(pnb__tensor *x)
{
    double n = (double)pnb__dim(x, 0);
    return less_log_pairs(log_sum(pnb__pair_log_sums(x, UNIFORMITY_RATE)), n);
}

/* Both sides in blocks of rows, those of images first. */
typedef struct drawn_blocks {
    const pnb__sampled_side *sides;
    size_t rows[2], n[2];
} drawn_blocks;

static drawn_blocks blocks_of(const pnb__sampled_side sides[2], size_t numbers)
{
    drawn_blocks b = {.sides = sides};
    for (int s = 0; s < 2; s++) {
        b.rows[s] = pnb__sample_block_rows(&sides[s], numbers);
        b.n[s] = (pnb__dim(sides[s].mean, 0) + b.rows[s] - 1) / b.rows[s];
    }
    return b;
}

/* Samples of block i, (n J, D). */
static pnb__tensor *block_samples(const drawn_blocks *b, size_t i)
{
    int side = i >= b->n[0];
    const pnb__sampled_side *s = &b->sides[side];
    size_t first = (i - (side == 1 ? b->n[0] : 0)) * b->rows[side];
    pnb__tensor *x = pnb__draw_rows(s, first, PNB_MIN(b->rows[side], pnb__dim(s->mean, 0) - first));
    return pnb__reshape(x, 2, (size_t[]){pnb__dim(x, 0) * pnb__dim(x, 1), pnb__dim(x, 2)});
}

/* log(e^a + e^b), (1) each */
static pnb__tensor *add_logs(pnb__tensor *a, pnb__tensor *b)
{
    pnb__tensor *both[2] = {a, b};
    return log_sum(pnb__concat(both, 2, 0));
}

/* log of the sum over pairs of block i with block j, or with itself, (1) */
static void add_block_pairs(pnb__graph *g, const drawn_blocks *b, size_t i, size_t j,
                            block_sum *sum)
{
    size_t begin = pnb__segment_begin(g);
    pnb__tensor *x = block_samples(b, i), *rows;
    if (i == j && pnb__dim(x, 0) == 1)
        return; /* a sample has no pair with itself */
    rows = i == j ? pnb__pair_log_sums(x, UNIFORMITY_RATE)
                  : pnb__cross_log_sums(x, block_samples(b, j), UNIFORMITY_RATE);
    pnb__tensor *all = log_sum(rows);
    pnb__segment_end(g, begin, all);
    add_block(sum, all);
}

/* Each block with itself and with those behind it; one of each side: samples as they lie. */
pnb__tensor *pnb__sampled_uniformity(pnb__graph *g, const pnb__sampled_side sides[2], size_t block)
{
    block_sum sum = {.add = add_logs};
    double n_rows = 0;
    if (sides[0].mean == NULL || sides[1].mean == NULL)
        return NULL;
    const drawn_blocks b = blocks_of(sides, block);
    if (b.n[0] == 1 && b.n[1] == 1) {
        pnb__tensor *both[2] = {block_samples(&b, 0), block_samples(&b, 1)};
        return pnb__uniformity(pnb__concat(both, 2, 0));
    }
    for (int s = 0; s < 2; s++)
        n_rows += (double)(pnb__dim(sides[s].mean, 0) * sides[s].n_samples);
    for (size_t i = 0; i < b.n[0] + b.n[1]; i++)
        for (size_t j = i; j < b.n[0] + b.n[1]; j++)
            add_block_pairs(g, &b, i, j, &sum);
    return less_log_pairs(sum_of_blocks(&sum), n_rows);
}
