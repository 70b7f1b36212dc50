/* Optimiser state on disk: one safetensors file beside the weights of a checkpoint.
 *
 * "exp_avg.<name>" and "exp_avg_sq.<name>" (torch's names; the first is the momentum buffer of SGD)
 * in the precision of training, metadata "step", "kind". Values go through a copy on the host,
 * since the state may live on a device. */
#include "train/optim/optim.h"

#include <stdlib.h>
#include <string.h>

#include "io/weights/safetensors.h"
#include "penumbra/safetensors.h"

/* SGD keeps one moment. */
static bool has_second(const pnb__optim *o)
{
    return o->opts.kind != PNB_OPTIM_SGD && o->opts.kind != PNB_OPTIM_SGDP;
}

/* What the file holds: every m and v, in slot order; v exists only for Adam-like kinds. */
typedef struct listing {
    pnb_array_view *views;
    size_t n;
    size_t most; /* bytes of the largest */
    pnb__arena arena;
} listing;

/* The state of a slot in the copy of everybody's; its slots lie one behind the other. */
static const void *in_whole(const pnb__optim *o, const pnb__optim_slot *slot, bool second)
{
    size_t at = second ? pnb__optim_share_at(o, o->share.n_ranks) : 0;
    for (const pnb__optim_slot *s = o->slots; s < slot; s++)
        at += s->param->n;
    return (const unsigned char *)o->whole + at * PNB__REAL_SIZE(o->kernels.real);
}

/* One moment under torch's name for it, with the weight's shape. */
static pnb_status add_view(listing *l, const pnb__optim *o, const pnb__optim_slot *slot,
                           bool second, pnb_error *err)
{
    const pnb__param *p = slot->param;
    const char *prefix = second ? "exp_avg_sq." : "exp_avg.";
    size_t n_name = strlen(prefix) + strlen(p->name) + 1;
    char *name = pnb__arena_alloc(&l->arena, n_name);
    if (name == NULL)
        return pnb__fail(err, PNB_NOMEM, "out of memory listing the optimiser's state");
    snprintf(name, n_name, "%s%s", prefix, p->name);
    pnb_array_view *view = &l->views[l->n++];
    *view = (pnb_array_view){.name = name,
                             .dtype = o->kernels.real == PNB__F32 ? PNB_F32 : PNB_F64,
                             .n_dims = p->n_dims,
                             .n_bytes = p->n * PNB__REAL_SIZE(o->kernels.real)};
    for (int d = 0; d < p->n_dims; d++)
        view->shape[d] = (int64_t)p->shape[d];
    l->most = PNB_MAX(l->most, view->n_bytes);
    return PNB_OK;
}

static pnb_status list_state(listing *l, const pnb__optim *o, pnb_error *err)
{
    pnb__arena_init(&l->arena, (size_t)1 << 16); /* freed in one piece with the list */
    pnb_status status = PNB_ALLOC_ZERO(l->views, 2 * o->n_slots + 1, err);
    for (size_t i = 0; i < o->n_slots && status == PNB_OK; i++) {
        status = add_view(l, o, &o->slots[i], false, err);
        if (status == PNB_OK && has_second(o))
            status = add_view(l, o, &o->slots[i], true, err);
    }
    return status;
}

/* One array after the other through one copy on the host: a copy of all would be twice the size of
 * the weights. */
static pnb_status append_state(pnb__st_writer *w, const listing *l, const pnb__optim *o,
                               unsigned char *copy, pnb_error *err)
{
    pnb_status status = PNB_OK;
    size_t each = has_second(o) ? 2 : 1;
    for (size_t k = 0; k < l->n && status == PNB_OK; k++) {
        size_t i = w->order[k];
        const pnb__optim_slot *slot = &o->slots[i / each];
        bool second = i % each != 0;
        const void *data = copy;
        if (o->whole != NULL)
            data = in_whole(o, slot, second);
        else
            status = o->kernels.mem_read(o->ctx, copy, second ? slot->v : slot->m,
                                         l->views[i].n_bytes, err);
        if (status == PNB_OK)
            status = pnb__st_writer_append(w, data, l->views[i].n_bytes, err);
    }
    return status;
}

/* The step stands in the file too: moments without their t would be corrected wrongly. */
pnb_status pnb__optim_save(const pnb__optim *o, const char *path, pnb_error *err)
{
    listing l = {0};
    pnb__st_writer w = {0};
    unsigned char *copy = NULL;
    char step[32];
    snprintf(step, sizeof step, "%lld", (long long)o->step);
    const char *const metadata[] = {"step", step, "kind", pnb_optim_name(o->opts.kind), NULL};
    pnb_status status;
    PNB_TRY(list_state(&l, o, err));
    PNB_TRY(PNB_ALLOC(copy, l.most + 1, err));
    PNB_TRY(pnb__st_writer_open(&w, path, l.views, l.n, metadata, err));
    PNB_TRY(append_state(&w, &l, o, copy, err));
    status = pnb__st_writer_commit(&w, err);
done:
    pnb__st_writer_abort(&w);
    pnb__free(copy);
    pnb__arena_free(&l.arena);
    pnb__free(l.views);
    return status;
}

/* Of the weight's shape and the precision of training: a rounded moment would end in other bits. */
static const pnb_array_view *find_view(const pnb_safetensors *file, const pnb__optim *o,
                                       const pnb__optim_slot *slot, bool second, pnb_error *err)
{
    const pnb__param *p = slot->param;
    char *name = pnb__format("%s%s", second ? "exp_avg_sq." : "exp_avg.", p->name);
    if (name == NULL) {
        pnb__fail_nomem(err, strlen(p->name));
        return NULL;
    }
    const pnb_array_view *view = pnb_safetensors_find(file, name);
    pnb_dtype dtype = o->kernels.real == PNB__F32 ? PNB_F32 : PNB_F64;
    bool fits = view != NULL && view->dtype == dtype && view->n_dims == p->n_dims;
    for (int d = 0; fits && d < p->n_dims; d++)
        fits = view->shape[d] == (int64_t)p->shape[d];
    if (view == NULL)
        pnb__fail(err, PNB_NOT_FOUND, "optimizer.safetensors has no %s", name);
    else if (!fits)
        pnb__fail(err, PNB_SHAPE,
                  "optimizer.safetensors: %s does not have the shape or precision of the weight",
                  name);
    pnb__free(name);
    return fits ? view : NULL;
}

/* Called twice. What can still fail in the second call is the device, and then the run fails. */
/* First all checks, then all copies: a bad file changes nothing. */
static pnb_status copy_state(pnb__optim *o, const pnb_safetensors *file, bool check_only,
                             pnb_error *err)
{
    for (size_t i = 0; i < o->n_slots; i++) {
        const pnb__optim_slot *slot = &o->slots[i];
        size_t size = PNB__REAL_SIZE(o->kernels.real);
        for (int second = 0; second < (has_second(o) ? 2 : 1); second++) {
            const pnb_array_view *view = find_view(file, o, slot, second != 0, err);
            if (view == NULL)
                return err != NULL ? err->status : PNB_SHAPE;
            const unsigned char *ours = (const unsigned char *)view->data + slot->at * size;
            pnb_status status = check_only || slot->n == 0
                                    ? PNB_OK
                                    : o->kernels.mem_write(o->ctx, second ? slot->v : slot->m, ours,
                                                           slot->n * size, err);
            if (status != PNB_OK)
                return status;
        }
    }
    return PNB_OK;
}

/* Another kind's moments mean something else under the same names, so the kind is compared
 * first. */
pnb_status pnb__optim_load(pnb__optim *o, const char *path, pnb_error *err)
{
    pnb_error local = PNB_ERROR_INIT;
    pnb_error *e = err != NULL ? err : &local;
    pnb_safetensors *file = NULL;
    pnb_status status = pnb_safetensors_open(&file, path, e);
    if (status != PNB_OK)
        return status;
    const char *step = pnb_safetensors_metadata(file, "step");
    const char *kind = pnb_safetensors_metadata(file, "kind");
    if (step == NULL || kind == NULL || strcmp(kind, pnb_optim_name(o->opts.kind)) != 0)
        status = pnb__fail(e, PNB_FORMAT, "%s: state of optimiser %s, wanted %s", path,
                           kind != NULL ? kind : "(none)", pnb_optim_name(o->opts.kind));
    if (status == PNB_OK)
        status = copy_state(o, file, true, e);
    if (status == PNB_OK)
        status = copy_state(o, file, false, e);
    if (status == PNB_OK && step != NULL)
        o->step = strtoll(step, NULL, 10); /* compared with state.json's by whoever resumes */
    pnb_safetensors_free(file);
    return status;
}
