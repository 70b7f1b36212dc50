/* Samples of every family, as functions of (seed, side, row, sample).
 *
 *   Gaussian          mean + std g                                   g normal (Box-Muller)
 *   point             mean
 *   generalised       mean +- alpha G^(1/beta), G ~ Gamma(1/beta);   G^(1/beta) = H^(1/beta) u with
 *                     H ~ Gamma(1 + 1/beta), u uniform: exact, and safe for large beta
 *   on the sphere     t u + sqrt(1-t^2) v,  u the direction of the mean, v uniform in its tangents:
 *                     a normal vector less its part along u, made a unit vector
 *     von Mises-Fisher  t by rejection from a beta envelope (Wood 1994)
 *     power spherical   (1+t)/2 ~ Beta((d-1)/2 + kappa, (d-1)/2), no rejection (De Cao, Aziz 2020)
 *
 * 1 - t is what is drawn, so that nothing cancels for kappa = 1e6. Gamma variates by Marsaglia and
 * Tsang 2000. Stream = 2 row + side; word 4 (j D + d) of it begins the normal of value d of sample
 * j, radial draws use words from 2^63 on, gamma draws of single values 1024 words each: a rejection
 * that ever needed more would read on into its neighbour's. */
#include <math.h>

#include "penumbra/distributions.h"
#include "prob/measure.h"

#define WORDS_PER_NORMAL 4
#define WORDS_PER_DRAW 1024
#define RADIAL_WORDS ((uint64_t)1 << 63)

/* On the sphere of at least two dimensions; rejection would never end on anything else. */
static bool has_angle(size_t dim, double kappa)
{
    return dim >= 2 && kappa >= 0.0 && isfinite(kappa);
}

/* ---- one dimension ---- */

/* Shape above 1/3; here always at least 1. */
static double gamma_large(pnb__rng *rng, double shape)
{
    double d = shape - 1.0 / 3.0, c = 1.0 / sqrt(9.0 * d);
    for (;;) {
        double x = pnb__rng_normal(rng), v = 1.0 + c * x;
        if (v <= 0.0)
            continue;
        v = v * v * v;
        double u = 1.0 - pnb__rng_uniform(rng);
        if (log(u) <= 0.5 * x * x + d - d * v + d * log(v))
            return d * v;
    }
}

double pnb__gamma_draw(pnb__rng *rng, double shape)
{
    if (!(shape > 0.0) || !isfinite(shape))
        return (double)NAN;
    if (shape >= 1.0)
        return gamma_large(rng, shape);
    double g = gamma_large(rng, shape + 1.0);
    return g * pow(1.0 - pnb__rng_uniform(rng), 1.0 / shape);
}

/* Envelope t = (1 - (1+b) z) / (1 - (1-b) z), z ~ Beta(m, m), m = (d-1)/2, b = m / (kappa + hypot).
 * With z = g1/(g1+g2): 1 - t = 2 b g1 / (g2 + b g1). Accepted against
 * kappa (t - t0) + 2m log((1 - t0 t)/(1 - t0^2)), t0 = (1-b)/(1+b). */
double pnb__vmf_deficit(pnb__rng *rng, size_t dim, double kappa)
{
    double m = 0.5 * ((double)dim - 1.0), b = m / (kappa + hypot(kappa, m));
    double t0 = (1.0 - b) / (1.0 + b), deficit0 = 2.0 * b / (1.0 + b);
    double norm0 = deficit0 * 2.0 / (1.0 + b);
    if (!has_angle(dim, kappa))
        return (double)NAN;
    for (;;) {
        double g1 = pnb__gamma_draw(rng, m), g2 = pnb__gamma_draw(rng, m);
        double deficit = 2.0 * b * g1 / (g2 + b * g1);
        double u = 1.0 - pnb__rng_uniform(rng);
        double gain =
            kappa * (deficit0 - deficit) + 2.0 * m * log((deficit0 + t0 * deficit) / norm0);
        if (gain >= log(u))
            return deficit;
    }
}

double pnb__power_spherical_deficit(pnb__rng *rng, size_t dim, double kappa)
{
    double m = 0.5 * ((double)dim - 1.0);
    if (!has_angle(dim, kappa))
        return (double)NAN;
    double towards = pnb__gamma_draw(rng, m + kappa), away = pnb__gamma_draw(rng, m);
    return 2.0 * away / (towards + away);
}

/* ---- one sample ---- */

static double normal_at(const pnb__draw *z, size_t d)
{
    pnb__rng rng = {.seed = z->seed,
                    .stream = z->stream,
                    .counter = WORDS_PER_NORMAL * (z->j * z->rows->dim + d)};
    return pnb__rng_normal(&rng);
}

/* u = mean / |mean| */
static double unit_at(const pnb__draw *z, size_t d)
{
    return z->scale * z->rows->mean[z->row * z->rows->dim + d];
}

/* Sums over the normals; from `normals` where the caller has them, made again otherwise. */
static void init_sphere(pnb__draw *z, const double *normals)
{
    const pnb_rows *rows = z->rows;
    const float *mean = rows->mean + z->row * rows->dim;
    double square = 0.0, rest = 0.0;
    for (size_t d = 0; d < rows->dim; d++)
        square += (double)mean[d] * mean[d];
    z->scale = square == 0.0 ? 0.0 : 1.0 / sqrt(square);
    for (size_t d = 0; d < rows->dim; d++)
        z->dot += (normals != NULL ? normals[d] : normal_at(z, d)) * unit_at(z, d);
    for (size_t d = 0; d < rows->dim; d++) {
        double g = (normals != NULL ? normals[d] : normal_at(z, d)) - z->dot * unit_at(z, d);
        rest += g * g;
    }
    pnb__rng rng = {.seed = z->seed,
                    .stream = z->stream,
                    .counter = RADIAL_WORDS + WORDS_PER_DRAW * (uint64_t)z->j};
    double deficit = rows->is_power
                         ? pnb__power_spherical_deficit(&rng, rows->dim, rows->kappa[z->row])
                         : pnb__vmf_deficit(&rng, rows->dim, rows->kappa[z->row]);
    z->along = 1.0 - deficit;
    z->across = rest == 0.0 ? 0.0 : sqrt(deficit * (2.0 - deficit) / rest);
}

/* Streams of the two sides never meet: a set against itself is not compared by equal draws. */
static pnb__draw start(const pnb_rows *rows, size_t row, size_t j, unsigned side, uint64_t seed)
{
    return (pnb__draw){
        .rows = rows, .row = row, .j = j, .seed = seed, .stream = 2 * (uint64_t)row + side};
}

pnb__draw pnb__draw_init(const pnb_rows *rows, size_t row, size_t j, unsigned side, uint64_t seed)
{
    pnb__draw z = start(rows, row, j, side, seed);
    if (rows->kappa != NULL)
        init_sphere(&z, NULL);
    return z;
}

/* mean +- alpha H^(1/beta) u; the sign is a bit of the next word. */
static double generalised_at(const pnb__draw *z, size_t d)
{
    size_t at = z->row * z->rows->dim + d;
    double beta = z->rows->beta[at], inv_alpha = z->rows->inv_alpha[at];
    pnb__rng rng = {.seed = z->seed,
                    .stream = z->stream,
                    .counter = WORDS_PER_DRAW * (uint64_t)(z->j * z->rows->dim + d)};
    if (!(beta > 0.0) || !(inv_alpha > 0.0))
        return (double)NAN;
    double h = pnb__gamma_draw(&rng, 1.0 + 1.0 / beta);
    double reach = pow(h, 1.0 / beta) * pnb__rng_uniform(&rng) / inv_alpha;
    return z->rows->mean[at] + (pnb__rng_u32(&rng) & 1 ? reach : -reach);
}

/* t u + sqrt(1-t^2) v, v = (g - (g.u) u) / |g - (g.u) u|; the quotient is in `across`. */
static double sphere_at(const pnb__draw *z, double normal, size_t d)
{
    double u = unit_at(z, d);
    return z->along * u + z->across * (normal - z->dot * u);
}

double pnb__draw_at(const pnb__draw *z, size_t d)
{
    const pnb_rows *rows = z->rows;
    size_t at = z->row * rows->dim + d;
    if (rows->kappa != NULL)
        return sphere_at(z, normal_at(z, d), d);
    if (rows->beta != NULL)
        return generalised_at(z, d);
    if (rows->log_var == NULL)
        return rows->mean[at];
    return rows->mean[at] + exp(0.5 * (double)rows->log_var[at]) * normal_at(z, d);
}

/* The normals of sample j, of all dimensions. */
static void fill_normals(const pnb__draw *z, double *out)
{
    pnb__rng rng = {.seed = z->seed,
                    .stream = z->stream,
                    .counter = WORDS_PER_NORMAL * (uint64_t)(z->j * z->rows->dim)};
    pnb__rng_normals(&rng, z->rows->dim, out);
}

static bool is_gaussian(const pnb_rows *rows)
{
    return rows->kappa == NULL && rows->beta == NULL && rows->log_var != NULL;
}

/* std may be out: the normals that take its place are made in pieces. */
static void fill_gaussian(const pnb__draw *z, const double *std, double *out)
{
    enum { PIECE = 64 };
    const float *mean = z->rows->mean + z->row * z->rows->dim;
    double normal[PIECE];
    pnb__rng rng = {.seed = z->seed,
                    .stream = z->stream,
                    .counter = WORDS_PER_NORMAL * (uint64_t)(z->j * z->rows->dim)};
    for (size_t d = 0; d < z->rows->dim; d += PIECE) {
        size_t n = PNB_MIN(z->rows->dim - d, (size_t)PIECE);
        pnb__rng_normals(&rng, n, normal);
        for (size_t i = 0; i < n; i++)
            out[d + i] = mean[d + i] + std[d + i] * normal[i];
    }
}

static void fill_std(const pnb_rows *rows, size_t row, double *std)
{
    for (size_t d = 0; d < rows->dim; d++)
        std[d] = exp(0.5 * (double)rows->log_var[row * rows->dim + d]);
}

void pnb__draw_fill(const pnb_rows *rows, size_t row, size_t j, unsigned side, uint64_t seed,
                    double *out)
{
    pnb__draw z = start(rows, row, j, side, seed);
    if (is_gaussian(rows)) {
        fill_std(rows, row, out);
        fill_gaussian(&z, out, out);
        return;
    }
    if (rows->kappa == NULL) {
        for (size_t d = 0; d < rows->dim; d++)
            out[d] = pnb__draw_at(&z, d);
        return;
    }
    fill_normals(&z, out);
    init_sphere(&z, out);
    for (size_t d = 0; d < rows->dim; d++)
        out[d] = sphere_at(&z, out[d], d);
}

void pnb__draw_fill_all(const pnb_rows *rows, size_t row, size_t n, unsigned side, uint64_t seed,
                        double *out)
{
    if (!is_gaussian(rows) || n == 0) {
        for (size_t j = 0; j < n; j++)
            pnb__draw_fill(rows, row, j, side, seed, out + j * rows->dim);
        return;
    }
    double *std = out + (n - 1) * rows->dim; /* read by the others before it is the last sample */
    fill_std(rows, row, std);
    for (size_t j = 0; j < n; j++) {
        pnb__draw z = start(rows, row, j, side, seed);
        fill_gaussian(&z, std, out + j * rows->dim);
    }
}

/* ---- rows ---- */

pnb_sample_opts pnb_sample_opts_default(void)
{
    return (pnb_sample_opts){.n_samples = 1};
}

/* Parameters out of their range have given NaN, and a zero mean no direction: both are named. */
static pnb_status check_sample(const pnb_rows *rows, size_t row, size_t j, const double *z,
                               pnb_error *err)
{
    double square = 0.0;
    for (size_t d = 0; d < rows->dim; d++) {
        double m = rows->mean[row * rows->dim + d];
        square += m * m;
        if (!isfinite(z[d]))
            return pnb__fail(err, PNB_NUMERIC,
                             "row %zu, sample %zu: dimension %zu is %g; the %s embedding holds a "
                             "parameter that is not finite or outside its range",
                             row, j, d, z[d], pnb_rows_family(rows));
    }
    if (rows->kappa != NULL && square == 0.0)
        return pnb__fail(err, PNB_NUMERIC,
                         "row %zu: the mean is zero and has no direction; a %s embedding needs one",
                         row, pnb_rows_family(rows));
    return PNB_OK;
}

pnb_status pnb_sample_rows(const pnb_rows *rows, const pnb_sample_opts *opts, double *out,
                           pnb_error *err)
{
    pnb_sample_opts o = opts == NULL ? pnb_sample_opts_default() : *opts;
    if (rows->dim == 0)
        return pnb__fail(err, PNB_SHAPE, "embeddings have width 0");
    if (rows->kappa != NULL && rows->dim < 2)
        return pnb__fail(err, PNB_SHAPE, "%s embeddings of width %zu; a sphere needs 2",
                         pnb_rows_family(rows), rows->dim);
    if (o.side > 1)
        return pnb__fail(err, PNB_ARG, "side %u of a sample; it is 0 or 1", o.side);
    for (size_t i = 0; i < rows->n; i++) {
        double *z = out + i * o.n_samples * rows->dim;
        pnb__draw_fill_all(rows, i, o.n_samples, o.side, o.seed, z);
        for (size_t j = 0; j < o.n_samples; j++) {
            pnb_status status = check_sample(rows, i, j, z + j * rows->dim, err);
            if (status != PNB_OK)
                return status;
        }
    }
    return PNB_OK;
}
