/* ProLIP's Tables C.8 and C.9: zero-shot accuracy and uncertainty while the middle of pictures is
 * covered, and while they are attacked (PGD, Madry et al. 2018), beside noise of the same size.
 *
 * The model is ProLIP of the small recipe, trained on the pictures that are learned from; what is
 * classified, covered and attacked is classify's. On the built-in shapes those are single shapes of
 * nine forms and colours in the test, five of six of them; of a folder that somebody has the
 * pictures of its test, whose classes their folders name. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "commands/classify/classify.h"
#include "commands/reproduce/prolip_models.h"

enum { N_CLASSES = 9, N_SHARES = 5, N_ATTACKS = 4 };

static const pnb__figure figures[] = {{"top1", "zero-shot top 1", 100, 1},
                                      {"sigma", "avg \xCF\x83 of pictures", 1, 4},
                                      {"nll", "-log p(class)", 1, 3}};

/* X(share of the picture, key, label) */
#define COVERED(X)                                                                                 \
    X(0, "share_0", "nothing covered")                                                             \
    X(0.025, "share_25", "2.5% covered")                                                           \
    X(0.05, "share_50", "5% covered")                                                              \
    X(0.075, "share_75", "7.5% covered")                                                           \
    X(0.1, "share_100", "10% covered")
/* X(steps of the attack, key, label, key and label of the noise) */
#define ATTACKED(X)                                                                                \
    X(1, "pgd_1", "PGD, 1 step", "noise_1", "  noise of its size")                                 \
    X(5, "pgd_5", "PGD, 5 steps", "noise_5", "  noise of its size")                                \
    X(10, "pgd_10", "PGD, 10 steps", "noise_10", "  noise of its size")                            \
    X(40, "pgd_40", "PGD, 40 steps", "noise_40", "  noise of its size")
#define ROW(share, key, label) {key, label},
#define ROWS(steps, key, label, noise_key, noise_label) {key, label}, {noise_key, noise_label},
static const pnb__repro_row rows[] = {COVERED(ROW){"pgd_0", "pictures to be attacked"},
                                      ATTACKED(ROWS)};
#define SHARE(share, key, label) share,
static const double shares[N_SHARES] = {COVERED(SHARE)};
#define STEPS(steps, key, label, noise_key, noise_label) steps,
static const size_t steps[N_ATTACKS] = {ATTACKED(STEPS)};
static const char *const stages[] = {"prolip", NULL};

#define C8 "Table C.8, ImageNet"
#define C9 "Table C.9, 1,000 pictures of ImageNet"
static const pnb__paper_line lines[] = {
    {"share_0", C8, {74.6, 0.0148, NAN}, false, {0}},
    {"share_25", C8, {74.1, 0.0149, NAN}, false, {0}},
    {"share_50", C8, {73.8, 0.0152, NAN}, false, {0}},
    {"share_75", C8, {73.5, 0.0153, NAN}, false, {0}},
    {"share_100", C8, {73.2, 0.0153, NAN}, false, {0}},
    {"pgd_0", C9, {72.9, 0.0147, NAN}, false, {0}},
    {"pgd_1", C9, {20.0, 0.0149, NAN}, false, {0}},
    {"pgd_5", C9, {3.8, 0.0167, NAN}, false, {0}},
    {"pgd_10", C9, {2.6, 0.0175, NAN}, false, {0}},
    {"pgd_40", C9, {2.5, 0.0190, NAN}, false, {0}},
};

static const pnb__repro_claim claims[] = {
    {"share_0", "share_100", "top1", "covered pictures are classified worse"},
    {"share_100", "share_0", "sigma", "covered pictures are more uncertain"},
    {"noise_40", "pgd_40", "top1", "an attack costs more than noise of its size"},
    {"pgd_40", "pgd_0", "sigma", "attacked pictures are more uncertain"},
    {"pgd_40", "noise_40", "sigma", "and more so than by noise of that size"},
};

static const char *const differs[] = {
    "The paper: ViT-B/16 after 12.8B pairs, ImageNet and its 1,000 classes by 80 prompts. On the "
    "built-in shapes: nine classes of single shapes by their names alone, ProLIP of the small "
    "recipe.",
    "\xCF\x83 is the root of the mean variance over pictures and dimensions; the paper does not "
    "say "
    "which mean it prints.",
    "The rectangle has the picture's proportions and the mean colour of preprocessing.",
    "The paper names neither the size nor the step of its attack: each value moves by at most "
    "8/255, "
    "by 2/255 a step, up the cross-entropy of the picture's class. Its 1,000 pictures are drawn; "
    "here at most 1,000 stand evenly among those with a class.",
    NULL};

static void scenes(pnb_shapes_opts *opts)
{
    opts->test_share = 0.5; /* one scene of sixteen is of a class */
}

/* The nine classes are of the test, so that nothing is learned from what is measured. */
static pnb_status prepare(pnb__reproduction *run)
{
    char *train = run->images.train;
    pnb_status status;
    if (run->opts->data != NULL)
        return PNB_OK;
    run->images.train = NULL;
    PNB_TRY(pnb__copy_text(&run->images.train, run->images.test, &run->app->err));
    PNB_TRY(pnb__reproduce_subset(run, N_CLASSES));
    pnb__free(run->images.test);
    run->images.test = run->images.train;
    run->images.train = train;
    train = NULL;
done:
    pnb__free(train);
    return status;
}

static void put_point(const pnb__reproduction *run, const pnb__classify *c, const char *row,
                      const pnb__changed_point *p, json_t *found)
{
    double dim = (double)c->images.source.set->dim;
    pnb__reproduce_put(run, found, row, "top1", p->acc1.value);
    pnb__reproduce_put(run, found, row, "sigma", sqrt(p->u / dim));
    pnb__reproduce_put(run, found, row, "nll", p->loss);
}

/* Rows in the order of the table: covered, as they are, then each attack and its noise. */
static void put_points(const pnb__reproduction *run, const pnb__classify *c, json_t *found)
{
    const pnb__repro_row *row = rows;
    for (size_t i = 0; i < N_SHARES; i++)
        put_point(run, c, row++->key, &c->changed.occlusion[i], found);
    put_point(run, c, row++->key, &c->changed.attack[0], found);
    for (size_t i = 1; i <= N_ATTACKS; i++) {
        put_point(run, c, row++->key, &c->changed.attack[i], found);
        put_point(run, c, row++->key, &c->changed.control[i], found);
    }
}

/* As the command's options stand where none is given. */
static pnb__classify_opts options_of(const pnb__reproduction *run, const char *model)
{
    pnb__classify_opts o = pnb__classify_opts_default();
    o.model = model;
    o.images = run->images.test;
    o.templates = run->opts->data == NULL ? "none" : "openai";
    o.language = "en";
    o.changed.n_shares = N_SHARES;
    o.changed.n_steps = N_ATTACKS;
    memcpy(o.changed.share, shares, sizeof shares);
    memcpy(o.changed.steps, steps, sizeof steps);
    return o;
}

static pnb_status measure(pnb__reproduction *run, size_t stage, uint64_t seed, json_t *found)
{
    pnb_train_opts opts = pnb_train_opts_of(PNB_OBJECTIVE_PROLIP, false);
    pnb__classify classified = {0};
    pnb__classify_opts job;
    char *dir = NULL;
    pnb_status status;
    PNB_TRY(pnb__reproduce_train(run, stages[stage], seed, &opts, &dir));
    job = options_of(run, dir);
    PNB_TRY(pnb__classify_run(run->app, &job, &classified));
    put_points(run, &classified, found);
done:
    pnb__classify_reset(&classified);
    pnb__free(dir);
    return status;
}

const pnb__experiment pnb__experiment_prolip_occlusion = {
    .word = "prolip-occlusion",
    .paper = "ProLIP (Chun et al. 2025), Tables C.8 and C.9",
    .needs = PNB__REPRO_IMAGES,
    PNB__EXPERIMENT_TABLES,
    .step_s = 0.2,
    .stage_s = 60,
    .shapes = scenes,
    .prepare = prepare,
    .measure = measure};
