/* Applying: which sets may go through, what stands in their chain afterwards and with whom they may
 * be compared; memory and file have the same bytes. */
#include "tests/adapt/world.h"

static pnb_adapter *learn(pnb_ctx *ctx, const char *method, const pnb_embeddings *images,
                          const pnb_embeddings *texts)
{
    pnb_adapter *a = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_adapter_fit(&a, ctx, method,
                              &(pnb_adapter_data){.images = images, .texts = texts}, NULL, &err),
              &err);
    return a;
}

static pnb_embeddings *put_through(const pnb_adapter *a, pnb_adapter_side side,
                                   const pnb_embeddings *set)
{
    pnb_embeddings *out = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_adapter_apply(&out, a, side, set, &err), &err);
    return out;
}

static void assert_mix(const pnb_embeddings *a, const pnb_embeddings *b, const char *says)
{
    pnb_error err = PNB_ERROR_INIT;
    pnb_status found = pnb_embeddings_check_mix(a, b, &err);
    if (says == NULL)
        assert_ok(found, &err);
    else
        assert_failed(found, &err, PNB_ARG, says);
}

static void who_may_be_compared(void **state)
{
    scratch *s = *state;
    pnb_ctx *ctx = make_ctx();
    (void)s;
    pnb_embeddings *images = unit_set("image", 6, 4, 1), *texts = unit_set("text", 7, 4, 2);
    pnb_adapter *both = learn(ctx, "whitened", images, texts);
    pnb_adapter *alone = learn(ctx, "whitened", NULL, texts);
    pnb_embeddings *i = put_through(both, PNB_ADAPTER_IMAGES, images);
    pnb_embeddings *t = put_through(both, PNB_ADAPTER_TEXTS, texts);
    pnb_embeddings *lone = put_through(alone, PNB_ADAPTER_TEXTS, texts);
    pnb_adapter_facts facts;
    pnb_adapter_describe(both, &facts);
    assert_int_equal(i->info.adapters.n, 1);
    assert_string_equal(i->info.adapters.items[0].name, "whitened");
    assert_string_equal(i->info.adapters.items[0].sha256, facts.link->sha256);
    assert_string_equal(i->info.weights_sha256, ONES);
    assert_string_equal(i->info.measure, "mean");
    assert_string_equal(i->ids[3], "row-3");
    assert_mix(i, t, NULL);
    assert_mix(images, t, "whitened does not leave image embeddings alone");
    assert_mix(i, texts, "whitened does not leave text embeddings alone");
    assert_mix(images, lone, NULL);
    assert_mix(i, lone, "adapt both with one adapter");
    assert_mix(texts, lone, "whitened does not leave text embeddings alone");
    pnb_embeddings_free(i);
    pnb_embeddings_free(t);
    pnb_embeddings_free(lone);
    pnb_adapter_free(both);
    pnb_adapter_free(alone);
    pnb_embeddings_free(images);
    pnb_embeddings_free(texts);
    pnb_ctx_free(ctx);
}

static void sets_of_something_else(void **state)
{
    (void)state;
    pnb_ctx *ctx = make_ctx();
    pnb_embeddings *images = unit_set("image", 6, 4, 1), *texts = unit_set("text", 7, 4, 2);
    pnb_embeddings *wide = unit_set("text", 6, 5, 3), *out = NULL;
    pnb_adapter *a = learn(ctx, "conformity", NULL, texts);
    pnb_embeddings *once = put_through(a, PNB_ADAPTER_TEXTS, texts);
    pnb_error err = PNB_ERROR_INIT;
    assert_failed(pnb_adapter_apply(&out, a, PNB_ADAPTER_IMAGES, images, &err), &err, PNB_ARG,
                  "leaves image embeddings alone");
    pnb_error_reset(&err);
    assert_failed(pnb_adapter_apply(&out, a, PNB_ADAPTER_TEXTS, images, &err), &err, PNB_ARG,
                  "image embeddings cannot go through the text side");
    pnb_error_reset(&err);
    assert_failed(pnb_adapter_apply(&out, a, PNB_ADAPTER_TEXTS, wide, &err), &err, PNB_SHAPE,
                  "width 5, the adapter was learned from width 4");
    pnb_error_reset(&err);
    assert_failed(pnb_adapter_apply(&out, a, PNB_ADAPTER_TEXTS, once, &err), &err, PNB_ARG,
                  "text embeddings of tiny 111111111111 > conformity");
    pnb_error_reset(&err);
    snprintf(texts->info.weights_sha256, sizeof texts->info.weights_sha256, TWOS);
    assert_failed(
        pnb_adapter_apply(&out, a, PNB_ADAPTER_TEXTS, texts, &err), &err, PNB_ARG,
        "embeddings of tiny 222222222222, the adapter was learned from embeddings of tiny "
        "111111111111");
    pnb_error_reset(&err);
    texts->info = (pnb_embeddings_info){0}; /* unknown: the user's word */
    assert_ok(pnb_adapter_apply(&out, a, PNB_ADAPTER_TEXTS, texts, &err), &err);
    assert_int_equal(out->info.adapters.n, 1);
    pnb_embeddings_free(out);
    out = NULL;
    while (texts->info.adapters.n < PNB_MAX_ADAPTERS)
        texts->info.adapters.items[texts->info.adapters.n++] = once->info.adapters.items[0];
    pnb_adapter *full = learn(ctx, "conformity", NULL, texts);
    assert_failed(pnb_adapter_apply(&out, full, PNB_ADAPTER_TEXTS, texts, &err), &err, PNB_LIMIT,
                  "8 adapters already");
    assert_null(out);
    pnb_adapter_free(full);
    pnb_adapter_free(a);
    pnb_embeddings_free(once);
    pnb_embeddings_free(images);
    pnb_embeddings_free(texts);
    pnb_embeddings_free(wide);
    pnb_ctx_free(ctx);
}

/* More rows than a block, from a mapped file: the file is the one that saving writes. */
static void memory_and_file_agree(void **state)
{
    scratch *s = *state;
    pnb_ctx *ctx = make_ctx();
    static const char *const methods[] = {"conformity", "whitened"};
    pnb_embeddings *images = unit_set("image", 2500, 3, 1), *mapped = NULL;
    pnb_embeddings_load_opts opts = pnb_embeddings_load_opts_default();
    pnb_error err = PNB_ERROR_INIT;
    opts.map = true;
    assert_ok(pnb_embeddings_save(images, scratch_path(s, "i.safetensors"), &err), &err);
    assert_ok(pnb_embeddings_load_with(&mapped, s->path, &opts, &err), &err);
    for (size_t m = 0; m < PNB_COUNT(methods); m++) {
        pnb_adapter *a = learn(ctx, methods[m], mapped, NULL);
        pnb_embeddings *out = put_through(a, PNB_ADAPTER_IMAGES, images), *back = NULL;
        assert_ok(pnb_adapter_apply_to(scratch_path(s, "o.safetensors"), a, PNB_ADAPTER_IMAGES,
                                       mapped, NULL, &err),
                  &err);
        assert_ok(pnb_embeddings_load(&back, s->path, &err), &err);
        assert_int_equal(back->n, out->n);
        assert_memory_equal(back->mean, out->mean, 2500 * 3 * sizeof(float));
        assert_memory_equal(back->log_var, out->log_var, 2500 * 3 * sizeof(float));
        assert_string_equal(back->ids[2499], "row-2499");
        assert_string_equal(back->info.adapters.items[0].sha256,
                            out->info.adapters.items[0].sha256);
        pnb_embeddings_free(out);
        pnb_embeddings_free(back);
        pnb_adapter_free(a);
    }
    pnb_embeddings_free(mapped);
    pnb_embeddings_free(images);
    pnb_ctx_free(ctx);
}

/* Stops as soon as any row is done. */
static bool stop_at_once(void *user, size_t done, size_t total)
{
    *(size_t *)user = done;
    return done == total;
}

/* Interrupted between blocks of rows there is no file; a watch that goes on sees the last row. */
static void a_watch_stops_it(void **state)
{
    scratch *s = *state;
    pnb_ctx *ctx = make_ctx();
    pnb_embeddings *images = unit_set("image", 2500, 3, 1), *few = unit_set("image", 9, 3, 1);
    pnb_adapter *a = learn(ctx, "conformity", images, NULL);
    pnb_error err = PNB_ERROR_INIT;
    size_t done = 0;
    const pnb_watch watch = {stop_at_once, &done};
    scratch_clear(s);
    assert_failed(pnb_adapter_apply_to(scratch_path(s, "o.safetensors"), a, PNB_ADAPTER_IMAGES,
                                       images, &watch, &err),
                  &err, PNB_INTERRUPTED, "interrupted after 1024 rows");
    assert_int_equal(scratch_count(s), 0);
    assert_ok(pnb_adapter_apply_to(scratch_path(s, "o.safetensors"), a, PNB_ADAPTER_IMAGES, few,
                                   &watch, &err),
              &err);
    assert_int_equal(done, 9);
    scratch_clear(s);
    pnb_adapter_free(a);
    pnb_embeddings_free(images);
    pnb_embeddings_free(few);
    pnb_ctx_free(ctx);
}

/* A row that cannot be applied leaves no half of a file. */
static void nothing_appears_when_it_fails(void **state)
{
    scratch *s = *state;
    pnb_ctx *ctx = make_ctx();
    pnb_embeddings *images = unit_set("image", 1200, 3, 1);
    pnb_adapter *a = learn(ctx, "conformity", images, NULL);
    pnb_error err = PNB_ERROR_INIT;
    scratch_clear(s);
    memset(images->mean + 1100 * 3, 0, 3 * sizeof(float));
    assert_failed(pnb_adapter_apply_to(scratch_path(s, "o.safetensors"), a, PNB_ADAPTER_IMAGES,
                                       images, NULL, &err),
                  &err, PNB_NUMERIC, "row 1100 of the image embeddings has length 0");
    assert_int_equal(scratch_count(s), 0);
    pnb_adapter_free(a);
    pnb_embeddings_free(images);
    pnb_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_may_be_compared),           cmocka_unit_test(sets_of_something_else),
        cmocka_unit_test(memory_and_file_agree),         cmocka_unit_test(a_watch_stops_it),
        cmocka_unit_test(nothing_appears_when_it_fails),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
