/* Measure and odds of a gallery for queries of captions or of pictures.
 *
 * No query is there yet when they are settled: a row of zeros, described as the model describes its
 * own, stands for all of them. */
#include "commands/serve/gallery_side.h"

#include <math.h>
#include <string.h>

#include "commands/common/match_use.h"
#include "io/json/json.h"
#include "penumbra/search.h"
#include "penumbra/view.h"
#include "sets/settle.h"

/* A query of that side, but for its numbers. */
static pnb_status make_probe(const pnb_encoder *e, pnb_encode_side which, pnb_embeddings **out,
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
    PNB_TRY(make_probe(e, which, &probe, err));
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
    const pnb__match_probability_use use = {place->set_path, rows,     probe,
                                            s->measure,      &s->opts, false};
    PNB_TRY(pnb__match_probability_load(app, &use, &limits, &s->odds));
    s->is_there = true;
done:
    pnb_view_reset(&gallery);
    pnb_view_reset(&view);
    pnb_embeddings_free(probe);
    return status;
}

void pnb__gallery_put_extra(const char *extra, bool has_caption, pnb__buf *b)
{
    static const char *const shown[] = {"url", "caption", "uid", "key", "class", "label", "level"};
    json_t *fields = NULL;
    pnb_error why = PNB_ERROR_INIT;
    if (pnb__json_load_bytes(&fields, extra, strlen(extra), "row", &why) != PNB_OK)
        b->failed = b->failed || why.status == PNB_NOMEM;
    for (size_t i = 0; i < PNB_COUNT(shown); i++) {
        const json_t *value = json_object_get(fields, shown[i]);
        if (value == NULL || (has_caption && strcmp(shown[i], "caption") == 0))
            continue;
        pnb__json_put(b, ",%s:", shown[i]);
        pnb__json_append_value(b, value);
    }
    json_decref(fields);
}
