/* penumbra eval measures: one pair of sets by every similarity there is, beside what each costs.
 *
 * PCME's Table 1. Sets and truth are read once (eval_load.c); each measure that is defined between
 * their families then ranks both ways. Space is what a gallery holds for a row so that nothing is
 * made again at search; samples are drawn again by this program where they would not fit
 * (docs/numerics.md#sampling). */
#include <math.h>

#include "commands/commands.h"
#include "commands/common/option_rows.h"
#include "commands/eval/retrieval_args.h"
#include "prob/measure.h"

struct measures_args {
    pnb__retrieval_opts job;
    pnb__text_list measures;
};

#define AT(field) PNB__FIELD(struct measures_args, field)
static const pnb__option options[] = {
    PNB__IMAGES_TEXTS_ROWS(AT(job.images), AT(job.texts)),
    PNB__TRUTH_ROWS(AT(job.truth), AT(job.read.format), AT(job.read.split), AT(job.read.by_class)),
    PNB__CLASS_KEY_ROW(AT(job.class_key)),
    PNB__ROW_INT("level", AT(job.level), "N", "Only captions of this level", PNB__RANGE(0, 7)),
    PNB__ROW_LIST("measure", AT(measures), "NAME...",
                  "Measures to compare; by default every one between the families of the sets, "
                  "max_cosine only where rows hold several embeddings: of one it is mean"),
    PNB__MATCH_ROWS(AT(job.match.n_samples), AT(job.match.a), AT(job.match.b)),
};
#undef AT

/* Which measures: those named, each once, or all that fit. */
typedef struct chosen {
    bool is_wanted[PNB_N_MEASURES];
    bool any_sampled, any_match;
} chosen;

static pnb_status choose(pnb__app *app, const struct measures_args *a, const pnb__retrieval *run,
                         chosen *out)
{
    const pnb_rows *images = &run->image_rows, *texts = &run->text_rows;
    *out = (chosen){0};
    for (size_t i = 0; i < a->measures.n; i++) {
        pnb_measure m;
        pnb_status status = pnb_measure_parse(&m, a->measures.items[i], &app->err);
        if (status == PNB_OK)
            status = pnb_measure_check_fit(m, images, texts, &app->err);
        if (status != PNB_OK)
            return status;
        out->is_wanted[m] = true;
    }
    for (int m = 0; m < PNB_N_MEASURES; m++) {
        bool repeats_mean =
            m == PNB_MEASURE_MAX_COSINE && images->n_embeddings <= 1 && texts->n_embeddings <= 1;
        if (a->measures.n == 0)
            out->is_wanted[m] = !repeats_mean && pnb_measure_check_fit((pnb_measure)m, images,
                                                                       texts, NULL) == PNB_OK;
        bool is_match = pnb__measure_traits_of((pnb_measure)m)->reads == PNB__READS_MATCH;
        out->any_sampled |= out->is_wanted[m] && pnb__measure_is_sampled((pnb_measure)m);
        out->any_match |= out->is_wanted[m] && is_match;
    }
    return PNB_OK;
}

/* Options that no measure of the table reads would do nothing. */
static pnb_status check_words(pnb__app *app, const pnb__match_words *w, const chosen *c)
{
    if (w->n_samples > 0 && !c->any_sampled)
        return pnb__usage(app, "--samples belongs to avg_l2 and match_prob: neither is compared");
    if ((!isnan(w->a) || !isnan(w->b)) && !c->any_match)
        return pnb__usage(app, "--match-a and --match-b belong to match_prob: it is not compared");
    return PNB_OK;
}

static pnb_status constants_of(pnb__app *app, const struct measures_args *a,
                               const pnb__retrieval *run, pnb_measure measure,
                               pnb_measure_opts *out)
{
    bool is_sampled = pnb__measure_is_sampled(measure);
    bool is_match = pnb__measure_traits_of(measure)->reads == PNB__READS_MATCH;
    const pnb__match_words words = {.n_samples = is_sampled ? a->job.match.n_samples : 0,
                                    .a = is_match ? a->job.match.a : (double)NAN,
                                    .b = is_match ? a->job.match.b : (double)NAN};
    *out = pnb_measure_opts_default();
    out->seed = (uint64_t)app->common.seed;
    return pnb__match_settle(app, &words, measure, &run->images->info, &run->texts->info, out);
}

static void put_row(const pnb__retrieval *run, pnb_measure measure, const pnb_measure_opts *o,
                    const pnb_retrieval *f, pnb__result *r)
{
    size_t floats = PNB_MAX(pnb__measure_floats(measure, &run->image_rows, o),
                            pnb__measure_floats(measure, &run->text_rows, o));
    pnb__result_row(r, "%s", pnb_measure_name(measure));
    pnb__result_cell_int(r, (int64_t)floats);
    const pnb_direction *const ways[] = {&f->forward, &f->backward};
    for (int way = 0; way < 2; way++) {
        pnb__result_cell_real(r, ways[way]->recall[0], 4);
        pnb__result_cell_real(r, ways[way]->r_precision, 4);
    }
    pnb__result_cell_real(r, f->rsum, 4);
}

static pnb_status put_table(pnb__app *app, const struct measures_args *a, const chosen *c,
                            const pnb__retrieval *run, pnb__result *r)
{
    static const pnb__column columns[] = {{"measure", "measure"},
                                          {"floats_per_item", "floats an item"},
                                          {"i2t_recall_at_1", "i2t R@1"},
                                          {"i2t_r_precision", "i2t R-Prec"},
                                          {"t2i_recall_at_1", "t2i R@1"},
                                          {"t2i_r_precision", "t2i R-Prec"},
                                          {"rsum", "RSUM"}};
    pnb__result_table(r, "measures", "", columns, PNB_COUNT(columns));
    for (int m = 0; m < PNB_N_MEASURES; m++) {
        pnb_search_opts search = pnb_search_opts_default();
        pnb_retrieval figures;
        if (!c->is_wanted[m])
            continue;
        search.measure = (pnb_measure)m;
        pnb_status status = constants_of(app, a, run, search.measure, &search.measure_opts);
        const pnb_retrieval_job job = {
            .a = &run->image_rows, .b = &run->text_rows, .truth = run->truth, .opts = &search};
        if (status == PNB_OK)
            status = pnb_retrieval_compute(app->ctx, &job, &figures, NULL, NULL, &app->err);
        if (status != PNB_OK)
            return status;
        put_row(run, search.measure, &search.measure_opts, &figures, r);
    }
    return PNB_OK;
}

static void defaults(void *args)
{
    *(struct measures_args *)args = (struct measures_args){.job = pnb__retrieval_opts_default()};
}

static pnb_status run(pnb__app *app, void *args, pnb__result *r)
{
    const struct measures_args *a = args;
    const pnb__match_words none = {.a = NAN, .b = NAN};
    pnb__retrieval_opts opts = a->job;
    pnb__retrieval run = {0};
    pnb_measure_opts match;
    chosen c;
    pnb_status status;
    PNB_TRY(pnb__retrieval_truth_check(app, &a->job));
    opts.match = none; /* of the families' own measure, which is not compared by itself */
    opts.measure = PNB_MEASURE_MEAN;
    PNB_TRY(pnb__retrieval_load(app, &opts, &run));
    PNB_TRY(choose(app, a, &run, &c));
    PNB_TRY(check_words(app, &a->job.match, &c));
    pnb__result_text(r, "images", NULL, opts.images);
    pnb__result_text(r, "texts", NULL, opts.texts);
    pnb__result_int(r, "n_images", "images", (int64_t)run.images->n);
    pnb__result_int(r, "n_texts", "captions", (int64_t)run.texts->n);
    if (c.any_match || c.any_sampled) {
        pnb_measure sampled = c.any_match ? PNB_MEASURE_MATCH_PROB : PNB_MEASURE_AVG_L2;
        PNB_TRY(constants_of(app, a, &run, sampled, &match));
        pnb__put_match(r, sampled, &match, true);
    }
    status = put_table(app, a, &c, &run, r);
done:
    pnb__retrieval_reset(&run);
    return status;
}

const pnb__command pnb__cmd_eval_measures = {
    .name = "measures",
    .summary = "compare the similarities between two sets, and what each costs",
    .about = "Recall at 1 and R-Precision both ways and RSUM at 1, 5 and 10 by every measure that "
             "the families of the sets have, with the numbers that a gallery holds for each row: "
             "the width for means, twice that with spreads, as many times as there are samples for "
             "avg_l2 and match_prob. As in PCME's Table 1.",
    .examples =
        "penumbra eval measures --images images.safetensors --texts texts.safetensors "
        "--truth shapes/truth/test.pairs\n"
        "penumbra eval measures --images i.safetensors --texts t.safetensors --measure mean "
        "elk js w2 avg_l2 match_prob --samples 7 --json",
    .defaults = defaults,
    PNB__RUNS(options, struct measures_args, run)};
