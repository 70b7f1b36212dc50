/* `penumbra tokenizer encode | decode` and `penumbra bench tokenize`. */
#ifndef PNB_COMMANDS_TOKENIZER_TOKENIZE_H
#define PNB_COMMANDS_TOKENIZER_TOKENIZE_H

#include "encode/inputs/inputs.h"
#include "penumbra/tokenizer.h"
#include "program/app.h"
#include "program/result_end.h"

typedef struct pnb__tokenize_opts {
    const char *model, *tokenizer; /* a model directory or a tokenizer; one of them */
    const char *clean;             /* NULL: what the model or the tokenizer says */
    int64_t context_length;        /* PNB__INT_UNSET: the model's; without one, whole captions */
    bool decode;                   /* the captions are lists of ids */
} pnb__tokenize_opts;

/* Writes ids and pieces of every caption to app->out as they come. */
pnb_status pnb__tokenize(pnb__app *app, const pnb__tokenize_opts *opts,
                         const pnb__text_inputs *texts);

typedef struct pnb__bench_tokenize_opts {
    pnb__tokenize_opts tokenize;
    double seconds;
    size_t min_repeats;
} pnb__bench_tokenize_opts;
/* One thread over all captions, cleaning included: bytes, tokens, bytes_per_s and times. */
pnb_status pnb__bench_tokenize(pnb__app *app, const pnb__bench_tokenize_opts *opts,
                               const pnb__text_inputs *texts, pnb__result *r);

#endif
