/* Optimiser state on disk: one safetensors file beside the weights of a checkpoint.
 *
 * "exp_avg.<name>" and "exp_avg_sq.<name>" (torch's names; the first is the momentum buffer of SGD)
 * in the precision of training, metadata "step", "kind". Values go through host copies, since the
 * state may live on a device. */
#include "train/optim/optim.h"

#include <stdlib.h>
#include <string.h>

#include "penumbra/safetensors.h"

/* SGD keeps one moment. */
static bool has_second(const pnb__optim *o)
{
    return o->opts.kind != PNB_OPTIM_SGD && o->opts.kind != PNB_OPTIM_SGDP;
}

/* Host copies of every m and v, in slot order; v entries exist only for Adam-like kinds. */
typedef struct snapshot {
    pnb_array_view *views;
    size_t n;
    pnb__arena arena;
} snapshot;

/* The state of a slot in the copy of everybody's; its slots lie one behind the other. */
static const void *in_whole(const pnb__optim *o, const pnb__optim_slot *slot, bool second)
{
    size_t at = second ? pnb__optim_share_at(o, o->share.n_ranks) : 0;
    for (const pnb__optim_slot *s = o->slots; s < slot; s++)
        at += s->param->n;
    return (const unsigned char *)o->whole + at * PNB__REAL_SIZE(o->kernels.real);
}

/* The view of one moment under torch's name for it, with the weight's shape. */
static pnb_status add_view(snapshot *s, const pnb__optim *o, const pnb__optim_slot *slot,
                           bool second, pnb_error *err)
{
    const pnb__param *p = slot->param;
    const char *prefix = second ? "exp_avg_sq." : "exp_avg.";
    size_t n_name = strlen(prefix) + strlen(p->name) + 1;
    size_t bytes = p->n * PNB__REAL_SIZE(o->kernels.real);
    char *name = pnb__arena_alloc(&s->arena, n_name);
    void *data = pnb__arena_alloc(&s->arena, PNB_MAX(bytes, (size_t)1));
    if (name == NULL || data == NULL)
        return pnb__fail(err, PNB_NOMEM, "out of memory copying the optimiser's state");
    snprintf(name, n_name, "%s%s", prefix, p->name);
    pnb_array_view *view = &s->views[s->n++];
    *view = (pnb_array_view){.name = name,
                             .dtype = o->kernels.real == PNB__F32 ? PNB_F32 : PNB_F64,
                             .n_dims = p->n_dims,
                             .data = data,
                             .n_bytes = bytes};
    for (int d = 0; d < p->n_dims; d++)
        view->shape[d] = (int64_t)p->shape[d];
    if (o->whole == NULL)
        return o->kernels.mem_read(o->ctx, data, second ? slot->v : slot->m, bytes, err);
    memcpy(data, in_whole(o, slot, second), bytes);
    return PNB_OK;
}

/* All of it at once: the file is written front to back, and the device must not change
 * meanwhile. */
static pnb_status take_snapshot(snapshot *s, const pnb__optim *o, pnb_error *err)
{
    pnb__arena_init(&s->arena, (size_t)1 << 20); /* freed in one piece with the snapshot */
    s->views = pnb__alloc_zero(2 * o->n_slots + 1, sizeof *s->views);
    pnb_status status =
        s->views != NULL ? PNB_OK : pnb__fail_nomem(err, 2 * o->n_slots * sizeof *s->views);
    for (size_t i = 0; i < o->n_slots && status == PNB_OK; i++) {
        status = add_view(s, o, &o->slots[i], false, err);
        if (status == PNB_OK && has_second(o))
            status = add_view(s, o, &o->slots[i], true, err);
    }
    return status;
}

/* The step stands in the file too: moments without their t would be corrected wrongly. */
pnb_status pnb__optim_save(const pnb__optim *o, const char *path, pnb_error *err)
{
    snapshot s = {0};
    char step[32];
    snprintf(step, sizeof step, "%lld", (long long)o->step);
    const char *const metadata[] = {"step", step, "kind", pnb_optim_name(o->opts.kind), NULL};
    pnb_status status = take_snapshot(&s, o, err);
    if (status == PNB_OK)
        status = pnb_safetensors_write(path, s.views, s.n, metadata, err);
    pnb__arena_free(&s.arena);
    pnb__free(s.views);
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
