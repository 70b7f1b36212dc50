/* The two controls that stand in every comparison of adapters.
 *
 * An untrained head orders levels of generality already, because general captions differ in their
 * frozen rows; and fewer words are more general. What a method shows beyond both was learned. Means
 * stay the frozen ones, so that retrieval by mean is that of the frozen sets and only the
 * uncertainty is looked at. */
#include "adapt/controls.h"

#include <math.h>
#include <string.h>

#include "adapt/adapter.h"
#include "kernels/kernels.h"
#include "sets/provenance.h"

enum { N_LAYERS = 4, WIDEST = 1024, BLOCK = 512 };

/* A set like those that go through an adapter of that name, means copied, variances to be filled.
 */
static pnb_status start(pnb_embeddings **out, const pnb_embeddings *set, const char *name,
                        uint64_t seed, pnb_error *err)
{
    pnb_embeddings *made = NULL;
    pnb_adapter_link link = {.leaves_images = true};
    pnb__sha256 hash;
    char text[64];
    pnb_status status;
    snprintf(link.name, sizeof link.name, "%s", name);
    snprintf(text, sizeof text, "control %s %llu", name, (unsigned long long)seed);
    pnb__sha256_init(&hash);
    pnb__sha256_update(&hash, text, strlen(text));
    pnb__sha256_hex(&hash, link.sha256);
    PNB_TRY(pnb_embeddings_create(&made, PNB_GAUSSIAN_DIAG, set->n, set->dim, err));
    made->info = set->info;
    snprintf(made->info.measure, sizeof made->info.measure, "mean");
    PNB_TRY(pnb__adapter_links_add(&made->info.adapters, &link, err));
    for (size_t i = 0; i < set->n; i++) {
        PNB_TRY(pnb_embeddings_set_id(made, i, set->ids != NULL ? set->ids[i] : NULL, err));
        PNB_TRY(pnb_embeddings_set_path(made, i, set->paths != NULL ? set->paths[i] : NULL, err));
        PNB_TRY(pnb_embeddings_set_text(made, i, set->texts != NULL ? set->texts[i] : NULL, err));
        PNB_TRY(
            pnb_embeddings_set_extra(made, i, set->extras != NULL ? set->extras[i] : NULL, err));
    }
    memcpy(made->mean, set->mean, set->n * set->dim * sizeof *set->mean);
    *out = made;
    made = NULL;
done:
    pnb_embeddings_free(made);
    return status;
}

/* A trace of u: u / D in every dimension. */
static void spread(pnb_embeddings *set, size_t row, double u)
{
    for (size_t d = 0; d < set->dim; d++)
        set->log_var[row * set->dim + d] = (float)log(u / (double)set->dim);
}

/* ---- untrained ---- */

typedef struct layers {
    size_t width[N_LAYERS + 1];
    float *w[N_LAYERS], *b[N_LAYERS], *x[N_LAYERS]; /* x: rows behind the layer */
} layers;

/* U(-1/sqrt(in), 1/sqrt(in)) for weights and biases. */
static pnb_status draw_layers(layers *l, size_t dim, uint64_t seed, pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (size_t i = 0; i <= N_LAYERS; i++)
        l->width[i] = i == 0 || i == N_LAYERS ? dim : PNB_MIN((size_t)WIDEST, 4 * dim);
    for (size_t i = 0; i < N_LAYERS; i++) {
        size_t in = l->width[i], n = l->width[i + 1];
        double reach = 1.0 / sqrt((double)in);
        pnb__rng rng;
        pnb__rng_init(&rng, seed, i);
        PNB_TRY(PNB_ALLOC_ROWS(l->w[i], n, in, err));
        PNB_TRY(PNB_ALLOC(l->b[i], n, err));
        PNB_TRY(PNB_ALLOC_ROWS(l->x[i], BLOCK, n, err));
        for (size_t k = 0; k < n * in; k++)
            l->w[i][k] = (float)(reach * (2.0 * pnb__rng_uniform(&rng) - 1.0));
        for (size_t k = 0; k < n; k++)
            l->b[i][k] = (float)(reach * (2.0 * pnb__rng_uniform(&rng) - 1.0));
    }
done:
    return status;
}

static const float *run_layers(const layers *l, const pnb_ctx *ctx, const pnb__kernels *k,
                               const float *x, size_t n)
{
    for (size_t i = 0; i < N_LAYERS; i++) {
        const pnb__gemm_args product = {.trans_b = true,
                                        .m = n,
                                        .n = l->width[i + 1],
                                        .k = l->width[i],
                                        .lda = l->width[i],
                                        .ldb = l->width[i],
                                        .ldc = l->width[i + 1],
                                        .n_batch = 1,
                                        .alpha = 1,
                                        .a = x,
                                        .b = l->w[i],
                                        .c = l->x[i],
                                        .bias = l->b[i],
                                        .act = i + 1 < N_LAYERS ? PNB__RELU : PNB__IDENTITY};
        k->gemm(ctx, &product);
        x = l->x[i];
    }
    return x;
}

pnb_status pnb__control_untrained(pnb_embeddings **out, const pnb_ctx *ctx,
                                  const pnb_embeddings *set, uint64_t seed, pnb_error *err)
{
    pnb_embeddings *made = NULL;
    layers l = {{0}, {NULL}, {NULL}, {NULL}};
    pnb__kernels kernels;
    pnb_status status;
    pnb__kernels_fill_host(&kernels, ctx, PNB__F32);
    PNB_TRY(start(&made, set, "untrained", seed, err));
    PNB_TRY(draw_layers(&l, set->dim, seed, err));
    for (size_t begin = 0; begin < set->n; begin += BLOCK) {
        size_t n = PNB_MIN(set->n - begin, (size_t)BLOCK);
        const float *eta = run_layers(&l, ctx, &kernels, set->mean + begin * set->dim, n);
        for (size_t i = 0; i < n; i++) {
            double square = 0.0;
            PNB_TRY(pnb__adapter_square(eta + i * set->dim, set->dim, begin + i, "untrained",
                                        &square, err));
            spread(made, begin + i, 1.0 / fmax(sqrt(square), PNB__ADAPTER_LEAST));
        }
    }
    *out = made;
    made = NULL;
done:
    for (size_t i = 0; i < N_LAYERS; i++) {
        pnb__free(l.w[i]);
        pnb__free(l.b[i]);
        pnb__free(l.x[i]);
    }
    pnb_embeddings_free(made);
    return status;
}

/* ---- length ---- */

static size_t count_words(const char *text)
{
    size_t n = 0;
    for (text += strspn(text, " \t\n"); *text != '\0'; text += strspn(text, " \t\n")) {
        text += strcspn(text, " \t\n");
        n++;
    }
    return n;
}

pnb_status pnb__control_length(pnb_embeddings **out, const pnb_embeddings *set, pnb_error *err)
{
    pnb_embeddings *made = NULL;
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < set->n; i++)
        if (set->texts == NULL || set->texts[i] == NULL)
            return pnb__fail(err, PNB_NOT_FOUND,
                             "row %zu has no text: the length of its caption is not known", i);
    PNB_TRY(start(&made, set, "length", 0, err));
    for (size_t i = 0; i < set->n; i++)
        spread(made, i, 1.0 / (1.0 + (double)count_words(set->texts[i])));
    *out = made;
done:
    return status;
}
