/* Hessian factors as BayesVLM's code writes them: A_img_analytic.pt, B_img_analytic.pt and the same
 * of txt, a tensor each, and prior_precision_analytic.json with lambda_img, n_img, lambda_txt and
 * n_txt. A is of the activations before the last projection, B of the embeddings: a folder fits the
 * rows of one released model, and widths are all that the files tell of it. */
#include <math.h>
#include <string.h>

#include "adapt/bayes/kronecker.h"
#include "io/json/json.h"
#include "penumbra/checkpoint.h"

static const char *const sides[] = {"img", "txt"};

static pnb_status read_values(double *out, const pnb_array_view *a, size_t d, const char *where,
                              pnb_error *err)
{
    if (a->n_dims != 2 || a->shape[0] != (int64_t)d || a->shape[1] != (int64_t)d)
        return pnb__fail(err, PNB_SHAPE,
                         "%s: a tensor of %d dimensions (%lld, %lld), these rows need (%zu, %zu): "
                         "is it of the model whose activations they are?",
                         where, a->n_dims, (long long)a->shape[0], (long long)a->shape[1], d, d);
    pnb_status status = pnb_array_to_f64(a, out, err);
    for (size_t i = 0; i < d * d && status == PNB_OK; i++)
        if (!isfinite(out[i]))
            status = pnb__fail(err, PNB_NUMERIC, "%s: number %zu is not finite", where, i);
    return status;
}

/* One file: <dir>/<factor>_<side>_analytic.pt */
static pnb_status read_factor(double *out, const char *dir, char factor, pnb_adapter_side side,
                              size_t d, pnb_error *err)
{
    char name[40];
    pnb_checkpoint *file = NULL;
    snprintf(name, sizeof name, "%c_%s_analytic.pt", factor, sides[side]);
    char *path = pnb__path_join(dir, name);
    pnb_status status = PNB_OK;
    if (path == NULL)
        return pnb__fail_nomem(err, strlen(dir));
    PNB_TRY(pnb_checkpoint_open(&file, path, err));
    if (pnb_checkpoint_count(file) != 1)
        status = pnb__fail(err, PNB_FORMAT, "%s: %zu tensors, wanted one", path,
                           pnb_checkpoint_count(file));
    else
        status = read_values(out, pnb_checkpoint_at(file, 0), d, path, err);
done:
    pnb_checkpoint_free(file);
    pnb__free(path);
    return status;
}

/* A number of prior_precision_analytic.json, above 0. */
static double read_number(pnb__jobj *o, const char *what, pnb_adapter_side side, pnb_error *err)
{
    char key[24];
    snprintf(key, sizeof key, "%s_%s", what, sides[side]);
    double value = pnb__json_get_double(o, key, (double)NAN, err);
    if (o->status == PNB_OK && !(value > 0.0 && isfinite(value)))
        o->status = pnb__fail(err, PNB_FORMAT, "%s: %s is missing or not above 0", o->where, key);
    return value;
}

static pnb_status read_prior(pnb__kronecker *k, const char *dir, pnb_adapter_side side,
                             pnb_error *err)
{
    json_t *root = NULL;
    char *path = pnb__path_join(dir, "prior_precision_analytic.json");
    pnb_status status = PNB_OK;
    if (path == NULL)
        return pnb__fail_nomem(err, strlen(dir));
    PNB_TRY(pnb__json_load_file(&root, path, 1 << 16, err));
    pnb__jobj o = pnb__json_object(root, path, err);
    k->lambda = read_number(&o, "lambda", side, err);
    k->n = read_number(&o, "n", side, err);
    status = o.status;
done:
    json_decref(root);
    pnb__free(path);
    return status;
}

pnb_status pnb__hessian_files_read(pnb__kronecker *k, const char *dir, pnb_adapter_side side,
                                   pnb_error *err)
{
    pnb_status status;
    PNB_TRY(read_prior(k, dir, side, err));
    PNB_TRY(read_factor(k->a, dir, 'A', side, k->p, err));
    status = read_factor(k->b, dir, 'B', side, k->q, err);
done:
    return status;
}
