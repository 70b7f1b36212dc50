/* Constants of the measures over samples: from the command line, the sets, or their defaults.
 *
 * A set that a PCME made carries the a and b it was trained with (negative_scale and shift there),
 * and how many samples it is compared by. Two sets that carry different ones are refused rather
 * than one of them chosen. */
#include "commands/common/match_use.h"

#include <math.h>

#include "prob/measure.h"

/* 0 and NaN: the set carries none. */
bool pnb__carries_match(const pnb_embeddings_info *info)
{
    return info != NULL && isfinite(info->match_a) && info->match_a > 0 && isfinite(info->match_b);
}

static pnb_status check_words(pnb__app *app, const pnb__match_words *w, pnb_measure measure)
{
    bool reads_match = pnb__measure_traits_of(measure)->reads == PNB__READS_MATCH;
    if (w->n_samples > 0 && !pnb__measure_is_sampled(measure))
        return pnb__usage(app,
                          "--samples belongs to the measures avg_l2 and match_prob: %s draws none",
                          pnb_measure_name(measure));
    if ((!isnan(w->a) || !isnan(w->b)) && !reads_match)
        return pnb__usage(app, "--match-a and --match-b belong to --measure match_prob, not to %s",
                          pnb_measure_name(measure));
    return PNB_OK;
}

/* J of the two sets, 0 where neither says. */
static pnb_status carried_samples(pnb__app *app, const pnb_embeddings_info *a,
                                  const pnb_embeddings_info *b, size_t *out)
{
    size_t of_a = a != NULL ? a->match_samples : 0, of_b = b != NULL ? b->match_samples : 0;
    *out = of_a > 0 ? of_a : of_b;
    if (of_a == 0 || of_b == 0 || of_a == of_b)
        return PNB_OK;
    return pnb__usage(app,
                      "one set is compared by %zu samples of a row, the other by %zu: say how many "
                      "by --samples",
                      of_a, of_b);
}

pnb_status pnb__match_settle(pnb__app *app, const pnb__match_words *words, pnb_measure measure,
                             const pnb_embeddings_info *a, const pnb_embeddings_info *b,
                             pnb_measure_opts *out)
{
    pnb_status status = check_words(app, words, measure);
    if (status != PNB_OK)
        return status;
    bool is_told = !isnan(words->a) && !isnan(words->b);
    bool reads_match = pnb__measure_traits_of(measure)->reads == PNB__READS_MATCH;
    if (reads_match && !is_told && pnb__carries_match(a) && pnb__carries_match(b) &&
        (a->match_a != b->match_a || a->match_b != b->match_b))
        return pnb__usage(app,
                          "one set was trained with a %g and b %g of match_prob, the other with %g "
                          "and %g: say which by --match-a and --match-b",
                          a->match_a, a->match_b, b->match_a, b->match_b);
    const pnb_embeddings_info *from = pnb__carries_match(a) ? a : pnb__carries_match(b) ? b : NULL;
    if (from != NULL) {
        out->match_a = from->match_a;
        out->match_b = from->match_b;
    }
    out->match_a = isnan(words->a) ? out->match_a : words->a;
    out->match_b = isnan(words->b) ? out->match_b : words->b;
    size_t n_samples = (size_t)words->n_samples;
    if (n_samples == 0 && pnb__measure_is_sampled(measure))
        status = carried_samples(app, a, b, &n_samples);
    out->n_samples = n_samples > 0 ? n_samples : out->n_samples;
    return status;
}

void pnb__put_match(pnb__result *r, pnb_measure measure, const pnb_measure_opts *opts,
                    bool is_for_people)
{
    if (!pnb__measure_is_sampled(measure))
        return;
    pnb__result_int(r, "samples", is_for_people ? "samples of a row" : NULL,
                    (int64_t)opts->n_samples);
    if (pnb__measure_traits_of(measure)->reads != PNB__READS_MATCH)
        return;
    pnb__result_real(r, "match_a", is_for_people ? "a of match_prob" : NULL, opts->match_a, 4);
    pnb__result_real(r, "match_b", is_for_people ? "b of match_prob" : NULL, opts->match_b, 4);
}
