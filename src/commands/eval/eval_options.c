/* penumbra eval: the family of commands, and what learned uncertainty shows (eval uncertainty).
 *
 * Options only: the figures are put together in src/commands/report/uncertainty_report.c. eval
 * retrieval and eval compare are in eval_retrieval.c. */
#include "commands/commands.h"
#include "commands/common/option_rows.h"
#include "commands/report/uncertainty_report.h"
#include "program/result_end.h"

/* ---- uncertainty ---- */

struct uncertainty_args {
    pnb__uncertainty_report_sets model, control;
};

#define AT(field) PNB__FIELD(struct uncertainty_args, field)
static const pnb__option uncertainty_options[] = {
    PNB__ROW_FILE("texts", AT(model.texts), "SET", "Embedding set of the captions, with levels",
                  .required = true),
    PNB__ROW_FILE("images", AT(model.images), "SET", "Embedding set of the pictures"),
    PNB__ROW_FILE("truth", AT(model.truth), "PAIRS", "True pairs of picture and caption"),
    PNB__CLAIMS_MASKED_ROWS(AT(model.masked_images), AT(model.masked_texts)),
    PNB__CLAIMS_CONTROL_ROWS(AT(control.images), AT(control.texts), AT(control.masked_images),
                             AT(control.masked_texts)),
};
#undef AT

static pnb_status run_uncertainty(pnb__app *app, void *args, pnb__result *r)
{
    const struct uncertainty_args *a = args;
    pnb__uncertainty_report_sets control_sets = a->control;
    pnb__uncertainty_report claims, control;
    bool has_control = control_sets.texts != NULL;
    control_sets.truth = control_sets.images != NULL ? a->model.truth : NULL;
    if (!has_control && (control_sets.images != NULL || control_sets.masked_images != NULL ||
                         control_sets.masked_texts != NULL))
        return pnb__usage(app, "a control needs --control-texts");
    pnb_status status = pnb__uncertainty_report_measure(app, &a->model, &claims);
    if (status == PNB_OK && has_control)
        status = pnb__uncertainty_report_measure(app, &control_sets, &control);
    if (status == PNB_OK)
        pnb__uncertainty_report_show(&claims, has_control ? &control : NULL, r);
    return status;
}

static const pnb__command uncertainty = {
    .name = "uncertainty",
    .summary = "measure what the learned uncertainty shows, beside a control",
    .about =
        "Mean uncertainty by caption level and the order of levels, with --truth how likely the "
        "captions of a level find their pictures (the score of true pairs by the measure of "
        "the sets), whether masked copies "
        "are more uncertain than their originals and include them. What has no set is left "
        "out. The control is the same measurement on a model whose log-variance head was "
        "never trained: the difference is what training taught.",
    .examples = "penumbra eval uncertainty --texts texts.safetensors --images images.safetensors "
                "--truth shapes/truth/test.pairs --masked-texts masked.safetensors",
    PNB__RUNS(uncertainty_options, struct uncertainty_args, run_uncertainty)};

static const pnb__command *const subs[] = {&pnb__cmd_eval_retrieval,
                                           &pnb__cmd_eval_compare,
                                           &pnb__cmd_eval_measures,
                                           &uncertainty,
                                           &pnb__cmd_eval_vqa,
                                           &pnb__cmd_eval_suite,
                                           NULL};
const pnb__command pnb__cmd_eval = {
    .name = "eval", .summary = "measure retrieval and uncertainty of embedding sets", .subs = subs};
