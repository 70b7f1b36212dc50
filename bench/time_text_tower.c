/* Times a training step's part of PCME's captions, or of its image head on a given feature map:
 * forward and backward without the optimiser, for bench/text_tower.py.
 *
 *   time_text_tower captions|head B T SPREAD SECONDS REPEATS THREADS
 *
 * Widths are COCO's (words 300, D 1024, feature maps (B,2048,7,7)). Caption b has T - b mod SPREAD
 * words, SPREAD below T. Weights, ids and cotangents are numbers that the peer makes alike
 * (number_at), so that `loss` and `squares`, of all gradients, can be compared. The word vectors
 * are frozen, as published. Prints JSON: median_s, min_s, cpu_s (of all threads, median),
 * peak_rss_mb. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/base.h"
#include "models/pcme/image_head.h"
#include "models/pcme/text_tower.h"
#include "models/weights/weights.h"

enum { VOCAB = 11755, WORD_DIM = 300, DIM = 1024, IMAGE_DIM = 2048, SIDE = 7, MAX_RUNS = 4096 };

typedef struct job {
    bool is_text;
    size_t n_batch, n_words, spread;
    double seconds;
    int repeats, n_threads;
    pnb_ctx *ctx;
    pnb__weights weights;
    pnb__pcme_image_head head;
    pnb__graph *g;
    pnb__tensor *loss;
} job;

/* In (-1, 1): the same for element i of array `which` in bench/peers/torch_gru.py. */
static float number_at(uint32_t which, size_t i)
{
    uint32_t bits = ((uint32_t)i + 1) * 2654435761U + which * 40503U;
    bits ^= bits >> 15;
    bits *= 2246822519U;
    bits ^= bits >> 13;
    return (float)(bits >> 8) / 8388608.0F - 1.0F;
}

static void fill_numbers(float *x, size_t n, uint32_t which, float scale)
{
    for (size_t i = 0; i < n; i++)
        x[i] = scale * number_at(which, i);
}

/* Gains of LayerNorm stay 1 + small, everything else is small. */
static pnb_status make_weights(job *j, pnb_error *err)
{
    const pnb__pcme_config config = {.vocab_size = VOCAB,
                                     .word_dim = WORD_DIM,
                                     .embed_dim = DIM,
                                     .n_embeddings = 1,
                                     .image_dim = IMAGE_DIM,
                                     .with_attention = true,
                                     .with_uncertainty = true};
    pnb__weights *w = &j->weights;
    pnb__arena_init(&w->arena, 4096);
    pnb__kernels_fill(&w->kernels, j->ctx, PNB__F32);
    for (int pass = 0; pass < 2; pass++) {
        if (j->is_text)
            pnb__pcme_declare_text(w, &config);
        else
            pnb__pcme_declare_image_head(w, &config, &j->head);
        if (pass == 0)
            w->items = pnb__alloc_zero(w->capacity + 1, sizeof *w->items);
    }
    for (size_t i = 0; i < w->n; i++) {
        pnb__param *p = &w->items[i].param;
        pnb_status status = pnb__param_alloc(p, &w->kernels, p->n * sizeof(float), err);
        if (status != PNB_OK)
            return status;
        w->items[i].owned = true;
        fill_numbers(p->data, p->n, (uint32_t)i, 0.05F);
        for (size_t k = 0; k < p->n && strstr(p->name, "layer_norm.weight") != NULL; k++)
            ((float *)p->data)[k] += 1;
        p->trainable = strcmp(p->name, "text.embed.weight") != 0;
    }
    return PNB_OK;
}

static pnb_status write_numbers(pnb__tensor *t, uint32_t which, pnb_error *err)
{
    float *values = pnb__alloc_array(pnb__n(t), sizeof *values);
    if (values == NULL)
        return pnb__fail_nomem(err, pnb__n(t) * sizeof *values);
    fill_numbers(values, pnb__n(t), which, 1);
    pnb__write_f32(t, values);
    pnb__free(values);
    return PNB_OK;
}

static pnb_status write_texts(const job *j, const pnb__texts *c, pnb_error *err)
{
    size_t n = j->n_batch * j->n_words;
    int32_t *ids = pnb__alloc_zero(n + 2 * j->n_batch, sizeof *ids);
    if (ids == NULL)
        return pnb__fail_nomem(err, n * sizeof *ids);
    int32_t *lengths = ids + n, *rows = lengths + j->n_batch;
    for (size_t b = 0; b < j->n_batch; b++) {
        lengths[b] = (int32_t)(j->n_words - b % j->spread);
        rows[b] = (int32_t)(b * j->n_words) + lengths[b] - 1;
        for (int32_t t = 0; t < lengths[b]; t++) {
            size_t i = b * j->n_words + (size_t)t;
            ids[i] = (int32_t)(1 + (i * 7919) % (VOCAB - 1));
        }
    }
    pnb__write_i32(c->ids, ids);
    pnb__write_i32(c->lengths, lengths);
    pnb__write_i32(c->last_rows, rows);
    pnb__free(ids);
    return PNB_OK;
}

static pnb_status build(job *j, pnb_error *err)
{
    pnb_status status = pnb__graph_create(&j->g, j->ctx, PNB__F32, true, err);
    if (status != PNB_OK)
        return status;
    pnb__graph *g = j->g;
    pnb__texts texts = {NULL, NULL, NULL};
    pnb__tensor *features = NULL;
    pnb__pcme_embedding e;
    if (j->is_text) {
        texts.ids = pnb__input(g, PNB__INT32, 2, (size_t[]){j->n_batch, j->n_words});
        texts.lengths = pnb__input(g, PNB__INT32, 1, &j->n_batch);
        texts.last_rows = pnb__input(g, PNB__INT32, 1, &j->n_batch);
        e = pnb__pcme_text_apply(g, j->weights.tower[PNB__TEXT_SIDE], &texts, true);
    } else {
        features = pnb__input(g, PNB__REAL, 4, (size_t[]){j->n_batch, IMAGE_DIM, SIDE, SIDE});
        e = pnb__pcme_image_head_apply(g, &j->head, pnb__pcme_positions_of(features), NULL, true);
    }
    pnb__tensor *cot[2];
    for (int i = 0; i < 2; i++)
        cot[i] = pnb__input(g, PNB__REAL, 2, (size_t[]){j->n_batch, DIM});
    pnb__tensor *mean = pnb__pcme_dist(&e).mean;
    j->loss = pnb__add(pnb__sum(pnb__mul(mean, cot[0]), PNB__ALL_AXES),
                       pnb__sum(pnb__mul(e.log_std, cot[1]), PNB__ALL_AXES));
    status = pnb__graph_plan(g, j->loss, err);
    for (uint32_t i = 0; i < 2 && status == PNB_OK; i++)
        status = write_numbers(cot[i], 100 + i, err);
    if (status == PNB_OK && j->is_text)
        status = write_texts(j, &texts, err);
    if (status == PNB_OK && !j->is_text)
        status = write_numbers(features, 102, err);
    return status;
}

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double gradient_squares(const job *j)
{
    double sum = 0;
    for (size_t i = 0; i < j->weights.n; i++) {
        const pnb__param *p = &j->weights.items[i].param;
        for (size_t k = 0; k < p->n && p->trainable; k++)
            sum += (double)((const float *)p->grad)[k] * (double)((const float *)p->grad)[k];
    }
    return sum;
}

static pnb_status measure(job *j, pnb_error *err)
{
    static double wall[MAX_RUNS], cpu[MAX_RUNS];
    struct rusage usage;
    int n = 0;
    pnb_status status = pnb__graph_run(j->g, err); /* warms up */
    double start = pnb__now_s();
    while (status == PNB_OK && n < MAX_RUNS &&
           (n < j->repeats || pnb__now_s() - start < j->seconds)) {
        double before = pnb__now_s(), cpu_before = cpu_s();
        status = pnb__graph_run(j->g, err);
        cpu[n] = cpu_s() - cpu_before;
        wall[n++] = pnb__now_s() - before;
    }
    if (status != PNB_OK)
        return status;
    qsort(wall, (size_t)n, sizeof *wall, by_value);
    qsort(cpu, (size_t)n, sizeof *cpu, by_value);
    getrusage(RUSAGE_SELF, &usage);
    printf("{\"median_s\": %.6f, \"min_s\": %.6f, \"cpu_s\": %.6f, \"n\": %d, \"peak_rss_mb\": "
           "%.1f, \"graph_mb\": %.1f, \"loss\": %.6f, \"squares\": %.6f}\n",
           wall[n / 2], wall[0], cpu[n / 2], n, (double)usage.ru_maxrss * 1024 / 1e6,
           (double)pnb__graph_arena_bytes(j->g) / 1e6, pnb__read_scalar(j->loss),
           gradient_squares(j));
    return PNB_OK;
}

static bool parse(int argc, char **argv, job *j)
{
    if (argc != 8)
        return false;
    j->is_text = strcmp(argv[1], "captions") == 0;
    j->n_batch = strtoul(argv[2], NULL, 10);
    j->n_words = strtoul(argv[3], NULL, 10);
    j->spread = strtoul(argv[4], NULL, 10);
    j->seconds = strtod(argv[5], NULL);
    j->repeats = atoi(argv[6]);
    j->n_threads = atoi(argv[7]);
    return (j->is_text || strcmp(argv[1], "head") == 0) && j->n_batch > 0 && j->spread > 0 &&
           j->n_words > j->spread && j->n_threads > 0;
}

int main(int argc, char **argv)
{
    static job j;
    pnb_error err = PNB_ERROR_INIT;
    if (!parse(argc, argv, &j)) {
        fprintf(stderr,
                "usage: time_text_tower captions|head B T SPREAD SECONDS REPEATS THREADS\n");
        return 2;
    }
    pnb_ctx_opts opts = pnb_ctx_opts_default();
    opts.n_threads = j.n_threads;
    pnb_status status = pnb_ctx_create(&j.ctx, &opts, &err);
    if (status == PNB_OK)
        status = make_weights(&j, &err);
    if (status == PNB_OK)
        status = build(&j, &err);
    if (status == PNB_OK)
        status = measure(&j, &err);
    if (status != PNB_OK)
        fprintf(stderr, "time_text_tower: %s\n", err.text);
    pnb__graph_free(j.g);
    pnb__weights_reset(&j.weights);
    pnb_ctx_free(j.ctx);
    return status == PNB_OK ? 0 : 1;
}
