/* The training losses of a step: which are asked for, their sum as a graph, and what a step draws
 * and says of its pairs. The terms themselves are in loss_terms.c, formulas in
 * include/penumbra/loss.h. */
#include "train/losses/loss.h"

#include <math.h>

#include "base/names.h"
#include "train/losses/sampled_terms.h"

PNB_DEFINE_NAME(pnb_loss_name, pnb_loss_term, PNB_NAMES_OF_IDENTS(PNB_LOSS_LIST), NULL)
PNB_DEFINE_NAME(pnb_loss_meaning, pnb_loss_term, PNB_SENTENCES(PNB_LOSS_LIST), NULL)

pnb_loss_opts pnb_loss_opts_default(void)
{
    pnb_loss_opts o = {.inclusion_scale = 1000,
                       .inclusion_eps = -10,
                       .inclusion_limit = 1e5,
                       .vib_limit = 1e4,
                       .n_samples = 7,
                       .triplet_margin = 0.2};
    /* docs/numerics-training.md says what was tried: with a scale of 1000 the inclusion term is
     * nearly a hinge on the order of variances, and its weight is all that matters */
    o.weight[PNB_LOSS_PPCL] = 1;
    o.weight[PNB_LOSS_INCLUSION] = 1e-4;
    o.weight[PNB_LOSS_IMG_INCLUSION] = 1e-3;
    o.weight[PNB_LOSS_TXT_INCLUSION] = 1e-3;
    o.weight[PNB_LOSS_VIB] = 1e-4;
    return o;
}

/* Table of hyperparameters of the ProLIP paper's main runs. */
pnb_loss_opts pnb_loss_opts_published(void)
{
    pnb_loss_opts o = pnb_loss_opts_default();
    o.inclusion_eps = -20;
    o.weight[PNB_LOSS_INCLUSION] = 1e-7;
    return o;
}

/* Weights of 0 and more: a negative one would push variances to infinity. Limits of 1 and more: see
 * `gate`. */
pnb_status pnb__loss_check_opts(const pnb_loss_opts *o, pnb_error *err)
{
    double sum = 0;
    /* written so that NaN is refused: it is neither less than 0 nor more */
    for (int i = 0; i < PNB_N_LOSS_TERMS; i++) {
        if (!(o->weight[i] >= 0) || !isfinite(o->weight[i]))
            return pnb__fail(err, PNB_ARG, "weight of loss %s is %g, it must be 0 or more",
                             pnb_loss_name((pnb_loss_term)i), o->weight[i]);
        sum += o->weight[i];
    }
    if (!(sum > 0))
        return pnb__fail(err, PNB_ARG, "every loss has weight 0: give at least one a weight");
    /* below 1 a gate could not tell an excess from rounding */
    if (!(o->inclusion_limit >= 1) || !(o->vib_limit >= 1))
        return pnb__fail(err, PNB_ARG, "limits of inclusion and VIB are %g and %g, 1 is the least",
                         o->inclusion_limit, o->vib_limit);
    if (!isfinite(o->inclusion_eps) || !isfinite(o->inclusion_scale) || !(o->inclusion_scale > 0))
        return pnb__fail(err, PNB_ARG,
                         "inclusion eps is %g and scale %g; finite numbers and a scale above 0 are "
                         "needed",
                         o->inclusion_eps, o->inclusion_scale);
    if (o->n_samples < 1 || o->n_samples > 64)
        return pnb__fail(err, PNB_ARG, "%zu samples of a side; 1 to 64 are possible", o->n_samples);
    if (!(o->triplet_margin > 0) || !isfinite(o->triplet_margin))
        return pnb__fail(err, PNB_ARG, "a triplet margin of %g, it must be above 0",
                         o->triplet_margin);
    if (o->triplet_warmup < 0)
        return pnb__fail(err, PNB_ARG, "%lld steps of triplet warm-up, it must be 0 or more",
                         (long long)o->triplet_warmup);
    return PNB_OK;
}

/* What a term asks of pairs and embeddings. */
static pnb_status check_pairs(const pnb__term_build *b, pnb_loss_term term, pnb_error *err)
{
    const pnb__loss_in *in = b->in;
    const pnb__term_row *row = &pnb__term_rows[term];
    size_t k = PNB_MAX(in->image.n_embeddings, (size_t)1);
    if (in->image.n_embeddings != in->text.n_embeddings || pnb__dim(in->image.mean, 1) % k != 0)
        return pnb__fail(err, PNB_ARG,
                         "%zu embeddings of an image and %zu of a text, in %zu numbers: as many of "
                         "both are wanted, of one width",
                         in->image.n_embeddings, in->text.n_embeddings,
                         pnb__dim(in->image.mean, 1));
    if (in->negative_only && row->needs_match)
        return pnb__fail(err, PNB_ARG,
                         "loss %s measures negatives against matches, and none is there",
                         pnb_loss_name(term));
    if (in->has_labels && in->negative_only)
        return pnb__fail(err, PNB_ARG, "labels say who matches, and here nobody does");
    if (in->has_labels && !row->takes_labels)
        return pnb__fail(err, PNB_ARG,
                         "loss %s knows no match by halves, as mixed pictures and smoothed labels "
                         "are: set its weight to 0, or --mix-share and --label-smoothing to 0",
                         pnb_loss_name(term));
    if (k > 1 && !row->takes_several)
        return pnb__fail(err, PNB_ARG,
                         "loss %s compares single embeddings, and this model gives %zu an input: "
                         "train it with triplet",
                         pnb_loss_name(term), k);
    if (term == PNB_LOSS_DIVERSITY && (k == 1 || in->image.residual == NULL))
        return pnb__fail(err, PNB_ARG,
                         "loss %s compares what local attention gives to several embeddings of an "
                         "input: take a model that has some (pvse-tiny), or set its weight to 0",
                         pnb_loss_name(term));
    return PNB_OK;
}

/* What a term asks of a teacher, and what it knows of texts without a match. */
static pnb_status check_given(const pnb__term_build *b, pnb_loss_term term, pnb_error *err)
{
    const pnb__loss_in *in = b->in;
    const pnb__term_row *row = &pnb__term_rows[term];
    if (in->negative.mean != NULL && (row->refuses_negatives || in->has_labels))
        return pnb__fail(err, PNB_ARG,
                         "loss %s%s does not go with hard negatives: ppcl, siglip and clip know "
                         "captions that match no picture",
                         pnb_loss_name(term), in->has_labels ? " of mixed or smoothed labels" : "");
    if (!row->needs_teacher)
        return PNB_OK;
    /* pictures, then captions */
    for (int s = 0; s < 2; s++) {
        const pnb__dist *teacher = &in->teacher[s];
        if (teacher->mean == NULL || (row->needs_spreads && teacher->log_var == NULL))
            return pnb__fail(err, PNB_ARG, "loss %s has weight %g, but no teacher%s is given",
                             pnb_loss_name(term), b->opts->weight[term],
                             teacher->mean == NULL ? "" : " with variances");
        if (row->needs_spreads && pnb__dim(teacher->mean, 1) != pnb__dim(in->image.mean, 1))
            return pnb__fail(err, PNB_SHAPE,
                             "loss %s compares Gaussians of one width: the teacher's have %zu "
                             "numbers, ours %zu; distill takes any width",
                             pnb_loss_name(term), pnb__dim(teacher->mean, 1),
                             pnb__dim(in->image.mean, 1));
    }
    if (!(in->teacher_scale > 0) && !row->needs_spreads)
        return pnb__fail(err, PNB_ARG, "the teacher's scale is %g, it must be above 0",
                         in->teacher_scale);
    return PNB_OK;
}

/* Before a term is built: its graph would fail without saying why. */
static pnb_status check_term(const pnb__term_build *b, pnb_loss_term term, pnb_error *err)
{
    const pnb__loss_in *in = b->in;
    const pnb__term_row *row = &pnb__term_rows[term];
    bool lacks_masked =
        (row->needs_masked_image && in->masked_image.mean != NULL &&
         in->masked_image.log_var == NULL) ||
        (row->needs_masked_text && in->masked_text.mean != NULL && in->masked_text.log_var == NULL);
    pnb_status status = check_pairs(b, term, err);
    if (status == PNB_OK)
        status = check_given(b, term, err);
    if (status != PNB_OK)
        return status;
    if (row->needs_log_var &&
        (in->image.log_var == NULL || in->text.log_var == NULL || lacks_masked))
        return pnb__fail(err, PNB_ARG,
                         "loss %s needs a log-variance, but a tower gives none: train this model "
                         "with siglip or clip",
                         pnb_loss_name(term));
    if ((row->needs_masked_image && in->masked_image.mean == NULL) ||
        (row->needs_masked_text && in->masked_text.mean == NULL))
        return pnb__fail(err, PNB_SHAPE,
                         "loss %s has weight %g, but no row of the batch is masked: raise the "
                         "batch or the drop ratio, or set the weight to 0",
                         pnb_loss_name(term), b->opts->weight[term]);
    return PNB_OK;
}

/* L = sum_k w_k L_k over the terms with w_k > 0. The weighted terms are kept readable:
 * results.jsonl has each of them, and their sum is the total to the last bit. */
pnb_status pnb__loss_build(pnb__loss *out, pnb__graph *g, const pnb__loss_in *in,
                           const pnb_loss_opts *opts, pnb_error *err)
{
    *out = (pnb__loss){.negative_only = in->negative_only, .share = in->share};
    const pnb__loss_in safe = pnb__terms_clip(g, in);
    pnb__term_build b = {.g = g, .in = &safe, .opts = opts, .out = out};
    if (pnb__constant(g, 0) == NULL) /* a tower failed to build: the plan says why */
        return pnb__graph_plan(g, NULL, err);
    pnb_status status = pnb__loss_check_opts(opts, err);
    for (int i = 0; i < PNB_N_LOSS_TERMS && status == PNB_OK; i++) {
        if (!(opts->weight[i] > 0))
            continue;
        status = check_term(&b, (pnb_loss_term)i, err);
        if (status != PNB_OK)
            break;
        out->term[i] = pnb__affine(pnb__term_rows[i].build(&b), opts->weight[i], 0);
        if (out->term[i] != NULL)
            pnb__keep(out->term[i]);
        out->total = out->total == NULL ? out->term[i] : pnb__add(out->total, out->term[i]);
    }
    if (status == PNB_OK && out->total != NULL)
        pnb__keep(out->total);
    return status;
}

bool pnb__loss_asks_images(const pnb_loss_opts *opts)
{
    bool any = false;
    for (int i = 0; i < PNB_N_LOSS_TERMS; i++)
        any = any || (opts->weight[i] > 0 && pnb__term_rows[i].asks_images);
    return any;
}

/* ---- labels ---- */

/* The first of the largest labels of a row: the lowest column of the largest mark. */
static int32_t match_of(const int32_t *columns, const float *weights, size_t n_marks)
{
    size_t best = 0;
    for (size_t k = 1; k < n_marks; k++)
        if (weights[k] > weights[best] ||
            (!(weights[k] < weights[best]) && columns[k] < columns[best]))
            best = k;
    return columns[best];
}

/* Rows of labels: those of the batch, of which a loss over a share of them has fewer. */
static size_t n_labelled(const pnb__loss *loss, const pnb__tensor *any)
{
    return pnb__is_shared(&loss->share) ? loss->share.n_all : pnb__dim(any, 0);
}

/* What pseudo positives of one way are measured by: where the match of each row stands. */
static pnb_status fill_match(const pnb__loss *loss, const pnb__pair_labels *labels, int way,
                             pnb_error *err)
{
    pnb__tensor *match = loss->match[way];
    size_t n = match != NULL ? n_labelled(loss, match) : 0;
    size_t n_marks = match != NULL ? pnb__dim(loss->columns[way], 1) : 0;
    int32_t *places = NULL;
    if (match == NULL)
        return PNB_OK;
    pnb_status status = PNB_ALLOC(places, n, err);
    for (size_t b = 0; b < n && status == PNB_OK; b++)
        places[b] = match_of(labels->columns[way] + b * n_marks, labels->weights[way] + b * n_marks,
                             n_marks);
    if (status == PNB_OK)
        status = pnb__share_write_i32(&loss->share, match, places, 1, err);
    pnb__free(places);
    return status;
}

pnb_status pnb__loss_set_labels(const pnb__loss *loss, const pnb__pair_labels *labels,
                                pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (int way = 0; way < 2 && status == PNB_OK; way++) {
        if (loss->columns[way] == NULL)
            continue;
        size_t n_marks = pnb__dim(loss->columns[way], 1);
        status = pnb__share_write_i32(&loss->share, loss->columns[way], labels->columns[way],
                                      n_marks, err);
        if (status == PNB_OK)
            status = pnb__share_write_f32(&loss->share, loss->weights[way], labels->weights[way],
                                          n_marks, err);
        if (status == PNB_OK)
            status = fill_match(loss, labels, way, err);
    }
    return status;
}

/* ---- draws ---- */

pnb_status pnb__loss_set_step(const pnb__loss *loss, uint64_t seed, int64_t step,
                              const size_t *row_of, pnb_error *err)
{
    const double share = step < loss->triplet_warmup ? 0 : 1;
    if (loss->triplet_share != NULL)
        pnb__write_f64(loss->triplet_share, &share);
    return pnb__sampled_set_step(loss, seed, step, row_of, err);
}

/* ---- constants ---- */

/* CLIP's targets: pair i belongs to row i. */
static pnb_status fill_targets(const pnb__loss *loss, pnb_error *err)
{
    size_t n = n_labelled(loss, loss->targets);
    int32_t *rows = pnb__alloc_array(n, sizeof *rows);
    if (rows == NULL)
        return pnb__fail_nomem(err, n * sizeof *rows);
    for (size_t i = 0; i < n; i++)
        rows[i] = (int32_t)i;
    pnb_status status = pnb__share_write_i32(&loss->share, loss->targets, rows, 1, err);
    pnb__free(rows);
    return status;
}

/* Row b matches row b, by 1; with negative_only by nothing. */
static pnb_status fill_own_labels(const pnb__loss *loss, pnb_error *err)
{
    const pnb__tensor *any = loss->columns[0] != NULL ? loss->columns[0] : loss->columns[1];
    int32_t *columns = NULL;
    float *weights = NULL;
    pnb_status status;
    if (any == NULL)
        return PNB_OK;
    size_t n = n_labelled(loss, any), n_marks = pnb__dim(any, 1);
    PNB_TRY(PNB_ALLOC(columns, n * n_marks, err));
    PNB_TRY(PNB_ALLOC(weights, n * n_marks, err));
    for (size_t i = 0; i < n * n_marks; i++) {
        columns[i] = (int32_t)(i / n_marks);
        weights[i] = i % n_marks == 0 && !loss->negative_only ? 1 : 0;
    }
    const pnb__pair_labels own = {{columns, columns}, {weights, weights}};
    status = pnb__loss_set_labels(loss, &own, err);
done:
    pnb__free(columns);
    pnb__free(weights);
    return status;
}

/* PVSE's diversity leaves out what every embedding has with itself: 0 on the diagonal of (K,K). */
static void fill_off(pnb__tensor *off)
{
    double values[64] = {0};
    size_t k = pnb__dim(off, 0);
    for (size_t i = 0; i < k * k; i++)
        values[i] = i % (k + 1) != 0;
    pnb__write_f64(off, values);
}

pnb_status pnb__loss_start(const pnb__loss *loss, pnb_error *err)
{
    pnb_status status = fill_own_labels(loss, err);
    if (status == PNB_OK && loss->off != NULL)
        fill_off(loss->off);
    if (status == PNB_OK && loss->targets != NULL)
        status = fill_targets(loss, err);
    const double open = 1;
    for (size_t i = 0; i < loss->n_gates; i++)
        pnb__write_f64(loss->gates[i].open, &open);
    return status;
}
