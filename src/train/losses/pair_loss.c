/* Losses of Gaussian heads.
 *
 *   PFE      sum_d delta^2 / (v_i + v_t) + log(v_i + v_t), over true pairs
 *   PCME++   z = -a d + b,  BCE(z, y) = log(1 + e^z) - y z, mean over all B^2 pairs, twice
 *            pseudo labels: y' = v where z_ij >= z of row i's first match, else y; v is the label
 *            of that match: 1, or the largest share of a mixed picture
 *            VIB: -1/2 mean(1 + l - m^2 - e^l), l = log variance. PCME reads its log sigma there as
 *            a log variance and ProLIP halves it; here it is the divergence from N(0, I) */
#include "train/losses/pair_loss.h"

static pnb__tensor *square(pnb__tensor *x)
{
    return pnb__apply(PNB__SQUARE, x);
}

pnb__tensor *pnb__mutual_likelihood(pnb__side_rows images, pnb__side_rows texts)
{
    pnb__tensor *var = pnb__add(images.var, texts.var);
    pnb__tensor *apart = square(pnb__sub(images.mean, texts.mean));
    pnb__tensor *each = pnb__add(pnb__div(apart, var), pnb__apply(PNB__LOG, var));
    return pnb__mean(pnb__sum(each, 1), 0);
}

/* exp(l/2), exp(l): spread in the distance's own measure */
static pnb__tensor *spread(pnb__tensor *log_var, double factor)
{
    return pnb__apply(PNB__EXP, pnb__affine(log_var, factor, 0));
}

static pnb__tensor *distances(const pnb__pcmepp_in *in)
{
    pnb__tensor *means = pnb__pairwise_sqdist(in->images.mean, in->texts.mean);
    if (in->distance == PNB__PCMEPP_W2)
        return pnb__add(means, pnb__pairwise_sqdist(spread(in->images.log_var, 0.5),
                                                    spread(in->texts.log_var, 0.5)));
    pnb__tensor *by_image = pnb__sum(spread(in->images.log_var, 1), 1);
    pnb__tensor *by_text = pnb__sum(spread(in->texts.log_var, 1), 1);
    pnb__tensor *column = pnb__reshape(by_image, 2, (size_t[]){pnb__dim(by_image, 0), 1});
    return pnb__add(pnb__add(means, column), by_text);
}

/* mean of log(1 + e^z) - y z */
static pnb__tensor *cross_entropy(pnb__tensor *logits, pnb__tensor *labels)
{
    pnb__tensor *each = pnb__sub(pnb__apply(PNB__SOFTPLUS, logits), pnb__mul(labels, logits));
    return pnb__mean(pnb__reshape(each, 1, (size_t[]){pnb__n(each)}), 0);
}

/* -scale d + shift */
static pnb__tensor *logits_of(const pnb__pcmepp_in *in, pnb__tensor *apart)
{
    pnb__tensor *far = pnb__affine(pnb__mul(apart, in->scale), -1, 0);
    return in->shift == NULL ? far : pnb__add(far, in->shift);
}

/* The rows of a side that are ours. */
static pnb__side_rows share_of(const pnb__pcmepp_in *in, const pnb__side_rows *side)
{
    return (pnb__side_rows){.mean = pnb__share_rows(&in->share, side->mean),
                            .log_var = pnb__share_rows(&in->share, side->log_var)};
}

/* z_bb of matching rows (B), from their own differences: no label matrix is needed for them. */
static pnb__tensor *own_logits(const pnb__pcmepp_in *in)
{
    const pnb__side_rows images = share_of(in, &in->images), texts = share_of(in, &in->texts);
    pnb__tensor *apart = pnb__sum(square(pnb__sub(images.mean, texts.mean)), 1);
    pnb__tensor *by_image = images.log_var, *by_text = texts.log_var;
    if (in->distance == PNB__PCMEPP_W2) {
        pnb__tensor *stds = pnb__sub(spread(by_image, 0.5), spread(by_text, 0.5));
        return logits_of(in, pnb__add(apart, pnb__sum(square(stds), 1)));
    }
    pnb__tensor *traces = pnb__sum(pnb__add(spread(by_image, 1), spread(by_text, 1)), 1);
    return logits_of(in, pnb__add(apart, traces));
}

/* What a distance reads of a side: its rows as points, and what a row adds by itself, (B). */
static pnb__tensor *points_of(const pnb__pcmepp_in *in, const pnb__side_rows *side)
{
    if (in->distance != PNB__PCMEPP_W2)
        return side->mean;
    pnb__tensor *const parts[2] = {side->mean, spread(side->log_var, 0.5)};
    return pnb__concat(parts, 2, 1);
}

/* n = |p|^2 of the points; csd has the trace beside it, which W2 has inside. */
static pnb__tensor *own_part(const pnb__pcmepp_in *in, const pnb__side_rows *side,
                             pnb__tensor *points)
{
    pnb__tensor *norm = pnb__sum(square(points), 1);
    return in->distance == PNB__PCMEPP_W2 ? norm
                                          : pnb__add(norm, pnb__sum(spread(side->log_var, 1), 1));
}

/* Logits of all pairs for the ops over strips, rows images or, turned, texts. No matrix:
 * z_ij = 2 s p_i . q_j + (b - s n_i) - s n_j with points p, q and n = |p|^2 (csd: + tr V) */
typedef struct logit_parts {
    pnb__tensor *left, *right, *row, *col;
    double places;
} logit_parts;

static logit_parts parts_of(const pnb__pcmepp_in *in, bool is_turned)
{
    const pnb__side_rows rows = share_of(in, is_turned ? &in->texts : &in->images);
    const pnb__side_rows *cols = is_turned ? &in->images : &in->texts;
    pnb__tensor *p = points_of(in, &rows), *q = points_of(in, cols);
    return (logit_parts){
        .left = pnb__mul(p, pnb__affine(in->scale, 2, 0)),
        .right = q,
        .row = logits_of(in, own_part(in, &rows, p)),
        .col = pnb__affine(pnb__mul(own_part(in, cols, q), in->scale), -1, 0),
        .places = (double)pnb__dim(in->images.mean, 0) * (double)pnb__dim(in->texts.mean, 0),
    };
}

/* The same mean with the identity for labels: mean log(1 + e^z) - (1/B^2) sum_b z_bb. */
static pnb__tensor *match_own(const pnb__pcmepp_in *in)
{
    const logit_parts z = parts_of(in, false);
    pnb__tensor *all =
        pnb__affine(pnb__sum(pnb__pair_softplus(z.left, z.right, z.row, z.col), PNB__ALL_AXES),
                    1 / z.places, 0);
    if (in->negative_only)
        return all;
    pnb__tensor *own = pnb__sum(own_logits(in), PNB__ALL_AXES);
    return pnb__sub(all, pnb__affine(own, 1 / z.places, 0));
}

/* The same mean with labels by marks. */
static pnb__tensor *match_marked(const pnb__pcmepp_in *in, const pnb__marks *marks, bool is_turned)
{
    const logit_parts z = parts_of(in, is_turned);
    pnb__tensor *rows = pnb__pair_labelled(z.left, z.right, z.row, z.col, marks);
    return pnb__affine(pnb__sum(rows, PNB__ALL_AXES), 1 / z.places, 0);
}

static double is_not_below(double bar, double x)
{
    return x >= bar;
}

static double no_slope(double bar, double x)
{
    (void)bar;
    (void)x;
    return 0;
}

/* Labels of a square of logits whose first matches stand at `first` of the square laid flat, with
 * the labels `value` (B,1), or 1:  y + reaches (v - y). */
static pnb__tensor *pseudo_labels(pnb__tensor *logits, pnb__tensor *labels, pnb__tensor *first,
                                  pnb__tensor *value)
{
    static const pnb__function step = {is_not_below, no_slope, 0};
    size_t n = pnb__dim(logits, 0);
    pnb__tensor *flat = pnb__reshape(logits, 2, (size_t[]){n * n, 1});
    pnb__tensor *over = pnb__sub(logits, pnb__gather(flat, first));
    pnb__tensor *reaches = pnb__apply_function(over, &step);
    pnb__tensor *rise = pnb__affine(labels, -1, value == NULL ? 1 : 0);
    if (value != NULL)
        rise = pnb__add(rise, value);
    return pnb__add(labels, pnb__mul(reaches, rise));
}

/* BCE of the logits against both ways' pseudo labels, added up: rows of images, rows of texts. */
static pnb__tensor *smoothed(const pnb__pcmepp_in *in, pnb__tensor *logits, pnb__pcmepp_out *out)
{
    pnb__tensor *sum = NULL;
    for (int way = 0; way < 2; way++) {
        pnb__tensor *z = way == 0 ? logits : pnb__permute(logits, (int[]){1, 0});
        pnb__tensor *y = way == 0 ? in->matched : pnb__permute(in->matched, (int[]){1, 0});
        out->pseudo[way] = pseudo_labels(z, y, in->first[way], in->value[way]);
        pnb__tensor *each = cross_entropy(z, out->pseudo[way]);
        sum = sum == NULL ? each : pnb__add(sum, each);
    }
    return sum;
}

/* -1/2 mean(1 + l - m^2 - e^l) */
static pnb__tensor *information(pnb__side_rows side)
{
    pnb__tensor *spreads = pnb__sub(pnb__apply(PNB__EXP, side.log_var), side.log_var);
    pnb__tensor *each = pnb__add(spreads, square(side.mean));
    pnb__tensor *mean = pnb__mean(pnb__reshape(each, 1, (size_t[]){pnb__n(each)}), 0);
    return pnb__affine(mean, 0.5, -0.5);
}

/* BCE of the matching labels. */
static pnb__tensor *match_of(const pnb__pcmepp_in *in, pnb__tensor *logits)
{
    if (in->matched != NULL)
        return cross_entropy(logits, in->matched);
    return in->marks.columns != NULL ? match_marked(in, &in->marks, false) : match_own(in);
}

pnb__pcmepp_out pnb__pcmepp_build(const pnb__pcmepp_in *in)
{
    pnb__pcmepp_out out = {0};
    pnb__tensor *logits = in->matched == NULL ? NULL : logits_of(in, distances(in));
    out.match = match_of(in, logits);
    out.loss = pnb__affine(out.match, in->factor, 0);
    if (in->vib_beta != 0) {
        out.vib = pnb__add(information(in->images), information(in->texts));
        out.loss = pnb__add(out.loss, pnb__affine(out.vib, in->vib_beta, 0));
    }
    if (in->smoothness != 0) {
        out.smooth = in->matched != NULL ? smoothed(in, logits, &out)
                                         : pnb__add(match_marked(in, &in->pseudo[0], false),
                                                    match_marked(in, &in->pseudo[1], true));
        out.loss = pnb__add(out.loss, pnb__affine(out.smooth, in->smoothness, 0));
    }
    return out;
}
