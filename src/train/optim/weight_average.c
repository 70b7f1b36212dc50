/* The mean of weights over some steps (Izmailov et al. 2018), its exchange with the trained weights
 * and its file.
 *
 * The mean is a second set of parameters on the device and is never computed on the host. Taking it
 * into use exchanges the two, so that training can go on afterwards with the bits it had. PCME++'s
 * code keeps the statistics of batch norm of the last weights; here they are the caller's to
 * compute again (`refresh`), as the paper asks. */
#include "train/optim/weight_average.h"

#include <stdlib.h>
#include <string.h>

#include "io/weights/safetensors.h"
#include "penumbra/safetensors.h"

/* Of parameter i and of its mean. */
static size_t bytes_of(const pnb__weight_average *a, size_t i)
{
    return a->params[i]->n * PNB__REAL_SIZE(a->kernels.real);
}

/* A parameter like `like`, of numbers that are not set. */
static pnb_status alloc_like(const pnb__weight_average *a, pnb__param *p, const pnb__param *like,
                             pnb_error *err)
{
    size_t bytes = like->n * PNB__REAL_SIZE(a->kernels.real);
    p->name = like->name;
    p->n = like->n;
    p->n_dims = like->n_dims;
    memcpy(p->shape, like->shape, sizeof p->shape);
    return pnb__param_alloc(p, &a->kernels, bytes, err);
}

/* The first mean is the weights times 1 plus these times 0: they must be finite. */
static pnb_status alloc_means(pnb__weight_average *a, pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < a->n && status == PNB_OK; i++) {
        if (!a->params[i]->trainable)
            continue;
        status = alloc_like(a, &a->mean[i], a->params[i], err);
        if (status == PNB_OK)
            status = pnb__param_copy(&a->mean[i], a->params[i], &a->kernels, err);
        a->is_averaged[i] = true;
    }
    return status;
}

pnb_status pnb__weight_average_create(pnb__weight_average **out, const pnb_ctx *ctx, pnb__real real,
                                      pnb__param *const *params, size_t n,
                                      const pnb__weight_average_opts *opts, pnb_error *err)
{
    pnb_status status;
    *out = NULL;
    if (opts->from_step < 0 || opts->every < 1)
        return pnb__fail(err, PNB_ARG,
                         "weights averaged from step %lld on, every %lld steps: 0 and more, and 1 "
                         "and more are possible",
                         (long long)opts->from_step, (long long)opts->every);
    if (!(opts->decay >= 0 && opts->decay < 1))
        return pnb__fail(err, PNB_ARG, "a moving mean of decay %g; 0 to below 1 are possible",
                         opts->decay);
    pnb__weight_average *a = pnb__alloc_zero(1, sizeof *a);
    if (a == NULL)
        return pnb__fail_nomem(err, sizeof *a);
    a->opts = *opts;
    a->params = params;
    a->n = n;
    pnb__kernels_fill(&a->kernels, ctx, real);
    PNB_TRY(PNB_ALLOC_ZERO(a->mean, n + 1, err));
    PNB_TRY(PNB_ALLOC_ZERO(a->is_averaged, n + 1, err));
    status = alloc_means(a, err);
done:
    if (status == PNB_OK)
        *out = a;
    else
        pnb__weight_average_free(a);
    return status;
}

void pnb__weight_average_free(pnb__weight_average *a)
{
    if (a == NULL)
        return;
    for (size_t i = 0; a->is_averaged != NULL && i < a->n; i++)
        if (a->is_averaged[i])
            pnb__param_free(&a->mean[i], &a->kernels, bytes_of(a, i));
    pnb__free(a->mean);
    pnb__free(a->is_averaged);
    pnb__free(a);
}

/* mean_n = mean_(n-1) n/(n+1) + p/(n+1), or d mean_(n-1) + (1 - d) p */
void pnb__weight_average_step(pnb__weight_average *a, int64_t step)
{
    int64_t since = step - a->opts.from_step;
    if (a->is_applied || since < 0 || since % a->opts.every != 0)
        return;
    double n = (double)a->n_models, d = a->opts.decay;
    /* the first of equal shares replaces the copy made at creation, a moving mean goes on from it
     */
    double keep = d > 0 ? d : n / (n + 1), share = d > 0 ? 1 - d : 1 / (n + 1);
    for (size_t i = 0; i < a->n; i++)
        if (a->is_averaged[i])
            pnb__param_mix(&a->mean[i], keep, a->params[i], share, &a->kernels);
    a->n_models++;
}

/* One weight and its mean change places, by way of a third. */
static pnb_status exchange_one(const pnb__weight_average *a, size_t i, pnb_error *err)
{
    const pnb__kernels *k = &a->kernels;
    pnb__param room = {0};
    pnb_status status = alloc_like(a, &room, a->params[i], err);
    if (status != PNB_OK)
        return status;
    status = pnb__param_copy(&room, a->params[i], k, err);
    if (status == PNB_OK)
        status = pnb__param_copy(a->params[i], &a->mean[i], k, err);
    if (status == PNB_OK)
        status = pnb__param_copy(&a->mean[i], &room, k, err);
    pnb__param_free(&room, k, bytes_of(a, i));
    return status;
}

/* All of them; those before one that failed go back. */
static pnb_status exchange(pnb__weight_average *a, pnb_error *err)
{
    pnb_status status = PNB_OK;
    size_t n = 0;
    for (; n < a->n && status == PNB_OK; n++)
        if (a->is_averaged[n])
            status = exchange_one(a, n, err);
    if (status == PNB_OK) {
        a->is_applied = !a->is_applied;
        return PNB_OK;
    }
    for (size_t i = 0; i + 1 < n; i++) /* the first error stays */
        if (a->is_averaged[i])
            (void)exchange_one(a, i, NULL);
    return status;
}

pnb_status pnb__weight_average_apply(pnb__weight_average *a, pnb__refresh_fn refresh, void *user,
                                     pnb_error *err)
{
    if (a->n_models == 0 || a->is_applied)
        return pnb__fail(err, PNB_ARG, "%s",
                         a->is_applied ? "the mean of the weights is in place already"
                                       : "no weights were averaged yet");
    pnb_status status = exchange(a, err);
    if (status == PNB_OK && refresh != NULL) {
        status = refresh(user, err);
        if (status != PNB_OK)
            (void)exchange(a, NULL);
    }
    return status;
}

/* The trained weights come back with the bits that they had. */
pnb_status pnb__weight_average_restore(pnb__weight_average *a, pnb_error *err)
{
    if (!a->is_applied)
        return pnb__fail(err, PNB_ARG, "the mean of the weights is not in place");
    return exchange(a, err);
}

/* ---- its file ---- */

/* "average.<name>" of parameter i, allocated. */
static char *name_of(const pnb__weight_average *a, size_t i, pnb_error *err)
{
    char *name = pnb__format("average.%s", a->params[i]->name);
    if (name == NULL)
        pnb__fail_nomem(err, strlen(a->params[i]->name));
    return name;
}

/* One mean as the file lists it; the name is the caller's to free. */
static pnb_status list_mean(const pnb__weight_average *a, size_t i, pnb_array_view *view,
                            pnb_error *err)
{
    const pnb__param *p = a->params[i];
    *view = (pnb_array_view){.dtype = a->kernels.real == PNB__F32 ? PNB_F32 : PNB_F64,
                             .n_dims = p->n_dims,
                             .n_bytes = bytes_of(a, i)};
    for (int d = 0; d < p->n_dims; d++)
        view->shape[d] = (int64_t)p->shape[d];
    view->name = name_of(a, i, err);
    return view->name != NULL ? PNB_OK : PNB_NOMEM;
}

/* One mean after the other, in the order of the file, through one copy on the host. `which` names
 * the parameter of each. */
static pnb_status append_means(pnb__st_writer *w, const pnb__weight_average *a, const size_t *which,
                               unsigned char *copy, pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (size_t k = 0; k < w->n && status == PNB_OK; k++) {
        size_t i = which[w->order[k]];
        status = pnb__param_read_bytes(&a->mean[i], &a->kernels, bytes_of(a, i), copy, err);
        if (status == PNB_OK)
            status = pnb__st_writer_append(w, copy, bytes_of(a, i), err);
    }
    return status;
}

pnb_status pnb__weight_average_save(const pnb__weight_average *a, const char *path, pnb_error *err)
{
    pnb_array_view *views = NULL;
    pnb__st_writer w = {0};
    size_t *which = NULL, n = 0, most = 0;
    unsigned char *copy = NULL;
    char n_models[32];
    pnb_status status;
    snprintf(n_models, sizeof n_models, "%lld", (long long)a->n_models);
    const char *const metadata[] = {"n_models", n_models, NULL};
    if (a->is_applied) /* `mean` holds the trained weights now */
        return pnb__fail(err, PNB_ARG, "%s: the mean of the weights is in place", path);
    PNB_TRY(PNB_ALLOC_ZERO(views, a->n + 1, err));
    PNB_TRY(PNB_ALLOC(which, a->n + 1, err));
    for (size_t i = 0; i < a->n; i++) {
        if (!a->is_averaged[i])
            continue;
        which[n] = i;
        most = PNB_MAX(most, bytes_of(a, i));
        PNB_TRY(list_mean(a, i, &views[n++], err));
    }
    PNB_TRY(PNB_ALLOC(copy, most + 1, err));
    PNB_TRY(pnb__st_writer_open(&w, path, views, n, metadata, err));
    PNB_TRY(append_means(&w, a, which, copy, err));
    status = pnb__st_writer_commit(&w, err);
done:
    pnb__st_writer_abort(&w);
    for (size_t i = 0; views != NULL && i < n; i++)
        pnb__free((void *)(uintptr_t)views[i].name);
    pnb__free(views);
    pnb__free(which);
    pnb__free(copy);
    return status;
}

/* The mean of parameter i in the file, of its shape and precision. */
static pnb_status find_mean(const pnb__weight_average *a, const pnb_safetensors *file, size_t i,
                            const pnb_array_view **out, pnb_error *err)
{
    const pnb__param *p = a->params[i];
    char *name = name_of(a, i, err);
    pnb_status status = PNB_OK;
    if (name == NULL)
        return PNB_NOMEM;
    const pnb_array_view *view = *out = pnb_safetensors_find(file, name);
    /* of another precision the mean would be rounded: a run is resumed to the bit */
    bool fits = view != NULL && view->n_dims == p->n_dims &&
                view->dtype == (a->kernels.real == PNB__F32 ? PNB_F32 : PNB_F64);
    for (int d = 0; fits && d < p->n_dims; d++)
        fits = view->shape[d] == (int64_t)p->shape[d];
    if (view == NULL)
        status = pnb__fail(err, PNB_NOT_FOUND, "the file of averaged weights has no %s", name);
    else if (!fits)
        status = pnb__fail(
            err, PNB_SHAPE,
            "averaged weights: %s does not have the shape or precision of the weight", name);
    pnb__free(name);
    return status;
}

/* By way of doubles, which is exact for both precisions. */
static pnb_status write_mean(pnb__weight_average *a, size_t i, const pnb_array_view *view,
                             pnb_error *err)
{
    size_t n = a->params[i]->n;
    double *values = NULL;
    pnb_status status;
    PNB_TRY(PNB_ALLOC(values, n + 1, err));
    PNB_TRY(pnb_array_to_f64(view, values, err));
    status = pnb__param_write(&a->mean[i], &a->kernels, 0, n, values, err);
done:
    pnb__free(values);
    return status;
}

/* First all checks, then all copies. */
static pnb_status copy_means(pnb__weight_average *a, const pnb_safetensors *file, bool check_only,
                             pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < a->n && status == PNB_OK; i++) {
        const pnb_array_view *view = NULL;
        if (!a->is_averaged[i])
            continue;
        status = find_mean(a, file, i, &view, err);
        if (status == PNB_OK && !check_only)
            status = write_mean(a, i, view, err);
    }
    return status;
}

/* The number of models is what the next one is weighed by: without it the mean would be lost. */
pnb_status pnb__weight_average_load(pnb__weight_average *a, const char *path, pnb_error *err)
{
    pnb_safetensors *file = NULL;
    if (a->is_applied)
        return pnb__fail(err, PNB_ARG, "%s: the mean of the weights is in place", path);
    pnb_status status = pnb_safetensors_open(&file, path, err);
    if (status != PNB_OK)
        return status;
    /* how many models the mean is of stands in the file's metadata, not in an array */
    const char *text = pnb_safetensors_metadata(file, "n_models");
    char *end = NULL;
    long long n_models = text == NULL ? -1 : strtoll(text, &end, 10);
    if (n_models < 0 || *end != '\0')
        status = pnb__fail(err, PNB_FORMAT, "%s: no file of averaged weights", path);
    if (status == PNB_OK)
        status = copy_means(a, file, true, err);
    if (status == PNB_OK)
        status = copy_means(a, file, false, err);
    if (status == PNB_OK)
        a->n_models = n_models;
    pnb_safetensors_free(file);
    return status;
}
