/* What a fit was made from, and whether it speaks of what it is applied to.
 *
 * A probability belongs to one kind of query in one kind of gallery: captions that search pictures
 * score differently from pictures that search pictures, whatever their rows have in common. Known
 * and different is a refusal; unknown is not the same as equal. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "penumbra/scaling.h"
#include "prob/measure.h"
#include "sets/provenance.h"

pnb_fit_side pnb_fit_side_of(const pnb_embeddings *set)
{
    pnb_fit_side side = {0};
    snprintf(side.modality, sizeof side.modality, "%s", set->info.modality);
    snprintf(side.family, sizeof side.family, "%s", pnb_family_name(set->family));
    snprintf(side.weights_sha256, sizeof side.weights_sha256, "%s", set->info.weights_sha256);
    side.adapters = set->info.adapters;
    snprintf(side.preprocess, sizeof side.preprocess, "%s", set->info.preprocess);
    return side;
}

static bool differ(const char *a, const char *b)
{
    return a[0] != '\0' && b[0] != '\0' && strcmp(a, b) != 0;
}

/* Constants that the measure reads; the seed of its samples is no property of their mean. */
static bool same_constants(pnb_measure m, const pnb_measure_opts *a, const pnb_measure_opts *b)
{
    pnb__reads reads = pnb__measure_traits_of(m)->reads;
    if (reads == PNB__READS_EPS && a->inclusion_eps != b->inclusion_eps)
        return false;
    if (reads == PNB__READS_MATCH && (a->match_a != b->match_a || a->match_b != b->match_b ||
                                      a->match_factor != b->match_factor))
        return false;
    return !pnb__measure_is_sampled(m) || a->n_samples == b->n_samples;
}

static pnb__chain chain_of(const pnb_fit_side *side)
{
    return (pnb__chain){side->weights_sha256, &side->adapters};
}

/* The first thing that is known of both sides and differs. */
static bool sides_differ(const pnb_fit_side *made, const pnb_fit_side *used, const char *what,
                         char *why, size_t size)
{
    if (pnb__chains_differ(chain_of(made), chain_of(used))) {
        char of_made[128], of_used[128];
        pnb__chain_text(chain_of(made), of_made, sizeof of_made);
        pnb__chain_text(chain_of(used), of_used, sizeof of_used);
        snprintf(why, size, "was fitted for the weights %s, the %s come from %s", of_made, what,
                 of_used);
    } else if (differ(made->modality, used->modality))
        snprintf(why, size, "was fitted on %s %s, these are %s", made->modality, what,
                 used->modality);
    else if (differ(made->family, used->family))
        snprintf(why, size, "was fitted on %s of the family %s, these are %s", what, made->family,
                 used->family);
    else if (differ(made->preprocess, used->preprocess))
        snprintf(why, size, "was fitted on %s prepared as \"%.80s\", these are \"%.80s\"", what,
                 made->preprocess, used->preprocess);
    else
        return false;
    return true;
}

/* What keeps the side from being compared; NULL: nothing. Without a preprocessing text the rest
 * still says what the rows are. */
static const char *missing(const pnb_fit_side *side)
{
    return side->modality[0] == '\0'         ? "modality"
           : side->weights_sha256[0] == '\0' ? "weights"
           : side->family[0] == '\0'         ? "family"
                                             : NULL;
}

pnb_fit_agreement pnb_fit_origin_check(const pnb_fit_origin *made, const pnb_fit_origin *used,
                                       const pnb_fit_words *words, char *why, size_t size)
{
    if (made->has_measure && made->measure != used->measure) {
        snprintf(why, size, "was fitted for the measure %s, scores are %s here",
                 pnb_measure_name(made->measure), pnb_measure_name(used->measure));
        return PNB_FIT_DIFFERS;
    }
    if (made->has_measure &&
        !same_constants(made->measure, &made->measure_opts, &used->measure_opts)) {
        snprintf(why, size, "was fitted for %s with other constants (a %g, b %g, J %zu, eps %g)",
                 pnb_measure_name(made->measure), made->measure_opts.match_a,
                 made->measure_opts.match_b, made->measure_opts.n_samples,
                 made->measure_opts.inclusion_eps);
        return PNB_FIT_DIFFERS;
    }
    if (sides_differ(&made->queries, &used->queries, words->queries, why, size) ||
        sides_differ(&made->gallery, &used->gallery, words->gallery, why, size))
        return PNB_FIT_DIFFERS;
    const pnb_fit_side *sides[] = {&made->queries, &made->gallery, &used->queries, &used->gallery};
    for (size_t i = 0; i < PNB_COUNT(sides); i++)
        if (missing(sides[i]) != NULL) {
            snprintf(why, size,
                     i < 2 ? "does not tell the %s of the %s it was fitted on"
                           : "cannot be compared: the %s of the %s here is unknown",
                     missing(sides[i]), i % 2 == 0 ? words->queries : words->gallery);
            return PNB_FIT_UNKNOWN;
        }
    if (!made->has_measure) {
        snprintf(why, size, "does not tell the measure it was fitted for");
        return PNB_FIT_UNKNOWN;
    }
    return PNB_FIT_AGREES;
}
