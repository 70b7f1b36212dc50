/* Adapters: frozen embeddings in, distributions out.
 *
 * An adapter is learned once from cached embeddings of a model that stays as it is, and turns sets
 * of that model into sets of another family. What a method learns and from what is in the list
 * below; `penumbra adapt methods` prints it. On disk an adapter is a folder: config.json and
 * model.safetensors (docs/formats.md#adapters). What it makes says so: the chain of a set
 * (provenance.h) names the adapter, and only sets of one chain are compared.
 *
 *     pnb_adapter_opts opts = pnb_adapter_opts_default();
 *     pnb_adapter_data data = {.images = images, .texts = texts, .truth = truth};
 *     opts.seed = 1;
 *     if (pnb_adapter_fit(&adapter, ctx, "asymvlm-vmf", &data, &opts, &err) == PNB_OK &&
 *         pnb_adapter_save(adapter, "asymvlm", &err) == PNB_OK)
 *         ... pnb_adapter_apply_to("texts.vmf.safetensors", adapter, PNB_ADAPTER_TEXTS, texts,
 *                                  NULL, &err)
 *     pnb_adapter_free(adapter);
 *
 * Methods come in two kinds. Those that learn in a pass or two over the rows of a side (conformity,
 * whitened) need no pairs. Those that train (`trains` below) put a network on frozen rows and learn
 * from which pictures and captions belong together, in batches: they draw from a seed, may validate
 * on held-out pairs and stop early, and may keep a run in a folder that an interrupted training
 * goes on from. One build with one number of threads gives the same bytes for the same seed, in one
 * piece or resumed. */
#ifndef PENUMBRA_ADAPT_H
#define PENUMBRA_ADAPT_H

#include "penumbra/ctx.h"
#include "penumbra/embeddings.h"
#include "penumbra/peers.h"
#include "penumbra/truth.h"
#include "penumbra/watch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the methods ---- */

/* A method as it is told to people, and what a program must have at hand to learn it. The texts are
 * those of `penumbra adapt methods`; they live as long as the program. */
typedef struct pnb_adapter_about {
    const char *name;      /* "whitened": what pnb_adapter_fit and --method take */
    const char *learns;    /* one sentence: what is learned, and what a row's uncertainty is */
    const char *paper;     /* where it comes from */
    const char *cost;      /* of learning N rows of width D a side, and of applying */
    const char *measure;   /* what its sets are meant to be compared by; an option may change it */
    const char *rows_meet; /* why both sides must have one width, and what option changes that;
                            * NULL: they may have two */
    pnb_family family;     /* of the sets it makes; an option may change it */
    bool needs_both_sides; /* false: each side is learned by itself, and one is enough */
    bool needs_pairs;      /* false: truth only chooses the rows that are learned from */
    bool trains;           /* by steps over batches: it reads held-out rows and keeps a run */
} pnb_adapter_about;

/* The methods in the order of the list, which is that of `penumbra adapt methods`; NULL behind the
 * last one. Names are lower case with '-' between words. */
const pnb_adapter_about *pnb_adapter_method_at(size_t i);
/* Name of option number i that the method reads, a field of pnb_adapter_opts; NULL behind the last.
 */
const char *pnb_adapter_option_at(const pnb_adapter_about *about, size_t i);
/* The method of that name; NULL: none is called so. */
const pnb_adapter_about *pnb_adapter_method_find(const char *name);
/* Whether the method of that name reads an option; '-' and '_' are one in its name. */
bool pnb_adapter_method_reads(const char *method, const char *option);

/* ---- learning ---- */

/* Which rows count as uncertain where a method measures how usual a row is. X(name, text, sentence)
 * rare is the wording of who looks for what a model does not know; common is that of the papers on
 * CLIP's geometry, where what many captions share (a photo) is the uncertain thing. */
#define PNB_ADAPT_UNCERTAIN_LIST(X)                                                                \
    X(RARE, "rare", "rows unlike the others are uncertain")                                        \
    X(COMMON, "common", "rows like all the others are uncertain")
typedef enum pnb_adapt_uncertain {
#define PNB_ADAPT_UNCERTAIN_ENUM(name, text, sentence) PNB_ADAPT_##name,
    PNB_ADAPT_UNCERTAIN_LIST(PNB_ADAPT_UNCERTAIN_ENUM)
#undef PNB_ADAPT_UNCERTAIN_ENUM
        PNB_N_ADAPT_UNCERTAIN
} pnb_adapt_uncertain;

/* How long, how fast and in what batches a method trains. X(name, text, sentence)
 * The papers' values are for hundreds of thousands of pairs: with few, their steps are far too few.
 * Which one was used stands in the adapter and is said when training begins. What a recipe chooses
 * may be given in its place, one by one (lr, batch_size, epochs or steps, hidden, layers). */
#define PNB_ADAPT_RECIPE_LIST(X)                                                                   \
    X(AUTO, "auto", "small below 100,000 pairs, published from there on")                          \
    X(SMALL, "small", "AdamW, small batches, narrow heads: a minute of two cores")                 \
    X(PUBLISHED, "published", "optimiser, rate, batch, epochs and widths of the method's paper")
typedef enum pnb_adapt_recipe {
#define PNB_ADAPT_RECIPE_ENUM(name, text, sentence) PNB_ADAPT_RECIPE_##name,
    PNB_ADAPT_RECIPE_LIST(PNB_ADAPT_RECIPE_ENUM)
#undef PNB_ADAPT_RECIPE_ENUM
        PNB_N_ADAPT_RECIPES
} pnb_adapt_recipe;
#define PNB_ADAPT_SMALL_PAIRS 100000 /* fewer are few */

/* What an epoch goes through. X(name, text, sentence)
 * Where a caption has one picture, as in most sets, each and all are the same pairs; where general
 * captions fit hundreds, all is made of them nearly alone.
 * A pair that the truth names twice is one pair. The order of an epoch is drawn from seed and
 * epoch; an incomplete batch at its end is left out. In a batch every other pair counts as no
 * match, also where the truth knows better: as the released codes have it. */
#define PNB_ADAPT_TEXTS_LIST(X)                                                                    \
    X(EACH, "each", "every caption once an epoch, with one of its pictures, drawn anew")           \
    X(ALL, "all", "every pair of the truth once an epoch")                                         \
    X(ONE, "one", "every picture once an epoch, with one of its captions, drawn anew")
typedef enum pnb_adapt_texts {
#define PNB_ADAPT_TEXTS_ENUM(name, text, sentence) PNB_ADAPT_TEXTS_##name,
    PNB_ADAPT_TEXTS_LIST(PNB_ADAPT_TEXTS_ENUM)
#undef PNB_ADAPT_TEXTS_ENUM
        PNB_N_ADAPT_TEXTS
} pnb_adapt_texts;

/* Where a network that makes captions anew begins. X(name, text, sentence)
 * rows keeps what the frozen model knows: pairs of rectified units hand x = max(0,x) - max(0,-x)
 * on, and the last layer scales it so that the first concentration is that of the mean cosine of
 * pairs; further units begin without a word in the output. Few pairs cannot teach a network what
 * the frozen directions say already. */
#define PNB_ADAPT_START_LIST(X)                                                                    \
    X(AUTO, "auto", "rows in the small recipe where layers are wide enough, else random")          \
    X(ROWS, "rows", "as the frozen rows, which needs hidden layers of twice their width")          \
    X(RANDOM, "random", "as torch's Linear, and so as the papers")
typedef enum pnb_adapt_start {
#define PNB_ADAPT_START_ENUM(name, text, sentence) PNB_ADAPT_START_##name,
    PNB_ADAPT_START_LIST(PNB_ADAPT_START_ENUM)
#undef PNB_ADAPT_START_ENUM
        PNB_N_ADAPT_STARTS
} pnb_adapt_start;

/* What is made of the matrix of scores of a batch. X(name, text, sentence)
 * Both learn a scale of the scores; siglip also a bias, which begins at -log of the batch, and
 * takes the mean score of the batch from all: likelihoods are known up to a constant. */
#define PNB_ADAPT_LOSS_LIST(X)                                                                     \
    X(INFONCE, "infonce", "cross entropy of rows and of columns")                                  \
    X(SIGLIP, "siglip", "a sigmoid for every pair")
typedef enum pnb_adapt_loss {
#define PNB_ADAPT_LOSS_ENUM(name, text, sentence) PNB_ADAPT_LOSS_##name,
    PNB_ADAPT_LOSS_LIST(PNB_ADAPT_LOSS_ENUM)
#undef PNB_ADAPT_LOSS_ENUM
        PNB_N_ADAPT_LOSSES
} pnb_adapt_loss;

/* log C_D(kappa) of a von Mises-Fisher density. X(name, text, sentence)
 * The approximation leaves out a constant of the width, which no ranking sees. Sets made with
 * either name the measure that belongs to it, "vmf" or "vmf_exact". */
#define PNB_ADAPT_NORMALISER_LIST(X)                                                               \
    X(APPROXIMATE, "approximate", "the closed form of AsymVLM's section 4.2")                      \
    X(EXACT, "exact", "by the Bessel function")
typedef enum pnb_adapt_normaliser {
#define PNB_ADAPT_NORMALISER_ENUM(name, text, sentence) PNB_ADAPT_NORMALISER_##name,
    PNB_ADAPT_NORMALISER_LIST(PNB_ADAPT_NORMALISER_ENUM)
#undef PNB_ADAPT_NORMALISER_ENUM
        PNB_N_ADAPT_NORMALISERS
} pnb_adapt_normaliser;

/* AsymVLM's section 5.2. X(name, text, sentence)
 * Which sides are changed, the family of the sets and their measure follow: a set of points that is
 * left alone on one side, gaussian_diag by elk, or points by mean. */
#define PNB_ADAPT_ABLATION_LIST(X)                                                                 \
    X(NONE, "none", "captions are densities on the sphere, pictures points")                       \
    X(IMAGE_SIDE, "image-side", "pictures are the densities, captions points")                     \
    X(SYMMETRIC, "symmetric", "both are densities; the mean of both likelihoods")                  \
    X(GAUSSIAN, "gaussian", "captions are Gaussians of variance 1/kappa around a unit mean")       \
    X(DETERMINISTIC_FT, "deterministic-ft", "captions are points too: the cosine is tuned")
typedef enum pnb_adapt_ablation {
#define PNB_ADAPT_ABLATION_ENUM(name, text, sentence) PNB_ADAPT_ABLATION_##name,
    PNB_ADAPT_ABLATION_LIST(PNB_ADAPT_ABLATION_ENUM)
#undef PNB_ADAPT_ABLATION_ENUM
        PNB_N_ADAPT_ABLATIONS
} pnb_adapt_ablation;

/* ProbVLM's likelihood of generalised Gaussians. X(name, text, sentence)
 * The released residual grows with |m - z| whatever beta is, so beta is learned by the normaliser
 * alone; the density's is what the paper prints. */
#define PNB_ADAPT_LIKELIHOOD_LIST(X)                                                               \
    X(RELEASED, "released", "residual |m - z| / alpha * beta, as the code has it")                 \
    X(TRUE, "true", "residual (|m - z| / alpha)^beta: the density's")
typedef enum pnb_adapt_likelihood {
#define PNB_ADAPT_LIKELIHOOD_ENUM(name, text, sentence) PNB_ADAPT_LIKELIHOOD_##name,
    PNB_ADAPT_LIKELIHOOD_LIST(PNB_ADAPT_LIKELIHOOD_ENUM)
#undef PNB_ADAPT_LIKELIHOOD_ENUM
        PNB_N_ADAPT_LIKELIHOODS
} pnb_adapt_likelihood;

/* grove has a latent point for each pair and, on either side, one sparse Gaussian process with an
 * output for each dimension. A row that is adapted is given the latent that explains it best; its
 * mean and variances are then the process's, so that means change too: compare by w2, and expect
 * R@1 below the frozen model's where Q axes cannot tell rows apart. */

/* How grove is fitted. X(name, text, sentence)
 * steps is what the paper does and what reads batch_size, align, elbo_weight and align_weight. The
 * other two take all pairs at once, have one covariance for all outputs, in closed form at every
 * step, and tie the sides by their latents alone: a step costs N M^2, or N^3 where it is exact. */
#define PNB_GROVE_FIT_LIST(X)                                                                      \
    X(STEPS, "steps", "in batches, with images and texts pulled together: the paper's objective")  \
    X(COLLAPSED, "collapsed", "all pairs at once by the collapsed bound of either side")           \
    X(EXACT, "exact", "the same with an inducing point at every pair: exact regression")
/* Kernels of both processes, over latents; r is the distance over one lengthscale, which is learned
 * as the kernel's scale is, one of each side.
 * - matern32 is (1 + a) exp(-a) with a = sqrt(3) r
 * - matern52 is (1 + a + a^2/3) exp(-a) with a = sqrt(5) r
 * The rougher a kernel is, the less a latent says of the ones around it. cosine needs its jitter:
 * where Q is below M its matrix has no full rank. */
#define PNB_GROVE_KERNEL_LIST(X)                                                                   \
    X(RBF, "rbf", "exp(-r^2/2)")                                                                   \
    X(MATERN32, "matern32", "once differentiable")                                                 \
    X(MATERN52, "matern52", "twice differentiable")                                                \
    X(COSINE, "cosine", "the normalised scalar product; of rank Q")
/* What pulls a pair's two Gaussians together: of means and variances of the processes, without the
 * noise, summed over outputs. Where the means cannot meet, variances grow: that is how training
 * finds which latents are ambiguous. kl and js do not depend on the unit of the
 * embeddings; w2 is taken of embeddings divided by their standard deviation over both sides. */
#define PNB_GROVE_ALIGN_LIST(X)                                                                    \
    X(KL, "kl", "mean of both Kullback-Leibler divergences")                                       \
    X(JS, "js", "mean divergence from the Gaussian between them")                                  \
    X(W2, "w2", "squared 2-Wasserstein distance")
/* How a row that is adapted finds its latent: where its side's process makes it likeliest.
 * newton goes on until a step would change the negative log likelihood by less than 1e-8, at most
 * 50 steps from either of its starts. adam stops after 20 steps, wherever that is: it is there to
 * compare with the release.
 * newton does not depend on the seed; adam draws where it begins from the seed and the row's
 * number, not from the rows beside it. */
#define PNB_GROVE_INFERENCE_LIST(X)                                                                \
    X(NEWTON, "newton", "damped second-order steps from a recogniser and the best inducing point") \
    X(ADAM, "adam", "as the released code: 20 steps of Adam, rate 0.1, from a random point")
/* What a row's variances get for what is not known of its latent (docs/numerics.md#grove). Training
 * knows where rows alone are placed and where their counterparts are: counterparts of vague
 * captions lie far off, and differ. pairs and laplace: J V J^T, J the slopes of the mean by the
 * latent. none leaves what the process itself does not know, and the noise. */
#define PNB_GROVE_LATENT_LIST(X)                                                                   \
    X(LATENT_COUNTERPARTS, "counterparts",                                                         \
      "by what the process says where the other rows of similar pairs lie")                        \
    X(LATENT_PAIRS, "pairs", "by how far latents of a side alone were from those of pairs nearby") \
    X(LATENT_LAPLACE, "laplace", "by the curvature of the row's likelihood")                       \
    X(LATENT_NONE, "none", "a latent counts as known, as in the released code")
#define PNB_GROVE_ENUM(name, text, sentence) PNB_GROVE_##name,
typedef enum pnb_grove_fit { PNB_GROVE_FIT_LIST(PNB_GROVE_ENUM) PNB_N_GROVE_FITS } pnb_grove_fit;
typedef enum pnb_grove_kernel {
    PNB_GROVE_KERNEL_LIST(PNB_GROVE_ENUM) PNB_N_GROVE_KERNELS
} pnb_grove_kernel;
typedef enum pnb_grove_align {
    PNB_GROVE_ALIGN_LIST(PNB_GROVE_ENUM) PNB_N_GROVE_ALIGNS
} pnb_grove_align;
typedef enum pnb_grove_inference {
    PNB_GROVE_INFERENCE_LIST(PNB_GROVE_ENUM) PNB_N_GROVE_INFERENCES
} pnb_grove_inference;
typedef enum pnb_grove_latent {
    PNB_GROVE_LATENT_LIST(PNB_GROVE_ENUM) PNB_N_GROVE_LATENTS
} pnb_grove_latent;
#undef PNB_GROVE_ENUM

/* What the prior precision of a Laplace approximation is chosen by. X(name, text, sentence)
 * p and q are the widths of activations and embeddings, A and B the factors with the prior in them.
 * The released form weighs the factors by each other's width and doubles both: with p = q it is
 * twice the determinant. docs/numerics.md#bayesvlm */
#define PNB_ADAPT_MARGINAL_LIST(X)                                                                 \
    X(CORRECTED, "corrected", "the marginal likelihood: (q log det A + p log det B) / 2")          \
    X(RELEASED, "released", "as BayesVLM's code had it first: p log det A + q log det B")
typedef enum pnb_adapt_marginal {
#define PNB_ADAPT_MARGINAL_ENUM(name, text, sentence) PNB_ADAPT_MARGINAL_##name,
    PNB_ADAPT_MARGINAL_LIST(PNB_ADAPT_MARGINAL_ENUM)
#undef PNB_ADAPT_MARGINAL_ENUM
        PNB_N_ADAPT_MARGINALS
} pnb_adapt_marginal;

/* Options of all methods, as one struct for whoever tries several of them. A method lists those
 * that it reads (pnb_adapter_option_at). One that a method does not read must be left at its
 * default. "chosen" stands for 0, or NaN in a double: the recipe or the method chooses, and the
 * adapter's own opts (pnb_adapter_describe) have what it chose. docs/numerics.md#adapters has the
 * recipes. */
typedef struct pnb_adapter_opts {
    pnb_adapt_uncertain uncertain; /* conformity, whitened: PNB_ADAPT_RARE */
    double shrinkage; /* whitened: share of the mean variance in the covariance, 0 to 1; NaN: that
                       * of Ledoit and Wolf, docs/numerics.md#whitened */

    /* methods that train */
    pnb_adapt_recipe recipe; /* PNB_ADAPT_RECIPE_AUTO */
    pnb_adapt_texts texts;   /* PNB_ADAPT_TEXTS_EACH */
    /* Largest rate of the schedule, a cosine down to 2% (small) or to 1e-6 (published); chosen */
    double lr; /* 0 to 1000 */
    /* Pairs of a step, 2 to 32,768. Chosen: the recipe's, or all pairs where there are fewer; one
     * that was given and is larger than an epoch is refused */
    int64_t batch_size;
    /* Length: one of the two, at most 10^6 epochs or 10^9 steps; chosen where both are 0 */
    int64_t epochs, steps;
    /* Width of the hidden layers, 1 to 65,536; chosen: 512 small, 1,024 published */
    int64_t hidden;
    int64_t layers; /* hidden layers of a head, 1 to 7; chosen: 3. probvlm has its own */
    /* Validations without a lower loss that end a training, of about thirty that a whole one has;
     * 0: none does. 10. Read with held-out pairs only */
    int64_t patience;
    /* Of everything that is drawn: fresh weights, the order of pairs, noise, dropout. 0 */
    uint64_t seed;

    /* Single methods. The words in front name those that read the option; any other one refuses a
     * value that is not the default, and says who reads it. */
    pnb_adapt_loss loss; /* asymvlm-vmf, asymvlm-ps, deterministic: infonce */
    /* asymvlm-vmf, asymvlm-ps, deterministic: auto, of which the adapter keeps what it came to. The
     * first concentration is the family's for the mean cosine of at most 4,096 pairs of the first
     * epoch; pairs of a mean cosine of 0 or less begin at 1. It matters for small sets only: what
     * is learned from enough pairs forgets where it began */
    pnb_adapt_start start;
    pnb_adapt_normaliser normaliser; /* asymvlm-vmf: approximate */
    pnb_adapt_ablation ablation;     /* asymvlm-vmf, asymvlm-ps: none */
    pnb_adapt_likelihood likelihood; /* probvlm: released */
    double cross_modal;              /* probvlm: weight of the other side's target; chosen: 1e-4 */
    double dropout;                  /* probvlm: share dropped, 0 to below 1; chosen: 0.3 */
    int64_t mc_samples; /* probvlm: passes with dropout when applied, for the epistemic part: 15.
                         * 0: one pass without, no epistemic part */
    int64_t samples;    /* pcme: drawn of each row in a step, 1 to 64: 7 */
    double vib;         /* pcme, pcmepp, prolip: weight of the divergence from N(0, I); chosen */
    double pseudo;      /* pcmepp: weight of the pseudo positives; chosen: 0.1 */
    /* grove: Q, axes of the latent space, below the width of either side. More axes explain more of
     * a row and leave fewer rows near each other to learn variances from. 0: 16, or half
     * of the narrower side's width or the smaller one's rows where that is less; the paper's is 5
     * (10 of CUB and Flowers) */
    int64_t latent_dim;
    /* grove: M, inducing points of a side, at most one a pair. 0: 250, or N where that is less */
    int64_t inducing;
    /* grove: PNB_GROVE_STEPS. The last two options say what applying does; an adapter keeps
     * them as it keeps all others */
    pnb_grove_fit grove_fit;
    /* grove: PNB_GROVE_RBF, the form for both sides; each learns its own lengthscale and scale, and
     * the noise of its likelihood */
    pnb_grove_kernel kernel;
    /* grove: PNB_GROVE_KL */
    pnb_grove_align align;
    /* grove: factors of the bound on the likelihood and of align, 0 or more; NaN: 1 each. The
     * paper's are 0.01 and 400, which its rate of 1e-5 never obeys */
    double elbo_weight, align_weight;
    /* grove: one covariance of inducing values for all outputs of a side in place of one each.
     * Without alignment nothing is lost (docs/numerics.md#gaussian-processes), a step costs about a
     * twelfth (D 512, M 250, 64 pairs), and the adapter has D times fewer numbers of this kind */
    bool shared_covariance;
    /* grove: the form of the released code. Every output has inducing points, a kernel and a noise
     * of its own, and outputs are mixed of these processes by a matrix that is learned: D times the
     * factors of k(Z,Z), some ten times the time of a step and, applied, twenty of a row's. Where
     * it begins every process is the shared one and the matrix the unit: docs/numerics.md#grove */
    bool per_output;
    /* grove: PNB_GROVE_LATENT_COUNTERPARTS */
    pnb_grove_latent latent_uncertainty;
    /* grove: PNB_GROVE_NEWTON. Applying reads it, and so it stands in the adapter: rows of one
     * adapter find their latents in one way */
    pnb_grove_inference inference;
    double logit_scale;     /* bayesvlm: of the cosines in the loss, above 0; chosen: the sets' own,
                             * which are their model's, else 100 for infonce */
    double logit_bias;      /* bayesvlm, siglip: chosen: the sets' own */
    double prior_precision; /* bayesvlm: lambda, above 0; chosen: that of the largest marginal
                             * likelihood, or the file's */
    int64_t pseudo_count;   /* bayesvlm: how many rows those of the calibration count for; chosen:
                             * as many as they are, or the file's number */
    pnb_adapt_marginal marginal; /* bayesvlm: corrected */
} pnb_adapter_opts;
pnb_adapter_opts pnb_adapter_opts_default(void);
/* Sets an option by its name (pnb_adapter_option_at; '-' and '_' are one) from a word of its
 * choice, a number or true and false. Whether a method takes the value is said when it is learned.
 * Errors  NOT_FOUND (the method reads none of that name: the text lists those that it reads), ARG
 *         (the value is no such thing), NOMEM */
pnb_status pnb_adapter_opts_set(pnb_adapter_opts *opts, const pnb_adapter_about *about,
                                const char *name, const char *value, pnb_error *err);

/* What is learned from. The sets may be mapped (pnb_embeddings_load_opts.map) and are gone through
 * in blocks: memory does not grow with their rows, but for 8 bytes a row with `truth`, and where a
 * method trains 16 bytes a pair. */
typedef struct pnb_adapter_data {
    const pnb_embeddings *images, *texts; /* one may be NULL where the method does not need it: the
                                           * adapter leaves that side alone then */
    const pnb_truth *truth; /* images ask, texts are found. NULL: all rows; where given, only rows
                             * that have a match are learned from */
    const char *model;      /* bayesvlm: folder of the model before whose last projections the rows
                             * stood:      they are activations. NULL: they are embeddings, and the
                             * projection      is the      identity. Other methods refuse it */
    const char *hessians; /* bayesvlm: a folder of released factors, in place of those of the rows.
                           * NULL: none; other methods refuse it */

    /* The rest is read by methods that train, and passed over by the others.
     *
     * Held-out rows are of the same model and width as those that are learned from, of other
     * pictures: a caption that stands in both tells nothing of what was learned by heart. A
     * validation is of the same batches of their pairs each time, 20 at most, the first pairs twice
     * where the last batch is not full; weights of the lowest loss are those of the adapter. */
    const pnb_embeddings *val_images, *val_texts; /* held out; all three or none */
    const pnb_truth *val_truth; /* the weights of the lowest loss on its pairs are kept */
    const char *logs, *name;    /* the run is the folder <logs>/<name>, as in pnb_train_opts, with
                                 * out.log, results.jsonl and checkpoints; logs NULL: none is kept */
    const char *resume; /* "latest", or a checkpoint's folder: goes on to the same bits. Options and
                         * data must be those of the run */
    size_t n_passes;  /* forward passes of a step, which divide batch_size evenly: the same bits for
                       * any number of processes; 0: one in each */
    pnb_peers *ranks; /* the processes that learn together (penumbra/peers.h); NULL: this one.
                       * Methods that train heads alone have a use for these two */
    pnb_watch watch;  /* steps; one that stops leaves a checkpoint where a run is kept */
} pnb_adapter_data;

/* A method with what it learned. Opaque. Applying one from several threads is safe; nothing changes
 * it. */
typedef struct pnb_adapter pnb_adapter;

/* Learns an adapter. `ctx` gives threads and must outlive it; `opts` may be NULL. Free with
 * pnb_adapter_free.
 * Errors  NOT_FOUND (no such method: the text lists them), ARG (a side or the truth is missing, an
 *         option the method does not read or outside its range, sets of chains that do not agree or
 *         of the other modality), SHAPE (sides of two widths where rows_meet, truth of other rows),
 *         NUMERIC (a value that is not finite, a row of length 0, rows that are all the same: the
 *         text says what cannot be computed), NOMEM. Methods that train also: those of pnb_train
 *         for the run, INTERRUPTED, ARG (fewer than two pairs, a batch larger than the set) */
pnb_status pnb_adapter_fit(pnb_adapter **out, const pnb_ctx *ctx, const char *method,
                           const pnb_adapter_data *data, const pnb_adapter_opts *opts,
                           pnb_error *err);
void pnb_adapter_free(pnb_adapter *adapter); /* NULL is fine */

/* ---- files ---- */

/* Writes the folder, which is made when it is not there: both files appear or none. An adapter that
 * lies there is replaced, the config.json of anything else is not.
 * Errors  EXISTS (something else lies there), IO, NOMEM */
pnb_status pnb_adapter_save(const pnb_adapter *adapter, const char *dir, pnb_error *err);
/* Errors  NOT_FOUND, IO, FORMAT (broken, not an adapter, arrays of another writing), UNSUPPORTED (a
 *         version or method that this program does not know), NUMERIC (an array that cannot be
 *         applied), LIMIT, NOMEM */
pnb_status pnb_adapter_load(pnb_adapter **out, const pnb_ctx *ctx, const char *dir, pnb_error *err);
/* Whether the folder's config.json says that it is an adapter's; a broken one, or none, does not.
 * A model's folder has files of the same names: programs that take either ask this first.
 * Errors  NOMEM alone */
pnb_status pnb_adapter_is_dir(bool *is_adapter, const char *dir, pnb_error *err);

/* ---- applying ---- */

/* Which of the two kinds of rows are meant: those of modality "image" or those of "text". Sets
 * whose modality is unknown are taken at the caller's word. */
typedef enum pnb_adapter_side {
    PNB_ADAPTER_IMAGES,
    PNB_ADAPTER_TEXTS,
    PNB_N_ADAPTER_SIDES
} pnb_adapter_side;

/* A number that learning came to, for people, under an identifier as its name: a share that was
 * chosen, the length of a mean. Of a side it begins with "image_" or "text_". Methods that train
 * tell steps, loss (of the last batch) and, with held-out pairs, val_loss and best_step, the step
 * whose weights were kept. A later method may tell any; none is needed to apply the adapter. */
typedef struct pnb_adapter_figure {
    char name[32];
    double value; /* finite */
} pnb_adapter_figure;

/* What an adapter is and what it was learned from. Everything pointed to belongs to the adapter and
 * lives as long as it does. */
typedef struct pnb_adapter_facts {
    const pnb_adapter_about *about;
    const pnb_adapter_opts *opts;
    pnb_family family;            /* of the sets it makes */
    const char *measure;          /* what its sets are compared by */
    const pnb_adapter_link *link; /* what chains get: sha256 is that of config.json, in which stands
                                   * one of the arrays */
    struct {
        bool is_adapted;                   /* false: rows of this side are left alone */
        size_t dim, n_rows;                /* width, and the rows it was learned from */
        size_t dim_out;                    /* width of the rows it makes */
        const pnb_embeddings_info *origin; /* the chain and preprocessing of those rows */
    } side[PNB_N_ADAPTER_SIDES];
    const pnb_adapter_figure *figures; /* [n_figures] in the order in which they were found */
    size_t n_figures;
} pnb_adapter_facts;
void pnb_adapter_describe(const pnb_adapter *adapter, pnb_adapter_facts *out);

/* A set of the adapter's family with the rows, names and info of `set`, and the adapter at the end
 * of its chain. conformity and whitened keep the means as they are: ranking by mean does not
 * change; pfe, pcme, pcmepp and prolip keep their directions.
 * Errors  ARG (this side is left alone, the other modality, embeddings of another chain than it was
 *         learned from: the text has both), SHAPE (width), NUMERIC, LIMIT, NOMEM */
pnb_status pnb_adapter_apply(pnb_embeddings **out, const pnb_adapter *adapter,
                             pnb_adapter_side side, const pnb_embeddings *set, pnb_error *err);
/* The same into a file, `path` ending in ".safetensors", with a block of rows in memory at a time.
 * A step of the watch is a row; watch may be NULL. There is no file unless all rows are in it.
 * Errors  also those of pnb_embeddings_save, INTERRUPTED */
pnb_status pnb_adapter_apply_to(const char *path, const pnb_adapter *adapter, pnb_adapter_side side,
                                const pnb_embeddings *set, const pnb_watch *watch, pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
