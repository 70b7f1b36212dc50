/* Learning an adapter: the list of methods, and everything that is checked before one learns.
 *
 * A method gets sets that fit together: of one chain, one width, the right modality, with the rows
 * that the truth speaks of. What the figures mean is the matter of the methods' own files. */
#include "adapt/adapter.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/grow.h"
#include "base/names.h"
#include "sets/provenance.h"

/* ---- the list ---- */

#define NEEDS_BOTH_EACH false
#define NEEDS_BOTH_BOTH true
#define NEEDS_PAIRS_NO false
#define NEEDS_PAIRS_YES true
#define TRAINS_NO false
#define TRAINS_STEPS true

/* Options are filled in from the method's table when it is asked for. */
static const struct {
    pnb_adapter_about about;
    const pnb__adapter_calls *calls;
} methods[] = {
#define X(c_name, word, family_name, sides, pairs, steps, meets, by, what, source, price)          \
    {{.name = (word),                                                                              \
      .learns = (what),                                                                            \
      .paper = (source),                                                                           \
      .cost = (price),                                                                             \
      .measure = (by),                                                                             \
      .rows_meet = (meets),                                                                        \
      .family = PNB_##family_name,                                                                 \
      .needs_both_sides = NEEDS_BOTH_##sides,                                                      \
      .needs_pairs = NEEDS_PAIRS_##pairs,                                                          \
      .trains = TRAINS_##steps},                                                                   \
     &pnb__adapter_##c_name},
    PNB__ADAPTERS(X)
#undef X
};

const pnb_adapter_about *pnb_adapter_method_at(size_t i)
{
    return i < PNB_COUNT(methods) ? &methods[i].about : NULL;
}

const pnb__adapter_calls *pnb__adapter_calls_of(const pnb_adapter_about *about)
{
    size_t m = 0;
    while (m + 1 < PNB_COUNT(methods) && &methods[m].about != about)
        m++;
    return methods[m].calls;
}

const char *pnb_adapter_option_at(const pnb_adapter_about *about, size_t i)
{
    const pnb__adapter_calls *calls = pnb__adapter_calls_of(about);
    return i < calls->n_fields ? calls->fields[i].name : NULL;
}

const pnb_adapter_about *pnb_adapter_method_find(const char *name)
{
    for (size_t m = 0; m < PNB_COUNT(methods); m++)
        if (strcmp(methods[m].about.name, name) == 0)
            return &methods[m].about;
    return NULL;
}

static pnb_status find_method(size_t *out, const char *name, pnb_error *err)
{
    int place = 0;
#define X(name, word, ...) word "\0"
    pnb_status status = pnb__name_choose(&place, "method", PNB__ADAPTERS(X), name, err);
#undef X
    *out = (size_t)place;
    return status;
}

/* ---- life ---- */

const char *pnb__adapter_side_word(pnb_adapter_side side)
{
    return side == PNB_ADAPTER_IMAGES ? "image" : "text";
}

pnb_status pnb__adapter_create(pnb_adapter **out, const pnb_ctx *ctx, const char *method,
                               pnb_error *err)
{
    size_t m = 0;
    pnb_status status = find_method(&m, method, err);
    if (status != PNB_OK)
        return status;
    pnb_adapter *a = pnb__alloc_zero(1, sizeof *a);
    if (a == NULL)
        return pnb__fail_nomem(err, sizeof *a);
    *a = (pnb_adapter){.about = &methods[m].about,
                       .calls = methods[m].calls,
                       .ctx = ctx,
                       .opts = pnb_adapter_opts_default(),
                       .family = methods[m].about.family,
                       .measure = methods[m].about.measure,
                       .scale = (double)NAN};
    a->self = pnb__alloc_zero(1, a->calls->self_bytes);
    if (a->self == NULL) {
        pnb__free(a);
        return pnb__fail_nomem(err, methods[m].calls->self_bytes);
    }
    *out = a;
    return PNB_OK;
}

void pnb_adapter_free(pnb_adapter *a)
{
    if (a == NULL)
        return;
    a->calls->reset(a->self);
    pnb__free(a->self);
    pnb__free(a);
}

void pnb_adapter_describe(const pnb_adapter *a, pnb_adapter_facts *out)
{
    *out = (pnb_adapter_facts){.about = a->about,
                               .opts = &a->opts,
                               .family = a->family,
                               .measure = a->measure,
                               .link = &a->link};
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        out->side[s].is_adapted = a->part[s].is_adapted;
        out->side[s].dim = a->part[s].dim;
        out->side[s].n_rows = a->part[s].n_rows;
        out->side[s].dim_out = a->part[s].dim_out;
        out->side[s].origin = &a->part[s].origin;
    }
    out->figures = a->figures;
    out->n_figures = a->n_figures;
}

void pnb__adapter_tell(pnb_adapter *a, pnb_adapter_side side, const char *name, double value)
{
    assert(a->n_figures < PNB__MAX_ADAPTER_FIGURES && isfinite(value));
    pnb_adapter_figure *f = &a->figures[a->n_figures++];
    bool is_of_side = side != PNB_N_ADAPTER_SIDES;
    snprintf(f->name, sizeof f->name, "%s%s%s", is_of_side ? pnb__adapter_side_word(side) : "",
             is_of_side ? "_" : "", name);
    f->value = value;
}

/* ---- checks before learning ---- */

/* An option is of a method when its table has it; the place in the struct says which is which. */
static bool reads(const pnb__adapter_calls *calls, size_t offset)
{
    for (size_t i = 0; i < calls->n_fields; i++)
        if (calls->fields[i].offset == offset)
            return true;
    return false;
}

static pnb_status check_opts(const pnb_adapter *a, pnb_error *err)
{
    for (size_t m = 0; m < PNB_COUNT(methods); m++)
        for (size_t i = 0; i < methods[m].calls->n_fields; i++) {
            const pnb__field *f = &methods[m].calls->fields[i];
            if (!reads(a->calls, f->offset) && !pnb__adapter_is_default(&a->opts, f))
                return pnb__fail(err, PNB_ARG, "%s does not read the option %s; %s does",
                                 a->about->name, f->name, methods[m].about.name);
        }
    return pnb__adapter_check_words(a, err);
}

static pnb_status check_modality(const pnb_embeddings *set, pnb_adapter_side side, pnb_error *err)
{
    const char *wanted = pnb__adapter_side_word(side);
    if (set->info.modality[0] == '\0' || strcmp(set->info.modality, wanted) == 0)
        return PNB_OK;
    return pnb__fail(err, PNB_ARG, "%s embeddings were given as the %ss", set->info.modality,
                     wanted);
}

static pnb_status check_need(const pnb_adapter *a, const pnb_adapter_data *data, pnb_error *err)
{
    const char *name = a->about->name;
    if ((data->hessians != NULL || data->model != NULL) &&
        !reads(a->calls, offsetof(pnb_adapter_opts, pseudo_count)))
        return pnb__fail(err, PNB_ARG, "%s has no use for %s; bayesvlm does", name,
                         data->model != NULL ? "a model's projections" : "Hessians");
    if (data->images == NULL && data->texts == NULL)
        return pnb__fail(err, PNB_ARG, "%s: no embeddings to learn from", name);
    if (a->about->needs_both_sides && (data->images == NULL || data->texts == NULL))
        return pnb__fail(err, PNB_ARG,
                         "%s learns from images and texts together; the %ss are "
                         "missing",
                         name, data->images == NULL ? "image" : "text");
    if (a->about->needs_pairs && data->truth == NULL)
        return pnb__fail(err, PNB_ARG, "%s learns which rows belong together; the truth is missing",
                         name);
    if (data->truth != NULL && (data->images == NULL || data->texts == NULL))
        return pnb__fail(err, PNB_ARG, "a truth speaks of images and texts; the %ss are missing",
                         data->images == NULL ? "image" : "text");
    return PNB_OK;
}

/* Two sides and a truth of them. */
static pnb_status check_pairs(const pnb_embeddings *images, const pnb_embeddings *texts,
                              const pnb_truth *truth, pnb_error *err)
{
    const pnb_embeddings *sides[] = {images, texts};
    pnb_status status = PNB_OK;
    for (int s = 0; s < PNB_N_ADAPTER_SIDES && status == PNB_OK; s++)
        if (sides[s] != NULL)
            status = check_modality(sides[s], (pnb_adapter_side)s, err);
    if (status == PNB_OK && images != NULL && texts != NULL)
        status = pnb__provenance_check_mix(&images->info, &texts->info, err);
    if (status == PNB_OK && truth != NULL &&
        (truth->n_queries != images->n || truth->n_items != texts->n))
        status = pnb__fail(err, PNB_SHAPE,
                           "the truth is of %zu images and %zu texts, the sets have %zu and %zu",
                           truth->n_queries, truth->n_items, images->n, texts->n);
    return status;
}

pnb_status pnb__adapter_check_widths(const pnb_adapter *a, const size_t dim[PNB_N_ADAPTER_SIDES],
                                     bool has_model, pnb_error *err)
{
    const char *meet = a->about->rows_meet;
    bool is_apart = a->calls->is_apart != NULL && a->calls->is_apart(a, has_model);
    if (dim[0] == dim[1] || meet == NULL || is_apart)
        return PNB_OK;
    return pnb__fail(err, PNB_SHAPE,
                     "%s does not learn from images of width %zu and texts of width %zu: %s",
                     a->about->name, dim[0], dim[1], meet);
}

/* Held-out rows are of the model whose rows are learned from. */
static pnb_status check_held_out(const pnb_adapter_data *data, pnb_error *err)
{
    const pnb_embeddings *learn[] = {data->images, data->texts};
    const pnb_embeddings *held[] = {data->val_images, data->val_texts};
    int n_given = (held[0] != NULL) + (held[1] != NULL) + (data->val_truth != NULL);
    pnb_status status = PNB_OK;
    if (n_given == 0)
        return PNB_OK;
    if (n_given < 3)
        return pnb__fail(err, PNB_ARG,
                         "held-out images, texts and truth come together; the %s missing",
                         held[0] == NULL   ? "images are"
                         : held[1] == NULL ? "texts are"
                                           : "truth is");
    status = check_pairs(held[0], held[1], data->val_truth, err);
    for (int s = 0; s < PNB_N_ADAPTER_SIDES && status == PNB_OK; s++) {
        if (learn[s] == NULL)
            continue;
        if (learn[s]->dim != held[s]->dim)
            status = pnb__fail(err, PNB_SHAPE, "width %zu, what is learned from has %zu",
                               held[s]->dim, learn[s]->dim);
        else
            status = pnb_embeddings_check_mix(learn[s], held[s], err);
    }
    if (status != PNB_OK)
        pnb__error_prefix(err, "held-out rows");
    return status;
}

static pnb_status check_sets(const pnb_adapter *a, const pnb_adapter_data *data, pnb_error *err)
{
    pnb_status status = check_need(a, data, err);
    if (status == PNB_OK)
        status = check_pairs(data->images, data->texts, data->truth, err);
    if (status == PNB_OK && data->images != NULL && data->texts != NULL)
        status = pnb__adapter_check_widths(a, (size_t[]){data->images->dim, data->texts->dim},
                                           data->model != NULL, err);
    return status == PNB_OK && a->about->trains ? check_held_out(data, err) : status;
}

/* ---- the rows that are learned from ---- */

/* Numbers of the rows that are marked, ascending. */
static pnb_status list_marked(pnb__adapter_rows *rows, const unsigned char *is_marked, size_t n,
                              pnb_error *err)
{
    size_t *list = pnb__alloc_array(n, sizeof *list);
    if (list == NULL)
        return pnb__fail_nomem(err, n * sizeof *list);
    rows->n = 0;
    for (size_t i = 0; i < n; i++)
        if (is_marked[i])
            list[rows->n++] = i;
    rows->row = list;
    return PNB_OK;
}

/* Rows that have a match. */
static pnb_status choose_rows(pnb__adapter_job *job, pnb_error *err)
{
    const pnb_truth *t = job->truth;
    unsigned char *image = pnb__alloc_zero(t->n_queries, 1), *text = pnb__alloc_zero(t->n_items, 1);
    pnb_status status = PNB_OK;
    if (image == NULL || text == NULL) {
        status = pnb__fail_nomem(err, t->n_queries + t->n_items);
        goto done;
    }
    for (size_t i = 0; i < t->n_queries; i++)
        for (size_t p = t->offset[i]; p < t->offset[i + 1]; p++)
            image[i] = text[t->item[p]] = 1;
    PNB_TRY(list_marked(&job->side[PNB_ADAPTER_IMAGES], image, t->n_queries, err));
    PNB_TRY(list_marked(&job->side[PNB_ADAPTER_TEXTS], text, t->n_items, err));
    if (job->side[PNB_ADAPTER_IMAGES].n == 0 || job->side[PNB_ADAPTER_TEXTS].n == 0)
        status = pnb__fail(err, PNB_ARG, "the truth has no pair: there is nothing to learn from");
done:
    pnb__free(image);
    pnb__free(text);
    return status;
}

static void reset_job(pnb__adapter_job *job)
{
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++)
        pnb__free((size_t *)(uintptr_t)job->side[s].row);
}

static pnb_status make_job(pnb__adapter_job *job, pnb_adapter *a, const pnb_adapter_data *data,
                           pnb_error *err)
{
    const pnb_embeddings *sides[] = {data->images, data->texts};
    pnb_status status = PNB_OK;
    *job = (pnb__adapter_job){.truth = data->truth, .data = data};
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++)
        if (sides[s] != NULL)
            job->side[s] = (pnb__adapter_rows){.set = sides[s],
                                               .n = sides[s]->n,
                                               .what = pnb__adapter_side_word((pnb_adapter_side)s)};
    if (data->truth != NULL)
        status = choose_rows(job, err);
    for (int s = 0; s < PNB_N_ADAPTER_SIDES && status == PNB_OK; s++)
        if (sides[s] != NULL)
            a->part[s] = (pnb__adapter_part){.is_adapted = true,
                                             .dim = sides[s]->dim,
                                             .dim_out = sides[s]->dim,
                                             .n_rows = job->side[s].n,
                                             .origin = sides[s]->info};
    return status;
}

/* ---- learning ---- */

pnb_status pnb_adapter_fit(pnb_adapter **out, const pnb_ctx *ctx, const char *method,
                           const pnb_adapter_data *data, const pnb_adapter_opts *opts,
                           pnb_error *err)
{
    pnb_adapter *a = NULL;
    pnb__adapter_job job = {0};
    pnb_status status;
    if (out == NULL || ctx == NULL || method == NULL || data == NULL)
        return pnb__fail(err, PNB_ARG, "adapter: out, ctx, method or data is NULL");
    PNB_TRY(pnb__adapter_create(&a, ctx, method, err));
    if (opts != NULL)
        a->opts = *opts;
    PNB_TRY(check_opts(a, err));
    if ((data->ranks != NULL || data->n_passes > 1) && a->calls->learned == NULL)
        PNB_TRY(pnb__fail(err, PNB_UNSUPPORTED,
                          "%s is learned by one process, in no passes: only methods that train "
                          "heads by batches of pairs share them out",
                          a->about->name));
    PNB_TRY(check_sets(a, data, err));
    PNB_TRY(make_job(&job, a, data, err));
    PNB_TRY(a->calls->fit(a, &job, err));
    PNB_TRY(pnb__adapter_identify(a, err));
    *out = a;
    a = NULL;
done:
    reset_job(&job);
    pnb_adapter_free(a);
    return status;
}
