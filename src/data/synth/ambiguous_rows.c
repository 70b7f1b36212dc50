/* Frozen rows of the `ambiguous` set: what a model that knows no uncertainty would have embedded.
 *
 *   picture  a sample of its leaf's distribution; on the sphere times a length
 *   caption  length * unit(w + hint * sum_k phi_k code_k), w a von Mises-Fisher sample around the
 *            concept's direction (put into the captions' width by one random map where widths
 *            differ), code_k fixed random directions
 *
 * phi holds cosines and sines of four frequencies of the place of the concept's mean cosine between
 * the most general and the most specific one: of length 1 whatever the concept, so that how general
 * a caption is can be learned from it, as from the words of a real one, but is neither its length
 * nor any one coordinate. Lengths are log-normal and know nothing. Every number is a function of
 * (seed, concept, number): threads and blocks change nothing. */
#include <math.h>

#include "data/synth/ambiguous.h"
#include "penumbra/view.h"
#include "prob/measure.h"

#define LENGTH_STREAM ((uint64_t)3 << 62)
#define MAP_STREAM (((uint64_t)1 << 62) + ((uint64_t)1 << 61))
#define TWO_PI 6.283185307179586477

/* ---- what captions are made with ---- */

static double *draw_map(uint64_t seed, uint64_t number, size_t n, size_t width)
{
    pnb__rng rng;
    double *map = pnb__alloc_array(n, width * sizeof *map);
    pnb__rng_init(&rng, seed, MAP_STREAM + number);
    for (size_t i = 0; map != NULL && i < n * width; i++)
        map[i] = pnb__rng_normal(&rng) / sqrt((double)PNB_MAX(n, width));
    return map;
}

pnb_status pnb__ambiguous_voice_make(pnb__ambiguous_voice *v, const pnb__ambiguous_tree *tree,
                                     pnb_error *err)
{
    const pnb_ambiguous_opts *o = tree->opts;
    pnb_status status = PNB_OK;
    *v = (pnb__ambiguous_voice){.tree = tree, .dim = o->text_dim > 0 ? o->text_dim : o->dim};
    PNB_TRY(PNB_ALLOC(v->kappa, tree->n, err));
    for (size_t c = 0; c < tree->n; c++)
        v->kappa[c] = (float)pnb__ambiguous_kappa(PNB_VMF, o->dim, o->wording);
    v->wordings =
        (pnb_rows){.n = tree->n, .dim = o->dim, .mean = tree->set->mean, .kappa = v->kappa};
    v->code = draw_map(o->seed, 0, PNB__AMBIGUOUS_CODE, v->dim);
    if (v->dim != o->dim)
        v->map = draw_map(o->seed, 1, v->dim, o->dim);
    if (v->code == NULL || (v->map == NULL && v->dim != o->dim))
        status = pnb__fail_nomem(err, v->dim * o->dim * sizeof *v->map);
done:
    return status;
}

void pnb__ambiguous_voice_reset(pnb__ambiguous_voice *v)
{
    pnb__free(v->kappa);
    pnb__free(v->map);
    pnb__free(v->code);
    *v = (pnb__ambiguous_voice){0};
}

/* ---- rows ---- */

static double draw_length(const pnb_ambiguous_opts *o, size_t concept, size_t j, unsigned side)
{
    pnb__rng rng;
    pnb__rng_init(&rng, o->seed, LENGTH_STREAM + 2 * (uint64_t) concept + side);
    rng.counter = 4 * (uint64_t)j;
    return o->length * exp(o->length_spread * pnb__rng_normal(&rng));
}

void pnb__ambiguous_image_row(const pnb__ambiguous_tree *tree, size_t concept, size_t j,
                              double *scratch, float *out)
{
    const pnb_embeddings *set = tree->set;
    const pnb_rows rows = {.n = set->n,
                           .dim = set->dim,
                           .mean = set->mean,
                           .log_var = set->log_var,
                           .kappa = set->kappa,
                           .is_power = set->family == PNB_POWER_SPHERICAL,
                           .inv_alpha = set->inv_alpha,
                           .beta = set->beta};
    double length = set->kappa != NULL ? draw_length(tree->opts, concept, j, 0) : 1.0;
    pnb__draw_fill(&rows, concept, j, 0, tree->opts->seed, scratch);
    for (size_t d = 0; d < set->dim; d++)
        out[d] = (float)(length * scratch[d]);
}

static void add_hint(const pnb__ambiguous_voice *v, size_t concept, double *x)
{
    const pnb_ambiguous_opts *o = v->tree->opts;
    double place =
        (v->tree->cosine[concept] - o->cosine_general) / (o->cosine_specific - o->cosine_general);
    for (int k = 0; k < PNB__AMBIGUOUS_CODE; k++) {
        double angle = TWO_PI * 0.5 * (k / 2 + 1) * place; /* half a turn to two */
        double phi = (k % 2 == 0 ? cos(angle) : sin(angle)) / sqrt(0.5 * PNB__AMBIGUOUS_CODE);
        for (size_t d = 0; d < v->dim; d++)
            x[d] += o->hint * phi * v->code[(size_t)k * v->dim + d];
    }
}

static double length_of(const double *x, size_t dim)
{
    double square = 0.0;
    for (size_t d = 0; d < dim; d++)
        square += x[d] * x[d];
    return sqrt(square);
}

void pnb__ambiguous_text_row(const pnb__ambiguous_voice *v, size_t concept, size_t j,
                             double *scratch, float *out)
{
    const pnb_ambiguous_opts *o = v->tree->opts;
    double *sample = scratch, *x = v->map != NULL ? scratch + o->dim : scratch;
    pnb__draw_fill(&v->wordings, concept, j, 1, o->seed, sample);
    for (size_t i = 0; v->map != NULL && i < v->dim; i++) {
        x[i] = 0.0;
        for (size_t d = 0; d < o->dim; d++)
            x[i] += v->map[i * o->dim + d] * sample[d];
    }
    double length = length_of(x, v->dim);
    for (size_t d = 0; d < v->dim; d++)
        x[d] /= length;
    add_hint(v, concept, x);
    double scale = draw_length(o, concept, j, 1) / length_of(x, v->dim);
    for (size_t d = 0; d < v->dim; d++)
        out[d] = (float)(scale * x[d]);
}

/* ---- names ---- */

/* The way from the root first. */
void pnb__ambiguous_name(const pnb__ambiguous_tree *tree, size_t concept,
                         char name[PNB__AMBIGUOUS_NAME])
{
    size_t way[PNB_SYNTH_N_LEVELS], n = 0, used = 0;
    for (size_t c = concept; c != SIZE_MAX; c = tree->parent[c]) {
        size_t parent = tree->parent[c];
        way[n++] = parent == SIZE_MAX ? c : c - tree->child[parent];
    }
    while (n-- > 0)
        used += (size_t)snprintf(name + used, PNB__AMBIGUOUS_NAME - used, "%s%zu",
                                 used > 0 ? "." : "", way[n]);
}

void pnb__ambiguous_text(const pnb__ambiguous_tree *tree, size_t concept, size_t j,
                         char text[PNB__AMBIGUOUS_TEXT])
{
    char name[PNB__AMBIGUOUS_NAME];
    size_t used = 0;
    pnb__rng rng;
    pnb__ambiguous_name(tree, concept, name);
    for (size_t end = 0; end == 0 || name[end - 1] != 0; end++) /* every beginning of the way */
        if (name[end] == '.' || name[end] == 0)
            used += (size_t)snprintf(text + used, PNB__AMBIGUOUS_TEXT - used, "%sc%.*s",
                                     used > 0 ? " " : "", (int)end, name);
    pnb__rng_init(&rng, tree->opts->seed, LENGTH_STREAM + 2 * (uint64_t) concept);
    rng.counter = ((uint64_t)1 << 62) + 2 * (uint64_t)j;
    for (uint64_t n = pnb__rng_below(&rng, 5); n > 0; n--)
        used += (size_t)snprintf(text + used, PNB__AMBIGUOUS_TEXT - used, " so");
}
