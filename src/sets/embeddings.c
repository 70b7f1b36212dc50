/* The embedding set in memory: arrays by family, names by row, selecting and joining.
 *
 * One table says which arrays a family has, their shape and their range; everything that loops over
 * arrays loops over it. Files are in embeddings_file.c, embeddings_ids.c and embeddings_npy.c; what
 * the numbers mean is the matter of src/prob. */
#include "sets/embeddings.h"

#include <math.h>
#include <string.h>

#include "base/names.h"
#include "io/byte_names.h"
#include "io/json/json.h"
#include "sets/provenance.h"

#define FAMILY_BIT(name) (1u << PNB_##name)
#define ALL_FAMILIES ((1u << PNB_N_FAMILIES) - 1u)

static const pnb__embedding_array arrays[PNB__N_EMBEDDING_ARRAYS] = {
    {"mean", "", ALL_FAMILIES, false, false, true, false},
    {"log_var", "_logvar", FAMILY_BIT(GAUSSIAN_DIAG), false, false, true, false},
    {"kappa", "_kappa", FAMILY_BIT(VMF) | FAMILY_BIT(POWER_SPHERICAL), true, true, true, false},
    {"inv_alpha", "_invalpha", FAMILY_BIT(GEN_GAUSSIAN), false, true, false, false},
    {"beta", "_beta", FAMILY_BIT(GEN_GAUSSIAN), false, true, false, false},
    {"epistemic", "_epistemic", FAMILY_BIT(GEN_GAUSSIAN), false, true, true, true},
};

/* ---- families and arrays ---- */

static bool is_family(pnb_family family)
{
    return (unsigned)family < (unsigned)PNB_N_FAMILIES;
}

const char *pnb_family_name(pnb_family family)
{
    return pnb__name_at(PNB_NAMES(PNB_FAMILY_LIST), family, "UNKNOWN");
}

bool pnb_family_from_name(pnb_family *out, const char *name)
{
    return pnb__name_choose(out, "family", PNB_NAMES(PNB_FAMILY_LIST), name, NULL) == PNB_OK;
}

int pnb__embeddings_version(const pnb_embeddings_info *info)
{
    return info->n_embeddings > 1 ? 3 : info->adapters.n > 0 ? 2 : 1;
}

const pnb__embedding_array *pnb__embedding_array_at(int which)
{
    return &arrays[which];
}

bool pnb__embedding_has_array(const pnb_embeddings *e, int which)
{
    bool is_of_family = (arrays[which].families >> e->family & 1u) != 0;
    return is_of_family && (!arrays[which].is_optional || e->has_epistemic);
}

float **pnb__embedding_field(pnb_embeddings *e, int which)
{
    float **fields[PNB__N_EMBEDDING_ARRAYS] = {&e->mean,      &e->log_var, &e->kappa,
                                               &e->inv_alpha, &e->beta,    &e->epistemic};
    return fields[which];
}

const float *pnb__embedding_values(const pnb_embeddings *e, int which)
{
    const float *const fields[PNB__N_EMBEDDING_ARRAYS] = {e->mean,      e->log_var, e->kappa,
                                                          e->inv_alpha, e->beta,    e->epistemic};
    return fields[which];
}

static size_t row_width(const pnb_embeddings *e, int which)
{
    return arrays[which].is_per_row ? 1 : e->dim;
}

size_t pnb__embedding_count(const pnb_embeddings *e, int which)
{
    return e->n * row_width(e, which);
}

pnb_array_view pnb__embedding_view(const pnb_embeddings *e, int which, size_t n)
{
    pnb_array_view view = {.name = arrays[which].name,
                           .dtype = PNB_F32,
                           .n_dims = arrays[which].is_per_row ? 1 : 2,
                           .data = pnb__embedding_values(e, which),
                           .n_bytes = n * row_width(e, which) * sizeof(float)};
    view.shape[0] = (int64_t)n;
    view.shape[1] = arrays[which].is_per_row ? 0 : (int64_t)e->dim;
    return view;
}

/* ---- life ---- */

pnb_status pnb__embeddings_create_bare(pnb_embeddings **out, pnb_family family, size_t n,
                                       size_t dim, pnb_error *err)
{
    size_t n_values = 0, bytes = 0;
    if (n == 0 || dim == 0 || !is_family(family))
        return pnb__fail(err, PNB_ARG,
                         "embedding set of %zu rows and width %zu, family %d: wanted "
                         "at least one of each and a family of the list",
                         n, dim, (int)family);
    if (pnb__mul_overflows(n, dim, &n_values) ||
        pnb__mul_overflows(n_values, sizeof(float), &bytes) || bytes > (size_t)PTRDIFF_MAX)
        return pnb__fail_nomem(err, SIZE_MAX);
    pnb_embeddings *e = pnb__alloc_zero(1, sizeof(*e));
    if (e == NULL)
        return pnb__fail_nomem(err, sizeof(*e));
    e->family = family;
    e->n = n;
    e->dim = dim;
    e->info.logit_scale = e->info.logit_bias = NAN;
    e->info.match_a = e->info.match_b = NAN;
    *out = e;
    return PNB_OK;
}

pnb_status pnb__embedding_alloc(pnb_embeddings *e, int which, pnb_error *err)
{
    size_t bytes = pnb__embedding_count(e, which) * sizeof(float);
    float *values = pnb__alloc_large(bytes); /* a search reads all of it, again and again */
    if (values == NULL)
        return pnb__fail_nomem(err, bytes);
    memset(values, 0, bytes);
    *pnb__embedding_field(e, which) = values;
    return PNB_OK;
}

pnb_status pnb_embeddings_create(pnb_embeddings **out, pnb_family family, size_t n, size_t dim,
                                 pnb_error *err)
{
    pnb_embeddings *e = NULL;
    pnb_status status;
    if (out == NULL)
        return pnb__fail(err, PNB_ARG, "embeddings: out is NULL");
    PNB_TRY(pnb__embeddings_create_bare(&e, family, n, dim, err));
    for (int i = 0; i < PNB__N_EMBEDDING_ARRAYS; i++)
        if (pnb__embedding_has_array(e, i))
            PNB_TRY(pnb__embedding_alloc(e, i, err));
    *out = e;
    e = NULL;
done:
    pnb_embeddings_free(e);
    return status;
}

pnb_status pnb_embeddings_add_epistemic(pnb_embeddings *e, pnb_error *err)
{
    if (e->family != PNB_GEN_GAUSSIAN || e->has_epistemic)
        return pnb__fail(err, PNB_ARG,
                         "a %s set%s: epistemic variances are a further array of gen_gaussian sets",
                         pnb_family_name(e->family), e->has_epistemic ? " that has them" : "");
    pnb_status status = pnb__embedding_alloc(e, PNB__EPISTEMIC, err);
    e->has_epistemic = status == PNB_OK;
    return status;
}

/* A set of the family, width, further array and info of another one. */
static pnb_status create_like(pnb_embeddings **out, const pnb_embeddings *e, size_t n,
                              pnb_error *err)
{
    pnb_embeddings *made = NULL;
    pnb_status status;
    PNB_TRY(pnb_embeddings_create(&made, e->family, n, e->dim, err));
    if (e->has_epistemic)
        PNB_TRY(pnb_embeddings_add_epistemic(made, err));
    made->info = e->info;
    *out = made;
    made = NULL;
done:
    pnb_embeddings_free(made);
    return status;
}

static void free_names(char **names, size_t n)
{
    for (size_t i = 0; i < n && names != NULL; i++)
        pnb__free(names[i]);
    pnb__free(names);
}

void pnb_embeddings_free(pnb_embeddings *e)
{
    if (e == NULL)
        return;
    for (int i = 0; i < PNB__N_EMBEDDING_ARRAYS; i++)
        if ((e->mapped_arrays >> i & 1u) == 0)
            pnb__free_aligned(*pnb__embedding_field(e, i));
    pnb_safetensors_free(e->map);
    free_names(e->ids, e->n);
    free_names(e->paths, e->n);
    free_names(e->texts, e->n);
    free_names(e->extras, e->n);
    pnb__free(e);
}

/* ---- names ---- */

/* Stores a copy of `text` (or nothing) as the name of one row. */
static pnb_status set_name(char ***names, size_t n, size_t row, const char *text, pnb_error *err)
{
    char *copy = NULL;
    if (*names == NULL && text != NULL) {
        *names = pnb__alloc_zero(n, sizeof(**names));
        if (*names == NULL)
            return pnb__fail_nomem(err, n * sizeof(**names));
    }
    if (text != NULL && (copy = pnb__strdup(text)) == NULL)
        return pnb__fail_nomem(err, strlen(text) + 1);
    if (*names != NULL) {
        pnb__free((*names)[row]);
        (*names)[row] = copy;
    }
    return PNB_OK;
}

/* A name of a file may be any bytes. */
static pnb_status set_name_of(pnb_embeddings *e, char ***names, size_t row, const char *text,
                              pnb_error *err)
{
    if (row >= e->n)
        return pnb__fail(err, PNB_ARG, "row %zu of an embedding set of %zu", row, e->n);
    return set_name(names, e->n, row, text, err);
}

static pnb_status set_checked(pnb_embeddings *e, char ***names, size_t row, const char *text,
                              pnb_error *err)
{
    if (row < e->n && text != NULL && !pnb__utf8_valid(text, strlen(text)))
        return pnb__fail(err, PNB_ARG, "row %zu: the name is not valid UTF-8", row);
    return set_name_of(e, names, row, text, err);
}

pnb_status pnb_embeddings_set_id(pnb_embeddings *e, size_t row, const char *id, pnb_error *err)
{
    return set_name_of(e, &e->ids, row, id, err);
}

pnb_status pnb_embeddings_set_path(pnb_embeddings *e, size_t row, const char *path, pnb_error *err)
{
    return set_name_of(e, &e->paths, row, path, err);
}

pnb_status pnb_embeddings_set_text(pnb_embeddings *e, size_t row, const char *text, pnb_error *err)
{
    return set_checked(e, &e->texts, row, text, err);
}

static pnb_status check_extra(const char *extra, size_t row, pnb_error *err)
{
    json_t *object = NULL;
    pnb_error inner = PNB_ERROR_INIT;
    pnb_status status = pnb__json_load_bytes(&object, extra, strlen(extra), "extra", &inner);
    if (status == PNB_NOMEM)
        return pnb__fail(err, PNB_NOMEM, "%s", inner.text);
    if (status != PNB_OK || !json_is_object(object) || json_object_get(object, "id") != NULL ||
        json_object_get(object, "path") != NULL || json_object_get(object, "text") != NULL)
        status = pnb__fail(err, PNB_ARG,
                           "row %zu: extra fields are not a JSON object without id, path and "
                           "text: %.60s",
                           row, extra);
    json_decref(object);
    return status;
}

pnb_status pnb_embeddings_set_extra(pnb_embeddings *e, size_t row, const char *extra,
                                    pnb_error *err)
{
    char *hidden = extra != NULL ? pnb__strdup(extra) : NULL;
    pnb_status status = PNB_OK;
    if (extra != NULL && hidden == NULL)
        return pnb__fail_nomem(err, strlen(extra) + 1);
    if (hidden != NULL) {
        pnb__byte_names_hide(hidden, strlen(hidden)); /* any reader of JSON takes it then */
        status = check_extra(hidden, row, err);
    }
    if (status == PNB_OK)
        status = set_checked(e, &e->extras, row, hidden, err);
    pnb__free(hidden);
    return status;
}

/* ---- checks ---- */

static bool is_in_range(const pnb__embedding_array *array, float x)
{
    if (!isfinite(x))
        return false;
    return !array->has_minimum || x > 0.0f || (array->is_zero_allowed && x >= 0.0f);
}

pnb_status pnb_embeddings_check_values(const pnb_embeddings *e, pnb_error *err)
{
    for (int i = 0; i < PNB__N_EMBEDDING_ARRAYS; i++) {
        const float *values = pnb__embedding_values(e, i);
        if (!pnb__embedding_has_array(e, i))
            continue;
        if (values == NULL)
            return pnb__fail(err, PNB_ARG, "a %s set without %s", pnb_family_name(e->family),
                             arrays[i].name);
        size_t n = pnb__embedding_count(e, i), width = row_width(e, i);
        for (size_t j = 0; j < n; j++) {
            if (!is_in_range(&arrays[i], values[j]))
                return pnb__fail(err, PNB_NUMERIC, "%s of row %zu, column %zu is %g, wanted %s",
                                 arrays[i].name, j / width, j % width, (double)values[j],
                                 !arrays[i].has_minimum      ? "a finite number"
                                 : arrays[i].is_zero_allowed ? "0 or more"
                                                             : "more than 0");
        }
    }
    return PNB_OK;
}

static bool is_known_different(const char *a, const char *b)
{
    return a[0] != '\0' && b[0] != '\0' && strcmp(a, b) != 0;
}

pnb_status pnb_embeddings_check_mix(const pnb_embeddings *a, const pnb_embeddings *b,
                                    pnb_error *err)
{
    if (a->dim != b->dim)
        return pnb__fail(err, PNB_SHAPE, "embeddings of width %zu and %zu cannot be compared",
                         a->dim, b->dim);
    return pnb__provenance_check_mix(&a->info, &b->info, err);
}

pnb_status pnb__embeddings_check_same(const pnb_embeddings *a, const pnb_embeddings *b,
                                      pnb_error *err)
{
    if (a->family != b->family)
        return pnb__fail(err, PNB_SHAPE, "families %s and %s cannot be in one set",
                         pnb_family_name(a->family), pnb_family_name(b->family));
    if (a->has_epistemic != b->has_epistemic)
        return pnb__fail(err, PNB_SHAPE,
                         "a set with epistemic variances and one without cannot be in one set");
    if (is_known_different(a->info.modality, b->info.modality))
        return pnb__fail(err, PNB_ARG, "%s and %s embeddings cannot be in one set",
                         a->info.modality, b->info.modality);
    if (is_known_different(a->info.preprocess, b->info.preprocess))
        return pnb__fail(err, PNB_ARG,
                         "differently preprocessed embeddings cannot be in one set: %.120s, %.120s",
                         a->info.preprocess, b->info.preprocess);
    pnb_status status = pnb_embeddings_check_mix(a, b, err);
    return status == PNB_OK ? pnb__provenance_check_same(&a->info, &b->info, err) : status;
}

/* ---- selecting and joining ---- */

/* Copies row `from` of e to row `to` of out, names included. */
static pnb_status copy_row(pnb_embeddings *out, size_t to, const pnb_embeddings *e, size_t from,
                           pnb_error *err)
{
    char ***targets[] = {&out->ids, &out->paths, &out->texts, &out->extras};
    char *const *sources[] = {e->ids, e->paths, e->texts, e->extras};
    for (int i = 0; i < PNB__N_EMBEDDING_ARRAYS; i++) {
        size_t width = row_width(e, i);
        if (pnb__embedding_has_array(e, i))
            memcpy(*pnb__embedding_field(out, i) + to * width,
                   pnb__embedding_values(e, i) + from * width, width * sizeof(float));
    }
    for (size_t i = 0; i < PNB_COUNT(targets); i++) {
        if (sources[i] == NULL || sources[i][from] == NULL)
            continue;
        pnb_status status = set_name(targets[i], out->n, to, sources[i][from], err);
        if (status != PNB_OK)
            return status;
    }
    return PNB_OK;
}

pnb_status pnb_embeddings_select(pnb_embeddings **out, const pnb_embeddings *e, const size_t *rows,
                                 size_t n_rows, pnb_error *err)
{
    pnb_embeddings *found = NULL;
    pnb_status status;
    if (rows == NULL || n_rows == 0)
        return pnb__fail(err, PNB_ARG, "no rows selected");
    for (size_t i = 0; i < n_rows; i++) {
        if (rows[i] >= e->n)
            return pnb__fail(err, PNB_ARG, "row %zu selected of an embedding set of %zu", rows[i],
                             e->n);
    }
    PNB_TRY(create_like(&found, e, n_rows, err));
    for (size_t i = 0; i < n_rows; i++)
        PNB_TRY(copy_row(found, i, e, rows[i], err));
    *out = found;
    found = NULL;
done:
    pnb_embeddings_free(found);
    return status;
}

pnb_status pnb_embeddings_concat(pnb_embeddings **out, const pnb_embeddings *const *sets,
                                 size_t n_sets, pnb_error *err)
{
    pnb_embeddings *found = NULL;
    size_t n = 0, row = 0;
    pnb_status status;
    if (sets == NULL || n_sets == 0)
        return pnb__fail(err, PNB_ARG, "no embedding sets to join");
    for (size_t i = 0; i < n_sets; i++) {
        PNB_TRY(pnb__embeddings_check_same(sets[0], sets[i], err));
        if (pnb__add_overflows(n, sets[i]->n, &n))
            return pnb__fail_nomem(err, SIZE_MAX);
    }
    PNB_TRY(create_like(&found, sets[0], n, err));
    for (size_t i = 1; i < n_sets; i++) /* rows of both kinds may stand together, but say so */
        if (strcmp(sets[0]->info.precision, sets[i]->info.precision) != 0)
            snprintf(found->info.precision, sizeof found->info.precision, "mixed");
    for (size_t i = 0; i < n_sets; i++) {
        for (size_t j = 0; j < sets[i]->n; j++)
            PNB_TRY(copy_row(found, row++, sets[i], j, err));
    }
    *out = found;
    found = NULL;
done:
    pnb_embeddings_free(found);
    return status;
}
