/* penumbra adapt active: options.
 *
 * active.c does the work. Pool and test come as two groups of the same; rounds are counted in
 * pictures, because that is what somebody labels. */
#include <string.h>

#include "adapt/adapters.def"
#include "base/base.h"
#include "commands/adapt/active.h"
#include "commands/commands.h"
#include "commands/common/option_rows.h"

#define METHOD_WORD(name, word, ...) "|" word

#define AT(field) PNB__FIELD(pnb__adapt_active_opts, field)
static const pnb__option options[] = {
    PNB__ROW_FILES("adapters", AT(adapters), "DIR...",
                   "Adapters learned on other data, whose uncertainty chooses"),
    PNB__ROW_LIST("methods", AT(methods), "NAME...",
                  "Methods learned anew in each round, from what is labelled: they need --start"),
    PNB__ROW_FILE("images", AT(pool.images), "SET", "Pictures of the pool", .required = true),
    PNB__ROW_FILE("texts", AT(pool.texts), "SET", "Captions of the pool", .required = true),
    PNB__ROW_FILE("truth", AT(pool.truth), "FILE",
                  "What belongs together among them, which labelling a picture tells"),
    PNB__ROW_CHOICE("truth-format", AT(read.format), "NAME",
                    PNB__CHOICES(PNB_TRUTH_FORMAT_LIST(PNB__CHOICE_OF)), "Format of both truths",
                    .fallback = "auto"),
    PNB__ROW_TEXT("split", AT(split), "NAME", "Split of --truth, where it has several"),
    PNB__ROW_FILE("test-images", AT(test.images), "SET", "Pictures that are measured on",
                  .group = "Measured", .required = true),
    PNB__ROW_FILE("test-texts", AT(test.texts), "SET", "Captions that are measured on",
                  .required = true),
    PNB__ROW_FILE("test-truth", AT(test.truth), "FILE", "What belongs together among them"),
    PNB__ROW_TEXT("test-split", AT(test_split), "NAME", "Split of --test-truth"),
    PNB__ROW_INT("start", AT(start), "N", "Pictures labelled at random before the first round",
                 PNB__RANGE(0, 1e9), .fallback = "0", .group = "Rounds"),
    PNB__ROW_INT("count", AT(count), "N", "Pictures labelled in a round", PNB__RANGE(1, 1e9),
                 .fallback = "500", .letter = 'n'),
    PNB__ROW_INT("rounds", AT(n_rounds), "N", "Rounds", PNB__RANGE(1, 10000), .fallback = "5"),
    PNB__ROW_INT("seeds", AT(n_seeds), "N", "Whole loops of every strategy, from --seed on",
                 PNB__RANGE(1, 1000), .fallback = "3"),
    PNB__ROW_CHOICE("tune", AT(tune), "NAME", PNB__CHOICES(PNB__ADAPTERS(METHOD_WORD)),
                    "Method that is learned from what is labelled and measured",
                    .fallback = "deterministic"),
    PNB__ROW_CHOICE("recipe", AT(recipe), "NAME",
                    PNB__CHOICES(PNB_ADAPT_RECIPE_LIST(PNB__CHOICE_OF)),
                    "Optimiser, rate, batch and epochs of what is learned", .fallback = "auto"),
    PNB__ROW_INT("steps", AT(steps), "N", "Steps in place of the recipe's epochs",
                 PNB__RANGE(0, 1e9), .fallback = "0"),
    PNB__ROW_FILE("csv", AT(csv), "FILE.csv", "Write the curves", .group = "Result", .writes = "*"),
};
#undef AT

static void defaults(void *args)
{
    *(pnb__adapt_active_opts *)args =
        (pnb__adapt_active_opts){.read = pnb_truth_read_opts_default()};
}

static pnb_status run(pnb__app *app, void *args, pnb__result *r)
{
    pnb__adapt_active_opts *o = args;
    o->seed = (uint64_t)app->common.seed;
    if (o->adapters.n + o->methods.n == 0)
        return pnb__usage(app, "--adapters or --methods is wanted: random choice is beside them "
                               "anyway");
    if (o->methods.n > 0 && o->start < 2)
        return pnb__usage(app, "--methods learn from what is labelled: --start 2 or more");
    if (o->split != NULL && o->pool.truth == NULL)
        return pnb__usage(app, "a split is a part of a truth file, and none is given");
    if (o->test_split != NULL && o->test.truth == NULL)
        return pnb__usage(app, "a split is a part of a truth file, and none is given");
    return pnb__adapt_active(app, o, r);
}

const pnb__command pnb__cmd_adapt_active = {
    .name = "active",
    .summary = "label the uncertain first: R@1 round by round, beside random choice",
    .about = "Active learning on frozen embeddings, as in GroVE's section 4.3. A round labels the "
             "most uncertain pictures of the pool with their captions; then an adapter is "
             "fine-tuned contrastively on all that is labelled and R@1 of the test sets is taken. "
             "Uncertainty is that of adapters learned elsewhere, or of methods learned from what "
             "is labelled. The curve of random choice stands first, and the others are compared "
             "with it.",
    .examples = "penumbra adapt active --adapters grove-coco --images pool.i.safetensors --texts "
                "pool.t.safetensors --truth pool.pairs --test-images test.i.safetensors "
                "--test-texts test.t.safetensors --test-truth test.pairs --rounds 8",
    .defaults = defaults,
    PNB__RUNS(options, pnb__adapt_active_opts, run)};
