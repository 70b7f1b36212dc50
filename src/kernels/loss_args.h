/* What the slots of losses over pairs and samples are asked (kernels.h): the arguments of samples,
 * draws, labels and margins. Pointers are to reals of the table, hence void*; a strip is some rows
 * of one side against all or some of the other. */
#ifndef PNB_KERNELS_LOSS_ARGS_H
#define PNB_KERNELS_LOSS_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Samples of rows of distributions, (n_rows, J, D), rows first .. of mean and log_var (B, D):
 *   x_ij = mean_i + exp(log_var_i / 2) e_ij
 * e is what pnb__rng_normals gives of stream key[2] + 2^32 key[3] and seed key[0] + 2^32 key[1]
 * from number pairs_i J D on (base/base.h), so that nothing is held that can be drawn again.
 * Backward adds to rows first .. of d_mean and d_log_var, both (B, D), either may be NULL. */
typedef struct pnb__draw_args {
    size_t first, n_rows, n_samples, dim;
    const void *mean, *log_var;
    const int32_t *pairs; /* (B): which pair of the batch a row is of */
    const int32_t *key;   /* (4), bits of 32 without a sign */
    void *x;
    const void *dx;
    void *d_mean, *d_log_var;
} pnb__draw_args;

/* A strip of n1 rows of distributions against n2 others, J samples each: squared distances come of
 * products, |x|^2 + |y|^2 - 2 x.y, and of differences where that would lose more than four bits.
 * With d = sqrt(|x_j - y_k|^2 + 1e-6), z_jk = factor sign (shift - scale d), s the logistic:
 *   nll[i][t] = -log mean_jk s(z_jk)
 * Backward: products (n1 J, n2 J) become d loss / d |x_j - y_k|^2, and the two rows of sums get
 * each pair's part of the gradients of scale and shift. Everything is computed in double. */
#define PNB__MATCH_MOST_SAMPLES 64 /* J */
typedef struct pnb__match_args {
    size_t n1, n2, n_samples, dim;
    double factor;
    const void *x, *y;               /* (n1 J, D), (n2 J, D) */
    const void *square_x, *square_y; /* their squared lengths */
    const void *signs;               /* (n1, n2): 1 matches, -1 does not */
    const void *scale, *shift;       /* () */
    void *products;                  /* (n1 J, n2 J) */
    void *nll;                       /* (n1, n2), forward */
    const void *d_nll;               /* (n1, n2), backward */
    void *d_scale, *d_shift;         /* (n1, n2), backward */
} pnb__match_args;

/* Rows of x (n1, D) against those of y (n, D) from `skip` on, for each row one more; all_columns:
 * against all of y.
 *   sums[i] = log sum_{j >= skip + i} exp(-rate |x_i - y_j|^2)
 * Backward: products (n1, n) become d loss / d |x_i - y_j|^2, 0 where a pair does not count. */
typedef struct pnb__spread_args {
    size_t n1, n, dim, skip;
    bool all_columns;
    double rate;
    const void *x, *y;
    const void *square_x, *square_y; /* their squared lengths */
    void *products;                  /* (n1, n) */
    void *sums;                      /* (n1) of the strip: forward writes, backward reads */
    const void *d_sums;              /* (n1) */
} pnb__spread_args;

/* Labels of a strip of pairs, m rows of n: Y_ij = base + sum_k [columns_ik = first + j] weights_ik,
 * columns outside of the strip leave it alone; with `match`, where first is 0, where l_ij >=
 * l_i,match(i), the label that the match has in its place. */
typedef struct pnb__label_args {
    size_t m, n, k, first;
    double base;
    const int32_t *columns; /* (m, k) */
    const void *weights;    /* (m, k) */
    const int32_t *match;   /* (m); NULL: no pair takes another's label */
    const void *logits;     /* (m, n) */
    void *dot;              /* (m) sum_j Y_ij l_ij; NULL: not wanted */
    void *out;              /* (m, n) less Y; NULL: not wanted */
} pnb__label_args;

/* Margins of rows first .. first + m of n to the others: s_ij the best of the k x k products of a
 * pair, [margin + s_ij - s_ii]+ over j != i, all or the largest. Backward: products become
 * d sums / d product; of equal ones the first. */
typedef struct pnb__margin_args {
    size_t m, n, k, first;
    double margin;
    bool is_hardest;
    void *products; /* (m k, n k) */
    double *hinges; /* (n) room */
    void *sums;     /* (m) forward */
    const void *d_sums;
} pnb__margin_args;

/* Sums of a kernel of m rows of x and n of y: sums_i = sum_j exp(-gamma f_ij), f = |x_i - y_j|^2 or
 * the root of it and 1e-12. Backward: products become d sums / d |x_i - y_j|^2. */
typedef struct pnb__kernel_args {
    size_t m, n, dim;
    double gamma;
    bool is_root;
    const void *x, *y;               /* (m, D), (n, D) */
    const void *square_x, *square_y; /* their squared lengths */
    void *products;                  /* (m, n) */
    void *sums;                      /* (m) forward */
    const void *d_sums;
} pnb__kernel_args;

#endif
