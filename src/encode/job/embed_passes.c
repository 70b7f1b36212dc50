/* Test-time augmentation: every input is embedded several times, changed a little each time, and
 * what the passes disagree about is its spread.
 *
 *   x_p = tower(augment_p(input)) of unit length, m = (1/N) sum_p x_p
 *   mean = m/|m|,   var_d = (1/(N-1)) sum_p (x_pd - m_d)^2 / |m|^2
 *
 * Pictures: a random resized crop (area 0.5 to 1, ratio 3/4 to 4/3) and a flip with 0.5; captions:
 * every word goes with probability 0.3, one always stays. What is drawn depends on the seed, the
 * input and the pass, not on the batch. Means divided by their length are what sets hold, so that
 * variances are divided by its square. What a tower says of its own spread is not read. */
#include "encode/job/embed_passes.h"

#include <math.h>
#include <string.h>

#include "encode/word_list.h"
#include "penumbra/dataset.h"

enum { STREAM_WORDS_GONE = 0x77da };
static const double p_gone = 0.3, least_variance = 1e-12;

pnb_status pnb__passes_image(const pnb_preprocess *pp, const pnb_image *image, uint64_t seed,
                             size_t input, size_t n_passes, float *out, pnb_error *err)
{
    size_t width = 3 * (size_t)pp->width * (size_t)pp->height;
    pnb_augment how = pnb_augment_none();
    pnb_status status = PNB_OK;
    how.enabled = how.crop = true;
    how.crop_scale[0] = 0.5;
    how.crop_scale[1] = 1.0;
    how.crop_ratio[0] = 3.0 / 4.0;
    how.crop_ratio[1] = 4.0 / 3.0;
    how.flip = 0.5;
    for (size_t p = 0; p < n_passes && status == PNB_OK; p++)
        status = pnb_augment_apply(&how, pp, image, NULL, (const uint64_t[]){seed, p, input},
                                   out + p * width, err);
    return status;
}

char *pnb__passes_text(const char *text, uint64_t seed, size_t input, size_t pass)
{
    const size_t place[] = {input, pass};
    pnb__word_list words = {0};
    pnb_error err = PNB_ERROR_INIT;
    pnb__rng rng;
    char *out = NULL;
    if (pnb__word_list_split(text, &words, &err) != PNB_OK)
        return NULL;
    bool *keep = pnb__alloc_array(words.n + 1, sizeof *keep);
    if (keep != NULL) {
        pnb__rng_init(&rng, seed, pnb__hash_bytes(place, sizeof place, STREAM_WORDS_GONE));
        size_t spared = words.n > 0 ? pnb__rng_below(&rng, words.n) : 0;
        for (size_t i = 0; i < words.n; i++)
            keep[i] = pnb__rng_uniform(&rng) >= p_gone || i == spared;
        out = pnb__word_list_join(&words, keep);
    }
    pnb__free(keep);
    pnb__word_list_reset(&words);
    return out;
}

void pnb__passes_add(double *sums, const float *mean, size_t n, size_t dim)
{
    for (size_t i = 0; i < n * dim; i++) {
        sums[i] += (double)mean[i];
        sums[n * dim + i] += (double)mean[i] * (double)mean[i];
    }
}

pnb_status pnb__passes_finish(const double *sums, size_t n, size_t n_passes, pnb_embeddings *set,
                              size_t first, pnb_error *err)
{
    size_t dim = set->dim;
    double passes = (double)n_passes;
    for (size_t i = 0; i < n; i++) {
        const double *sum = sums + i * dim, *square = sums + (n + i) * dim;
        float *mean = set->mean + (first + i) * dim, *log_var = set->log_var + (first + i) * dim;
        double length = 0.0;
        for (size_t d = 0; d < dim; d++)
            length += sum[d] * sum[d] / (passes * passes);
        if (!(length > 1e-12))
            return pnb__fail(err, PNB_NUMERIC, "the passes of item %zu cancel out", i);
        for (size_t d = 0; d < dim; d++) {
            double m = sum[d] / passes;
            double variance = (square[d] - passes * m * m) / (passes - 1.0) / length;
            mean[d] = (float)(m / sqrt(length));
            log_var[d] = (float)log(fmax(variance, least_variance));
        }
    }
    return PNB_OK;
}
