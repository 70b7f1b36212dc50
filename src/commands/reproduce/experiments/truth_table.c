/* Every method's uncertainty against ambiguity that is known. No paper has this table: they show
 * that recall falls with uncertainty, not that the uncertainty is right.
 *
 * Of blurred, covered and grey scenes the entropy of what a picture leaves open is known, and of a
 * caption how many scenes it fits (docs/data.md). Models are trained end to end; a deterministic
 * twin of ProLIP's towers is trained without variances, and post-hoc methods learn from its frozen
 * rows. Each figure stands beside what its best control reaches on the same rows: the variances of
 * the twin's heads, which nothing trained, and what can be counted of pictures and captions. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "commands/calibrate/calibrate.h"
#include "commands/eval/uncertainty/known_entropy.h"
#include "commands/reproduce/adapters.h"
#include "commands/reproduce/experiments/truth_beside.h"
#include "commands/reproduce/pcme_models.h"
#include "io/json/json.h"

enum {
    MOST_SPECIFIC = 3, /* level of the captions that R@1 is of */
    N_DOUBTED = 2,     /* levels of those whose matches a picture may leave in doubt, from 0 */
    N_RESAMPLES = 200,
    TTDA_PASSES = 8
};
#define IMAGE_FIELD "ambiguity.entropy_bits"
#define SHAPES_FIELD PNB__TRUTH_SHAPES_FIELD
#define TEXT_FIELD "entropy_bits"
#define EXPECTED_FIELD "expected_bits"
#define WORDS "fewer words"

static const pnb__figure figures[] = {{"image_rho", "pictures \xCF\x81", 1, 3},
                                      {"image_control", "best control", 1, 3},
                                      {"image_held", "shapes held", 1, 3},
                                      {"text_rho", "captions \xCF\x81", 1, 3},
                                      {"text_control", "best control", 1, 3},
                                      {"text_expected", "expected \xCF\x81", 1, 3},
                                      {"text_held", "words held", 1, 3},
                                      {"i2t_r1", "i2t R@1", 100, 1},
                                      {"t2i_r1", "t2i R@1", 100, 1}};

typedef enum kind { TRAINED, TWIN, TWIN_MATCHES, TWIN_DOUBT, AUGMENTED, ADAPTED } kind;
typedef struct method {
    kind kind;
    bool of_matches; /* its uncertainty is the entropy of what a row matches */
    const char *row, *label;
    pnb_objective objective;           /* of what is trained */
    const char *name, *option, *value; /* of what is learned from the twin's rows */
} method;

/* Each row is a stage; the twin comes before what is learned from it. */
#define TRAIN(kind, row, label, objective)                                                         \
    {                                                                                              \
        kind, false, row, label, PNB_OBJECTIVE_##objective, 0, 0, 0                                \
    }
#define MATCH(kind, row, label, objective)                                                         \
    {                                                                                              \
        kind, true, row, label, PNB_OBJECTIVE_##objective, 0, 0, 0                                 \
    }
#define ADAPT(row, label, name, option, value)                                                     \
    {                                                                                              \
        ADAPTED, false, row, label " *", PNB_OBJECTIVE_SIGLIP, name, option, value                 \
    }
#define METHODS(X)                                                                                 \
    X(TRAIN, (TWIN, "deterministic", "deterministic twin", SIGLIP))                                \
    X(TRAIN, (TRAINED, "prolip", "ProLIP", PROLIP))                                                \
    X(TRAIN, (TRAINED, "pcmepp", "PCME++", PCMEPP))                                                \
    X(TRAIN, (TRAINED, "pcme", "PCME", PCME))                                                      \
    X(MATCH, (TWIN_MATCHES, "twin-matches", "entropy of matches, twin", SIGLIP))                   \
    X(MATCH, (TWIN_DOUBT, "twin-doubt", "doubt about matches, twin", SIGLIP))                      \
    X(MATCH, (TRAINED, "infonce-matches", "entropy of matches, InfoNCE", CLIP))                    \
    X(TRAIN, (AUGMENTED, "ttda", "TTDA *", SIGLIP))                                                \
    X(ADAPT, ("pfe", "PFE", "pfe", NULL, NULL))                                                    \
    X(ADAPT, ("adapted-pcme", "PCME", "pcme", NULL, NULL))                                         \
    X(ADAPT, ("adapted-pcmepp", "PCME++", "pcmepp", NULL, NULL))                                   \
    X(ADAPT, ("adapted-prolip", "ProLIP", "prolip", NULL, NULL))                                   \
    X(ADAPT, ("bayesvlm", "BayesVLM", "bayesvlm", NULL, NULL))                                     \
    X(ADAPT, ("probvlm", "ProbVLM", "probvlm", NULL, NULL))                                        \
    X(ADAPT, ("grove", "GroVE", "grove", NULL, NULL))                                              \
    X(ADAPT, ("asymvlm-vmf", "AsymVLM vMF", "asymvlm-vmf", NULL, NULL))                            \
    X(ADAPT, ("asymvlm-ps", "AsymVLM PS", "asymvlm-ps", NULL, NULL))                               \
    X(ADAPT, ("asymvlm-images", "AsymVLM vMF, pictures", "asymvlm-vmf", "ablation", "image-side")) \
    X(ADAPT, ("asymvlm-both", "AsymVLM vMF, both", "asymvlm-vmf", "ablation", "symmetric"))        \
    X(ADAPT, ("conformity", "conformity", "conformity", NULL, NULL))                               \
    X(ADAPT, ("whitened", "whitened", "whitened", NULL, NULL))
#define METHOD(macro, arguments) macro arguments,
static const method methods[] = {METHODS(METHOD)};

/* A control's name among the scores, which is the key of its row, and what people read. */
#define CONTROLS(X)                                                                                \
    X("untrained head", "control: untrained head")                                                 \
    X(SHAPES_FIELD, "control: number of shapes")                                                   \
    X("smaller file", "control: smaller file")                                                     \
    X("flatter picture", "control: flatter picture")                                               \
    X(WORDS, "control: fewer words")                                                               \
    X("common words", "control: common words")
#define TRAIN_ROW(kind, row, label, objective)                                                     \
    {                                                                                              \
        row, label                                                                                 \
    }
#define MATCH_ROW TRAIN_ROW
#define ADAPT_ROW(row, label, name, option, value)                                                 \
    {                                                                                              \
        row, label " *"                                                                            \
    }
#define METHOD_ROW(macro, arguments) macro##_ROW arguments,
#define CONTROL_ROW(name, label) {name, label},
static const pnb__repro_row rows[] = {METHODS(METHOD_ROW) CONTROLS(CONTROL_ROW)};
#define TRAIN_STAGE(kind, row, label, objective) row
#define MATCH_STAGE TRAIN_STAGE
#define ADAPT_STAGE(row, label, name, option, value) row
#define METHOD_STAGE(macro, arguments) macro##_STAGE arguments,
static const char *const stages[] = {METHODS(METHOD_STAGE) NULL};

/* No paper prints these figures: what is held against the papers is what their text says. */
static const pnb__repro_claim claims[] = {
    {"prolip", "untrained head", "image_rho", "ProLIP learns how uncertain a picture is"},
    {"prolip", "untrained head", "text_rho", "ProLIP learns how general a caption is"},
    {"prolip", "fewer words", "text_rho", "and that is more than the caption's length"},
    {"prolip", "pcmepp", "image_rho", "ProLIP knows more than PCME++"},
    {"pcmepp", "pcme", "image_rho", "PCME++ knows more than PCME"},
    {"prolip", "deterministic", "i2t_r1", "ProLIP retrieves no worse than a deterministic model"},
    {"prolip", "deterministic", "t2i_r1", "ProLIP retrieves no worse than a deterministic model"},
    {"asymvlm-vmf", "probvlm", "text_rho", "AsymVLM knows general captions better than ProbVLM"},
    {"asymvlm-vmf", "asymvlm-both", "text_rho", "uncertainty belongs to captions alone (AsymVLM)"},
    {"prolip", "twin-matches", "image_rho", "variances know more than a model without them"},
    {"prolip", "twin-matches", "text_rho", "variances know more than a model without them"},
    {"grove", "probvlm", "image_rho", "GroVE knows uncertain pictures better than ProbVLM"},
    {"grove", "probvlm", "text_rho", "GroVE knows uncertain captions better than ProbVLM"},
};

static const char *const differs[] = {
    "No paper measures this: they show that recall falls with uncertainty. \xCF\x81 is Spearman's "
    "correlation of uncertainty and known entropy, in bits: of a picture over the scenes that an "
    "observer could not tell from it, of a caption the log of the number of scenes it fits.",
    "* learns from the frozen rows of the deterministic twin: ProLIP's towers under SigLIP's loss. "
    "PCME and PCME++ without it are trained with towers of their own, so that their R@1 is not "
    "that of the loss alone.",
    "AsymVLM makes its densities of the twin's vectors with their lengths, as in its paper; other "
    "methods, and the side that it leaves alone, have rows of length 1.",
    "The best control is the highest \xCF\x81 of the controls on the same rows. The untrained head "
    "is "
    "the twin's: variances that no loss has touched.",
    "The entropy of matches is no paper's: that of a softmax of cosines over the test captions "
    "(pictures), at the model's own scale (`eval uncertainty --of-matches`). It needs no "
    "variances.",
    "Shapes held: \xCF\x81 on pictures where the number of their shapes is held fixed (partial "
    "correlation of ranks): a variance that says how much a picture tells counts its shapes. "
    "Expected: \xCF\x81 on captions against the number of scenes that they are expected to fit, "
    "were all colours drawn anew, since of a specific caption the number counted is chance; words "
    "held: that where the number of words is held fixed.",
    "The doubt about matches sums what is open of yes or no over the captions of one shape, by "
    "probabilities that `calibrate` learned from the twin's training pairs, which it has seen: on "
    "others it would be surer that it is not sure.",
    "About half of the pictures are clear, with an entropy of 0: an uncertainty without ties "
    "cannot reach a \xCF\x81 of 1; 0.92 is about the most.",
    "R@1 is of the most specific captions. Steps are those of every training, of methods on frozen "
    "rows too.",
    NULL};

/* ---- data ---- */

static pnb_status refuse(const pnb__reproduction *run, const char *what)
{
    return pnb__fail(&run->app->err, PNB_NOT_FOUND,
                     "--data %s: %s; `data shapes --blur 0.5 --occlude 0.3 --grey 0.3` writes what "
                     "truth-table reads",
                     run->opts->data, what);
}

/* Does the first test picture say how ambiguous it is? */
static pnb_status check(const pnb__reproduction *run)
{
    pnb_error *err = &run->app->err;
    pnb_dataset *set = NULL;
    pnb_sample sample = {0};
    json_t *record = NULL;
    pnb_status status;
    if (run->images.train_texts == NULL)
        return refuse(run, "has no train/captions.jsonl with truth/train.pairs");
    PNB_TRY(pnb_dataset_open(&set, run->images.test, NULL, err));
    PNB_TRY(pnb_dataset_get(set, 0, &sample, err));
    if (sample.json != NULL)
        PNB_TRY(pnb__json_try_bytes(&record, sample.json, strlen(sample.json), err));
    const json_t *known = json_object_get(record, "ambiguity");
    if (!json_is_number(json_object_get(known, "entropy_bits")) ||
        !json_is_number(json_object_get(known, "n_shapes")))
        status = refuse(run, "its pictures do not say how ambiguous they are");
done:
    json_decref(record);
    pnb_sample_reset(&sample);
    pnb_dataset_free(set);
    return status;
}

/* ---- the twin ---- */

/* Sets of a seed's twin: as it was trained, with the variances of heads that were not, and its
 * means alone. */
typedef struct twin {
    char *model;
    pnb__pair_paths untrained, test, train;
} twin;

static void twin_reset(twin *t)
{
    pnb__free(t->model);
    pnb__pair_paths_reset(&t->untrained);
    pnb__pair_paths_reset(&t->test);
    pnb__pair_paths_reset(&t->train);
}

/* Paths of sets that are there already. */
static pnb_status find_sets(pnb__reproduction *run, const char *name, uint64_t seed,
                            const char *truth, pnb__pair_paths *out)
{
    char *images = NULL, *texts = NULL, *copy = NULL;
    pnb_status status;
    PNB_TRY(pnb__reproduce_path(run, "sets", name, seed, ".images.safetensors", &images));
    PNB_TRY(pnb__reproduce_path(run, "sets", name, seed, ".texts.safetensors", &texts));
    if (pnb__path_is_file(images) && pnb__path_is_file(texts)) { /* texts are written last */
        PNB_TRY(pnb__copy_text(&copy, truth, &run->app->err));
        *out = (pnb__pair_paths){images, texts, copy};
        images = texts = NULL;
    }
done:
    pnb__free(images);
    pnb__free(texts);
    return status;
}

static pnb_status make_sets(pnb__reproduction *run, const char *stage, uint64_t seed,
                            const pnb__repro_part *part, const char *model, pnb__pair_paths *out)
{
    char *name = pnb__format("%s.%08x", stage, pnb__reproduce_program(run));
    pnb_status status = name != NULL ? find_sets(run, name, seed, part->truth, out)
                                     : pnb__fail_nomem(&run->app->err, strlen(stage));
    if (status == PNB_OK && out->images == NULL)
        status = pnb__reproduce_embed_part(run, part, name, seed, model, out);
    pnb__free(name);
    return status;
}

static pnb__repro_part part_of(const pnb__reproduction *run, bool is_train)
{
    const pnb__repro_images *p = &run->images;
    if (is_train)
        return (pnb__repro_part){
            .images = p->train, .texts = p->train_texts, .truth = p->train_truth};
    return (pnb__repro_part){.images = p->test, .texts = p->texts, .truth = p->truth};
}

/* Trains it, or finds what an earlier stage made. */
static pnb_status twin_open(pnb__reproduction *run, uint64_t seed, twin *t)
{
    pnb__repro_part test = part_of(run, false), train = part_of(run, true);
    pnb_train_opts opts = pnb_train_opts_of(PNB_OBJECTIVE_SIGLIP, false);
    pnb_status status;
    *t = (twin){.model = NULL};
    PNB_TRY(pnb__reproduce_train(run, methods[0].row, seed, &opts, &t->model));
    PNB_TRY(make_sets(run, "untrained", seed, &test, t->model, &t->untrained));
    test.as_points = train.as_points = true;
    PNB_TRY(make_sets(run, "frozen", seed, &test, t->model, &t->test));
    status = make_sets(run, "frozen-train", seed, &train, t->model, &t->train);
done:
    return status;
}

/* ---- what is kept ---- */

static json_t *interval_json(const pnb_interval *i)
{
    return json_pack("[o,o,o]", isfinite(i->value) ? json_real(i->value) : json_null(),
                     isfinite(i->low) ? json_real(i->low) : json_null(),
                     isfinite(i->high) ? json_real(i->high) : json_null());
}

/* Scores of a side in the order of its names; the first is the model's. */
static json_t *side_json(const pnb__known_found *side)
{
    json_t *scores = json_array();
    for (size_t k = 0; k < PNB__MAX_KNOWN_SCORES; k++)
        if (side->name[k] != NULL)
            json_array_append_new(
                scores,
                json_pack("{s:s, s:o, s:o}", "name", side->name[k], "rho",
                          interval_json(&side->score[k].figure[PNB_AGREEMENT_SPEARMAN]), "lead",
                          interval_json(&side->score[k].lead[PNB_AGREEMENT_SPEARMAN])));
    return scores;
}

static void put_controls(const pnb__reproduction *run, const pnb__known_found *side,
                         const char *figure, json_t *found)
{
    for (size_t k = 1; k < PNB__MAX_KNOWN_SCORES; k++)
        if (side->name[k] != NULL)
            pnb__reproduce_put(run, found, side->name[k], figure,
                               side->score[k].figure[PNB_AGREEMENT_SPEARMAN].value);
}

/* What the uncertainty knows beside one control that is held fixed. */
static void put_held(const pnb__reproduction *run, const method *m, const pnb__known_found *side,
                     const char *control, const char *figure, json_t *found)
{
    for (size_t k = 1; k < PNB__MAX_KNOWN_SCORES; k++)
        if (side->name[k] != NULL && strcmp(side->name[k], control) == 0)
            pnb__reproduce_put(run, found, m->row, figure, side->score[k].held.value);
}

/* Captions against the number of scenes that they are expected to fit. */
static void put_expected(const pnb__reproduction *run, const method *m, json_t *found,
                         const pnb__known_found *captions)
{
    if (m->kind == TWIN) {
        put_controls(run, captions, "text_expected", found);
        return;
    }
    pnb__reproduce_put(run, found, m->row, "text_expected",
                       captions->score[0].figure[PNB_AGREEMENT_SPEARMAN].value);
    put_held(run, m, captions, WORDS, "text_held", found);
}

static void put_known(const pnb__reproduction *run, const method *m, json_t *found,
                      const pnb__known_found sides[2])
{
    static const char *const rho[] = {"image_rho", "text_rho"};
    static const char *const best[] = {"image_control", "text_control"};
    for (size_t s = 0; s < 2; s++) {
        double most = -INFINITY;
        if (sides[s].n == 0)
            continue;
        for (size_t k = 1; k < PNB__MAX_KNOWN_SCORES; k++)
            if (sides[s].name[k] != NULL)
                most = fmax(most, sides[s].score[k].figure[PNB_AGREEMENT_SPEARMAN].value);
        if (m->kind == TWIN) {
            put_controls(run, &sides[s], rho[s], found);
            continue;
        }
        pnb__reproduce_put(run, found, m->row, rho[s],
                           sides[s].score[0].figure[PNB_AGREEMENT_SPEARMAN].value);
        pnb__reproduce_put(run, found, m->row, best[s], isfinite(most) ? most : (double)NAN);
    }
    if (m->kind != TWIN)
        put_held(run, m, &sides[0], SHAPES_FIELD, "image_held", found);
    json_object_set_new(found, "known",
                        json_pack("{s:o, s:o}", "pictures", side_json(&sides[0]), "captions",
                                  side_json(&sides[1])));
}

/* ---- measuring ---- */

/* calibration: [N_DOUBTED] of the pictures' doubt, captions are left out then; NULL: another
 * uncertainty. */
static pnb_status measure_known(pnb__reproduction *run, const method *m, const twin *t,
                                const pnb__pair_paths *sets, const char *const *calibration,
                                json_t *found)
{

    pnb__known_opts opts = {.images = sets->images,
                            .texts = sets->texts,
                            .control_images = t->untrained.images,
                            .control_texts = t->untrained.texts,
                            .truth = run->images.truth,
                            .read = run->images.read,
                            .image_field = IMAGE_FIELD,
                            .text_field = TEXT_FIELD,
                            .control_field = SHAPES_FIELD,
                            .image_data = run->images.test,
                            .n_resamples = N_RESAMPLES,
                            .matches = {.is_asked = m->of_matches,
                                        .calibration = calibration,
                                        .n_calibrations = calibration != NULL ? N_DOUBTED : 0}};
    pnb__known_found sides[2];
    pnb_status status;
    PNB_TRY(pnb__known_measure(run->app, &opts, sides));
    if (calibration != NULL)
        sides[1] = (pnb__known_found){.n = 0};
    put_known(run, m, found, sides);
    if (calibration != NULL)
        return status;
    opts.image_field = opts.control_field = NULL;
    opts.text_field = EXPECTED_FIELD;
    opts.n_resamples = 0;
    PNB_TRY(pnb__known_measure(run->app, &opts, sides));
    put_expected(run, m, found, &sides[1]);
done:
    return status;
}

static pnb_status rank(pnb__reproduction *run, const method *m, const pnb__pair_paths *sets,
                       pnb_measure measure, json_t *found)
{
    pnb__retrieval_opts opts = pnb__retrieval_opts_default();
    pnb__retrieval ranked = {0};
    opts.images = sets->images;
    opts.texts = sets->texts;
    opts.truth = run->images.truth;
    opts.read = run->images.read;
    opts.level = MOST_SPECIFIC;
    opts.measure = measure;
    pnb_status status = pnb__retrieval_run(run->app, &opts, &ranked);
    if (status == PNB_OK) {
        pnb__reproduce_put(run, found, m->row, "i2t_r1", ranked.figures.forward.recall[0]);
        pnb__reproduce_put(run, found, m->row, "t2i_r1", ranked.figures.backward.recall[0]);
    }
    pnb__retrieval_reset(&ranked);
    return status;
}

static pnb_status measure_sets(pnb__reproduction *run, const method *m, const twin *t,
                               const pnb__pair_paths *sets, pnb_measure measure, json_t *found)
{
    pnb_status status = measure_known(run, m, t, sets, NULL, found);
    return status == PNB_OK ? rank(run, m, sets, measure, found) : status;
}

/* A model of its own. */
static pnb_status measure_trained(pnb__reproduction *run, const method *m, uint64_t seed,
                                  const twin *t, json_t *found)
{
    pnb_train_opts opts = pnb_train_opts_of(m->objective, false);
    pnb__pair_paths sets = {NULL, NULL, NULL};
    char *model = NULL;
    pnb_status status;
    PNB_TRY(pnb__reproduce_train(run, m->row, seed, &opts, &model));
    PNB_TRY(pnb__reproduce_embed(run, m->row, seed, model, &sets));
    status =
        measure_sets(run, m, t, &sets, m->of_matches ? PNB_MEASURE_MEAN : PNB__MEASURE_AUTO, found);
done:
    pnb__pair_paths_reset(&sets);
    pnb__free(model);
    return status;
}

/* The twin's rows of augmented pictures and captions. */
static pnb_status measure_augmented(pnb__reproduction *run, const method *m, uint64_t seed,
                                    const twin *t, json_t *found)
{
    const pnb__repro_part part = {.images = run->images.test,
                                  .texts = run->images.texts,
                                  .truth = run->images.truth,
                                  .ttda = TTDA_PASSES};
    pnb__pair_paths sets = {NULL, NULL, NULL};
    pnb_status status = pnb__reproduce_embed_part(run, &part, m->row, seed, t->model, &sets);
    if (status == PNB_OK)
        status = measure_sets(run, m, t, &sets, PNB_MEASURE_MEAN, found);
    pnb__pair_paths_reset(&sets);
    return status;
}

/* AsymVLM makes a density of a vector with its length, and holds it against points of length 1:
 * whether the method reads the lengths of a side. */
static bool reads_lengths(const method *m, bool of_texts)
{
    const char *apart = of_texts ? "image-side" : "text-side"; /* the density is the other's */
    const char *side = m->value != NULL ? m->value : "text-side";
    return pnb__starts_with(m->name, "asymvlm") && strcmp(side, apart) != 0;
}

/* Rows of the twin as the method reads them, borrowed from the twin and from `raw`, which is made
 * where it is wanted. */
static pnb_status take_rows(pnb__reproduction *run, const method *m, uint64_t seed, const twin *t,
                            bool is_train, pnb__pair_paths *raw, pnb__pair_paths *out)
{
    const pnb__pair_paths *unit = is_train ? &t->train : &t->test;
    bool images = reads_lengths(m, false), texts = reads_lengths(m, true);
    pnb__repro_part part = part_of(run, is_train);
    pnb_status status = PNB_OK;
    part.as_points = part.raw = true;
    if (images || texts)
        status = make_sets(run, is_train ? "raw-train" : "raw", seed, &part, t->model, raw);
    *out = (pnb__pair_paths){images ? raw->images : unit->images, texts ? raw->texts : unit->texts,
                             unit->truth};
    return status;
}

/* The twin's sets stand in the run's place while a method learns from them. */
static pnb_status measure_adapted(pnb__reproduction *run, const method *m, uint64_t seed, twin *t,
                                  json_t *found)
{
    const pnb__adapted_opts opts = {
        .method = m->name, .row = m->row, .option = m->option, .value = m->value, .seed = seed};
    pnb__adapt_comparison owner = {.entry = NULL};
    pnb__pair_paths raw_train = {NULL, NULL, NULL}, raw_test = {NULL, NULL, NULL}, train, test;
    pnb_status status;
    PNB_TRY(take_rows(run, m, seed, t, true, &raw_train, &train));
    PNB_TRY(take_rows(run, m, seed, t, false, &raw_test, &test));
    run->train = train;
    run->test = test;
    status = pnb__adapted_make(run, &opts, &owner);
    run->train = run->test = (pnb__pair_paths){NULL, NULL, NULL};
    pnb__adapted_keep_failure(run, &owner, found);
    if (status == PNB_OK && owner.entry->failed == NULL) {
        const pnb__pair_paths sets = {owner.entry->images, owner.entry->texts, NULL};
        status = measure_sets(run, m, t, &sets,
                              pnb__adapted_measure_of(owner.entry, PNB__MEASURE_AUTO), found);
    }
done:
    pnb__pair_paths_reset(&raw_train);
    pnb__pair_paths_reset(&raw_test);
    pnb__compare_entries_reset(&owner);
    return status;
}

static pnb_status measure_twin(pnb__reproduction *run, const method *m, const twin *t,
                               json_t *found)
{
    return measure_sets(run, m, t, &t->test, PNB_MEASURE_MEAN, found);
}

/* p(match) of the twin's training pairs, of pictures that search the captions of a level. */
static pnb_status calibrate(pnb__reproduction *run, const twin *t, int level, const char *out)
{
    pnb__calibrate_opts opts = {.sets = pnb__retrieval_opts_default(),
                                .gallery_is_texts = true,
                                .out = out,
                                .match = pnb_match_opts_default()};
    opts.sets.images = t->train.images;
    opts.sets.texts = t->train.texts;
    opts.sets.truth = t->train.truth;
    opts.sets.read = run->images.read;
    opts.sets.level = level;
    opts.sets.measure = PNB_MEASURE_MEAN;
    return pnb__calibrate_run(run->app, &opts, NULL);
}

static pnb_status measure_doubt(pnb__reproduction *run, const method *m, uint64_t seed,
                                const twin *t, json_t *found)
{
    static const char *const endings[N_DOUBTED] = {".level0.json", ".level1.json"};
    char *path[N_DOUBTED] = {NULL};
    pnb_status status = PNB_OK;
    for (int l = 0; l < N_DOUBTED; l++) {
        PNB_TRY(pnb__reproduce_path(run, "sets", m->row, seed, endings[l], &path[l]));
        PNB_TRY(calibrate(run, t, l, path[l]));
    }
    PNB_TRY(measure_known(run, m, t, &t->test, (const char *const[]){path[0], path[1]}, found));
    status = rank(run, m, &t->test, PNB_MEASURE_MEAN, found);
done:
    for (int l = 0; l < N_DOUBTED; l++)
        pnb__free(path[l]);
    return status;
}

static pnb_status measure(pnb__reproduction *run, size_t stage, uint64_t seed, json_t *found)
{
    const method *m = &methods[stage];
    twin t;
    pnb_status status = twin_open(run, seed, &t);
    if (status == PNB_OK && (m->kind == TWIN || m->kind == TWIN_MATCHES))
        status = measure_twin(run, m, &t, found);
    else if (status == PNB_OK && m->kind == TWIN_DOUBT)
        status = measure_doubt(run, m, seed, &t, found);
    else if (status == PNB_OK && m->kind == TRAINED)
        status = measure_trained(run, m, seed, &t, found);
    else if (status == PNB_OK && m->kind == AUGMENTED)
        status = measure_augmented(run, m, seed, &t, found);
    else if (status == PNB_OK)
        status = measure_adapted(run, m, seed, &t, found);
    twin_reset(&t);
    return status;
}

/* ---- the whole ---- */

const pnb__experiment pnb__experiment_truth_table = {.word = "truth-table",
                                                     .paper = "Uncertainty and known ambiguity, "
                                                              "all methods",
                                                     .needs = PNB__REPRO_IMAGES,
                                                     .figures = figures,
                                                     .n_figures = PNB_COUNT(figures),
                                                     .rows = rows,
                                                     .n_rows = PNB_COUNT(rows),
                                                     .claims = claims,
                                                     .n_claims = PNB_COUNT(claims),
                                                     .stages = stages,
                                                     .differs = differs,
                                                     .step_s = 0.05,
                                                     .stage_s = 12,
                                                     .shapes = pnb__pcme_scenes,
                                                     .check = check,
                                                     .measure = measure,
                                                     .put = pnb__truth_beside_put,
                                                     .draw = pnb__truth_beside_draw};
