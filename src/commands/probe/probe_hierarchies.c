/* Uncertainty by level of picture hierarchies (Chun et al. 2025, Figure 8 and appendix C.4): the
 * share of pictures that lie inside each of their lower levels, and of levels that are more
 * uncertain than the picture. Chains are recognised by the ids that `penumbra data chains` gives;
 * a set of other pictures is refused, not guessed at. */
#include "commands/probe/probe_hierarchies.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "commands/common/encode_use.h"
#include "penumbra/search.h"
#include "penumbra/view.h"
#include "sets/settle.h"

typedef struct chain_row {
    const char *id;
    size_t n_key; /* length of the part before "_LEVEL" */
    size_t level, row;
} chain_row;

static int compare_links(const void *a, const void *b)
{
    const chain_row *x = a, *y = b;
    int order = strncmp(x->id, y->id, PNB_MIN(x->n_key, y->n_key));
    if (order != 0)
        return order;
    if (x->n_key != y->n_key)
        return x->n_key < y->n_key ? -1 : 1;
    return (x->level > y->level) - (x->level < y->level);
}

static bool same_chain(const chain_row *a, const chain_row *b)
{
    return a->n_key == b->n_key && strncmp(a->id, b->id, a->n_key) == 0;
}

static pnb_status read_link(const pnb_embeddings *set, size_t row, chain_row *out, pnb_error *err)
{
    const char *id = set->ids != NULL && set->ids[row] != NULL ? set->ids[row] : "";
    const char *mark = strrchr(id, '_');
    int64_t level = -1;
    if (mark == NULL || !pnb__read_int(mark + 1, &level) || level < 0 || level >= PNB__CHAIN_LEVELS)
        return pnb__fail(err, PNB_FORMAT,
                         "picture '%s' is no level of a chain; a data set made by `penumbra data "
                         "chains` has ids KEY_LEVEL",
                         id);
    *out = (chain_row){id, (size_t)(mark - id), (size_t)level, row};
    return PNB_OK;
}

/* Sorted by chain, then level; *n_levels is the same for all. */
static pnb_status read_links(const pnb_embeddings *set, chain_row *links, size_t *n_levels,
                             pnb_error *err)
{
    *n_levels = 1; /* also of a set without rows */
    for (size_t i = 0; i < set->n; i++) {
        pnb_status status = read_link(set, i, &links[i], err);
        if (status != PNB_OK)
            return status;
        *n_levels = PNB_MAX(*n_levels, links[i].level + 1);
    }
    qsort(links, set->n, sizeof *links, compare_links);
    for (size_t i = 0; i < set->n; i++) {
        const chain_row *first = &links[i - i % *n_levels];
        if (links[i].level != i % *n_levels || !same_chain(first, &links[i]))
            return pnb__fail(err, PNB_FORMAT,
                             "the chain of picture '%s' does not have each of the %zu levels once",
                             links[i].id, *n_levels);
    }
    if (set->n % *n_levels != 0)
        return pnb__fail(err, PNB_FORMAT, "the last chain has %zu of %zu levels",
                         set->n % *n_levels, *n_levels);
    return PNB_OK;
}

static void add_chain(const pnb_gaussians *rows, const chain_row *links, const double *u,
                      bool published, pnb__hierarchy_figures *out)
{
    pnb_measure measure = published ? PNB_MEASURE_INCLUSION_PUBLISHED : PNB_MEASURE_INCLUSION;
    size_t whole = links[out->n_levels - 1].row;
    for (size_t l = 0; l < out->n_levels; l++) {
        size_t row = links[l].row;
        out->trace[l] += u[row];
        out->uncertain[l] += u[row] > u[whole];
        out->included[l] += pnb_measure_pair(measure, rows, whole, rows, row, NULL) > 0.0;
    }
}

typedef struct picked {
    pnb_embeddings *set;
    pnb_view view;
} picked;

static void free_picked(picked *p)
{
    pnb_view_reset(&p->view);
    pnb_embeddings_free(p->set);
}

/* Level l of every chain, or of the chain after it. */
static pnb_status pick_level(const pnb_embeddings *set, const chain_row *links,
                             const pnb__hierarchy_figures *f, size_t l, size_t shift, picked *out,
                             pnb_error *err)
{
    size_t *row = pnb__alloc_array(f->n, sizeof *row);
    if (row == NULL)
        return pnb__fail_nomem(err, f->n * sizeof *row);
    for (size_t i = 0; i < f->n; i++)
        row[i] = links[(i + shift) % f->n * f->n_levels + l].row;
    pnb_status status = pnb_embeddings_select(&out->set, set, row, f->n, err);
    pnb__free(row);
    return status == PNB_OK ? pnb_view_init(&out->view, out->set, err) : status;
}

/* The whole picture in level l, by H and by the difference of divergences. */
static pnb_status compare_level(const pnb_embeddings *set, const chain_row *links, size_t l,
                                bool published, pnb__hierarchy_figures *f, pnb_error *err)
{
    picked whole = {0}, level = {0}, other = {0};
    pnb_status status;
    PNB_TRY(pick_level(set, links, f, f->n_levels - 1, 0, &whole, err));
    PNB_TRY(pick_level(set, links, f, l, 0, &level, err));
    if (f->n > 1)
        PNB_TRY(pick_level(set, links, f, l, 1, &other, err));
    status = pnb_inclusion_against_kl(&whole.view.rows, &level.view.rows,
                                      f->n > 1 ? &other.view.rows : NULL, published, NULL, NULL,
                                      &f->contest[l], err);
done:
    free_picked(&whole);
    free_picked(&level);
    free_picked(&other);
    return status;
}

pnb_status pnb__hierarchy_figures_measure(const pnb_embeddings *set, bool published,
                                          pnb__hierarchy_figures *out, pnb_error *err)
{
    pnb_view view = {0};
    chain_row *links = pnb__alloc_array(set->n, sizeof *links);
    double *u = NULL;
    pnb_status status = PNB_OK;
    *out = (pnb__hierarchy_figures){0};
    if (links == NULL)
        return pnb__fail_nomem(err, set->n * sizeof *links);
    PNB_TRY(read_links(set, links, &out->n_levels, err));
    PNB_TRY(pnb_view_init(&view, set, err));
    PNB_TRY(pnb__row_uncertainty(set, PNB_UNCERTAINTY_TRACE, &u, err));
    out->n = set->n / out->n_levels;
    for (size_t i = 0; i < out->n; i++)
        add_chain(&view.rows, links + i * out->n_levels, u, published, out);
    for (size_t l = 0; l < out->n_levels; l++) {
        out->trace[l] /= (double)out->n;
        out->uncertain[l] /= (double)out->n;
        out->included[l] /= (double)out->n;
    }
    for (size_t l = 0; view.rows.log_var != NULL && l + 1 < out->n_levels; l++)
        PNB_TRY(compare_level(set, links, l, published, out, err));
done:
    pnb_view_reset(&view);
    pnb__free(links);
    pnb__free(u);
    return status;
}

pnb_status pnb__probe_hierarchies(pnb__app *app, pnb_encoder *encoder, const char *spec,
                                  bool published, pnb__hierarchy_figures *out)
{
    pnb__image_inputs *images = NULL;
    pnb_embeddings *set = NULL;
    pnb_status status;
    PNB_TRY(pnb__image_inputs_open(&images, &spec, 1, app->in, &app->err));
    PNB_TRY(pnb__embed_images(app, encoder, images, false, &set));
    status = pnb__hierarchy_figures_measure(set, published, out, &app->err);
done:
    pnb_embeddings_free(set);
    pnb__image_inputs_free(images);
    return status;
}
