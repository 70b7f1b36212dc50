/* Counts of batches: which keys they are, which numbers are taken, what is written beside weights.
 */
#include "models/keys/batch_counts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "penumbra/safetensors.h"

static const pnb__key_rule rules[] = {{"visual.*", "img.*", PNB__KEY_WHOLE}};
static const pnb__key_mapping_table table = {"test", rules, PNB_COUNT(rules)};
static const pnb__key_mapping layout = {.vision = &table, .prefix = ""};
static const pnb__key_mapping elsewhere = {.prefix = ""};

/* Two weights of a norm and one that is none. */
static pnb__weight items[] = {{.param = {.name = "visual.bn1.weight"}},
                              {.param = {.name = "visual.bn1.running_var"}},
                              {.param = {.name = "visual.bn2.running_var"}}};
static pnb__weights weights = {.items = items, .n = PNB_COUNT(items)};

static void keys_stand_beside_variances(void **state)
{
    (void)state;
    assert_true(pnb__batch_count_is(&weights, &layout, "img.bn1.num_batches_tracked"));
    assert_false(pnb__batch_count_is(&weights, &layout, "img.bn3.num_batches_tracked"));
    assert_false(pnb__batch_count_is(&weights, &layout, "visual.bn1.num_batches_tracked"));
    assert_false(pnb__batch_count_is(&weights, &layout, "img.bn1.running_var"));
    assert_false(pnb__batch_count_is(&weights, &elsewhere, "img.bn1.num_batches_tracked"));
}

/* Loads a file of one array; what it says of bn1, and of bn2, of which it has nothing. */
static pnb_status load(const pnb_array_view *array, pnb_error *err)
{
    char path[] = "/tmp/pnb-counts-XXXXXX";
    pnb__weight_file file;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(pnb_safetensors_write(path, array, 1, NULL, err), PNB_OK);
    assert_int_equal(pnb__weight_file_open(&file, path, err), PNB_OK);
    items[1].param.n_moves = items[2].param.n_moves = 99;
    pnb_status status = pnb__batch_counts_load(&weights, &layout, &file, err);
    pnb__weight_file_close(&file);
    unlink(path);
    return status;
}

static void whole_numbers_are_taken(void **state)
{
    (void)state;
    static const int64_t many = INT64_C(5000000000), less = -1;
    static const int32_t few = 12;
    static const double half = 0.5;
    static const struct {
        pnb_dtype dtype;
        int n_dims;
        const void *data;
        size_t n_bytes;
        int64_t want; /* -1: refused */
    } cases[] = {{PNB_I64, 0, &many, 8, INT64_C(5000000000)},
                 {PNB_I64, 1, &many, 8, INT64_C(5000000000)},
                 {PNB_I32, 0, &few, 4, 12},
                 {PNB_I64, 0, &less, 8, -1},
                 {PNB_F64, 0, &half, 8, -1}};
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb_error err = PNB_ERROR_INIT;
        const pnb_array_view array = {.name = "img.bn1.num_batches_tracked",
                                      .dtype = cases[i].dtype,
                                      .n_dims = cases[i].n_dims,
                                      .shape = {1},
                                      .data = cases[i].data,
                                      .n_bytes = cases[i].n_bytes};
        assert_int_equal(load(&array, &err), cases[i].want < 0 ? PNB_FORMAT : PNB_OK);
        if (cases[i].want < 0) {
            assert_non_null(strstr(err.text, "img.bn1.num_batches_tracked counts batches"));
            continue;
        }
        assert_true(items[1].param.n_moves == cases[i].want);
        assert_true(items[2].param.n_moves == 0);
    }
}

static void counts_are_written(void **state)
{
    (void)state;
    pnb__arena arena;
    pnb_array_view views[PNB_COUNT(items)];
    size_t n = 0;
    pnb_error err = PNB_ERROR_INIT;
    pnb__arena_init(&arena, 1024);
    items[1].param.n_moves = 3;
    items[2].param.n_moves = 4;
    assert_int_equal(pnb__batch_counts_scatter(&weights, &layout, &arena, views, &n, &err), PNB_OK);
    assert_int_equal(n, 2);
    assert_string_equal(views[1].name, "img.bn2.num_batches_tracked");
    assert_true(views[1].dtype == PNB_I64 && views[1].n_dims == 0 && views[1].n_bytes == 8);
    assert_true(*(const int64_t *)views[0].data == 3 && *(const int64_t *)views[1].data == 4);
    n = 0;
    assert_int_equal(pnb__batch_counts_scatter(&weights, &elsewhere, &arena, views, &n, &err),
                     PNB_OK);
    assert_int_equal(n, 0);
    pnb__arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(keys_stand_beside_variances),
                                       cmocka_unit_test(whole_numbers_are_taken),
                                       cmocka_unit_test(counts_are_written)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
