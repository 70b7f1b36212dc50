/* The pairs of a data set worth keeping: figures, rules, and the files that say so. */
#ifndef PNB_COMMANDS_FILTER_FILTER_H
#define PNB_COMMANDS_FILTER_FILTER_H

#include "commands/common/match_use.h"
#include "commands/common/rows/align.h"
#include "penumbra/calibrate.h"
#include "penumbra/embeddings.h"
#include "penumbra/filter.h"
#include "program/app.h"
#include "program/result_end.h"

typedef struct pnb__filter_opts {
    const char *images, *texts;  /* embedding sets */
    const char *pairs, *pair_by; /* file of pairs or NULL; auto, ids or rows */
    const char *data;            /* data set or NULL */
    pnb_dataset_opts dataset;    /* how to read it */
    pnb_measure measure;
    pnb__match_words match; /* its constants, where it has any */
    pnb_uncertainty uncertainty;
    pnb_pair_filter_opts limits;
    const char *calibration;        /* file of `penumbra calibrate`, or NULL: a and b below */
    bool trust;                     /* a calibration, or a set, of unknown origin is used */
    double match_scale, match_bias; /* NaN: those of the pictures' model */
    const char *out_dir;            /* new shards; NULL: none, as for the files below */
    size_t shard_size;
    const char *uids, *uid_field; /* subset file, and which field names a sample */
    const char *within;           /* subset file: only its samples, or NULL */
    const char *list, *dropped;   /* lists of pairs: .jsonl, else ids of pictures */
    const char *preview, *title;  /* page */
    size_t n_examples;
} pnb__filter_opts;

/* A filter at work; everything but `opts` belongs to it. */
typedef struct pnb__filter_run {
    const pnb__filter_opts *opts;
    pnb_peers *ranks;              /* that share the work, or NULL */
    pnb_measure_opts measure_opts; /* constants of the measure and the seed of its samples */
    pnb_embeddings *images, *texts;
    pnb__aligned pairs;
    pnb__pair_data data;      /* empty without --data */
    double *score, *p_match;  /* [pairs]; p_match NULL: unknown */
    double *image_u, *text_u; /* [pairs] */
    const char **pair_texts;  /* [pairs] or NULL; borrowed from texts or from kept_texts */
    char **kept_texts;        /* [images] captions read from the data set, or NULL */
    unsigned char *within;    /* [pairs] or NULL */
    bool has_fit;
    pnb_match_probability_fit fit; /* of the calibration */
    bool is_measure;               /* the score is the probability: match_prob */
    double match_scale, match_bias;
    pnb_pair_filter filter;
} pnb__filter_run;

/* Reads, decides, writes all outputs, and puts the counts into r. Outputs are written only when all
 * of the deciding has gone well, each whole or not at all.
 * Errors  SHAPE or ARG (sets that do not belong together), NOT_FOUND (nothing is kept), those of
 *         reading and writing */
pnb_status pnb__filter_run_all(pnb__app *app, const pnb__filter_opts *opts, pnb__result *r);

/* ---- parts of it, in files of their own ---- */
/* filter_share.c: numbers at of n things that this process computes, of the `size` bytes each that
 * all know afterwards. */
void pnb__filter_share(const pnb__filter_run *run, size_t n, size_t at[2]);
pnb_status pnb__filter_merge(const pnb__filter_run *run, void *data, size_t n, size_t size,
                             pnb_error *err);
/* filter_out.c: the lists, the subset file and the shards. */
pnb_status pnb__filter_write(pnb__app *app, const pnb__filter_run *run, pnb__result *r);
/* filter_uid.c: the uids of the pictures with wanted[row] != 0, in order of their rows, and the
 * field that named them.  Errors  NOT_FOUND (a picture without one), those of reading */
pnb_status pnb__filter_uids(const pnb__filter_run *run, const unsigned char *wanted, pnb_uid *uids,
                            size_t *n, const char **name, pnb_error *err);
/* filter_page.c: the preview. */
pnb_status pnb__filter_page(const pnb__filter_run *run, pnb__result *r, pnb_error *err);

/* Probability of a match at a score; NaN when nothing tells it. */
double pnb__filter_p_match(const pnb__filter_run *run, double score);

/* "max_words, blocked": the rules of a pair's bits. */
void pnb__filter_reasons(uint32_t failed, pnb__buf *out);

#endif
