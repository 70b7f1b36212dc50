/* The golden runner: compares what Penumbra computes with what the reference computed.
 *
 * A case folder holds case.json (family, hyperparameters, tolerances) and tensors.safetensors. A
 * family handler reads inputs, computes, and gives every result by name; the runner compares all
 * tensors with role `output` or `grad` and all scalars of `expected`, and fails a case in which one
 * was not given. */
#ifndef PNB_TESTS_GOLDEN_H
#define PNB_TESTS_GOLDEN_H

#include "base/base.h"
#include "io/json/json.h"
#include "penumbra/model.h"
#include "penumbra/safetensors.h"

typedef struct golden_result {
    char *name;
    double *values;
    size_t n;
} golden_result;

/* Outputs that cannot be computed here, by pattern, with the reason that the runner prints. */
typedef struct golden_skipped {
    const char *pattern, *why;
} golden_skipped;

typedef struct golden_case {
    const char *dir;
    json_t *root;             /* case.json */
    json_t *hyperparameters;  /* borrowed, may be NULL */
    pnb_safetensors *tensors; /* NULL when the case has none */
    pnb_ctx *ctx;
    golden_result *results;
    size_t n_results, capacity;
    golden_skipped skipped[4];
    size_t n_skipped;
    pnb_precision precision;  /* of models of family prolip_model */
    const char *data_dir;     /* --data DIR, NULL without: files that are no part of a case */
    const char *skipped_case; /* set by a handler that lacks what the whole case needs: why */
} golden_case;

/* A handler computes a whole case; an error fails the case with its text. */
typedef pnb_status (*golden_family_fn)(golden_case *c, pnb_error *err);
pnb_status golden_family_prolip_model(golden_case *c, pnb_error *err);
pnb_status golden_family_prolip_loss(golden_case *c, pnb_error *err);
pnb_status golden_family_optimizers(golden_case *c, pnb_error *err);
pnb_status golden_family_tokenizers(golden_case *c, pnb_error *err);
pnb_status golden_family_preprocess(golden_case *c, pnb_error *err);
pnb_status golden_family_asymvlm(golden_case *c, pnb_error *err);
pnb_status golden_family_metrics(golden_case *c, pnb_error *err);
pnb_status golden_metrics_eccv(golden_case *c, pnb_error *err); /* family_metrics_eccv.c */
pnb_status golden_family_bprw(golden_case *c, pnb_error *err);
pnb_status golden_family_gp(golden_case *c, pnb_error *err);
pnb_status golden_family_adapters(golden_case *c, pnb_error *err);
pnb_status golden_family_pcme(golden_case *c, pnb_error *err);
/* some kinds of case of bprw, gp, asymvlm and pcme */
pnb_status golden_case_hcaps(golden_case *c, pnb_error *err);
pnb_status golden_case_grove(golden_case *c, pnb_error *err);
pnb_status golden_case_asymvlm(golden_case *c, pnb_error *err);
pnb_status golden_case_resnet(golden_case *c, pnb_error *err);
pnb_status golden_case_pcme_text(golden_case *c, pnb_error *err);
pnb_status golden_case_pcme_image(golden_case *c, pnb_error *err);
pnb_status golden_case_pcme_loss(golden_case *c, pnb_error *err);
pnb_status golden_case_pcme_distances(golden_case *c, pnb_error *err);

/* ---- reading ---- */
/* Is there such a tensor in the case (any role)? Its shape comes with the view. */
const pnb_array_view *golden_find(const golden_case *c, const char *name);
/* Values of a tensor as f64 / f32 / int32, allocated (free with pnb__free); NULL and an error when
 * it is absent or of the wrong type. n may be NULL. */
double *golden_f64(const golden_case *c, const char *name, size_t *n, pnb_error *err);
float *golden_f32(const golden_case *c, const char *name, size_t *n, pnb_error *err);
int32_t *golden_i32(const golden_case *c, const char *name, size_t *n, pnb_error *err);
/* Hyperparameters by dotted path ("loss_kwargs.vib_beta"); the fallback when absent. */
double golden_number(const golden_case *c, const char *path, double fallback);
bool golden_flag(const golden_case *c, const char *path, bool fallback);
const json_t *golden_value(const golden_case *c, const char *path); /* NULL if absent */
bool golden_wants(const golden_case *c, const char *name); /* an output or grad of this name */

/* ---- giving results (copied); names nobody asked for are ignored ---- */
void golden_give(golden_case *c, const char *name, const double *values, size_t n);
void golden_give_f32(golden_case *c, const char *name, const float *values, size_t n);
void golden_give_scalar(golden_case *c, const char *name, double value);
/* Leaves out the tensors that match: only where the case does not hold what they need. Both texts
 * must outlive the case; at most 4. */
void golden_skip(golden_case *c, const char *pattern, const char *why);

#endif
