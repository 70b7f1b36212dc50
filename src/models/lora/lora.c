/* Factors of a model's matrices in memory: which matrices, where they begin, their sum and their
 * gradients.
 * What lora.h says of the method; files are lora_file.c's. */
#include "models/lora/lora.h"

#include <fnmatch.h>
#include <math.h>
#include <string.h>

#include "base/grow.h"

/* Draws of A share no stream with the weights of a fresh model. */
#define LORA_SEED 0x2545f4914f6cdd1dU

/* ---- which matrices ---- */

/* Heads of a variance train whole, also where they are a path of blocks of their own. */
static bool is_in_block(const pnb__param *p)
{
    return p->n_dims == 2 && strstr(p->name, ".resblocks.") != NULL &&
           strstr(p->name, "uncertainty") == NULL;
}

/* One word of --lora-targets: a group of matrices, a pattern of the whole name, or a part of it. */
static bool matches(const char *name, const char *word)
{
    if (strcmp(word, "all") == 0)
        return strstr(name, ".attn.") != NULL || strstr(name, ".mlp.") != NULL;
    if (strcmp(word, "attn") == 0)
        return strstr(name, ".attn.") != NULL;
    if (strcmp(word, "mlp") == 0)
        return strstr(name, ".mlp.") != NULL;
    return strpbrk(word, "*?") != NULL ? fnmatch(word, name, 0) == 0 : strstr(name, word) != NULL;
}

/* Of the two towers as models/keys names them. */
static bool is_of_tower(const pnb__lora_spec *spec, const char *name)
{
    return (spec->image && pnb__starts_with(name, "visual.")) ||
           (spec->text && pnb__starts_with(name, "text."));
}

/* Marks the matrices of one word. */
static pnb_status choose_word(pnb_model *m, const pnb__lora_spec *spec, const char *word,
                              bool *chosen, pnb_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < pnb__model_n_params(m); i++) {
        const pnb__param *p = pnb__model_param(m, i);
        if (!is_in_block(p) || !is_of_tower(spec, p->name) || !matches(p->name, word))
            continue;
        chosen[i] = true;
        n++;
    }
    if (word[0] == '\0' || n == 0)
        return pnb__fail(
            err, PNB_ARG,
            "targets of LoRA: no matrix of a block of the chosen towers is called "
            "\"%s\"; attn, mlp, all, parts of names such as mlp.c_fc and patterns such "
            "as 'visual.*.resblocks.11.*' are known",
            word);
    return PNB_OK;
}

/* All words, so that each is known to choose something: a typing error would else train less than
 * was asked for. */
static pnb_status choose(pnb_model *m, const pnb__lora_spec *spec, bool *chosen, pnb_error *err)
{
    char *words = pnb__strdup(spec->targets), *rest = words;
    pnb_status status = words != NULL ? PNB_OK : pnb__fail_nomem(err, strlen(spec->targets));
    /* an empty word, as of a comma too many, is refused like one that nothing is called */
    while (status == PNB_OK && rest != NULL) {
        char *word = rest;
        rest = strchr(rest, ',');
        if (rest != NULL)
            *rest++ = '\0';
        status = choose_word(m, spec, word, chosen, err);
    }
    pnb__free(words);
    return status;
}

/* ---- making ---- */

/* "visual.x.attn.in_proj_weight" -> "visual.x.attn.in_proj.lora_A.weight" */
static char *factor_name(const char *weight, const char *factor)
{
    static const char *const endings[] = {".weight", "_weight"};
    size_t n = strlen(weight);
    for (size_t i = 0; i < PNB_COUNT(endings); i++)
        if (pnb__ends_with(weight, endings[i]))
            return pnb__format("%.*s.%s.weight", (int)(n - strlen(endings[i])), weight, factor);
    return pnb__format("%s.%s.weight", weight, factor);
}

/* A factor with its gradient: zeros. */
static pnb_status make_factor(const pnb__lora *l, pnb__param *p, char *name, size_t rows,
                              size_t cols, pnb_error *err)
{
    const pnb__kernels *k = &l->kernels;
    *p = (pnb__param){.name = name,
                      .n_dims = 2,
                      .shape = {rows, cols},
                      .n = rows * cols,
                      .store = PNB__STORE_REAL,
                      .trainable = true};
    size_t bytes = p->n * PNB__REAL_SIZE(k->real);
    if (name == NULL)
        return pnb__fail_nomem(err, 64);
    pnb_status status = pnb__param_alloc(p, k, bytes, err);
    if (status == PNB_OK)
        status = pnb__param_zero(p, k, err);
    if (status == PNB_OK)
        status = k->mem_alloc(l->ctx, &p->grad_store, bytes, err);
    return status;
}

/* U(-1/sqrt(in), 1/sqrt(in)), as LoRA's code draws A. */
static pnb_status draw(const pnb__lora *l, pnb__param *a, uint64_t seed, size_t number,
                       pnb_error *err)
{
    double bound = 1 / sqrt((double)a->shape[1]), *row = NULL;
    pnb_status status = PNB_ALLOC(row, a->shape[1], err);
    pnb__rng rng;
    pnb__rng_init(&rng, seed ^ LORA_SEED, number);
    for (size_t r = 0; r < a->shape[0] && status == PNB_OK; r++) {
        for (size_t i = 0; i < a->shape[1]; i++)
            row[i] = bound * (2 * pnb__rng_uniform(&rng) - 1);
        status = pnb__param_write(a, &l->kernels, r * a->shape[1], a->shape[1], row, err);
    }
    pnb__free(row);
    return status;
}

/* One matrix: its factors, and what it was without them. The item is in the list before it is
 * whole, so that what fails is freed with the others. */
static pnb_status add_item(pnb__lora *l, pnb__param *w, const pnb__lora_spec *spec, pnb_error *err)
{
    size_t rank = (size_t)spec->rank, number = l->n, bytes = w->n * PNB__REAL_SIZE(l->kernels.real);
    pnb_status status;
    if (rank > PNB_MIN(w->shape[0], w->shape[1]))
        return pnb__fail(err, PNB_ARG,
                         "LoRA of rank %zu: %s is %zu x %zu, and a factor of that rank would be no "
                         "smaller than it",
                         rank, w->name, w->shape[0], w->shape[1]);
    PNB_TRY(PNB_PUSH(l->items, l->n, err, ((pnb__lora_item){.w = w})));
    pnb__lora_item *item = &l->items[number];
    PNB_TRY(make_factor(l, &item->a, factor_name(w->name, "lora_A"), rank, w->shape[1], err));
    PNB_TRY(make_factor(l, &item->b, factor_name(w->name, "lora_B"), w->shape[0], rank, err));
    PNB_TRY(draw(l, &item->a, spec->seed, number, err));
    item->base = (pnb__param){.name = w->name, .n = w->n, .store = PNB__STORE_REAL};
    PNB_TRY(pnb__param_alloc(&item->base, &l->kernels, bytes, err));
    PNB_TRY(pnb__param_copy(&item->base, w, &l->kernels, err));
    /* what is told of the saving */
    l->n_factors += item->a.n + item->b.n;
    l->n_matrices += w->n;
done:
    return status;
}

/* In the order of the model's weights, which is that of the optimiser and of every sum over them.
 */
pnb_status pnb__lora_create(pnb__lora **out, pnb_model *m, const pnb__lora_spec *spec,
                            const char *sha256, pnb_error *err)
{
    pnb__lora *l = NULL;
    bool *chosen = NULL;
    pnb_status status;
    *out = NULL;
    if (spec->rank < 1 || !(spec->alpha > 0) || !isfinite(spec->alpha))
        return pnb__fail(err, PNB_ARG,
                         "LoRA of rank %lld and alpha %g: a rank from 1 on and an alpha above 0 "
                         "are wanted",
                         (long long)spec->rank, spec->alpha);
    PNB_TRY(PNB_ALLOC_ZERO(l, 1, err));
    l->ctx = pnb__model_ctx(m);
    pnb__kernels_fill(&l->kernels, l->ctx, pnb__model_real(m));
    l->rank = (double)spec->rank;
    l->alpha = spec->alpha;
    l->scale = l->alpha / l->rank;
    snprintf(l->base_sha256, sizeof l->base_sha256, "%s", sha256);
    if ((l->targets = pnb__strdup(spec->targets)) == NULL)
        PNB_TRY(pnb__fail_nomem(err, strlen(spec->targets)));
    PNB_TRY(PNB_ALLOC_ZERO(chosen, pnb__model_n_params(m), err));
    PNB_TRY(choose(m, spec, chosen, err));
    for (size_t i = 0; i < pnb__model_n_params(m); i++)
        if (chosen[i])
            PNB_TRY(add_item(l, pnb__model_param(m, i), spec, err));
    *out = l;
    l = NULL;
done:
    pnb__free(chosen);
    pnb__lora_free(l);
    return status;
}

/* Also of one that was begun only: NULL is fine everywhere. */
static void free_factor(const pnb__lora *l, pnb__param *p)
{
    size_t bytes = p->n * PNB__REAL_SIZE(l->kernels.real);
    pnb__param_free(p, &l->kernels, bytes);
    l->kernels.mem_free(l->ctx, p->grad_store, bytes);
    pnb__free((char *)(uintptr_t)p->name);
}

/* The model's matrices stay what they are: the sums. */
void pnb__lora_free(pnb__lora *l)
{
    if (l == NULL)
        return;
    for (size_t i = 0; i < l->n; i++) {
        pnb__lora_item *item = &l->items[i];
        pnb__param_free(&item->base, &l->kernels, item->w->n * PNB__REAL_SIZE(l->kernels.real));
        free_factor(l, &item->a);
        free_factor(l, &item->b);
    }
    pnb__free(l->items);
    pnb__free(l->targets);
    pnb__free(l);
}

/* ---- the sum and its gradient ---- */

/* From the base each time: sums of sums would round once more a step. */
pnb_status pnb__lora_apply(const pnb__lora *l, pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < l->n && status == PNB_OK; i++) {
        const pnb__lora_item *item = &l->items[i];
        status = pnb__param_copy(item->w, &item->base, &l->kernels, err);
        if (status == PNB_OK)
            pnb__param_add_product(item->w, l->scale, &item->b, &item->a, &l->kernels);
    }
    return status;
}

void pnb__lora_project(pnb__lora *l)
{
    /* linear in dW: processes may add up the factors' gradients in place of the matrices' */
    for (size_t i = 0; i < l->n; i++) {
        pnb__lora_item *item = &l->items[i];
        pnb__param_project_grad(item->w, l->scale, &item->b, &item->a, &l->kernels);
    }
}
