/* ProLIP's Table C.8: zero-shot accuracy and uncertainty while the middle of pictures is covered.
 *
 * The model is ProLIP of the small recipe, trained on the pictures that are learned from; what is
 * classified, and covered, is classify's. On the built-in shapes those are single shapes of nine
 * forms and colours in the test, five of six of them; of a folder that somebody has the pictures
 * of its test, whose classes their folders name. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "commands/classify/classify.h"
#include "commands/reproduce/prolip_models.h"

enum { N_CLASSES = 9, N_SHARES = 5 };

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
#define ROW(share, key, label) {key, label},
static const pnb__repro_row rows[] = {COVERED(ROW)};
#define SHARE(share, key, label) share,
static const double shares[N_SHARES] = {COVERED(SHARE)};
static const char *const stages[] = {"prolip", NULL};

#define C8 "Table C.8, ImageNet"
static const pnb__paper_line lines[] = {
    {"share_0", C8, {74.6, 0.0148, NAN}, false, {0}},
    {"share_25", C8, {74.1, 0.0149, NAN}, false, {0}},
    {"share_50", C8, {73.8, 0.0152, NAN}, false, {0}},
    {"share_75", C8, {73.5, 0.0153, NAN}, false, {0}},
    {"share_100", C8, {73.2, 0.0153, NAN}, false, {0}},
};

static const pnb__repro_claim claims[] = {
    {"share_0", "share_100", "top1", "covered pictures are classified worse"},
    {"share_100", "share_0", "sigma", "covered pictures are more uncertain"},
};

static const char *const differs[] = {
    "The paper: ViT-B/16 after 12.8B pairs, ImageNet and its 1,000 classes by 80 prompts. On the "
    "built-in shapes: nine classes of single shapes by their names alone, ProLIP of the small "
    "recipe.",
    "\xCF\x83 is the root of the mean variance over pictures and dimensions; the paper does not "
    "say "
    "which mean it prints.",
    "The rectangle has the picture's proportions and the mean colour of preprocessing.", NULL};

static void scenes(pnb_shapes_opts *opts)
{
    opts->test_share = 0.5; /* one scene of sixteen is of a class */
}

/* The nine classes are of the test, so that nothing is learned from what is measured. */
static pnb_status prepare(pnb__reproduction *run)
{
    char *train = run->pictures.train;
    pnb_status status;
    if (run->opts->data != NULL)
        return PNB_OK;
    run->pictures.train = NULL;
    PNB_TRY(pnb__copy_text(&run->pictures.train, run->pictures.test, &run->app->err));
    PNB_TRY(pnb__reproduce_subset(run, N_CLASSES));
    pnb__free(run->pictures.test);
    run->pictures.test = run->pictures.train;
    run->pictures.train = train;
    train = NULL;
done:
    pnb__free(train);
    return status;
}

static void put_points(const pnb__reproduction *run, const pnb__classify *c, json_t *found)
{
    double dim = (double)c->images.source.set->dim;
    for (size_t i = 0; i < N_SHARES; i++) {
        const pnb__changed_point *p = &c->changed.occlusion[i];
        pnb__reproduce_put(run, found, rows[i].key, "top1", p->acc1.value);
        pnb__reproduce_put(run, found, rows[i].key, "sigma", sqrt(p->u / dim));
        pnb__reproduce_put(run, found, rows[i].key, "nll", p->loss);
    }
}

/* As the command's options stand where none is given. */
static pnb__classify_opts options_of(const pnb__reproduction *run, const char *model)
{
    pnb__classify_opts o = {.model = model,
                            .images = run->pictures.test,
                            .source = {.split = "test"},
                            .templates = run->opts->data == NULL ? "none" : "openai",
                            .language = "en",
                            .measure = PNB__MEASURE_AUTO,
                            .match = {.a = NAN, .b = NAN},
                            .scale = NAN,
                            .n_bins = 15,
                            .filter_value = NAN,
                            .bprw_alpha = NAN,
                            .bprw_eps = NAN,
                            .none_threshold = NAN,
                            .none_reject = NAN,
                            .none_fpr = NAN,
                            .changed = {.n_shares = N_SHARES, .eps = NAN, .step = NAN}};
    memcpy(o.changed.share, shares, sizeof shares);
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
    .paper = "ProLIP (Chun et al. 2025), Table C.8",
    .needs = PNB__REPRO_PICTURES,
    PNB__EXPERIMENT_TABLES,
    .step_s = 0.2,
    .stage_s = 15,
    .shapes = scenes,
    .prepare = prepare,
    .measure = measure};
