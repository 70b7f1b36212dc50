/* The embedding set: N rows of width D of one family of distributions, with names for the rows.
 *
 * Encoders and adapters make sets; search, evaluation, filtering and plots read them. On disk a set
 * is `x.safetensors` (arrays below, f32, with metadata) beside `x.ids.jsonl`, one JSON object a
 * row; docs/formats.md has both in full.
 *
 * A set knows where it comes from (pnb_embeddings_info), because numbers of two models look alike:
 * whatever compares, joins or mixes rows of two sets asks pnb_embeddings_check_mix first.
 *
 * Means are as their maker left them: of unit length from an encoder that normalises, of any length
 * from other programs. Nothing here normalises them.
 *
 * Memory  a set and all in it belong to whoever created or loaded it, until pnb_embeddings_free.
 * Threads  any number may read one set; changing it needs it alone. */
#ifndef PENUMBRA_EMBEDDINGS_H
#define PENUMBRA_EMBEDDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "penumbra/error.h"
#include "penumbra/provenance.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a row's parameters mean; docs/numerics.md#families has the densities.
 * - POINT            a vector, no distribution: what CLIP and SigLIP make
 * - GAUSSIAN_DIAG    N(mean, diag exp(log_var)): ProLIP, PCME, PFE
 * - VMF              von Mises-Fisher on the unit sphere, p(x) ~ exp(kappa mean.x): AsymVLM
 * - POWER_SPHERICAL  p(x) ~ (1 + mean.x)^kappa there: AsymVLM
 * - GEN_GAUSSIAN     per dimension p(x) ~ exp(-(inv_alpha |x - mean|)^beta): ProbVLM
 * X(enum name, name on disk, per-row parameters beside the mean) */
#define PNB_FAMILY_LIST(X)                                                                         \
    X(POINT, "point", "no parameter")                                                              \
    X(GAUSSIAN_DIAG, "gaussian_diag", "log_var (N,D), natural log of the variance")                \
    X(VMF, "vmf", "kappa (N), concentration >= 0")                                                 \
    X(POWER_SPHERICAL, "power_spherical", "kappa (N), concentration >= 0")                         \
    X(GEN_GAUSSIAN, "gen_gaussian", "inv_alpha (N,D) > 0 and beta (N,D) > 0")

typedef enum pnb_family {
#define PNB_FAMILY_ENUM(name, text, parameters) PNB_##name,
    PNB_FAMILY_LIST(PNB_FAMILY_ENUM)
#undef PNB_FAMILY_ENUM
        PNB_N_FAMILIES
} pnb_family;

/* The name on disk, a constant; "UNKNOWN" outside the list, never NULL. */
const char *pnb_family_name(pnb_family family);
/* The family of a name on disk; false, and *out as it was, when none has it. */
bool pnb_family_from_name(pnb_family *out, const char *name);

/* Where a set comes from. Empty strings mean unknown. Weights and adapters are its chain
 * (provenance.h): a set of a model alone has no adapters. */
typedef struct pnb_embeddings_info {
    char modality[16];          /* "image", "text" */
    char model[128];            /* name of the model whose weights embedded */
    char weights_sha256[65];    /* the chain's first link: 64 lower-case hexadecimal digits */
    pnb_adapter_links adapters; /* the links behind it, in the order in which they were applied */
    char preprocess[256];       /* how pixels or captions were made ready, in words */
    char
        precision[16]; /* of the products (pnb_precision_name), "" floats; "mixed": of both kinds */
    char measure[24];  /* what an adapter made the rows to be compared by; else their family says */
    uint64_t seed;     /* of the job that made the rows: what was drawn for them follows it */
    size_t n_embeddings;     /* K that lie beside each other in a row (PVSE); 0 or 1: one */
    double match_a, match_b; /* trained a > 0 and b of match_prob (PCME's negative_scale and
                              * shift); a 0 or NaN when there are none */
    size_t match_samples; /* J of match_prob and avg_l2 for these rows; 0: the measure's default */
    double logit_scale, logit_bias; /* exp'ed scale a and bias b of the model, whose probability of
                                     * a match is s(a score + b); NaN when unknown */
} pnb_embeddings_info;

/* Fields may be read and written; pointers come from and go back to this library (create, free and
 * the setters below). Arrays of the wrong family are NULL. */
typedef struct pnb_embeddings {
    pnb_family family;
    size_t n, dim;
    float *mean;      /* (n, dim) */
    float *log_var;   /* (n, dim), gaussian_diag */
    float *kappa;     /* (n), vmf and power_spherical */
    float *inv_alpha; /* (n, dim), gen_gaussian */
    float *beta;      /* (n, dim), gen_gaussian */
    float *epistemic; /* (n, dim), gen_gaussian that has_epistemic: how much of the variance
                       * alpha^2 Gamma(3/beta)/Gamma(1/beta) comes from what was not learned;
                       * the rest of it is aleatoric */
    bool has_epistemic;
    char **ids;    /* per row; the array or an entry may be NULL */
    char **paths;  /* file the row was made from; NULL as ids may be */
    char **texts;  /* caption the row was made from; the same */
    char **extras; /* JSON object text with further fields of the row; the same */
    pnb_embeddings_info info;
    /* The library's own: the file that arrays of a mapped set lie in, and which arrays those are */
    struct pnb_safetensors *map;
    unsigned mapped_arrays;
} pnb_embeddings;

/* Allocates a set whose arrays are zero, whose names are NULL and whose info is unknown.
 * Shape   (n, dim) of what the family has, beside a mean; nothing for other families
 * Errors  ARG (n or dim 0, unknown family), NOMEM (also when the size overflows)
 * Memory  4 n dim bytes for each array; free with pnb_embeddings_free */
pnb_status pnb_embeddings_create(pnb_embeddings **out, pnb_family family, size_t n, size_t dim,
                                 pnb_error *err);
/* Gives a gen_gaussian set the array `epistemic`, of zeros. Selecting, joining, files and views
 * keep it; sets with and without it are not joined.   Errors  ARG (another family, or it is there),
 * NOMEM
 */
pnb_status pnb_embeddings_add_epistemic(pnb_embeddings *e, pnb_error *err);
/* Frees the set, its arrays and names, and lets go of the file it is mapped from. NULL is fine. */
void pnb_embeddings_free(pnb_embeddings *e);

/* Names row `row`; copies the strings, replacing what was there. NULL leaves that name unset.
 * `extra` is a JSON object (`{"url":"..."}`) whose fields the row carries along. An id and a path
 * may be any bytes, as names of files are; where they are no UTF-8 files have "\udc80".."\udcff".
 * Errors  ARG (row past the end, text not UTF-8, extra not a JSON object), NOMEM */
pnb_status pnb_embeddings_set_id(pnb_embeddings *e, size_t row, const char *id, pnb_error *err);
pnb_status pnb_embeddings_set_path(pnb_embeddings *e, size_t row, const char *path, pnb_error *err);
pnb_status pnb_embeddings_set_text(pnb_embeddings *e, size_t row, const char *text, pnb_error *err);
pnb_status pnb_embeddings_set_extra(pnb_embeddings *e, size_t row, const char *extra,
                                    pnb_error *err);

/* What loading lets pass. By default nothing: a number that is no number, a row that nobody can
 * name are found here and not in a figure later on. */
typedef struct pnb_embeddings_load_opts {
    bool allow_non_finite;  /* accept NaN and infinity, and parameters outside their range */
    bool allow_missing_ids; /* accept a set without its .ids.jsonl; ids is NULL then */
    bool map; /* F32 arrays stay in the file, which must not change, and are for reading only: a set
               * larger than memory can be gone through in blocks of rows */
} pnb_embeddings_load_opts;
pnb_embeddings_load_opts pnb_embeddings_load_opts_default(void); /* all false */

/* Reads a set; `path` names the safetensors file. Arrays may be F32, F64, F16 or BF16. A file
 * without metadata is read by the arrays it has: mean alone is a point set, mean with log_var a
 * gaussian_diag. Means stay as they are in the file, of unit length or not.
 * Errors  as pnb_safetensors_open; SHAPE (arrays, width or number of ids disagree), NUMERIC (first
 * bad value named), FORMAT (ids file broken or of another set)
 * Memory  the arrays as f32 with all names, or with opts->map the names alone; free with
 * pnb_embeddings_free */
pnb_status pnb_embeddings_load(pnb_embeddings **out, const char *path, pnb_error *err);
pnb_status pnb_embeddings_load_with(pnb_embeddings **out, const char *path,
                                    const pnb_embeddings_load_opts *opts, pnb_error *err);

/* Writes both files; each appears whole or not at all, and a set torn by a crash between the two is
 * refused when loaded. Rows without an id get their row number. `path` must end in ".safetensors".
 * The same set gives the same bytes on every machine.
 * Errors  ARG (the path's end), NUMERIC (not finite or out of range), IO, NOMEM */
pnb_status pnb_embeddings_save(const pnb_embeddings *e, const char *path, pnb_error *err);

/* Writes one set from the files of its parts, in order, holding one part in memory at a time; how a
 * long job that saved parts ends, or one that was interrupted goes on. The parts stay.
 * Errors  as load, concat and save */
pnb_status pnb_embeddings_merge(const char *path, const char *const *part_paths, size_t n_parts,
                                pnb_error *err);

/* For other tools: `x.npy` with sidecars `x_logvar.npy`, `x_kappa.npy`, `x_invalpha.npy`,
 * `x_beta.npy`, `x_epistemic.npy`, `x.ids.jsonl`, and `x.json` with family and info; or one JSON
 * object a row with all arrays inside (9 digits: exact for f32). Errors  as pnb_embeddings_save;
 * save_npy also EXISTS (a file of something else in the way) */
pnb_status pnb_embeddings_save_npy(const pnb_embeddings *e, const char *path, pnb_error *err);
pnb_status pnb_embeddings_save_jsonl(const pnb_embeddings *e, const char *path, pnb_error *err);

/* Reads a 2-D .npy as means, with `x_logvar.npy` or `x_var.npy` (its log is taken) beside it as a
 * gaussian_diag, with `x_kappa.npy` as a vmf, with `x_invalpha.npy` and `x_beta.npy` as a
 * gen_gaussian (`x_epistemic.npy` is read where it is there); ids from `x.ids.jsonl` if there.
 * Family and info are those of `x.json`; without it info is unknown. Errors  as
 * pnb_embeddings_load; FORMAT (`x.json` and the arrays disagree) */
pnb_status pnb_embeddings_load_npy(pnb_embeddings **out, const char *path, pnb_error *err);

/* A new set of the given rows, in that order, repeats allowed; names and info go along.
 * Shape   rows [n_rows], each below e->n -> (n_rows, dim)
 * Errors  ARG (n_rows 0, row past the end), NOMEM */
pnb_status pnb_embeddings_select(pnb_embeddings **out, const pnb_embeddings *e, const size_t *rows,
                                 size_t n_rows, pnb_error *err);

/* A new set of all rows of the given ones, info from the first. Refuses sets of different family,
 * width, weights, adapters, modality or preprocessing: rows of one set have one origin.
 * Shape   (n_1, dim), (n_2, dim), ... -> (n_1 + n_2 + ..., dim)
 * Errors  ARG (no set, or two that disagree: both are named), SHAPE (width), NOMEM */
pnb_status pnb_embeddings_concat(pnb_embeddings **out, const pnb_embeddings *const *sets,
                                 size_t n_sets, pnb_error *err);

/* PNB_OK when rows of `a` may be compared with rows of `b`: same width, and chains that agree:
 * equal ones; one that is unknown altogether; or one that goes on from the other by adapters each
 * of which leaves the other's modality alone. Say yes only through this, so that sets are never
 * mixed silently.
 * Errors  SHAPE (width), ARG (chains: the text names both and says what to do) */
pnb_status pnb_embeddings_check_mix(const pnb_embeddings *a, const pnb_embeddings *b,
                                    pnb_error *err);

/* Checks every number: finite, kappa and epistemic >= 0, inv_alpha and beta > 0; the text names row
 * and column. Errors  NUMERIC */
pnb_status pnb_embeddings_check_values(const pnb_embeddings *e, pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
