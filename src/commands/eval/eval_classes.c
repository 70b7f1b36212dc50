/* Classes that the rows themselves carry: a field of both ids files, as `class` of pictures from
 * class folders. Rows of one class belong together, so that a caption matches every picture of its
 * class: PCME's way with CUB Captions. Figures then also stand for each class, and as their mean in
 * which a small class counts as much as a large one. */
#include <string.h>

#include "base/base.h"
#include "commands/common/rows/row_clusters.h"
#include "commands/eval/eval_retrieval.h"
#include "penumbra/class_scores.h"

void pnb__row_classes_reset(pnb__row_classes *c)
{
    for (size_t k = 0; c->name != NULL && k < c->n; k++)
        pnb__free(c->name[k]);
    pnb__free(c->name);
    pnb__free(c->image);
    pnb__free(c->text);
    *c = (pnb__row_classes){0};
}

/* ---- the truth ---- */

static pnb_status check_side(const char *const *name, size_t n, const char *key, const char *path,
                             pnb_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (name[i] != NULL)
            return PNB_OK;
    return pnb__fail(err, PNB_NOT_FOUND,
                     "--class-key %s: no row of %s has this field in its ids file", key, path);
}

/* Each label's name is taken over from its first row. */
static pnb_status take_names(pnb__row_classes *c, char **name, const int64_t *label, size_t n,
                             pnb_error *err)
{
    if (PNB_ALLOC_ZERO(c->name, PNB_MAX(c->n, 1), err) != PNB_OK)
        return PNB_NOMEM;
    for (size_t i = 0; i < n; i++) {
        if (label[i] < 0 || c->name[label[i]] != NULL)
            continue;
        c->name[label[i]] = name[i];
        name[i] = NULL;
    }
    return PNB_OK;
}

static pnb_status read_classes(const pnb__retrieval_opts *opts, pnb__retrieval *run, pnb_error *err)
{
    pnb__row_classes *c = &run->classes;
    size_t n_images = run->images->n, n = n_images + run->texts->n;
    const char *key = opts->class_key;
    char **name = NULL;
    int64_t *label = NULL;
    pnb_status status;
    PNB_TRY(PNB_ALLOC_ZERO(name, n, err));
    PNB_TRY(PNB_ALLOC(label, n, err));
    PNB_TRY(PNB_ALLOC(c->image, n_images, err));
    PNB_TRY(PNB_ALLOC(c->text, run->texts->n, err));
    PNB_TRY(pnb__row_fields(run->images, opts->images, key, name, err));
    PNB_TRY(pnb__row_fields(run->texts, opts->texts, key, name + n_images, err));
    PNB_TRY(check_side((const char *const *)name, n_images, key, opts->images, err));
    PNB_TRY(
        check_side((const char *const *)(name + n_images), run->texts->n, key, opts->texts, err));
    PNB_TRY(pnb__label_names(name, n, label, &c->n, err));
    PNB_TRY(take_names(c, name, label, n, err));
    for (size_t i = 0; i < n; i++)
        *(i < n_images ? &c->image[i] : &c->text[i - n_images]) = (int32_t)label[i];
done:
    for (size_t i = 0; name != NULL && i < n; i++)
        pnb__free(name[i]);
    pnb__free(name);
    pnb__free(label);
    return status;
}

/* Labels of a side; a row without a class has one of its own, below 0, that nothing else has. */
static void spread(const int32_t *class_of, size_t n, int64_t first, int64_t *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = class_of[i] >= 0 ? class_of[i] : first - (int64_t)i;
}

pnb_status pnb__retrieval_class_truth(pnb__app *app, const pnb__retrieval_opts *opts,
                                      pnb__retrieval *run)
{
    size_t n_images = run->images->n, n_texts = run->texts->n;
    int64_t *label = NULL;
    pnb_status status;
    PNB_TRY(read_classes(opts, run, &app->err));
    PNB_TRY(PNB_ALLOC(label, n_images + n_texts, &app->err));
    spread(run->classes.image, n_images, -1, label);
    spread(run->classes.text, n_texts, -1 - (int64_t)n_images, label + n_images);
    status =
        pnb_truth_create_labels(&run->truth, label, n_images, label + n_images, n_texts, &app->err);
    if (status == PNB_ARG)
        pnb__error_prefix(&app->err, "--class-key %s", opts->class_key);
done:
    pnb__free(label);
    return status;
}

/* ---- figures ---- */

enum { I2T_R1, I2T_R_PRECISION, T2I_R1, T2I_R_PRECISION, N_COLUMNS };

/* One direction: means by class of what its queries reached. */
static pnb_status average(const pnb_ranks *ranks, const int32_t *class_of, size_t n_classes,
                          pnb_group_score *r1, pnb_group_score *r_precision,
                          pnb_group_scores all[2], pnb_error *err)
{
    const pnb_bootstrap_opts none = {.n_resamples = 0};
    double *right = NULL;
    int32_t *group = NULL;
    pnb_status status;
    PNB_TRY(PNB_ALLOC(right, ranks->n_queries, err));
    PNB_TRY(PNB_ALLOC(group, ranks->n_queries, err));
    for (size_t q = 0; q < ranks->n_queries; q++) {
        right[q] = ranks->best_rank[q] == 1;
        group[q] = ranks->best_rank[q] > 0 ? class_of[q] : -1;
    }
    PNB_TRY(pnb_group_scores_compute(right, group, ranks->n_queries, n_classes, &none, r1, &all[0],
                                     err));
    status = pnb_group_scores_compute(ranks->r_precision, group, ranks->n_queries, n_classes, &none,
                                      r_precision, &all[1], err);
done:
    pnb__free(right);
    pnb__free(group);
    return status;
}

static void put_means(const pnb_group_scores all[N_COLUMNS], pnb__result *r)
{
    static const char *const keys[] = {"i2t_recall_at_1", "i2t_r_precision", "t2i_recall_at_1",
                                       "t2i_r_precision"};
    static const char *const labels[] = {"i2t R@1, mean of a class", "i2t R-Prec",
                                         "t2i R@1, mean of a class", "t2i R-Prec"};
    pnb__result_begin(r, "class_means", "each class counted alike");
    for (size_t c = 0; c < N_COLUMNS; c++)
        pnb__result_real(r, keys[c], labels[c], all[c].average.value, 4);
    pnb__result_end(r);
}

/* Rows of class k that are queries of a direction, and how far they came. */
static void put_class(const pnb__row_classes *c, size_t k, pnb_group_score *const by[N_COLUMNS],
                      pnb__result *r)
{
    pnb__result_cell_text(r, c->name[k]);
    for (size_t i = 0; i < N_COLUMNS; i += 2) {
        pnb__result_cell_int(r, (int64_t)by[i][k].n);
        pnb__result_cell_real(r, by[i][k].mean.value, 4);
        pnb__result_cell_real(r, by[i + 1][k].mean.value, 4);
    }
}

pnb_status pnb__retrieval_put_classes(pnb__app *app, const pnb__retrieval *run, pnb__result *r)
{
    static const pnb__column columns[] = {{"class", "class"},
                                          {"n_images", "pictures"},
                                          {"i2t_recall_at_1", "i2t R@1"},
                                          {"i2t_r_precision", "i2t R-Prec"},
                                          {"n_texts", "captions"},
                                          {"t2i_recall_at_1", "t2i R@1"},
                                          {"t2i_r_precision", "t2i R-Prec"}};
    const pnb__row_classes *c = &run->classes;
    pnb_group_scores all[N_COLUMNS];
    pnb_group_score *by[N_COLUMNS] = {NULL};
    pnb_status status = PNB_OK;
    if (c->n == 0)
        return PNB_OK;
    for (size_t i = 0; i < N_COLUMNS; i++)
        PNB_TRY(PNB_ALLOC(by[i], c->n, &app->err));
    PNB_TRY(average(&run->i2t.ranks, c->image, c->n, by[I2T_R1], by[I2T_R_PRECISION], &all[I2T_R1],
                    &app->err));
    PNB_TRY(average(&run->t2i.ranks, c->text, c->n, by[T2I_R1], by[T2I_R_PRECISION], &all[T2I_R1],
                    &app->err));
    put_means(all, r);
    pnb__result_table(r, "classes", "by class", columns, PNB_COUNT(columns));
    for (size_t k = 0; k < c->n; k++)
        if (by[I2T_R1][k].n + by[T2I_R1][k].n > 0)
            put_class(c, k, by, r);
done:
    for (size_t i = 0; i < N_COLUMNS; i++)
        pnb__free(by[i]);
    return status;
}
