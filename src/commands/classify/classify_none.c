/* "None of the above": how far out each picture is by the rule asked for, the threshold, given or
 * fitted, and what rejecting by it costs and saves.
 * Rules and figures are eval's. */
#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "commands/classify/classify.h"

static pnb_status estrange(const pnb__classify *run, pnb__classified *c, pnb_error *err)
{
    if (c->source.set == NULL)
        return PNB_OK;
    if (PNB_ALLOC(c->ood, c->p.n, err) != PNB_OK)
        return PNB_NOMEM;
    return pnb_ood_score(run->opts->none, &c->p, c->u, c->ood, err);
}

/* The next number of nine digits, as results are printed, above (direction 1) or below (-1): so a
 * fitted threshold can be given back with --none-threshold and means the same pictures. */
static double nine_digits(double x, double direction)
{
    char text[32];
    double rounded = x;
    for (int k = 0; k < 3; k++) {
        double step = x != 0.0 ? pow(10.0, floor(log10(fabs(x))) - 8.0) : 0.0;
        snprintf(text, sizeof text, "%.9g", x + 0.5 * k * direction * step);
        rounded = strtod(text, NULL);
        if (direction * (rounded - x) >= 0.0)
            break;
    }
    return direction * (rounded - x) >= 0.0 ? rounded : x;
}

/* Rounding goes to where fewer pictures are rejected, or accepted: the share stays below. */
static pnb_status fit_threshold(pnb__classify *run, pnb_error *err)
{
    const pnb__classify_opts *o = run->opts;
    bool on_val = run->val_images.source.set != NULL,
         on_val_none = run->val_negatives.source.set != NULL;
    const pnb__classified *in = on_val ? &run->val_images : &run->images;
    const pnb__classified *out = on_val_none ? &run->val_negatives : &run->negatives;
    double *threshold = &run->none_threshold;
    pnb_status status = PNB_OK;
    if (!isnan(o->none_threshold)) {
        *threshold = o->none_threshold;
        run->none_source = "given";
    } else if (!isnan(o->none_reject)) {
        run->none_source =
            on_val ? "fitted on the validation pictures" : "fitted on the pictures themselves";
        status = pnb_none_fit_rejected(in->ood, in->p.n, o->none_reject, threshold, err);
        *threshold = nine_digits(*threshold, 1.0);
    } else if (!isnan(o->none_fpr)) {
        run->none_source = on_val_none ? "fitted on the validation negatives"
                                       : "fitted on the negatives themselves";
        status = pnb_none_fit_accepted(out->ood, out->p.n, o->none_fpr, threshold, err);
        *threshold = nine_digits(*threshold, -1.0);
    } else { /* the other rules come with one of the three */
        *threshold = 0.0;
        run->none_source = "0: the dummy is one more class";
    }
    return status;
}

static pnb_status measure_none(pnb__classify *run, pnb_error *err)
{
    const pnb__classified *in = &run->images, *out = &run->negatives;
    size_t n = 0;
    double *ood = NULL;
    bool *is_right = NULL;
    pnb_status status = PNB_OK;
    if (out->source.set == NULL)
        return PNB_OK;
    PNB_TRY(PNB_ALLOC(ood, in->p.n, err));
    PNB_TRY(PNB_ALLOC(is_right, in->p.n, err));
    for (size_t i = 0; i < in->p.n; i++) {
        if (run->has_figures && in->source.label[i] < 0)
            continue;
        is_right[n] = in->p.top[i * in->p.k] == in->source.label[i];
        ood[n++] = in->ood[i];
    }
    PNB_TRY(pnb_none_compute(ood, is_right, n, out->ood, out->p.n, run->none_threshold, &run->none,
                             err));
    run->has_none_figures = true;
    if (!run->has_figures) /* whether they are classified right is not known */
        run->none.positive_accuracy = NAN;
done:
    pnb__free(ood);
    pnb__free(is_right);
    return status;
}

pnb_status pnb__classify_reject(pnb__classify *run, pnb_error *err)
{
    pnb_status status;
    if (!run->opts->has_none)
        return PNB_OK;
    PNB_TRY(estrange(run, &run->images, err));
    PNB_TRY(estrange(run, &run->negatives, err));
    PNB_TRY(estrange(run, &run->val_images, err));
    PNB_TRY(estrange(run, &run->val_negatives, err));
    PNB_TRY(fit_threshold(run, err));
    status = measure_none(run, err);
done:
    return status;
}
