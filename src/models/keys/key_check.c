/* The comparison that opening a model makes, told key by key instead of ending at the first error:
 * every weight the configuration needs, every array the file has. The same tables and the same
 * checks as in opening (key_mapping.c, weights.c), so the two cannot disagree. */
#include "models/keys/key_check.h"

#include <string.h>

#include "models/keys/batch_counts.h"
#include "models/weights/quantized_weights.h"

/* What opening would read: the folder's configuration, else what the arrays tell. */
static pnb_status read_settings(pnb__key_check *e, const char *config, pnb_error *err)
{
    json_t *root = NULL;
    pnb_status status;
    if (config == NULL) {
        status = pnb__family_config_of(&e->settings, &root, &e->file, err);
        if (status == PNB_OK && root == NULL)
            status = pnb__config_from_shapes(&e->settings, &e->file, err);
    } else {
        status = pnb__json_load_file(&root, config, 0, err);
        if (status == PNB_OK)
            status = pnb__family_read_config(&e->settings, root, config, err);
    }
    json_decref(root);
    return status;
}

/* The 8-bit matrices of a small model come with their scales, which a configuration does not name:
 * a key that ends like one belongs beside such an array and nowhere else. */
static bool is_scale(const pnb__key_check *e, const pnb__weights *w, const char *key)
{
    char part[224];
    size_t n = strlen(key), suffix = sizeof PNB__SCALE_SUFFIX - 1;
    if (n <= suffix || n >= sizeof part || strcmp(key + n - suffix, PNB__SCALE_SUFFIX) != 0)
        return false;
    snprintf(part, sizeof part, "%.*s", (int)(n - suffix), key);
    const pnb_array_view *a = pnb__weight_file_lookup(&e->file, part);
    return a != NULL && a->dtype == PNB_I8 && pnb__weights_expects(w, part);
}

/* An 8-bit array that is there without its scales cannot be read. */
static void compare_scales(pnb__key_check *e, const pnb__key_mapping_part *part, pnb__key_fn fn,
                           void *user)
{
    char key[224], text[512];
    const pnb_array_view *a = pnb__weight_file_lookup(&e->file, part->key);
    if (a == NULL || a->dtype != PNB_I8)
        return;
    e->n_expected++;
    snprintf(key, sizeof key, "%s%s", part->key, PNB__SCALE_SUFFIX);
    if (pnb__weight_file_lookup(&e->file, key) != NULL) {
        e->n_found++;
        return;
    }
    snprintf(text, sizeof text, "%s is stored in 8 bits, but its scales %s are missing", part->key,
             key);
    fn(user, PNB__KEY_MISSING, text);
}

/* Every weight that the configuration needs: its arrays, each of the shape it must have. */
static void compare_weights(pnb__key_check *e, const pnb__weights *w, pnb__key_fn fn, void *user)
{
    for (size_t i = 0; i < w->n; i++) {
        pnb__key_mapping_part parts[3];
        pnb__gathered g;
        pnb_error err = PNB_ERROR_INIT;
        const pnb__param *p = &w->items[i].param;
        size_t n = pnb__key_mapping_parts(&e->layout, p->name, parts);
        e->n_expected += n;
        for (size_t k = 0; k < n; k++) {
            e->n_found += pnb__weight_file_lookup(&e->file, parts[k].key) != NULL ? 1 : 0;
            compare_scales(e, &parts[k], fn, user);
        }
        pnb_status status = pnb__key_mapping_gather(&e->layout, &e->file, p, false, &g, &err);
        if (status != PNB_OK)
            fn(user, status == PNB_NOT_FOUND ? PNB__KEY_MISSING : PNB__KEY_SHAPE, err.text);
        else
            pnb__free(g.owned);
    }
}

/* Every array that the file has and nothing needs: a sign of another model, since weights that are
 * left out are as wrong as weights that are missing. */
static void compare_keys(const pnb__key_check *e, const pnb__weights *w, pnb__key_fn fn, void *user)
{
    char text[320];
    for (size_t i = 0; i < pnb__weight_file_count(&e->file); i++) {
        const char *key = pnb__weight_file_at(&e->file, i)->name;
        if (pnb__batch_count_is(w, &e->layout, key) || is_scale(e, w, key))
            continue; /* numbers that are kept, where there are some */
        if (pnb__key_mapping_ignores(&e->layout, key)) {
            snprintf(text, sizeof text, "%.200s is a buffer that nothing reads", key);
            fn(user, PNB__KEY_IGNORED, text);
        } else if (!pnb__weights_expects(w, key)) {
            snprintf(text, sizeof text,
                     "%.200s is not part of the model the configuration describes", key);
            fn(user, PNB__KEY_UNEXPECTED, text);
        }
    }
}

/* All that is wrong, where opening stops at the first. */
pnb_status pnb__model_check_keys(pnb__key_check *out, const pnb_ctx *ctx, const char *dir,
                                 pnb__key_fn fn, void *user, pnb_error *err)
{
    pnb_status status = PNB_OK;
    char *config = NULL, *weights = NULL;
    pnb__weights w = {0};
    *out = (pnb__key_check){0};
    if (!pnb__path_is_dir(dir))
        return pnb__fail(err, PNB_NOT_FOUND, "%s is not a directory", dir);
    PNB_TRY(pnb__model_find_config(&config, dir, err));
    PNB_TRY(pnb__weight_file_find(&weights, dir, err));
    snprintf(out->config, sizeof out->config, "%s", config != NULL ? config : "");
    snprintf(out->weights, sizeof out->weights, "%s", weights);
    PNB_TRY(pnb__weight_file_open(&out->file, weights, err));
    snprintf(out->format, sizeof out->format, "%s", pnb_checkpoint_format(out->file.arrays));
    out->warning = pnb__weight_file_warning(&out->file);
    PNB_TRY(read_settings(out, config, err));
    PNB_TRY(pnb__family_detect_keys(&out->layout, &out->settings, &out->file, err));
    PNB_TRY(pnb__config_fit(&out->settings, &out->layout, &out->file, err));
    pnb__describe_towers(&out->info, &out->settings, &out->layout);
    /* names and shapes alone: no value is read, so a folder of gigabytes is looked at in an instant
     */
    PNB_TRY(pnb__weights_declare(&w, &out->settings, ctx, PNB__F32, err));
    w.layout = out->layout;
    compare_weights(out, &w, fn, user);
    compare_keys(out, &w, fn, user);
done:
    if (w.items != NULL)
        pnb__weights_reset(&w);
    pnb__free(config);
    pnb__free(weights);
    return status;
}

void pnb__key_check_reset(pnb__key_check *e)
{
    pnb__weight_file_close(&e->file);
    *e = (pnb__key_check){0};
}
