/* Random shapes: every slot that computes with sizes, strides, flags and values drawn from a seed,
 * all tables against the f64 reference at the tolerances of the tests of fixed shapes. Six of each;
 * the environment's PNB_SHAPES=1000 asks for as many, from the seventh on larger ones. A failure is
 * followed by what was drawn, and by the seed, which says it all. */
#include "tests/kernels/shapes/layers.h"
#include "tests/kernels/shapes/products.h"
#include "tests/kernels/shapes/vectors.h"

enum { N_SMALL = 6 };

typedef struct slot_test {
    const char *slots; /* those it calls, between spaces */
    void (*draw)(shape *s);
} slot_test;

static slot_test tests_of_slots[] = {
    {" gemm gemm_pack gemm_pack_bytes ", gemm_shapes},
    {" gemm_bf16 gemm_bf16_pack gemm_bf16_pack_bytes gemm_bf16_work ", gemm_bf16_shapes},
    {" gemm_rounded gemm_rounded_work ", gemm_rounded_shapes},
    {" gemm_i8 gemm_i8_pack gemm_i8_pack_bytes gemm_i8_work ", gemm_i8_shapes},
    {" attention attention_bwd attention_work ", attention_shapes},
    {" attention attention_bwd (rounds) ", attention_rounded_shapes},
    {" attention attention_bwd (halves) ", attention_halves_shapes},
    {" layernorm layernorm_bwd layernorm_work ", layernorm_shapes},
    {" unary unary_bwd ", unary_shapes},
    {" halves_of halves_unary halves_unary_bwd halves_sum ", halves_shapes},
    {" binary binary_bwd ", binary_shapes},
    {" copy ", copy_shapes},
    {" axpy fill dropout ", plain_shapes},
    {" sum sum_bwd ", sum_shapes},
    {" sum_squares all_finite ", squares_shapes},
    {" all_finite (not) ", finite_shapes},
    {" softmax softmax_bwd cross_entropy cross_entropy_bwd l2_normalize l2_normalize_bwd ",
     rows_shapes},
    {" pairwise_sqdist pairwise_sqdist_bwd ", distances_shapes},
    {" draw draw_bwd ", draw_shapes},
    {" match_strip match_strip_bwd row_squares ", match_shapes},
    {" spread_strip spread_strip_bwd ", spread_shapes},
    {" pair_labels ", labels_shapes},
    {" margins margins_bwd ", margins_shapes},
    {" kernel_strip kernel_strip_bwd ", kernel_shapes},
    {" gather_rows scatter_add_rows ", gather_shapes},
    {" patchify patchify_bwd ", patch_shapes},
    {" conv2d conv2d_dx conv2d_dw conv2d_pack conv2d_pack_bytes conv2d_work ", conv2d_shapes},
    {" batchnorm batchnorm_moments batchnorm_bwd batchnorm_fold batchnorm_work ", batchnorm_shapes},
    {" max_pool max_pool_bwd ", pool_shapes},
    {" gru gru_bwd ", gru_shapes},
    {" inclusion inclusion_bwd ", inclusion_shapes},
    {" keep_best ", best_shapes},
    {" cholesky tri_solve ", solve_shapes},
    {" sgd adam adamw adamp sgdp ", optim_shapes},
};

static shape now;
static bool is_running; /* a test that fails leaves it so */

static size_t n_shapes(void)
{
    const char *wanted = getenv("PNB_SHAPES");
    return wanted != NULL ? (size_t)strtoul(wanted, NULL, 10) : N_SMALL;
}

static void test_slots(void **state)
{
    const slot_test *t = *state;
    for (size_t seed = 0; seed < n_shapes(); seed++) {
        memset(&now, 0, sizeof now);
        now.seed = seed;
        now.is_large = seed >= N_SMALL;
        pnb__rng_init(&now.rng, seed, (uint64_t)(t - tests_of_slots));
        is_running = true;
        t->draw(&now);
        is_running = false;
        for (size_t i = 0; i < now.n_ids; i++)
            free(now.ids[i]);
    }
}

static int say_what_failed(void **state)
{
    (void)state;
    if (is_running)
        print_error("seed %llu:%s\n", (unsigned long long)now.seed, now.text);
    is_running = false;
    return 0;
}

static void test_no_slot_is_missing(void **state)
{
    static const struct {
        const char *word;
        pnb__kernel_column column;
    } all[] = {
#define PNB__KERNEL(column, returns, name, parameters, names) {" " #name " ", PNB__KERNEL_##column},
#include "kernels/kernels.def"
    };
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(all); i++) {
        bool found = all[i].column == PNB__KERNEL_MEMORY;
        for (size_t t = 0; t < PNB_COUNT(tests_of_slots); t++)
            found = found || strstr(tests_of_slots[t].slots, all[i].word) != NULL;
        if (!found)
            fail_msg("no random shapes of%s", all[i].word);
    }
}

int main(void)
{
    struct CMUnitTest tests[PNB_COUNT(tests_of_slots) + 1] = {
        cmocka_unit_test(test_no_slot_is_missing)};
    for (size_t t = 0; t < PNB_COUNT(tests_of_slots); t++)
        tests[t + 1] = (struct CMUnitTest){.name = tests_of_slots[t].slots,
                                           .test_func = test_slots,
                                           .teardown_func = say_what_failed,
                                           .initial_state = &tests_of_slots[t]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
