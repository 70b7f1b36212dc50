/* penumbra classify: pictures to classes by the names of the classes.
 *
 * Options and which of them go together; the work is in src/commands/classify/. */
#include <math.h>
#include <string.h>

#include "commands/classify/classify.h"
#include "commands/commands.h"
#include "commands/common/option_rows.h"
#include "prob/choices.h"
#include "program/result_end.h"
#include "sets/settle.h"

#define AT(field) PNB__FIELD(pnb__classify_opts, field)
static const pnb__option options[] = {
    PNB__ROW_FILES(
        "images", AT(image_words), "WHAT...",
        "Pictures: files, globs, folders, or - (one path a line); an embedding set, a folder "
        "of class folders, CLIP_benchmark shards or the folder above train/ and test/, a csv "
        "with a label column, or CIFAR-10/100, STL-10 or MNIST binaries (the file, or their "
        "folder)",
        .required = true),
    PNB__ROW_FILE("model", AT(model), "DIR",
                  "Model directory; not needed where pictures and prompts are embedding sets",
                  .letter = 'm'),
    PNB__MODEL_PARTS_ROWS(AT(tokenizer), AT(preprocess)),
    PNB__PRECISION_ROW(AT(precision)),
    PNB__EXIF_ROW(AT(source.exif)),
    PNB__ROW_TEXT("split", AT(source.split), "NAME", "Split of a data set that has several",
                  .fallback = "test"),
    PNB__ROW_FILE(
        "labels", AT(labels), "FILE",
        "Classes of the pictures: id, tab, name or number on each line; by default what the "
        "pictures carry"),
    PNB__IMAGE_CLUSTER_ROW(AT(cluster)),
    PNB__ROW_FILE(
        "groups", AT(groups), "FILE",
        "Groups of the pictures (regions, incomes): id, tab, group on each line; accuracy "
        "of each group and of the worst"),
    PNB__ROW_TEXT("group-key", AT(group_key), "FIELD",
                  "The same from a field of the pictures' ids file"),
    PNB__ROW_TEXT("csv-img-key", AT(source.csv_img_key), "COLUMN",
                  "Column of picture paths in a csv or tsv file", .fallback = "filepath"),
    PNB__ROW_TEXT("csv-label-key", AT(source.csv_label_key), "COLUMN",
                  "Column of classes in a csv or tsv file; label or class by default"),
    PNB__ROW_FILE(
        "classnames", AT(classnames), "FILE|A,B,C",
        "Names of the classes: a text file (one a line), a .json list or object of lists by "
        "--dataset, or the names themselves; by default those of the pictures",
        .group = "Classes"),
    PNB__ROW_FILE(
        "templates", AT(templates), "FILE|openai|simple|none",
        "Prompts around the names: CLIP's 80 or 7, the name alone, a text file (one a line) "
        "or .json list with {} or {c} for the name, or a .json object of prompts for each "
        "class (CuPL) or for each --dataset; by default zeroshot_classification_templates.txt "
        "beside the pictures, "
        "else openai"),
    PNB__ROW_FILE(
        "prompts", AT(prompts), "SET",
        "Embedding set of prompts that name their classes (--save-prompts), in place of names "
        "and templates"),
    PNB__ROW_LIST("load-clfs", AT(load_clfs), "SET...",
                  "Classifiers that --save-clf wrote; several of the same classes are averaged"),
    PNB__SETS_MEASURE_ROW(AT(measure)),
    PNB__MATCH_ROWS(AT(match.n_samples), AT(match.a), AT(match.b)),
    PNB__ROW_CHOICE(
        "predict", AT(prediction), "HOW", PNB__CHOICES(PNB_PREDICTION_LIST(PNB__CHOICE_OF)),
        "What variances do to probabilities: nothing but what the measure makes of them, or, "
        "by cosines of their own mean and variance (BayesVLM), logits made smaller where they "
        "are uncertain, or the mean over draws of them",
        .names = PNB_NAMES(PNB_PREDICTION_LIST), .fallback = "plain"),
    PNB__ROW_INT("draws", AT(n_draws), "N", "Draws of --predict sampling; 400 by default",
                 PNB__RANGE(1, 100000)),
    PNB__ROW_REAL("scale", AT(scale), "A",
                  "Probabilities are softmax(A score); by default the fitted scaling's, else the "
                  "model's, else 100",
                  PNB__RANGE(1e-6, 1e9)),
    PNB__ROW_INT("bins", AT(n_bins), "N", "Bins of the calibration error", PNB__RANGE(1, 256),
                 .fallback = "15"),
    PNB__ROW_CHOICE(
        "prompt-filter", AT(filter), "NAME", PNB__CHOICES(PNB_PROMPT_FILTER_LIST(PNB__CHOICE_OF)),
        "Which prompts count, by their uncertainty u: u <= mean + VALUE standard deviations "
        "of the class, the VALUE most certain of each class, u up to the VALUE-th smallest "
        "of all, u <= VALUE",
        .fallback = "none", .group = "Weights of prompts"),
    PNB__ROW_REAL("prompt-filter-value", AT(filter_value), "VALUE", "The filter's value"),
    PNB__ROW_FLAG("bprw", AT(bprw),
                  "Bayesian prompt re-weighting by the pictures themselves, without their labels"),
    PNB__ROW_FILE("bprw-images", AT(bprw_images), "WHAT",
                  "Few-shot re-weighting by these labelled pictures"),
    PNB__ROW_FILE("bprw-labels", AT(bprw_labels), "FILE", "Classes of --bprw-images, as --labels"),
    PNB__ROW_TEXT("bprw-split", AT(bprw_split), "NAME", "Split of --bprw-images that has several",
                  .fallback = "train"),
    PNB__ROW_INT("shots", AT(shots), "K",
                 "Pictures of each class taken from --bprw-images, the first ones; 0: all",
                 PNB__RANGE(0, 1e6), .fallback = "0"),
    PNB__ROW_REAL("bprw-alpha", AT(bprw_alpha), "A",
                  "Dirichlet prior, larger is more even; 5, and 2 in few-shot",
                  PNB__RANGE(1e-6, 1e6)),
    PNB__ROW_REAL("bprw-eps", AT(bprw_eps), "E", "Added to the prompts' variances; 0.02",
                  PNB__RANGE(0, 1e6)),
    PNB__ROW_INT("bprw-neighbours", AT(n_bprw_images), "N",
                 "Nearest pictures a class is weighed by; 0: 10", PNB__RANGE(0, 1e6),
                 .fallback = "0"),
    PNB__ROW_INT("bprw-samples", AT(bprw_samples), "J",
                 "Points drawn from each picture; 0: 10, and 100/K in few-shot", PNB__RANGE(0, 1e5),
                 .fallback = "0"),
    PNB__ROW_FLAG("bprw-released", AT(bprw_released),
                  "As ProLIP's released code: class means keep their length, the weights are those "
                  "before the last step"),
    PNB__ROW_FILE("load-weights", AT(load_weights), "FILE.json",
                  "Weights that --weights wrote for the same prompts, in place of a filter or "
                  "re-weighting"),
    PNB__ROW_CHOICE(
        "class-variance", AT(variance), "NAME", "mean|squared",
        "Variance of a class from weights w and variances v of its prompts: sum of w v, or of "
        "w^2 v; by default squared for re-weighting, else mean"),
    PNB__ROW_INT(
        "list-prompts", AT(n_listed), "N",
        "List the N most and least certain prompts, and the templates by their uncertainty",
        PNB__RANGE(0, 1e5), .fallback = "0"),
    PNB__ROW_CHOICE(
        "none", AT(none), "RULE", PNB__CHOICES(PNB_NONE_RULE_LIST(PNB__CHOICE_OF)),
        "What tells pictures of no class: a dummy prompt nearer than every class, a small "
        "margin between the two best, a small largest probability, a low score, or the "
        "picture's own uncertainty",
        .group = "None of the above"),
    PNB__ROW_LIST("none-prompts", AT(none_prompts), "STR...",
                  "Dummy prompts, of which the nearest counts; 'a photo' by default",
                  .instead_of_file = "--none-set takes an embedding set of prompts"),
    PNB__ROW_FILE("none-set", AT(none_set), "SET",
                  "Embedding set of dummy prompts, in place of --none-prompts"),
    PNB__ROW_REAL("none-threshold", AT(none_threshold), "T",
                  "Strangeness above which a picture is called none; 0 for dummy"),
    PNB__ROW_REAL("none-reject", AT(none_reject), "SHARE",
                  "Fit the threshold: at most this share of the classes' own pictures is rejected",
                  PNB__RANGE(0, 1)),
    PNB__ROW_REAL("none-fpr", AT(none_fpr), "SHARE",
                  "Fit the threshold: at most this share of the pictures of no class is accepted",
                  PNB__RANGE(0, 1)),
    PNB__ROW_FILE("negatives", AT(negatives), "WHAT", "Pictures of no class, for the figures"),
    PNB__ROW_FILE("val-images", AT(val_images), "WHAT", "Labelled pictures of the classes",
                  .group = "Validation set: what scalings and thresholds are fitted on"),
    PNB__ROW_FILE("val-labels", AT(val_labels), "FILE", "Their classes, as --labels"),
    PNB__ROW_FILE("val-negatives", AT(val_negatives), "WHAT", "Pictures of no class"),
    PNB__ROW_TEXT("val-split", AT(val_split), "NAME", "Split of a validation set that has several",
                  .fallback = "train"),
    PNB__ROW_FLAG("fit-temperature", AT(fit_temperature), "Fit the softmax's temperature"),
    PNB__ROW_FLAG("fit-platt", AT(fit_platt),
                  "Fit s(a score + b), the probability of each class on its own"),
    PNB__ROW_FILE("save-scaling", AT(save_scaling), "FILE.json", "Write what was fitted",
                  .writes = "*"),
    PNB__ROW_FILE(
        "load-scaling", AT(load_scaling), "FILE.json",
        "Use what --save-scaling wrote, for pictures and classes like those it was fitted on"),
    PNB__ROW_FLAG(
        "trust-scaling", AT(trust_scaling),
        "Use a scaling although it, or a set, does not tell its modality and model (files of "
        "older versions, .npy without its .json); what differs stays refused"),
    PNB__ROW_LIST("occlusion", AT(changed.share_words), "SHARE...",
                  "Classify again with these shares of each picture's middle erased, ascending; 0 "
                  "0.025 0.05 0.075 0.1 is the published test",
                  .group = "Changed pictures, by accuracy and uncertainty"),
    PNB__ROW_LIST("attack-steps", AT(changed.step_words), "K...",
                  "Classify again after so many steps of projected gradient descent on the pixels, "
                  "which raise the loss of the label, beside noise of the same size; 1 5 10 40 is "
                  "the published test"),
    PNB__ROW_REAL("attack-eps", AT(changed.eps), "E",
                  "The furthest that a pixel moves, in units of 1/255; 8 by default",
                  PNB__RANGE(1e-6, 255)),
    PNB__ROW_REAL("attack-step", AT(changed.step), "A",
                  "What a step moves it, in units of 1/255; 2 by default", PNB__RANGE(1e-6, 255)),
    PNB__ROW_INT("changed-limit", AT(changed.limit), "N",
                 "Labelled pictures that are changed, evenly spaced; 1000 by default",
                 PNB__RANGE(1, 1e9)),
    PNB__ROW_FILE(
        "output", AT(output), "FILE.json",
        "Write the JSON result to a file too; {dataset}, {pretrained}, {model}, {language} and "
        "{task} stand for their values",
        .group = "Result", .letter = 'o', .writes = "*"),
    PNB__ROW_FILE("csv", AT(csv), "FILE.csv",
                  "Write the figures as a line of csv, with the columns of CLIP_benchmark's build",
                  .writes = "*"),
    PNB__ROW_FILE("markdown", AT(markdown), "FILE.md",
                  "Write the figures as a line of a Markdown table", .writes = "*"),
    PNB__ROW_FLAG("skip-existing", AT(skip_existing),
                  "Do nothing where the file of --output exists"),
    PNB__ROW_TEXT("dataset", AT(dataset), "NAME",
                  "Name of the data set in the result, and key of its names and templates in .json "
                  "objects"),
    PNB__ROW_TEXT("language", AT(language), "NAME", "Language in the result", .fallback = "en"),
    PNB__ROW_FLAG("dump-classnames", AT(dump_classnames),
                  "Put the class names into the JSON result"),
    PNB__ROW_FLAG("dump-templates", AT(dump_templates), "Put the templates into the JSON result"),
    PNB__ROW_FILE(
        "predictions", AT(predictions), "FILE.jsonl",
        "Write the best five classes of each picture with probability, and its uncertainty",
        .writes = "*"),
    PNB__ROW_FILE("confusion", AT(confusion), "FILE",
                  "Write the confusion matrix, .csv or .json: rows are labels, columns predictions",
                  .writes = "*"),
    PNB__ROW_FILE("per-class", AT(per_class), "FILE.csv", "Write the figures of each class",
                  .writes = "*"),
    PNB__ROW_FILE("save-clf", AT(save_clf), "SET", "Write the classes as an embedding set",
                  .writes = ".safetensors"),
    PNB__ROW_FILE("save-prompts", AT(save_prompts), "SET", "Write the prompts as an embedding set",
                  .writes = ".safetensors"),
    PNB__ROW_FILE("weights", AT(weights), "FILE.json", "Write the weight of every prompt",
                  .writes = "*"),
    PNB__ROW_FILE("weights-html", AT(weights_html), "FILE.html", "Draw the weights", .writes = "*"),
    PNB__ROW_FILE(
        "html", AT(html), "FILE.html",
        "Write a page with every picture, its classes and their probabilities; with labels also "
        "with the figures"),
};
#undef AT

/* An enum that was not given stands behind its last. */
#define NO_RULE PNB_N_NONE_RULES
#define NO_VARIANCE ((pnb_class_variance)(PNB_CLASS_VARIANCE_SQUARED + 1))

/* ---- combinations ---- Each check is one question; what is used by nothing is refused, since it
 * would look as if it had been heard. */

static pnb_status check_classes(pnb__app *app, const pnb__classify_opts *o)
{
    bool weighs = o->filter != PNB_FILTER_PROMPTS_NONE || o->bprw || o->bprw_images != NULL ||
                  o->load_weights != NULL;
    bool writes = o->weights != NULL || o->weights_html != NULL || o->save_prompts != NULL;
    if (o->load_clfs.n > 0 && (o->prompts != NULL || o->classnames != NULL || o->templates != NULL))
        return pnb__usage(app, "--load-clfs brings its classes; --prompts, --classnames and "
                               "--templates have no place beside it");
    if (o->prompts != NULL && (o->classnames != NULL || o->templates != NULL))
        return pnb__usage(app, "--prompts brings its classes; --classnames and --templates have no "
                               "place beside it");
    if (o->load_clfs.n > 0 && (weighs || writes || o->n_listed > 0 || o->variance != NO_VARIANCE))
        return pnb__usage(app, "a loaded classifier has no prompts to weigh, list or save");
    return PNB_OK;
}

static pnb_status check_weights(pnb__app *app, const pnb__classify_opts *o)
{
    bool filtered = o->filter != PNB_FILTER_PROMPTS_NONE, few = o->bprw_images != NULL;
    bool reweighed = o->bprw || few;
    bool tuned =
        !isnan(o->bprw_alpha) || !isnan(o->bprw_eps) || o->bprw_samples > 0 || o->bprw_released;
    if (filtered && isnan(o->filter_value))
        return pnb__usage(app, "--prompt-filter %s needs --prompt-filter-value",
                          pnb_prompt_filter_name(o->filter));
    if (!filtered && !isnan(o->filter_value))
        return pnb__usage(app, "--prompt-filter-value needs --prompt-filter");
    if (filtered + reweighed + (o->load_weights != NULL) > 1)
        return pnb__usage(app, "--prompt-filter, --bprw and --load-weights all give the prompts' "
                               "weights; one of them is wanted");
    if (!reweighed && (tuned || o->n_bprw_images > 0))
        return pnb__usage(app, "--bprw-... needs --bprw or --bprw-images");
    if (few && o->n_bprw_images > 0)
        return pnb__usage(app, "--bprw-neighbours is for pictures without labels; how many of "
                               "--bprw-images count is said by --shots");
    if (!few && (o->shots > 0 || o->bprw_labels != NULL))
        return pnb__usage(app, "--shots and --bprw-labels need --bprw-images");
    return PNB_OK;
}

static pnb_status check_none(pnb__app *app, const pnb__classify_opts *o)
{
    int n_thresholds = !isnan(o->none_threshold) + !isnan(o->none_reject) + !isnan(o->none_fpr);
    bool dummies = o->none_prompts.n > 0 || o->none_set != NULL;
    if (o->none == NO_RULE &&
        (n_thresholds > 0 || dummies || o->negatives != NULL || o->val_negatives != NULL))
        return pnb__usage(app, "--none RULE is missing");
    if (dummies && o->none != PNB_NONE_DUMMY)
        return pnb__usage(app, "dummy prompts belong to --none dummy, not to --none %s",
                          pnb_none_rule_name(o->none));
    if (o->none_prompts.n > 0 && o->none_set != NULL)
        return pnb__usage(app, "one of --none-prompts and --none-set is wanted");
    if (n_thresholds > 1)
        return pnb__usage(app, "one of --none-threshold, --none-reject, --none-fpr is wanted");
    if (o->none != NO_RULE && n_thresholds == 0 && o->none != PNB_NONE_DUMMY)
        return pnb__usage(app,
                          "rule %s has no threshold of its own: give --none-threshold, "
                          "--none-reject or --none-fpr",
                          pnb_none_rule_name(o->none));
    if (!isnan(o->none_fpr) && o->negatives == NULL && o->val_negatives == NULL)
        return pnb__usage(app, "--none-fpr needs --val-negatives (or --negatives): pictures of "
                               "none of the classes");
    if (o->val_negatives != NULL && isnan(o->none_fpr))
        return pnb__usage(app, "--val-negatives is what --none-fpr fits its threshold on");
    return PNB_OK;
}

static pnb_status check_scaling(pnb__app *app, const pnb__classify_opts *o)
{
    bool fits = o->fit_temperature || o->fit_platt;
    if (o->load_scaling != NULL && fits)
        return pnb__usage(app, "--load-scaling and --fit-... are two sources of one thing");
    if (o->trust_scaling && o->load_scaling == NULL)
        return pnb__usage(app, "--trust-scaling is about the file of --load-scaling");
    if (o->save_scaling != NULL && !fits)
        return pnb__usage(app, "--save-scaling needs --fit-temperature or --fit-platt");
    if (o->fit_temperature && !isnan(o->scale))
        return pnb__usage(app, "--scale and --fit-temperature are two sources of one thing");
    if (fits && o->val_images == NULL)
        return pnb__usage(app, "--fit-temperature and --fit-platt need --val-images: fitting on "
                               "the pictures that are judged would flatter the figures");
    if (o->val_images != NULL && !fits && isnan(o->none_reject))
        return pnb__usage(app, "--val-images is what --fit-temperature, --fit-platt and "
                               "--none-reject fit on; none of them is asked for");
    if (o->val_labels != NULL && o->val_images == NULL)
        return pnb__usage(app, "--val-labels needs --val-images");
    return PNB_OK;
}

static pnb_status check_prediction(pnb__app *app, const pnb__classify_opts *o)
{
    bool scales = o->fit_temperature || o->fit_platt || o->load_scaling != NULL;
    if (o->n_draws > 0 && o->prediction != PNB_PREDICTION_SAMPLING)
        return pnb__usage(app, "--draws needs --predict sampling");
    if (o->prediction != PNB_PREDICTION_PLAIN && scales)
        return pnb__usage(app, "a scaling is fitted to plain scores: leave it or --predict out");
    if (o->prediction == PNB_PREDICTION_SAMPLING && o->none == PNB_NONE_DUMMY)
        return pnb__usage(app, "drawn probabilities are among the classes: --none dummy takes "
                               "--predict plain or probit");
    return PNB_OK;
}

static pnb_status check(pnb__app *app, const pnb__classify_opts *o)
{
    pnb_status status = check_classes(app, o);
    if (status == PNB_OK)
        status = check_weights(app, o);
    if (status == PNB_OK)
        status = check_none(app, o);
    if (status == PNB_OK)
        status = check_scaling(app, o);
    if (status == PNB_OK)
        status = check_prediction(app, o);
    if (status == PNB_OK && o->groups != NULL && o->group_key != NULL)
        status = pnb__usage(app, "--groups and --group-key are two sources of one thing");
    if (status == PNB_OK && o->skip_existing && o->output == NULL)
        status = pnb__usage(app, "--skip-existing needs --output");
    return status;
}

static void defaults(void *args)
{
    pnb__classify_opts *o = args;
    *o = pnb__classify_opts_default();
    o->variance = NO_VARIANCE;
    o->none = NO_RULE;
}

static pnb_status run(pnb__app *app, void *args, pnb__result *r)
{
    pnb__classify_opts *o = args;
    pnb__classify found = {0};
    pnb_status status = check(app, o);
    if (status == PNB_OK)
        status = pnb__changed_opts_read(app, &o->changed);
    if (status != PNB_OK)
        return status;
    o->images = o->image_words.items[0];
    o->source.words = &o->image_words;
    o->bprw = o->bprw || o->bprw_images != NULL;
    o->has_none = o->none != NO_RULE;
    o->has_variance = o->variance != NO_VARIANCE;
    status = pnb__classify_run(app, o, &found);
    if (status == PNB_OK && !found.is_skipped) {
        pnb__classify_report(&found, r);
        if (o->html != NULL)
            status = pnb__classify_page(&found, r, o->html, &app->err);
        if (status == PNB_OK && found.output != NULL)
            status = pnb__result_save(r, app, found.output);
    }
    pnb__classify_reset(&found);
    return status;
}

const pnb__command pnb__cmd_classify = {
    .name = "classify",
    .summary = "sort pictures into classes by the classes' names",
    .about =
        "Zero-shot classification: the names go into templates, the prompts are embedded and "
        "averaged into one Gaussian a class, and every picture gets the nearest class. Given "
        "labels, accuracy, mean recall of a class, calibration and confusion follow, in "
        "CLIP_benchmark's JSON with additions.\n\n"
        "Prompts can be filtered by their own uncertainty, or weighed by Bayesian re-weighting: by "
        "the unlabelled pictures themselves, or few-shot by labelled ones. With --none, pictures "
        "that belong to no class are called so.",
    .examples =
        "penumbra classify -m model --images cifar-10-batches-bin --predictions p.jsonl\n"
        "penumbra classify -m model --images photos --classnames cat,dog --templates simple --none "
        "dummy\n"
        "penumbra classify -m model --images wds_set --bprw --weights w.json --weights-html "
        "weights.html\n"
        "penumbra classify -m model --images another_wds_set --load-weights "
        "w.json\n"
        "penumbra classify -m model --images wds_set --val-images wds_set --fit-temperature "
        "--save-scaling s.json\n"
        "penumbra classify -m model --images wds_set --negatives other --none threshold --none-fpr "
        "0.05 --csv t.csv",
    .defaults = defaults,
    PNB__RUNS(options, pnb__classify_opts, run)};
