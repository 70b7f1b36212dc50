/* penumbra adapt train | apply | methods: frozen embeddings in, distributions out.
 *
 * Options only; adapt.c does the work, src/adapt has the methods. */
#include "adapt/adapters.def"
#include "base/base.h"
#include "commands/adapt/adapt.h"
#include "commands/commands.h"
#include "commands/common/option_rows.h"

#define METHOD_WORD(name, word, ...) "|" word
#define WORDS(LIST) PNB__CHOICES(LIST(PNB__CHOICE_OF))

/* ---- train ---- */

#define AT(field) PNB__FIELD(pnb__adapt_train_opts, field)
static const pnb__option train_options[] = {
    PNB__ROW_CHOICE("method", AT(method), "NAME", PNB__CHOICES(PNB__ADAPTERS(METHOD_WORD)),
                    "What is learned: `penumbra adapt methods` tells", .required = true),
    PNB__ROW_FILE("images", AT(images), "SET", "Embedding set of the pictures"),
    PNB__ROW_FILE("texts", AT(texts), "SET",
                  "Embedding set of the captions; a side that is not given is left alone"),
    PNB__ROW_FILE("truth", AT(truth), "FILE",
                  "What belongs together, in any format of docs/formats.md: only rows of its pairs "
                  "are learned from; without it all rows"),
    PNB__ROW_CHOICE("truth-format", AT(read.format), "NAME",
                    PNB__CHOICES(PNB_TRUTH_FORMAT_LIST(PNB__CHOICE_OF)), "Format of the truth",
                    .fallback = "auto"),
    PNB__ROW_TEXT("split", AT(read.split), "NAME",
                  "Split of a karpathy file (train, val, test, restval, all) or of class folders"),
    PNB__ROW_FILE("out", AT(out), "DIR", "Folder of the adapter", .letter = 'o', .required = true,
                  .writes = "/"),
    PNB__FEWER_PAIRS_ROWS(AT(fewer.share), AT(fewer.shots), AT(fewer.n_classes),
                          AT(fewer.class_key)),
    PNB__ROW_CHOICE("uncertain", AT(options.uncertain), "WHICH", WORDS(PNB_ADAPT_UNCERTAIN_LIST),
                    "conformity, whitened: rows unlike the others are the uncertain ones, or, as "
                    "the papers on CLIP's geometry have it, those like all the others",
                    .fallback = "rare", .group = "Options of methods"),
    PNB__ROW_REAL("shrinkage", AT(options.shrinkage), "SHARE",
                  "whitened: share of the mean variance in the covariance; that of Ledoit and Wolf "
                  "by default",
                  PNB__RANGE(0, 1)),
    PNB__ROW_FILE("val-images", AT(val_images), "SET",
                  "Held-out pictures: with the two below, the weights of the lowest loss on their "
                  "pairs are kept",
                  .group = "Methods that train"),
    PNB__ROW_FILE("val-texts", AT(val_texts), "SET", "Held-out captions"),
    PNB__ROW_FILE("val-truth", AT(val_truth), "FILE", "What of them belongs together"),
    PNB__ROW_TEXT("val-split", AT(val_split), "NAME", "Split of --val-truth, as --split"),
    PNB__ROW_CHOICE("recipe", AT(options.recipe), "WHICH", WORDS(PNB_ADAPT_RECIPE_LIST),
                    "Optimiser, rate, batch and length: small (AdamW at 1e-3, batches of 256, 600 "
                    "steps, heads of 512; asymvlm and deterministic at 2e-3, 2000 steps) below "
                    "100,000 pairs, from there on those of the paper; "
                    "grove takes those of the paper, and its weights, by published alone",
                    .fallback = "auto"),
    PNB__ROW_CHOICE("captions", AT(options.texts), "WHICH", WORDS(PNB_ADAPT_TEXTS_LIST),
                    "An epoch is every caption with one of its pictures, every pair, or every "
                    "picture with one of its captions",
                    .fallback = "each"),
    PNB__ROW_REAL("lr", AT(options.lr), "RATE", "Largest rate of the cosine; the recipe's",
                  PNB__RANGE(0, 1000)),
    PNB__ROW_INT(
        "passes", AT(n_passes), "N",
        "Forward passes of a step, which several processes (mpirun, torchrun) share: the same "
        "bits however many they are; by default one in each",
        PNB__RANGE(1, 32768)),
    PNB__RANK_TIMEOUT_ROW(AT(rank_timeout)),
    PNB__ROW_INT("batch-size", AT(options.batch_size), "N", "Pairs of a step; the recipe's",
                 PNB__RANGE(2, 32768)),
    PNB__ROW_INT("epochs", AT(options.epochs), "N", "Epochs; the recipe's", PNB__RANGE(1, 1e6)),
    PNB__ROW_INT("steps", AT(options.steps), "N", "Steps, in place of epochs", PNB__RANGE(1, 1e9)),
    PNB__ROW_INT("hidden", AT(options.hidden), "N", "Width of hidden layers; the recipe's",
                 PNB__RANGE(1, 65536)),
    PNB__ROW_INT("layers", AT(options.layers), "N", "Hidden layers of a head: 3 by default",
                 PNB__RANGE(1, 7)),
    PNB__ROW_INT("patience", AT(options.patience), "N",
                 "Validations without a lower loss that end a training, of about 30; 0: none does",
                 PNB__RANGE(0, 1e9), .fallback = "10"),
    PNB__ROW_FILE("logs", AT(logs), "DIR",
                  "Keep the run in DIR/NAME: out.log, results.jsonl and checkpoints"),
    PNB__ROW_TEXT("name", AT(name), "NAME", "Name of the run; date, method, rate and batch"),
    PNB__ROW_TEXT("resume", AT(resume), "WHICH",
                  "Continue the run from its checkpoint \"latest\", or from a checkpoint's folder: "
                  "the same bytes come of it"),
    PNB__ROW_CHOICE(
        "loss", AT(options.loss), "WHICH", WORDS(PNB_ADAPT_LOSS_LIST),
        "asymvlm-vmf, asymvlm-ps, deterministic, bayesvlm: cross entropy, or SigLIP's sigmoids",
        .fallback = "infonce", .group = "Single methods that train"),
    PNB__ROW_CHOICE("start", AT(options.start), "WHICH", WORDS(PNB_ADAPT_START_LIST),
                    "asymvlm-vmf, asymvlm-ps, deterministic: captions begin as the frozen rows, or "
                    "anywhere; auto: as the rows in the small recipe",
                    .fallback = "auto"),
    PNB__ROW_CHOICE("normaliser", AT(options.normaliser), "WHICH", WORDS(PNB_ADAPT_NORMALISER_LIST),
                    "asymvlm-vmf: of the density, the paper's closed form or the Bessel function",
                    .fallback = "approximate"),
    PNB__ROW_CHOICE("ablation", AT(options.ablation), "WHICH", WORDS(PNB_ADAPT_ABLATION_LIST),
                    "asymvlm-vmf, asymvlm-ps: densities on the other side, on both, Gaussians, or "
                    "none",
                    .fallback = "none"),
    PNB__ROW_CHOICE("likelihood", AT(options.likelihood), "WHICH", WORDS(PNB_ADAPT_LIKELIHOOD_LIST),
                    "probvlm: as the released code has it, or the generalised Gaussian's",
                    .fallback = "released"),
    PNB__ROW_REAL("cross-modal", AT(options.cross_modal), "WEIGHT",
                  "probvlm: weight of the other side's rows as targets; 1e-4 by default",
                  PNB__RANGE(0, 1e6)),
    PNB__ROW_REAL("dropout", AT(options.dropout), "SHARE", "probvlm: 0.3 by default",
                  PNB__RANGE(0, 0.99)),
    PNB__ROW_INT("mc-samples", AT(options.mc_samples), "N",
                 "probvlm: passes with dropout when applied; 0: one without", PNB__RANGE(0, 4096),
                 .fallback = "15"),
    PNB__ROW_INT("samples", AT(options.samples), "N", "pcme: drawn of each row in a step",
                 PNB__RANGE(1, 64), .fallback = "7"),
    PNB__ROW_REAL(
        "vib", AT(options.vib), "WEIGHT",
        "pcme, pcmepp, prolip: weight of the divergence from N(0, I); 1e-5, 1e-4 and 1e-4 "
        "by default",
        PNB__RANGE(0, 1e6)),
    PNB__ROW_REAL("pseudo", AT(options.pseudo), "WEIGHT",
                  "pcmepp: weight of pairs that score as high as a true one; 0.1 by default",
                  PNB__RANGE(0, 1e6)),
    PNB__ROW_INT("latent-dim", AT(options.latent_dim), "Q",
                 "grove: axes of the latent space; 16, or half the width or the rows where that "
                 "is less; 5 by "
                 "--recipe published",
                 PNB__RANGE(1, 1024)),
    PNB__ROW_INT("inducing", AT(options.inducing), "M",
                 "grove: inducing points a side; 250, or the number of pairs where that is less",
                 PNB__RANGE(1, 65536)),
    PNB__ROW_CHOICE("fit", AT(options.grove_fit), "HOW",
                    PNB__CHOICES(PNB_GROVE_FIT_LIST(PNB__CHOICE_OF)),
                    "grove: by steps over batches; all pairs at once by the collapsed bound; or by "
                    "exact regression, for a few hundred pairs",
                    .fallback = "steps"),
    PNB__ROW_CHOICE("kernel", AT(options.kernel), "NAME",
                    PNB__CHOICES(PNB_GROVE_KERNEL_LIST(PNB__CHOICE_OF)),
                    "grove: kernel of the processes", .fallback = "rbf"),
    PNB__ROW_CHOICE("align", AT(options.align), "NAME",
                    PNB__CHOICES(PNB_GROVE_ALIGN_LIST(PNB__CHOICE_OF)),
                    "grove: what pulls images and texts of a pair together", .fallback = "kl"),
    PNB__ROW_REAL("elbo-weight", AT(options.elbo_weight), "X",
                  "grove: factor of the bound on the likelihood; 1, the paper has 0.01"),
    PNB__ROW_REAL("align-weight", AT(options.align_weight), "X",
                  "grove: factor of --align; 1, the paper has 400"),
    PNB__ROW_FLAG("shared-covariance", AT(options.shared_covariance),
                  "grove: one covariance of inducing values for all outputs"),
    PNB__ROW_FLAG("per-output", AT(options.per_output),
                  "grove: inducing points and a kernel for each output, and outputs mixed of these "
                  "processes, as the released code"),
    PNB__ROW_CHOICE(
        "latent-uncertainty", AT(options.latent_uncertainty), "HOW",
        PNB__CHOICES(PNB_GROVE_LATENT_LIST(PNB__CHOICE_OF)),
        "grove: what a row's variances get for what is not known of its latent: what "
        "its process says where counterparts of similar rows lie, by how far rows alone "
        "are placed from their pairs, by the likelihood's curvature, or nothing, as the "
        "released code",
        .fallback = "counterparts"),
    PNB__ROW_CHOICE("inference", AT(options.inference), "NAME",
                    PNB__CHOICES(PNB_GROVE_INFERENCE_LIST(PNB__CHOICE_OF)),
                    "grove: how rows find their latents: second-order steps, or the released "
                    "code's 20 steps of Adam from a random point",
                    .fallback = "newton"),
    PNB__ROW_REAL("logit-scale", AT(options.logit_scale), "A",
                  "bayesvlm: what cosines are multiplied by in the loss; the model's by default",
                  PNB__RANGE(1e-6, 1e6)),
    PNB__ROW_REAL("logit-bias", AT(options.logit_bias), "B",
                  "bayesvlm: what is added then, by sigmoids; the model's by default",
                  PNB__RANGE(-1e6, 1e6)),
    PNB__ROW_REAL("prior-precision", AT(options.prior_precision), "LAMBDA",
                  "bayesvlm: of the weights; that of the largest marginal likelihood by default",
                  PNB__RANGE(1e-12, 1e18)),
    PNB__ROW_INT("pseudo-count", AT(options.pseudo_count), "N",
                 "bayesvlm: how many rows those that are learned from count for; as many as they "
                 "are by default, 10 in the paper's scripts",
                 PNB__RANGE(1, 1e12)),
    PNB__ROW_CHOICE("marginal", AT(options.marginal), "WHICH", WORDS(PNB_ADAPT_MARGINAL_LIST),
                    "bayesvlm: the marginal likelihood, or what the code computed at first",
                    .fallback = "corrected"),
    PNB__ROW_FILE("model", AT(model), "DIR",
                  "bayesvlm: the sets are what stood before the last projections of this model; "
                  "without it they are embeddings"),
    PNB__ROW_FILE("hessians", AT(hessians), "DIR",
                  "bayesvlm: released factors, A_img_analytic.pt and the others, in place of those "
                  "of the rows"),
};
#undef AT

static void train_defaults(void *args)
{
    *(pnb__adapt_train_opts *)args = (pnb__adapt_train_opts){.read = pnb_truth_read_opts_default(),
                                                             .options = pnb_adapter_opts_default()};
}

/* What only a method that trains has a use for. */
static bool check_training(pnb__app *app, const pnb__adapt_train_opts *o)
{
    int n_held_out = (o->val_images != NULL) + (o->val_texts != NULL) + (o->val_truth != NULL);
    bool is_run = o->logs != NULL || o->name != NULL || o->resume != NULL;
    if (n_held_out != 0 && n_held_out != 3)
        pnb__usage(app, "--val-images, --val-texts and --val-truth come together");
    else if ((n_held_out > 0 || is_run) && !pnb_adapter_method_find(o->method)->trains)
        pnb__usage(app, "%s reads no held-out rows and keeps no run: it has no use for %s",
                   o->method,
                   n_held_out > 0 ? "--val-images, --val-texts and --val-truth"
                                  : "--logs, --name and --resume");
    else if (o->val_split != NULL && o->val_truth == NULL)
        pnb__usage(app, "--val-split is a part of a --val-truth file, and none is given");
    else if (o->logs == NULL && is_run)
        pnb__usage(app, "--name and --resume speak of a run: give --logs");
    else
        return true;
    return false;
}

static pnb_status run_train(pnb__app *app, void *args, pnb__result *r)
{
    const pnb__adapt_train_opts *o = args;
    pnb_peers_set_timeout(app->ranks, (double)o->rank_timeout);
    if (o->images == NULL && o->texts == NULL)
        return pnb__usage(app, "--images or --texts is needed, or both");
    if (o->truth == NULL && o->read.split != NULL)
        return pnb__usage(app, "--split is a part of a --truth file, and none is given");
    if (o->truth != NULL && (o->images == NULL || o->texts == NULL))
        return pnb__usage(app,
                          "--truth speaks of pictures and captions: give --images and --texts");
    const char *misuse = pnb__fewer_pairs_misuse(&o->fewer, o->truth != NULL, false);
    if (misuse != NULL)
        return pnb__usage(app, "%s", misuse);
    return check_training(app, o) ? pnb__adapt_train(app, o, r) : PNB_ARG;
}

static const pnb__command cmd_train = {
    .name = "train",
    .summary = "learn an adapter from embedding sets",
    .about =
        "The model stays as it is: an adapter is learned from what it embedded, and turns its sets "
        "into distributions. What it makes names it, and is compared only with what went through "
        "it too, or was left alone by it.",
    .examples = "penumbra adapt train --method whitened --images images.safetensors --texts "
                "texts.safetensors --out whitened\n"
                "penumbra adapt train --method conformity --images images.safetensors --texts "
                "texts.safetensors --truth dataset_coco.json --split train --out conformity\n"
                "penumbra adapt train --method asymvlm-vmf --images images.safetensors --texts "
                "raw.safetensors --truth train.pairs --val-images vi.safetensors --val-texts "
                "vt.safetensors --val-truth val.pairs --out asymvlm",
    .defaults = train_defaults,
    .joins = true,
    PNB__RUNS(train_options, pnb__adapt_train_opts, run_train)};

/* ---- apply ---- */

#define AT(field) PNB__FIELD(pnb__adapt_apply_opts, field)
static const pnb__option apply_options[] = {
    PNB__ROW_FILE("adapter", AT(adapter), "DIR", "Folder that adapt train wrote", .required = true),
    PNB__ROW_FILE("images", AT(images), "SET", "Embedding set of pictures"),
    PNB__ROW_FILE("texts", AT(texts), "SET", "Embedding set of captions, in place of pictures"),
    PNB__ROW_FILE("out", AT(out), "FILE", "The set that comes out", .letter = 'o', .required = true,
                  .writes = ".safetensors|.npy"),
};
#undef AT

static pnb_status run_apply(pnb__app *app, void *args, pnb__result *r)
{
    const pnb__adapt_apply_opts *o = args;
    if ((o->images == NULL) == (o->texts == NULL))
        return pnb__usage(app, "one of --images and --texts is needed");
    return pnb__adapt_apply(app, o, r);
}

static const pnb__command cmd_apply = {
    .name = "apply",
    .summary = "put an embedding set through an adapter",
    .about = "Rows, names and everything else of the set stay; the adapter stands at the end of "
             "its chain, as info prints it. Embeddings of other weights than those the adapter was "
             "learned from are refused.",
    .examples = "penumbra adapt apply --adapter whitened --images images.safetensors --out "
                "images.whitened.safetensors",
    PNB__RUNS(apply_options, pnb__adapt_apply_opts, run_apply)};

/* ---- attach ---- */

#define AT(field) PNB__FIELD(pnb__adapt_attach_opts, field)
static const pnb__option attach_options[] = {
    PNB__ROW_REST(
        "folders", AT(folders), "MODEL ADAPTER",
        "The model that made the embeddings, and the folder of what was learned from them",
        .required = true),
    PNB__ROW_FILE("out", AT(out), "DIR", "Folder of the model that both make", .letter = 'o',
                  .required = true, .writes = "/"),
};
#undef AT

static pnb_status run_attach(pnb__app *app, void *args, pnb__result *r)
{
    const pnb__adapt_attach_opts *o = args;
    if (o->folders.n != 2)
        return pnb__usage(app, "a model and an adapter are wanted, %zu names are given",
                          o->folders.n);
    return pnb__adapt_attach(app, o, r);
}

static const pnb__command cmd_attach = {
    .name = "attach",
    .summary = "lay an adapter beside its model: a model of its own",
    .about = "Every command that takes a --model takes what comes out: pictures, captions and "
             "queries go through the adapter, and are compared with what went through it too, or "
             "was left alone by it. An adapter that was learned from another model is refused.",
    .examples = "penumbra adapt attach model whitened --out model-whitened",
    PNB__RUNS(attach_options, pnb__adapt_attach_opts, run_attach)};

/* ---- methods ---- */

static pnb_status run_methods(pnb__app *app, void *args, pnb__result *r)
{
    (void)app, (void)args;
    pnb__adapt_put_methods(r);
    return PNB_OK;
}

static const pnb__command cmd_methods = {
    .name = "methods",
    .summary = "list what adapters learn, by which paper, and what it costs",
    .examples = "penumbra adapt methods",
    .run = run_methods};

static const pnb__command *const subs[] = {
    &cmd_train,   &cmd_apply, &cmd_attach, &pnb__cmd_adapt_compare, &pnb__cmd_adapt_active,
    &cmd_methods, NULL};
const pnb__command pnb__cmd_adapt = {.name = "adapt",
                                     .summary = "turn embeddings of a frozen model into "
                                                "distributions",
                                     .subs = subs};
