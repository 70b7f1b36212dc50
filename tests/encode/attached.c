/* A model with an adapter beside it: rows are those of apply on the model's own, through memory and
 * through parts of a journal; chain, family and width; what does not belong together. */
#include "encode/encoder.h"

#include "penumbra/adapt.h"
#include "tests/encode/model_folder.h"

#include <sys/stat.h>

static const char *const phrases[] = {"a red star", "two green bars", "a blue ring", "a bar",
                                      "a red star above a blue ring"};
enum { N = PNB_COUNT(phrases) };

static char adapter_dir[64], attached_dir[64];

/* Learned from the captions of the fixture's model. */
static pnb_embeddings *plain_rows(const fixture *f)
{
    pnb_encoder *encoder = NULL;
    pnb_embeddings *set = NULL;
    assert_ok(pnb_encoder_open(&encoder, f->ctx, f->dir, NULL, err));
    assert_ok(pnb_encode_texts(encoder, phrases, N, NULL, &set, err));
    pnb_encoder_free(encoder);
    return set;
}

static void remove_dir(const char *dir)
{
    static const char *const names[] = {
        "adapter/config.json", "adapter/model.safetensors", "adapter",
        "config.json",         "model.safetensors",         "model.safetensors.sha256",
        "tokenizer.json",      "preprocessor_config.json",  "."};
    char path[128];
    for (size_t i = 0; i < PNB_COUNT(names); i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        (void)remove(path[strlen(path) - 1] == '.' ? dir : path);
    }
}

static int set_up_attached(void **state)
{
    int status = set_up(state);
    const fixture *f = *state;
    pnb_embeddings *set = plain_rows(f);
    const pnb_adapter_data data = {.texts = set};
    pnb_adapter *adapter = NULL;
    snprintf(adapter_dir, sizeof adapter_dir, "%s.adapter", f->dir);
    snprintf(attached_dir, sizeof attached_dir, "%s.attached", f->dir);
    assert_ok(pnb_adapter_fit(&adapter, f->ctx, "conformity", &data, NULL, err));
    assert_ok(pnb_adapter_save(adapter, adapter_dir, err));
    pnb_adapter_free(adapter);
    pnb_embeddings_free(set);
    return status;
}

static int tear_down_attached(void **state)
{
    remove_dir(adapter_dir);
    remove_dir(attached_dir);
    return tear_down(state);
}

static void compare_sets(const pnb_embeddings *a, const pnb_embeddings *b)
{
    char first[PNB_PROVENANCE_BYTES], second[PNB_PROVENANCE_BYTES];
    assert_int_equal(a->family, b->family);
    assert_true(a->n == b->n && a->dim == b->dim);
    assert_memory_equal(a->mean, b->mean, a->n * a->dim * sizeof *a->mean);
    assert_memory_equal(a->log_var, b->log_var, a->n * a->dim * sizeof *a->mean);
    pnb_provenance_text(&a->info, first, sizeof first);
    pnb_provenance_text(&b->info, second, sizeof second);
    assert_string_equal(first, second);
    assert_string_equal(a->info.measure, b->info.measure);
}

static void rows_go_through_it(void **state)
{
    const fixture *f = *state;
    pnb_embeddings *plain = plain_rows(f), *applied, *made = NULL, *loaded = NULL, *image = NULL;
    pnb_adapter *adapter = NULL;
    pnb_encoder *encoder = NULL;
    pnb_encode_opts opts = pnb_encode_opts_default();
    char list[80], out[80], ids[80];
    assert_ok(pnb_adapter_load(&adapter, f->ctx, adapter_dir, err));
    assert_ok(pnb_adapter_apply(&applied, adapter, PNB_ADAPTER_TEXTS, plain, err));
    assert_ok(pnb_encoder_attach(f->ctx, f->dir, adapter_dir, attached_dir, err));
    assert_ok(pnb_encoder_open(&encoder, f->ctx, attached_dir, NULL, err));
    assert_ok(pnb_encode_texts(encoder, phrases, N, NULL, &made, err));
    compare_sets(made, applied);
    assert_int_equal(made->info.adapters.n, 1);
    assert_true(made->info.adapters.items[0].leaves_images);

    /* pictures are left alone: no link, and comparable */
    assert_ok(pnb_encode_images(encoder, f->images, 1, NULL, &image, err));
    assert_int_equal(image->info.adapters.n, 0);
    assert_ok(pnb_embeddings_check_mix(image, made, err));

    /* in parts of two rows */
    snprintf(list, sizeof list, "%s.txt", f->dir);
    snprintf(out, sizeof out, "%s.out.safetensors", f->dir);
    snprintf(ids, sizeof ids, "%s.out.ids.jsonl", f->dir);
    FILE *lines = fopen(list, "w");
    assert_non_null(lines);
    for (size_t i = 0; i < N; i++)
        fprintf(lines, "%s\n", phrases[i]);
    fclose(lines);
    const char *paths[] = {list};
    const pnb_encode_file file = {.out = out, .save_every = 2};
    opts.batch_size = 2;
    pnb_embeddings_free(plain);
    pnb_embeddings_free(applied);
    pnb_encoder *base = NULL;
    assert_ok(pnb_encoder_open(&base, f->ctx, f->dir, NULL, err));
    assert_ok(pnb_encode_texts(base, phrases, N, &opts, &plain, err));
    assert_ok(pnb_adapter_apply(&applied, adapter, PNB_ADAPTER_TEXTS, plain, err));
    assert_ok(pnb_encode_to_file(encoder, PNB_ENCODE_TEXTS, paths, 1, &opts, &file, NULL, err));
    assert_ok(pnb_embeddings_load(&loaded, out, err));
    compare_sets(loaded, applied);
    pnb_embeddings_free(made); /* batches of one set, not parts */
    assert_ok(pnb_encode_texts(encoder, phrases, N, &opts, &made, err));
    compare_sets(made, applied);
    pnb_encoder_free(base);
    pnb_encoder_free(encoder);
    pnb_adapter_free(adapter);
    pnb_embeddings_free(plain);
    pnb_embeddings_free(applied);
    pnb_embeddings_free(made);
    pnb_embeddings_free(loaded);
    pnb_embeddings_free(image);
    remove(list);
    remove(out);
    remove(ids);
}

static void what_does_not_belong(void **state)
{
    const fixture *f = *state;
    pnb_encoder *encoder = NULL;
    pnb_encoder plain = {.model = NULL};
    const pnb_encoder_opts weights_alone = {.sides = 0};
    char other[96];
    assert_fails(pnb_encoder_open(&encoder, f->ctx, adapter_dir, NULL, err), PNB_FORMAT,
                 "is an adapter, not a model");
    assert_fails(pnb_encoder_attach(f->ctx, f->dir, adapter_dir, attached_dir, err), PNB_EXISTS,
                 "exists");
    snprintf(other, sizeof other, "%s.other", f->dir);
    assert_fails(pnb_encoder_attach(f->ctx, attached_dir, adapter_dir, other, err), PNB_UNSUPPORTED,
                 "has the adapter conformity beside it");
    assert_fails(pnb_encoder_attach(f->ctx, f->dir, f->dir, other, err), PNB_FORMAT, "");
    assert_true(access(other, F_OK) != 0);
    assert_ok(pnb__encoder_init(&plain, f->ctx, attached_dir, &weights_alone, err));
    assert_true(pnb__encoder_adapts(&plain, PNB_ENCODE_TEXTS));
    assert_false(pnb__encoder_adapts(&plain, PNB_ENCODE_IMAGES));
    assert_int_equal(pnb__encoder_dim(&plain, PNB_ENCODE_TEXTS), 16);
    assert_fails(pnb__encoder_need_plain(&plain, "this", err), PNB_UNSUPPORTED, "this looks at");
    pnb__encoder_reset(&plain);
}

#ifdef PNB_FAULTS
/* Every allocation of attaching and of encoding with what came out fails in turn. */
static pnb_status attach_and_encode(const fixture *f, const char *out, pnb_error *err)
{
    pnb_encoder *encoder = NULL;
    pnb_embeddings *set = NULL;
    pnb_status status;
    PNB_TRY(pnb_encoder_attach(f->ctx, f->dir, adapter_dir, out, err));
    PNB_TRY(pnb_encoder_open(&encoder, f->ctx, out, NULL, err));
    status = pnb_encode_texts(encoder, phrases, 2, NULL, &set, err);
done:
    pnb_embeddings_free(set);
    pnb_encoder_free(encoder);
    return status;
}

static void out_of_memory(void **state)
{
    const fixture *f = *state;
    char out[96];
    pnb_status status = PNB_NOMEM;
    snprintf(out, sizeof out, "%s.failing", f->dir);
    for (long n = 0; status != PNB_OK; n++) {
        pnb_error error = PNB_ERROR_INIT;
        pnb__alloc_fail_after(n);
        status = attach_and_encode(f, out, &error);
        pnb__alloc_fail_after(-1);
        remove_dir(out);
        if (status != PNB_OK && status != PNB_NOMEM)
            fail_msg("allocation %ld: %s: %s", n, pnb_status_name(status), error.text);
        assert_true(n < 20000);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_go_through_it),
        cmocka_unit_test(what_does_not_belong),
#ifdef PNB_FAULTS
        cmocka_unit_test(out_of_memory),
#endif
    };
    return cmocka_run_group_tests(tests, set_up_attached, tear_down_attached);
}
