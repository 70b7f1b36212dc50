/* The encode room as commands use it: models by name, reports and progress on the log, Ctrl-C. */
#ifndef PNB_COMMANDS_COMMON_ENCODE_USE_H
#define PNB_COMMANDS_COMMON_ENCODE_USE_H

#include "encode/inputs/inputs.h"
#include "encode/job/embed_job.h"
#include "program/progress.h"
#include "program/result_end.h"

/* Opens what --model names, with a warning where something is assumed. The error is app->err. */
pnb_status pnb__encoder_open_named(pnb_encoder *e, pnb__app *app, const char *name,
                                   const pnb_encoder_opts *parts);

/* PNB_OK where embeddings of these sides (PNB_ENCODE_...) have a variance in every dimension, which
 * inclusion compares; the text says what the model's are. UNSUPPORTED */
pnb_status pnb__need_variances(const pnb_encoder *e, int sides, pnb_error *err);

/* The same where any uncertainty of a row will do: that of a concentration, too. */
pnb_status pnb__need_uncertainty(const pnb_encoder *e, int sides, pnb_error *err);

/* The tokenizer's part of a result: ids, what pads and who says so, cleaning. */
void pnb__describe_tokenizer(const pnb_tokenizer *tokenizer, pnb__result *r);

/* All of `files`, then all of `texts` (NULL: none); captions that cannot be read are named as
 * skipped. */
pnb_status pnb__text_inputs_read(pnb__app *app, pnb__text_inputs *c, const pnb__text_list *files,
                                 const pnb__text_list *texts, const char *caption_key);

/* pnb_encode_opts.skipped of commands: names and counts it. `user` is the pnb__app. */
void pnb__encode_skipped(void *user, const char *what, const char *why);

/* The usual options with the command's seed, which Ctrl-C stops: nothing is shown, and the first
 * input that cannot be read is an error. */
pnb_encode_opts pnb__encode_opts(pnb__app *app);
void pnb__encode_opts_init(pnb_encode_opts *opts, pnb__app *app);

/* Makes `opts` show progress, say where a job continues, and name what is skipped. The watch must
 * live as long. */
typedef struct pnb__encode_watch {
    pnb__progress progress;
    pnb__app *app;
    const char *unit; /* "pictures" */
    bool has_started;
} pnb__encode_watch;
void pnb__encode_watch_init(pnb__encode_watch *w, pnb__app *app, const char *unit,
                            pnb_encode_opts *opts);

/* A short list in memory, for queries: *out is a new set of all rows. */
pnb_status pnb__embed_texts(pnb__app *app, pnb_encoder *encoder, const pnb__text_inputs *texts,
                            pnb_embeddings **out);
pnb_status pnb__embed_images(pnb__app *app, pnb_encoder *encoder, const pnb__image_inputs *images,
                             bool exif, pnb_embeddings **out);

/* A long list in memory, with progress; what cannot be read is named as skipped and has no row. */
pnb_status pnb__embed_all(pnb__app *app, pnb_encoder *encoder, const pnb__embed_source *source,
                          const char *unit, bool exif, pnb_embeddings **out);

#endif
