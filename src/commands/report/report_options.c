/* penumbra report: one HTML page about a run and its embeddings.
 *
 * Options only; sections and plots are src/commands/report/report_internal.h. */
#include "commands/commands.h"
#include "commands/eval/retrieval_args.h"
#include "commands/report/report.h"
#include "program/result_end.h"

struct report_args {
    pnb__report_opts job;
    pnb__retrieval_args retrieval; /* into the job behind the words */
};

#define AT(field) PNB__FIELD(struct report_args, job.field)
#define AT_RETRIEVAL(field) PNB__FIELD(struct report_args, retrieval.field)
static const pnb__option options[] = {
    PNB__ROW_FILE("out", AT(out), "FILE", "HTML page to write", .letter = 'o', .required = true,
                  .writes = "*"),
    PNB__ROW_TEXT("title", AT(title), "STR", "Heading of the page", .fallback = "Penumbra report"),
    PNB__ROW_FILE("run", AT(run), "DIR", "Run directory of a training (LOGS/NAME): loss curves",
                  .group = "Inputs"),
    PNB__ROW_FILE("images", AT(sets.images), "SET", "Embedding set of the pictures"),
    PNB__ROW_FILE("texts", AT(sets.texts), "SET",
                  "Embedding set of the captions, with levels where known"),
    PNB__RETRIEVAL_ROWS(AT_RETRIEVAL),
    PNB__CLAIMS_MASKED_ROWS(AT(sets.masked_images), AT(sets.masked_texts)),
    PNB__ROW_FILE(
        "null-texts", AT(null_texts), "SET",
        "Texts that say nothing, as `embed --text '' 'a picture'`: the first is the root of "
        "traversals, the others are dummy prompts for none of the above"),
    PNB__ROW_FILES("methods", AT(methods), "FOLDER...",
                   "Folders of `adapt compare` measured on the same captions: their methods and "
                   "controls against the known ambiguity of captions; what stands in several is "
                   "the last one's"),
    PNB__ROW_TEXT("text-entropy", AT(text_entropy), "FIELD",
                  "That ambiguity, a number of the captions' ids files",
                  .fallback = "entropy_bits"),
    PNB__CLAIMS_CONTROL_ROWS(AT(control.images), AT(control.texts), AT(control.masked_images),
                             AT(control.masked_texts)),
    PNB__RETRIEVAL_UNCERTAINTY_ROWS(AT_RETRIEVAL),
    PNB__RETRIEVAL_RESULT_ROWS(AT_RETRIEVAL),
    PNB__ROW_INT("examples", AT(n_examples), "N", "Pictures, captions and queries in each gallery",
                 PNB__RANGE(1, 200), .fallback = "8", .group = "What is shown"),
};
#undef AT
#undef AT_RETRIEVAL

static void defaults(void *args)
{
    *(struct report_args *)args = (struct report_args){.retrieval = pnb__retrieval_args_default()};
}

static pnb_status run(pnb__app *app, void *args, pnb__result *r)
{
    struct report_args *a = args;
    pnb__report_opts *o = &a->job;
    if (o->run == NULL && o->sets.texts == NULL)
        return pnb__usage(app, "--run, or --texts with --images, is wanted");
    if (o->sets.images != NULL && o->sets.texts == NULL)
        return pnb__usage(app, "--images needs --texts");
    if (o->methods.n > 0 && (o->sets.images == NULL || a->retrieval.job.truth == NULL))
        return pnb__usage(app, "--methods needs --images, --texts and --truth");
    pnb_status status = pnb__retrieval_args_read(app, &a->retrieval, NULL);
    if (status != PNB_OK)
        return status;
    o->retrieval = a->retrieval.job;
    o->files = a->retrieval.files;
    o->sets.truth = o->retrieval.truth;
    o->sets.read = o->retrieval.read;
    if (o->sets.images == NULL &&
        (o->files.csv != NULL || o->files.markdown != NULL || o->files.output != NULL))
        return pnb__usage(app, "--csv, --markdown and --output are of the figures of --images and "
                               "--texts");
    return pnb__report_write(app, o, r);
}

const pnb__command pnb__cmd_report = {
    .name = "report",
    .summary = "write one HTML page that shows what was learned",
    .about = "The page opens with one question, what was found, how sure that was and how often "
             "such answers are right, counted on questions that the fit has not seen; then one "
             "that is rightly not answered (less than half sure). Pictures are asked which caption "
             "of the first level that divides them they are; without such a level captions search "
             "pictures. The example is the middle one of the right answers in the surest third. "
             "Sets that cannot be fitted (fewer than 40 questions, answers no better than chance, "
             "none half sure) open with retrieval. Then the methods of a comparison against known "
             "ambiguity, the caption that works best beside the one that fails worst, retrieval "
             "examples, uncertainty of "
             "pictures and of captions by level, the most and least certain, recall by bins of "
             "uncertainty, risk and coverage, reliability of probabilities, zero-shot classes "
             "with none of the above, captions on the way to the root, a 2-D view with confidence "
             "ellipses, every figure with its interval, and loss curves. --level chooses the "
             "captions of "
             "the figures and the examples, the other views show all. The page needs nothing "
             "else, no network and no script: pictures are inside, and every plot can be saved as "
             "SVG and its data as CSV.",
    .examples = "penumbra report --run logs/first --images images.safetensors "
                "--texts texts.safetensors --truth shapes/truth/test.pairs --out report.html",
    .defaults = defaults,
    PNB__RUNS(options, struct report_args, run)};
