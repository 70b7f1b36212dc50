/* penumbra data ambiguous: embeddings whose ambiguity is known.
 *
 * Options and the table of what was made; concepts, rows and files are src/data's. */
#include "base/base.h"
#include "commands/commands.h"
#include "commands/data/data_stats.h"
#include "penumbra/ambiguous.h"

struct ambiguous_args {
    const char *out, *family;
    pnb_ambiguous_opts job;
};

#define AT(field) PNB__FIELD(struct ambiguous_args, field)
static const pnb__option options[] = {
    PNB__MADE_OUT_ROW(AT(out)),
    PNB__ROW_INT("n", AT(job.n_images), "N", "Pictures over all splits", PNB__RANGE(1, 1e8),
                 .fallback = "5000"),
    PNB__ROW_INT("dim", AT(job.dim), "D", "Width of the pictures' embeddings, and of the captions'",
                 PNB__RANGE(2, 65536), .fallback = "64"),
    PNB__ROW_INT("text-dim", AT(job.text_dim), "D",
                 "Another width of the captions, by a fixed random map; 0 is the same",
                 PNB__RANGE(0, 65536), .fallback = "0"),
    PNB__ROW_CHOICE("family", AT(family), "NAME", "vmf|power_spherical|gaussian_diag|gen_gaussian",
                    "Family of the pictures below a concept", .fallback = "vmf"),
    PNB__MADE_SPLIT_ROWS("pictures", AT(job.val_share), AT(job.test_share)),
    PNB__ROW_INT("levels", AT(job.n_levels), "N", "Levels of generality",
                 PNB__RANGE(1, PNB_SYNTH_N_LEVELS), .fallback = "4", .group = "Concepts"),
    PNB__ROW_INT("roots", AT(job.n_roots), "N", "Concepts of level 0", PNB__RANGE(1, 1e6),
                 .fallback = "8"),
    PNB__ROW_INT("branches", AT(job.n_branches), "N", "Children of a concept, on average",
                 PNB__RANGE(2, 65535), .fallback = "4"),
    PNB__ROW_REAL("cosine-general", AT(job.cosine_general), "COSINE",
                  "Of a picture to the widest concept it fits, on average", PNB__RANGE(0, 1),
                  .fallback = "0.2"),
    PNB__ROW_REAL("cosine-specific", AT(job.cosine_specific), "COSINE",
                  "Of a picture to the narrowest one; between them by the log of how many pictures "
                  "a concept holds",
                  PNB__RANGE(0, 1), .fallback = "0.6"),
    PNB__ROW_REAL("spread", AT(job.spread), "SHARE",
                  "How far concepts of a level differ in how many children and pictures they have; "
                  "0: not at all",
                  PNB__RANGE(0, 1), .fallback = "0.5"),
    PNB__ROW_INT("texts", AT(job.n_texts), "N",
                 "Captions of a level in a split, shared by its concepts", PNB__RANGE(1, 1e8),
                 .fallback = "1280", .group = "Frozen embeddings"),
    PNB__ROW_REAL("wording", AT(job.wording), "COSINE",
                  "Of a caption to its concept's direction, on average", PNB__RANGE(0, 1),
                  .fallback = "0.98"),
    PNB__ROW_REAL("hint", AT(job.hint), "WEIGHT",
                  "How loud a caption's wording tells of its generality; 0: it must be found from "
                  "the direction alone",
                  PNB__RANGE(0, 1000), .fallback = "0.5"),
    PNB__ROW_REAL("length", AT(job.length), "LENGTH", "Typical length of an embedding",
                  PNB__RANGE(1e-6, 1e6), .fallback = "1"),
    PNB__ROW_REAL("length-spread", AT(job.length_spread), "S",
                  "Standard deviation of the log of lengths, which tell nothing", PNB__RANGE(0, 3),
                  .fallback = "0.1"),
};
#undef AT

static void defaults(void *args)
{
    *(struct ambiguous_args *)args = (struct ambiguous_args){.job = pnb_ambiguous_opts_default()};
}

static pnb_status run(pnb__app *app, void *args, pnb__result *r)
{
    struct ambiguous_args *a = args;
    pnb_synth_stats stats = {0};
    if (pnb__data_check_shares(app, a->job.val_share, a->job.test_share) != PNB_OK)
        return app->err.status;
    if (!(a->job.cosine_general < a->job.cosine_specific))
        return pnb__usage(app, "--cosine-general must be below --cosine-specific");
    (void)pnb_family_from_name(&a->job.family, a->family);
    a->job.seed = (uint64_t)app->common.seed;
    pnb_status status = pnb_synth_ambiguous(app->ctx, &a->job, a->out, &stats, &app->err);
    if (status == PNB_OK)
        pnb__data_put_stats(a->out, &stats, (int)a->job.n_levels, r);
    return status;
}

const pnb__command pnb__cmd_data_ambiguous = {
    .name = "ambiguous",
    .summary = "make embedding sets of concepts whose concentration is known",
    .about =
        "A tree of concepts on the sphere: pictures are drawn below its leaves, captions name a "
        "concept of any level, and fit every picture below it. Writes images, texts and known "
        "(the captions as the distributions they stand for) for each split, and the exact truth. "
        "`adapt compare --known` scores methods against it.",
    .examples = "penumbra data ambiguous --out ambiguous\n"
                "penumbra data ambiguous --out wide --n 500000 --dim 768 --seed 1",
    .defaults = defaults,
    PNB__RUNS(options, struct ambiguous_args, run)};
