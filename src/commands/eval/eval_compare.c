/* Models side by side: mean and spread over seeds, and a paired bootstrap against the first model.
 *
 * A pair of sets is ranked, its per-query values are kept and the sets let go, so memory is that of
 * one pair. Queries are the same when the ids of both sides are, in the same order; only then does
 * a paired test mean anything, and anything else is refused. The tables are in compare_show.c. */
#include "commands/eval/eval_compare_internal.h"

#include <math.h>
#include <string.h>

#include "base/base.h"

/* ---- running ---- */

static void hash_ids(pnb__sha256 *hash, const pnb_embeddings *set)
{
    pnb__sha256_update(hash, &set->n, sizeof set->n);
    for (size_t i = 0; set->ids != NULL && i < set->n; i++) {
        const char *id = set->ids[i] != NULL ? set->ids[i] : "";
        pnb__sha256_update(hash, id, strlen(id) + 1);
    }
}

static char *name_of(const pnb__compare_opts *o, size_t i)
{
    const char *base = pnb__path_base(o->images[i]);
    size_t n = strlen(base) - (pnb__ends_with(base, ".safetensors") ? strlen(".safetensors") : 0);
    return o->names != NULL ? pnb__strdup(o->names[i]) : pnb__strndup(base, n);
}

static void member_reset(pnb__compare_member *m)
{
    pnb__free(m->name);
    pnb__free(m->side[0].memory);
    pnb__free(m->side[1].memory);
    for (size_t k = 0; k < 2 * PNB__N_COCO_BLOCKS; k++)
        pnb__means_reset(&m->coco_means[k / 2][k % 2]);
    *m = (pnb__compare_member){0};
}

static pnb_status run_member(pnb__app *app, const pnb__compare_opts *o, size_t i,
                             pnb__compare_member *m)
{
    pnb__retrieval_opts opts = o->run;
    pnb__retrieval run = {0};
    pnb__sha256 hash;
    opts.images = o->images[i];
    opts.texts = o->texts[i];
    opts.n_resamples = 0;
    if (o->measures != NULL)
        opts.measure = o->measures[i];
    m->name = name_of(o, i);
    if (m->name == NULL)
        return pnb__fail_nomem(&app->err, strlen(o->images[i]));
    pnb_status status = pnb__retrieval_run(app, &opts, &run);
    if (status == PNB_OK) {
        pnb__sha256_init(&hash);
        hash_ids(&hash, run.images);
        hash_ids(&hash, run.texts);
        pnb__sha256_hex(&hash, m->rows);
        m->measure = run.measure;
        m->n_coco = run.n_coco;
        memcpy(m->coco, run.coco, sizeof run.coco);
        memcpy(m->coco_means, run.coco_means, sizeof run.coco_means);
        memset(run.coco_means, 0, sizeof run.coco_means);
        m->uncertainty = run.uncertainty;
        m->bins[0] = run.i2t.bins;
        m->bins[1] = run.t2i.bins;
        pnb__set_pretrained(pnb__set_origin(run.images, run.texts), m->pretrained);
        memcpy(m->n_clusters, run.n_clusters, sizeof m->n_clusters);
        memcpy(m->cluster_unit, run.cluster_unit, sizeof m->cluster_unit);
        m->side[0] = run.i2t.values;
        m->side[1] = run.t2i.values;
        run.i2t.values.memory = run.t2i.values.memory = NULL;
    }
    pnb__retrieval_reset(&run);
    return status;
}

/* The next member, of pair i; on failure it is as it was. */
static pnb_status add_member(pnb__app *app, pnb__comparison *c, size_t i)
{
    const pnb__compare_opts *o = c->opts;
    pnb__compare_member *m = &c->member[c->n];
    m->images = o->images[i];
    m->texts = o->texts[i];
    pnb_status status = run_member(app, o, i, m);
    if (status == PNB_OK && strcmp(m->rows, c->member[0].rows) != 0)
        status = pnb__fail(&app->err, PNB_ARG,
                           "%s and %s do not hold the same rows in the same order as %s and "
                           "%s; only models on the same queries can be compared",
                           m->images, m->texts, c->member[0].images, c->member[0].texts);
    if (status == PNB_OK) {
        c->n++;
        pnb__say(app, "%s: %s", m->name, m->images);
        return PNB_OK;
    }
    member_reset(m);
    return status;
}

static pnb_status run_members(pnb__app *app, pnb__comparison *c)
{
    const pnb__compare_opts *o = c->opts;
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < o->n && status == PNB_OK; i++) {
        status = add_member(app, c, i);
        if (status == PNB_OK || status == PNB_NOMEM || status == PNB_INTERRUPTED ||
            o->failed == NULL)
            continue;
        status = pnb__copy_text(&o->failed[i], app->err.text, NULL);
        app->err = (pnb_error)PNB_ERROR_INIT;
    }
    if (status == PNB_OK && c->n == 0)
        status = pnb__fail(&app->err, PNB_ARG, "no pair of sets could be ranked: %s", o->failed[0]);
    return status;
}

/* ---- groups ---- */

static pnb__compare_group *find_group(pnb__comparison *c, const char *name)
{
    for (size_t g = 0; g < c->n_groups; g++)
        if (strcmp(c->group[g].name, name) == 0)
            return &c->group[g];
    c->group[c->n_groups].name = name;
    return &c->group[c->n_groups++];
}

/* Standard deviation over the seeds of a group, of the figures of COCO. */
static void average_coco(pnb__comparison *c, pnb__compare_group *g)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        const pnb__compare_member *m = &c->member[i];
        if (strcmp(m->name, g->name) != 0)
            continue;
        if (n++ == 0)
            memcpy(g->coco, m->coco, sizeof g->coco);
        g->n_coco = m->n_coco;
        for (size_t k = 0; k < 2 * m->n_coco; k++) { /* Welford */
            pnb_interval *mean = &g->coco[k / 2].side[k % 2];
            double value = m->coco[k / 2].side[k % 2].value, before = mean->value;
            mean->value += (value - before) / (double)n;
            g->coco_std[k / 2][k % 2] += (value - before) * (value - mean->value);
        }
    }
    for (size_t k = 0; k < 2 * g->n_coco; k++) {
        double *std = &g->coco_std[k / 2][k % 2];
        *std = n > 1 ? sqrt(*std / (double)(n - 1)) : (double)NAN;
    }
}

static pnb_status make_groups(pnb__comparison *c, pnb_error *err)
{
    size_t n = c->n;
    for (size_t i = 0; i < n; i++) {
        pnb__compare_group *g = find_group(c, c->member[i].name);
        for (size_t d = 0; d < 2; d++) {
            if (g->query[d] == NULL)
                g->query[d] = pnb__alloc_array(n, sizeof *g->query[d]);
            if (g->hit[d] == NULL)
                g->hit[d] = pnb__alloc_array(n, sizeof *g->hit[d]);
            if (g->query[d] == NULL || g->hit[d] == NULL)
                return pnb__fail_nomem(err, n * sizeof *g->query[d]);
            g->query[d][g->n] = c->member[i].side[d].query;
            g->hit[d][g->n] = c->member[i].side[d].hit;
        }
        g->n++;
    }
    for (size_t g = 0; g < c->n_groups; g++)
        average_coco(c, &c->group[g]);
    return PNB_OK;
}

static double *slot(pnb_figures *f, size_t i)
{
    return i < PNB_MAX_RECALLS ? &f->recall[i] : &f->value[i - PNB_MAX_RECALLS];
}

/* Standard deviation over seeds, n - 1; NaN for one. */
static pnb_status spread(const pnb_query_values *seeds, size_t n, const pnb_figure_opts *o,
                         pnb_figures *out, pnb_error *err)
{
    pnb_figures sum = {{0}, {0}}, squares = {{0}, {0}}, one, first;
    for (size_t s = 0; s < n; s++) {
        pnb_status status = pnb_figures_compute(&seeds[s], o, &one, err);
        if (status != PNB_OK)
            return status;
        first = s == 0 ? one : first;
        for (size_t i = 0; i < PNB__N_TABLE_FIGURES; i++) { /* about the first: no cancellation */
            double d = *slot(&one, i) - *slot(&first, i);
            *slot(&sum, i) += d;
            *slot(&squares, i) += d * d;
        }
    }
    for (size_t i = 0; i < PNB__N_TABLE_FIGURES; i++) {
        double mean = *slot(&sum, i) / (double)n;
        double square = *slot(&squares, i) - (double)n * mean * mean;
        *slot(out, i) = n > 1 ? sqrt(fmax(square, 0) / (double)(n - 1)) : (double)NAN;
        if (isnan(square))
            *slot(out, i) = (double)NAN;
    }
    return PNB_OK;
}

/* One direction of one group by one uncertainty. */
typedef struct part {
    pnb_query_values *seeds, *first; /* of the group, and of the first group */
    size_t n, n_first;
    pnb_figure_intervals *value;
    pnb_figures *std;
    pnb_figure_test *test; /* NULL: the first group itself */
} part;

static pnb_status compute_part(pnb__app *app, const pnb__comparison *c, const part *p)
{
    pnb_figure_opts o = pnb_figure_opts_default();
    pnb_bootstrap_opts b = pnb_bootstrap_opts_default();
    const pnb_figure_pair pair = {p->first, p->seeds, p->n_first, p->n};
    pnb_status status;
    o.k = c->opts->run.k;
    o.n_k = c->opts->run.n_k;
    o.n_bins = c->opts->run.n_bins;
    b.n_resamples = c->opts->run.n_resamples;
    b.seed = (uint64_t)app->common.seed;
    PNB_TRY(pnb_figures_bootstrap(app->ctx, p->seeds, p->n, &o, &b, p->value, &app->err));
    PNB_TRY(spread(p->seeds, p->n, &o, p->std, &app->err));
    if (p->test != NULL)
        status = pnb_figures_compare(app->ctx, &pair, &o, &b, p->test, &app->err);
done:
    return status;
}

static pnb_status compute_rsum(pnb__app *app, const pnb__comparison *c,
                               const pnb__compare_group *own, pnb__table_row *row)
{
    const pnb__compare_group *first = &c->group[0];
    pnb_rsum_job job = {.a = {own->query[0], own->query[1]},
                        .n_a = own->n,
                        .k = c->opts->run.k,
                        .n_k = c->opts->run.n_k};
    pnb_bootstrap_opts b = pnb_bootstrap_opts_default();
    b.n_resamples = c->opts->run.n_resamples;
    b.seed = (uint64_t)app->common.seed;
    pnb_status status = pnb_rsum_bootstrap(&job, &b, &row->rsum, &app->err);
    if (status != PNB_OK || own == first)
        return status;
    job = (pnb_rsum_job){.a = {first->query[0], first->query[1]},
                         .b = {own->query[0], own->query[1]},
                         .n_a = first->n,
                         .n_b = own->n,
                         .k = job.k,
                         .n_k = job.n_k};
    return pnb_rsum_bootstrap(&job, &b, &row->rsum_test, &app->err);
}

/* ---- COCO ---- */

/* Values of each query averaged over the seeds of a group. */
static pnb_status average_means(const pnb__comparison *c, const pnb__compare_group *g, size_t block,
                                size_t way, pnb__means *out, pnb_error *err)
{
    const pnb__means *first = &c->member[0].coco_means[block][way];
    size_t n_values = first->n * first->n_columns;
    pnb_status status = pnb__means_init(out, first->n, first->n_columns, first->n_strata, err);
    if (status != PNB_OK)
        return status;
    memcpy(out->stratum, first->stratum, first->n * sizeof *first->stratum);
    memcpy(out->cluster, first->cluster, first->n * sizeof *first->cluster);
    for (size_t v = 0; v < n_values; v++)
        out->value[v] = 0;
    for (size_t i = 0; i < c->n; i++) {
        const pnb__means *m = &c->member[i].coco_means[block][way];
        if (strcmp(c->member[i].name, g->name) != 0)
            continue;
        if (m->n != first->n)
            return pnb__fail(err, PNB_ARG, "%zu queries of %s beside %zu of %s", m->n,
                             c->member[i].images, first->n, c->member[0].images);
        for (size_t v = 0; v < n_values; v++)
            out->value[v] += m->value[v] / (double)g->n;
    }
    return PNB_OK;
}

/* Figures of one direction of a block, and their difference from the first group's. */
static pnb_status compute_coco(pnb__app *app, const pnb__comparison *c, pnb__compare_group *g,
                               size_t block, size_t way)
{
    const pnb__compare_group *first = &c->group[0];
    pnb__means *own = &g->coco_means[block][way], difference = {0};
    pnb_interval value[PNB__COCO_COLUMNS + 1], by[PNB__COCO_COLUMNS + 1];
    double p[PNB__COCO_COLUMNS + 1];
    pnb_bootstrap_opts b = pnb_bootstrap_opts_default();
    pnb_status status;
    b.n_resamples = c->opts->run.n_resamples;
    b.seed = (uint64_t)app->common.seed;
    PNB_TRY(average_means(c, g, block, way, own, &app->err));
    PNB_TRY(pnb__means_bootstrap(app->ctx, own, &b, value, NULL, &app->err));
    if (g != first) {
        PNB_TRY(average_means(c, g, block, way, &difference, &app->err));
        for (size_t v = 0; v < own->n * own->n_columns; v++)
            difference.value[v] -= first->coco_means[block][way].value[v];
        difference.is_difference = true;
        PNB_TRY(pnb__means_bootstrap(app->ctx, &difference, &b, by, p, &app->err));
    }
    for (size_t i = 0; i < g->n_coco; i++) {
        size_t column = g->coco[i].column;
        if (g->coco[i].block != block)
            continue;
        g->coco[i].side[way] = value[column];
        if (g != first)
            g->coco_test[i][way] = (pnb__coco_test){by[column], p[column]};
    }
done:
    pnb__means_reset(&difference);
    return status;
}

static pnb_status compute_blocks(pnb__app *app, const pnb__comparison *c, pnb__compare_group *g)
{
    pnb_status status = PNB_OK;
    for (size_t i = 0; status == PNB_OK && i < 2 * PNB__N_COCO_BLOCKS; i++)
        if (c->member[0].coco_means[i / 2][i % 2].n > 0)
            status = compute_coco(app, c, g, i / 2, i % 2);
    return status;
}

static pnb_status compute_row(pnb__app *app, pnb__comparison *c, size_t g)
{
    pnb__compare_group *own = &c->group[g];
    const pnb__compare_group *first = &c->group[0];
    pnb__table_row *row = &c->row[g];
    *row = (pnb__table_row){.name = own->name,
                            .n_seeds = own->n,
                            .has_test = g > 0,
                            .n_clusters = {c->member[0].n_clusters[0], c->member[0].n_clusters[1]},
                            .cluster_unit = c->member[0].cluster_unit,
                            .coco = own->coco,
                            .coco_std = (const double(*)[2])own->coco_std,
                            .coco_test = (const pnb__coco_test(*)[2])own->coco_test,
                            .n_coco = own->n_coco};
    pnb_status status = compute_rsum(app, c, own, row);
    if (status == PNB_OK)
        status = compute_blocks(app, c, own);
    for (size_t d = 0; d < 2 && status == PNB_OK; d++) {
        row->n_queries[d] = own->query[d][0].n;
        const part parts[] = {{own->query[d], first->query[d], own->n, first->n, &row->by_query[d],
                               &row->std_query[d], g > 0 ? &row->test_query[d] : NULL},
                              {own->hit[d], first->hit[d], own->n, first->n, &row->by_hit[d],
                               &row->std_hit[d], g > 0 ? &row->test_hit[d] : NULL}};
        for (size_t i = 0; i < 2 && status == PNB_OK; i++)
            status = compute_part(app, c, &parts[i]);
    }
    return status;
}

static void comparison_reset(pnb__comparison *c)
{
    for (size_t i = 0; c->member != NULL && i < c->n; i++)
        member_reset(&c->member[i]);
    for (size_t g = 0; g < c->n_groups; g++)
        for (size_t d = 0; d < 2; d++) {
            pnb__free(c->group[g].query[d]);
            pnb__free(c->group[g].hit[d]);
            for (size_t k = 0; k < PNB__N_COCO_BLOCKS; k++)
                pnb__means_reset(&c->group[g].coco_means[k][d]);
        }
    pnb__free(c->member);
    pnb__free(c->group);
    pnb__free(c->row);
}

pnb_status pnb__retrieval_compare(pnb__app *app, const pnb__compare_opts *opts, pnb__result *r)
{
    pnb__comparison c = {.opts = opts};
    pnb_status status = PNB_OK;
    PNB_TRY(PNB_ALLOC_ZERO(c.member, opts->n, &app->err));
    PNB_TRY(PNB_ALLOC_ZERO(c.group, opts->n, &app->err));
    PNB_TRY(PNB_ALLOC_ZERO(c.row, opts->n, &app->err));
    PNB_TRY(run_members(app, &c));
    PNB_TRY(make_groups(&c, &app->err));
    for (size_t g = 0; g < c.n_groups; g++)
        PNB_TRY(compute_row(app, &c, g));
    status = pnb__comparison_show(app, &c, r);
done:
    comparison_reset(&c);
    return status;
}
