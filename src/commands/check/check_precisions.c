/* The model doctor's last run: the user's own inputs in every precision.
 *
 * Figures and table are precision_ways.h's, the promises those of penumbra/model.h; here is what
 * follows of them. int8 comes last, because it replaces the weights. */
#include "commands/check/check.h"
#include "commands/common/precision_ways.h"
#include "penumbra/model.h"

static pnb_status embed_in_every_way(pnb__ways *w)
{
    pnb_status status = pnb__ways_add_precisions(w);
    if (status != PNB_OK ||
        pnb_model_set_precision(w->encoder->model, PNB_PRECISION_INT8, NULL) != PNB_OK)
        return status; /* a model without blocks, or in 16 bits: nothing that int8 could be of */
    return pnb_model_get_precision(w->encoder->model) == PNB_PRECISION_INT8
               ? pnb__ways_add(w, "precision int8", PNB_PRECISION_INT8)
               : PNB_OK;
}

/* A promise that did not hold is about these inputs: a warning, the model may be used all the same.
 */
static void judge(pnb__visit *v, const pnb__ways *w)
{
    size_t n_broken = 0;
    for (size_t i = 0; i < w->n; i++)
        for (int kind = 0; kind < PNB__N_WAY_KINDS; kind++) {
            const pnb__way *way = &w->items[i];
            if (way->found[kind].n == 0 || way->precision == PNB_PRECISION_FP32 ||
                pnb__way_holds(way, kind))
                continue;
            n_broken++;
            pnb__finding_add(v, PNB__FINDING_WARNING, "precision",
                             "%s does not keep its promise on these %s: least cosine %.6g, "
                             "variance off by %.3g, rank of uncertainties %.5g",
                             way->name, pnb__way_kind(kind), way->found[kind].least_cosine,
                             way->found[kind].variance, way->found[kind].rank);
        }
    if (n_broken == 0)
        pnb__finding_add(v, PNB__FINDING_OK, "precision", "every precision keeps its promise");
}

void pnb__check_precisions(pnb__visit *v, pnb__result *r)
{
    pnb_error *err = &v->app->err;
    pnb__ways ways = {.app = v->app,
                      .encoder = &v->model,
                      .images = v->inputs->images,
                      .texts = v->inputs->texts};
    bool lacks = (ways.texts != NULL && v->model.tokenizer == NULL) ||
                 (ways.images != NULL && v->model.preprocess.width == 0);
    if (ways.images == NULL && ways.texts == NULL)
        return;
    if (lacks) {
        pnb__finding_add(v, PNB__FINDING_WARNING, "precision",
                         "not compared: the model lacks what it takes to read these inputs");
        return;
    }
    if (embed_in_every_way(&ways) == PNB_OK) {
        judge(v, &ways);
        pnb__ways_report(&ways, r);
    } else {
        pnb__finding_fault(v, "precision", err);
        pnb_error_reset(err);
    }
    pnb__ways_reset(&ways);
}
