/* A trunk begins as a ResNet that was trained on classes: torchvision's, or another one in its
 * names, as CutMix's.
 *
 *     theirs   conv1.weight              layer3.22.bn1.running_var              fc.*
 *     ours     visual.cnn.conv1.weight   visual.cnn.layer3.22.bn1.running_var   none
 *
 * Values are copied, since the weights they become are trained. */
#include "models/pcme/trunk_file.h"

#include <string.h>

#include "models/keys/batch_counts.h"

#define CNN "visual.cnn."

static const pnb__key_rule rules[] = {{NULL, "fc.*", PNB__KEY_WHOLE},
                                      {CNN "*", "*", PNB__KEY_WHOLE}};
static const pnb__key_mapping_table no_text = {"none", NULL, 0};
static const pnb__key_mapping_table trunk = {"a torchvision ResNet", rules, PNB_COUNT(rules)};

/* All of one weight, in doubles, which hold the values of every type. */
static pnb_status read_one(pnb_model *m, pnb__param *p, const pnb__key_mapping *l,
                           const pnb__weight_file *file, pnb_error *err)
{
    pnb__gathered g = {.owned = NULL};
    double *values = pnb__alloc_array(p->n, sizeof *values);
    pnb_status status = values == NULL ? pnb__fail_nomem(err, p->n * sizeof *values)
                                       : pnb__key_mapping_gather(l, file, p, false, &g, err);
    if (status == PNB_OK)
        status = pnb_array_to_f64(&g.view, values, err);
    if (status == PNB_OK)
        status = pnb__param_write(p, &m->weights.kernels, 0, p->n, values, err);
    pnb__free(g.owned);
    pnb__free(values);
    return status;
}

/* A ResNet of more blocks, or another network, has arrays that this trunk lacks. */
static pnb_status check_all_read(const pnb_model *m, const pnb__key_mapping *l,
                                 const pnb__weight_file *file, pnb_error *err)
{
    pnb__weights w = m->weights; /* the same weights under the file's names */
    w.layout = *l;
    for (size_t i = 0; i < pnb__weight_file_count(file); i++) {
        const char *key = pnb__weight_file_at(file, i)->name;
        if (!pnb__weights_expects(&w, key))
            return pnb__fail(err, PNB_FORMAT, "%s has no place in a trunk of %s", key,
                             m->info.vision.architecture);
    }
    return PNB_OK;
}

/* Everything is compared before the first step: half a trunk would train, and badly. */
static pnb_status read_all(pnb_model *m, const pnb__weight_file *file, size_t *n, pnb_error *err)
{
    pnb__key_mapping l;
    pnb_status status;
    PNB_TRY(pnb__key_mapping_choose(&l, file, &trunk, &no_text, err));
    for (size_t i = 0; i < m->weights.n; i++) {
        pnb__param *p = &m->weights.items[i].param;
        if (!pnb__starts_with(p->name, CNN))
            continue;
        PNB_TRY(read_one(m, p, &l, file, err));
        (*n)++;
    }
    PNB_TRY(check_all_read(m, &l, file, err));
    status = pnb__batch_counts_load(&m->weights, &l, file, err);
done:
    return status;
}

pnb_status pnb__pcme_read_trunk(pnb_model *m, const char *path, size_t *n, pnb_error *err)
{
    pnb__weight_file file;
    *n = 0;
    if (pnb__model_find_param(m, CNN "conv1.weight") == NULL)
        return pnb__fail(err, PNB_ARG, "a %s model has no ResNet", m->info.family);
    pnb_status status = pnb__weight_file_open(&file, path, err);
    if (status != PNB_OK)
        return status;
    status = read_all(m, &file, n, err);
    if (status != PNB_OK)
        pnb__error_prefix(err, "%s", path);
    pnb__weight_file_close(&file);
    return status;
}
