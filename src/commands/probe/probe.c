/* Measures one model with changed inputs, a piece at a time.
 *
 * Sources: uncertainty by caption level and length (Chun et al. 2025, Figure 7), occlusion 0-10%
 * and further (the same, appendix), erased pixels and words, mixed and erased pictures (PCME
 * section 4.4). Pictures are erased and mixed at the encoder's size. Tables: probe_report.c. */
#include "commands/probe/probe_internal.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "commands/common/encode_use.h"
#include "penumbra/search.h"
#include "penumbra/view.h"
#include "report/figure_interval.h"
#include "sets/settle.h"

enum { STREAM_PLACE = 0x9e1a };

void pnb__probe_rows_reset(pnb__probe_rows *r)
{
    pnb_view_reset(&r->view);
    pnb_embeddings_free(r->set);
    *r = (pnb__probe_rows){0};
}

static pnb_status make_rows(pnb__probing *run, size_t n, pnb__make_fn make, const void *user,
                            pnb__probe_rows *out)
{
    const pnb_encode_opts opts = pnb__encode_opts(run->app);
    pnb_error *err = &run->app->err;
    *out = (pnb__probe_rows){0};
    pnb_status status = pnb__encode_made(&run->encoder, n, make, user, &opts, &out->set, err);
    return status == PNB_OK ? pnb_view_init(&out->view, out->set, err) : status;
}

/* The uncertainty of each row: its trace, on the sphere 1/kappa. */
pnb_status pnb__probe_traces(const pnb_gaussians *view, double **out, pnb_error *err)
{
    if (PNB_ALLOC(*out, view->n, err) != PNB_OK)
        return PNB_NOMEM;
    pnb_uncertainty kind = view->kappa != NULL ? PNB_UNCERTAINTY_INV_KAPPA : PNB_UNCERTAINTY_TRACE;
    return pnb_uncertainty_rows(kind, view, *out, err);
}

/* `half` is half of the mean's 95% interval; may be NULL. */
static pnb_status mean_trace(const pnb_gaussians *view, double *out, double *half, pnb_error *err)
{
    double *u = NULL, sum = 0.0;
    pnb_status status = pnb__probe_traces(view, &u, err);
    for (size_t i = 0; status == PNB_OK && i < view->n; i++)
        sum += u[i];
    *out = sum / (double)view->n;
    if (status == PNB_OK && half != NULL)
        *half = pnb__mean_half_width(u, view->n);
    pnb__free(u);
    return status;
}

/* ---- the input that a change moved most, and least ---- */

static void free_example(pnb__probe_example *e)
{
    pnb_image_free(&e->image);
    pnb_image_free(&e->changed_image);
    pnb__free(e->text);
    pnb__free(e->changed_text);
    *e = (pnb__probe_example){0};
}

void pnb__probe_reset(pnb__probe *probe)
{
    free_example(&probe->most);
    free_example(&probe->least);
}

/* Rows of the largest and smallest change, with what their uncertainty was and is. */
pnb_status pnb__probe_find_examples(pnb__probing *run, const pnb_gaussians *original,
                                    const pnb_gaussians *changed, size_t row[2])
{
    pnb__probe *out = run->out;
    double *before = NULL, *after = NULL;
    pnb_status status;
    PNB_TRY(pnb__probe_traces(original, &before, &run->app->err));
    PNB_TRY(pnb__probe_traces(changed, &after, &run->app->err));
    row[0] = row[1] = 0;
    for (size_t i = 1; i < original->n; i++) {
        row[0] = after[i] - before[i] > after[row[0]] - before[row[0]] ? i : row[0];
        row[1] = after[i] - before[i] < after[row[1]] - before[row[1]] ? i : row[1];
    }
    out->most.before = before[row[0]];
    out->most.after = after[row[0]];
    out->least.before = before[row[1]];
    out->least.after = after[row[1]];
    out->has_examples = true;
done:
    pnb__free(before);
    pnb__free(after);
    return status;
}

/* Point `at` of a curve: how `changed` stands to its originals. Inclusion compares variances, which
 * densities on the sphere have none of. */
pnb_status pnb__probe_add_point(const pnb__probing *run, const pnb_gaussians *original,
                                const pnb_gaussians *changed, size_t at, pnb__probe_curve *curve)
{
    pnb_error *err = &run->app->err;
    pnb_measure measure =
        run->cmd->published ? PNB_MEASURE_INCLUSION_PUBLISHED : PNB_MEASURE_INCLUSION;
    size_t n = original->n, included = 0;
    double *h = NULL, sum = 0.0;
    pnb_status status = PNB_OK;
    PNB_TRY(mean_trace(changed, &curve->trace[at], &curve->trace_half[at], err));
    curve->included[at] = curve->h[at] = (double)NAN;
    if (original->log_var == NULL)
        goto done;
    PNB_TRY(PNB_ALLOC(h, n, err));
    PNB_TRY(pnb_measure_rows(measure, original, changed, NULL, h, err));
    for (size_t i = 0; i < n; i++) {
        included += h[i] > 0.0;
        sum += h[i];
    }
    curve->included[at] = (double)included / (double)n;
    curve->h[at] = sum / (double)n;
done:
    pnb__free(h);
    return status;
}

/* The rows once more, each moved to its neighbour's place. */
static pnb_status shift_rows(const pnb__probe_rows *from, pnb__probe_rows *out, pnb_error *err)
{
    size_t n = from->set->n;
    *out = (pnb__probe_rows){0};
    size_t *order = pnb__alloc_array(n, sizeof *order);
    if (order == NULL)
        return pnb__fail_nomem(err, n * sizeof *order);
    for (size_t i = 0; i < n; i++)
        order[i] = (i + 1) % n;
    pnb_status status = pnb_embeddings_select(&out->set, from->set, order, n, err);
    pnb__free(order);
    return status == PNB_OK ? pnb_view_init(&out->view, out->set, err) : status;
}

/* Whether an original lies in its changed copy, by H and by the difference of divergences; the copy
 * of the next original has been changed alike and is a stranger's. */
pnb_status pnb__probe_compare(const pnb__probing *run, const pnb__probe_rows *original,
                              const pnb__probe_rows *changed, pnb_inclusion_contest *out)
{
    const pnb_gaussians *from = &original->view.rows;
    pnb_error *err = &run->app->err;
    pnb__probe_rows strangers = {0};
    pnb_status status = PNB_OK;
    if (from->log_var == NULL)
        return PNB_OK;
    if (from->n > 1)
        PNB_TRY(shift_rows(changed, &strangers, err));
    status = pnb_inclusion_against_kl(from, &changed->view.rows,
                                      from->n > 1 ? &strangers.view.rows : NULL,
                                      run->cmd->published, NULL, NULL, out, err);
done:
    pnb__probe_rows_reset(&strangers);
    return status;
}

/* ---- pictures ---- */

typedef enum mixing { ORIGINAL, ERASED, BLENDED, HALVED } mixing;

typedef struct image_job {
    const pnb__pixel_set *pixels;
    mixing how;
    double share;
    unsigned char rgb[3];
    bool random_place;
    uint64_t seed;
} image_job;

static void random_place(const image_job *job, size_t row, double at[2])
{
    pnb__rng rng;
    at[0] = at[1] = 0.5;
    if (!job->random_place)
        return;
    pnb__rng_init(&rng, job->seed, pnb__hash_bytes(&row, sizeof row, STREAM_PLACE));
    at[0] = pnb__rng_uniform(&rng);
    at[1] = pnb__rng_uniform(&rng);
}

/* pnb__make_fn; pictures are mixed with the next one, the last with the first */
static void make_image(const void *user, size_t row, pnb_image *out)
{
    const image_job *job = user;
    const pnb_image *own = &job->pixels->items[row];
    const pnb_image *next = &job->pixels->items[(row + 1) % job->pixels->n];
    double at[2];
    if (job->how == BLENDED) {
        pnb__mix_blend(own, next, out);
    } else if (job->how == HALVED) {
        pnb__mix_halves(own, next, out);
    } else {
        memcpy(out->pixels, own->pixels, 3 * (size_t)own->width * (size_t)own->height);
        random_place(job, row, at);
        if (job->how == ERASED)
            pnb__erase_share(out, job->share, at, job->rgb);
    }
}

static pnb_status probe_mixed(pnb__probing *run, image_job *job, const pnb__probe_rows *originals)
{
    const pnb_rows *original = &originals->view.rows;
    pnb__probe_rates *rates = &run->out->rates;
    pnb_error *err = &run->app->err;
    pnb__probe_rows next = {0}, mixed = {0};
    size_t n = original->n;
    pnb_status status;
    PNB_TRY(shift_rows(originals, &next, err));
    PNB_TRY(pnb_share_included(original, &next.view.rows, run->cmd->published, NULL, &rates->other,
                               err));
    job->how = BLENDED;
    PNB_TRY(make_rows(run, n, make_image, job, &mixed));
    PNB_TRY(mean_trace(&mixed.view.rows, &rates->blend_trace, NULL, err));
    PNB_TRY(pnb_mixed_included(&mixed.view.rows, original, &next.view.rows, run->cmd->published,
                               &rates->blend, err));
    pnb__probe_rows_reset(&mixed);
    job->how = HALVED;
    PNB_TRY(make_rows(run, n, make_image, job, &mixed));
    PNB_TRY(mean_trace(&mixed.view.rows, &rates->halves_trace, NULL, err));
    status = pnb_mixed_included(&mixed.view.rows, original, &next.view.rows, run->cmd->published,
                                &rates->halves, err);
done:
    pnb__probe_rows_reset(&next);
    pnb__probe_rows_reset(&mixed);
    return status;
}

/* `job` erases the share of the inclusion test. */
static pnb_status keep_images(pnb__probing *run, const image_job *job,
                              const pnb_gaussians *original, const pnb_gaussians *erased)
{
    pnb__probe_example *const examples[] = {&run->out->most, &run->out->least};
    pnb_error *err = &run->app->err;
    size_t row[2];
    pnb_status status;
    PNB_TRY(pnb__probe_find_examples(run, original, erased, row));
    for (size_t k = 0; k < 2; k++) {
        const pnb_image *from = &job->pixels->items[row[k]];
        PNB_TRY(pnb_image_to_rgb(&examples[k]->image, from, err));
        PNB_TRY(pnb_image_to_rgb(&examples[k]->changed_image, from, err));
        make_image(job, row[k], &examples[k]->changed_image);
    }
done:
    return status;
}

static pnb_status probe_erased(pnb__probing *run, image_job *job, const pnb__probe_rows *originals)
{
    pnb__probe_curve *curve = &run->out->images;
    pnb__probe_rates *rates = &run->out->rates;
    const pnb_gaussians *original = &originals->view.rows;
    pnb__probe_rows erased = {0};
    size_t n = run->cmd->n_shares;
    pnb_status status = PNB_OK;
    curve->n = original->n;
    job->how = ERASED;
    for (size_t s = 0; s <= n; s++) { /* the last one for the table of rates */
        job->share = s < n ? run->cmd->share[s] : run->cmd->erased;
        PNB_TRY(make_rows(run, original->n, make_image, job, &erased));
        if (s < n)
            PNB_TRY(pnb__probe_add_point(run, original, &erased.view.rows, s, curve));
        else
            PNB_TRY(pnb__probe_compare(run, originals, &erased, &rates->by_erased));
        if (s == n && run->cmd->html != NULL)
            PNB_TRY(keep_images(run, job, original, &erased.view.rows));
        pnb__probe_rows_reset(&erased);
    }
    if (rates->by_erased.n > 0)
        rates->erased = rates->by_erased.by_h;
done:
    pnb__probe_rows_reset(&erased);
    return status;
}

static pnb_status probe_images(pnb__probing *run)
{
    image_job job = {.pixels = &run->pixels,
                     .random_place = run->cmd->random_place,
                     .seed = (uint64_t)run->app->common.seed};
    pnb__probe_rows original = {0};
    const pnb_encode_opts opts = {
        .exif = run->cmd->exif, .skipped = pnb__encode_skipped, .skipped_user = run->app};
    pnb_status status;
    PNB_TRY(pnb__pixels_load(&run->encoder, run->sources, run->cmd->limit, &opts, &run->pixels,
                             &run->app->err));
    pnb__fill_colour(&run->encoder.preprocess, job.rgb);
    PNB_TRY(make_rows(run, run->pixels.n, make_image, &job, &original));
    PNB_TRY(mean_trace(&original.view.rows, &run->out->rates.trace, NULL, &run->app->err));
    PNB_TRY(probe_erased(run, &job, &original));
    if (run->pixels.n > 1)
        status = probe_mixed(run, &job, &original);
done:
    pnb__probe_rows_reset(&original);
    return status;
}

/* ---- a model ---- */

static pnb_status open_model(pnb__probing *run, const char *model)
{
    const pnb__probe_cmd *cmd = run->cmd;
    const pnb_encoder_opts parts = {
        .sides = (cmd->images.n > 0 || cmd->chains != NULL ? PNB_ENCODE_IMAGES : 0) |
                 (cmd->texts.n > 0 ? PNB_ENCODE_TEXTS : 0),
        .tokenizer = cmd->tokenizer,
        .preprocess = cmd->preprocess};
    pnb_status status = pnb__encoder_open_named(&run->encoder, run->app, model, &parts);
    if (status == PNB_OK)
        status = pnb__need_variances(&run->encoder, parts.sides & (int)PNB_ENCODE_IMAGES,
                                     &run->app->err);
    return status == PNB_OK ? pnb__need_uncertainty(&run->encoder, parts.sides, &run->app->err)
                            : status;
}

static void clear_figures(pnb__probe *out)
{
    const double none = (double)NAN;
    const pnb_mixed_share no_share = {none, none, none, none};
    *out = (pnb__probe){.first_above_last = none, .words_rho = none, .tokens_rho = none};
    out->rates =
        (pnb__probe_rates){none, none, no_share, no_share, none, none, none, none, {0}, {0}};
}

pnb_status pnb__probe_model(pnb__app *app, const pnb__probe_cmd *cmd, const char *model,
                            pnb__probe *out)
{
    pnb__probing run = {.app = app, .cmd = cmd, .out = out};
    pnb_status status;
    clear_figures(out);
    PNB_TRY(open_model(&run, model));
    snprintf(out->name, sizeof out->name, "%s", run.encoder.name);
    if (cmd->texts.n > 0) {
        PNB_TRY(pnb__text_inputs_read(app, &run.texts, &cmd->texts, NULL, cmd->caption_key));
        PNB_TRY(pnb__probe_texts(&run));
    }
    if (cmd->images.n > 0) {
        PNB_TRY(pnb__image_inputs_open(&run.sources, cmd->images.items, cmd->images.n, app->in,
                                       &app->err));
        PNB_TRY(probe_images(&run));
    }
    if (cmd->chains != NULL)
        status =
            pnb__probe_hierarchies(app, &run.encoder, cmd->chains, cmd->published, &out->chains);
done:
    pnb__pixels_reset(&run.pixels);
    pnb__image_inputs_free(run.sources);
    pnb__text_inputs_reset(&run.texts);
    pnb__encoder_reset(&run.encoder);
    return status;
}
