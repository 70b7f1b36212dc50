/* Runs a filter: sets to pairs, pairs to figures, figures to a decision, and what is printed of it.
 *
 * The score of a pair is that of search, in f64: larger is nearer. The probability of a match is
 * that of a calibration, else s(a score + b) with the model's a and b or given ones, for csd and
 * mean, on whose scores a and b are fitted; match_prob is one itself. Rules are in
 * src/eval/curation/pair_filter.c, outputs in filter_out.c and filter_page.c. */
#include "commands/filter/filter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "commands/common/match_probability_use.h"
#include "commands/common/set_use.h"
#include "eval/sorted.h"
#include "prob/measure.h"
#include "report/histogram.h"
#include "sets/set_rows.h"
#include "sets/settle.h"

/* ---- figures of the pairs ---- */

typedef struct score_job {
    const pnb__filter_run *run;
    pnb_view images, texts;
    pnb_measure_opts opts;
    size_t first; /* of this process's share */
} score_job;

static void score_pairs(void *user, size_t begin, size_t end, int thread)
{
    const score_job *job = user;
    const pnb__filter_run *run = job->run;
    pnb_measure measure = run->opts->measure;
    (void)thread;
    for (size_t i = job->first + begin; i < job->first + end; i++) {
        double value = pnb_measure_pair(measure, &job->images.rows, run->pairs.image[i],
                                        &job->texts.rows, run->pairs.text[i], &job->opts);
        run->score[i] = pnb_measure_score(measure, value);
    }
}

static pnb_status compute_scores(pnb__app *app, pnb__filter_run *run)
{
    score_job job = {.run = run, .opts = run->measure_opts};
    pnb_error *err = &app->err;
    pnb_status status;
    PNB_TRY(pnb__set_view(&job.images, run->images, run->opts->measure, err));
    PNB_TRY(pnb__set_view(&job.texts, run->texts, run->opts->measure, err));
    PNB_TRY(pnb_measure_check_fit(run->opts->measure, &job.images.rows, &job.texts.rows, err));
    PNB_TRY(PNB_ALLOC(run->score, run->pairs.n, err));
    size_t share[2];
    pnb__filter_share(run, run->pairs.n, share);
    job.first = share[0];
    pnb__parallel_for(app->ctx, share[1] - share[0], 256, score_pairs, &job);
    PNB_TRY(pnb__filter_merge(run, run->score, run->pairs.n, sizeof *run->score, err));
    for (size_t i = 0; status == PNB_OK && i < run->pairs.n; i++)
        if (!isfinite(run->score[i]))
            status = pnb__fail(err, PNB_NUMERIC,
                               "the score of picture row %zu and caption row %zu "
                               "is %g",
                               run->pairs.image[i], run->pairs.text[i], run->score[i]);
done:
    pnb_view_reset(&job.images);
    pnb_view_reset(&job.texts);
    return status;
}

double pnb__filter_p_match(const pnb__filter_run *run, double score)
{
    if (run->has_fit)
        return pnb_match_probability_fit_apply(&run->fit, score, 0);
    if (run->is_measure)
        return score;
    return pnb__measure_has_logits(run->opts->measure)
               ? pnb_match_probability(score, run->match_scale, run->match_bias)
               : (double)NAN;
}

/* A calibration speaks of the pairs it was fitted on. Pictures are side 1 of the score, as they are
 * where pictures are the queries; a symmetric measure's score is the same the other way round. */
static pnb_status load_calibration(pnb__app *app, pnb__filter_run *run, bool *is_known)
{
    static const pnb_fit_words words = {"queries", "gallery rows"};
    const char *path = run->opts->calibration;
    pnb__match_probability_use use = {path,
                                      run->texts,
                                      run->images,
                                      run->opts->measure,
                                      &run->measure_opts,
                                      .match_is_told = false};
    char why[320];
    pnb_status status = pnb_match_probability_fit_load(&run->fit, path, &app->err);
    if (status != PNB_OK)
        return status;
    if (pnb_measure_is_symmetric(use.measure) &&
        strcmp(run->fit.origin.gallery.modality, use.queries->info.modality) == 0) {
        use.gallery = run->images;
        use.queries = run->texts;
    }
    pnb_fit_origin origin = pnb__match_probability_origin(&use);
    pnb_fit_agreement found =
        pnb_fit_origin_check(&run->fit.origin, &origin, &words, why, sizeof why);
    run->has_fit = *is_known =
        found == PNB_FIT_AGREES || (found == PNB_FIT_UNKNOWN && run->opts->trust);
    if (found == PNB_FIT_DIFFERS)
        return pnb__fail(&app->err, PNB_ARG, "%s %s", path, why);
    if (!*is_known)
        run->match_scale = run->match_bias = (double)NAN;
    if (!*is_known && !isnan(run->opts->limits.min_p_match))
        return pnb__fail(&app->err, PNB_ARG,
                         "%s %s; fit one with `penumbra calibrate`, or take it on your word by "
                         "--trust-calibration",
                         path, why);
    if (found == PNB_FIT_UNKNOWN)
        pnb__warn(app, "%s %s: %s", path, why,
                  *is_known ? "it is used on your word"
                            : "no probability is given; --trust-calibration takes it on your word");
    return PNB_OK;
}

/* match_prob's own values. */
static pnb_status take_measure(pnb__app *app, pnb__filter_run *run, bool *is_known)
{
    const pnb__filter_opts *o = run->opts;
    const pnb__match_probability_use use = {
        NULL,       run->texts,         run->images,
        o->measure, &run->measure_opts, .match_is_told = !isnan(o->match.a) && !isnan(o->match.b)};
    char why[200];
    if (!isnan(o->match_scale) || !isnan(o->match_bias))
        return pnb__usage(app,
                          "--match-scale and --match-bias belong to the measures csd and mean; "
                          "those of match_prob are --match-a and --match-b");
    run->is_measure = *is_known = pnb__measure_is_probability(&use, why, sizeof why);
    if (*is_known)
        return PNB_OK;
    if (!isnan(o->limits.min_p_match))
        return pnb__fail(&app->err, PNB_ARG,
                         "no probability by match_prob: %s; or give --calibration", why);
    pnb__warn(app, "no probability is given: %s", why);
    return PNB_OK;
}

/* Where the probability comes from: a calibration, the measure, given a and b, or the model's. */
static pnb_status find_p_match(pnb__app *app, pnb__filter_run *run, bool *is_known)
{
    const pnb__filter_opts *o = run->opts;
    pnb_error *err = &app->err;
    char why[200];
    bool is_wanted = !isnan(o->limits.min_p_match);
    bool is_given = !isnan(o->match_scale) && !isnan(o->match_bias);
    run->match_scale = isnan(o->match_scale) ? run->images->info.logit_scale : o->match_scale;
    run->match_bias = isnan(o->match_bias) ? run->images->info.logit_bias : o->match_bias;
    *is_known = true;
    if (o->calibration != NULL)
        return load_calibration(app, run, is_known);
    if (pnb__measure_traits_of(o->measure)->reads == PNB__READS_MATCH)
        return take_measure(app, run, is_known);
    *is_known = pnb__measure_has_logits(o->measure) && isfinite(run->match_scale) &&
                isfinite(run->match_bias);
    if (*is_known && !is_given &&
        !pnb__model_speaks_of(run->images, run->texts, o->measure, why, sizeof why)) {
        *is_known = false;
        run->match_scale = run->match_bias = (double)NAN;
        if (is_wanted)
            return pnb__fail(err, PNB_ARG,
                             "no probability of the model's: %s; give --calibration, or "
                             "--match-scale and --match-bias",
                             why);
        pnb__warn(app, "no probability is given: %s", why);
    }
    if (is_wanted && !pnb__measure_has_logits(o->measure))
        return pnb__fail(err, PNB_ARG,
                         "s(a score + b) belongs to the measures csd and mean, not to %s; a "
                         "probability by it needs --calibration",
                         pnb_measure_name(o->measure));
    if (is_wanted && !*is_known)
        return pnb__fail(
            err, PNB_ARG,
            "the sets do not tell the model's scale and bias, which the probability of "
            "a match needs; give --calibration, or --match-scale and --match-bias");
    return PNB_OK;
}

static pnb_status compute_p_match(pnb__app *app, pnb__filter_run *run)
{
    bool is_known = false;
    pnb_error *err = &app->err;
    pnb_status status = find_p_match(app, run, &is_known);
    if (status != PNB_OK || !is_known)
        return status;
    if (PNB_ALLOC(run->p_match, run->pairs.n, err) != PNB_OK)
        return PNB_NOMEM;
    for (size_t i = 0; i < run->pairs.n; i++)
        run->p_match[i] = pnb__filter_p_match(run, run->score[i]);
    return PNB_OK;
}

/* The uncertainty of each pair's row. */
static pnb_status gather_u(const pnb_embeddings *set, const size_t *row, size_t n,
                           pnb_uncertainty kind, double **out, pnb_error *err)
{
    double *of_row = NULL;
    pnb_status status = pnb__row_uncertainty(set, kind, &of_row, err);
    if (status == PNB_OK) {
        *out = pnb__alloc_array(n, sizeof **out);
        if (*out == NULL)
            status = pnb__fail_nomem(err, n * sizeof **out);
    }
    for (size_t i = 0; status == PNB_OK && i < n; i++)
        (*out)[i] = of_row[row[i]];
    pnb__free(of_row);
    return status;
}

/* ---- captions ---- */

/* First captions of the samples, for sets that do not carry them. */
static pnb_status read_texts(pnb__filter_run *run, pnb_error *err)
{
    size_t n = run->images->n;
    pnb_status status = PNB_OK;
    if (PNB_ALLOC_ZERO(run->kept_texts, n, err) != PNB_OK)
        return PNB_NOMEM;
    for (size_t i = 0; status == PNB_OK && i < n; i++) {
        pnb_sample s = {0};
        if (pnb_dataset_get(run->data.set, run->data.sample[i], &s, NULL) == PNB_OK &&
            s.n_texts > 0) {
            run->kept_texts[i] = pnb__strdup(s.texts[0]);
            if (run->kept_texts[i] == NULL)
                status = pnb__fail_nomem(err, strlen(s.texts[0]));
        }
        pnb_sample_reset(&s);
    }
    return status;
}

static pnb_status gather_texts(pnb__filter_run *run, pnb_error *err)
{
    bool in_set = run->texts->texts != NULL;
    pnb_status status = PNB_OK;
    if (!in_set && (run->data.set == NULL || strcmp(run->pairs.by, "rows") != 0))
        return PNB_OK; /* none: rules on captions will say so */
    if (!in_set)
        status = read_texts(run, err);
    if (PNB_ALLOC(run->pair_texts, run->pairs.n, err) != PNB_OK)
        return PNB_NOMEM;
    for (size_t i = 0; status == PNB_OK && i < run->pairs.n; i++)
        run->pair_texts[i] =
            in_set ? run->texts->texts[run->pairs.text[i]] : run->kept_texts[run->pairs.image[i]];
    return status;
}

/* ---- subsets ---- */

/* Which pairs belong to a sample of the subset file. */
static pnb_status find_within(pnb__filter_run *run, pnb_error *err)
{
    size_t n = run->images->n, n_subset = 0, n_uids = 0;
    pnb_uid *subset = NULL, *uids = NULL;
    unsigned char *all = NULL;
    const char *field;
    pnb_status status = PNB_OK;
    PNB_TRY(PNB_ALLOC(uids, n, err));
    PNB_TRY(PNB_ALLOC(all, n, err));
    PNB_TRY(PNB_ALLOC(run->within, run->pairs.n, err));
    memset(all, 1, n);
    PNB_TRY(pnb_uids_load(&subset, &n_subset, run->opts->within, err));
    pnb_uids_sort(subset, n_subset);
    PNB_TRY(pnb__filter_uids(run, all, uids, &n_uids, &field, err));
    for (size_t i = 0; i < run->pairs.n; i++)
        run->within[i] = pnb_uids_contain(subset, n_subset, uids[run->pairs.image[i]]);
done:
    pnb_uids_free(subset);
    pnb__free(uids);
    pnb__free(all);
    return status;
}

/* ---- loading ---- */

static pnb_status load(pnb__app *app, pnb__filter_run *run)
{
    const pnb__filter_opts *o = run->opts;
    pnb_error *err = &app->err;
    pnb_status status;
    if (o->out_dir != NULL) /* before any other file is written */
        PNB_TRY(pnb_dataset_copy_check(o->out_dir, err));
    PNB_TRY(pnb__set_load(&run->images, o->images, app));
    PNB_TRY(pnb__set_load(&run->texts, o->texts, app));
    run->measure_opts = pnb_measure_opts_default();
    run->measure_opts.seed = (uint64_t)app->common.seed;
    PNB_TRY(pnb__match_settle(app, &o->match, o->measure, &run->images->info, &run->texts->info,
                              &run->measure_opts));
    status = pnb_embeddings_check_mix(run->images, run->texts, err);
    if (status != PNB_OK) {
        pnb__error_prefix(err, "%s and %s", o->images, o->texts);
        goto done;
    }
    PNB_TRY(pnb__align(&run->pairs, run->images, run->texts, o->pairs, o->pair_by, err));
    if (o->data == NULL)
        goto done;
    status = pnb__pair_data_open(&run->data, o->data, &o->dataset, run->images, err);
done:
    return status;
}

/* Names what has no part in the filter; it counts as skipped. */
static void report_left_out(pnb__app *app, const pnb__filter_run *run)
{
    const pnb__aligned *p = &run->pairs;
    char text[160];
    pnb__say(app, "%zu pairs of %zu pictures and %zu captions, paired by %s", p->n, run->images->n,
             run->texts->n, p->by);
    for (size_t i = 0; run->data.set != NULL && i < pnb_dataset_n_warnings(run->data.set); i++)
        pnb__warn(app, "%s", pnb_dataset_warning(run->data.set, i));
    if (p->n_no_image > 0) {
        snprintf(text, sizeof text, "%zu, the first set holds no picture for them", p->n_no_image);
        pnb__skipped(app, "captions", text);
    }
    if (p->n_no_text > 0) {
        snprintf(text, sizeof text, "%zu, no caption belongs to them", p->n_no_text);
        pnb__skipped(app, "pictures", text);
    }
    if (run->data.n_unembedded > 0) {
        snprintf(text, sizeof text, "%zu, the picture set has no row for them; they are dropped",
                 run->data.n_unembedded);
        pnb__skipped(app, "samples", text);
    }
}

static pnb_status decide(pnb__app *app, pnb__filter_run *run)
{
    const pnb_pair_figures pairs = {.n = run->pairs.n,
                                    .score = run->score,
                                    .p_match = run->p_match,
                                    .image_u = run->image_u,
                                    .text_u = run->text_u,
                                    .texts = run->pair_texts,
                                    .within = run->within};
    pnb_status status = pnb_pair_filter_apply(&pairs, &run->opts->limits, &run->filter, &app->err);
    if (status != PNB_OK || run->filter.n_kept > 0)
        return status;
    int worst = 0;
    for (int rule = 1; rule < PNB_N_RULES; rule++)
        if (run->filter.n_failed[rule] > run->filter.n_failed[worst])
            worst = rule;
    return pnb__fail(&app->err, PNB_NOT_FOUND,
                     "nothing is kept of %zu pairs, so nothing is written; %zu fail %s (%s)",
                     run->filter.n, run->filter.n_failed[worst], pnb_rule_name((pnb_rule)worst),
                     pnb_rule_sentence((pnb_rule)worst));
}

/* ---- printing ---- */

void pnb__filter_reasons(uint32_t failed, pnb__buf *out)
{
    for (int rule = 0, n = 0; rule < PNB_N_RULES; rule++)
        if ((failed >> rule & 1u) != 0)
            pnb__buf_printf(out, "%s%s", n++ > 0 ? ", " : "", pnb_rule_name((pnb_rule)rule));
}

static void put_rules(const pnb_pair_filter *f, pnb__result *r)
{
    static const pnb__column columns[] = {{"rule", "rule"},
                                          {"n_dropped", "dropped"},
                                          {"n_failed", "would drop alone"},
                                          {"meaning", "what a dropped pair has"},
                                          {"share", NULL}};
    pnb__result_table(r, "rules", "dropped by the first rule that fails", columns,
                      PNB_COUNT(columns));
    for (int rule = 0; rule < PNB_N_RULES; rule++) {
        if (f->n_failed[rule] == 0)
            continue;
        pnb__result_row(r, "%s %zu %zu %s %.4f", pnb_rule_name((pnb_rule)rule), f->n_first[rule],
                        f->n_failed[rule], pnb_rule_sentence((pnb_rule)rule),
                        (double)f->n_first[rule] / (double)f->n);
    }
}

/* Median of the pairs that were kept, or of all. NaN without memory: a remark, not a result. */
static double median(const pnb_pair_filter *f, const double *value, bool kept_only)
{
    size_t n = 0;
    double *sorted = pnb__alloc_array(f->n, sizeof *sorted), result = NAN;
    if (sorted == NULL)
        return NAN;
    for (size_t i = 0; i < f->n; i++)
        if (!kept_only || f->failed[i] == 0)
            sorted[n++] = value[i];
    qsort(sorted, n, sizeof *sorted, pnb__compare_doubles);
    if (n > 0)
        result = 0.5 * (sorted[(n - 1) / 2] + sorted[n / 2]);
    pnb__free(sorted);
    return result;
}

/* A figure of every pair, with the value that the line was drawn at. */
typedef struct pair_figure {
    const char *name;
    const double *value; /* NULL: unknown */
    double cut;          /* NaN: none */
    bool log;
} pair_figure;
enum { N_FIGURES = 4, N_BINS = 48 };

static void put_figures(const pair_figure *figures, const pnb_pair_filter *f, pnb__result *r)
{
    static const pnb__column columns[] = {{"figure", "figure"},
                                          {"median_all", "median of all"},
                                          {"median_kept", "median of kept"},
                                          {"cut", "cut"}};
    pnb__result_table(r, "figures", "", columns, PNB_COUNT(columns));
    for (size_t i = 0; i < N_FIGURES; i++) {
        if (figures[i].value == NULL)
            continue;
        pnb__result_row(r, "%s %.5f %.5f %.5f", figures[i].name, median(f, figures[i].value, false),
                        median(f, figures[i].value, true), figures[i].cut);
    }
}

/* Counts of a figure's values, for the page. */
static void put_histograms(const pair_figure *figures, const pnb_pair_filter *f, pnb__result *r)
{
    static const pnb__column columns[] = {
        {"figure", NULL}, {"from", NULL}, {"to", NULL}, {"n", NULL}, {"n_kept", NULL}};
    pnb__result_table(r, "histograms", NULL, columns, PNB_COUNT(columns));
    for (size_t k = 0; k < N_FIGURES; k++) {
        size_t all[N_BINS] = {0}, kept[N_BINS] = {0};
        pnb__bins bins = {0};
        if (figures[k].value != NULL)
            bins = pnb__bins_over(figures[k].value, f->n, figures[k].log, N_BINS);
        for (size_t i = 0; bins.n > 0 && i < f->n; i++) {
            size_t bin = pnb__bin_of(&bins, figures[k].value[i]);
            all[bin]++;
            kept[bin] += f->failed[i] == 0;
        }
        for (size_t b = 0; b < bins.n; b++) {
            pnb__result_row(r, "%s %.5f %.5f %zu %zu", figures[k].name, pnb__bin_border(&bins, b),
                            pnb__bin_border(&bins, b + 1), all[b], kept[b]);
        }
    }
}

static void report(const pnb__filter_run *run, pnb__result *r)
{
    const pnb_pair_filter *f = &run->filter;
    const pair_figure figures[N_FIGURES] = {
        {"score", run->score, f->lowest_kept, false},
        {"p_match", run->p_match, pnb__filter_p_match(run, f->lowest_kept), false},
        {"image_uncertainty", run->image_u, f->image_u_cut, true},
        {"text_uncertainty", run->text_u, f->text_u_cut, true}};
    pnb__result_text(r, "images", NULL, run->opts->images);
    pnb__result_text(r, "texts", NULL, run->opts->texts);
    pnb__put_measure(r, "measure", run->opts->measure,
                     (const pnb_embeddings *[]){run->images, run->texts},
                     (const char *[]){"images", "texts"});
    pnb__put_match(r, run->opts->measure, &run->measure_opts, true);
    pnb__result_text(r, "paired_by", "paired by", run->pairs.by);
    pnb__result_int(r, "n_pairs", "pairs", (int64_t)f->n);
    pnb__result_int(r, "n_kept", "kept", (int64_t)f->n_kept);
    pnb__result_real(r, "share_kept", "share kept", (double)f->n_kept / (double)f->n, 4);
    put_rules(f, r);
    put_figures(figures, f, r);
    if (run->opts->preview != NULL)
        put_histograms(figures, f, r);
}

static void reset(pnb__filter_run *run)
{
    for (size_t i = 0; run->kept_texts != NULL && i < run->images->n; i++)
        pnb__free(run->kept_texts[i]);
    pnb__free(run->kept_texts);
    pnb__free(run->pair_texts);
    pnb__free(run->within);
    pnb__free(run->score);
    pnb__free(run->p_match);
    pnb__free(run->image_u);
    pnb__free(run->text_u);
    pnb_match_probability_fit_reset(&run->fit);
    pnb_pair_filter_reset(&run->filter);
    pnb__pair_data_close(&run->data);
    pnb__aligned_reset(&run->pairs);
    pnb_embeddings_free(run->images);
    pnb_embeddings_free(run->texts);
}

pnb_status pnb__filter_run_all(pnb__app *app, const pnb__filter_opts *opts, pnb__result *r)
{
    pnb__filter_run run = {.opts = opts, .ranks = app->ranks};
    pnb_error *err = &app->err;
    pnb_status status;
    PNB_TRY(load(app, &run));
    report_left_out(app, &run);
    PNB_TRY(compute_scores(app, &run));
    PNB_TRY(compute_p_match(app, &run));
    PNB_TRY(
        gather_u(run.images, run.pairs.image, run.pairs.n, opts->uncertainty, &run.image_u, err));
    PNB_TRY(gather_u(run.texts, run.pairs.text, run.pairs.n, opts->uncertainty, &run.text_u, err));
    PNB_TRY(gather_texts(&run, err));
    if (opts->within != NULL)
        PNB_TRY(find_within(&run, err));
    PNB_TRY(decide(app, &run));
    report(&run, r);
    status = pnb__filter_write(app, &run, r);
done:
    reset(&run);
    return status;
}
