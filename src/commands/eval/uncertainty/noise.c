/* eval noise: which scores find the pairs whose captions are another picture's.
 *
 * Every measure between the two rows of a pair says how ill they fit, and each row's uncertainty
 * how little it says by itself; both are asked whether swapped pairs score above the others. The
 * controls are a random score, which has AUROC 1/2, and the number of words of the caption.
 * Captions of one picture were swapped together, so pictures are resampled with all their pairs. */
#include "commands/eval/uncertainty/noise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/order.h"
#include "commands/common/rows/align.h"
#include "commands/common/set_use.h"
#include "commands/eval/uncertainty/known_rows.h"
#include "penumbra/rank_agreement.h"
#include "prob/measure.h"
#include "sets/set_rows.h"
#include "sets/settle.h"

enum { MAX_SCORES = PNB_N_MEASURES + 5, RANDOM_STREAM = 0x4E6F6973 };

/* A score of the pairs, larger where the pair is more suspicious. */
typedef struct named_score {
    char name[64];
    const char *kind; /* "measure", "uncertainty", "control" */
    double *value;    /* [n_pairs] */
} named_score;

typedef struct noise_run {
    pnb_embeddings *images, *texts;
    pnb__aligned pairs; /* those that are looked at */
    double *swapped;    /* [pairs.n] 0 or 1 */
    int64_t *cluster;
    size_t n_swapped, n_unknown;
    named_score score[MAX_SCORES];
    size_t n_scores;
    pnb_rank_agreement found[MAX_SCORES];
    double precision[MAX_SCORES];
} noise_run;

static void run_reset(noise_run *run)
{
    pnb_embeddings_free(run->images);
    pnb_embeddings_free(run->texts);
    pnb__aligned_reset(&run->pairs);
    pnb__free(run->swapped);
    pnb__free(run->cluster);
    for (size_t s = 0; s < run->n_scores; s++)
        pnb__free(run->score[s].value);
}

/* ---- which pairs ---- */

/* 1, 0, or -1: the row does not say. */
static pnb_status swap_of(const pnb_embeddings *set, size_t row, const char *field, int *out,
                          pnb_error *err)
{
    json_t *root = NULL;
    pnb_status status = pnb__set_extra(&root, set, row, err);
    const json_t *value = json_object_get(root, field);
    *out = -1;
    if (json_is_integer(value) && json_integer_value(value) >= 0 && json_integer_value(value) <= 1)
        *out = (int)json_integer_value(value);
    else if (json_is_true(value) || json_is_false(value))
        *out = json_is_true(value);
    else if (status == PNB_OK && value != NULL && !json_is_null(value))
        status = pnb__fail(err, PNB_FORMAT, "row %zu: \"%s\" is neither 0 nor 1", row, field);
    json_decref(root);
    return status;
}

/* Keeps the pairs of the level that say whether they were swapped, in place. */
static pnb_status keep_pairs(noise_run *run, const pnb__noise_opts *o, pnb_error *err)
{
    pnb__aligned *p = &run->pairs;
    size_t kept = 0;
    pnb_status status = PNB_OK;
    PNB_TRY(PNB_ALLOC(run->swapped, PNB_MAX(p->n, (size_t)1), err));
    PNB_TRY(PNB_ALLOC(run->cluster, PNB_MAX(p->n, (size_t)1), err));
    for (size_t i = 0; i < p->n; i++) {
        int level, swapped;
        PNB_TRY(pnb__row_level(&level, run->texts, p->text[i], err));
        if (o->level >= 0 && level != o->level)
            continue;
        PNB_TRY(swap_of(run->images, p->image[i], o->field, &swapped, err));
        if (swapped < 0)
            PNB_TRY(swap_of(run->texts, p->text[i], o->field, &swapped, err));
        if (swapped < 0) {
            run->n_unknown++;
            continue;
        }
        p->image[kept] = p->image[i];
        p->text[kept] = p->text[i];
        run->cluster[kept] = (int64_t)p->image[i];
        run->n_swapped += (size_t)swapped;
        run->swapped[kept++] = swapped;
    }
    p->n = kept;
done:
    return status;
}

static pnb_status check_pairs(const noise_run *run, const pnb__noise_opts *o, pnb_error *err)
{
    size_t n = run->pairs.n;
    if (n == 0 && run->n_unknown > 0)
        return pnb__fail(err, PNB_NOT_FOUND,
                         "no pair says by the field \"%s\" whether its caption was swapped; `data "
                         "corrupt --swap` writes it and embed carries it along",
                         o->field);
    if (run->n_swapped == 0 || run->n_swapped == n)
        return pnb__fail(err, PNB_ARG,
                         "%zu of %zu pairs are swapped by the field \"%s\"; both kinds are needed",
                         run->n_swapped, n, o->field);
    return PNB_OK;
}

static pnb_status load(pnb__app *app, const pnb__noise_opts *o, noise_run *run)
{
    pnb_error *err = &app->err;
    pnb_status status;
    PNB_TRY(pnb__set_load(&run->images, o->images, app));
    PNB_TRY(pnb__set_load(&run->texts, o->texts, app));
    if ((status = pnb_embeddings_check_mix(run->images, run->texts, err)) != PNB_OK) {
        pnb__error_prefix(err, "%s and %s", o->images, o->texts);
        goto done;
    }
    PNB_TRY(pnb__align(&run->pairs, run->images, run->texts, o->pairs,
                       o->pair_by != NULL ? o->pair_by : "auto", err));
    PNB_TRY(keep_pairs(run, o, err));
    PNB_TRY(check_pairs(run, o, err));
    if (run->n_unknown > 0)
        pnb__warn(app, "%zu pairs do not say by \"%s\" whether they were swapped and are left out",
                  run->n_unknown, o->field);
done:
    return status;
}

/* ---- scores ---- */

static pnb_status new_score(noise_run *run, const char *name, const char *kind, named_score **out,
                            pnb_error *err)
{
    named_score *s = &run->score[run->n_scores];
    pnb_status status = PNB_ALLOC(s->value, run->pairs.n, err);
    if (status != PNB_OK)
        return status;
    snprintf(s->name, sizeof s->name, "%s", name);
    s->kind = kind;
    run->n_scores++;
    *out = s;
    return PNB_OK;
}

/* How ill the rows of each pair fit by one measure. One that is not a number for some pair is left
 * out: likelihoods of points say nothing. */
static pnb_status add_measure(noise_run *run, pnb_measure measure, const pnb_rows *images,
                              const pnb_rows *texts, pnb_error *err)
{
    named_score *s;
    pnb_status status = new_score(run, pnb_measure_name(measure), "measure", &s, err);
    for (size_t i = 0; status == PNB_OK && i < run->pairs.n; i++) {
        double value =
            pnb_measure_pair(measure, images, run->pairs.image[i], texts, run->pairs.text[i], NULL);
        s->value[i] = -pnb_measure_score(measure, value);
        if (!isfinite(s->value[i])) {
            pnb__free(s->value);
            s->value = NULL;
            run->n_scores--;
            return PNB_OK;
        }
    }
    return status;
}

/* The measure that suits the sets first: it is the one that leads are told of. Measures over
 * samples are left out: they are noisy copies of others. */
static pnb_status add_measures(noise_run *run, pnb_error *err)
{
    pnb_view images = {0}, texts = {0};
    pnb_measure own = PNB__MEASURE_AUTO;
    pnb_status status;
    PNB_TRY(pnb_view_init(&images, run->images, err));
    PNB_TRY(pnb_view_init(&texts, run->texts, err));
    PNB_TRY(pnb__measure_of_sets(&own, run->images, run->texts, err));
    PNB_TRY(pnb__measure_settle(&own, own, &images.rows, &texts.rows, err));
    PNB_TRY(add_measure(run, own, &images.rows, &texts.rows, err));
    for (int m = 0; m < PNB_N_MEASURES; m++) {
        pnb_measure measure = (pnb_measure)m;
        bool repeats_mean = m == PNB_MEASURE_MAX_COSINE && images.rows.n_embeddings <= 1 &&
                            texts.rows.n_embeddings <= 1;
        if (measure == own || repeats_mean || pnb__measure_is_sampled(measure) ||
            pnb_measure_check_fit(measure, &images.rows, &texts.rows, NULL) != PNB_OK)
            continue;
        PNB_TRY(add_measure(run, measure, &images.rows, &texts.rows, err));
    }
done:
    pnb_view_reset(&images);
    pnb_view_reset(&texts);
    return status;
}

static pnb_status add_uncertainties(noise_run *run, pnb_error *err)
{
    double *image_u = NULL, *text_u = NULL;
    named_score *image, *text;
    pnb_status status;
    PNB_TRY(pnb__row_uncertainty(run->images, PNB_UNCERTAINTY_TRACE, &image_u, err));
    PNB_TRY(pnb__row_uncertainty(run->texts, PNB_UNCERTAINTY_TRACE, &text_u, err));
    PNB_TRY(new_score(run, "picture uncertainty", "uncertainty", &image, err));
    PNB_TRY(new_score(run, "caption uncertainty", "uncertainty", &text, err));
    for (size_t i = 0; i < run->pairs.n; i++) {
        image->value[i] = image_u[run->pairs.image[i]];
        text->value[i] = text_u[run->pairs.text[i]];
    }
done:
    pnb__free(image_u);
    pnb__free(text_u);
    return status;
}

/* A random number a picture, since all its captions were swapped together; words of the caption. */
static pnb_status add_controls(pnb__app *app, noise_run *run)
{
    pnb__known_side texts = {0};
    named_score *random, *words;
    pnb_error *err = &app->err;
    pnb_status status;
    PNB_TRY(new_score(run, "random", "control", &random, err));
    for (size_t i = 0; i < run->pairs.n; i++) {
        pnb__rng rng;
        pnb__rng_init(&rng, (uint64_t)app->common.seed, RANDOM_STREAM + run->pairs.image[i]);
        random->value[i] = pnb__rng_uniform(&rng);
    }
    PNB_TRY(pnb__known_side_init(&texts, run->texts, err));
    PNB_TRY(pnb__known_text_controls(&texts, err));
    if (texts.score[2] == NULL)
        goto done;
    PNB_TRY(new_score(run, "fewer words", "control", &words, err));
    for (size_t i = 0; i < run->pairs.n; i++)
        words->value[i] = texts.score[2][run->pairs.text[i]];
done:
    pnb__known_side_reset(&texts);
    return status;
}

/* ---- figures ---- */

/* Share of swapped pairs among as many of the most suspicious as there are swapped ones; ties at
 * the end count by their share. */
static double precision_of(const noise_run *run, const double *value, pnb__valued *room)
{
    size_t n = run->pairs.n, k = run->n_swapped, end = 0;
    double found = 0.0;
    for (size_t i = 0; i < n; i++)
        room[i] = (pnb__valued){value[i], i};
    qsort(room, n, sizeof *room, pnb__by_value_down);
    for (size_t i = 0; i < k; i = end) {
        double here = 0.0;
        for (end = i; end < n && room[end].value == room[i].value; end++)
            here += run->swapped[room[end].place];
        found += here * (double)(PNB_MIN(end, k) - i) / (double)(end - i);
    }
    return found / (double)k;
}

static pnb_status measure(pnb__app *app, const pnb__noise_opts *o, noise_run *run)
{
    const double *scores[MAX_SCORES];
    pnb__valued *room = NULL;
    pnb_bootstrap_opts boot = pnb_bootstrap_opts_default();
    pnb_status status;
    boot.n_resamples = o->n_resamples;
    boot.seed = (uint64_t)app->common.seed;
    boot.cluster = run->cluster;
    for (size_t s = 0; s < run->n_scores; s++)
        scores[s] = run->score[s].value;
    const pnb_known_rows rows = {.n = run->pairs.n,
                                 .known = run->swapped,
                                 .score = scores,
                                 .n_scores = run->n_scores,
                                 .only_auroc = true};
    PNB_TRY(PNB_ALLOC(room, run->pairs.n, &app->err));
    PNB_TRY(pnb_rank_agreement_compute(app->ctx, &rows, &boot, run->found, &app->err));
    for (size_t s = 0; s < run->n_scores; s++)
        run->precision[s] = precision_of(run, run->score[s].value, room);
done:
    pnb__free(room);
    return status;
}

/* ---- the result ---- */

static size_t best_of(const noise_run *run, const char *kind)
{
    size_t best = SIZE_MAX;
    for (size_t s = 0; s < run->n_scores; s++) {
        double value = run->found[s].figure[PNB_AGREEMENT_AUROC].value;
        if (strcmp(run->score[s].kind, kind) == 0 && isfinite(value) &&
            (best == SIZE_MAX || value > run->found[best].figure[PNB_AGREEMENT_AUROC].value))
            best = s;
    }
    return best;
}

static void put_headline(const noise_run *run, pnb__result *r)
{
    static const char *const kinds[] = {"uncertainty", "control"};
    const pnb_interval *own = &run->found[0].figure[PNB_AGREEMENT_AUROC];
    pnb__buf text = {0};
    pnb__buf_printf(&text,
                    "%zu of %zu pairs have a caption of another picture; %s finds them with "
                    "AUROC %.3f",
                    run->n_swapped, run->pairs.n, run->score[0].name, own->value);
    if (isfinite(own->low))
        pnb__buf_printf(&text, " (%.3f to %.3f)", own->low, own->high);
    for (size_t k = 0; k < PNB_COUNT(kinds); k++) {
        size_t best = best_of(run, kinds[k]);
        if (best != SIZE_MAX)
            pnb__buf_printf(&text, ", the best %s, \"%s\", with %.3f", kinds[k],
                            run->score[best].name,
                            run->found[best].figure[PNB_AGREEMENT_AUROC].value);
    }
    pnb__buf_puts(&text, ".");
    pnb__result_text(r, "headline", NULL, text.failed ? NULL : text.data);
    pnb__result_note(r, text.failed ? NULL : text.data);
    pnb__buf_reset(&text);
}

static void put_result(const pnb__noise_opts *o, const noise_run *run, pnb__result *r)
{
    static const pnb__column columns[] = {
        {"score", "score"},    {"kind", "kind"},     {"auroc", "AUROC"},
        {"auroc_low", "from"}, {"auroc_high", "to"}, {"precision", "swapped among the first"},
        {"lead", "behind by"}, {"lead_low", "from"}, {"lead_high", "to"}};
    pnb__result_begin(r, "noise", NULL);
    put_headline(run, r);
    pnb__result_int(r, "n_pairs", NULL, (int64_t)run->pairs.n);
    pnb__result_int(r, "n_swapped", NULL, (int64_t)run->n_swapped);
    pnb__result_int(r, "n_unknown", NULL, (int64_t)run->n_unknown);
    pnb__result_real(r, "share", NULL, (double)run->n_swapped / (double)run->pairs.n, 6);
    pnb__result_text(r, "paired_by", NULL, run->pairs.by);
    pnb__result_int(r, "n_resamples", NULL, (int64_t)o->n_resamples);
    pnb__result_text(r, "unit", NULL, "picture with its pairs");
    pnb__result_table(r, "scores",
                      "swapped pairs among as many of the most suspicious, and how "
                      "far behind the first score each is",
                      columns, PNB_COUNT(columns));
    for (size_t s = 0; s < run->n_scores; s++) {
        const pnb_interval *f = &run->found[s].figure[PNB_AGREEMENT_AUROC];
        const pnb_interval *lead = &run->found[s].lead[PNB_AGREEMENT_AUROC];
        pnb__result_row(r, "%s %s %.3f %.3f %.3f %.3f %.3f %.3f %.3f", run->score[s].name,
                        run->score[s].kind, f->value, f->low, f->high, run->precision[s],
                        s == 0 ? (double)NAN : lead->value, lead->low, lead->high);
    }
    pnb__result_end(r);
}

pnb_status pnb__noise_run(pnb__app *app, const pnb__noise_opts *opts, pnb__result *r)
{
    noise_run *run = pnb__alloc_zero(1, sizeof *run);
    pnb_status status;
    if (run == NULL)
        return pnb__fail_nomem(&app->err, sizeof *run);
    PNB_TRY(load(app, opts, run));
    PNB_TRY(add_measures(run, &app->err));
    PNB_TRY(add_uncertainties(run, &app->err));
    PNB_TRY(add_controls(app, run));
    PNB_TRY(measure(app, opts, run));
    put_result(opts, run, r);
done:
    run_reset(run);
    pnb__free(run);
    return status;
}
