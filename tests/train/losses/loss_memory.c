/* What a loss takes of memory beside its inputs and their gradients: planned for 65,536 pairs of
 * width 768, where one matrix of all pairs alone would take 16 GiB. Nothing runs. */
#include <stdio.h>

#include "tests/train/fixture.h"
#include "train/losses/loss.h"

enum { B = 65536, D = 768 };
static const size_t most_bytes = (size_t)1500000000;

static pnb__dist side(pnb__graph *g, size_t n)
{
    const size_t shape[2] = {n, D};
    return (pnb__dist){.mean = pnb__input_with_grad(g, 2, shape),
                       .log_var = pnb__input_with_grad(g, 2, shape)};
}

/* What is asked of a loss beside its weights. */
typedef struct memory_case {
    const char *name;
    pnb_loss_term term;
    size_t b, n_samples;
    bool has_labels, is_hardest, has_teacher, is_published, has_negatives;
    size_t n_embeddings; /* each with what attention added to it */
} memory_case;

/* Bytes of the planned step less those of its inputs and of as many gradients. */
static size_t planned_bytes(const pnb_ctx *ctx, const pnb_loss_opts *o, const memory_case *c)
{
    pnb__graph *g = NULL;
    pnb__loss loss;
    ASSERT_OK(pnb__graph_create(&g, ctx, PNB__F32, true, &err));
    pnb__graph_only_plan(g);
    pnb__graph_set_checkpointing(g, true); /* as that of a step with several micro-batches is */
    const double *w = o->weight;
    bool masked = w[PNB_LOSS_IMG_INCLUSION] > 0 || w[PNB_LOSS_TXT_INCLUSION] > 0;
    pnb__loss_in in = {.image = side(g, c->b), .text = side(g, c->b)};
    size_t given = 4 * c->b * D, m = c->b / 8;
    if (masked) {
        in.masked_image = side(g, m);
        in.masked_text = side(g, m);
        given += 4 * m * D;
    }
    in.scale = pnb__constant(g, 10);
    in.bias = pnb__constant(g, -10);
    in.has_labels = c->has_labels;
    in.n_marks = 2;
    in.label_base = 1e-4;
    in.teacher_scale = 100;
    in.draws = true;
    for (int s = 0; s < 2 && c->has_teacher; s++) {
        in.teacher[s].mean = pnb__input(g, PNB__REAL, 2, (size_t[]){c->b, D});
        if (c->term == PNB_LOSS_DISTILL_KL)
            in.teacher[s].log_var = pnb__input(g, PNB__REAL, 2, (size_t[]){c->b, D});
    }
    given += c->has_teacher ? c->b * D : 0; /* of two, which have no gradient */
    given += c->has_teacher && c->term == PNB_LOSS_DISTILL_KL ? c->b * D : 0;
    if (c->has_negatives) {
        in.negative = side(g, c->b);
        given += 2 * c->b * D;
    }
    if (c->n_embeddings > 0) {
        in.image.residual = pnb__input_with_grad(g, 2, (size_t[]){c->b, D});
        in.text.residual = pnb__input_with_grad(g, 2, (size_t[]){c->b, D});
        in.image.n_embeddings = in.text.n_embeddings = c->n_embeddings;
        given += 2 * c->b * D;
    }
    ASSERT_OK(pnb__loss_build(&loss, g, &in, o, &err));
    ASSERT_OK(pnb__graph_plan(g, loss.total, &err));
    size_t bytes = pnb__graph_arena_bytes(g), ours = 2 * given * sizeof(float);
    pnb__graph_free(g);
    return bytes > ours ? bytes - ours : 0;
}

static size_t bytes_of(const pnb_ctx *ctx, const memory_case *c)
{
    pnb_loss_opts o = pnb_loss_opts_default();
    memset(o.weight, 0, sizeof o.weight);
    o.weight[c->term] = 1;
    o.n_samples = c->n_samples > 0 ? c->n_samples : 7;
    o.triplet_hardest = c->is_hardest;
    o.pcme_kl_published = o.uniformity_published = c->is_published;
    size_t bytes = planned_bytes(ctx, &o, c);
    print_message("%s, %zu pairs: %.2f GB\n", c->name, c->b, (double)bytes / 1e9);
    return bytes;
}

static void test_no_loss_grows_with_the_pairs(void **state)
{
    static const memory_case cases[] = {
        {"siglip", PNB_LOSS_SIGLIP, B, .n_samples = 0},
        {"clip", PNB_LOSS_CLIP, B, .n_samples = 0},
        {"pcmepp", PNB_LOSS_PCMEPP, B, .n_samples = 0},
        {"ppcl of labels", PNB_LOSS_PPCL, B, .has_labels = true},
        {"siglip of labels", PNB_LOSS_SIGLIP, B, .has_labels = true},
        {"pcmepp of labels", PNB_LOSS_PCMEPP, B, .has_labels = true},
        {"pseudo positives", PNB_LOSS_PCMEPP_PSEUDO, B, .n_samples = 0},
        {"pseudo positives of labels", PNB_LOSS_PCMEPP_PSEUDO, B, .has_labels = true},
        {"all negatives", PNB_LOSS_TRIPLET, B, .n_samples = 0},
        {"hardest negatives", PNB_LOSS_TRIPLET, B, .is_hardest = true},
        {"discrepancy", PNB_LOSS_MMD, B, .n_samples = 0},
        {"distillation", PNB_LOSS_DISTILL, B, .has_teacher = true},
        {"distillation of spreads", PNB_LOSS_DISTILL_KL, B, .has_teacher = true},
        {"ppcl with negatives", PNB_LOSS_PPCL, B, .has_negatives = true},
        {"siglip with negatives", PNB_LOSS_SIGLIP, B, .has_negatives = true},
        {"clip with negatives", PNB_LOSS_CLIP, B, .has_negatives = true},
        {"diversity", PNB_LOSS_DIVERSITY, B, .n_embeddings = 4},
        {"pcme, 1 sample", PNB_LOSS_PCME, B, .n_samples = 1},
        {"pcme, 7 samples", PNB_LOSS_PCME, B, .n_samples = 7},
        {"pcme, 64 samples", PNB_LOSS_PCME, B / 8, .n_samples = 64},
        {"pcme of labels", PNB_LOSS_PCME, B, .n_samples = 7, .has_labels = true},
        {"pcme's divergence", PNB_LOSS_PCME_KL, B, .n_samples = 7},
        {"published divergence", PNB_LOSS_PCME_KL, B, .n_samples = 7, .is_published = true},
        {"uniformity", PNB_LOSS_UNIFORMITY, B, .n_samples = 7},
        {"published uniformity", PNB_LOSS_UNIFORMITY, B, .n_samples = 7, .is_published = true},
    };
    /* ProLIP's loss is ppcl, all inclusions and vib */
    pnb_loss_opts o = pnb_loss_opts_default();
    size_t whole = planned_bytes(*state, &o, &(memory_case){.b = B});
    print_message("prolip %.2f GB\n", (double)whole / 1e9);
    bool fits = whole < most_bytes;
    for (size_t i = 0; i < PNB_COUNT(cases); i++)
        fits = bytes_of(*state, &cases[i]) < most_bytes && fits;
    assert_true(fits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_no_loss_grows_with_the_pairs, ctx_setup, ctx_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
