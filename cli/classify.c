/* penumbra classify: pictures to classes by the names of the classes.
 *
 * Options only; the work is in src/app/classify*.c. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "app/classify.h"
#include "app/result.h"
#include "commands.h"
#include "rows.h"

struct classify_args {
    const char *images, *model, *tokenizer, *preprocess, *split, *labels, *img_key, *label_key;
    const char *classnames, *templates, *prompts, *load_clfs, *measure, *dataset, *language;
    const char *filter, *bprw_images, *none, *none_set, *negatives;
    const char *val_images, *val_labels, *val_negatives, *val_split, *save_scaling, *load_scaling;
    const char *output, *predictions, *confusion, *per_class, *save_clf, *save_prompts;
    const char *weights, *weights_html;
    pnb__text_list none_prompts;
    int64_t bins, shots, neighbours, samples, listed;
    double scale, filter_value, alpha, eps, none_threshold, none_reject, none_fpr;
    bool exif, bprw, bprw_released, fit_temperature, fit_platt, skip_existing, dump_classnames,
        dump_templates;
};

#define AT(field) offsetof(struct classify_args, field)
static const pnb__option options[] = {
    {.name = "images",
     .kind = PNB__OPT_FILE,
     .at = AT(images),
     .value = "WHAT",
     .required = true,
     .help = "Pictures: an embedding set, a folder of class folders, CLIP_benchmark shards or the "
             "folder above train/ and test/, a csv with a label column, or CIFAR-10/100, STL-10 "
             "or MNIST binaries (the file, or their folder)"},
    {.name = "model",
     .letter = 'm',
     .kind = PNB__OPT_FILE,
     .at = AT(model),
     .value = "DIR",
     .help = "Model directory; not needed where pictures and prompts are embedding sets"},
    PNB__MODEL_PARTS_ROWS(AT(tokenizer), AT(preprocess)),
    PNB__EXIF_ROW(AT(exif)),
    {.name = "split",
     .kind = PNB__OPT_TEXT,
     .at = AT(split),
     .value = "NAME",
     .fallback = "test",
     .help = "Split of a data set that has several"},
    {.name = "labels",
     .kind = PNB__OPT_FILE,
     .at = AT(labels),
     .value = "FILE",
     .help = "Classes of the pictures: id, tab, name or number on each line; by default what the "
             "pictures carry"},
    {.name = "csv-img-key",
     .kind = PNB__OPT_TEXT,
     .at = AT(img_key),
     .value = "COLUMN",
     .fallback = "filepath",
     .help = "Column of picture paths in a csv or tsv file"},
    {.name = "csv-label-key",
     .kind = PNB__OPT_TEXT,
     .at = AT(label_key),
     .value = "COLUMN",
     .help = "Column of classes in a csv or tsv file; label or class by default"},
    {.name = "classnames",
     .kind = PNB__OPT_FILE,
     .at = AT(classnames),
     .value = "FILE|A,B,C",
     .group = "Classes",
     .help = "Names of the classes: a text file (one a line), a .json list, or the names "
             "themselves; by default those of the pictures"},
    {.name = "templates",
     .kind = PNB__OPT_FILE,
     .at = AT(templates),
     .value = "FILE|openai|simple|none",
     .help = "Prompts around the names: CLIP's 80 or 7, the name alone, a text file (one a line) "
             "or .json list with {} or {c} for the name, or a .json object of prompts for each "
             "class (CuPL); by default zeroshot_classification_templates.txt beside the pictures, "
             "else openai"},
    {.name = "prompts",
     .kind = PNB__OPT_FILE,
     .at = AT(prompts),
     .value = "SET",
     .help = "Embedding set of prompts that name their classes (--save-prompts), in place of names "
             "and templates"},
    {.name = "load-clfs",
     .kind = PNB__OPT_FILE,
     .at = AT(load_clfs),
     .value = "SET",
     .help = "Classifier that --save-clf wrote"},
    PNB__MEASURE_ROW(AT(measure)),
    {.name = "scale",
     .kind = PNB__OPT_REAL,
     .at = AT(scale),
     .value = "A",
     .min = 1e-6,
     .max = 1e9,
     .help = "Probabilities are softmax(A score); by default the fitted scaling's, else the "
             "model's, else 100"},
    {.name = "bins",
     .kind = PNB__OPT_INT,
     .at = AT(bins),
     .value = "N",
     .fallback = "15",
     .min = 1,
     .max = 256,
     .help = "Bins of the calibration error"},
    {.name = "prompt-filter",
     .kind = PNB__OPT_CHOICE,
     .at = AT(filter),
     .value = "NAME",
     .fallback = "none",
     .choices = "none|class_std|top_k|global_top|global",
     .group = "Weights of prompts",
     .help = "Which prompts count, by their uncertainty u: u <= mean + VALUE standard deviations "
             "of the class, the VALUE most certain of each class, u up to the VALUE-th smallest "
             "of all, u <= VALUE"},
    {.name = "prompt-filter-value",
     .kind = PNB__OPT_REAL,
     .at = AT(filter_value),
     .value = "VALUE",
     .help = "The filter's value"},
    {.name = "bprw",
     .kind = PNB__OPT_FLAG,
     .at = AT(bprw),
     .help = "Bayesian prompt re-weighting by the pictures themselves, without their labels"},
    {.name = "bprw-images",
     .kind = PNB__OPT_FILE,
     .at = AT(bprw_images),
     .value = "WHAT",
     .help = "Few-shot re-weighting by these labelled pictures (of a data set the train split)"},
    {.name = "shots",
     .kind = PNB__OPT_INT,
     .at = AT(shots),
     .value = "K",
     .fallback = "0",
     .max = 1e6,
     .help = "Pictures taken of each class of --bprw-images; 0: all"},
    {.name = "bprw-alpha",
     .kind = PNB__OPT_REAL,
     .at = AT(alpha),
     .value = "A",
     .min = 1e-6,
     .max = 1e6,
     .help = "Dirichlet prior, larger is more even; 5, and 2 in few-shot"},
    {.name = "bprw-eps",
     .kind = PNB__OPT_REAL,
     .at = AT(eps),
     .value = "E",
     .max = 1e6,
     .help = "Added to the prompts' variances; 0.02"},
    {.name = "bprw-neighbours",
     .kind = PNB__OPT_INT,
     .at = AT(neighbours),
     .value = "N",
     .fallback = "10",
     .min = 1,
     .max = 1e6,
     .help = "Nearest pictures a class is weighed by"},
    {.name = "bprw-samples",
     .kind = PNB__OPT_INT,
     .at = AT(samples),
     .value = "J",
     .fallback = "0",
     .max = 1e5,
     .help = "Points drawn from each picture; 0: 10, and 100/K in few-shot"},
    {.name = "bprw-released",
     .kind = PNB__OPT_FLAG,
     .at = AT(bprw_released),
     .help = "As ProLIP's released code: class means keep their length, the weights are those "
             "before the last step"},
    {.name = "list-prompts",
     .kind = PNB__OPT_INT,
     .at = AT(listed),
     .value = "N",
     .fallback = "0",
     .max = 1e5,
     .help = "List the N most and least certain prompts, and the templates by their uncertainty"},
    {.name = "none",
     .kind = PNB__OPT_CHOICE,
     .at = AT(none),
     .value = "RULE",
     .choices = "dummy|margin|threshold|score|uncertainty",
     .group = "None of the above",
     .help = "What tells pictures of no class: a dummy prompt nearer than every class, a small "
             "margin between the two best, a small largest probability, a low score, or the "
             "picture's own uncertainty"},
    {.name = "none-prompts",
     .kind = PNB__OPT_LIST,
     .at = AT(none_prompts),
     .value = "STR...",
     .help = "Dummy prompts, of which the nearest counts; 'a photo' by default"},
    {.name = "none-set",
     .kind = PNB__OPT_FILE,
     .at = AT(none_set),
     .value = "SET",
     .help = "Embedding set of dummy prompts, in place of --none-prompts"},
    {.name = "none-threshold",
     .kind = PNB__OPT_REAL,
     .at = AT(none_threshold),
     .value = "T",
     .help = "Strangeness above which a picture is called none; 0 for dummy"},
    {.name = "none-reject",
     .kind = PNB__OPT_REAL,
     .at = AT(none_reject),
     .value = "SHARE",
     .max = 1,
     .help = "Fit the threshold: at most this share of the classes' own pictures is rejected"},
    {.name = "none-fpr",
     .kind = PNB__OPT_REAL,
     .at = AT(none_fpr),
     .value = "SHARE",
     .max = 1,
     .help = "Fit the threshold: at most this share of the pictures of no class is accepted"},
    {.name = "negatives",
     .kind = PNB__OPT_FILE,
     .at = AT(negatives),
     .value = "WHAT",
     .help = "Pictures of no class, for the figures"},
    {.name = "val-images",
     .kind = PNB__OPT_FILE,
     .at = AT(val_images),
     .value = "WHAT",
     .group = "Validation set: what scalings and thresholds are fitted on",
     .help = "Labelled pictures of the classes"},
    {.name = "val-labels",
     .kind = PNB__OPT_FILE,
     .at = AT(val_labels),
     .value = "FILE",
     .help = "Their classes, as --labels"},
    {.name = "val-negatives",
     .kind = PNB__OPT_FILE,
     .at = AT(val_negatives),
     .value = "WHAT",
     .help = "Pictures of no class"},
    {.name = "val-split",
     .kind = PNB__OPT_TEXT,
     .at = AT(val_split),
     .value = "NAME",
     .fallback = "train",
     .help = "Split of a validation set that has several"},
    {.name = "fit-temperature",
     .kind = PNB__OPT_FLAG,
     .at = AT(fit_temperature),
     .help = "Fit the softmax's temperature"},
    {.name = "fit-platt",
     .kind = PNB__OPT_FLAG,
     .at = AT(fit_platt),
     .help = "Fit s(a score + b), the probability of each class on its own"},
    {.name = "save-scaling",
     .kind = PNB__OPT_FILE,
     .at = AT(save_scaling),
     .value = "FILE.json",
     .help = "Write what was fitted"},
    {.name = "load-scaling",
     .kind = PNB__OPT_FILE,
     .at = AT(load_scaling),
     .value = "FILE.json",
     .help = "Use what --save-scaling wrote"},
    {.name = "output",
     .letter = 'o',
     .kind = PNB__OPT_FILE,
     .at = AT(output),
     .value = "FILE.json",
     .group = "Result",
     .help = "Write the JSON result to a file too"},
    {.name = "skip-existing",
     .kind = PNB__OPT_FLAG,
     .at = AT(skip_existing),
     .help = "Do nothing where the file of --output exists"},
    {.name = "dataset",
     .kind = PNB__OPT_TEXT,
     .at = AT(dataset),
     .value = "NAME",
     .help = "Name of the data set in the result, and key of its templates in a .json object"},
    {.name = "language",
     .kind = PNB__OPT_TEXT,
     .at = AT(language),
     .value = "NAME",
     .fallback = "en",
     .help = "Language in the result"},
    {.name = "dump-classnames",
     .kind = PNB__OPT_FLAG,
     .at = AT(dump_classnames),
     .help = "Put the class names into the JSON result"},
    {.name = "dump-templates",
     .kind = PNB__OPT_FLAG,
     .at = AT(dump_templates),
     .help = "Put the templates into the JSON result"},
    {.name = "predictions",
     .kind = PNB__OPT_FILE,
     .at = AT(predictions),
     .value = "FILE.jsonl",
     .help = "Write the best five classes of each picture with probability, and its uncertainty"},
    {.name = "confusion",
     .kind = PNB__OPT_FILE,
     .at = AT(confusion),
     .value = "FILE",
     .help = "Write the confusion matrix, .csv or .json: rows are labels, columns predictions"},
    {.name = "per-class",
     .kind = PNB__OPT_FILE,
     .at = AT(per_class),
     .value = "FILE.csv",
     .help = "Write the figures of each class"},
    {.name = "save-clf",
     .kind = PNB__OPT_FILE,
     .at = AT(save_clf),
     .value = "SET",
     .help = "Write the classes as an embedding set"},
    {.name = "save-prompts",
     .kind = PNB__OPT_FILE,
     .at = AT(save_prompts),
     .value = "SET",
     .help = "Write the prompts as an embedding set"},
    {.name = "weights",
     .kind = PNB__OPT_FILE,
     .at = AT(weights),
     .value = "FILE.json",
     .help = "Write the weight of every prompt"},
    {.name = "weights-html",
     .kind = PNB__OPT_FILE,
     .at = AT(weights_html),
     .value = "FILE.html",
     .help = "Draw the weights"},
};
#undef AT

static pnb_status check(pnb__app *app, const struct classify_args *a)
{
    bool filtered = strcmp(a->filter, "none") != 0, reweighed = a->bprw || a->bprw_images != NULL;
    int n_thresholds = !isnan(a->none_threshold) + !isnan(a->none_reject) + !isnan(a->none_fpr);
    if (a->load_clfs != NULL &&
        (a->prompts != NULL || a->classnames != NULL || a->templates != NULL))
        return pnb__usage(app, "--load-clfs brings its classes; --prompts, --classnames and "
                               "--templates have no place beside it");
    if (a->prompts != NULL && (a->classnames != NULL || a->templates != NULL))
        return pnb__usage(app, "--prompts brings its classes; --classnames and --templates have no "
                               "place beside it");
    if (filtered && isnan(a->filter_value))
        return pnb__usage(app, "--prompt-filter %s needs --prompt-filter-value", a->filter);
    if (filtered && reweighed)
        return pnb__usage(app, "--prompt-filter and --bprw both give the prompts' weights; one of "
                               "them is wanted");
    if (a->load_clfs != NULL && (filtered || reweighed || a->listed > 0))
        return pnb__usage(app, "a loaded classifier has no prompts to weigh or list");
    if (a->none == NULL && (n_thresholds > 0 || a->none_prompts.n > 0 || a->none_set != NULL))
        return pnb__usage(app, "--none RULE is missing");
    if (a->none_prompts.n > 0 && a->none_set != NULL)
        return pnb__usage(app, "one of --none-prompts and --none-set is wanted");
    if (n_thresholds > 1)
        return pnb__usage(app, "one of --none-threshold, --none-reject, --none-fpr is wanted");
    if (a->load_scaling != NULL && (a->fit_temperature || a->fit_platt))
        return pnb__usage(app, "--load-scaling and --fit-... are two sources of one thing");
    if (a->save_scaling != NULL && !a->fit_temperature && !a->fit_platt)
        return pnb__usage(app, "--save-scaling needs --fit-temperature or --fit-platt");
    if (a->skip_existing && a->output == NULL)
        return pnb__usage(app, "--skip-existing needs --output");
    return PNB_OK;
}

/* Parts of the options that are the same words in both structs. */
static pnb__classify_opts copy_opts(const struct classify_args *a)
{
    return (pnb__classify_opts){.model = a->model,
                                .tokenizer = a->tokenizer,
                                .preprocess = a->preprocess,
                                .images = a->images,
                                .labels = a->labels,
                                .source = {a->split, a->img_key, a->label_key, a->exif},
                                .classnames = a->classnames,
                                .templates = a->templates,
                                .prompts = a->prompts,
                                .load_clf = a->load_clfs,
                                .dataset = a->dataset,
                                .language = a->language,
                                .scale = a->scale,
                                .n_bins = (size_t)a->bins,
                                .filter_value = a->filter_value,
                                .bprw = a->bprw || a->bprw_images != NULL,
                                .bprw_released = a->bprw_released,
                                .bprw_images = a->bprw_images,
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
                                .load_scaling = a->load_scaling,
                                .save_clf = a->save_clf,
                                .save_prompts = a->save_prompts,
                                .predictions = a->predictions,
                                .confusion = a->confusion,
                                .per_class = a->per_class,
                                .weights = a->weights,
                                .weights_html = a->weights_html,
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
    if (status == PNB_OK && a->skip_existing && access(a->output, F_OK) == 0) {
        pnb__say(app, "%s exists: nothing to do", a->output);
        return PNB_OK;
    }
    opts.none_prompts = a->none_prompts.n > 0 ? &a->none_prompts : &photo;
    if (status == PNB_OK)
        status = pnb_measure_parse(&opts.measure, a->measure, &app->err);
    if (status == PNB_OK)
        status = pnb_prompt_filter_parse(&opts.filter, a->filter, &app->err);
    if (status == PNB_OK && a->none != NULL)
        status = pnb_none_rule_parse(&opts.none, a->none, &app->err);
    if (status != PNB_OK)
        return status;
    pnb__result *r = pnb__result_create();
    status = pnb__classify_run(app, &opts, &found);
    if (status == PNB_OK) {
        pnb__classify_report(&found, r);
        if (a->output != NULL)
            status = pnb__result_save(r, a->output, &app->err);
    }
    if (status == PNB_OK)
        status = pnb__result_print(r, app->out, app->common.json, &app->err);
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
        "penumbra classify -m model --images wds_set --bprw --weights-html weights.html --json",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .args_bytes = sizeof(struct classify_args),
    .run = run};
