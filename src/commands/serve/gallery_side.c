/* Measure and odds of a gallery for queries of captions or of pictures.
 *
 * No query is there yet when they are settled: a row of zeros, described as the model describes its
 * own, stands for all of them. */
#include "commands/serve/gallery_side.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "commands/common/match_use.h"
#include "io/json/json.h"
#include "penumbra/inclusion_search.h"
#include "penumbra/search.h"
#include "penumbra/view.h"
#include "sets/settle.h"

pnb_status pnb__gallery_probe(const pnb_encoder *e, pnb_encode_side which, pnb_embeddings **out,
                              pnb_error *err)
{
    pnb_status status = pnb__encoder_make_rows(e, which, 1, out, err);
    if (status != PNB_OK)
        return status;
    pnb_embeddings *probe = *out;
    pnb_encoder_describe(e, which, 0, &probe->info);
    if (probe->inv_alpha != NULL) /* a probe of zeros is none of this family */
        for (size_t i = 0; i < probe->dim; i++)
            probe->inv_alpha[i] = probe->beta[i] = 1;
    return PNB_OK;
}

pnb_status pnb__gallery_side_settle(pnb__gallery_side *s, pnb__app *app, const pnb_encoder *e,
                                    pnb_encode_side which, const pnb_embeddings *rows,
                                    const pnb__gallery_place *place)
{
    static const pnb__match_words nothing = {.a = NAN, .b = NAN};
    const pnb__list_limits limits = {
        .min_probability = NAN, .conformal_alpha = NAN, .calibration = place->calibration};
    pnb_embeddings *probe = NULL;
    pnb_view view = {0}, gallery = {0};
    pnb_error *err = &app->err;
    pnb_status status;
    PNB_TRY(pnb__gallery_probe(e, which, &probe, err));
    status = pnb_embeddings_check_mix(rows, probe, err);
    if (status != PNB_OK)
        pnb__error_prefix(err, "%s and the model that is served", place->name);
    PNB_TRY(status);
    PNB_TRY(pnb_view_init(&view, probe, err));
    pnb_embeddings one = *rows; /* enough to tell a measure */
    one.n = 1;
    PNB_TRY(pnb_view_init(&gallery, &one, err));
    s->measure = PNB__MEASURE_AUTO;
    PNB_TRY(pnb__measure_of_sets(&s->measure, probe, rows, err));
    PNB_TRY(pnb__measure_settle(&s->measure, s->measure, &view.rows, &gallery.rows, err));
    s->opts = pnb_search_opts_default().measure_opts;
    PNB_TRY(pnb__match_settle(app, &nothing, s->measure, &probe->info, &rows->info, &s->opts));
    const pnb__match_probability_use use = {place->set_path, rows,  probe,           s->measure,
                                            &s->opts,        false, place->is_sample};
    PNB_TRY(pnb__match_probability_load(app, &use, &limits, &s->odds));
    s->is_there = true;
done:
    pnb_view_reset(&gallery);
    pnb_view_reset(&view);
    pnb_embeddings_free(probe);
    return status;
}

pnb_status pnb__gallery_side_conformal(const pnb__gallery_side *s, double alpha,
                                       const pnb__found *found, size_t n, size_t *n_kept,
                                       const char **by, pnb_error *err)
{
    const pnb_match_probability_fit *fit = &s->odds.fit;
    bool is_other_size = s->odds.has_fit && fit->n_gallery != s->odds.n_gallery;
    pnb_conformal_kind kind = is_other_size ? PNB_CONFORMAL_SCORE : fit->conformal.kind;
    double *score = NULL, cutoff;
    pnb_status status;
    if (!s->odds.has_fit)
        return pnb__fail(err, PNB_ARG,
                         "'conformal': no calibration of such queries in this collection is there; "
                         "make one with `penumbra calibrate`");
    PNB_TRY(pnb_conformal_cutoff(&fit->conformal, kind, alpha, &cutoff, err));
    PNB_TRY(PNB_ALLOC(score, n + 1, err));
    for (size_t i = 0; i < n; i++)
        score[i] = found[i].score;
    *n_kept = pnb_conformal_list(kind, cutoff, score, n);
    *by = pnb_conformal_name(kind);
done:
    pnb__free(score);
    return status;
}

/* How far apart two rows of numbers are, beside how long the first one is. */
static bool is_near(const float *a, const float *b, size_t n)
{
    double apart = 0, length = 0;
    for (size_t i = 0; i < n; i++) {
        apart += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        length += (double)a[i] * (double)a[i];
    }
    return apart <= 1e-10 * length;
}

/* The query itself, under whatever id: neither narrower nor broader. */
static bool is_query(const pnb_embeddings *query, const pnb_embeddings *rows, size_t row)
{
    size_t dim = rows->dim;
    return query->dim == dim && is_near(query->mean, rows->mean + row * dim, dim) &&
           is_near(query->log_var, rows->log_var + row * dim, dim);
}

static size_t count_queries(const pnb_embeddings *query, const pnb_embeddings *rows)
{
    size_t n = 0;
    for (size_t i = 0; i < rows->n; i++)
        n += is_query(query, rows, i);
    return n;
}

pnb_status pnb__gallery_related(const pnb_ctx *ctx, const pnb_embeddings *query,
                                const pnb_embeddings *rows, bool inside, size_t k,
                                pnb__found *found, size_t *n, pnb_error *err)
{
    pnb_inclusion_search_opts opts = pnb_inclusion_search_opts_default();
    pnb_inclusion_hits hits = {0};
    pnb_view asking = {0}, asked = {0};
    pnb_status status;
    *n = 0;
    if (rows->family != PNB_GAUSSIAN_DIAG || query->family != PNB_GAUSSIAN_DIAG)
        return PNB_OK;
    opts.inside = inside;
    opts.order = PNB_INCLUSION_BY_NEARNESS;
    opts.k = k + count_queries(query, rows);
    PNB_TRY(pnb_view_init(&asking, query, err));
    PNB_TRY(pnb_view_init(&asked, rows, err));
    PNB_TRY(pnb_inclusion_search(ctx, &asking.rows, &asked.rows, &opts, &hits, err));
    for (size_t i = 0; i < hits.k && *n < k && hits.index[i] >= 0; i++)
        if (!is_query(query, rows, (size_t)hits.index[i]))
            found[(*n)++] = (pnb__found){(size_t)hits.index[i], hits.nearness[i], NAN, NAN};
done:
    pnb_inclusion_hits_reset(&hits);
    pnb_view_reset(&asked);
    pnb_view_reset(&asking);
    return status;
}

pnb__spread pnb__gallery_spread(double *u, size_t n)
{
    if (n == 0)
        return (pnb__spread){NAN, NAN, NAN};
    qsort(u, n, sizeof *u, pnb__compare_doubles);
    double last = (double)(n - 1);
    return (pnb__spread){u[(size_t)(0.5 * last)], u[(size_t)(0.9 * last)],
                         u[(size_t)(0.99 * last)]};
}

void pnb__gallery_put_extra(const char *extra, bool has_text, pnb__buf *b)
{
    static const char *const shown[] = {"url", "caption", "uid", "key", "class", "label", "level"};
    json_t *fields = NULL;
    pnb_error why = PNB_ERROR_INIT;
    if (pnb__json_load_bytes(&fields, extra, strlen(extra), "row", &why) != PNB_OK)
        b->failed = b->failed || why.status == PNB_NOMEM;
    for (size_t i = 0; i < PNB_COUNT(shown); i++) {
        const json_t *value = json_object_get(fields, shown[i]);
        if (value == NULL || (has_text && strcmp(shown[i], "caption") == 0))
            continue;
        pnb__json_put(b, ",%s:", shown[i]);
        pnb__json_append_value(b, value);
    }
    json_decref(fields);
}
