/* Making a model small in memory: its block matrices in 8 bits or rounded to 16.
 *
 * Rounded weights stay in f32 while the process lives and give the very results that a reader of
 * the 16-bit file gets, because widening is exact. Saving writes them in their type. */
#include <string.h>

#include "models/model.h"
#include "models/weights/quantized_weights.h"

/* The record travels with the weights, as compact JSON in the file's metadata. */
static pnb_status set_record(pnb_model *m, json_t *record, pnb_error *err)
{
    char *text = record != NULL ? json_dumps(record, JSON_COMPACT) : NULL;
    m->weights.record = text != NULL ? pnb__arena_strdup(&m->weights.arena, text) : NULL;
    pnb__free(text);
    return m->weights.record != NULL ? PNB_OK : pnb__fail_nomem(err, 256);
}

/* 8 bits replace a matrix by bytes and scales, one at a time, so that the peak is one matrix above
 * the model; 16 bits round its values in place. */
static pnb_status make_small(pnb__weights *w, pnb_weight_type to, int activation_bits,
                             pnb_error *err)
{
    int levels = activation_bits == 8 ? PNB__I8_LEVELS_8BIT : PNB__I8_LEVELS_7BIT;
    pnb_status status = PNB_OK;
    for (size_t i = 0; status == PNB_OK && i < w->n; i++) {
        pnb__weight *item = &w->items[i];
        if (!pnb__quantized_is_small(&item->param))
            continue;
        if (to == PNB_WEIGHTS_INT8)
            status = pnb__quantized_make(w, item, levels, err);
        else
            status = pnb__quantized_round(w, &item->param, w->half, err);
    }
    return status;
}

/* Convolutions and GRUs stay as they are: a model of them alone would be written out again, no byte
 * smaller and called small. */
static bool has_blocks(const pnb__weights *w)
{
    for (size_t i = 0; i < w->n; i++)
        if (pnb__quantized_is_small(&w->items[i].param))
            return true;
    return false;
}

/* 16 bits change values and need memory of their own; 8 bits make theirs. Planned towers read what
 * is gone, so they are planned again. */
pnb_status pnb__model_can_quantize(const pnb_model *m, pnb_weight_type to, int activation_bits,
                                   pnb_error *err)
{
    const pnb__weights *w = &m->weights;
    if ((to != PNB_WEIGHTS_INT8 && to != PNB_WEIGHTS_BF16 && to != PNB_WEIGHTS_F16) ||
        (to == PNB_WEIGHTS_INT8 && activation_bits != 7 && activation_bits != 8))
        return pnb__fail(err, PNB_ARG,
                         "weights can be made int8 with 7 or 8 activation bits, "
                         "bf16 or f16");
    if (w->record != NULL)
        return pnb__fail(err, PNB_ARG,
                         "the model's weights are small already (%s); start from the "
                         "model they were made from",
                         m->info.weights_stored);
    if (w->kernels.real != PNB__F32)
        return pnb__fail(err, PNB_UNSUPPORTED, "only models loaded in f32 can be made small");
    if (!has_blocks(w))
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "nothing of this model can be made small: only the matrices of "
                         "transformer blocks are, and it has none");
    return PNB_OK;
}

pnb_status pnb_model_quantize(pnb_model *m, pnb_weight_type to, int activation_bits, pnb_error *err)
{
    pnb__weights *w = &m->weights;
    pnb_status status = pnb__model_can_quantize(m, to, activation_bits, err);
    if (status != PNB_OK)
        return status;
    status = to == PNB_WEIGHTS_INT8 ? pnb_model_set_precision(m, PNB_PRECISION_FP32, err)
                                    : pnb__weights_make_owned(w, err);
    if (status != PNB_OK)
        return status;
    w->half = to == PNB_WEIGHTS_BF16 ? PNB_BF16 : to == PNB_WEIGHTS_F16 ? PNB_F16 : PNB_F32;
    status = make_small(w, to, activation_bits, err);
    pnb__model_replan(m);
    json_t *record =
        to == PNB_WEIGHTS_INT8
            ? json_pack("{s:s,s:i}", "weights", "int8", "activation_bits", activation_bits)
            : json_pack("{s:s}", "weights", to == PNB_WEIGHTS_BF16 ? "bf16" : "f16");
    if (status == PNB_OK)
        status = set_record(m, record, err);
    json_decref(record);
    if (status == PNB_OK)
        status = pnb__model_weights_changed(m, err);
    return status == PNB_OK ? pnb__model_fill_info(m, err) : status;
}

/* Figures of a comparison stay with the weights they were measured on, under "calibration". */
pnb_status pnb_model_set_calibration(pnb_model *m, const char *json, pnb_error *err)
{
    json_t *record = NULL, *figures = NULL;
    pnb_status status = PNB_OK;
    if (m->weights.record == NULL)
        return pnb__fail(err, PNB_ARG, "the model was not made small");
    PNB_TRY(
        pnb__json_load_bytes(&record, m->weights.record, strlen(m->weights.record), "record", err));
    PNB_TRY(pnb__json_load_bytes(&figures, json, strlen(json), "calibration", err));
    if (json_object_set(record, "calibration", figures) != 0)
        PNB_TRY(pnb__fail_nomem(err, strlen(json)));
    status = set_record(m, record, err);
done:
    json_decref(record);
    json_decref(figures);
    return status;
}

const char *pnb_model_quantization(const pnb_model *m)
{
    return m->weights.record;
}
