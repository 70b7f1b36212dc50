/* A case of family bprw: traversal of a small caption hierarchy, deterministic and by inclusion,
 * with the released code's choices (pnb_traverse_opts_released). */
#include <stdlib.h>
#include <string.h>

#include "penumbra/traversal.h"
#include "tests/golden/golden.h"

typedef struct hcaps {
    pnb_gaussians images, texts, null_text;
    float *image_mean, *image_log_var, *text_mean, *text_log_var, *root;
    int64_t *label; /* of every caption; the truth of picture i are its own captions' */
    size_t n_levels;
} hcaps;

static void free_hcaps(hcaps *h)
{
    pnb__free(h->image_mean);
    pnb__free(h->image_log_var);
    pnb__free(h->text_mean);
    pnb__free(h->text_log_var);
    pnb__free(h->root);
    pnb__free(h->label);
}

static pnb_status read_tensors(hcaps *h, const golden_case *c, pnb_error *err)
{
    const pnb_array_view *text = golden_find(c, "text_mean");
    h->image_mean = golden_f32(c, "image_mean", NULL, err);
    h->image_log_var = golden_f32(c, "image_logvar", NULL, err);
    h->text_mean = golden_f32(c, "text_mean", NULL, err);
    h->text_log_var = golden_f32(c, "text_logvar", NULL, err);
    h->root = golden_f32(c, "root", NULL, err);
    if (h->image_mean == NULL || h->image_log_var == NULL || h->text_mean == NULL ||
        h->text_log_var == NULL || h->root == NULL)
        return err->status;
    size_t n = (size_t)text->shape[0], dim = (size_t)text->shape[2];
    h->n_levels = (size_t)text->shape[1];
    h->images =
        (pnb_gaussians){.n = n, .dim = dim, .mean = h->image_mean, .log_var = h->image_log_var};
    h->texts = (pnb_gaussians){
        .n = n * h->n_levels, .dim = dim, .mean = h->text_mean, .log_var = h->text_log_var};
    h->null_text = (pnb_gaussians){.n = 1, .dim = dim, .mean = h->root};
    return PNB_OK;
}

/* Equal texts get the number of their first caption. */
static pnb_status read_labels(hcaps *h, const golden_case *c, pnb_error *err)
{
    size_t n = h->texts.n;
    char *path = pnb__path_join(c->dir, "captions.json");
    json_t *rows = NULL;
    const char **text = pnb__alloc_zero(n, sizeof *text);
    pnb_status status = PNB_OK;
    h->label = pnb__alloc_array(n, sizeof *h->label);
    if (path == NULL || text == NULL || h->label == NULL)
        PNB_TRY(pnb__fail_nomem(err, n));
    PNB_TRY(pnb__json_load_file(&rows, path, 0, err));
    for (size_t i = 0; i < n; i++) {
        json_t *row = json_array_get(rows, i / h->n_levels);
        text[i] = json_string_value(json_array_get(row, i % h->n_levels));
        if (text[i] == NULL)
            PNB_TRY(pnb__fail(err, PNB_FORMAT, "captions.json has no caption %zu", i));
        h->label[i] = (int64_t)i;
        for (size_t j = 0; j < i; j++)
            if (strcmp(text[j], text[i]) == 0) {
                h->label[i] = (int64_t)j;
                break;
            }
    }
done:
    pnb__free(text);
    pnb__free(path);
    json_decref(rows);
    return status;
}

static pnb_status give_score(golden_case *c, const hcaps *h, const pnb_traversal *t,
                             const char *name, pnb_error *err)
{
    const pnb_traversal_truth truth = {h->texts.n, h->images.n, h->n_levels, h->label, h->label};
    pnb_traversal_figures f;
    char path[64];
    pnb_status status = pnb_traversal_score(t, &truth, NULL, &f, err);
    if (status != PNB_OK)
        return status;
    snprintf(path, sizeof path, "%s.precision", name);
    golden_give_scalar(c, path, 100.0 * f.precision);
    snprintf(path, sizeof path, "%s.recall", name);
    golden_give_scalar(c, path, 100.0 * f.recall);
    snprintf(path, sizeof path, "%s.any_recall", name);
    golden_give_scalar(c, path, 100.0 * f.any_recall);
    return PNB_OK;
}

static pnb_status walk(golden_case *c, const hcaps *h, pnb_root root, const char *name,
                       const char *root_only, pnb_error *err)
{
    pnb_traverse_opts opts = pnb_traverse_opts_released();
    pnb_traversal t = {0};
    pnb_status status = PNB_OK;
    opts.root = root;
    opts.n_steps = (size_t)golden_number(c, "n_steps", 50);
    opts.including_weight = golden_number(c, "n_root", 1);
    PNB_TRY(pnb_traverse(c->ctx, &h->images, &h->texts, &h->null_text, &opts, &t, err));
    PNB_TRY(give_score(c, h, &t, name, err));
    if (root_only != NULL) { /* the way is the root alone */
        const pnb_traversal alone = {
            .n = t.n, .n_steps = 1, .step = t.root, .start = t.start, .root = t.root};
        PNB_TRY(give_score(c, h, &alone, root_only, err));
    }
    if (root == PNB_ROOT_INCLUDING) {
        double *index = pnb__alloc_array(t.n, sizeof *index);
        if (index == NULL)
            PNB_TRY(pnb__fail_nomem(err, t.n * sizeof *index));
        for (size_t i = 0; i < t.n; i++)
            index[i] = (double)t.including[i];
        golden_give(c, "unc_root_index", index, t.n);
        pnb__free(index);
    }
done:
    pnb_traversal_reset(&t);
    return status;
}

pnb_status golden_case_hcaps(golden_case *c, pnb_error *err)
{
    hcaps h = {0};
    pnb_status status = PNB_OK;
    PNB_TRY(read_tensors(&h, c, err));
    PNB_TRY(read_labels(&h, c, err));
    PNB_TRY(walk(c, &h, PNB_ROOT_NULL_TEXT, "det", "det_root_only", err));
    PNB_TRY(walk(c, &h, PNB_ROOT_INCLUDING, "unc", "unc_root_only", err));
    PNB_TRY(walk(c, &h, PNB_ROOT_AVERAGE, "unc_nroot_base", NULL, err));
done:
    free_hcaps(&h);
    return status;
}
