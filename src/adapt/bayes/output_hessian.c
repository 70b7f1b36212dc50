/* The loss's curvature by the projected rows: generalised Gauss-Newton through the normalisation.
 *
 *   u = g/|g|, logits z_k = t u.v_k + b,   J = dz/dg = (t/|g|) V (I - u u^T)
 *   infonce:  Lambda = diag(w) - w w^T, w = softmax(z)
 *   siglip:   Lambda = diag(w), w_k = s(z_k)(1 - s(z_k))
 *
 * J^T Lambda J written out for every row would cost m q^2 each. With c = t^2/|g|^2 and
 * M = V^T Lambda V it is c (M - u (Mu)^T - (Mu) u^T + (u^T M u) u u^T), and the sum over rows of
 * c M is V^T diag(sum c w) V - sum c (V^T w)(V^T w)^T: products of matrices, n m q in all. */
#include <math.h>
#include <string.h>

#include "adapt/bayes/kronecker.h"
#include "penumbra/prob.h"

enum { TILE = 256 }; /* rows at a time */

typedef struct tile {
    double *cosine, *weight; /* (TILE,m) u.v_k; w, then w times the cosine */
    double *mean;            /* (TILE,q) V^T w */
    double *bent;            /* (TILE,q) M u, then c (M u - (u^T M u) u / 2) */
    double *mass;            /* (m) sum over rows of c w */
    double *scaled;          /* (TILE,q) sqrt(c) V^T w; (m,q) at the end */
} tile;

static pnb_status make_room(tile *t, size_t m, size_t q, pnb_error *err)
{
    size_t tall = PNB_MAX((size_t)TILE, m);
    t->cosine = pnb__alloc_array(TILE * m, sizeof(double));
    t->weight = pnb__alloc_array(TILE * m, sizeof(double));
    t->mean = pnb__alloc_array(TILE * q, sizeof(double));
    t->bent = pnb__alloc_array(TILE * q, sizeof(double));
    t->mass = pnb__alloc_zero(m, sizeof(double));
    t->scaled = pnb__alloc_array(tall * q, sizeof(double));
    bool has_room = t->cosine != NULL && t->weight != NULL && t->mean != NULL && t->bent != NULL &&
                    t->mass != NULL && t->scaled != NULL;
    return has_room ? PNB_OK : pnb__fail_nomem(err, (2 * TILE * m + tall * q) * sizeof(double));
}

static void reset(tile *t)
{
    pnb__free(t->cosine);
    pnb__free(t->weight);
    pnb__free(t->mean);
    pnb__free(t->bent);
    pnb__free(t->mass);
    pnb__free(t->scaled);
}

static void softmax(double scale, const double *cosine, size_t m, double *w)
{
    double most = cosine[0], sum = 0.0;
    for (size_t k = 1; k < m; k++)
        most = fmax(most, cosine[k]);
    for (size_t k = 0; k < m; k++)
        sum += w[k] = exp(scale * (cosine[k] - most));
    for (size_t k = 0; k < m; k++)
        w[k] /= sum;
}

static void weigh(const pnb__contrast *c, const double *cosine, size_t m, double *w)
{
    if (c->loss == PNB_ADAPT_LOSS_INFONCE) {
        softmax(c->scale, cosine, m, w);
        return;
    }
    for (size_t k = 0; k < m; k++) {
        double z = c->scale * cosine[k] + c->bias;
        w[k] = pnb_sigmoid(z) * pnb_sigmoid(-z);
    }
}

static double dot(const double *a, const double *b, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* One row: bent becomes c (M u - (u^T M u) u / 2), scaled sqrt(c) V^T w. */
static void bend(const pnb__contrast *c, tile *t, size_t i, const double *u, double curvature,
                 size_t q)
{
    const double *mean = t->mean + i * q;
    double *bent = t->bent + i * q, *scaled = t->scaled + i * q;
    double along = c->loss == PNB_ADAPT_LOSS_INFONCE ? dot(mean, u, q) : 0.0;
    for (size_t d = 0; d < q; d++)
        bent[d] -= along * mean[d];
    double form = dot(u, bent, q);
    for (size_t d = 0; d < q; d++) {
        bent[d] = curvature * (bent[d] - 0.5 * form * u[d]);
        scaled[d] = sqrt(curvature) * mean[d];
    }
}

static void add_tile(double *b, const pnb_ctx *ctx, const pnb__contrast *c, tile *t,
                     const double *unit, const double *length, size_t n, const double *other,
                     size_t m, size_t q)
{
    pnb__product_of_rows(ctx, unit, other, n, m, q, t->cosine);
    for (size_t i = 0; i < n; i++)
        weigh(c, t->cosine + i * m, m, t->weight + i * m);
    pnb__product(ctx, t->weight, other, n, q, m, t->mean);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < m; k++) {
            double w = t->weight[i * m + k];
            t->mass[k] += c->scale * c->scale / (length[i] * length[i]) * w;
            t->weight[i * m + k] = w * t->cosine[i * m + k];
        }
    pnb__product(ctx, t->weight, other, n, q, m, t->bent);
    for (size_t i = 0; i < n; i++)
        bend(c, t, i, unit + i * q, c->scale * c->scale / (length[i] * length[i]), q);
    if (c->loss == PNB_ADAPT_LOSS_INFONCE)
        pnb__gram_add(ctx, -1.0, t->scaled, t->scaled, n, q, q, b);
    pnb__gram_add(ctx, -1.0, unit, t->bent, n, q, q, b);
    pnb__gram_add(ctx, -1.0, t->bent, unit, n, q, q, b);
}

pnb_status pnb__output_hessian_add(double *b, const pnb_ctx *ctx, const pnb__contrast *c,
                                   const double *unit, const double *length, size_t n,
                                   const double *other, size_t m, size_t q, pnb_error *err)
{
    tile t = {0};
    pnb_status status = make_room(&t, m, q, err);
    for (size_t i = 0; i < n && status == PNB_OK; i += TILE)
        add_tile(b, ctx, c, &t, unit + i * q, length + i, PNB_MIN(n - i, (size_t)TILE), other, m,
                 q);
    for (size_t k = 0; k < m && status == PNB_OK; k++)
        for (size_t d = 0; d < q; d++)
            t.scaled[k * q + d] = t.mass[k] * other[k * q + d];
    if (status == PNB_OK)
        pnb__gram_add(ctx, 1.0, other, t.scaled, m, q, q, b);
    reset(&t);
    return status;
}
