/* penumbra eval noise: which scores find captions that were swapped on purpose.
 *
 * Options only: pairs, scores and figures are in noise.c. */
#include "commands/commands.h"
#include "commands/common/option_rows.h"
#include "commands/eval/uncertainty/noise.h"
#include "program/result_end.h"

#define AT(field) PNB__FIELD(pnb__noise_opts, field)
static const pnb__option options[] = {
    PNB__IMAGES_TEXTS_ROWS(AT(images), AT(texts)),
    PNB__ROW_FILE("pairs", AT(pairs), "FILE", "Pairs: picture id, tab, caption id on each line"),
    PNB__ROW_CHOICE(
        "pair-by", AT(pair_by), "HOW", "auto|ids|rows",
        "Who belongs to whom: captions name their picture (ids), or row i and row i; auto, the "
        "default, takes ids when the first caption names a picture"),
    PNB__ROW_TEXT(
        "field", AT(field), "FIELD",
        "Field of the ids files, the pictures' or else the captions', that is 1 (or true) "
        "where the caption is another picture's and 0 elsewhere",
        .fallback = "swapped"),
    PNB__ROW_INT("level", AT(level), "N",
                 "Only captions of this level: general ones may be true of another picture too",
                 PNB__RANGE(0, 7)),
    PNB__ROW_INT("bootstrap", AT(n_resamples), "N",
                 "Resamples of pictures with their pairs for 95% intervals; 0 leaves them out",
                 PNB__RANGE(0, 1000000), .fallback = "1000"),
};
#undef AT

static void defaults(void *args)
{
    *(pnb__noise_opts *)args = (pnb__noise_opts){.level = -1};
}

static pnb_status run(pnb__app *app, void *args, pnb__result *r)
{
    const pnb__noise_opts *o = args;
    if (o->pairs != NULL && o->pair_by != NULL)
        return pnb__usage(app, "--pairs or --pair-by, not both");
    return pnb__noise_run(app, o, r);
}

const pnb__command pnb__cmd_eval_noise = {
    .name = "noise",
    .summary = "see which scores find captions that were swapped on purpose",
    .about =
        "The AUROC of every measure between picture and caption, and of each row's uncertainty, "
        "for telling pairs whose caption is another picture's from the others, with 95% intervals "
        "over pictures. A random score and the number of words stand beside them. Of a model that "
        "was trained on the noisy set this says whether filtering it by that score would help.",
    .examples = "penumbra data corrupt --data shapes/train --swap 0.2 --out noisy\n"
                "penumbra embed -m model --images noisy/train -o i.safetensors\n"
                "penumbra embed -m model --texts noisy/train -o t.safetensors\n"
                "penumbra eval noise --images i.safetensors --texts t.safetensors --level 3",
    .defaults = defaults,
    PNB__RUNS(options, pnb__noise_opts, run)};
