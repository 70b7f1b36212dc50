/* Which pairs of a data set are kept: caption rules, limits on similarity and uncertainty, shares.
 *
 * Every rule is tried on every pair, so that the counts tell what each one does alone; a pair is
 * dropped by the first rule it fails, in the order of PNB_RULE_LIST. The share by score comes
 * last and chooses among what is left. ProLIP keeps the top 20% by csd (Table C.7 of the preprint),
 * as DataComp's baselines do by cosine. How scores come about is the caller's. */
#include <math.h>
#include <stdlib.h>

#include "base/names.h"
#include "base/order.h"
#include "eval/sorted.h"
#include "penumbra/filter.h"

_Static_assert(PNB_N_RULES <= 32, "a pair's rules are bits of a uint32_t");

PNB_DEFINE_NAME(pnb_rule_name, pnb_rule, PNB_NAMES(PNB_RULE_LIST), "unknown")
PNB_DEFINE_NAME(pnb_rule_sentence, pnb_rule, PNB_SENTENCES(PNB_RULE_LIST), "unknown")

pnb_pair_filter_opts pnb_pair_filter_opts_default(void)
{
    return (pnb_pair_filter_opts){.min_score = NAN,
                                  .min_p_match = NAN,
                                  .max_image_u = NAN,
                                  .max_text_u = NAN,
                                  .certain_images = NAN,
                                  .certain_texts = NAN,
                                  .top = NAN,
                                  .texts = pnb_text_rules_opts_default()};
}

/* ---- limits on one figure ---- */

/* One figure of the pairs with the limit it must keep. */
typedef struct limit {
    const double *value;
    double border;
    pnb_rule rule;
    bool is_least; /* value >= border is kept, else value <= border */
    bool is_share; /* border is a share of the pairs, not a value */
} limit;

enum { N_LIMITS = 6 };

static void list_limits(const pnb_pair_figures *p, const pnb_pair_filter_opts *o,
                        limit out[N_LIMITS])
{
    const limit all[N_LIMITS] = {
        {p->score, o->min_score, PNB_RULE_MIN_SCORE, true, false},
        {p->p_match, o->min_p_match, PNB_RULE_MIN_P_MATCH, true, false},
        {p->image_u, o->max_image_u, PNB_RULE_MAX_IMAGE_U, false, false},
        {p->text_u, o->max_text_u, PNB_RULE_MAX_TEXT_U, false, false},
        {p->image_u, o->certain_images, PNB_RULE_CERTAIN_IMAGES, false, true},
        {p->text_u, o->certain_texts, PNB_RULE_CERTAIN_TEXTS, false, true}};
    for (int i = 0; i < N_LIMITS; i++)
        out[i] = all[i];
}

bool pnb_pair_filter_opts_is_off(const pnb_pair_filter_opts *o)
{
    pnb_text_rules *rules = NULL;
    limit limits[N_LIMITS];
    bool is_off = isnan(o->top);
    list_limits(&(pnb_pair_figures){0}, o, limits);
    for (int i = 0; i < N_LIMITS; i++)
        is_off = is_off && isnan(limits[i].border);
    if (pnb_text_rules_create(&rules, &o->texts, NULL) == PNB_OK)
        is_off = is_off && pnb_text_rules_is_empty(rules);
    else
        is_off = false; /* a rule that is wrong is a rule */
    pnb_text_rules_free(rules);
    return is_off;
}

static pnb_status check_share(const char *name, double share, pnb_error *err)
{
    if (share > 0 && share <= 1)
        return PNB_OK;
    return pnb__fail(err, PNB_ARG, "%s is %g; a share above 0 and up to 1 is wanted", name, share);
}

static pnb_status check_finite(const char *what, const double *value, size_t n, pnb_error *err)
{
    for (size_t i = 0; value != NULL && i < n; i++)
        if (!isfinite(value[i]))
            return pnb__fail(err, PNB_NUMERIC, "the %s of pair %zu is %g", what, i, value[i]);
    return PNB_OK;
}

static pnb_status check(const pnb_pair_figures *p, const limit *limits, double top, pnb_error *err)
{
    pnb_status status;
    if (p->n == 0 || p->score == NULL)
        return pnb__fail(err, PNB_ARG, "%zu pairs%s; at least one with its score is wanted", p->n,
                         p->score == NULL ? " without scores" : "");
    PNB_TRY(check_finite("score", p->score, p->n, err));
    PNB_TRY(check_finite("probability of a match", p->p_match, p->n, err));
    PNB_TRY(check_finite("picture's uncertainty", p->image_u, p->n, err));
    PNB_TRY(check_finite("caption's uncertainty", p->text_u, p->n, err));
    if (!isnan(top))
        PNB_TRY(check_share("top", top, err));
    for (int i = 0; i < N_LIMITS; i++) {
        const char *name = pnb_rule_name(limits[i].rule);
        if (isnan(limits[i].border))
            continue;
        if (limits[i].value == NULL)
            return pnb__fail(err, PNB_ARG, "%s is set, but the pairs do not have that figure",
                             name);
        if (limits[i].is_share)
            PNB_TRY(check_share(name, limits[i].border, err));
    }
done:
    return status;
}

/* The value at place ceil(share * n) from below: at least that share lies at or under it. */
static pnb_status share_to_value(limit *l, size_t n, pnb_error *err)
{
    pnb__valued *sorted;
    pnb_status status = pnb__sorted(&sorted, l->value, n, "uncertainty", err);
    if (status != PNB_OK)
        return status;
    size_t place = (size_t)ceil(l->border * (double)n);
    l->border = sorted[PNB_MIN(PNB_MAX(place, (size_t)1), n) - 1].value;
    pnb__free(sorted);
    return PNB_OK;
}

static pnb_status apply_limit(limit *l, pnb_pair_filter *f, pnb_error *err)
{
    if (isnan(l->border))
        return PNB_OK;
    pnb_status status = l->is_share ? share_to_value(l, f->n, err) : PNB_OK;
    for (size_t i = 0; status == PNB_OK && i < f->n; i++) {
        bool keeps = l->is_least ? l->value[i] >= l->border : l->value[i] <= l->border;
        f->failed[i] |= keeps ? 0 : (uint32_t)1 << l->rule;
    }
    return status;
}

/* ---- the best share ---- */

static pnb_status apply_top(const pnb_pair_figures *p, double top, pnb_pair_filter *f,
                            pnb_error *err)
{
    if (isnan(top))
        return PNB_OK;
    size_t wanted = PNB_MAX((size_t)(top * (double)p->n + 0.5), (size_t)1), n_left = 0;
    pnb__valued *left = pnb__alloc_array(p->n, sizeof *left);
    if (left == NULL)
        return pnb__fail_nomem(err, p->n * sizeof *left);
    for (size_t i = 0; i < p->n; i++)
        if (f->failed[i] == 0)
            left[n_left++] = (pnb__valued){p->score[i], i};
    qsort(left, n_left, sizeof *left, pnb__by_value_down);
    for (size_t i = wanted; i < n_left; i++)
        f->failed[left[i].place] |= (uint32_t)1 << PNB_RULE_TOP;
    pnb__free(left);
    return PNB_OK;
}

/* ---- all ---- */

static pnb_status apply_texts(const pnb_pair_figures *p, const pnb_pair_filter_opts *o,
                              pnb_pair_filter *f, pnb_error *err)
{
    pnb_text_rules *rules = NULL;
    pnb_status status = pnb_text_rules_create(&rules, &o->texts, err);
    for (size_t i = 0; status == PNB_OK && i < p->n && !pnb_text_rules_is_empty(rules); i++) {
        const char *text = p->texts != NULL ? p->texts[i] : NULL;
        status = pnb_text_rules_check(rules, text, &f->failed[i], err);
        if (status != PNB_OK)
            pnb__error_prefix(err, "pair %zu", i);
    }
    pnb_text_rules_free(rules);
    return status;
}

static void count(const pnb_pair_figures *p, pnb_pair_filter *f)
{
    f->lowest_kept = NAN;
    for (size_t i = 0; i < f->n; i++) {
        bool is_first = true;
        for (int rule = 0; rule < PNB_N_RULES; rule++) {
            bool fails = (f->failed[i] >> rule & 1u) != 0;
            f->n_failed[rule] += fails;
            f->n_first[rule] += fails && is_first;
            is_first = is_first && !fails;
        }
        if (f->failed[i] != 0)
            continue;
        f->n_kept++;
        f->lowest_kept = isnan(f->lowest_kept) ? p->score[i] : fmin(f->lowest_kept, p->score[i]);
    }
}

/* The tighter of a limit and a share on the same figure. */
static double tighter(const limit *a, const limit *b)
{
    return fmin(a->border, b->border); /* fmin passes over NaN */
}

pnb_status pnb_pair_filter_apply(const pnb_pair_figures *pairs, const pnb_pair_filter_opts *opts,
                                 pnb_pair_filter *out, pnb_error *err)
{
    pnb_pair_filter f = {.n = pairs->n};
    limit limits[N_LIMITS];
    pnb_status status;
    *out = (pnb_pair_filter){0};
    list_limits(pairs, opts, limits);
    PNB_TRY(check(pairs, limits, opts->top, err));
    PNB_TRY(PNB_ALLOC_ZERO(f.failed, f.n, err));
    PNB_TRY(apply_texts(pairs, opts, &f, err));
    for (size_t i = 0; pairs->within != NULL && i < f.n; i++)
        f.failed[i] |= pairs->within[i] == 0 ? (uint32_t)1 << PNB_RULE_WITHIN : 0;
    for (int i = 0; i < N_LIMITS; i++)
        PNB_TRY(apply_limit(&limits[i], &f, err));
    PNB_TRY(apply_top(pairs, opts->top, &f, err));
    count(pairs, &f);
    f.image_u_cut = tighter(&limits[2], &limits[4]);
    f.text_u_cut = tighter(&limits[3], &limits[5]);
    *out = f;
    f.failed = NULL;
done:
    pnb__free(f.failed);
    return status;
}

void pnb_pair_filter_reset(pnb_pair_filter *f)
{
    if (f == NULL)
        return;
    pnb__free(f->failed);
    *f = (pnb_pair_filter){0};
}
