/* Zero-shot accuracy and uncertainty while pictures are changed.
 *
 * Occlusion (ProLIP Table C.8): a rectangle in the middle with the picture's proportions is filled
 * with the mean colour, as `penumbra probe` does it. Attack (Table C.9): projected gradient descent
 * (Madry et al. 2018) raises the cross-entropy of the label in a box of eps around the pixels; the
 * paper names neither eps nor step nor start, so they are options with the usual values. PGD_k is
 * a stop on the way of PGD_K, since step and start are the same. Pixels stay numbers in [0,1] and
 * are not rounded to 8 bits. Beside it stands noise of the same size, sign by sign. Only pictures
 * with a label take part. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "commands/classify/classify.h"
#include "commands/common/encode_use.h"
#include "encode/perturb.h"
#include "encode/pixel_gradient.h"
#include "penumbra/attack.h"
#include "penumbra/view.h"
#include "prob/measure.h"
#include "program/progress.h"
#include "report/figure_interval.h"

enum { ATTACK_BATCH = 16, USUAL_LIMIT = 1000 };

typedef struct changed_run {
    pnb__app *app;
    pnb__classify *run;
    pnb_encoder *encoder;
    const pnb__changed_opts *opts;
    pnb__pixel_set pixels;
    int32_t *label; /* of the pixels */
    pnb__image_clusters clusters;
    pnb_view classes;
    pnb_attack_opts attack;
    float *x; /* [n][3HW] attacked, in [0,1] */
    size_t n_values;
} changed_run;

/* ---- one set of changed pictures ---- */

static pnb_status classify_by(const changed_run *c, const pnb_rows *rows, pnb_measure measure,
                              pnb_predictions *out)
{
    const pnb_classify_job job = {.images = rows,
                                  .classes = &c->classes.rows,
                                  .labels = c->label,
                                  .measure = measure,
                                  .opts = &c->run->measure_opts,
                                  .scale = c->run->scale,
                                  .k = 1};
    return pnb_classify(c->app->ctx, &job, out, &c->app->err);
}

static pnb_status accuracy(const changed_run *c, const pnb_rows *rows, pnb_measure measure,
                           pnb_interval *out, double *loss)
{
    pnb_bootstrap_opts boot = pnb_bootstrap_opts_default();
    pnb_predictions p = {0};
    double *right = NULL;
    pnb_status status;
    PNB_TRY(classify_by(c, rows, measure, &p));
    PNB_TRY(PNB_ALLOC(right, p.n, &c->app->err));
    *loss = 0.0;
    for (size_t i = 0; i < p.n; i++) {
        right[i] = p.top[i] == c->label[i];
        *loss -= p.log_p_label[i] / (double)p.n;
    }
    boot.seed = (uint64_t)c->app->common.seed;
    boot.cluster = c->clusters.label;
    status = pnb_bootstrap_mean(right, p.n, &boot, out, &c->app->err);
done:
    pnb_predictions_reset(&p);
    pnb__free(right);
    return status;
}

static pnb_status judge(const changed_run *c, const pnb_embeddings *set, pnb__changed_point *out)
{
    pnb_view view = {0};
    double *u = NULL, unused;
    pnb_status status;
    PNB_TRY(pnb_view_init(&view, set, &c->app->err));
    PNB_TRY(accuracy(c, &view.rows, c->run->measure, &out->acc1, &out->loss));
    if (c->run->changed.has_plain)
        PNB_TRY(accuracy(c, &view.rows, PNB_MEASURE_MEAN, &out->plain, &unused));
    PNB_TRY(pnb__row_uncertainty(set, PNB_UNCERTAINTY_TRACE, &u, &c->app->err));
    out->u = 0.0;
    for (size_t i = 0; i < set->n; i++)
        out->u += u[i] / (double)set->n;
    out->u_half = pnb__mean_half_width(u, set->n);
done:
    pnb_view_reset(&view);
    pnb__free(u);
    return status;
}

/* ---- occlusion ---- */

typedef struct erase_job {
    const pnb__pixel_set *pixels;
    double share;
    unsigned char rgb[3];
} erase_job;

/* pnb__make_fn */
static void make_erased(const void *user, size_t row, pnb_image *out)
{
    static const double middle[2] = {0.5, 0.5};
    const erase_job *job = user;
    const pnb_image *own = &job->pixels->items[row];
    memcpy(out->pixels, own->pixels, 3 * (size_t)own->width * (size_t)own->height);
    pnb__erase_share(out, job->share, middle, job->rgb);
}

static pnb_status occlude(changed_run *c)
{
    erase_job job = {.pixels = &c->pixels};
    const pnb_encode_opts opts = pnb__encode_opts(c->app);
    pnb_status status = PNB_OK;
    pnb__fill_colour(&c->encoder->preprocess, job.rgb);
    for (size_t i = 0; status == PNB_OK && i < c->opts->n_shares; i++) {
        pnb__changed_point *point = &c->run->changed.occlusion[i];
        pnb_embeddings *set = NULL;
        point->at = job.share = c->opts->share[i];
        status =
            pnb__encode_made(c->encoder, c->pixels.n, make_erased, &job, &opts, &set, &c->app->err);
        if (status == PNB_OK)
            status = judge(c, set, point);
        pnb_embeddings_free(set);
    }
    return status;
}

/* ---- attack ---- */

/* Pixels of picture i in [0,1], channel by channel. */
static void origin_of(const changed_run *c, size_t i, float *out)
{
    const unsigned char *p = c->pixels.items[i].pixels;
    size_t plane = c->n_values / 3;
    for (size_t k = 0; k < plane; k++)
        for (size_t channel = 0; channel < 3; channel++)
            out[channel * plane + k] = (float)p[3 * k + channel] / 255.0f;
}

typedef struct float_source {
    const changed_run *c;
    bool is_noise; /* the control in place of the attack */
} float_source;

/* Row of an embed source: normalised pixels of picture i. */
static pnb_status make_row(const void *user, size_t i, void *row, pnb_error *err)
{
    const float_source *source = user;
    const changed_run *c = source->c;
    const pnb_preprocess *pp = &c->encoder->preprocess;
    const float *x = c->x + i * c->n_values;
    float *out = row, *origin = NULL;
    pnb_status status = PNB_OK;
    if (source->is_noise) {
        PNB_TRY(PNB_ALLOC(origin, c->n_values, err));
        origin_of(c, i, origin);
        pnb_attack_noise(origin, x, c->n_values, &c->attack, i, out);
    } else {
        memcpy(out, x, c->n_values * sizeof *out);
    }
    for (size_t k = 0; k < c->n_values; k++) {
        size_t channel = k / (c->n_values / 3);
        out[k] = (out[k] - pp->mean[channel]) / pp->std[channel];
    }
done:
    pnb__free(origin);
    return status;
}

/* Root mean square over pictures and pixels. */
static pnb_status size_of_change(const changed_run *c, double *out)
{
    float *origin = NULL;
    double sum = 0.0;
    pnb_status status = PNB_ALLOC(origin, c->n_values, &c->app->err);
    for (size_t i = 0; status == PNB_OK && i < c->pixels.n; i++) {
        origin_of(c, i, origin);
        for (size_t k = 0; k < c->n_values; k++) {
            double d = (double)c->x[i * c->n_values + k] - (double)origin[k];
            sum += d * d;
        }
    }
    *out = 255.0 * sqrt(sum / (double)(c->pixels.n * c->n_values));
    pnb__free(origin);
    return status;
}

static pnb_status look(changed_run *c, size_t steps, bool is_noise, pnb__changed_point *out)
{
    const float_source pixels = {c, is_noise};
    const pnb__embed_source source = {.n = c->pixels.n, .user = &pixels, .row = make_row};
    const pnb_encode_opts opts = pnb__encode_opts(c->app);
    pnb_embeddings *set = NULL;
    pnb_status status;
    out->at = (double)steps;
    PNB_TRY(pnb__embed_set(c->encoder, &source, &opts, &set, NULL, &c->app->err));
    PNB_TRY(judge(c, set, out));
    status = size_of_change(c, &out->change);
done:
    pnb_embeddings_free(set);
    return status;
}

/* `n_steps` more for the pictures from `first` on. */
static pnb_status climb(changed_run *c, pnb__pixel_gradient *gradient, size_t first, size_t n_steps,
                        float *room /* [2][B][3HW] */)
{
    size_t n = PNB_MIN((size_t)ATTACK_BATCH, c->pixels.n - first);
    float *dx = room + (size_t)ATTACK_BATCH * c->n_values, *x = c->x + first * c->n_values;
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < n; i++)
        origin_of(c, first + i, room + i * c->n_values);
    for (size_t s = 0; s < n_steps && status == PNB_OK; s++) {
        if (pnb__is_interrupted(c->app))
            return pnb__fail(&c->app->err, PNB_INTERRUPTED, "stopped on request");
        status = pnb__pixel_gradient_run(gradient, x, c->label + first, n, NULL, dx, &c->app->err);
        if (status == PNB_OK)
            status = pnb_attack_step(room, dx, n * c->n_values, &c->attack, x, &c->app->err);
    }
    return status;
}

static pnb_status climb_all(changed_run *c, pnb__pixel_gradient *gradient, float *room)
{
    pnb__changed *out = &c->run->changed;
    pnb__progress progress;
    size_t done = 0, n = c->pixels.n, last = c->opts->steps[c->opts->n_steps - 1];
    pnb_status status = PNB_OK;
    pnb__progress_start(&progress, c->app, "attacking", "steps", 0, n * last);
    for (size_t k = 0; status == PNB_OK && k < c->opts->n_steps; k++) {
        size_t more = c->opts->steps[k] - (k > 0 ? c->opts->steps[k - 1] : 0);
        for (size_t i = 0; status == PNB_OK && i < n; i += ATTACK_BATCH) {
            status = climb(c, gradient, i, more, room);
            done += more * PNB_MIN((size_t)ATTACK_BATCH, n - i);
            pnb__progress_update(&progress, done, NULL);
        }
        if (status == PNB_OK)
            status = look(c, c->opts->steps[k], false, &out->attack[k + 1]);
        if (status == PNB_OK)
            status = look(c, c->opts->steps[k], true, &out->control[k + 1]);
    }
    pnb__progress_finish(&progress, done);
    return status;
}

/* Cross-entropy climbs on the scores of the run's own kind: with variances unless it decides by
 * means. Measures that are no similarity have scores of another scale; the gradient's sign hardly
 * knows it, so such runs climb at CLIP's. */
static pnb_status attack(changed_run *c)
{
    pnb__changed *out = &c->run->changed;
    const pnb__pixel_classes classes = {
        .rows = &c->classes.rows,
        .means_alone = !out->has_plain,
        .scale = pnb__measure_has_logits(c->run->measure) ? c->run->scale : 100.0};
    pnb__pixel_gradient *gradient = NULL;
    float *room = NULL;
    size_t n = c->pixels.n;
    pnb_status status;
    PNB_TRY(pnb_attack_opts_check(&c->attack, &c->app->err));
    PNB_TRY(pnb__pixel_gradient_open(&gradient, c->encoder, &classes, ATTACK_BATCH, &c->app->err));
    PNB_TRY(PNB_ALLOC_ROWS(c->x, n, c->n_values, &c->app->err));
    PNB_TRY(PNB_ALLOC_ROWS(room, (size_t)2 * ATTACK_BATCH, c->n_values, &c->app->err));
    for (size_t i = 0; i < n; i++)
        origin_of(c, i, c->x + i * c->n_values);
    PNB_TRY(look(c, 0, false, &out->attack[0]));
    out->control[0] = out->attack[0];
    for (size_t i = 0; i < n; i++) {
        origin_of(c, i, room);
        pnb_attack_start(room, c->n_values, &c->attack, i, c->x + i * c->n_values);
    }
    status = climb_all(c, gradient, room);
done:
    pnb__pixel_gradient_free(gradient);
    pnb__free(room);
    return status;
}

/* ---- which pictures ---- */

/* Pictures with a label, evenly spaced, and their labels; inputs that cannot be read are known by
 * now and left out. */
static pnb_status load(changed_run *c)
{
    const pnb__class_source *s = &c->run->images.source;
    size_t limit = c->opts->limit > 0 ? c->opts->limit : (size_t)USUAL_LIMIT;
    size_t total = pnb__image_inputs_count(s->images), n = 0, n_kept;
    const pnb_encode_opts opts = {
        .exif = s->exif, .skipped = pnb__encode_skipped, .skipped_user = c->app};
    size_t *row = NULL, *input = NULL;
    pnb_status status;
    PNB_TRY(PNB_ALLOC(row, total, &c->app->err));
    PNB_TRY(PNB_ALLOC(input, total, &c->app->err));
    PNB_TRY(pnb__class_source_rows(s, row, &c->app->err));
    for (size_t i = 0; i < total; i++)
        if (row[i] != SIZE_MAX && s->label[row[i]] >= 0)
            input[n++] = i;
    n_kept = PNB_MIN(n, limit);
    for (size_t i = 0; i < n_kept; i++)
        input[i] = input[(size_t)((double)i * (double)n / (double)n_kept)];
    PNB_TRY(pnb__pixels_load_these(c->encoder, s->images, input, n_kept, &opts, &c->pixels,
                                   &c->app->err));
    PNB_TRY(PNB_ALLOC(c->label, c->pixels.n, &c->app->err));
    for (size_t i = 0; i < c->pixels.n; i++) {
        input[i] = row[c->pixels.input[i]];
        c->label[i] = s->label[input[i]];
    }
    status = pnb__image_clusters_init(&c->clusters, c->app, s->set, input, c->pixels.n,
                                      c->run->opts->cluster, "picture");
done:
    pnb__free(row);
    pnb__free(input);
    return status;
}

static pnb_status check(pnb__app *app, const pnb__classify *run)
{
    if (run->images.source.images == NULL)
        return pnb__fail(&app->err, PNB_ARG,
                         "%s is an embedding set; --occlusion and --attack-steps change pictures, "
                         "so name those",
                         run->images.source.what);
    if (!run->has_figures)
        return pnb__fail(&app->err, PNB_ARG,
                         "no picture has a label, and accuracy under --occlusion and "
                         "--attack-steps needs them");
    return PNB_OK;
}

pnb_status pnb__classify_changed(pnb__app *app, pnb__classify *run, pnb_encoder *encoder)
{
    const pnb__changed_opts *o = &run->opts->changed;
    changed_run c = {.app = app, .run = run, .encoder = encoder, .opts = o};
    pnb_status status;
    if (o->n_shares == 0 && o->n_steps == 0)
        return PNB_OK;
    PNB_TRY(check(app, run));
    PNB_TRY(load(&c));
    PNB_TRY(pnb_view_init(&c.classes, run->clf, &app->err));
    c.n_values = 3 * (size_t)encoder->preprocess.width * (size_t)encoder->preprocess.height;
    c.attack = pnb_attack_opts_default();
    c.attack.seed = (uint64_t)app->common.seed;
    c.attack.eps = isnan(o->eps) ? c.attack.eps : o->eps / 255.0;
    c.attack.step = isnan(o->step) ? c.attack.step : o->step / 255.0;
    run->changed.n_images = c.pixels.n;
    run->changed.has_u = run->images.source.set->family != PNB_POINT;
    run->changed.has_plain = run->measure != PNB_MEASURE_MEAN;
    PNB_TRY(occlude(&c));
    if (o->n_steps > 0)
        status = attack(&c);
done:
    pnb__pixels_reset(&c.pixels);
    pnb__image_clusters_reset(&c.clusters);
    pnb_view_reset(&c.classes);
    pnb__free(c.label);
    pnb__free(c.x);
    return status;
}
