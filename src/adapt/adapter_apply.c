/* Puts the rows of a set through an adapter, a block at a time, into memory or into a file.
 *
 * Whether the set is one that the adapter was made for is decided here, and what stands in the
 * chain and the names of what comes out; a method only sees blocks of rows. */
#include <math.h>
#include <string.h>

#include "adapt/adapter.h"
#include "sets/embeddings.h"
#include "sets/provenance.h"
#include "sets/set_writer.h"

enum { BLOCK = 1024 }; /* rows at a time */

/* ---- does the set belong to the adapter ---- */

static pnb_status check_side(const pnb_adapter *a, pnb_adapter_side side, const pnb_embeddings *set,
                             pnb_error *err)
{
    const char *word = pnb__adapter_side_word(side), *found = set->info.modality;
    if (found[0] != '\0' && strcmp(found, word) != 0)
        return pnb__fail(err, PNB_ARG, "%s embeddings cannot go through the %s side of an adapter",
                         found, word);
    if (!a->part[side].is_adapted)
        return pnb__fail(err, PNB_ARG,
                         "this adapter (%s %.12s) leaves %s embeddings alone: compare them as they "
                         "are with what it makes of the other side",
                         a->link.name, a->link.sha256, word);
    if (set->dim != a->part[side].dim)
        return pnb__fail(err, PNB_SHAPE,
                         "%s embeddings of width %zu, the adapter was learned from width %zu", word,
                         set->dim, a->part[side].dim);
    return PNB_OK;
}

static pnb_status check_set(const pnb_adapter *a, pnb_adapter_side side, const pnb_embeddings *set,
                            pnb_error *err)
{
    const pnb_embeddings_info *origin = &a->part[side].origin;
    char made[160], given[160];
    pnb_status status = check_side(a, side, set, err);
    if (status != PNB_OK || !pnb__chains_differ(pnb__chain_of(origin), pnb__chain_of(&set->info)))
        return status;
    pnb_provenance_text(origin, made, sizeof made);
    pnb_provenance_text(&set->info, given, sizeof given);
    return pnb__fail(err, PNB_ARG,
                     "%s embeddings of %s, the adapter was learned from embeddings of %s",
                     pnb__adapter_side_word(side), given, made);
}

/* ---- what comes out ---- */

void pnb__adapter_describe_scores(const pnb_adapter *a, pnb_embeddings_info *info)
{
    snprintf(info->measure, sizeof info->measure, "%s", a->measure);
    if (a->match_a > 0 && isfinite(a->match_b)) {
        info->match_a = a->match_a;
        info->match_b = a->match_b;
    }
    if (!isfinite(a->scale))
        return;
    info->logit_scale = a->scale;
    info->logit_bias = (double)NAN;
}

/* Family, rows, width, info and names of the set that comes out, names borrowed. */
static pnb_status describe_out(pnb_embeddings *out, const pnb_adapter *a, pnb_adapter_side side,
                               const pnb_embeddings *set, pnb_error *err)
{
    *out = (pnb_embeddings){.family = a->family,
                            .n = set->n,
                            .dim = a->part[side].dim_out,
                            .has_epistemic = a->has_epistemic,
                            .ids = set->ids,
                            .paths = set->paths,
                            .texts = set->texts,
                            .extras = set->extras,
                            .info = set->info};
    pnb__adapter_describe_scores(a, &out->info);
    return pnb__adapter_links_add(&out->info.adapters, &a->link, err);
}

pnb_status pnb__adapter_make_set(pnb_embeddings **out, const pnb_adapter *a, pnb_adapter_side side,
                                 size_t n, pnb_error *err)
{
    pnb_embeddings *made = NULL;
    pnb_status status;
    PNB_TRY(pnb_embeddings_create(&made, a->family, n, a->part[side].dim_out, err));
    if (a->has_epistemic)
        PNB_TRY(pnb_embeddings_add_epistemic(made, err));
    *out = made;
    made = NULL;
done:
    pnb_embeddings_free(made);
    return status;
}

/* Rows begin..begin+n of `all` as a set of its own, without names; nothing is copied. */
static pnb_embeddings rows_of(const pnb_embeddings *all, size_t begin, size_t n)
{
    pnb_embeddings part = {
        .family = all->family, .n = n, .dim = all->dim, .has_epistemic = all->has_epistemic};
    for (int i = 0; i < PNB__N_EMBEDDING_ARRAYS; i++)
        if (pnb__embedding_has_array(all, i)) {
            size_t width = pnb__embedding_count(&part, i) / n;
            *pnb__embedding_field(&part, i) =
                (float *)(uintptr_t)pnb__embedding_values(all, i) + begin * width;
        }
    return part;
}

pnb_status pnb__adapter_apply_rows(const pnb_adapter *a, pnb_adapter_side side, const float *x,
                                   size_t n, size_t number, pnb_embeddings *out, size_t first,
                                   pnb_error *err)
{
    pnb_embeddings to = rows_of(out, first, n);
    const pnb__adapter_block block = {.side = side,
                                      .what = pnb__adapter_side_word(side),
                                      .x = x,
                                      .n = n,
                                      .dim = a->part[side].dim,
                                      .first = number,
                                      .out = &to};
    return a->calls->apply(a, &block, err);
}

bool pnb__adapter_draws(const pnb_adapter *a)
{
    return a->calls->draws;
}

static pnb_status copy_names(pnb_embeddings *out, const pnb_embeddings *set, size_t i,
                             pnb_error *err)
{
    pnb_status status = PNB_OK;
    if (set->ids != NULL)
        status = pnb_embeddings_set_id(out, i, set->ids[i], err);
    if (status == PNB_OK && set->paths != NULL)
        status = pnb_embeddings_set_path(out, i, set->paths[i], err);
    if (status == PNB_OK && set->texts != NULL)
        status = pnb_embeddings_set_text(out, i, set->texts[i], err);
    if (status == PNB_OK && set->extras != NULL)
        status = pnb_embeddings_set_extra(out, i, set->extras[i], err);
    return status;
}

pnb_status pnb_adapter_apply(pnb_embeddings **out, const pnb_adapter *a, pnb_adapter_side side,
                             const pnb_embeddings *set, pnb_error *err)
{
    pnb_embeddings like, *made = NULL;
    pnb_status status;
    if (out == NULL || a == NULL || set == NULL || (unsigned)side >= PNB_N_ADAPTER_SIDES)
        return pnb__fail(err, PNB_ARG, "adapter: out, adapter or set is NULL, or no such side");
    PNB_TRY(check_set(a, side, set, err));
    PNB_TRY(describe_out(&like, a, side, set, err));
    PNB_TRY(pnb__adapter_make_set(&made, a, side, like.n, err));
    made->info = like.info;
    for (size_t begin = 0; begin < set->n; begin += BLOCK) {
        size_t n = PNB_MIN(set->n - begin, (size_t)BLOCK);
        PNB_TRY(pnb__adapter_apply_rows(a, side, set->mean + begin * set->dim, n, begin, made,
                                        begin, err));
    }
    for (size_t i = 0; i < set->n; i++)
        PNB_TRY(copy_names(made, set, i, err));
    PNB_TRY(pnb_embeddings_check_values(made, err));
    *out = made;
    made = NULL;
done:
    pnb_embeddings_free(made);
    return status;
}

pnb_status pnb_adapter_apply_to(const char *path, const pnb_adapter *a, pnb_adapter_side side,
                                const pnb_embeddings *set, const pnb_watch *watch, pnb_error *err)
{
    pnb_embeddings like, *room = NULL;
    pnb__set_writer writer = {0};
    pnb_status status;
    if (path == NULL || a == NULL || set == NULL || (unsigned)side >= PNB_N_ADAPTER_SIDES)
        return pnb__fail(err, PNB_ARG, "adapter: path, adapter or set is NULL, or no such side");
    PNB_TRY(check_set(a, side, set, err));
    PNB_TRY(describe_out(&like, a, side, set, err));
    PNB_TRY(pnb__adapter_make_set(&room, a, side, PNB_MIN(set->n, (size_t)BLOCK), err));
    PNB_TRY(pnb__set_writer_open(&writer, &like, path, err));
    for (size_t begin = 0; begin < set->n; begin += BLOCK) {
        pnb_embeddings block = rows_of(room, 0, PNB_MIN(set->n - begin, (size_t)BLOCK));
        const pnb__adapter_rows read = {.set = set, .n = set->n};
        PNB_TRY(pnb__adapter_apply_rows(a, side, set->mean + begin * set->dim, block.n, begin, room,
                                        0, err));
        PNB_TRY(pnb__set_writer_append(&writer, &block, err));
        pnb__adapter_rows_done(&read, begin, begin + block.n);
        if (watch != NULL && watch->step != NULL &&
            !watch->step(watch->user, begin + block.n, set->n))
            PNB_TRY(pnb__fail(err, PNB_INTERRUPTED, "interrupted after %zu rows", begin + block.n));
    }
    status = pnb__set_writer_commit(&writer, err);
done:
    pnb__set_writer_abort(&writer);
    pnb_embeddings_free(room);
    return status;
}
