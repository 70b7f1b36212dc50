/* Shares of an optimiser: three processes that keep a third of the state each make the updates of
 * one that keeps all, and save its file, to the bit. */
#include "tests/peers/together.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "train/optim/optim.h"

enum { PARAMS = 4, STEPS = 3 };

static pnb_ctx *ctx;
static char folder[] = "/tmp/pnb-share-XXXXXX";

/* Rows, a vector, one number, and one that no share's edge falls on. */
static const size_t shapes[PARAMS][2] = {{7, 5}, {11, 0}, {1, 0}, {30, 20}};

typedef struct world {
    pnb__param params[PARAMS], *list[PARAMS];
    float data[PARAMS][600], grad[PARAMS][600];
    pnb__optim *optim;
} world;

static void fill(world *w)
{
    static const char *const names[PARAMS] = {"a.weight", "b.weight", "logit_scale", "c.weight"};
    for (size_t i = 0; i < PARAMS; i++) {
        size_t n = shapes[i][0] * (shapes[i][1] > 0 ? shapes[i][1] : 1);
        w->params[i] = (pnb__param){.name = names[i],
                                    .n_dims = shapes[i][1] > 0 ? 2 : 1,
                                    .shape = {shapes[i][0], shapes[i][1]},
                                    .n = n,
                                    .data = w->data[i],
                                    .grad = w->grad[i],
                                    .trainable = true};
        w->list[i] = &w->params[i];
        for (size_t j = 0; j < n; j++)
            w->data[i][j] = (float)((i * 31 + j * 17) % 23) * 0.1F - 1;
    }
}

static void set_gradients(world *w, int step)
{
    for (size_t i = 0; i < PARAMS; i++)
        for (size_t j = 0; j < w->params[i].n; j++)
            w->grad[i][j] = (float)((i * 7 + j * 13 + (size_t)step * 5) % 19) * 0.01F - 0.09F;
}

static pnb_status run(world *w, pnb_optim_kind kind, pnb_peers *r, const char *load,
                      const char *save)
{
    const pnb__optim_share share = {pnb_peers_rank(r), pnb_peers_count(r)};
    pnb_optim_opts opts = pnb_optim_opts_default();
    pnb_status status;
    opts.kind = kind;
    fill(w);
    PNB_TRY(
        pnb__optim_create_share(&w->optim, ctx, PNB__F32, w->list, PARAMS, &opts, &share, NULL));
    if (load != NULL)
        PNB_TRY(pnb__optim_load(w->optim, load, NULL));
    for (int step = 0; step < STEPS; step++) {
        set_gradients(w, step);
        pnb__optim_step(w->optim, 0.01, 0.5);
        PNB_TRY(pnb__optim_spread(w->optim, r, NULL));
    }
    PNB_TRY(pnb__optim_collect(w->optim, r, NULL));
    if (share.rank == 0)
        PNB_TRY(pnb__optim_save(w->optim, save, NULL));
    pnb__optim_drop(w->optim);
done:
    pnb__optim_free(w->optim);
    return status;
}

static bool same_file(const char *a, const char *b)
{
    char *x = NULL, *y = NULL;
    size_t n = 0, m = 0;
    bool same = pnb__read_file(a, 1 << 20, &x, &n, NULL) == PNB_OK &&
                pnb__read_file(b, 1 << 20, &y, &m, NULL) == PNB_OK && n == m &&
                memcmp(x, y, n) == 0;
    pnb__free(x);
    pnb__free(y);
    return same;
}

/* Twice: from nothing, and from the file that one process wrote. */
static int share_steps(pnb_peers *r)
{
    char alone[100], shared[100], again[100], both[100];
    snprintf(alone, sizeof alone, "%s/alone", folder);
    snprintf(shared, sizeof shared, "%s/shared", folder);
    snprintf(again, sizeof again, "%s/again", folder);
    snprintf(both, sizeof both, "%s/both", folder);
    for (int kind = 0; kind < PNB_N_OPTIM_KINDS; kind++)
        for (int loads = 0; loads < 2; loads++) {
            static world one, ours;
            one = ours = (world){0};
            bool writes = pnb_peers_rank(r) == 0;
            if (writes && run(&one, (pnb_optim_kind)kind, NULL, loads ? alone : NULL,
                              loads ? again : alone) != PNB_OK)
                return 1;
            if (pnb_peers_agree(r, PNB_OK, NULL) != PNB_OK ||
                run(&ours, (pnb_optim_kind)kind, r, loads ? alone : NULL, loads ? both : shared) !=
                    PNB_OK)
                return 2;
            if (writes && memcmp(one.data, ours.data, sizeof one.data) != 0)
                return 3;
            if (writes && !same_file(loads ? again : alone, loads ? both : shared))
                return 4;
        }
    return 0;
}

static void test_shares(void **state)
{
    (void)state;
    play_together(3, 20, share_steps, NULL);
    play_together(7, 20, share_steps, NULL); /* more shares than parameters */
}

/* Each share is a third of the numbers, but where whole rows are looked at. */
static void test_sizes(void **state)
{
    static world w;
    pnb_optim_opts opts = pnb_optim_opts_default();
    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        size_t total = 0;
        opts.kind = whole ? PNB_OPTIM_ADAMP : PNB_OPTIM_ADAMW;
        for (size_t rank = 0; rank < 3; rank++) {
            const pnb__optim_share share = {rank, 3};
            size_t ours = 0;
            fill(&w);
            ASSERT_OK(pnb__optim_create_share(&w.optim, ctx, PNB__F32, w.list, PARAMS, &opts,
                                              &share, &err));
            for (size_t i = 0; i < w.optim->n_slots; i++) {
                const pnb__optim_slot *s = &w.optim->slots[i];
                ours += s->n;
                assert_true(!whole || s->n == 0 || s->n == s->param->n);
            }
            assert_true(whole || ours == 647 / 3 || ours == 647 / 3 + 1);
            total += ours;
            pnb__optim_free(w.optim);
        }
        assert_int_equal(total, 7 * 5 + 11 + 1 + 30 * 20);
    }
}

int main(void)
{
    const pnb_ctx_opts opts = {.n_threads = 1};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_sizes),
    };
    if (mkdtemp(folder) == NULL || pnb_ctx_create(&ctx, &opts, NULL) != PNB_OK)
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    const char *const names[] = {"alone", "shared", "again", "both"};
    for (size_t i = 0; i < PNB_COUNT(names); i++) {
        char path[100];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        remove(path);
    }
    rmdir(folder);
    pnb_ctx_free(ctx);
    return failed;
}
