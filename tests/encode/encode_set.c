/* The public calls in memory: names and record of rows, and what they refuse. */
#include "tests/encode/model_folder.h"

/* Rows, their names, and the record of a set made in memory. */
static void rows_are_named(void **state)
{
    const fixture *f = *state;
    pnb_encoder *encoder = NULL;
    pnb_embeddings *set = NULL;
    const char *bad[] = {"fine", "\xff"};
    pnb_encode_opts opts = pnb_encode_opts_default();
    assert_ok(pnb_encoder_open(&encoder, f->ctx, f->dir, NULL, err));
    assert_ok(pnb_encode_texts(encoder, texts, N_TEXTS, NULL, &set, err));
    assert_int_equal(set->n, N_TEXTS);
    assert_string_equal(set->ids[4], "4");
    assert_string_equal(set->texts[1], "two green bars");
    assert_int_equal(strlen(set->info.weights_sha256), 64);
    assert_string_equal(set->info.modality, "text");
    pnb_embeddings_free(set);
    set = NULL;
    assert_ok(pnb_encode_images(encoder, f->images, N_IMAGES, NULL, &set, err));
    assert_string_equal(set->ids[2], "2");
    assert_string_equal(set->info.modality, "image");
    pnb_embeddings_free(set);
    set = NULL;
    assert_int_equal(pnb_encode_texts(encoder, bad, 2, NULL, &set, NULL), PNB_FORMAT);
    opts.batch_size = 0;
    assert_int_equal(pnb_encode_texts(encoder, texts, 1, &opts, &set, NULL), PNB_ARG);
    assert_null(set);
    pnb_encoder_free(encoder);
}

static void a_side_that_is_closed(void **state)
{
    const fixture *f = *state;
    const pnb_encoder_opts sides = {.sides = PNB_ENCODE_TEXTS};
    pnb_encoder *encoder = NULL;
    pnb_embeddings *set = NULL;
    pnb_error why = PNB_ERROR_INIT;
    assert_ok(pnb_encoder_open(&encoder, f->ctx, f->dir, &sides, err));
    assert_int_equal(pnb_encode_images(encoder, f->images, 1, NULL, &set, &why), PNB_UNSUPPORTED);
    assert_non_null(strstr(why.text, "opened without the side for pictures"));
    pnb_encoder_free(encoder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_named),
                                       cmocka_unit_test(a_side_that_is_closed)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
