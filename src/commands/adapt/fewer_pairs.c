/* Draws the pictures that a method learns from: GroVE's few-shot setting (its section 4.4, three
 * pictures of each of 150 classes) and shares of a set (its Figure 5).
 *
 * A draw is the beginning of one order of all classes, or all pictures, that the seed alone
 * settles: what few pictures taught is then compared with what more of them did, those few
 * among them. */
#include "commands/adapt/fewer_pairs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "commands/common/rows/row_clusters.h"

enum { STREAM_CLASSES = 1, STREAM_IMAGES = 2 }; /* of the seed */

bool pnb__fewer_pairs_draws(const pnb__fewer_pairs_opts *opts)
{
    return (opts->share > 0 && opts->share < 1) || opts->shots > 0 || opts->n_classes > 0;
}

const char *pnb__fewer_pairs_misuse(const pnb__fewer_pairs_opts *opts, bool has_truth,
                                    bool sweeps_classes)
{
    if (!has_truth && pnb__fewer_pairs_draws(opts))
        return "--share, --shots and --classes choose pairs of a --truth file, and none is given";
    if (opts->class_key != NULL && opts->shots == 0 && opts->n_classes == 0 && !sweeps_classes)
        return "--class-key says the classes of --shots and --classes, and neither is given";
    return NULL;
}

pnb_status pnb__fewer_pairs_set(pnb__fewer_pairs_opts *opts, const char *option, const char *value,
                                bool *is_one, pnb_error *err)
{
    bool is_share = strcmp(option, "share") == 0, is_shots = strcmp(option, "shots") == 0;
    char *end = NULL;
    *is_one = is_share || is_shots || strcmp(option, "classes") == 0;
    if (!*is_one)
        return PNB_OK;
    double number = strtod(value, &end);
    bool is_whole = number == floor(number) && number <= 1e9;
    if (end == value || *end != '\0' || !(number > 0) || (is_share ? number > 1 : !is_whole))
        return pnb__fail(err, PNB_ARG, "%s cannot be '%.60s': %s", option, value,
                         is_share ? "above 0 and at most 1" : "a whole number above 0");
    if (is_share)
        opts->share = number;
    else
        *(is_shots ? &opts->shots : &opts->n_classes) = (int64_t)number;
    return PNB_OK;
}

/* 0 .. n - 1 in the order of the seed. */
static pnb_status draw_order(uint32_t **out, size_t n, uint64_t seed, uint64_t stream,
                             pnb_error *err)
{
    pnb__rng rng;
    pnb_status status = PNB_ALLOC(*out, PNB_MAX(n, (size_t)1), err);
    if (status != PNB_OK)
        return status;
    for (size_t i = 0; i < n; i++)
        (*out)[i] = (uint32_t)i;
    pnb__rng_init(&rng, seed, stream);
    pnb__rng_shuffle(&rng, *out, n);
    return PNB_OK;
}

static bool has_texts(const pnb_truth *t, size_t image)
{
    return t->offset[image + 1] > t->offset[image];
}

/* ---- classes ---- */

/* A class for each picture with captions, numbered among those; -1 for the others. */
static pnb_status read_classes(const pnb_truth *t, const pnb_embeddings *images, const char *path,
                               const char *key, int64_t *label, size_t *n_classes, pnb_error *err)
{
    char **name = NULL;
    pnb_status status;
    PNB_TRY(PNB_ALLOC_ZERO(name, images->n, err));
    PNB_TRY(pnb__row_fields(images, path, key, name, err));
    for (size_t i = 0; i < images->n; i++) {
        if (has_texts(t, i) && name[i] == NULL)
            PNB_TRY(pnb__fail(err, PNB_NOT_FOUND,
                              "--class-key %s: row %zu of %s has captions and not this field", key,
                              i, path));
        if (!has_texts(t, i)) {
            pnb__free(name[i]);
            name[i] = NULL;
        }
    }
    status = pnb__label_names(name, images->n, label, n_classes, err);
done:
    for (size_t i = 0; name != NULL && i < images->n; i++)
        pnb__free(name[i]);
    pnb__free(name);
    return status;
}

/* Leaves the pictures of the first n_classes classes of the seed's order. */
static pnb_status draw_classes(const int64_t *label, size_t n, size_t n_classes,
                               const pnb__fewer_pairs_opts *o, uint64_t seed,
                               unsigned char *is_drawn, pnb_error *err)
{
    uint32_t *order = NULL;
    bool *is_wanted = NULL;
    pnb_status status;
    if (o->n_classes == 0)
        return PNB_OK;
    if ((size_t)o->n_classes > n_classes)
        return pnb__fail(err, PNB_ARG, "--classes %lld: the pictures are of %zu",
                         (long long)o->n_classes, n_classes);
    PNB_TRY(draw_order(&order, n_classes, seed, STREAM_CLASSES, err));
    PNB_TRY(PNB_ALLOC_ZERO(is_wanted, n_classes, err));
    for (size_t k = 0; k < (size_t)o->n_classes; k++)
        is_wanted[order[k]] = true;
    for (size_t i = 0; i < n; i++)
        is_drawn[i] = is_drawn[i] && is_wanted[label[i]];
done:
    pnb__free(order);
    pnb__free(is_wanted);
    return status;
}

/* Leaves the first `shots` pictures of each class in the order of the pictures. */
static pnb_status draw_shots(const int64_t *label, const uint32_t *order, size_t n,
                             size_t n_classes, int64_t shots, unsigned char *is_drawn,
                             pnb_error *err)
{
    int64_t *n_taken = NULL;
    if (shots == 0)
        return PNB_OK;
    pnb_status status = PNB_ALLOC_ZERO(n_taken, PNB_MAX(n_classes, (size_t)1), err);
    for (size_t k = 0; status == PNB_OK && k < n; k++) {
        size_t i = order[k];
        is_drawn[i] = is_drawn[i] && n_taken[label[i]]++ < shots;
    }
    pnb__free(n_taken);
    return status;
}

static pnb_status by_classes(const pnb_truth *t, const pnb_embeddings *images, const char *path,
                             const pnb__fewer_pairs_opts *o, uint64_t seed, const uint32_t *order,
                             unsigned char *is_drawn, pnb_error *err)
{
    int64_t *label = NULL;
    size_t n_classes = 0;
    pnb_status status;
    if (o->shots == 0 && o->n_classes == 0)
        return PNB_OK;
    if (o->class_key == NULL)
        return pnb__fail(err, PNB_ARG,
                         "--shots and --classes need --class-key: the field of the pictures' ids "
                         "file that says the class");
    PNB_TRY(PNB_ALLOC(label, images->n, err));
    PNB_TRY(read_classes(t, images, path, o->class_key, label, &n_classes, err));
    PNB_TRY(draw_classes(label, images->n, n_classes, o, seed, is_drawn, err));
    status = draw_shots(label, order, images->n, n_classes, o->shots, is_drawn, err);
done:
    pnb__free(label);
    return status;
}

/* ---- a share ---- */

/* Leaves the first pictures of the order, a share of those that are left and at least one. */
static void draw_share(const uint32_t *order, size_t n, double share, unsigned char *is_drawn)
{
    size_t n_drawn = 0, n_kept = 0;
    for (size_t i = 0; i < n; i++)
        n_drawn += is_drawn[i];
    double wanted = PNB_MAX(round(share * (double)n_drawn), 1.0);
    for (size_t k = 0; k < n; k++)
        if (is_drawn[order[k]])
            is_drawn[order[k]] = (double)n_kept++ < wanted;
}

/* ---- the truth of them ---- */

pnb_status pnb__truth_of_drawn(pnb_truth **out, const pnb_truth *t, const unsigned char *is_drawn,
                               pnb_error *err)
{
    int64_t *pairs = NULL;
    size_t n = 0;
    pnb_status status = PNB_ALLOC(pairs, 2 * PNB_MAX(t->n_pairs, (size_t)1), err);
    if (status != PNB_OK)
        return status;
    for (size_t i = 0; i < t->n_queries; i++)
        for (size_t p = t->offset[i]; is_drawn[i] && p < t->offset[i + 1]; p++) {
            pairs[2 * n] = (int64_t)i;
            pairs[2 * n++ + 1] = (int64_t)t->item[p];
        }
    status = pnb_truth_create_pairs(out, t->n_queries, t->n_items, pairs, n, err);
    pnb__free(pairs);
    return status;
}

pnb_status pnb__fewer_pairs(pnb_truth **out, const pnb_truth *truth, const pnb_embeddings *images,
                            const char *path, const pnb__fewer_pairs_opts *opts, uint64_t seed,
                            pnb_error *err)
{
    uint32_t *order = NULL;
    unsigned char *is_drawn = NULL;
    pnb_status status;
    PNB_TRY(PNB_ALLOC(is_drawn, PNB_MAX(images->n, (size_t)1), err));
    PNB_TRY(draw_order(&order, images->n, seed, STREAM_IMAGES, err));
    for (size_t i = 0; i < images->n; i++)
        is_drawn[i] = has_texts(truth, i);
    PNB_TRY(by_classes(truth, images, path, opts, seed, order, is_drawn, err));
    if (opts->share > 0 && opts->share < 1)
        draw_share(order, images->n, opts->share, is_drawn);
    status = pnb__truth_of_drawn(out, truth, is_drawn, err);
done:
    pnb__free(order);
    pnb__free(is_drawn);
    return status;
}
