/* Fewer pairs than the truth names: what a method learns from a share of them, or from few pictures
 * of each class. */
#ifndef PNB_COMMANDS_ADAPT_FEWER_PAIRS_H
#define PNB_COMMANDS_ADAPT_FEWER_PAIRS_H

#include "penumbra/embeddings.h"
#include "penumbra/truth.h"

/* Rows of an option table that fill one. */
#define PNB__FEWER_PAIRS_ROWS(at_share, at_shots, at_classes, at_class_key)                        \
    PNB__ROW_REAL("share", (at_share), "SHARE",                                                    \
                  "Learn from this share of the pictures that have captions, drawn by --seed, "    \
                  "with all captions of theirs; of two shares the larger holds the smaller one's", \
                  PNB__RANGE(1e-6, 1), .fallback = "1", .group = "Fewer pairs"),                   \
        PNB__ROW_INT("shots", (at_shots), "K",                                                     \
                     "Learn from K pictures of each class, drawn by --seed; 0: all",               \
                     PNB__RANGE(0, 1e9), .fallback = "0"),                                         \
        PNB__ROW_INT("classes", (at_classes), "N",                                                 \
                     "Learn from N classes, drawn by --seed; 0: all", PNB__RANGE(0, 1e9),          \
                     .fallback = "0"),                                                             \
        PNB__ROW_TEXT("class-key", (at_class_key), "FIELD",                                        \
                      "Field of the pictures' ids file that says the class, for --shots and "      \
                      "--classes: class, label, concept")

typedef struct pnb__fewer_pairs_opts {
    double share;          /* of the pictures that have a caption; 0 or 1: all */
    int64_t shots;         /* pictures of each class; 0: all */
    int64_t n_classes;     /* classes; 0: all */
    const char *class_key; /* field of the pictures' ids file that says the class */
} pnb__fewer_pairs_opts;

/* Whether anything is drawn, so that seeds differ. */
bool pnb__fewer_pairs_draws(const pnb__fewer_pairs_opts *opts);
/* What is wrong with the options together, or NULL. sweeps_classes: shots or classes come later. */
const char *pnb__fewer_pairs_misuse(const pnb__fewer_pairs_opts *opts, bool has_truth,
                                    bool sweeps_classes);
/* Sets "share", "shots" or "classes" from text; *is_one says whether the option is one of them.
 * Errors  ARG (what it cannot be) */
pnb_status pnb__fewer_pairs_set(pnb__fewer_pairs_opts *opts, const char *option, const char *value,
                                bool *is_one, pnb_error *err);
/* The truth without the pictures that were not drawn; those that were keep all their captions.
 * Classes are drawn first, then pictures of each, then the share of what is left. `path` is that of
 * the pictures, for errors. The same seed draws the same; of two shares, or two numbers of shots or
 * classes, the larger draw holds the smaller one's pictures.
 * Errors  ARG (no class key where one is needed, more classes than there are, no pair is left),
 *         NOT_FOUND (a picture that has a caption and no class), FORMAT, NOMEM */
pnb_status pnb__fewer_pairs(pnb_truth **out, const pnb_truth *truth, const pnb_embeddings *images,
                            const char *path, const pnb__fewer_pairs_opts *opts, uint64_t seed,
                            pnb_error *err);
/* The pairs of the pictures that are marked; is_drawn (n_queries).
 * Errors  ARG (no pair is left), NOMEM */
pnb_status pnb__truth_of_drawn(pnb_truth **out, const pnb_truth *truth,
                               const unsigned char *is_drawn, pnb_error *err);

#endif
