/* A model with weights in 8 bits, written only when it embeds as the one it was made from. */
#ifndef PNB_COMMANDS_QUANTIZE_QUANTIZE_H
#define PNB_COMMANDS_QUANTIZE_QUANTIZE_H

#include "encode/encoder.h"
#include "encode/inputs/inputs.h"
#include "penumbra/model.h"
#include "program/app.h"
#include "program/result_end.h"

typedef struct pnb__quantize_opts {
    const char *model, *out;
    pnb_encoder_opts parts;          /* `use` follows from the set below */
    const pnb__image_inputs *images; /* what the two models are compared on; at least one of both */
    const pnb__text_inputs *texts;
    pnb_weight_type to;
    int activation_bits;
    double min_cosine, min_rank, min_top1; /* limits of the figures below */
} pnb__quantize_opts;

/* Embeds the calibration inputs with the model and with its weights in 8 bits, puts the figures
 * into r, and writes opts->out when every figure is within its limit: the model directory with the
 * 8-bit weights, the figures in its configuration, tokenizer and preprocessing carried over. Errors
 * EXISTS (out holds a model), QUALITY (a figure is under its limit, named; nothing is written),
 * those of loading, embedding and writing */
pnb_status pnb__quantize_run(pnb__app *app, const pnb__quantize_opts *opts, pnb__result *r);

#endif
