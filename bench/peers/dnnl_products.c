/* Times oneDNN's matmul on the shapes of bench/products.py: dnnl_products SECONDS RxDxC...
 *
 * Weights are packed beforehand in the order oneDNN asks for, a bias is added, results are f32. Its
 * sources come in the type of the product: rounding them, which our products do themselves, is not
 * in its time. Prints best seconds of one product and the name of the implementation, as JSON. */
#include <math.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        if ((call) != dnnl_success) {                                                              \
            fprintf(stderr, "dnnl_products: %s failed\n", #call);                                  \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Bytes 0x3f are 0.75 in f32 and bf16, 63 in bytes: numbers like any other for the time. */
static dnnl_memory_t filled(const dnnl_memory_desc_t *md, dnnl_engine_t engine)
{
    dnnl_memory_t memory;
    void *data;
    CHECK(dnnl_memory_create(&memory, md, engine, DNNL_MEMORY_ALLOCATE));
    CHECK(dnnl_memory_get_data_handle(memory, &data));
    memset(data, 0x3f, dnnl_memory_desc_get_size(md));
    return memory;
}

static void time_kind(dnnl_engine_t engine, dnnl_stream_t stream, const long shape[3], int kind,
                      double seconds)
{
    static const char *const names[] = {"f32", "bf16", "int8"};
    const dnnl_data_type_t a[] = {dnnl_f32, dnnl_bf16, dnnl_u8};
    const dnnl_data_type_t w[] = {dnnl_f32, dnnl_bf16, dnnl_s8};
    dnnl_dims_t src = {shape[0], shape[1]}, weights = {shape[1], shape[2]};
    dnnl_dims_t bias = {1, shape[2]}, dst = {shape[0], shape[2]};
    dnnl_memory_desc_t d[4];
    dnnl_matmul_desc_t op;
    dnnl_primitive_desc_t pd;
    dnnl_primitive_t primitive;
    const char *name = "";
    CHECK(dnnl_memory_desc_init_by_tag(&d[0], 2, src, a[kind], dnnl_ab));
    CHECK(dnnl_memory_desc_init_by_tag(&d[1], 2, weights, w[kind], dnnl_format_tag_any));
    CHECK(dnnl_memory_desc_init_by_tag(&d[2], 2, bias, dnnl_f32, dnnl_ab));
    CHECK(dnnl_memory_desc_init_by_tag(&d[3], 2, dst, dnnl_f32, dnnl_ab));
    CHECK(dnnl_matmul_desc_init(&op, &d[0], &d[1], &d[2], &d[3]));
    if (dnnl_primitive_desc_create(&pd, &op, NULL, engine, NULL) != dnnl_success) {
        printf(", \"%s\": null, \"%s_by\": \"not there\"", names[kind], names[kind]);
        return;
    }
    CHECK(dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name));
    CHECK(dnnl_primitive_create(&primitive, pd));
    dnnl_exec_arg_t args[] = {
        {DNNL_ARG_SRC, filled(&d[0], engine)},
        {DNNL_ARG_WEIGHTS,
         filled(dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0), engine)},
        {DNNL_ARG_BIAS, filled(&d[2], engine)},
        {DNNL_ARG_DST, filled(&d[3], engine)}};
    double best = INFINITY, begin = now_s();
    do {
        double start = now_s();
        CHECK(dnnl_primitive_execute(primitive, stream, 4, args));
        CHECK(dnnl_stream_wait(stream));
        best = fmin(best, now_s() - start);
    } while (now_s() - begin < seconds);
    printf(", \"%s\": %.6g, \"%s_by\": \"%s\"", names[kind], best, names[kind], name);
    for (int i = 0; i < 4; i++)
        dnnl_memory_destroy(args[i].memory);
    dnnl_primitive_destroy(primitive);
    dnnl_primitive_desc_destroy(pd);
}

int main(int argc, char **argv)
{
    const dnnl_version_t *v = dnnl_version();
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    CHECK(dnnl_engine_create(&engine, dnnl_cpu, 0));
    CHECK(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
    printf("{\"version\": \"%d.%d.%d\", \"cases\": [", v->major, v->minor, v->patch);
    for (int i = 2; i < argc; i++) {
        long shape[3];
        if (sscanf(argv[i], "%ldx%ldx%ld", &shape[0], &shape[1], &shape[2]) != 3)
            return 2;
        printf("%s{\"shape\": [%ld, %ld, %ld]", i > 2 ? ", " : "", shape[0], shape[1], shape[2]);
        for (int kind = 0; kind < 3; kind++)
            time_kind(engine, stream, shape, kind, atof(argv[1]));
        printf("}");
    }
    printf("]}\n");
    return 0;
}
