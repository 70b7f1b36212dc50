/* What a loss takes of memory beside its inputs and their gradients: planned for 65,536 pairs of
 * width 768, where one matrix of all pairs alone would take 16 GiB. Nothing runs. */
#include <stdio.h>

#include "tests/train/fixture.h"
#include "train/losses/loss.h"

enum { B = 65536, M = B / 8, D = 768 };
static const size_t most_bytes = (size_t)1500000000;

static pnb__dist side(pnb__graph *g, size_t n)
{
    const size_t shape[2] = {n, D};
    return (pnb__dist){.mean = pnb__input_with_grad(g, 2, shape),
                       .log_var = pnb__input_with_grad(g, 2, shape)};
}

/* Bytes of the planned step less those of its inputs and of as many gradients. */
static size_t planned_bytes(const pnb_ctx *ctx, const pnb_loss_opts *o)
{
    pnb__graph *g = NULL;
    pnb__loss loss;
    ASSERT_OK(pnb__graph_create(&g, ctx, PNB__F32, true, &err));
    pnb__graph_set_checkpointing(g, true); /* as that of a step with several micro-batches is */
    const double *w = o->weight;
    bool masked = w[PNB_LOSS_IMG_INCLUSION] > 0 || w[PNB_LOSS_TXT_INCLUSION] > 0;
    pnb__loss_in in = {.image = side(g, B), .text = side(g, B)};
    size_t given = 4 * (size_t)B * D;
    if (masked) {
        in.masked_image = side(g, M);
        in.masked_text = side(g, M);
        given += 4 * (size_t)M * D;
    }
    in.scale = pnb__constant(g, 10);
    in.bias = pnb__constant(g, -10);
    ASSERT_OK(pnb__loss_build(&loss, g, &in, o, &err));
    ASSERT_OK(pnb__graph_plan(g, loss.total, &err));
    size_t bytes = pnb__graph_arena_bytes(g), ours = 2 * given * sizeof(float);
    pnb__graph_free(g);
    return bytes > ours ? bytes - ours : 0;
}

static void test_no_loss_grows_with_the_pairs(void **state)
{
    /* ProLIP's loss is ppcl, all inclusions and vib */
    static const pnb_loss_term terms[] = {PNB_LOSS_SIGLIP, PNB_LOSS_CLIP, PNB_LOSS_PCMEPP};
    pnb_loss_opts o = pnb_loss_opts_default();
    size_t whole = planned_bytes(*state, &o);
    print_message("prolip %.2f GB\n", (double)whole / 1e9);
    bool fits = whole < most_bytes;
    for (size_t i = 0; i < PNB_COUNT(terms); i++) {
        memset(o.weight, 0, sizeof o.weight);
        o.weight[terms[i]] = 1;
        size_t bytes = planned_bytes(*state, &o);
        print_message("%s %.2f GB\n", pnb_loss_name(terms[i]), (double)bytes / 1e9);
        fits = fits && bytes < most_bytes;
    }
    assert_true(fits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_no_loss_grows_with_the_pairs, ctx_setup, ctx_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
