/* penumbra explain: how much uncertainty each word and each patch removes.
 *
 * Options only; the attribution is in src/commands/explain/explain.c, its page in
 * src/commands/explain/explain_page.c. */
#include <string.h>

#include "commands/commands.h"
#include "commands/common/option_rows.h"
#include "commands/explain/explain.h"

struct explain_args {
    const char *model, *tokenizer, *preprocess, *html, *remove;
    pnb__text_list texts, images;
    int64_t cell;
    bool exif;
};

#define AT(field) offsetof(struct explain_args, field)
static const pnb__option options[] = {
    PNB__MODEL_ROW(AT(model)),
    PNB__ROW_LIST("text", AT(texts), "STR...", "Captions",
                  .instead_of_file = "write the captions themselves"),
    PNB__ROW_FILES("images", AT(images), "PATH...", "Pictures, folders or data sets"),
    PNB__ROW_CHOICE(
        "remove", AT(remove), "HOW", "drop|grey",
        "Patches are hidden from the encoder (the default), or filled with the mean colour, "
        "which is faster",
        .group = "How"),
    PNB__ROW_INT("cell", AT(cell), "PATCHES",
                 "Side of a cell that is left out, in patches; 1 by default", PNB__RANGE(1, 4096)),
    PNB__MODEL_PARTS_ROWS(AT(tokenizer), AT(preprocess)),
    PNB__EXIF_ROW(AT(exif)),
    PNB__ROW_FILE("html", AT(html), "FILE", "Write a page with coloured words and heat maps",
                  .group = "Result", .writes = "*"),
};
#undef AT

static pnb_status run(pnb__app *app, const void *args)
{
    const struct explain_args *a = args;
    if (a->texts.n + a->images.n == 0)
        return pnb__usage(app, "--text or --images is wanted");
    if (a->exif && a->images.n == 0)
        return pnb__usage(app, "--exif needs --images");
    if ((a->remove != NULL || a->cell != PNB__INT_UNSET) && a->images.n == 0)
        return pnb__usage(app, "--remove and --cell are about patches: they need --images");
    const pnb__explain_cmd cmd = {.model = a->model,
                                  .tokenizer = a->tokenizer,
                                  .preprocess = a->preprocess,
                                  .texts = &a->texts,
                                  .images = &a->images,
                                  .exif = a->exif,
                                  .removal = a->remove != NULL && strcmp(a->remove, "grey") == 0
                                                 ? PNB__PATCH_GREY
                                                 : PNB__PATCH_DROP,
                                  .cell = a->cell != PNB__INT_UNSET ? (int)a->cell : 1,
                                  .html = a->html};
    pnb__result *r = pnb__result_create();
    pnb_status status = pnb__explain_run(app, &cmd, r);
    return pnb__result_finish(r, app, status);
}

const pnb__command pnb__cmd_explain = {
    .name = "explain",
    .summary = "show how much uncertainty each word or patch removes",
    .about = "Leave-one-out: the uncertainty without a word or patch minus the uncertainty with "
             "all. Positive: the part makes the embedding more certain. H is the inclusion test "
             "of the whole in what is left, positive when the rest still contains it. Without "
             "sampling or gradients: the same input gives the same numbers.",
    .examples = "penumbra explain -m model --text 'a red star above a blue ring'\n"
                "penumbra explain -m model --images cat.jpg --cell 2 --html cat.html",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .args_bytes = sizeof(struct explain_args),
    .run = run};
