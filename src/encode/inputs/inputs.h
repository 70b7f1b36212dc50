/* What a user names in words, as a numbered list of pictures or captions. */
#ifndef PNB_ENCODE_INPUTS_INPUTS_H
#define PNB_ENCODE_INPUTS_INPUTS_H

#include <stdio.h>

#include "encode/job/embed_source.h"
#include "io/json/json.h"
#include "penumbra/dataset.h"
#include "penumbra/embeddings.h"
#include "penumbra/error.h"

/* ---- pictures ---- read lazily; any threads may read different ones at once */
typedef struct pnb__image_inputs pnb__image_inputs;

/* Each of `words` is a picture file, a folder, a tar, csv, tsv or jsonl data set (braces, globs and
 * "::" as for --train-data), or "-": one path a line from `in`. Free with pnb__image_inputs_free.
 * Errors  NOT_FOUND (nothing matches), ARG ("-" where `in` is NULL), those of pnb_dataset_open */
pnb_status pnb__image_inputs_open(pnb__image_inputs **out, const char *const *words, size_t n_words,
                                  FILE *in, pnb_error *err);
/* The same with options for the data sets among them: columns of tables, say. */
pnb_status pnb__image_inputs_open_with(pnb__image_inputs **out, const char *const *words,
                                       size_t n_words, FILE *in, const pnb_dataset_opts *opts,
                                       pnb_error *err);
/* One data set, opened with `opts`. */
pnb_status pnb__image_inputs_open_set(pnb__image_inputs **out, const char *spec,
                                      const pnb_dataset_opts *opts, pnb_error *err);
/* The data set when there is nothing else, or NULL. */
const pnb_dataset *pnb__image_inputs_set(const pnb__image_inputs *p);
void pnb__image_inputs_free(pnb__image_inputs *p);
size_t pnb__image_inputs_count(const pnb__image_inputs *p);
/* `opts` as for pnb_image_decode. */
pnb_status pnb__image_inputs_load(const pnb__image_inputs *p, size_t i, const pnb_image_opts *opts,
                                  pnb_image *out, pnb_error *err);
/* What the data sets left out or found damaged when they were opened, each named as skipped. */
void pnb__image_inputs_report(const pnb__image_inputs *p,
                              void (*skipped)(void *user, const char *what, const char *why),
                              void *user);
/* What to call picture i in a message: its path, or "data set: key". */
pnb_status pnb__image_inputs_name(const pnb__image_inputs *p, size_t i, char *text, size_t size,
                                  pnb_error *err);
/* The pictures to be embedded, rows named by id, path, and where a data set holds them. */
pnb__embed_source pnb__image_inputs_source(const pnb__image_inputs *p);

/* Id of a sample's row: its key; in tar shards without the shard, as truth files name it. */
const char *pnb__sample_id(const pnb_dataset *set, const pnb_sample *sample);

/* Fields of a sample's record that its row carries along, in the order of their names below. */
enum { PNB__N_CARRIED = 4 };
extern const char *const pnb__carried_fields[PNB__N_CARRIED]; /* url caption uid key */
/* The record of a sample, to json_decref; NULL where it has none.  Errors  FORMAT, NOMEM */
pnb_status pnb__sample_record(json_t **out, const pnb_sample *sample, pnb_error *err);
/* Appends them to an open JSON object, each behind a comma; a caption's row has its text already.
 */
void pnb__carry_fields(pnb__buf *extra, json_t *record, bool is_text);

/* What a record says of the ambiguity of its picture or caption, behind a comma where the object
 * has a field already: "ambiguity" (an object), "entropy_bits", "expected_bits", "dose", "swapped"
 * and "noise". A row of a picture has them from pnb__carry_fields. */
void pnb__append_known(pnb__buf *extra, const json_t *record);

/* The class of a sample, its name and number where they are known, the same way. */
void pnb__carry_class(pnb__buf *extra, const pnb_sample *sample);

/* `extra`, the text of an object with fields, and behind them what lists of a made set's record
 * (docs/data.md), as long as its captions, say of caption k: "caption_id", by which truth files
 * know it (pictures that share a caption share its id), and whether it is "noise". Free with
 * pnb__free. NULL: out of memory. */
char *pnb__extra_of_text(const char *extra, const json_t *record, size_t k, size_t n_texts);

/* ---- captions ---- in memory */
typedef struct pnb__text {
    char *id;     /* NULL: its place */
    char *text;   /* UTF-8 */
    char *extra;  /* JSON object text or NULL */
    int level;    /* -1 unknown */
    size_t place; /* among all that were named, those that could not be read too */
} pnb__text;

typedef struct pnb__text_inputs {
    pnb__text *items;
    size_t n;
    char csv_separator; /* of tables; 0: TAB in a .tsv, else a comma. Set it before adding */
    char **bad;         /* one sentence per caption that could not be read */
    size_t n_bad;
} pnb__text_inputs;

/* Adds captions of a source: a text file (one a line: an empty line is the empty caption, so that
 * rows are lines; a byte order mark and the CR of CRLF are no text), "-" (lines of `in`), a .jsonl
 * with "text" or "caption" or "captions" (and "id", "level"), a .csv or .tsv with the column
 * `caption_key`, or a data set (folder, tar shards), all of whose captions are taken. Lines that
 * are not UTF-8 or longer than PNB_TOKENIZER_MAX_BYTES are recorded in `bad`; a file that is no
 * text (NUL bytes, more than 1% of its bytes not UTF-8) is a FORMAT error that says what it is.
 * Errors  NOT_FOUND, FORMAT, ARG ("-" where `in` is NULL), IO, NOMEM */
pnb_status pnb__text_inputs_add(pnb__text_inputs *c, const char *source, const char *caption_key,
                                FILE *in, pnb_error *err);
pnb_status pnb__text_inputs_add_text(pnb__text_inputs *c, const char *text, pnb_error *err);
void pnb__text_inputs_reset(pnb__text_inputs *c);
/* The captions to be embedded, rows named by id, text, level and what else a caption carries. */
pnb__embed_source pnb__text_inputs_source(const pnb__text_inputs *c);

/* Picture of a row again, by its path or by the data set it came from; an empty one where it cannot
 * be had any more. Errors  NOMEM
 * `cache` keeps the last data set open between calls: start from NULL, free with
 * pnb_dataset_free. */
typedef struct pnb__row_source {
    pnb_dataset *dataset;
    char *spec;
} pnb__row_source;
pnb_status pnb__row_image(pnb__row_source *source, const pnb_embeddings *set, size_t row,
                          pnb_image *out, pnb_error *err);
/* Its name or most exact caption in the data set it came from, cut to `size`; false: none. */
bool pnb__row_title(pnb__row_source *source, const pnb_embeddings *set, size_t row, char *text,
                    size_t size);
void pnb__row_source_reset(pnb__row_source *source);

#endif
