/* penumbra eval vqa: accuracy and calibration of candidate answers to visual questions.
 *
 * Options only; reading and printing are in src/commands/eval/vqa/eval_vqa.c, the figures in
 * src/eval/zeroshot/vqa_score.c. */
#include <math.h>
#include <string.h>

#include "commands/commands.h"
#include "commands/common/option_rows.h"
#include "commands/eval/vqa/eval_vqa.h"
#include "prob/choices.h"
#include "program/result_end.h"

#define AT(field) PNB__FIELD(pnb__vqa_opts, field)
static const pnb__option options[] = {
    PNB__ROW_FILE("questions", AT(questions), "FILE.jsonl",
                  "One question a line: candidates, answers of people, and scores or uncertainties",
                  .required = true),
    PNB__ROW_FILE("images", AT(images), "SET",
                  "Embedding set of the pictures, found by the question's \"image\"",
                  .group = "Figures of the candidates from embeddings, not from the file"),
    PNB__ROW_FILE(
        "texts", AT(texts), "SET",
        "Embedding set of the candidates; candidate k (from 0) of question q is row \"q#k\""),
    PNB__ROW_CHOICE("measure", AT(measure), "NAME", PNB__CHOICES(PNB__MEASURE_CHOICES),
                    "Measure between picture and candidate; csd by default",
                    .names = PNB__MEASURE_NAMES),
    PNB__MATCH_ROWS(AT(match.n_samples), AT(match.a), AT(match.b)),
    PNB__ROW_CHOICE(
        "confidence-of", AT(confidence_of), "WHAT", "candidate|pair",
        "u(a): the uncertainty of the candidate's embedding (the default), or minus the score "
        "of the pair"),
    PNB__ROW_CHOICE(
        "uncertainty", AT(uncertainty), "NAME", PNB__CHOICES(PNB__VARIANCE_UNCERTAINTY_CHOICES),
        "Scalar uncertainty of a Gaussian row; trace by default", .names = PNB__UNCERTAINTY_NAMES),
    PNB__ROW_CHOICE(
        "votes", AT(votes.simple), "HOW", "subsets|simple",
        "Share of right for m equal answers: min(m/3, 1) averaged over leaving each person "
        "out, as VQA's evaluation does, or of all people at once",
        .fallback = "subsets", .group = "How"),
    PNB__ROW_FLAG("exact", AT(votes.exact),
                  "Compare answers letter by letter, without bringing them into one form"),
    PNB__ROW_INT("bins", AT(n_bins), "N", "Bins of confidence", PNB__RANGE(1, 256),
                 .fallback = "10"),
    PNB__ROW_CHOICE("bins-by", AT(equal_count), "HOW", "width|count",
                    "Bins of equal width, or of equal numbers of questions", .fallback = "width"),
    PNB__ROW_INT("resamples", AT(n_resamples), "N",
                 "Bootstrap resamples of the 95% intervals; 0 leaves them out", PNB__RANGE(0, 1e6),
                 .fallback = "1000"),
    PNB__ROW_TEXT("cluster", AT(cluster), "KEY",
                  "Resample the questions with the same value of this field together; the picture "
                  "(image or image_id) by default, since questions about one picture are right and "
                  "wrong together"),
    PNB__ROW_FILE("out", AT(out), "FILE.jsonl", "Answer, confidence and accuracy of every question",
                  .group = "Result", .letter = 'o', .writes = "*"),
};
#undef AT

/* What belongs to the sets, and is not given, holds a number behind the last. */
static void defaults(void *args)
{
    *(pnb__vqa_opts *)args = (pnb__vqa_opts){.measure = PNB_N_MEASURES,
                                             .match = {.a = NAN, .b = NAN},
                                             .uncertainty = PNB_N_UNCERTAINTIES};
}

static pnb_status run(pnb__app *app, void *args, pnb__result *r)
{
    pnb__vqa_opts *o = args;
    bool is_told = o->measure != PNB_N_MEASURES || o->confidence_of != NULL ||
                   o->uncertainty != PNB_N_UNCERTAINTIES || o->match.n_samples > 0 ||
                   !isnan(o->match.a) || !isnan(o->match.b);
    if ((o->images == NULL) != (o->texts == NULL))
        return pnb__usage(app, "--images and --texts belong together");
    if (o->images == NULL && is_told)
        return pnb__usage(app, "--measure, its constants, --confidence-of and --uncertainty need "
                               "--images and --texts: without them the figures are the file's");
    if (o->confidence_of == NULL)
        o->confidence_of = "candidate";
    if (o->measure == PNB_N_MEASURES)
        o->measure = PNB_MEASURE_CSD;
    if (o->uncertainty == PNB_N_UNCERTAINTIES)
        o->uncertainty = PNB_UNCERTAINTY_TRACE;
    return pnb__vqa_run(app, o, r);
}

const pnb__command pnb__cmd_eval_vqa = {
    .name = "vqa",
    .summary = "score candidate answers to visual questions",
    .about =
        "The candidate with the best score answers; its confidence is 1 - softmax(u) over the "
        "question's candidates, its accuracy the soft vote of the people asked. Reports "
        "accuracy, the expected calibration error between the two, and both by type of answer. "
        "Without uncertainties u is minus the score; without scores the most certain candidate "
        "answers. `embed --texts` on the file of questions embeds their candidates under the "
        "names that --texts wants.",
    .examples = "penumbra eval vqa --questions val.jsonl\n"
                "penumbra embed -m model --texts val.jsonl -o candidates.safetensors\n"
                "penumbra eval vqa --questions val.jsonl --images i.safetensors --texts "
                "candidates.safetensors --measure w2 --json",
    .defaults = defaults,
    PNB__RUNS(options, pnb__vqa_opts, run)};
