/* What the files of this folder and src/index share about measures. */
#ifndef PNB_PROB_MEASURE_H
#define PNB_PROB_MEASURE_H

#include <math.h>

#include "base/base.h"
#include "penumbra/prob.h"
#include "prob/measures.def"

/* ---- what a row of measures.def says ---- */
typedef enum pnb__score_form {
    PNB__SCORE_COSINE,     /* the value, on the scale of cosines */
    PNB__SCORE_HALF,       /* 1 - value/2, on the scale of cosines for unit means */
    PNB__SCORE_SIMILARITY, /* the value */
    PNB__SCORE_DISTANCE    /* minus the value */
} pnb__score_form;

typedef enum pnb__takes {
    PNB__TAKES_ALL,
    PNB__TAKES_GAUSSIAN, /* and points, and generalised Gaussians by their moments */
    PNB__TAKES_VMF,      /* and points */
    PNB__TAKES_POWER     /* and points */
} pnb__takes;

/* Constants of pnb_measure_opts */
typedef enum pnb__reads {
    PNB__READS_NOTHING,
    PNB__READS_EPS,
    PNB__READS_SAMPLES, /* n_samples, seed */
    PNB__READS_MATCH    /* the same, match_a, match_b, match_factor */
} pnb__reads;

typedef struct pnb__measure_traits {
    const char *name, *sentence;
    pnb__score_form score;
    bool is_symmetric;
    pnb__takes takes;
    int n_variances; /* sides that need variances: 0 none, 1 one of them, 2 both */
    pnb__reads reads;
    double (*log_norm)(size_t dim, double kappa); /* likelihoods on the sphere; NULL */
} pnb__measure_traits;

/* For a number outside the list too: a measure named "unknown". */
const pnb__measure_traits *pnb__measure_traits_of(pnb_measure measure);
bool pnb__measure_is_sampled(pnb_measure measure);
bool pnb__measure_is_spherical(pnb_measure measure);
/* Scores on the scale that a model's logit scale and bias were trained on: mean and csd. */
bool pnb__measure_has_logits(pnb_measure measure);
/* False where only the directions of the means enter. */
bool pnb__measure_reads_lengths(pnb_measure measure);

/* Numbers that a gallery must hold for each row of width dim, nothing made again at search: D for
 * means alone, one more where a row's own term is one number, 2 D with spreads, J D for samples.
 * PCME's Table 1 has J^2 D for the last, which are as many distances as samples make. */
size_t pnb__measure_floats(pnb_measure measure, const pnb_rows *rows, const pnb_measure_opts *opts);

/* The opts to use when the caller gave NULL. */
pnb_measure_opts pnb__measure_opts_or_default(const pnb_measure_opts *opts);

/* Whether the measure can be taken between these two sides: same width, families that fit,
 * variances where needed. b may be NULL: what a alone decides. */
pnb_status pnb__measure_check(pnb_measure measure, const pnb_rows *a, const pnb_rows *b,
                              const pnb_measure_opts *opts, pnb_error *err);

/* ---- sphere.c ---- what one row brings to a likelihood on the sphere; a point brings kappa 0 and
 * log_norm 0. scale makes its mean a unit vector (0 for a zero row: cosine 0 with everything). */
typedef struct pnb__sphere_row {
    double kappa, log_norm, scale;
} pnb__sphere_row;
pnb__sphere_row pnb__sphere_row_of(pnb_measure measure, const pnb_rows *rows, size_t row);
double pnb__sphere_pair(pnb_measure measure, const pnb_rows *g1, size_t row1, const pnb_rows *g2,
                        size_t row2);
/* From the sums over both rows; cosine for von Mises-Fisher, 1 + cosine for power spherical. */
double pnb__sphere_value(bool is_power, double kappa, double log_norm, double cosine);
/* Below this cosine, 1 + cosine is taken as |u+v|^2 / 2, which does not cancel. */
#define PNB__SPHERE_OPPOSITE (-0.75)

/* ---- sample.c ---- sample j of row `row`, a function of (seed, side, row, j) alone */
typedef struct pnb__draw {
    const pnb_rows *rows;
    size_t row, j;
    uint64_t seed, stream;
    double scale, dot;    /* sphere: 1/|mean| and g.u of the normals g behind the direction */
    double along, across; /* sphere: the sample is along u + across (g - (g.u) u) */
} pnb__draw;
pnb__draw pnb__draw_init(const pnb_rows *rows, size_t row, size_t j, unsigned side, uint64_t seed);
double pnb__draw_at(const pnb__draw *draw, size_t d);
/* All of it into out (dim): the same values, normals made once. */
void pnb__draw_fill(const pnb_rows *rows, size_t row, size_t j, unsigned side, uint64_t seed,
                    double *out);
/* Samples 0 .. n-1 of a row into out (n, dim). */
void pnb__draw_fill_all(const pnb_rows *rows, size_t row, size_t n, unsigned side, uint64_t seed,
                        double *out);
/* 1 - t of a draw, t the cosine to the mean; NaN for a concentration outside [0, inf). */
double pnb__vmf_deficit(pnb__rng *rng, size_t dim, double kappa);
double pnb__power_spherical_deficit(pnb__rng *rng, size_t dim, double kappa);
/* Gamma(shape, 1), shape > 0 */
double pnb__gamma_draw(pnb__rng *rng, double shape);

/* What a pair of samples adds, by its squared distance: sqrt(d2) for avg_l2, and for match_prob
 * s(factor*l), l = b - a sqrt(d2 + 1e-6): PCME's floor, which keeps the gradient finite. */
static inline double pnb__term_avg_l2(double distance2, const pnb_measure_opts *opts)
{
    (void)opts;
    return sqrt(distance2);
}

static inline double pnb__term_match_prob(double distance2, const pnb_measure_opts *opts)
{
    double l = opts->match_b - opts->match_a * sqrt(distance2 + 1e-6);
    return pnb_sigmoid(opts->match_factor * l);
}

/* ---- sums.c ---- out[i*stride[0] + j*stride[1]] over d of rows a (n_a,dim) and b (n_b,dim): their
 * products, or the squares of their differences. Each is a function of the two rows alone. */
typedef struct pnb__sums {
    const double *a, *b;
    size_t n_a, n_b, dim;
    double *out;
    size_t stride[2];
} pnb__sums;
void pnb__sum_products(const pnb__sums *s);
void pnb__sum_distances2(const pnb__sums *s);
/* The most of generic, avx2 and avx512 that this CPU has, and the sums by one of those it has: the
 * same bits by all. */
pnb_isa pnb__sums_isa(void);
void pnb__sums_by(pnb_isa isa, const pnb__sums *s, bool is_distance);

/* Rows begin .. begin+n of one side, unpacked to f64 with what the fused loops need. */
typedef struct pnb__tile {
    size_t n, dim;
    double *mean, *var;
    double *aux;     /* w2: std; kl, jeffreys: 1/var; Monte-Carlo: samples [n][J][dim] */
    double *log_sum; /* per row: sum of log-variances (mean: norm of the mean; csd: sum of
                        variances; sphere: log norm) */
    double *kappa;   /* per row, sphere only: concentration, 0 for points */
    bool has_kappa;
    size_t n_parts; /* max_cosine: embeddings of a row */
    void *memory;
    size_t capacity;
} pnb__tile;

/* Memory for up to `capacity` rows; free with pnb__tile_free. NOMEM */
pnb_status pnb__tile_alloc(pnb__tile *tile, pnb_measure measure, size_t capacity, size_t dim,
                           const pnb_measure_opts *opts, pnb_error *err);
void pnb__tile_free(pnb__tile *tile);
void pnb__tile_fill(pnb__tile *tile, pnb_measure measure, const pnb_rows *g, size_t begin, size_t n,
                    unsigned side, const pnb_measure_opts *opts);

/* out[i*stride[0] + j*stride[1]] = value of row i of a against row j of b. */
void pnb__tile_measure(pnb_measure measure, const pnb__tile *a, const pnb__tile *b,
                       const pnb_measure_opts *opts, double *out, const size_t stride[2]);

#endif
