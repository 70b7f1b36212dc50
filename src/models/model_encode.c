/* Running a tower: plan it for a batch, write the inputs, run, read what it ends in.
 *
 * A worker's tower is planned for a batch size at its first use and kept, so a steady loop of equal
 * batches allocates nothing; workers share the weights and nothing else. Which arrays come out is
 * the tower's family's (tower.h): a point has a mean, a Gaussian a log-variance beside it, a
 * distribution on the sphere a concentration. Values are checked to be finite, inputs of a row to
 * be in range, because a NaN in an embedding set would be found much later and far away. */
#include "models/model.h"

#include <math.h>
#include <string.h>

/* ---- plans ----
 *
 * A plan fixes shapes, the order of ops and the place of every buffer in one arena. It is kept for
 * the sizes (B, T, K) it was made for: batch, tokens of a text, patches kept; other sizes replace
 * it, so alternating between two sizes plans every time. */

static void reset_plan(pnb__plan *e)
{
    pnb__graph_free(e->graph);
    memset(e, 0, sizeof *e);
}

void pnb__towers_reset(pnb__towers *t)
{
    for (size_t i = 0; i < PNB_COUNT(t->plan); i++)
        reset_plan(&t->plan[i]);
}

void pnb__model_replan(pnb_model *m)
{
    pnb__towers_reset(&m->own);
    m->version++;
}

/* A tower is looked at when it first encodes: a text query does not read the image tower. */
static pnb_status check_weights(pnb_model *m, pnb__side side, pnb_error *err)
{
    pnb_status status = pnb__weight_file_check(&m->weights.file, err);
    if (status != PNB_OK || atomic_load(&m->checked[side]))
        return status;
    status = pnb__weights_check_finite(&m->weights, side == PNB__TEXT_SIDE, err);
    if (status == PNB_OK)
        atomic_store(&m->checked[side], true);
    return status;
}

/* The plan for these sizes if there is one; else an empty plan with a graph. Towers of before the
 * weights were stored differently read what is gone. */
static pnb_status begin_plan(pnb_model *m, pnb__towers *t, pnb__side side, const size_t sizes[3],
                             pnb_error *err)
{
    pnb__plan *e = &t->plan[side];
    if (t->version != m->version)
        pnb__towers_reset(t);
    t->version = m->version;
    if (e->graph != NULL && e->n_batch == sizes[0] && e->n_tokens == sizes[1] &&
        e->n_kept == sizes[2])
        return PNB_OK;
    reset_plan(e);
    pnb_status status = pnb__graph_create(&e->graph, m->ctx, m->weights.kernels.real, false, err);
    if (status != PNB_OK)
        return status;
    e->n_batch = sizes[0];
    e->n_tokens = sizes[1];
    e->n_kept = sizes[2];
    return PNB_OK;
}

/* Each of the K embeddings of a row to length 1. */
static pnb__tensor *unit_embeddings(const pnb__dist *d)
{
    size_t k = d->n_embeddings, n = pnb__dim(d->mean, 0), width = pnb__dim(d->mean, 1);
    if (k <= 1)
        return pnb__unit_rows(d->mean, true);
    pnb__tensor *parts = pnb__reshape(d->mean, 2, (size_t[]){n * k, width / k});
    return pnb__reshape(pnb__unit_rows(parts, true), 2, (size_t[]){n, width});
}

/* Adds the tower behind its inputs and plans so that both forms of the mean can be read. A
 * generalised Gaussian lives in the space as it is: its scale would not fit a mean of length 1. */
static pnb_status finish_plan(pnb_model *m, pnb__plan *e, pnb__side side, pnb_error *err)
{
    bool has_lengths = pnb__tower_of(&m->config, side)->family(&m->config) == PNB_GEN_GAUSSIAN;
    e->raw = pnb__model_build(m, side, e->graph, &e->in, false);
    e->unit = has_lengths ? e->raw.mean : unit_embeddings(&e->raw);
    pnb__tensor *const read[] = {e->raw.mean,      e->unit,     e->raw.log_var,    e->raw.kappa,
                                 e->raw.inv_alpha, e->raw.beta, e->raw.activations};
    for (size_t i = 0; i < PNB_COUNT(read); i++)
        pnb__keep(read[i]);
    pnb_status status = pnb__graph_plan(e->graph, NULL, err);
    if (status != PNB_OK)
        reset_plan(e);
    return status;
}

static pnb_status plan_image(pnb_model *m, pnb__towers *t, size_t n_batch, size_t n_kept,
                             pnb_error *err)
{
    pnb__plan *e = &t->plan[PNB__IMAGE_SIDE];
    const pnb__config *c = &m->config;
    pnb_status status =
        begin_plan(m, t, PNB__IMAGE_SIDE, (const size_t[]){n_batch, 0, n_kept}, err);
    if (status != PNB_OK || e->raw.mean != NULL)
        return status;
    e->in.pixels =
        pnb__input(e->graph, PNB__REAL, 4, (size_t[]){n_batch, 3, c->image_height, c->image_width});
    if (n_kept > 0) {
        e->in.kept = pnb__input(e->graph, PNB__INT32, 2, (size_t[]){n_batch, n_kept});
        e->in.kept_positions = pnb__input(e->graph, PNB__INT32, 1, &n_kept);
    }
    return finish_plan(m, e, PNB__IMAGE_SIDE, err);
}

static size_t n_places(const pnb_model *m)
{
    const pnb__tower_calls *tower = pnb__tower_of(&m->config, PNB__TEXT_SIDE);
    return tower->n_places != NULL ? tower->n_places(&m->config) : 0;
}

/* A transformer that reads one position, a GRU that ends at the last word: each place is a row of
 * numbers, one a text. */
void pnb__model_add_places(const pnb_model *m, pnb__graph *g, size_t n_batch, pnb__tower_in *in)
{
    for (size_t i = 0; i < n_places(m); i++)
        in->places[i] = pnb__input(g, PNB__INT32, 1, &n_batch);
}

static pnb_status plan_text(pnb_model *m, pnb__towers *t, size_t n_batch, size_t n_tokens,
                            pnb_error *err)
{
    pnb__plan *e = &t->plan[PNB__TEXT_SIDE];
    pnb_status status =
        begin_plan(m, t, PNB__TEXT_SIDE, (const size_t[]){n_batch, n_tokens, 0}, err);
    if (status != PNB_OK || e->raw.mean != NULL)
        return status;
    e->in.ids = pnb__input(e->graph, PNB__INT32, 2, (size_t[]){n_batch, n_tokens});
    pnb__model_add_places(m, e->graph, n_batch, &e->in);
    return finish_plan(m, e, PNB__TEXT_SIDE, err);
}

/* ---- inputs ---- */

/* What a text tower wants to know of the ids beforehand: one array of B a place. */
pnb_status pnb__model_write_places(const pnb_model *m, const pnb__tower_in *in, const int32_t *ids,
                                   const size_t shape[2], pnb_error *err)
{
    const pnb__tower_calls *tower = pnb__tower_of(&m->config, PNB__TEXT_SIDE);
    size_t n = n_places(m), n_batch = shape[0], n_tokens = shape[1];
    pnb_status status = PNB_OK;
    if (n == 0)
        return PNB_OK;
    int32_t *all = pnb__alloc_array(n * n_batch, sizeof *all);
    if (all == NULL)
        return pnb__fail_nomem(err, n * n_batch * sizeof *all);
    for (size_t b = 0; b < n_batch; b++) {
        int32_t places[PNB__MAX_PLACES] = {0};
        PNB_TRY(tower->find_places(&m->config, ids + b * n_tokens, n_tokens, b, places, err));
        for (size_t i = 0; i < n; i++)
            all[i * n_batch + b] = places[i];
    }
    for (size_t i = 0; i < n; i++)
        pnb__write_i32(in->places[i], all + i * n_batch);
done:
    pnb__free(all);
    return status;
}

static pnb_status check_kept(const pnb_model *m, const int32_t *kept, size_t n_kept, pnb_error *err)
{
    for (size_t i = 0; i < n_kept; i++)
        if (kept[i] < 0 || (size_t)kept[i] >= m->info.vision.n_patches)
            return pnb__fail(err, PNB_ARG, "kept patch %d is outside the %zu patches", kept[i],
                             m->info.vision.n_patches);
    return PNB_OK;
}

/* The graph gathers from the (B N, 3pp) patches of the whole batch at once, hence flat row numbers.
 * Flat patch-row numbers b N + i of every picture from the one list they share. */
static pnb_status write_kept(const pnb__plan *e, const int32_t *kept, size_t n_patches,
                             pnb_error *err)
{
    int32_t *flat = pnb__alloc_array(e->n_batch * e->n_kept, sizeof *flat);
    if (flat == NULL)
        return pnb__fail_nomem(err, e->n_batch * e->n_kept * sizeof *flat);
    for (size_t b = 0; b < e->n_batch; b++)
        for (size_t i = 0; i < e->n_kept; i++)
            flat[b * e->n_kept + i] = (int32_t)(b * n_patches) + kept[i];
    pnb__write_i32(e->in.kept, flat);
    pnb__write_i32(e->in.kept_positions, kept);
    pnb__free(flat);
    return PNB_OK;
}

/* ---- outputs ----
 *
 *     family              arrays beside mean (B,D)         range
 *     point               none
 *     gaussian_diag       log_var (B,D)                    any
 *     vmf, power_spherical    kappa (B)                    >= 0, from a tower's exp or norm
 *     gen_gaussian        inv_alpha, beta (B,D)            > 0
 *
 * Ranges are the tower's to keep; a set that is saved is checked again (src/sets). */

/* One array of an output: where it is wanted and where it comes from. */
typedef struct output {
    const char *what;
    float *to;
    const pnb__tensor *from;
    size_t width; /* of a row */
} output;

enum { MEAN, LOG_VAR, KAPPA, INV_ALPHA, BETA, ACTIVATIONS, N_OUTPUTS };

/* Shapes are (B,D), but kappa's: one concentration serves all directions. */
static void list_outputs(output list[N_OUTPUTS], const pnb_encode_out *out, const pnb__plan *e,
                         size_t dim)
{
    const output all[N_OUTPUTS] = {
        [MEAN] = {"mean", out->mean, out->skip_normalize ? e->raw.mean : e->unit, dim},
        [LOG_VAR] = {"log-variance", out->log_var, e->raw.log_var, dim},
        [KAPPA] = {"concentration", out->kappa, e->raw.kappa, 1},
        [INV_ALPHA] = {"inverse scale", out->inv_alpha, e->raw.inv_alpha, dim},
        [BETA] = {"shape", out->beta, e->raw.beta, dim},
        [ACTIVATIONS] = {"activation", out->activations, e->raw.activations,
                         e->raw.activations != NULL ? pnb__dim(e->raw.activations, 1) : 0}};
    memcpy(list, all, sizeof all);
}

/* Before anything is run: an array that the family has none of cannot be filled. A point's
 * log-variance can: it is that of zero variance. */
static pnb_status check_outputs(const output list[N_OUTPUTS], pnb_family family, pnb_error *err)
{
    for (size_t i = 0; i < N_OUTPUTS; i++)
        if (list[i].to != NULL && list[i].from == NULL && !(i == LOG_VAR && family == PNB_POINT))
            return pnb__fail(
                err, PNB_ARG,
                "this tower gives %s embeddings, which have no %s; leave that array out",
                pnb_family_name(family), list[i].what);
    return PNB_OK;
}

/* The row is named by its place in the batch, while the caller can still tell its input. */
static pnb_status check_finite(const char *what, const float *x, size_t n, size_t width,
                               pnb_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return pnb__fail(err, PNB_NUMERIC, "the %s of item %zu is not finite", what, i / width);
    return PNB_OK;
}

/* Device values to the caller's floats, in the order of the list, each checked. */
static pnb_status run_plan(const pnb_model *m, const pnb__plan *e, pnb__side side,
                           const pnb_encode_out *out, pnb_error *err)
{
    pnb_family family = pnb__tower_of(&m->config, side)->family(&m->config);
    output list[N_OUTPUTS];
    list_outputs(list, out, e, m->config.embed_dim);
    pnb_status status = check_outputs(list, family, err);
    if (status == PNB_OK)
        status = pnb__graph_run(e->graph, err);
    for (size_t i = 0; status == PNB_OK && i < N_OUTPUTS; i++) {
        size_t n = e->n_batch * list[i].width;
        if (list[i].to == NULL)
            continue;
        if (list[i].from == NULL) {
            for (size_t k = 0; k < n; k++)
                list[i].to[k] = -INFINITY;
            continue;
        }
        pnb__read_f32(list[i].from, list[i].to);
        status = pnb__graph_check(e->graph, err);
        if (status == PNB_OK)
            status = check_finite(list[i].what, list[i].to, n, list[i].width, err);
    }
    if (status == PNB_OK) /* again: what was written meanwhile may be a part of the result */
        status = pnb__weight_file_check(&m->weights.file, err);
    return status;
}

pnb_status pnb__model_run_again(pnb_model *m, bool is_text, pnb_error *err)
{
    const pnb__plan *e = &m->own.plan[is_text ? PNB__TEXT_SIDE : PNB__IMAGE_SIDE];
    if (e->graph == NULL)
        return pnb__fail(err, PNB_ARG, "this tower has encoded nothing yet");
    pnb_status status = pnb__graph_run(e->graph, err);
    if (status != PNB_OK)
        return status;
    (void)pnb__read_scalar(e->unit); /* waits */
    return pnb__graph_check(e->graph, err);
}

pnb_status pnb__model_time_steps(pnb_model *m, bool is_text,
                                 void (*tell)(void *user, const char *what, double seconds),
                                 void *user, pnb_error *err)
{
    const pnb__plan *e = &m->own.plan[is_text ? PNB__TEXT_SIDE : PNB__IMAGE_SIDE];
    if (e->graph == NULL)
        return pnb__fail(err, PNB_ARG, "this tower has encoded nothing yet");
    return pnb__graph_time_steps(e->graph, tell, user, err);
}

static float *row_of(float *array, size_t row, size_t width)
{
    return array != NULL ? array + row * width : NULL;
}

pnb_encode_out pnb__encode_rows(pnb_embeddings *set, size_t first)
{
    return (pnb_encode_out){.mean = row_of(set->mean, first, set->dim),
                            .log_var = row_of(set->log_var, first, set->dim),
                            .kappa = row_of(set->kappa, first, 1),
                            .inv_alpha = row_of(set->inv_alpha, first, set->dim),
                            .beta = row_of(set->beta, first, set->dim)};
}

size_t pnb__model_activations(pnb_model *m, pnb__side side)
{
    static const char *const image[] = {"visual.proj"};
    static const char *const text[] = {"text.text_projection", "text.text_projection.weight"};
    const char *const *names = side == PNB__TEXT_SIDE ? text : image;
    size_t n = side == PNB__TEXT_SIDE ? PNB_COUNT(text) : PNB_COUNT(image);
    for (size_t i = 0; i < n && m->config.embed_dim > 0; i++) {
        const pnb__param *p = pnb__model_find_param(m, names[i]);
        if (p != NULL)
            return p->n / m->config.embed_dim;
    }
    const pnb__param *head = pnb__model_find_param(m, "visual.attn_pool.mlp.c_proj.weight");
    if (side == PNB__IMAGE_SIDE && head != NULL && m->config.embed_dim > 0)
        return head->n / m->config.embed_dim + m->config.embed_dim;
    return 0;
}

/* ---- a batch ---- */

pnb_status pnb_model_encode_image(pnb_model *m, const float *pixels, size_t n_batch,
                                  const pnb_encode_out *out, pnb_error *err)
{
    return pnb_model_encode_image_kept(m, pixels, n_batch, NULL, 0, out, err);
}

pnb_status pnb_model_encode_image_kept(pnb_model *m, const float *pixels, size_t n_batch,
                                       const int32_t *kept, size_t n_kept,
                                       const pnb_encode_out *out, pnb_error *err)
{
    return pnb__towers_encode_image(&m->own, m, pixels, n_batch, kept, n_kept, out, err);
}

pnb_status pnb__towers_encode_image(pnb__towers *t, pnb_model *m, const float *pixels,
                                    size_t n_batch, const int32_t *kept, size_t n_kept,
                                    const pnb_encode_out *out, pnb_error *err)
{
    pnb__plan *e = &t->plan[PNB__IMAGE_SIDE];
    if (n_batch == 0)
        return PNB_OK;
    if (!m->config.vision.present)
        return pnb__fail(err, PNB_UNSUPPORTED, "this model has no image tower");
    /* patch rows of the batch are numbered in int32 */
    if (n_batch > INT32_MAX / PNB_MAX(m->info.vision.n_patches, (size_t)1))
        return pnb__fail(err, PNB_LIMIT, "a batch of %zu pictures is too large", n_batch);
    pnb_status status = check_kept(m, kept, n_kept, err);
    if (status == PNB_OK)
        status = check_weights(m, PNB__IMAGE_SIDE, err);
    if (status == PNB_OK)
        status = plan_image(m, t, n_batch, n_kept, err);
    if (status == PNB_OK && n_kept > 0)
        status = write_kept(e, kept, m->info.vision.n_patches, err);
    if (status != PNB_OK)
        return status;
    pnb__write_f32(e->in.pixels, pixels);
    return run_plan(m, e, PNB__IMAGE_SIDE, out, err);
}

pnb_status pnb_model_encode_text(pnb_model *m, const int32_t *ids, size_t n_batch, size_t n_tokens,
                                 const pnb_encode_out *out, pnb_error *err)
{
    return pnb__towers_encode_text(&m->own, m, ids, n_batch, n_tokens, out, err);
}

/* T may be less than the context: positions run on from 0, so a shorter row is another text where
 * padding is attended to. */
static pnb_status check_ids(const pnb__config *c, const int32_t *ids, size_t n_batch,
                            size_t n_tokens, pnb_error *err)
{
    if (n_tokens == 0 || n_tokens > c->context_length)
        return pnb__fail(err, PNB_SHAPE, "texts have %zu tokens, the model's context is 1 to %zu",
                         n_tokens, c->context_length);
    for (size_t i = 0; i < n_batch * n_tokens; i++)
        if (ids[i] < 0 || (size_t)ids[i] >= c->vocab_size)
            return pnb__fail(err, PNB_ARG,
                             "token id %d of text %zu is outside the vocabulary of %zu; does the "
                             "tokenizer belong to this model?",
                             ids[i], i / n_tokens, c->vocab_size);
    return PNB_OK;
}

pnb_status pnb__towers_encode_text(pnb__towers *t, pnb_model *m, const int32_t *ids, size_t n_batch,
                                   size_t n_tokens, const pnb_encode_out *out, pnb_error *err)
{
    pnb__plan *e = &t->plan[PNB__TEXT_SIDE];
    if (n_batch == 0)
        return PNB_OK;
    if (!m->config.text.present)
        return pnb__fail(err, PNB_UNSUPPORTED, "this model has no text tower");
    pnb_status status = check_ids(&m->config, ids, n_batch, n_tokens, err);
    if (status == PNB_OK)
        status = check_weights(m, PNB__TEXT_SIDE, err);
    if (status == PNB_OK)
        status = plan_text(m, t, n_batch, n_tokens, err);
    if (status == PNB_OK)
        status =
            pnb__model_write_places(m, &e->in, ids, (const size_t[]){e->n_batch, e->n_tokens}, err);
    if (status != PNB_OK)
        return status;
    pnb__write_i32(e->in.ids, ids);
    return run_plan(m, e, PNB__TEXT_SIDE, out, err);
}

/* By the plan that encoding would use, so that masked work and the short last block count as they
 * run. */
double pnb_model_flops(pnb_model *m, bool text, size_t n_batch)
{
    pnb__side side = text ? PNB__TEXT_SIDE : PNB__IMAGE_SIDE;
    if (!pnb__has_tower(&m->config, side))
        return 0;
    pnb_status status = text ? plan_text(m, &m->own, n_batch, m->config.context_length, NULL)
                             : plan_image(m, &m->own, n_batch, 0, NULL);
    return status == PNB_OK ? pnb__graph_flops(m->own.plan[side].graph) : 0;
}
