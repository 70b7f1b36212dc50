/* Reads questions, scores their candidates, and sums up accuracy and calibration.
 *
 * What stands on a line is in vqa_question.c. Scores and uncertainties come from the file, or from
 * two embedding sets: candidate k of question q is the row "q#k" of the texts, the picture the row
 * named "image" (or "image_id"). The figures themselves are in src/eval/zeroshot/vqa_score.c. */
#include "commands/eval/vqa/eval_vqa.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "commands/common/rows/id_map.h"
#include "commands/common/rows/row_clusters.h"
#include "commands/common/set_use.h"
#include "commands/eval/vqa/vqa_question.h"
#include "io/json/json.h"
#include "penumbra/bootstrap.h"
#include "penumbra/ece.h"
#include "penumbra/uncertainty_calibration.h"
#include "sets/set_rows.h"
#include "sets/settle.h"

enum { MAX_TYPES = 64 };

/* What a question came to. */
typedef struct answered {
    char *id;
    char *unit;  /* what it was sampled with: the picture's id, or --cluster's; NULL: nothing */
    size_t type; /* in vqa.types */
    double confidence, accuracy;
} answered;

typedef struct vqa {
    pnb__app *app;
    const pnb__vqa_opts *opts;
    pnb_embeddings *images, *texts;
    pnb_view image_view, text_view;
    pnb_measure_opts measure_opts;
    pnb__id_map image_map, text_map;
    double *text_u;
    answered *done;
    size_t n;
    char *types[MAX_TYPES];
    size_t n_types;
    pnb__out_file out;
} vqa;

/* ---- figures of the candidates ---- */

static pnb_status find_row(const pnb__id_map *map, const char *id, const char *what, size_t *row,
                           pnb_error *err)
{
    *row = pnb__id_map_find(map, id, strlen(id));
    return *row != SIZE_MAX
               ? PNB_OK
               : pnb__fail(err, PNB_NOT_FOUND, "%s '%.200s' has no row in its set", what, id);
}

static pnb_status score_by_sets(const vqa *v, pnb__question *q, pnb_error *err)
{
    size_t n = q->q.n_candidates, image = 0, row = 0;
    pnb_measure measure = v->opts->measure;
    bool of_pair = strcmp(v->opts->confidence_of, "pair") == 0;
    char id[PNB__MAX_QUESTION_ID + 24];
    pnb_status status;
    q->scores = pnb__alloc_array(n, sizeof *q->scores);
    q->uncertainty = of_pair ? NULL : pnb__alloc_array(n, sizeof *q->uncertainty);
    if (q->scores == NULL || (!of_pair && q->uncertainty == NULL))
        return pnb__fail_nomem(err, n * sizeof *q->scores);
    PNB_TRY(find_row(&v->image_map, q->image, "picture", &image, err));
    for (size_t k = 0; k < n; k++) {
        snprintf(id, sizeof id, "%s#%zu", q->id, k);
        PNB_TRY(find_row(&v->text_map, id, "candidate", &row, err));
        q->scores[k] =
            pnb_measure_score(measure, pnb_measure_pair(measure, &v->image_view.rows, image,
                                                        &v->text_view.rows, row, &v->measure_opts));
        if (!of_pair)
            q->uncertainty[k] = v->text_u[row];
    }
done:
    return status;
}

static pnb_status score_question(const vqa *v, pnb__question *q, pnb_error *err)
{
    pnb_status status =
        v->images != NULL ? score_by_sets(v, q, err) : pnb__question_read_scores(q, err);
    q->q.scores = q->scores;
    q->q.uncertainty = q->uncertainty;
    return status;
}

/* ---- all questions ---- */

static pnb_status find_type(vqa *v, const char *type, size_t *out, pnb_error *err)
{
    if (type == NULL)
        type = "";
    for (*out = 0; *out < v->n_types; ++*out)
        if (strcmp(v->types[*out], type) == 0)
            return PNB_OK;
    if (v->n_types == MAX_TYPES)
        return pnb__fail(err, PNB_LIMIT, "more than %d types of answers", (int)MAX_TYPES);
    v->types[v->n_types] = pnb__strdup(type);
    return v->types[v->n_types++] != NULL ? PNB_OK : pnb__fail_nomem(err, strlen(type));
}

static pnb_status remember(vqa *v, const pnb__question *q, const pnb_vqa_answer *a, pnb_error *err)
{
    pnb_status status = pnb__grow_one(&v->done, v->n, sizeof *v->done, err);
    if (status != PNB_OK)
        return status;
    answered *item = &v->done[v->n];
    *item = (answered){.id = pnb__strdup(q->id),
                       .unit = q->unit[0] != '\0' ? pnb__strdup(q->unit) : NULL,
                       .confidence = a->confidence,
                       .accuracy = a->accuracy};
    v->n++;
    if (item->id == NULL || (item->unit == NULL && q->unit[0] != '\0'))
        return pnb__fail_nomem(err, PNB__MAX_QUESTION_ID);
    return find_type(v, q->type, &item->type, err);
}

static pnb_status write_answer(vqa *v, const pnb__question *q, const pnb_vqa_answer *a,
                               pnb_error *err)
{
    pnb__buf b = {0};
    pnb_status status = PNB_OK;
    if (v->out.file == NULL)
        return PNB_OK;
    pnb__json_put(
        &b, "{\"question_id\":%s,\"choice\":%zu,\"answer\":%s,\"confidence\":%f,\"accuracy\":%f}\n",
        q->id, a->choice, q->candidates[a->choice], a->confidence, a->accuracy);
    if (b.failed)
        status = pnb__fail_nomem(err, b.size);
    else if (fwrite(b.data, 1, b.size, v->out.file) != b.size)
        status = pnb__fail_errno(err, "cannot write", v->opts->out);
    pnb__buf_reset(&b);
    return status;
}

static pnb_status take_line(vqa *v, const char *line, size_t n, size_t number)
{
    pnb__question q = {0};
    pnb_vqa_answer a;
    pnb_error *err = &v->app->err;
    pnb_status status;
    PNB_TRY(pnb__question_parse(&q, line, n, number, err));
    PNB_TRY(pnb__question_read_unit(&q, v->opts->cluster, err));
    PNB_TRY(score_question(v, &q, err));
    PNB_TRY(pnb_vqa_score(&q.q, &v->opts->votes, &a, err));
    PNB_TRY(remember(v, &q, &a, err));
    status = write_answer(v, &q, &a, err);
done:
    pnb__question_reset(&q);
    if (status != PNB_OK)
        pnb__error_prefix(err, "%s line %zu", v->opts->questions, number);
    return status;
}

static pnb_status read_questions(vqa *v)
{
    pnb_error *err = &v->app->err;
    FILE *file = fopen(v->opts->questions, "rb");
    char *line = NULL;
    size_t capacity = 0, number = 0;
    pnb_status status = PNB_OK;
    if (file == NULL)
        return pnb__fail_errno(err, "cannot open", v->opts->questions);
    for (ssize_t n; status == PNB_OK && (n = getline(&line, &capacity, file)) >= 0;) {
        size_t mark = ++number == 1 && pnb__starts_with(line, "\xEF\xBB\xBF") ? 3 : 0;
        if (mark + strspn(line + mark, " \t\r\n") < (size_t)n)
            status = take_line(v, line + mark, (size_t)n - mark, number);
        if (status == PNB_OK && pnb__is_interrupted(v->app))
            status = pnb__fail(err, PNB_INTERRUPTED, "stopped at line %zu", number);
    }
    if (status == PNB_OK && !feof(file)) /* getline ends so for want of memory too */
        status = pnb__fail_errno(err, "cannot read", v->opts->questions);
    free(line);
    fclose(file);
    if (status == PNB_OK && v->n == 0)
        status = pnb__fail(err, PNB_ARG, "%s holds no question", v->opts->questions);
    return status;
}

/* A question that is there twice would count twice. */
static pnb_status check_unique(const vqa *v, pnb_error *err)
{
    pnb__id_map map;
    const char **ids = pnb__alloc_array(v->n, sizeof *ids);
    if (ids == NULL)
        return pnb__fail_nomem(err, v->n * sizeof *ids);
    for (size_t i = 0; i < v->n; i++)
        ids[i] = v->done[i].id;
    pnb_status status = pnb__id_map_init(&map, ids, v->n, "question id", err);
    pnb__id_map_reset(&map);
    pnb__free(ids);
    return status;
}

static pnb_status map_ids(pnb__id_map *map, const pnb_embeddings *set, const char *path,
                          const char *what, pnb_error *err)
{
    if (set->ids == NULL)
        return pnb__fail(err, PNB_ARG, "%s has no ids; rows are found by them", path);
    return pnb__id_map_init(map, (const char *const *)set->ids, set->n, what, err);
}

static pnb_status load_sets(vqa *v)
{
    const pnb__vqa_opts *o = v->opts;
    pnb_error *err = &v->app->err;
    pnb_status status = PNB_OK;
    if (o->images == NULL)
        return PNB_OK;
    PNB_TRY(pnb__set_load(&v->images, o->images, v->app));
    PNB_TRY(pnb__set_load(&v->texts, o->texts, v->app));
    status = pnb_embeddings_check_mix(v->images, v->texts, err);
    if (status != PNB_OK) {
        pnb__error_prefix(err, "%s and %s", o->images, o->texts);
        goto done;
    }
    PNB_TRY(pnb__set_view(&v->image_view, v->images, o->measure, err));
    PNB_TRY(pnb__set_view(&v->text_view, v->texts, o->measure, err));
    v->measure_opts = pnb_measure_opts_default();
    v->measure_opts.seed = (uint64_t)v->app->common.seed;
    PNB_TRY(pnb__match_settle(v->app, &o->match, o->measure, &v->images->info, &v->texts->info,
                              &v->measure_opts));
    PNB_TRY(pnb_measure_check_fit(o->measure, &v->image_view.rows, &v->text_view.rows, err));
    PNB_TRY(pnb__row_uncertainty(v->texts, o->uncertainty, &v->text_u, err));
    PNB_TRY(map_ids(&v->image_map, v->images, o->images, "picture id", err));
    status = map_ids(&v->text_map, v->texts, o->texts, "candidate id", err);
done:
    return status;
}

/* ---- figures ---- */

typedef struct sums {
    double *confidence, *accuracy; /* [n] */
    size_t n_bins;
    bool equal_count;
} sums;

/* ---- units of resampling ---- */

/* Labels that are equal for the questions of one unit, and how many there are; a question without
 * a unit is its own. */
static pnb_status label_units(const vqa *v, int64_t *label, size_t *n_units, pnb_error *err)
{
    char **names = pnb__alloc_array(v->n, sizeof *names);
    if (names == NULL)
        return pnb__fail_nomem(err, v->n * sizeof *names);
    for (size_t i = 0; i < v->n; i++)
        names[i] = v->done[i].unit;
    pnb_status status = pnb__label_names(names, v->n, label, n_units, err);
    for (size_t i = 0; status == PNB_OK && i < v->n; i++)
        if (label[i] < 0)
            label[i] = (int64_t)(*n_units)++;
    pnb__free(names);
    return status;
}

static void put_unit(const vqa *v, size_t n_units, pnb__result *r)
{
    bool has_image = false;
    char unit[PNB__MAX_QUESTION_ID];
    for (size_t i = 0; i < v->n; i++)
        has_image = has_image || v->done[i].unit != NULL;
    if (v->opts->cluster != NULL)
        snprintf(unit, sizeof unit, "questions of one \"%.200s\"", v->opts->cluster);
    else
        snprintf(unit, sizeof unit, "%s",
                 has_image ? "picture with its questions" : "question (none names its picture)");
    pnb__result_begin(r, "resampling", NULL);
    pnb__result_text(r, "unit", "resampled unit", unit);
    pnb__result_text(r, "key", NULL, v->opts->cluster);
    pnb__result_int(r, "n_clusters", "clusters", (int64_t)n_units);
    pnb__result_int(r, "n_resamples", NULL, (int64_t)v->opts->n_resamples);
    pnb__result_end(r);
    if (n_units < 2)
        pnb__warn(v->app, "all questions are of one %s, so there are no intervals", unit);
}

static void put_interval(const pnb_interval *interval, const char *key, pnb__result *r)
{
    char text[64];
    pnb__result_begin(r, key, NULL);
    pnb__result_real(r, "low", NULL, interval->low, 6);
    pnb__result_real(r, "high", NULL, interval->high, 6);
    pnb__result_end(r);
    snprintf(text, sizeof text, "%.4f to %.4f", interval->low, interval->high);
    if (!isnan(interval->low))
        pnb__result_text(r, NULL, "  95% interval", text);
}

/* Accuracy and calibration error without the bias of bins, over resampled units. */
static pnb_status put_estimates(const vqa *v, const sums *s, pnb__result *r)
{
    pnb_bootstrap_opts boot = pnb_bootstrap_opts_default();
    pnb_interval accuracy, ece;
    pnb_error *err = &v->app->err;
    size_t n_units = 0;
    int64_t *label = NULL;
    pnb_status status = PNB_OK;
    PNB_TRY(PNB_ALLOC(label, v->n, err));
    boot.n_resamples = v->opts->n_resamples;
    boot.seed = (uint64_t)v->app->common.seed;
    boot.cluster = label;
    PNB_TRY(label_units(v, label, &n_units, err));
    PNB_TRY(pnb_ece_debiased(s->confidence, s->accuracy, v->n, &boot, &ece, err));
    if (boot.n_resamples > 0) {
        PNB_TRY(pnb_bootstrap_mean(s->accuracy, v->n, &boot, &accuracy, err));
        put_interval(&accuracy, "accuracy_interval", r);
    }
    pnb__result_real(r, "ece_debiased", "ECE, debiased", ece.value, 4);
    if (boot.n_resamples > 0) {
        put_interval(&ece, "ece_debiased_interval", r);
        put_unit(v, n_units, r);
    }
done:
    pnb__free(label);
    return status;
}

static double mean_of(const double *values, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += values[i];
    return sum / (double)n;
}

/* Questions of each type by themselves; s gives the bins and the room. */
static pnb_status put_types(const vqa *v, const sums *s, pnb__result *r)
{
    static const pnb__column columns[] = {{"answer_type", "type of answer"},
                                          {"n", "questions"},
                                          {"accuracy", "accuracy"},
                                          {"confidence", "mean confidence"},
                                          {"ece", "ECE"}};
    if (v->n_types < 2)
        return PNB_OK;
    pnb__result_table(r, "by_type", "", columns, PNB_COUNT(columns));
    for (size_t type = 0; type < v->n_types; type++) {
        pnb_answer_calibration c = {0};
        size_t n = 0;
        for (size_t i = 0; i < v->n; i++)
            if (v->done[i].type == type) {
                s->accuracy[n] = v->done[i].accuracy;
                s->confidence[n++] = v->done[i].confidence;
            }
        size_t n_bins = s->equal_count ? PNB_MIN(s->n_bins, n) : s->n_bins;
        pnb_status status = pnb_answer_calibration_compute(s->confidence, s->accuracy, n, n_bins,
                                                           s->equal_count, &c, &v->app->err);
        if (status != PNB_OK)
            return status;
        pnb__result_row(r, "%s %zu %.4f %.4f %.4f", v->types[type], n, mean_of(s->accuracy, n),
                        mean_of(s->confidence, n), c.ece);
    }
    return PNB_OK;
}

static void put_bins(const pnb_answer_calibration *c, size_t n_bins, pnb__result *r)
{
    static const pnb__column columns[] = {
        {"bin", "bin"}, {"n", "questions"}, {"confidence", "confidence"}, {"accuracy", "accuracy"}};
    pnb__result_table(r, "bins", "", columns, PNB_COUNT(columns));
    for (size_t k = 0; k < n_bins; k++) {
        pnb__result_row(r, "%zu %zu %.4f %.4f", k + 1, c->n_in_bin[k], c->confidence[k],
                        c->accuracy[k]);
    }
}

static pnb_status report_with(const vqa *v, sums *s, pnb__result *r)
{
    size_t n_in_bin[PNB_MAX_BINS];
    double confidence[PNB_MAX_BINS], accuracy[PNB_MAX_BINS], mean, mean_confidence;
    pnb_answer_calibration c = {
        .n_in_bin = n_in_bin, .confidence = confidence, .accuracy = accuracy};
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < v->n; i++) {
        s->confidence[i] = v->done[i].confidence;
        s->accuracy[i] = v->done[i].accuracy;
    }
    mean = mean_of(s->accuracy, v->n);
    mean_confidence = mean_of(s->confidence, v->n);
    PNB_TRY(pnb_answer_calibration_compute(s->confidence, s->accuracy, v->n, s->n_bins,
                                           s->equal_count, &c, &v->app->err));
    pnb__result_text(r, "questions", NULL, v->opts->questions);
    pnb__result_int(r, "n_questions", "questions", (int64_t)v->n);
    pnb__result_text(r, "votes", "votes",
                     v->opts->votes.simple ? "min(m/3, 1)" : "min(m/3, 1) leaving each person out");
    pnb__result_real(r, "accuracy", "accuracy", mean, 4);
    PNB_TRY(put_estimates(v, s, r));
    pnb__result_real(r, "mean_confidence", "mean confidence", mean_confidence, 4);
    pnb__result_real(r, "ece", "ECE of the bins", c.ece, 4);
    pnb__result_real(r, "mce", "MCE", c.mce, 4);
    PNB_TRY(put_types(v, s, r));
    put_bins(&c, s->n_bins, r);
done:
    return status;
}

static pnb_status report(const vqa *v, pnb__result *r)
{
    size_t most = PNB_MIN(v->opts->n_bins, v->n);
    sums s = {.n_bins = v->opts->equal_count ? most : v->opts->n_bins,
              .equal_count = v->opts->equal_count};
    s.confidence = pnb__alloc_array(v->n, sizeof *s.confidence);
    s.accuracy = pnb__alloc_array(v->n, sizeof *s.accuracy);
    pnb_status status = s.confidence != NULL && s.accuracy != NULL
                            ? report_with(v, &s, r)
                            : pnb__fail_nomem(&v->app->err, 2 * v->n * sizeof *s.accuracy);
    pnb__free(s.confidence);
    pnb__free(s.accuracy);
    return status;
}

static void reset(vqa *v)
{
    for (size_t i = 0; i < v->n; i++) {
        pnb__free(v->done[i].id);
        pnb__free(v->done[i].unit);
    }
    for (size_t i = 0; i < v->n_types; i++)
        pnb__free(v->types[i]);
    pnb__free(v->done);
    pnb__free(v->text_u);
    pnb__id_map_reset(&v->image_map);
    pnb__id_map_reset(&v->text_map);
    pnb_view_reset(&v->image_view);
    pnb_view_reset(&v->text_view);
    pnb_embeddings_free(v->images);
    pnb_embeddings_free(v->texts);
    pnb__out_abort(&v->out);
}

pnb_status pnb__vqa_run(pnb__app *app, const pnb__vqa_opts *opts, pnb__result *r)
{
    vqa v = {.app = app, .opts = opts};
    pnb_status status;
    PNB_TRY(load_sets(&v));
    if (opts->out != NULL)
        PNB_TRY(pnb__out_open(&v.out, opts->out, &app->err));
    PNB_TRY(read_questions(&v));
    PNB_TRY(check_unique(&v, &app->err));
    PNB_TRY(report(&v, r));
    if (opts->out != NULL)
        PNB_TRY(pnb__out_commit(&v.out, &app->err));
done:
    reset(&v);
    return status;
}
