/* Terms over samples of a step: PCME's match probability, its divergence and the uniformity of
 * samples.
 *
 * All terms see the same draws, z = mean + exp(lv / 2) e. A training step draws them in the graph,
 * of a stream that (seed, step) says and in it by the pair's number, so that they are held for a
 * block of pairs at a time and not for a batch; who computes a loss of given noise has it as an
 * input, and a gradient can be checked by differences. The operations are those of
 * soft_contrastive.c, which the adapters' heads have too. Sums over the batch stay sums, as in the
 * reference: its weights (KL 1e-5, uniformity 10) and its clipping at a norm of 2 are made for
 * them. */
#include "train/losses/sampled_terms.h"

#include "train/losses/soft_contrastive.h"

typedef pnb__term_build build;

/* Draws of samples share no stream with whatever else the seed of a run decides. */
#define NOISE_SEED 0x9e3779b97f4a7c15U
#define ROWS_SEED 0xd1b54a32d192ed03U

/* ---- building ---- */

/* Where samples are drawn from: the pairs are those of both sides, each side has its stream. */
static void add_stream(const build *b, int side, size_t n)
{
    pnb__loss *out = b->out;
    if (out->pairs == NULL)
        out->pairs = pnb__input(b->g, PNB__INT32, 1, &n);
    if (out->key[side] == NULL)
        out->key[side] = pnb__input(b->g, PNB__INT32, 1, (size_t[]){4});
}

/* A side of all rows, its inputs made once for all terms. */
static pnb__sampled_side sampled(const build *b, int side)
{
    const pnb__dist *d = side == 0 ? &b->in->image : &b->in->text;
    const size_t shape[3] = {pnb__dim(d->mean, 0), b->opts->n_samples, pnb__dim(d->mean, 1)};
    pnb__loss *out = b->out;
    out->n_samples = b->opts->n_samples;
    if (b->in->draws)
        add_stream(b, side, shape[0]);
    else if (out->noise[side] == NULL)
        out->noise[side] = pnb__input(b->g, PNB__REAL, 3, shape);
    return (pnb__sampled_side){.mean = d->mean,
                               .log_var = d->log_var,
                               .noise = out->noise[side],
                               .pairs = out->pairs,
                               .key = out->key[side],
                               .n_samples = b->opts->n_samples};
}

/* PCME Eq. (4) to (7): every pair of the batch, and of each J x J samples. b 0 where the model has
 * none. A pair of label Y counts Y times as a match and 1 - Y times as none. */
pnb__tensor *pnb__build_pcme(build *b)
{
    const pnb__marked_pairs pairs = {.graph = b->g,
                                     .images = sampled(b, 0),
                                     .texts = sampled(b, 1),
                                     .scale = b->in->scale,
                                     .shift =
                                         b->in->bias != NULL ? b->in->bias : pnb__constant(b->g, 0),
                                     .marks = pnb__term_marks(b, 0),
                                     .is_hard = !b->in->has_labels,
                                     .share = b->in->share,
                                     .block = b->in->block};
    return pnb__soft_contrastive_marked(&pairs);
}

/* PCME Eq. (8), of both sides; the published form has the samples' mean for the mean. */
pnb__tensor *pnb__build_pcme_kl(build *b)
{
    pnb__tensor *kl[2];
    for (int s = 0; s < 2; s++) {
        const pnb__dist d = pnb__term_share(b->in, s == 0 ? &b->in->image : &b->in->text);
        if (b->opts->pcme_kl_published) {
            const pnb__sampled_side side = sampled(b, s);
            kl[s] = pnb__sampled_divergence_published(b->g, &side, &b->in->share, b->in->block);
        } else {
            kl[s] = pnb__sampled_divergence(d.mean, d.log_var);
        }
    }
    return pnb__add(kl[0], kl[1]);
}

/* x of images where share is 1, of texts where it is 0; rows of both (n, D). */
static pnb__tensor *either(pnb__tensor *image, pnb__tensor *text, pnb__tensor *share)
{
    return pnb__add(pnb__mul(image, share), pnb__mul(text, pnb__affine(share, -1, 1)));
}

/* The samples that a step compares, (PNB_UNIFORMITY_DRAWN, D): few, so their noise is an input. */
static pnb__tensor *compared_samples(build *b, const pnb__sampled_side sides[2])
{
    const size_t n = PNB_UNIFORMITY_DRAWN, dim = pnb__dim(sides[0].mean, 1);
    pnb__loss *out = b->out;
    pnb__tensor *mean[2], *log_var[2];
    for (int s = 0; s < 2; s++) {
        out->drawn_row[s] = pnb__input(b->g, PNB__INT32, 1, &n);
        mean[s] = pnb__gather(sides[s].mean, out->drawn_row[s]);
        log_var[s] = pnb__gather(sides[s].log_var, out->drawn_row[s]);
    }
    out->drawn_share = pnb__input(b->g, PNB__REAL, 2, (size_t[]){n, 1});
    out->drawn_noise = pnb__input(b->g, PNB__REAL, 3, (size_t[]){n, 1, dim});
    const pnb__sampled_side few = {.mean = either(mean[0], mean[1], out->drawn_share),
                                   .log_var = either(log_var[0], log_var[1], out->drawn_share),
                                   .noise = out->drawn_noise,
                                   .n_samples = 1};
    return pnb__reshape(pnb__draw_samples(&few), 2, (size_t[]){n, dim});
}

/* The same of samples that are held: rows of all of them. */
static pnb__tensor *compared_rows(build *b, const pnb__sampled_side sides[2])
{
    const size_t drawn = PNB_UNIFORMITY_DRAWN, dim = pnb__dim(sides[0].mean, 1);
    pnb__tensor *rows[2];
    for (int s = 0; s < 2; s++) {
        size_t n = pnb__dim(sides[s].mean, 0) * sides[s].n_samples;
        rows[s] = pnb__reshape(pnb__draw_samples(&sides[s]), 2, (size_t[]){n, dim});
    }
    b->out->drawn = pnb__input(b->g, PNB__INT32, 1, &drawn);
    return pnb__gather(pnb__concat(rows, 2, 0), b->out->drawn);
}

/* Samples of both sides together, 2 B J rows; published: of more than 128 so many drawn ones. The
 * logarithm of a sum is no sum over rows: who has a share of them computes it all. */
pnb__tensor *pnb__build_uniformity(build *b)
{
    const pnb__sampled_side sides[2] = {sampled(b, 0), sampled(b, 1)};
    size_t n = 2 * pnb__dim(sides[0].mean, 0) * b->opts->n_samples;
    pnb__tensor *all;
    if (!b->opts->uniformity_published || n <= PNB_UNIFORMITY_DRAWN)
        all = pnb__sampled_uniformity(b->g, sides, b->in->block);
    else
        all = pnb__uniformity(b->in->draws ? compared_samples(b, sides) : compared_rows(b, sides));
    return pnb__share_part(&b->in->share, all);
}

/* ---- a step ---- */

/* The stream of a side in a step. */
static pnb__rng stream_of(uint64_t seed, int64_t step, int side)
{
    pnb__rng rng;
    pnb__rng_init(&rng, seed ^ NOISE_SEED, PNB__LOSS_N_DRAWN * (uint64_t)step + (uint64_t)side);
    return rng;
}

/* Sample number (side B + pair) J + j of the batch: from where it is drawn, and of which row. */
typedef struct compared {
    size_t side, pair, number;
} compared;

/* One of all samples, with replacement as numpy's choice. */
static compared draw_sample(pnb__rng *rng, size_t n_pairs, size_t n_samples)
{
    size_t sample = (size_t)pnb__rng_below(rng, 2 * n_pairs * n_samples);
    return (compared){sample / (n_pairs * n_samples), sample / n_samples % n_pairs,
                      sample % (n_pairs * n_samples)};
}

/* What is written to the inputs of the samples that a step compares. */
typedef struct compared_inputs {
    int32_t row[2][PNB_UNIFORMITY_DRAWN];
    float share[PNB_UNIFORMITY_DRAWN];
    float *noise; /* (PNB_UNIFORMITY_DRAWN, D) */
} compared_inputs;

static void fill_compared(const pnb__loss *loss, uint64_t seed, int64_t step, const size_t *row_of,
                          compared_inputs *in)
{
    size_t n_pairs = pnb__n(loss->pairs), dim = pnb__dim(loss->drawn_noise, 2);
    pnb__rng rng;
    double normal;
    pnb__rng_init(&rng, seed ^ ROWS_SEED, (uint64_t)step);
    for (size_t i = 0; i < PNB_UNIFORMITY_DRAWN; i++) {
        const compared c = draw_sample(&rng, n_pairs, loss->n_samples);
        size_t row = row_of != NULL ? row_of[c.pair] : c.pair;
        for (size_t s = 0; s < 2; s++)
            in->row[s][i] = c.side == s ? (int32_t)row : 0;
        in->share[i] = c.side == 0;
        pnb__rng stream = stream_of(seed, step, (int)c.side);
        stream.counter = 4 * (uint64_t)c.number * dim;
        for (size_t d = 0; d < dim; d++) {
            pnb__rng_normals(&stream, 1, &normal);
            in->noise[i * dim + d] = (float)normal;
        }
    }
}

/* Behind the choice, which is small, the inputs of both sides and of the noise. */
static pnb_status write_compared(const pnb__loss *loss, uint64_t seed, int64_t step,
                                 const size_t *row_of, pnb_error *err)
{
    compared_inputs in;
    pnb_status status = PNB_ALLOC(in.noise, pnb__n(loss->drawn_noise), err);
    if (status != PNB_OK)
        return status;
    fill_compared(loss, seed, step, row_of, &in);
    for (int s = 0; s < 2; s++)
        pnb__write_i32(loss->drawn_row[s], in.row[s]);
    pnb__write_f32(loss->drawn_share, in.share);
    pnb__write_f32(loss->drawn_noise, in.noise);
    pnb__free(in.noise);
    return PNB_OK;
}

/* Which pair each row is of. */
static pnb_status write_pairs(const pnb__loss *loss, const size_t *row_of, pnb_error *err)
{
    size_t n = pnb__n(loss->pairs);
    int32_t *pairs = NULL;
    pnb_status status = PNB_ALLOC(pairs, n, err);
    for (size_t p = 0; p < n && status == PNB_OK; p++)
        pairs[row_of != NULL ? row_of[p] : p] = (int32_t)p;
    if (status == PNB_OK)
        pnb__write_i32(loss->pairs, pairs);
    pnb__free(pairs);
    return status;
}

pnb_status pnb__sampled_set_step(const pnb__loss *loss, uint64_t seed, int64_t step,
                                 const size_t *row_of, pnb_error *err)
{
    if (loss->pairs == NULL)
        return PNB_OK;
    for (int s = 0; s < PNB__LOSS_N_DRAWN; s++) {
        const pnb__rng rng = stream_of(seed, step, s);
        const int32_t key[4] = {(int32_t)(uint32_t)rng.seed, (int32_t)(uint32_t)(rng.seed >> 32),
                                (int32_t)(uint32_t)rng.stream,
                                (int32_t)(uint32_t)(rng.stream >> 32)};
        if (loss->key[s] != NULL)
            pnb__write_i32(loss->key[s], key);
    }
    pnb_status status = write_pairs(loss, row_of, err);
    if (status == PNB_OK && loss->drawn_noise != NULL)
        status = write_compared(loss, seed, step, row_of, err);
    return status;
}
