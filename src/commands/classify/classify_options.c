/* penumbra classify: pictures to classes by the names of the classes.
 *
 * Options and which of them go together; the work is in src/commands/classify/. */
#include <math.h>
#include <string.h>

#include "commands/classify/classify.h"
#include "commands/commands.h"
#include "commands/common/option_rows.h"
#include "prob/choices.h"
#include "program/result.h"
#include "sets/settle.h"

struct classify_args {
    const char *model, *tokenizer, *preprocess, *split, *labels, *img_key, *label_key;
    const char *classnames, *templates, *prompts, *measure, *dataset, *language;
    const char *filter, *bprw_images, *none, *none_set, *negatives;
    const char *val_images, *val_labels, *val_negatives, *val_split, *save_scaling, *load_scaling;
    const char *output, *predictions, *confusion, *per_class, *save_clf, *save_prompts;
    const char *weights, *weights_html, *html, *load_weights, *bprw_labels, *bprw_split, *csv,
        *markdown, *cluster;
    const char *variance;
    pnb__text_list images, none_prompts, load_clfs;
    int64_t bins, shots, neighbours, samples, listed;
    double scale, filter_value, alpha, eps, none_threshold, none_reject, none_fpr;
    bool trust_scaling, exif, bprw, bprw_released, fit_temperature, fit_platt, skip_existing,
        dump_classnames, dump_templates;
};

#define AT(field) offsetof(struct classify_args, field)
static const pnb__option options[] = {
    PNB__ROW_FILES(
        "images", AT(images), "WHAT...",
        "Pictures: files, globs, folders, or - (one path a line); an embedding set, a folder "
        "of class folders, CLIP_benchmark shards or the folder above train/ and test/, a csv "
        "with a label column, or CIFAR-10/100, STL-10 or MNIST binaries (the file, or their "
        "folder)",
        .required = true),
    PNB__ROW_FILE("model", AT(model), "DIR",
                  "Model directory; not needed where pictures and prompts are embedding sets",
                  .letter = 'm'),
    PNB__MODEL_PARTS_ROWS(AT(tokenizer), AT(preprocess)),
    PNB__EXIF_ROW(AT(exif)),
    PNB__ROW_TEXT("split", AT(split), "NAME", "Split of a data set that has several",
                  .fallback = "test"),
    PNB__ROW_FILE(
        "labels", AT(labels), "FILE",
        "Classes of the pictures: id, tab, name or number on each line; by default what the "
        "pictures carry"),
    PNB__PICTURE_CLUSTER_ROW(AT(cluster)),
    PNB__ROW_TEXT("csv-img-key", AT(img_key), "COLUMN",
                  "Column of picture paths in a csv or tsv file", .fallback = "filepath"),
    PNB__ROW_TEXT("csv-label-key", AT(label_key), "COLUMN",
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
    PNB__ROW_REAL("scale", AT(scale), "A",
                  "Probabilities are softmax(A score); by default the fitted scaling's, else the "
                  "model's, else 100",
                  PNB__RANGE(1e-6, 1e9)),
    PNB__ROW_INT("bins", AT(bins), "N", "Bins of the calibration error", PNB__RANGE(1, 256),
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
    PNB__ROW_REAL("bprw-alpha", AT(alpha), "A",
                  "Dirichlet prior, larger is more even; 5, and 2 in few-shot",
                  PNB__RANGE(1e-6, 1e6)),
    PNB__ROW_REAL("bprw-eps", AT(eps), "E", "Added to the prompts' variances; 0.02",
                  PNB__RANGE(0, 1e6)),
    PNB__ROW_INT("bprw-neighbours", AT(neighbours), "N",
                 "Nearest pictures a class is weighed by; 0: 10", PNB__RANGE(0, 1e6),
                 .fallback = "0"),
    PNB__ROW_INT("bprw-samples", AT(samples), "J",
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
        "list-prompts", AT(listed), "N",
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
    PNB__ROW_FILE("html", AT(html), "FILE.html",
                  "Write a page with every picture, its classes and their probabilities"),
};
#undef AT

/* ---- combinations ---- Each check is one question; what is used by nothing is refused, since it
 * would look as if it had been heard. */

static pnb_status check_classes(pnb__app *app, const struct classify_args *a)
{
    bool weighs = strcmp(a->filter, "none") != 0 || a->bprw || a->bprw_images != NULL ||
                  a->load_weights != NULL;
    bool writes = a->weights != NULL || a->weights_html != NULL || a->save_prompts != NULL;
    if (a->load_clfs.n > 0 && (a->prompts != NULL || a->classnames != NULL || a->templates != NULL))
        return pnb__usage(app, "--load-clfs brings its classes; --prompts, --classnames and "
                               "--templates have no place beside it");
    if (a->prompts != NULL && (a->classnames != NULL || a->templates != NULL))
        return pnb__usage(app, "--prompts brings its classes; --classnames and --templates have no "
                               "place beside it");
    if (a->load_clfs.n > 0 && (weighs || writes || a->listed > 0 || a->variance != NULL))
        return pnb__usage(app, "a loaded classifier has no prompts to weigh, list or save");
    return PNB_OK;
}

static pnb_status check_weights(pnb__app *app, const struct classify_args *a)
{
    bool filtered = strcmp(a->filter, "none") != 0, few = a->bprw_images != NULL;
    bool reweighed = a->bprw || few;
    bool tuned = !isnan(a->alpha) || !isnan(a->eps) || a->samples > 0 || a->bprw_released;
    if (filtered && isnan(a->filter_value))
        return pnb__usage(app, "--prompt-filter %s needs --prompt-filter-value", a->filter);
    if (!filtered && !isnan(a->filter_value))
        return pnb__usage(app, "--prompt-filter-value needs --prompt-filter");
    if (filtered + reweighed + (a->load_weights != NULL) > 1)
        return pnb__usage(app, "--prompt-filter, --bprw and --load-weights all give the prompts' "
                               "weights; one of them is wanted");
    if (!reweighed && (tuned || a->neighbours > 0))
        return pnb__usage(app, "--bprw-... needs --bprw or --bprw-images");
    if (few && a->neighbours > 0)
        return pnb__usage(app, "--bprw-neighbours is for pictures without labels; how many of "
                               "--bprw-images count is said by --shots");
    if (!few && (a->shots > 0 || a->bprw_labels != NULL))
        return pnb__usage(app, "--shots and --bprw-labels need --bprw-images");
    return PNB_OK;
}

static pnb_status check_none(pnb__app *app, const struct classify_args *a)
{
    int n_thresholds = !isnan(a->none_threshold) + !isnan(a->none_reject) + !isnan(a->none_fpr);
    bool dummies = a->none_prompts.n > 0 || a->none_set != NULL;
    if (a->none == NULL &&
        (n_thresholds > 0 || dummies || a->negatives != NULL || a->val_negatives != NULL))
        return pnb__usage(app, "--none RULE is missing");
    if (dummies && strcmp(a->none, "dummy") != 0)
        return pnb__usage(app, "dummy prompts belong to --none dummy, not to --none %s", a->none);
    if (a->none_prompts.n > 0 && a->none_set != NULL)
        return pnb__usage(app, "one of --none-prompts and --none-set is wanted");
    if (n_thresholds > 1)
        return pnb__usage(app, "one of --none-threshold, --none-reject, --none-fpr is wanted");
    if (a->none != NULL && n_thresholds == 0 && strcmp(a->none, "dummy") != 0)
        return pnb__usage(app,
                          "rule %s has no threshold of its own: give --none-threshold, "
                          "--none-reject or --none-fpr",
                          a->none);
    if (!isnan(a->none_fpr) && a->negatives == NULL && a->val_negatives == NULL)
        return pnb__usage(app, "--none-fpr needs --val-negatives (or --negatives): pictures of "
                               "none of the classes");
    if (a->val_negatives != NULL && isnan(a->none_fpr))
        return pnb__usage(app, "--val-negatives is what --none-fpr fits its threshold on");
    return PNB_OK;
}

static pnb_status check_scaling(pnb__app *app, const struct classify_args *a)
{
    bool fits = a->fit_temperature || a->fit_platt;
    if (a->load_scaling != NULL && fits)
        return pnb__usage(app, "--load-scaling and --fit-... are two sources of one thing");
    if (a->trust_scaling && a->load_scaling == NULL)
        return pnb__usage(app, "--trust-scaling is about the file of --load-scaling");
    if (a->save_scaling != NULL && !fits)
        return pnb__usage(app, "--save-scaling needs --fit-temperature or --fit-platt");
    if (a->fit_temperature && !isnan(a->scale))
        return pnb__usage(app, "--scale and --fit-temperature are two sources of one thing");
    if (fits && a->val_images == NULL)
        return pnb__usage(app, "--fit-temperature and --fit-platt need --val-images: fitting on "
                               "the pictures that are judged would flatter the figures");
    if (a->val_images != NULL && !fits && isnan(a->none_reject))
        return pnb__usage(app, "--val-images is what --fit-temperature, --fit-platt and "
                               "--none-reject fit on; none of them is asked for");
    if (a->val_labels != NULL && a->val_images == NULL)
        return pnb__usage(app, "--val-labels needs --val-images");
    return PNB_OK;
}

static pnb_status check(pnb__app *app, const struct classify_args *a)
{
    pnb_status status = check_classes(app, a);
    if (status == PNB_OK)
        status = check_weights(app, a);
    if (status == PNB_OK)
        status = check_none(app, a);
    if (status == PNB_OK)
        status = check_scaling(app, a);
    if (status == PNB_OK && a->skip_existing && a->output == NULL)
        status = pnb__usage(app, "--skip-existing needs --output");
    return status;
}

/* Parts of the options that are the same words in both structs. */
static pnb__classify_opts copy_opts(const struct classify_args *a)
{
    return (pnb__classify_opts){.model = a->model,
                                .tokenizer = a->tokenizer,
                                .preprocess = a->preprocess,
                                .images = a->images.items[0],
                                .labels = a->labels,
                                .source = {a->split, a->img_key, a->label_key, &a->images, a->exif},
                                .classnames = a->classnames,
                                .templates = a->templates,
                                .prompts = a->prompts,
                                .load_clfs = a->load_clfs.n > 0 ? &a->load_clfs : NULL,
                                .dataset = a->dataset,
                                .language = a->language,
                                .scale = a->scale,
                                .n_bins = (size_t)a->bins,
                                .filter_value = a->filter_value,
                                .bprw = a->bprw || a->bprw_images != NULL,
                                .bprw_released = a->bprw_released,
                                .bprw_images = a->bprw_images,
                                .bprw_labels = a->bprw_labels,
                                .bprw_split = a->bprw_split,
                                .load_weights = a->load_weights,
                                .shots = (size_t)a->shots,
                                .bprw_alpha = a->alpha,
                                .bprw_eps = a->eps,
                                .bprw_pictures = (size_t)a->neighbours,
                                .bprw_samples = (size_t)a->samples,
                                .has_none = a->none != NULL,
                                .none_set = a->none_set,
                                .negatives = a->negatives,
                                .val_images = a->val_images,
                                .val_labels = a->val_labels,
                                .val_negatives = a->val_negatives,
                                .val_split = a->val_split,
                                .none_threshold = a->none_threshold,
                                .none_reject = a->none_reject,
                                .none_fpr = a->none_fpr,
                                .fit_temperature = a->fit_temperature,
                                .fit_platt = a->fit_platt,
                                .save_scaling = a->save_scaling,
                                .trust_scaling = a->trust_scaling,
                                .load_scaling = a->load_scaling,
                                .save_clf = a->save_clf,
                                .save_prompts = a->save_prompts,
                                .predictions = a->predictions,
                                .confusion = a->confusion,
                                .per_class = a->per_class,
                                .weights = a->weights,
                                .weights_html = a->weights_html,
                                .html = a->html,
                                .csv = a->csv,
                                .cluster = a->cluster,
                                .markdown = a->markdown,
                                .output = a->output,
                                .skip_existing = a->skip_existing,
                                .dump_classnames = a->dump_classnames,
                                .dump_templates = a->dump_templates,
                                .n_listed = (size_t)a->listed};
}

static pnb_status run(pnb__app *app, const void *args)
{
    static const char *const one_dummy[] = {"a photo"};
    const struct classify_args *a = args;
    const pnb__text_list photo = {(const char **)(uintptr_t)one_dummy, 1};
    pnb__classify_opts opts = copy_opts(a);
    pnb__classify found = {0};
    pnb_status status = check(app, a);
    opts.none_prompts = a->none_prompts.n > 0 ? &a->none_prompts : &photo;
    opts.has_variance = a->variance != NULL;
    if (opts.has_variance && strcmp(a->variance, "squared") == 0)
        opts.variance = PNB_CLASS_VARIANCE_SQUARED;
    if (status == PNB_OK)
        status = pnb__measure_parse(&opts.measure, a->measure, &app->err);
    if (status == PNB_OK)
        status = pnb_prompt_filter_parse(&opts.filter, a->filter, &app->err);
    if (status == PNB_OK && a->none != NULL)
        status = pnb_none_rule_parse(&opts.none, a->none, &app->err);
    if (status != PNB_OK)
        return status;
    pnb__result *r = pnb__result_create();
    status = pnb__classify_run(app, &opts, &found);
    if (status == PNB_OK && !found.is_skipped) {
        pnb__classify_report(&found, r);
        if (found.output != NULL)
            status = pnb__result_save(r, app, found.output);
        status = pnb__result_finish(r, app, status);
        r = NULL;
    }
    pnb__result_free(r);
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
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .args_bytes = sizeof(struct classify_args),
    .run = run};
