/* penumbra eval: the family of commands, and what learned uncertainty shows (eval uncertainty).
 *
 * Options only: the figures are put together in src/commands/report/uncertainty_report.c and, of
 * known uncertainty, in uncertainty/known_entropy.c. eval
 * retrieval and eval compare are in eval_retrieval.c. */
#include "commands/commands.h"
#include "commands/common/option_rows.h"
#include "commands/eval/uncertainty/known_entropy.h"
#include "commands/report/uncertainty_report.h"
#include "program/result_end.h"

/* ---- uncertainty ---- */

struct uncertainty_args {
    pnb__uncertainty_report_sets model, control;
    pnb__known_opts known;
    pnb__text_list calibrations, levels; /* of known.matches */
};

#define AT(field) PNB__FIELD(struct uncertainty_args, field)
static const pnb__option uncertainty_options[] = {
    PNB__ROW_FILE("texts", AT(model.texts), "SET", "Embedding set of the captions, with levels",
                  .required = true),
    PNB__ROW_FILE("images", AT(model.images), "SET", "Embedding set of the pictures"),
    PNB__ROW_FILE("truth", AT(model.truth), "PAIRS", "True pairs of picture and caption"),
    PNB__CLAIMS_MASKED_ROWS(AT(model.masked_images), AT(model.masked_texts)),
    PNB__ROW_TEXT(
        "entropy", AT(known.image_field), "FIELD",
        "Field of the pictures' ids file with their known ambiguity: "
        "ambiguity.entropy_bits of `data shapes --blur`, or dose; a.b is b inside a. Adds "
        "known_entropy; with --truth captions too, by log2 of the number of pictures "
        "that a caption fits",
        .group = "Against what is known"),
    PNB__ROW_TEXT("text-entropy", AT(known.text_field), "FIELD",
                  "The same of the captions, in place of what --truth tells: entropy_bits of "
                  "captions.jsonl, which counts the pictures of all splits, or expected_bits, the "
                  "same without the chance of one draw (data shapes)"),
    PNB__ROW_FILE("label-counts", AT(known.label_counts), "FILE",
                  "In place of --entropy the entropy of what people called each picture: counts or "
                  "probabilities, a column for each label, as CIFAR-10H has them; .npy in row "
                  "order, or .csv with the picture's id first"),
    PNB__ROW_TEXT("class-key", AT(known.class_key), "FIELD",
                  "Field of the pictures' ids file (class, label): adds the R-AUROC, whether "
                  "uncertainty foretells that the nearest other picture is of another class"),
    PNB__ROW_FILE("pictures", AT(known.image_data), "DATA",
                  "Data set that the pictures are read from, for the controls of file size and "
                  "gradient; by default where their rows say they came from"),
    PNB__ROW_FLAG("of-matches", AT(known.matches.is_asked),
                  "Look at the entropy of what a row matches, a softmax over the rows of the other "
                  "set, in place of its own variance: models without variances have it too"),
    PNB__ROW_REAL("scale", AT(known.matches.scale), "A",
                  "Scale of the cosines in that softmax; without it the model's own",
                  PNB__RANGE(1e-6, 1e9)),
    PNB__ROW_FILES(
        "calibration", AT(calibrations), "FILE...",
        "With --of-matches: the doubt about matches in place of that entropy, the sum "
        "over the other set of what is open of yes or no, by the probability of each pair "
        "as `penumbra calibrate` learned it from true pairs of other data. With --gallery "
        "texts there it is the pictures' doubt, with --gallery images the captions'. One of "
        "calibrate --level is of captions of that level alone; of several levels the "
        "doubts add up"),
    PNB__ROW_FLAG("trust-calibration", AT(known.matches.trust),
                  "Take a calibration whose origin, or that of a set, is unknown"),
    PNB__ROW_LIST("match-level", AT(levels), "N...",
                  "With --of-matches, without --calibration: the softmax is over captions of these "
                  "levels alone, 0 to 7"),
    PNB__ROW_TEXT("control-field", AT(known.control_field), "FIELD",
                  "Another control: a number of the pictures' ids file, as "
                  "ambiguity.n_shapes; give one by which ambiguity should rise"),
    PNB__ROW_TEXT("text-control-field", AT(known.text_control_field), "FIELD",
                  "Another control of the captions: with --text-entropy entropy_bits "
                  "expected_bits says how far a reader gets who understands every word"),
    PNB__ROW_INT("bootstrap", AT(known.n_resamples), "N",
                 "Resamples of the clusters for 95% intervals; 0 leaves the intervals out",
                 PNB__RANGE(0, 1000000), .fallback = "1000"),
    PNB__CLUSTER_ROW(AT(known.cluster)),
    PNB__CLAIMS_CONTROL_ROWS(AT(control.images), AT(control.texts), AT(control.masked_images),
                             AT(control.masked_texts)),
};
#undef AT

/* Files or levels. */
static pnb_status read_matching(pnb__app *app, const struct uncertainty_args *a,
                                pnb__known_matching *m)
{
    m->calibration = a->calibrations.items;
    m->n_calibrations = a->calibrations.n;
    m->n_levels = a->levels.n;
    if (!m->is_asked && (m->n_calibrations > 0 || m->n_levels > 0))
        return pnb__usage(app, "--calibration and --match-level go with --of-matches");
    if (m->trust && m->n_calibrations == 0)
        return pnb__usage(app, "--trust-calibration goes with --calibration");
    if (m->n_calibrations > 0 && m->n_levels > 0)
        return pnb__usage(app, "--match-level goes without --calibration, which tells its level");
    if (m->n_levels > PNB__MAX_MATCH_LEVELS)
        return pnb__usage(app, "--match-level takes at most %d levels", PNB__MAX_MATCH_LEVELS);
    for (size_t k = 0; k < m->n_levels; k++) {
        const char *word = a->levels.items[k];
        if (word[0] < '0' || word[0] > '7' || word[1] != '\0')
            return pnb__usage(app, "--match-level '%.40s': levels are 0 to 7", word);
        m->level[k] = word[0] - '0';
        for (size_t before = 0; before < k; before++)
            if (m->level[before] == m->level[k])
                return pnb__usage(app, "--match-level has %d twice", m->level[k]);
    }
    return PNB_OK;
}

/* Fields that were asked for, with the sets they need; the object comes first in the result. */
static pnb_status run_known(pnb__app *app, const struct uncertainty_args *a, pnb__result *r)
{
    pnb__known_opts known = a->known;
    bool of_images = known.image_field != NULL || known.label_counts != NULL;
    if (known.image_field != NULL && known.label_counts != NULL)
        return pnb__usage(app, "--entropy or --label-counts, not both");
    if ((of_images || known.class_key != NULL) && a->model.images == NULL)
        return pnb__usage(app, "--entropy, --label-counts and --class-key need --images");
    if (known.image_data != NULL && !of_images && known.class_key == NULL)
        return pnb__usage(app, "--pictures goes with --entropy, --label-counts or --class-key");
    if (known.matches.is_asked && a->model.images == NULL)
        return pnb__usage(app, "--of-matches needs --images");
    if (known.matches.scale > 0 && !known.matches.is_asked)
        return pnb__usage(app, "--scale goes with --of-matches");
    pnb_status status = read_matching(app, a, &known.matches);
    if (status != PNB_OK)
        return status;
    if (known.matches.is_asked && !of_images && known.class_key == NULL && known.text_field == NULL)
        return pnb__usage(app,
                          "--of-matches goes with --entropy, --text-entropy, --label-counts or "
                          "--class-key");
    if (known.control_field != NULL && !of_images && known.class_key == NULL)
        return pnb__usage(app,
                          "--control-field goes with --entropy, --label-counts or --class-key");
    if (known.text_control_field != NULL && !of_images && known.text_field == NULL)
        return pnb__usage(app, "--text-control-field goes with --entropy or --text-entropy");
    if (!of_images && known.class_key == NULL && known.text_field == NULL)
        return known.cluster != NULL
                   ? pnb__usage(app, "--cluster goes with --entropy, --text-entropy, "
                                     "--label-counts or --class-key")
                   : PNB_OK;
    known.images = a->model.images;
    known.texts = a->model.texts;
    known.truth = a->model.truth;
    known.read = a->model.read;
    known.control_images = a->control.images;
    known.control_texts = a->control.texts;
    return pnb__known_entropy_run(app, &known, r);
}

static pnb_status run_uncertainty(pnb__app *app, void *args, pnb__result *r)
{
    const struct uncertainty_args *a = args;
    pnb__uncertainty_report_sets control_sets = a->control;
    pnb__uncertainty_report claims, control;
    bool has_control = control_sets.texts != NULL;
    control_sets.truth = control_sets.images != NULL ? a->model.truth : NULL;
    if (!has_control && (control_sets.images != NULL || control_sets.masked_images != NULL ||
                         control_sets.masked_texts != NULL))
        return pnb__usage(app, "a control needs --control-texts");
    pnb_status status = run_known(app, a, r);
    if (status == PNB_OK)
        status = pnb__uncertainty_report_measure(app, &a->model, &claims);
    if (status == PNB_OK && has_control)
        status = pnb__uncertainty_report_measure(app, &control_sets, &control);
    if (status == PNB_OK)
        pnb__uncertainty_report_show(&claims, has_control ? &control : NULL, r);
    return status;
}

static const pnb__command uncertainty = {
    .name = "uncertainty",
    .summary = "measure what the learned uncertainty shows, beside a control",
    .about =
        "Mean uncertainty by caption level and the order of levels, with --truth how likely the "
        "captions of a level find their pictures (the score of true pairs by the measure of "
        "the sets), whether masked copies "
        "are more uncertain than their originals and include them. What has no set is left "
        "out. The control is the same measurement on a model whose log-variance head was "
        "never trained: the difference is what training taught.\n\n"
        "With --entropy the uncertainty of each row stands against what is known of it: "
        "Spearman, Kendall's tau-b and the AUROC for rows known to be above the median, of all "
        "rows and by level, with 95% intervals over clusters. The same figures of controls stand "
        "beside them: the untrained head, few and common words, small files and flat pictures. An "
        "uncertainty that does not lead them knows nothing that counting would not. --class-key "
        "asks the same of errors: the "
        "R-AUROC of the URL benchmark, with the accuracy left as the most uncertain are rejected.",
    .examples = "penumbra eval uncertainty --texts texts.safetensors --images images.safetensors "
                "--truth shapes/truth/test.pairs --masked-texts masked.safetensors\n"
                "penumbra eval uncertainty --texts texts.safetensors --images images.safetensors "
                "--truth foggy/truth/test.pairs --entropy ambiguity.entropy_bits",
    PNB__RUNS(uncertainty_options, struct uncertainty_args, run_uncertainty)};

static const pnb__command *const subs[] = {&pnb__cmd_eval_retrieval,
                                           &pnb__cmd_eval_compare,
                                           &pnb__cmd_eval_measures,
                                           &uncertainty,
                                           &pnb__cmd_eval_noise,
                                           &pnb__cmd_eval_shift,
                                           &pnb__cmd_eval_vqa,
                                           &pnb__cmd_eval_suite,
                                           NULL};
const pnb__command pnb__cmd_eval = {
    .name = "eval", .summary = "measure retrieval and uncertainty of embedding sets", .subs = subs};
