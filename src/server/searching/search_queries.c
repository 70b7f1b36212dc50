/* Queries to rows, rows to what was found.
 *
 * A vector is taken for one of the model that is served: its origin cannot be seen, so its width
 * and its length are all that is checked. */
#include <math.h>
#include <string.h>

#include "server/searching/search_queries.h"

const pnb__gallery *pnb__gallery_of(const pnb__served *s, const char *name, const char *modality)
{
    for (size_t i = 0; i < s->n_galleries; i++) {
        const pnb__gallery *g = &s->galleries[i];
        bool is_named = name == NULL || strcmp(g->name, name) == 0;
        if (is_named && (name != NULL || modality == NULL || strcmp(g->modality, modality) == 0))
            return g;
    }
    return NULL;
}

pnb_status pnb__gallery_find(const pnb__gallery **out, const pnb__served *s, const char *name,
                             const char *modality, pnb_error *err)
{
    char known[200] = "";
    *out = pnb__gallery_of(s, name, modality);
    if (*out != NULL)
        return PNB_OK;
    for (size_t i = 0, at = 0; i < s->n_galleries && at < sizeof known; i++)
        at += (size_t)snprintf(known + at, sizeof known - at, "%s%s", i > 0 ? ", " : "",
                               s->galleries[i].name);
    if (s->n_galleries == 0)
        return pnb__fail(err, PNB_NOT_FOUND,
                         "nothing to search in is served: start it with an embedding set");
    return pnb__fail(err, PNB_NOT_FOUND, "there is no collection '%.80s'; there are: %s",
                     name != NULL ? name : modality, known);
}

/* ---- queries ---- */

pnb_status pnb__query_of_input(pnb__served *s, const pnb__http_request *q, const json_t *text,
                               const json_t *image, pnb__query_row *out, pnb_error *err)
{
    pnb__inputs in = {0};
    pnb__encoded e = {0};
    pnb_status status;
    if (text != NULL)
        PNB_TRY(pnb__inputs_read(&in, text, "text", err));
    else
        PNB_TRY(pnb__inputs_add_image(&in, image, "image", err));
    PNB_TRY(pnb__server_encode(s, q, &in, &e, err));
    out->is_image = e.images != NULL;
    out->set = out->is_image ? e.images : e.texts;
    e.images = e.texts = NULL;
done:
    pnb__encoded_reset(&e);
    pnb__inputs_reset(&in);
    return status;
}

static pnb_status read_numbers(const json_t *list, size_t n, const char *field, float *out,
                               pnb_error *err)
{
    if (json_array_size(list) != n)
        return pnb__fail(err, PNB_SHAPE, "'%s' has %zu numbers, the model's embeddings have %zu",
                         field, json_array_size(list), n);
    for (size_t i = 0; i < n; i++) {
        const json_t *x = json_array_get(list, i);
        out[i] = (float)json_number_value(x);
        if (!json_is_number(x) || !isfinite(out[i]))
            return pnb__fail(err, PNB_FORMAT, "'%s' has at %zu no number that fits f32", field, i);
    }
    return PNB_OK;
}

static pnb_status check_length(const pnb_embeddings *set, pnb_error *err)
{
    double sum = 0;
    for (size_t i = 0; i < set->dim; i++)
        sum += (double)set->mean[i] * (double)set->mean[i];
    if (fabs(sqrt(sum) - 1) <= 1e-3)
        return PNB_OK;
    return pnb__fail(err, PNB_ARG,
                     "'vector' has the length %g: the model's embeddings are of length 1",
                     sqrt(sum));
}

pnb_status pnb__query_of_vector(const pnb__served *s, const json_t *mean, const json_t *log_var,
                                bool is_image, pnb__query_row *out, pnb_error *err)
{
    pnb_encode_side side = is_image ? PNB_ENCODE_IMAGES : PNB_ENCODE_TEXTS;
    size_t dim = pnb__encoder_dim(s->encoder, side);
    pnb_embeddings *set = NULL;
    pnb_status status;
    PNB_TRY(
        pnb_embeddings_create(&set, log_var != NULL ? PNB_GAUSSIAN_DIAG : PNB_POINT, 1, dim, err));
    PNB_TRY(read_numbers(mean, dim, "vector", set->mean, err));
    if (log_var != NULL)
        PNB_TRY(read_numbers(log_var, dim, "log_var", set->log_var, err));
    if (pnb__encoder_family(s->encoder, side) != PNB_GEN_GAUSSIAN)
        PNB_TRY(check_length(set, err));
    pnb_encoder_describe(s->encoder, side, 0, &set->info);
    *out = (pnb__query_row){.set = set, .is_image = is_image};
    return PNB_OK;
done:
    pnb_embeddings_free(set);
    return status;
}

pnb_status pnb__query_of_id(const pnb__gallery *g, const char *id, pnb__query_row *out,
                            pnb_error *err)
{
    pnb_status status = g->calls->find(g->self, id, &out->row, err);
    if (status != PNB_OK)
        return status;
    out->is_row = true;
    out->is_image = strcmp(g->modality, "image") == 0;
    return g->calls->take(g->self, &out->row, 1, &out->set, err);
}

/* ---- what was found ---- */

pnb_status pnb__server_search(pnb__served *s, const pnb__gallery *g, const pnb__query_row *query,
                              const pnb__gallery_ask *ask, pnb__found *found, size_t *n,
                              pnb__gallery_way *way, pnb_error *err)
{
    double begin = pnb__now_s();
    pnb__gallery_ask more = *ask;
    size_t n_kept = 0, n_rows = 0, wanted = ask->k + query->is_row;
    *way = (pnb__gallery_way){.measure = ""};
    pnb_status status = g->calls->count(g->self, &n_rows, err);
    more.k = PNB_MIN(wanted, n_rows);
    if (status == PNB_OK)
        status = g->calls->search(g->self, query->set, &more, found, n, way, err);
    pnb__metrics_stage(&s->server->metrics, PNB__STAGE_SEARCH, pnb__now_s() - begin);
    for (size_t i = 0; status == PNB_OK && i < *n && n_kept < ask->k; i++)
        if (!query->is_row || found[i].row != query->row)
            found[n_kept++] = found[i];
    *n = status == PNB_OK ? n_kept : 0;
    return status;
}

pnb_status pnb__cut_found(const pnb__found *found, size_t *n, double least, pnb_error *err)
{
    size_t n_likely = 0;
    if (isnan(least) || *n == 0)
        return PNB_OK;
    if (isnan(found[0].p_match))
        return pnb__fail(err, PNB_ARG,
                         "'min_probability': nothing says what a score of such queries is worth "
                         "here; fit it with `penumbra calibrate`");
    while (n_likely < *n && found[n_likely].p_match >= least)
        n_likely++;
    *n = n_likely;
    return PNB_OK;
}

static pnb_status has_thumbnail(const pnb__gallery *g, size_t row, bool *has, pnb_error *err)
{
    pnb__buf image = {0};
    pnb_error why = PNB_ERROR_INIT;
    *has = false;
    if (g->calls->thumbnail == NULL)
        return PNB_OK;
    pnb_status status = g->calls->thumbnail(g->self, row, &image, &why);
    *has = status == PNB_OK;
    pnb__buf_reset(&image);
    return *has || status == PNB_NOT_FOUND ? PNB_OK : pnb__fail(err, status, "%s", why.text);
}

pnb_status pnb__found_put(const pnb__gallery *g, const pnb__found *found, bool thumbnails,
                          pnb__buf *b, pnb_error *err)
{
    bool has = false;
    pnb_status status = thumbnails ? has_thumbnail(g, found->row, &has, err) : PNB_OK;
    if (status != PNB_OK)
        return status;
    pnb__json_put(b, "\"row\":%zu,\"uncertainty\":%f,", found->row, found->uncertainty);
    if (thumbnails)
        pnb__json_put(b, "\"thumbnail\":%i,", has);
    return g->calls->put_fields(g->self, found->row, b, err);
}
