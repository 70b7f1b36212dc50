/* Embedding sets for other people's tools: .npy with sidecars, and .jsonl.
 *
 * Image-text tools keep one float row per sample in x.npy, in the order of their metadata. The
 * further parameters of a family go beside it under the same stem; x_var.npy is understood as well
 * as x_logvar.npy. Sidecars of another family that are already there would be taken for this set's
 * when it is read again, so they stop the saving. Where the rows come from is x.json's to tell
 * (embeddings_origin.c); without it the arrays decide the family and the rest is unknown. */
#include <math.h>
#include <string.h>

#include "io/json/json.h"
#include "io/tables/npy.h"
#include "sets/embeddings.h"
#include "sets/embeddings_origin.h"

/* ---- saving ---- */

static pnb_status sidecar_path(char **out, const char *path, const char *sidecar, pnb_error *err)
{
    char ending[32];
    snprintf(ending, sizeof(ending), "%s.npy", sidecar);
    return pnb__swap_suffix(out, path, ".npy", ending, err);
}

static pnb_status refuse_sidecar(const char *path, const char *sidecar, pnb_error *err)
{
    char *other = NULL;
    pnb_status status = sidecar_path(&other, path, sidecar, err);
    if (status == PNB_OK && pnb__path_is_file(other))
        status = pnb__fail(err, PNB_EXISTS,
                           "%s belongs to another set and would be read with this one; remove it",
                           other);
    pnb__free(other);
    return status;
}

static pnb_status refuse_foreign_sidecars(const pnb_embeddings *e, const char *path, pnb_error *err)
{
    for (int i = 1; i < PNB__N_EMBEDDING_ARRAYS; i++) {
        if (pnb__embedding_has_array(e, i))
            continue;
        pnb_status status = refuse_sidecar(path, pnb__embedding_array_at(i)->sidecar, err);
        if (status != PNB_OK)
            return status;
    }
    return refuse_sidecar(path, "_var", err);
}

/* Files of one set while they are written: names first, the means last, for they stand for it. */
typedef struct npy_files {
    pnb__ids_writer ids;
    pnb__out_file origin, arrays[PNB__N_EMBEDDING_ARRAYS];
} npy_files;

static pnb_status write_ids(npy_files *files, const pnb_embeddings *e, const char *path,
                            pnb_error *err)
{
    char *ids_path = NULL;
    pnb_status status;
    PNB_TRY(pnb__swap_suffix(&ids_path, path, ".npy", ".ids.jsonl", err));
    PNB_TRY(pnb__ids_writer_open(&files->ids, ids_path, err));
    status = pnb__ids_writer_append(&files->ids, e, err);
done:
    pnb__free(ids_path);
    return status;
}

static pnb_status write_array(npy_files *files, const pnb_embeddings *e, int which,
                              const char *path, pnb_error *err)
{
    char *array_path = NULL;
    pnb_array_view view = pnb__embedding_view(e, which, e->n);
    pnb_status status;
    PNB_TRY(sidecar_path(&array_path, path, pnb__embedding_array_at(which)->sidecar, err));
    PNB_TRY(pnb__out_open(&files->arrays[which], array_path, err));
    status = pnb__npy_write(&files->arrays[which], &view, err);
done:
    pnb__free(array_path);
    return status;
}

static pnb_status commit_files(npy_files *files, pnb_error *err)
{
    pnb__out_file *all[2 + PNB__N_EMBEDDING_ARRAYS] = {&files->ids.out, &files->origin};
    for (int i = 0; i < PNB__N_EMBEDDING_ARRAYS; i++)
        if (files->arrays[i].file != NULL)
            all[1 + PNB__N_EMBEDDING_ARRAYS - i] = &files->arrays[i];
    return pnb__out_commit_all(all, PNB_COUNT(all), err);
}

pnb_status pnb_embeddings_save_npy(const pnb_embeddings *e, const char *path, pnb_error *err)
{
    npy_files files = {0};
    pnb_status status;
    PNB_TRY(pnb_embeddings_check_values(e, err));
    PNB_TRY(refuse_foreign_sidecars(e, path, err));
    PNB_TRY(pnb__origin_check_free(path, err));
    PNB_TRY(write_ids(&files, e, path, err));
    PNB_TRY(pnb__origin_write(e, path, &files.origin, err));
    for (int i = 0; i < PNB__N_EMBEDDING_ARRAYS; i++)
        if (pnb__embedding_has_array(e, i))
            PNB_TRY(write_array(&files, e, i, path, err));
    status = commit_files(&files, err);
done:
    pnb__ids_writer_abort(&files.ids);
    pnb__out_abort(&files.origin);
    for (int i = 0; i < PNB__N_EMBEDDING_ARRAYS; i++)
        pnb__out_abort(&files.arrays[i]);
    return status;
}

static void append_floats(pnb__buf *b, const float *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char text[24];
        snprintf(text, sizeof(text), "%.9g", (double)values[i]);
        for (char *p = text; *p != '\0'; p++) {
            if (*p == ',') /* decimal comma of a host program's locale */
                *p = '.';
        }
        pnb__buf_printf(b, "%s%s", i > 0 ? "," : "", text);
    }
}

static pnb_status append_row(pnb__buf *b, const pnb_embeddings *e, size_t row, pnb_error *err)
{
    pnb_status status = pnb__embeddings_append_names(b, e, row, row, err);
    pnb__buf_printf(b, ", \"family\": \"%s\"", pnb_family_name(e->family));
    for (int i = 0; i < PNB__N_EMBEDDING_ARRAYS; i++) {
        const pnb__embedding_array *array = pnb__embedding_array_at(i);
        if (!pnb__embedding_has_array(e, i))
            continue;
        const float *values = pnb__embedding_values(e, i);
        pnb__buf_printf(b, ", \"%s\": %s", array->name, array->is_per_row ? "" : "[");
        append_floats(b, values + (array->is_per_row ? row : row * e->dim),
                      array->is_per_row ? 1 : e->dim);
        pnb__buf_puts(b, array->is_per_row ? "" : "]");
    }
    pnb__buf_puts(b, "}\n");
    return status;
}

pnb_status pnb__embeddings_stream_npy(const pnb_embeddings *e, pnb__out_file *f, pnb_error *err)
{
    pnb_status status = pnb_embeddings_check_values(e, err);
    for (int i = 0; i < PNB__N_EMBEDDING_ARRAYS && status == PNB_OK; i++) {
        pnb_array_view view = pnb__embedding_view(e, i, e->n);
        if (pnb__embedding_has_array(e, i))
            status = pnb__npy_write(f, &view, err);
    }
    if (status == PNB_OK)
        return pnb__out_commit(f, err);
    pnb__out_abort(f);
    return status;
}

pnb_status pnb__embeddings_stream_jsonl(const pnb_embeddings *e, pnb__out_file *f, pnb_error *err)
{
    pnb__buf line = {0};
    pnb_status status;
    PNB_TRY(pnb_embeddings_check_values(e, err));
    for (size_t i = 0; i < e->n; i++) {
        line.size = 0;
        PNB_TRY(append_row(&line, e, i, err));
        if (line.failed) {
            status = pnb__fail_nomem(err, line.size);
            goto done;
        }
        if (fwrite(line.data, 1, line.size, f->file) != line.size) {
            status = pnb__fail_errno(err, "cannot write", f->path);
            goto done;
        }
    }
    status = pnb__out_commit(f, err);
done:
    pnb__out_abort(f);
    pnb__buf_reset(&line);
    return status;
}

pnb_status pnb_embeddings_save_jsonl(const pnb_embeddings *e, const char *path, pnb_error *err)
{
    pnb__out_file f = {0};
    pnb_status status = pnb__out_open(&f, path, err);
    return status == PNB_OK ? pnb__embeddings_stream_jsonl(e, &f, err) : status;
}

/* ---- loading ---- */

/* Reads a sidecar if it is there; *found tells. */
static pnb_status load_sidecar(pnb_npy *out, bool *found, const char *path, const char *sidecar,
                               pnb_error *err)
{
    char *array_path = NULL;
    *found = false;
    pnb_status status = sidecar_path(&array_path, path, sidecar, err);
    if (status == PNB_OK && pnb__path_is_file(array_path)) {
        status = pnb_npy_load(out, array_path, err);
        *found = status == PNB_OK;
    }
    pnb__free(array_path);
    return status;
}

static pnb_status fill(pnb_embeddings *e, int which, const pnb_npy *from, const char *path,
                       pnb_error *err)
{
    const pnb_array_view *a = &from->view;
    pnb_array_view wanted = pnb__embedding_view(e, which, e->n);
    bool fits = a->n_dims == wanted.n_dims && a->shape[0] == wanted.shape[0] &&
                (a->n_dims == 1 || a->shape[1] == wanted.shape[1]);
    if (!fits)
        return pnb__fail(err, PNB_SHAPE, "%s: %s is not of the shape of the means", path,
                         wanted.name);
    if (!pnb_dtype_is_float(a->dtype))
        return pnb__fail(err, PNB_DTYPE, "%s: %s is %s, wanted floating point", path, wanted.name,
                         pnb_dtype_name(a->dtype));
    return pnb_array_to_f32(a, *pnb__embedding_field(e, which), err);
}

enum { LOG_VAR = 1, KAPPA = 2, INV_ALPHA = 3, BETA = 4, N_SIDECARS = 4 }; /* in the list */

/* Sidecars that decide the family, in order of preference. */
typedef struct sidecar {
    const char *ending;
    pnb_family family;
    int which;
} sidecar;

static const sidecar sidecars[N_SIDECARS] = {
    {"_logvar", PNB_GAUSSIAN_DIAG, LOG_VAR},
    {"_var", PNB_GAUSSIAN_DIAG, LOG_VAR},
    {"_kappa", PNB_VMF, KAPPA},
    {"_invalpha", PNB_GEN_GAUSSIAN, INV_ALPHA},
};

/* The second array of a generalised Gaussian. */
static pnb_status load_beta(pnb_embeddings *e, const char *path, pnb_error *err)
{
    pnb_npy beta = {0};
    bool found = false;
    pnb_status status;
    PNB_TRY(load_sidecar(&beta, &found, path, "_beta", err));
    status = found ? fill(e, BETA, &beta, path, err)
                   : pnb__fail(err, PNB_NOT_FOUND,
                               "%s: has _invalpha.npy beside it but no _beta.npy; a generalised "
                               "Gaussian needs both",
                               path);
done:
    pnb_npy_reset(&beta);
    return status;
}

static pnb_status load_epistemic(pnb_embeddings *e, const char *path, pnb_error *err)
{
    const char *ending = pnb__embedding_array_at(PNB__EPISTEMIC)->sidecar;
    pnb_npy values = {0};
    bool found = false;
    pnb_status status;
    PNB_TRY(load_sidecar(&values, &found, path, ending, err));
    if (found)
        PNB_TRY(pnb_embeddings_add_epistemic(e, err));
    if (found)
        status = fill(e, PNB__EPISTEMIC, &values, path, err);
done:
    pnb_npy_reset(&values);
    return status;
}

/* Names of the rows, which an .npy set may lack; those it has must be its own. */
static pnb_status load_names(pnb_embeddings *e, const pnb__origin *origin, const char *path,
                             pnb_error *err)
{
    char *ids_path = NULL, hash[65];
    pnb_status status = pnb__swap_suffix(&ids_path, path, ".npy", ".ids.jsonl", err);
    if (status != PNB_OK || !pnb__path_is_file(ids_path))
        goto done;
    status = pnb__ids_load(e, ids_path, err);
    if (status != PNB_OK || !origin->is_known || origin->ids_sha256[0] == '\0')
        goto done;
    pnb__ids_hash(e, hash);
    if (strcmp(hash, origin->ids_sha256) != 0)
        status = pnb__fail(err, PNB_FORMAT,
                           "%s: the ids are not those %s was written with; write the set again",
                           ids_path, path);
done:
    pnb__free(ids_path);
    return status;
}

/* The family by the arrays that are there, told apart further by what x.json says; the two must
 * not contradict each other, or x.json is of another set. */
static pnb_status settle_family(pnb_family *family, const pnb__origin *origin, const pnb_npy *mean,
                                const char *path, pnb_error *err)
{
    const int64_t *shape = mean->view.shape;
    if (!origin->is_known)
        return PNB_OK;
    bool same_arrays =
        origin->family == *family || (*family == PNB_VMF && origin->family == PNB_POWER_SPHERICAL);
    if (!same_arrays)
        return pnb__fail(err, PNB_FORMAT,
                         "%s: the .json beside it says %s, its arrays are those of a %s set; bring "
                         "the arrays together again, or remove a .json of another set",
                         path, pnb_family_name(origin->family), pnb_family_name(*family));
    if ((origin->n > 0 && (int64_t)origin->n != shape[0]) ||
        (origin->dim > 0 && (int64_t)origin->dim != shape[1]))
        return pnb__fail(err, PNB_SHAPE,
                         "%s: %lld rows of width %lld, the .json beside it is of %zu of width %zu; "
                         "write the set again, or remove a .json of another set",
                         path, (long long)shape[0], (long long)shape[1], origin->n, origin->dim);
    *family = origin->family;
    return PNB_OK;
}

pnb_status pnb_embeddings_load_npy(pnb_embeddings **out, const char *path, pnb_error *err)
{
    pnb_npy mean = {0}, more = {0};
    pnb__origin origin = {0};
    pnb_embeddings *e = NULL;
    bool found = false;
    size_t kind = 0;
    pnb_status status;
    if (out == NULL || path == NULL)
        return pnb__fail(err, PNB_ARG, "embeddings: out or path is NULL");
    PNB_TRY(pnb_npy_load(&mean, path, err));
    if (mean.view.n_dims != 2 || mean.view.n_bytes == 0) {
        status = pnb__fail(err, PNB_SHAPE, "%s: %d dimensions, wanted rows and columns", path,
                           mean.view.n_dims);
        goto done;
    }
    for (; kind < N_SIDECARS && !found; kind++)
        PNB_TRY(load_sidecar(&more, &found, path, sidecars[kind].ending, err));
    const sidecar *with = found ? &sidecars[kind - 1] : NULL;
    pnb_family family = with != NULL ? with->family : PNB_POINT;
    PNB_TRY(pnb__origin_load(&origin, path, err));
    PNB_TRY(settle_family(&family, &origin, &mean, path, err));
    PNB_TRY(pnb_embeddings_create(&e, family, (size_t)mean.view.shape[0],
                                  (size_t)mean.view.shape[1], err));
    if (origin.is_known)
        e->info = origin.info;
    PNB_TRY(fill(e, 0, &mean, path, err));
    if (with != NULL)
        PNB_TRY(fill(e, with->which, &more, path, err));
    if (e->family == PNB_GEN_GAUSSIAN) {
        PNB_TRY(load_beta(e, path, err));
        PNB_TRY(load_epistemic(e, path, err));
    }
    for (size_t i = 0; with != NULL && strcmp(with->ending, "_var") == 0 && i < e->n * e->dim; i++)
        e->log_var[i] = logf(e->log_var[i]);
    PNB_TRY(load_names(e, &origin, path, err));
    status = pnb_embeddings_check_values(e, err);
    if (status != PNB_OK) {
        pnb__error_prefix(err, "%s", path);
        goto done;
    }
    *out = e;
    e = NULL;
done:
    pnb_embeddings_free(e);
    pnb_npy_reset(&mean);
    pnb_npy_reset(&more);
    return status;
}
