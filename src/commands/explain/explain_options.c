/* penumbra explain: how much uncertainty each word and each patch removes.
 *
 * Options only; the attribution is in src/commands/explain/explain.c, its page in
 * src/commands/explain/explain_page.c. */
#include <string.h>

#include "commands/commands.h"
#include "commands/common/option_rows.h"
#include "commands/explain/explain.h"

#define AT(field) PNB__FIELD(pnb__explain_cmd, field)
static const pnb__option options[] = {
    PNB__MODEL_ROW(AT(model)),
    PNB__ROW_LIST("text", AT(texts), "STR...", "Captions",
                  .instead_of_file = "write the captions themselves"),
    PNB__ROW_FILES("images", AT(images), "PATH...", "Pictures, folders or data sets"),
    PNB__ROW_CHOICE(
        "remove", AT(removal), "HOW", "drop|grey",
        "Patches are hidden from the encoder (the default), or filled with the mean colour, "
        "which is faster and the only way with a convolution",
        .group = "How"),
    PNB__ROW_INT("cell", AT(cell), "PATCHES",
                 "Side of a cell that is left out, in patches, of a convolution in eighths of the "
                 "picture; 1 by default",
                 PNB__RANGE(1, 4096)),
    PNB__MODEL_PARTS_ROWS(AT(tokenizer), AT(preprocess)),
    PNB__EXIF_ROW(AT(exif)),
    PNB__ROW_FILE("html", AT(html), "FILE", "Write a page with coloured words and heat maps",
                  .group = "Result", .writes = "*"),
};
#undef AT

static void defaults(void *args)
{
    *(pnb__explain_cmd *)args =
        (pnb__explain_cmd){.removal = PNB__PATCH_USUAL}; /* and 0 cells: nothing was given */
}

static pnb_status run(pnb__app *app, void *args, pnb__result *r)
{
    pnb__explain_cmd *cmd = args;
    bool says_how = cmd->removal != PNB__PATCH_USUAL || cmd->cell > 0;
    if (cmd->texts.n + cmd->images.n == 0)
        return pnb__usage(app, "--text or --images is wanted");
    if (cmd->exif && cmd->images.n == 0)
        return pnb__usage(app, "--exif needs --images");
    if (says_how && cmd->images.n == 0)
        return pnb__usage(app, "--remove and --cell are about patches: they need --images");
    cmd->cell = PNB_MAX(cmd->cell, 1);
    return pnb__explain_run(app, cmd, r);
}

const pnb__command pnb__cmd_explain = {
    .name = "explain",
    .summary = "show how much uncertainty each word or patch removes",
    .about = "Leave-one-out: the uncertainty without a word or patch minus the uncertainty with "
             "all. Positive: the part makes the embedding more certain. H is the inclusion test "
             "of the whole in what is left, positive when the rest still contains it, and the "
             "KL difference is KL(whole||rest) - KL(rest||whole), negative then; densities on the "
             "sphere have neither. A model with an adapter beside it is read behind the "
             "adapter. Without sampling or gradients: the same input gives the same numbers.",
    .examples = "penumbra explain -m model --text 'a red star above a blue ring'\n"
                "penumbra explain -m model --images cat.jpg --cell 2 --html cat.html",
    .defaults = defaults,
    PNB__RUNS(options, pnb__explain_cmd, run)};
