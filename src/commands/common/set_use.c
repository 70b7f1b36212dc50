/* Embedding sets as commands load them, and what is said of them to the user.
 *
 * A set that does not tell which weights made it (an .npy file without x.json, another program's
 * safetensors) is compared on the user's word, and the result says so. */
#include "commands/common/set_use.h"
#include "base/grow.h"
#include "penumbra/model.h"
#include "prob/measure.h"
#include "sets/provenance.h"
#include "sets/set_rows.h"
#include "sets/settle.h"

#include <math.h>
#include <string.h>

/* Rows of a set without names are called by their numbers, as in files of ids. */
static pnb_status number_rows(pnb_embeddings *set, pnb_error *err)
{
    char number[24];
    pnb_status status = PNB_OK;
    for (size_t i = 0; status == PNB_OK && i < set->n; i++) {
        if (set->ids != NULL && set->ids[i] != NULL)
            continue;
        snprintf(number, sizeof number, "%zu", i);
        status = pnb_embeddings_set_id(set, i, number, err);
    }
    return status;
}

/* Each path once, however often a command reads it. */
pnb_status pnb__set_note(pnb__app *app, const char *path, const pnb_embeddings *set)
{
    if (pnb__set_is_known(set))
        return PNB_OK;
    for (size_t i = 0; i < app->n_unknown_sets; i++)
        if (strcmp(app->unknown_sets[i], path) == 0)
            return PNB_OK;
    char *copy = pnb__strdup(path);
    if (copy == NULL)
        return pnb__fail_nomem(&app->err, strlen(path));
    pnb_status status = PNB_PUSH(app->unknown_sets, app->n_unknown_sets, &app->err, copy);
    if (status != PNB_OK)
        pnb__free(copy);
    return status;
}

static const char *precision_word(const char *precision)
{
    return precision[0] == '\0' ? pnb_precision_name(PNB_PRECISION_FP32) : precision;
}

void pnb__note_precision(pnb__app *app, const char *what, const pnb_embeddings *set)
{
    const pnb_embeddings_info *info = &set->info;
    if (info->weights_sha256[0] == '\0' || app->has_mixed_precision)
        return;
    if (app->first_weights[0] == '\0') {
        memcpy(app->first_weights, info->weights_sha256, sizeof app->first_weights);
        memcpy(app->first_precision, info->precision, sizeof app->first_precision);
    }
    if (strcmp(app->first_weights, info->weights_sha256) != 0 ||
        strcmp(app->first_precision, info->precision) == 0)
        return;
    app->has_mixed_precision = true;
    pnb__say(app,
             "note: %s was embedded in precision %s, what came before it in %s; rows of one model "
             "are compared all the same",
             what, precision_word(info->precision), precision_word(app->first_precision));
}

static pnb_status load(pnb_embeddings **out, const char *path, bool is_mapped, pnb__app *app)
{
    pnb_error *err = &app->err;
    pnb_embeddings_load_opts opts = pnb_embeddings_load_opts_default();
    opts.map = is_mapped;
    pnb_status status = pnb__ends_with(path, ".npy")
                            ? pnb_embeddings_load_npy(out, path, err)
                            : pnb_embeddings_load_with(out, path, &opts, err);
    if (status == PNB_OK)
        status = number_rows(*out, err);
    if (status == PNB_OK)
        status = pnb__set_note(app, path, *out);
    if (status == PNB_OK)
        pnb__note_precision(app, path, *out);
    if (status != PNB_OK) {
        pnb_embeddings_free(*out);
        *out = NULL;
    }
    return status;
}

pnb_status pnb__set_load(pnb_embeddings **out, const char *path, pnb__app *app)
{
    return load(out, path, false, app);
}

pnb_status pnb__set_map(pnb_embeddings **out, const char *path, pnb__app *app)
{
    return load(out, path, true, app);
}

void pnb__check_means(pnb__app *app, pnb_measure measure, const char *path, const pnb_rows *rows)
{
    size_t n_off = 0, first = 0;
    double first_norm = 0;
    if (!pnb__measure_reads_lengths(measure))
        return;
    for (size_t i = 0; i < rows->n; i++) {
        double square = 0;
        for (size_t d = 0; d < rows->dim; d++)
            square += (double)rows->mean[i * rows->dim + d] * rows->mean[i * rows->dim + d];
        if (fabs(sqrt(square) - 1) <= 0.01)
            continue;
        if (n_off++ == 0) {
            first = i;
            first_norm = sqrt(square);
        }
    }
    if (n_off > 0)
        pnb__warn(app,
                  "%s: the means of %zu of %zu rows are not of unit length (row %zu: %.4g); they "
                  "are compared as they are, --measure mean normalises",
                  path, n_off, rows->n, first, first_norm);
}

void pnb__put_measure(pnb__result *r, const char *label, pnb_measure measure,
                      const pnb_embeddings *const sets[2], const char *const words[2])
{
    pnb__result_text(r, "measure", label, pnb_measure_name(measure));
    for (int s = 0; s < 2; s++)
        if (pnb__is_taken_as_points(measure, sets[s], sets[1 - s]))
            pnb__result_text(r, "taken_as_points", "by their means alone", words[s]);
}

const pnb_embeddings_info *pnb__set_origin(const pnb_embeddings *a, const pnb_embeddings *b)
{
    return b->info.adapters.n > a->info.adapters.n ? &b->info : &a->info;
}

void pnb__set_pretrained(const pnb_embeddings_info *info, char text[PNB__PRETRAINED_BYTES])
{
    size_t used = (size_t)snprintf(text, PNB__PRETRAINED_BYTES, "%s", info->weights_sha256);
    for (size_t i = 0; i < info->adapters.n; i++)
        used += (size_t)snprintf(text + used, PNB__PRETRAINED_BYTES - used, "+%s-%.12s",
                                 info->adapters.items[i].name, info->adapters.items[i].sha256);
}

void pnb__put_adapters(const pnb_adapter_links *links, pnb__result *r)
{
    if (links->n > 0)
        pnb__result_value(r, PNB__ADAPTERS_KEY, pnb__adapter_links_json(links));
}
