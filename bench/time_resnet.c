/* Times a ResNet trunk, for bench/resnet.py.
 *
 *   time_resnet encode|train MODEL --batch B --size S --seconds S --repeats N --threads T
 *
 * encode is the average of the last map by the running buffers; train a step of forward, backward
 * of the mean square of that average, batch norm in training, and SGD with momentum 0.9. Prints
 * seconds (median and best) of the repetitions, each the mean of as many runs as fit into its share
 * of the time, peak memory, and this machine's rate of sgemm beside the trunk's. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "models/resnet/resnet.h"
#include "models/weights/weights.h"

typedef struct timing {
    pnb_ctx *ctx;
    pnb__weights w;
    pnb__resnet_config config;
    pnb__resnet resnet;
    bool trains;
    size_t n_batch, size;
    double seconds;
    int repeats;
    pnb__graph *g;
    pnb__tensor *pixels;
    pnb__optim_args *updates;
    size_t n_updates;
} timing;

static void declare(pnb__weights *w, void *user)
{
    timing *t = user;
    pnb__resnet_declare(w, &t->resnet, "visual.cnn.", &t->config);
}

/* Momentum for every weight that is trained. */
static pnb_status prepare_updates(timing *t, pnb_error *err)
{
    t->updates = pnb__alloc_zero(t->w.n + 1, sizeof *t->updates);
    if (t->updates == NULL)
        return pnb__fail_nomem(err, t->w.n * sizeof *t->updates);
    for (size_t i = 0; i < t->w.n; i++) {
        pnb__param *p = &t->w.items[i].param;
        p->fixed = false;
        if (!p->trainable)
            continue;
        void *m = pnb__alloc_zero(p->n, sizeof(float));
        if (m == NULL)
            return pnb__fail_nomem(err, p->n * sizeof(float));
        t->updates[t->n_updates++] = (pnb__optim_args){
            .n = p->n, .param = p->data, .m = m, .grad_scale = 1, .lr = 1e-4, .momentum = 0.9};
    }
    return PNB_OK;
}

static pnb_status build(timing *t, pnb_error *err)
{
    const size_t shape[4] = {t->n_batch, 3, t->size, t->size};
    pnb_status status = pnb__graph_create(&t->g, t->ctx, PNB__F32, t->trains, err);
    if (status != PNB_OK)
        return status;
    t->pixels = pnb__input(t->g, PNB__REAL, 4, shape);
    pnb__resnet_out out = pnb__resnet_build(&t->resnet, &t->config, t->g, t->pixels);
    pnb__keep(out.pooled);
    pnb__tensor *loss = pnb__mean(pnb__apply(PNB__SQUARE, out.pooled), PNB__ALL_AXES);
    return pnb__graph_plan(t->g, t->trains ? loss : NULL, err);
}

static pnb_status step(timing *t, pnb_error *err)
{
    pnb_status status = pnb__graph_run(t->g, err);
    if (status != PNB_OK || !t->trains)
        return status;
    size_t n = 0;
    for (size_t i = 0; i < t->w.n; i++)
        if (t->w.items[i].param.trainable) {
            t->updates[n].grad = t->w.items[i].param.grad;
            t->updates[n++].step++;
        }
    pnb__graph_kernels(t->g)->sgd(t->ctx, t->updates, t->n_updates);
    return PNB_OK;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Seconds of a product of 1,024 x 1,024 x 1,024, the best of some. */
static double sgemm_gflops(const timing *t)
{
    enum { N = 1024 };
    float *room = pnb__alloc_zero(3 * (size_t)N * N, sizeof *room);
    double best = INFINITY;
    if (room == NULL)
        return 0;
    pnb__gemm_args g = {.m = N,
                        .n = N,
                        .k = N,
                        .lda = N,
                        .ldb = N,
                        .ldc = N,
                        .n_batch = 1,
                        .alpha = 1,
                        .a = room,
                        .b = room + N * N,
                        .c = room + 2 * N * N,
                        .act = PNB__IDENTITY};
    for (int i = 0; i < 20; i++) {
        double start_s = pnb__now_s();
        pnb__graph_kernels(t->g)->gemm(t->ctx, &g);
        best = PNB_MIN(best, pnb__now_s() - start_s);
    }
    pnb__free(room);
    return 2e-9 * N * N * N / best;
}

static pnb_status measure(timing *t, pnb_error *err)
{
    double seconds[64];
    pnb_status status = PNB_OK;
    for (int warm = 0; status == PNB_OK && warm < 3; warm++)
        status = step(t, err);
    for (int r = 0; r < t->repeats; r++) {
        double start_s = pnb__now_s();
        size_t n = 0;
        for (; status == PNB_OK && (n == 0 || pnb__now_s() - start_s < t->seconds / t->repeats);
             n++)
            status = step(t, err);
        seconds[r] = (pnb__now_s() - start_s) / (double)PNB_MAX(n, (size_t)1);
    }
    if (status != PNB_OK)
        return status;
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    qsort(seconds, (size_t)t->repeats, sizeof *seconds, by_value);
    double median_s = seconds[t->repeats / 2], sgemm = sgemm_gflops(t);
    double rate = 1e-9 * pnb__graph_flops(t->g) / median_s;
    printf("{\"median_s\": %.6f, \"best_s\": %.6f, \"peak_rss_mb\": %.1f, \"arena_mb\": %.1f, "
           "\"gflops\": %.1f, \"sgemm_gflops\": %.1f, \"share\": %.3f}\n",
           median_s, seconds[0], (double)use.ru_maxrss / 1024,
           (double)pnb__graph_arena_bytes(t->g) / 1048576, rate, sgemm, rate / sgemm);
    return PNB_OK;
}

static pnb_status run(timing *t, const char *model, int n_threads, pnb_error *err)
{
    pnb_ctx_opts opts = pnb_ctx_opts_default();
    opts.n_threads = n_threads;
    pnb_status status = pnb__resnet_config_named(&t->config, model, err);
    if (status == PNB_OK)
        status = pnb_ctx_create(&t->ctx, &opts, err);
    if (status == PNB_OK)
        status = pnb__weights_declare_by(&t->w, t->ctx, PNB__F32, declare, t, err);
    if (status == PNB_OK)
        status = pnb__weights_init(&t->w, 1, err);
    if (status == PNB_OK && t->trains)
        status = prepare_updates(t, err);
    if (status == PNB_OK)
        status = build(t, err);
    float *pixels = pnb__alloc_array(t->n_batch * 3 * t->size * t->size, sizeof *pixels);
    if (status == PNB_OK && pixels == NULL)
        status = pnb__fail_nomem(err, t->n_batch * 3 * t->size * t->size * sizeof *pixels);
    pnb__rng rng;
    pnb__rng_init(&rng, 1, 1);
    for (size_t i = 0; status == PNB_OK && i < t->n_batch * 3 * t->size * t->size; i++)
        pixels[i] = (float)pnb__rng_normal(&rng);
    if (status == PNB_OK)
        pnb__write_f32(t->pixels, pixels);
    pnb__free(pixels);
    return status == PNB_OK ? measure(t, err) : status;
}

static void clean_up(timing *t)
{
    for (size_t i = 0; i < t->n_updates; i++)
        pnb__free(t->updates[i].m);
    pnb__free(t->updates);
    pnb__graph_free(t->g);
    pnb__weights_reset(&t->w);
    pnb_ctx_free(t->ctx);
}

int main(int argc, char **argv)
{
    timing t = {.n_batch = 8, .size = 224, .seconds = 2, .repeats = 3};
    int n_threads = 1;
    pnb_error err = PNB_ERROR_INIT;
    bool fine = argc >= 3;
    for (int i = 3; fine && i + 1 < argc; i += 2) {
        double value = atof(argv[i + 1]);
        fine = value > 0 && value < 1 << 14;
        if (strcmp(argv[i], "--batch") == 0)
            t.n_batch = (size_t)value;
        else if (strcmp(argv[i], "--size") == 0)
            t.size = (size_t)value;
        else if (strcmp(argv[i], "--seconds") == 0)
            t.seconds = value;
        else if (strcmp(argv[i], "--repeats") == 0)
            t.repeats = (int)PNB_MIN(value, 63);
        else if (strcmp(argv[i], "--threads") == 0)
            n_threads = (int)value;
        else
            fine = false;
    }
    if (!fine || t.n_batch < 1 || t.repeats < 1 || t.size < PNB__RESNET_MIN_PIXELS) {
        fprintf(stderr, "usage: time_resnet encode|train MODEL [--batch B] [--size S] "
                        "[--seconds S] [--repeats N] [--threads T]\n");
        return 2;
    }
    t.trains = strcmp(argv[1], "train") == 0;
    pnb_status status = run(&t, argv[2], n_threads, &err);
    clean_up(&t);
    if (status != PNB_OK)
        fprintf(stderr, "time_resnet: %s\n", err.text);
    return status != PNB_OK;
}
