/* Blocks of f32 values with bounds on their rounding, from which candidates are chosen.
 *
 * Items are the rows of the product and read where they lie; queries are packed once. The value of
 * a pair is v = mul (x.q) + (t_n + slack), an upper bound of score - t_q. The bounds decide which
 * pairs are scored in f64, never a result: what each is made of stands where it is computed, and
 * tests/index/exact/bounds.c knows rows that use most of it. u = 2^-24 throughout. Few queries go
 * through `dots`, many through `gemm`. */
#include "index/exact/bound.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "index/exact/sphere_bound.h"

#define UNIT 5.9604644775390625e-08 /* 2^-24 */
#define STRIP_PRODUCT 384           /* what the matrix product keeps in the second cache */
#define ITEMS_PRODUCT 224
#define STRIP_INCLUSION 64
#define ITEMS_INCLUSION 64
#define FEW 16 /* queries up to which reading the items is most of the work */
#define PASS_BYTES ((size_t)16 << 20)
#define PASS_QUERIES 4096

static double norm_of_queries(const pnb__exact_run *run)
{
    return run->scan->form->is_unit ? 1.0 : run->queries.most_norm;
}

static size_t width_of(const pnb__exact_run *run)
{
    size_t dim = run->queries.rows.dim;
    return run->scan->form->has_std ? 2 * dim : dim;
}

size_t pnb__bound_most_queries(const pnb__exact_run *run)
{
    size_t fitting = PASS_BYTES / (width_of(run) * sizeof(float));
    if (run->way == PNB__EXACT_SAMPLES)
        return pnb__sample_most_queries(run);
    return PNB_MAX(STRIP_PRODUCT, PNB_MIN(fitting, PASS_QUERIES));
}

/* ---- queries ---- */

/* Standard deviations, 0 for points. */
static void std_row(const pnb__exact_run *run, const pnb_gaussians *g, size_t row, float *out)
{
    const pnb__kernels *k = &run->kernels;
    if (g->log_var == NULL) {
        memset(out, 0, g->dim * sizeof *out);
        return;
    }
    k->unary(&run->inner, PNB__AFFINE, g->dim, 0.5, 0.0, g->log_var + row * g->dim, out);
    k->unary(&run->inner, PNB__EXP, g->dim, 0.0, 0.0, out, out);
}

static void join_row(const pnb__exact_run *run, const pnb_gaussians *g, size_t row, float *out)
{
    memcpy(out, g->mean + row * g->dim, g->dim * sizeof *out);
    std_row(run, g, row, out + g->dim);
}

/* A copy in any case: rows are read so often that they should begin at a line of the cache. */
static pnb_status make_rows(pnb__bound *pass, pnb_error *err)
{
    const pnb__exact_side *q = &pass->run->queries;
    const pnb__scan_form *form = pass->run->scan->form;
    size_t dim = q->rows.dim, bytes = pass->n * pass->width * sizeof(float);
    const float *mean = q->rows.mean + pass->first * dim;
    pass->rows = pnb__alloc_aligned(bytes);
    if (pass->rows == NULL)
        return pnb__fail_nomem(err, bytes);
    if (!form->has_std && !form->is_unit)
        memcpy(pass->rows, mean, bytes);
    for (size_t i = 0; (form->has_std || form->is_unit) && i < pass->n; i++) {
        float *row = pass->rows + i * pass->width;
        if (form->has_std) {
            join_row(pass->run, &q->rows, pass->first + i, row);
            continue;
        }
        double scale = pnb__exact_scale(q->norm[pass->first + i]);
        for (size_t d = 0; d < dim; d++)
            row[d] = (float)(mean[i * dim + d] * scale);
    }
    return PNB_OK;
}

static pnb_status pack_rows(pnb__bound *pass, const pnb_ctx *ctx, pnb_error *err)
{
    const pnb__kernels *k = &pass->run->kernels;
    if (pass->n <= FEW || k->gemm_pack == NULL)
        return PNB_OK;
    pnb__packed *to = &pass->packed;
    *to = (pnb__packed){.k = pass->width, .n = pass->n, .store = PNB__STORE_REAL};
    to->bytes = k->gemm_pack_bytes(to->k, to->n, to->store);
    to->data = pnb__alloc_aligned(to->bytes);
    if (to->data == NULL)
        return pnb__fail_nomem(err, to->bytes);
    const pnb__gemm_args args = {
        .trans_b = true, .n = pass->n, .k = pass->width, .ldb = pass->width, .b = pass->rows};
    k->gemm_pack(ctx != NULL ? ctx : &pass->run->inner, &args, to);
    return PNB_OK;
}

static pnb_status unpack_variances(pnb__bound *pass, pnb_error *err)
{
    const pnb_gaussians *g = &pass->run->queries.rows;
    size_t n = pass->n * g->dim;
    pass->var = pnb__alloc_array(n, sizeof(float));
    if (pass->var == NULL)
        return pnb__fail_nomem(err, n * sizeof(float));
    pass->run->kernels.unary(&pass->run->inner, PNB__EXP, n, 0.0, 0.0,
                             g->log_var + pass->first * g->dim, pass->var);
    return PNB_OK;
}

/* Strips of equal width, at borders where packed columns are found. */
static size_t product_strip(const pnb__bound *pass)
{
    if (pass->n <= FEW)
        return pass->n;
    size_t group = PNB_MAX(pass->run->kernels.gemm_group, (size_t)1);
    if (pnb__half_takes(pass->run, pass->n, pass->width))
        group = PNB_MAX(group, (size_t)PNB__BF16_PANEL);
    size_t n_strips = (pass->n + STRIP_PRODUCT - 1) / STRIP_PRODUCT;
    size_t strip = (pass->n + n_strips - 1) / n_strips;
    return PNB_MIN((size_t)STRIP_PRODUCT, (strip + group - 1) / group * group);
}

pnb_status pnb__bound_init(pnb__bound *pass, const pnb__exact_run *run, const pnb_ctx *ctx,
                           size_t first, size_t n, pnb_error *err)
{
    pnb_status status = PNB_OK;
    *pass = (pnb__bound){.run = run, .first = first, .n = n, .width = width_of(run)};
    if (run->way == PNB__EXACT_PRODUCT || run->way == PNB__EXACT_SPHERE) {
        pass->strip = product_strip(pass);
        pass->n_items = ITEMS_PRODUCT;
        pass->most_norm = norm_of_queries(run);
        PNB_TRY(make_rows(pass, err));
        PNB_TRY(pack_rows(pass, ctx, err));
        if (pnb__half_takes(run, n, pass->width))
            PNB_TRY(pnb__half_queries_init(&pass->half, run, pass->rows, n, pass->width, err));
    } else if (run->way == PNB__EXACT_SAMPLES) {
        pass->strip = pnb__sample_strip(run);
        pass->n_items = pnb__sample_items(run);
        PNB_TRY(
            pnb__sample_queries_init(&pass->samples, run, ctx, (const size_t[2]){first, n}, err));
    } else if (run->way == PNB__EXACT_INCLUSION) {
        pass->strip = STRIP_INCLUSION;
        pass->n_items = ITEMS_INCLUSION;
        PNB_TRY(unpack_variances(pass, err));
    } else {
        pass->strip = PNB__EXACT_QUERIES;
        pass->n_items = PNB__EXACT_ITEMS;
    }
done:
    if (status != PNB_OK)
        pnb__bound_reset(pass);
    return status;
}

void pnb__bound_reset(pnb__bound *pass)
{
    pnb__free_aligned(pass->rows);
    pnb__free(pass->var);
    pnb__free_aligned(pass->packed.data);
    pnb__sample_queries_reset(&pass->samples);
    pnb__half_queries_reset(&pass->half);
    *pass = (pnb__bound){0};
}

/* ---- scratch ---- */

pnb_status pnb__bound_work_init(pnb__bound_work *work, const pnb__exact_run *run, pnb_error *err)
{
    size_t dim = run->queries.rows.dim, n_exact = 0, n_value = 0, n_spread = 0, n_rows = 0;
    *work = (pnb__bound_work){0};
    bool is_sampled = run->way == PNB__EXACT_SAMPLES;
    if (run->way == PNB__EXACT_F64) {
        n_exact = (size_t)PNB__EXACT_QUERIES * PNB__EXACT_ITEMS;
    } else if (run->way == PNB__EXACT_PRODUCT) {
        n_value = (size_t)STRIP_PRODUCT * ITEMS_PRODUCT;
        n_rows = width_of(run) > dim ? ITEMS_PRODUCT * width_of(run) : 0;
    } else if (run->way == PNB__EXACT_SPHERE) {
        n_value = n_spread = (size_t)STRIP_PRODUCT * ITEMS_PRODUCT;
    } else if (is_sampled) {
        pnb__sample_work_sizes(run, &n_exact, &n_rows);
    } else {
        n_value = n_spread = (size_t)STRIP_INCLUSION * ITEMS_INCLUSION;
        n_rows = ITEMS_INCLUSION * dim;
    }
    size_t n_doubles = n_exact + ITEMS_PRODUCT;
    size_t n_floats = n_value + n_spread + n_rows + 2 * (size_t)ITEMS_PRODUCT;
    size_t bytes = n_doubles * sizeof(double) + n_floats * sizeof(float);
    work->memory = pnb__alloc_aligned(bytes);
    if (work->memory == NULL)
        return pnb__fail_nomem(err, bytes);
    work->slack = work->memory;
    work->exact = work->slack + ITEMS_PRODUCT;
    work->value = (float *)(void *)(work->exact + n_exact);
    work->spread = work->value + n_value;
    work->item_rows = work->spread + n_spread;
    work->mul = work->item_rows + n_rows;
    work->upper = work->mul + ITEMS_PRODUCT;
    if (is_sampled)
        pnb__sample_work_place(&work->samples, run, work->exact, work->item_rows);
    pnb_status status = pnb__exact_work_init(&work->scan, run, err);
    if (status == PNB_OK && pnb__half_takes(run, run->queries.rows.n, width_of(run)))
        status = pnb__half_items_init(&work->half, ITEMS_PRODUCT, width_of(run), err);
    if (status == PNB_OK && is_sampled)
        status = pnb__sample_work_init(&work->samples, run, err);
    if (status != PNB_OK)
        pnb__bound_work_reset(work);
    return status;
}

void pnb__bound_work_reset(pnb__bound_work *work)
{
    pnb__exact_work_reset(&work->scan);
    pnb__half_items_reset(&work->half);
    pnb__sample_work_reset(&work->samples);
    pnb__free_aligned(work->memory);
    *work = (pnb__bound_work){0};
}

/* ---- blocks ---- */

static void multiply_few(const pnb__bound *pass, const float *items, const pnb__values *v,
                         size_t begin, float *out)
{
    size_t width = pass->width;
    const pnb__dots_args dots = {.m = v->n_items,
                                 .n = v->n_queries - begin,
                                 .k = width,
                                 .lda = width,
                                 .ldb = width,
                                 .ldc = v->ld,
                                 .a = items,
                                 .b = pass->rows + (v->query - pass->first + begin) * width,
                                 .c = out + begin};
    pass->run->kernels.host.dots(&pass->run->inner, &dots);
}

/* Queries that the matrix product takes: a vector of them costs as much when few are in it, which
 * the inner products of those few do not. */
static size_t n_by_gemm(const pnb__bound *pass, size_t n)
{
    size_t vector = pass->run->kernels.gemm_group / 2, rest = vector > 0 ? n % vector : 0;
    if (pass->n <= FEW)
        return 0;
    return rest <= vector / 2 ? n - rest : n;
}

static void multiply(const pnb__bound *pass, const float *items, const pnb__values *v, float *out)
{
    const pnb__kernels *k = &pass->run->kernels;
    size_t width = pass->width, first = v->query - pass->first;
    size_t n = n_by_gemm(pass, v->n_queries);
    const pnb__gemm_args args = {.trans_b = true,
                                 .m = v->n_items,
                                 .n = n,
                                 .k = width,
                                 .lda = width,
                                 .ldb = width,
                                 .ldc = v->ld,
                                 .n_batch = 1,
                                 .alpha = 1.0,
                                 .a = items,
                                 .b = pass->rows + first * width,
                                 .c = out,
                                 .act = PNB__IDENTITY,
                                 .packed = pass->packed.data != NULL ? &pass->packed : NULL,
                                 .packed_first = first};
    if (n > 0)
        k->gemm(&pass->run->inner, &args);
    if (n < v->n_queries)
        multiply_few(pass, items, v, n, out);
}

/* mul and bounds of each item; loops without branches, since few queries wait for nothing else.
 *
 * Any order of K products and sums, fused or not: |fl(x.q) - x.q| <= K u |x| |q| (Higham, Accuracy
 * and Stability of Numerical Algorithms, 3.1), and rows reach it: a first product of 1 and others
 * of u each, which are lost. Standard deviations of w2 come from two exp to 3.4 u each
 * (kernels/cpu/loops/math.inc), scaled queries, mul and its product with the sum 3 u, the additions
 * that follow 3 u: 13 u more. 36 leaves room for an exp to 2^-21; 1.01 for squares of u up to K =
 * 10^5. The row's term is rounded when the slack is added and in two sums: 3 u |t|, here 5. By
 * halves, off not NULL: sums to 2 K u |x'| |q'|, lengths of rounded rows up to 2^-8 more, and what
 * rounding took from the rows (half_bound.c); queries' lengths to 1e-6, for scaled ones. */
static void bound_product(const pnb__bound *pass, pnb__bound_work *work, const pnb__values *v,
                          const double *off)
{
    const pnb__exact_side *x = &pass->run->scan->gallery;
    const double *norm = x->norm + v->item, *term = x->term + v->item;
    bool is_mean = pass->run->scan->form->is_unit;
    double mul = pass->run->scan->form->has_std ? 2.0 : 1.0, width = (double)pass->width;
    double sums = off != NULL ? 2.02 * width : width, floor = width * 1e-28;
    double relative = 1.01 * (sums + 36.0) * UNIT * pass->most_norm;
    double most = 1.000001 * pass->most_norm, most_off = pass->half.most_off;
    for (size_t i = 0; i < v->n_items; i++) {
        double slack =
            relative * mul * (is_mean ? 1.0 : norm[i]) + 5.0 * UNIT * fabs(term[i]) + floor;
        if (off != NULL)
            slack += mul * (is_mean ? pnb__exact_scale(norm[i]) : 1.0) *
                     (off[i] * most + (norm[i] + off[i]) * most_off);
        work->mul[i] = (float)mul;
        work->slack[i] = slack;
        work->upper[i] = (float)(term[i] + slack);
    }
    for (size_t i = 0; is_mean && i < v->n_items; i++)
        work->mul[i] = (float)pnb__exact_scale(norm[i]);
}

static void score_product(const pnb__bound *pass, pnb__bound_work *work, pnb__values *v)
{
    const pnb_gaussians *x = &pass->run->scan->gallery.rows;
    const float *items = x->mean + v->item * x->dim;
    bool by_halves = pass->half.panels != NULL && work->half.n_floats == 0;
    bool is_there = by_halves && work->half.at_item == v->item;
    if (pass->width > x->dim) {
        for (size_t i = 0; i < v->n_items && !is_there; i++)
            join_row(pass->run, x, v->item + i, work->item_rows + i * pass->width);
        items = work->item_rows;
    }
    v->value = work->value;
    v->mul = work->mul;
    v->upper = work->upper;
    v->slack = work->slack;
    const pnb__half_block block = {.item = v->item,
                                   .n_items = v->n_items,
                                   .first = v->query - pass->first,
                                   .n_queries = v->n_queries,
                                   .width = pass->width,
                                   .ld = v->ld,
                                   .items = items,
                                   .out = work->value};
    if (by_halves)
        pnb__half_multiply(pass->run, &pass->half, &work->half, &block);
    else
        multiply(pass, items, v, work->value);
    bound_product(pass, work, v, by_halves ? work->half.off : NULL);
}

/* The log normaliser is the row's term; sphere.c makes the rest of the inner products. */
static void score_sphere(const pnb__bound *pass, pnb__bound_work *work, pnb__values *v)
{
    const pnb__exact_run *run = pass->run;
    const pnb__exact_side *x = &run->scan->gallery, *q = &run->queries;
    const pnb__sphere_args args = {
        .is_power = run->scan->form->is_power,
        .n_items = v->n_items,
        .n_queries = v->n_queries,
        .ld = v->ld,
        .width = pass->width,
        .weight = run->weight,
        .norm = x->norm + v->item,
        .item_kappa = x->rows.kappa != NULL ? x->rows.kappa + v->item : NULL,
        .query_kappa = q->rows.kappa != NULL ? q->rows.kappa + v->query : NULL,
        .value = work->value,
        .spread = work->spread};
    multiply(pass, x->rows.mean + v->item * x->rows.dim, v, work->value);
    pnb__sphere_bounds(&run->inner, &run->kernels, &args);
    for (size_t i = 0; i < v->n_items; i++) {
        double term = run->weight * x->term[v->item + i];
        work->slack[i] = 5.0 * UNIT * fabs(term);
        work->mul[i] = 1.0f;
        work->upper[i] = (float)(term + work->slack[i]);
    }
    v->value = work->value;
    v->mul = work->mul;
    v->upper = work->upper;
    v->slack = work->slack;
    v->spread = work->spread;
    v->spread_bound = 1.0;
}

static double inclusion_weight(const pnb__exact *scan)
{
    double weight = scan->form->log_weight;
    return scan->reverse ? -weight : weight;
}

/* Items are Gaussian 1 of the kernel; where they are Gaussian 2 of the measure, signs change.
 *
 * The two bounds, to first order (1.01 covers the rest), of kernels/cpu/loops/inclusion.inc with at
 * least 4 lanes; exp and log are right to 3.4 u (math.inc), a = S12, b = S21. Logarithms, per
 * dimension, in u: b b/(a b) in the running product: b once, a, ab, 1/ab, bb and two products 7 exp
 * of two log-variances, through which log(b/a) moves by 1/3 of theirs at most   2.3 together, with
 * the factor 1/2 of the sum of logarithms                            4.65 each run's logarithm: 3.4
 * times |log(b/a)| <= log 2, halved                       1.2 sums of halved logarithms, 0.35 a
 * dimension: one a run of 96 x 4 dimensions       D/1108 + 0.35 two in the last line, log2 16 over
 * lanes, two with the row's term                 2.8 and the term's own roundings, 3 |t|.
 * Distances, in u spread, for spread = 3 sum t (v1 + v2), t = delta^2/(ab), |v2 - v1| <= v1 + v2:
 *   t |v2 - v1|: delta twice, a, b, ab, 1/ab, two products, v2 - v1, fused or not     10/3
 *   exp: |d/dlog v1| + |d/dlog v2| of delta^2 (1/a - 1/b) <= delta^2 (1/a + 1/b)      3.4
 *   one chain of sums a lane, D/4 |v2 - v1| t                                         D/12
 *   weight and its product, lanes, the row's term: 8/3
 * which is D/12 + 10; D/8 + 32 stands below. */
static void score_inclusion(const pnb__bound *pass, pnb__bound_work *work, pnb__values *v)
{
    const pnb__exact *scan = pass->run->scan;
    const pnb_gaussians *q = &pass->run->queries.rows, *x = &scan->gallery.rows;
    const pnb__kernels *k = &pass->run->kernels;
    double sign = scan->reverse ? 1.0 : -1.0;
    double gain = scan->form->has_gain ? exp(scan->opts.inclusion_eps) : 1;
    double dim = (double)x->dim, weight = inclusion_weight(scan);
    k->unary(&pass->run->inner, PNB__EXP, v->n_items * x->dim, 0.0, 0.0,
             x->log_var + v->item * x->dim, work->item_rows);
    const pnb__inclusion_rows_args args = {.n1 = v->n_items,
                                           .n2 = v->n_queries,
                                           .width = x->dim,
                                           .ld = v->ld,
                                           .m1 = x->mean + v->item * x->dim,
                                           .v1 = work->item_rows,
                                           .m2 = q->mean + v->query * q->dim,
                                           .v2 = pass->var + (v->query - pass->first) * q->dim,
                                           .weight_log = 0.5 * sign,
                                           .weight_distance = gain * sign,
                                           .h = work->value,
                                           .spread = work->spread};
    k->host.inclusion_rows(&pass->run->inner, &args);
    for (size_t i = 0; i < v->n_items; i++) {
        double term = weight * scan->gallery.term[v->item + i];
        work->slack[i] = ((9.25 + 0.001 * dim) * dim + 4.0 * fabs(term)) * UNIT;
        work->mul[i] = 1.0f;
        work->upper[i] = (float)(term + work->slack[i]);
    }
    v->value = work->value;
    v->mul = work->mul;
    v->upper = work->upper;
    v->slack = work->slack;
    v->spread = work->spread;
    v->spread_bound = 0.5 * (0.25 * dim + 64.0) * UNIT;
}

/* A similarity, or a distance with its sign changed; nothing is a row's own. */
static pnb_status score_samples(const pnb__bound *pass, pnb__bound_work *work, pnb__values *v,
                                pnb_error *err)
{
    bool is_distance = !pnb_measure_is_similarity(pass->run->scan->measure);
    const pnb__sample_block block = {.queries = {v->query, v->query + v->n_queries},
                                     .items = {v->item, v->item + v->n_items},
                                     .limit = work->limit};
    bool is_limit;
    pnb_status status = pnb__sample_score(&pass->samples, &work->samples, &block, &is_limit, err);
    if (status != PNB_OK)
        return status;
    for (size_t i = 0; i < v->n_items; i++) {
        work->mul[i] = is_distance ? -1.0f : 1.0f;
        work->upper[i] = 0.0f;
        work->slack[i] = 0.0;
    }
    v->value = work->samples.value;
    v->spread = is_limit ? NULL : work->samples.spread;
    v->mul = work->mul;
    v->upper = work->upper;
    v->slack = work->slack;
    v->spread_bound = 1.0;
    v->within = is_limit ? pass : NULL;
    v->work = work;
    return PNB_OK;
}

pnb_status pnb__bound_score(const pnb__bound *pass, pnb__bound_work *work, size_t strip,
                            const size_t items[2], pnb__values *out, pnb_error *err)
{
    size_t begin = strip * pass->strip;
    *out = (pnb__values){.query = pass->first + begin,
                         .n_queries = PNB_MIN(pass->strip, pass->n - begin),
                         .item = items[0],
                         .n_items = items[1] - items[0],
                         .ld = pass->strip};
    if (pass->run->way == PNB__EXACT_PRODUCT) {
        score_product(pass, work, out);
        return PNB_OK;
    }
    if (pass->run->way == PNB__EXACT_SPHERE) {
        score_sphere(pass, work, out);
        return PNB_OK;
    }
    if (pass->run->way == PNB__EXACT_INCLUSION) {
        score_inclusion(pass, work, out);
        return PNB_OK;
    }
    if (pass->run->way == PNB__EXACT_SAMPLES)
        return score_samples(pass, work, out, err);
    out->exact = work->exact;
    out->ld = PNB__EXACT_ITEMS;
    const pnb__exact_block block = {out->query,   out->n_queries, out->item,
                                    out->n_items, work->exact,    out->ld};
    return pnb__exact_score(pass->run, &work->scan, &block, err);
}

/* ---- bounds ---- */

double pnb__bound_term(const pnb__exact_run *run, size_t query)
{
    if (run->way == PNB__EXACT_F64)
        return 0.0;
    if (run->way == PNB__EXACT_INCLUSION)
        return -inclusion_weight(run->scan) * run->queries.term[query];
    return (run->way == PNB__EXACT_SPHERE ? run->weight : 1.0) * run->queries.term[query];
}

/* Largest part of a score that is not a row's term; 40: |log(1 + cosine)| stays below 37. */
static double most_product(const pnb__exact_run *run)
{
    const pnb__exact_side *q = &run->queries, *x = &run->scan->gallery;
    const pnb__scan_form *form = run->scan->form;
    if (run->way == PNB__EXACT_SPHERE)
        return run->weight * (q->most_kappa + x->most_kappa) * (form->is_power ? 40.0 : 1.0);
    if (run->way == PNB__EXACT_SAMPLES) /* a probability, or a length of two samples */
        return 1.0 + q->most_norm + x->most_norm;
    if (run->way == PNB__EXACT_INCLUSION || form->is_unit)
        return 1.0;
    return norm_of_queries(run) * x->most_norm;
}

double pnb__bound_margin(const pnb__exact_run *run, size_t query)
{
    if (run->way == PNB__EXACT_F64)
        return 0.0;
    const pnb__exact_side *q = &run->queries, *x = &run->scan->gallery;
    double dim = (double)q->rows.dim, product = most_product(run);
    double most = fabs(q->term[query]) + x->most_term + 2.0 * product;
    return 0.5 * DBL_EPSILON * (most * 16.0 + product * dim);
}

float pnb__bound_limit(const pnb__exact_run *run, size_t query, double score)
{
    double limit = score - pnb__bound_term(run, query) - 2.0 * pnb__bound_margin(run, query);
    return nextafterf((float)limit, -INFINITY);
}
