/* How much a scene of the `shapes` set leaves open, as a number that is known and not estimated.
 *
 * Model of the observer: he knows where a shape lies, the ground, the blur and the occluder, and
 * sees every value of a picture through independent Gaussian noise of standard deviation 0.25 (this
 * stands for pixel noise, colour noise and the place he does not know exactly). For one shape there
 * are C = 84 candidates (form, colour, size), equally likely before. With I_c the noise-free
 * picture of candidate c and t the true one,
 *
 *   p(c) proportional to exp(-||I_c - I_t||^2 / (2 * 0.25^2))     over the pixels not covered
 *
 * and the scene's entropy is the sum over its shapes of H(p), in bits; the shapes are independent
 * because they do not overlap (under blur this is an approximation). Grey shapes have the same
 * I_c for all seven colours. A picture without noise is ground + f_c * (rgb_c - ground) +
 * l_c * (ink - ground) with f, l the blurred coverages of fill and outline, so the norm of a
 * difference follows from the inner products of the 24 coverages. A candidate counts as consistent
 * when its p is at least a hundredth of the largest. */
#include "data/synth/shapes/shapes.h"

#include <math.h>

/* Masks of one form and size: FILL, then LINE. */
enum { FILL, LINE, N_PARTS, N_MASKS = PNB__N_FORMS * PNB__N_SIZES * N_PARTS };

static const double OBSERVER_STD = 0.25;

/* What of a coverage an observer gets to see: blurred, and nothing behind the occluder. */
static void spoil_mask(const pnb__ambiguity *a, int width, int height, float *mask, float *scratch)
{
    if (a->blur > 0)
        pnb__blur_plane(mask, width, height, a->blur, scratch);
    for (int y = 0; a->has_occluder && y < height; y++)
        for (int x = 0; x < width; x++)
            if (x >= lround(a->box[0]) && x < lround(a->box[2]) && y >= lround(a->box[1]) &&
                y < lround(a->box[3]))
                mask[(size_t)y * (size_t)width + (size_t)x] = 0.0f;
}

/* Inner products of the visible parts of the coverages of every form and size at this place. */
static void mask_products(const pnb__scene *scene, const pnb__shape *truth,
                          const pnb_shapes_opts *opts, float *masks,
                          double product[N_MASKS][N_MASKS])
{
    int width = opts->width, height = opts->height;
    size_t n = (size_t)width * (size_t)height;
    for (int m = 0; m < N_MASKS; m += N_PARTS) {
        float *fill = masks + (size_t)(m + FILL) * n, *line = masks + (size_t)(m + LINE) * n;
        pnb__shape s = *truth;
        s.form = m / (N_PARTS * PNB__N_SIZES);
        s.size = m / N_PARTS % PNB__N_SIZES;
        s.radius = pnb__size_radius(s.size, width, height);
        pnb__shape_coverage(&s, width, height, fill, line);
        spoil_mask(&scene->ambiguity, width, height, fill, masks + (size_t)N_MASKS * n);
        spoil_mask(&scene->ambiguity, width, height, line, masks + (size_t)N_MASKS * n);
    }
    for (int i = 0; i < N_MASKS; i++)
        for (int j = 0; j <= i; j++) {
            double sum = 0.0;
            for (size_t k = 0; k < n; k++)
                sum += (double)masks[(size_t)i * n + k] * (double)masks[(size_t)j * n + k];
            product[i][j] = product[j][i] = sum;
        }
}

/* Differences from the ground of a shape's fill and outline. */
static void contrast_of(const pnb__scene *scene, const pnb__shape *truth, int colour,
                        double contrast[N_PARTS][3])
{
    float rgb[3];
    pnb__colour_rgb(colour, rgb);
    for (int c = 0; c < 3; c++) {
        contrast[FILL][c] =
            (double)(truth->is_grey ? truth->rgb[c] : rgb[c]) - (double)scene->ground[c];
        contrast[LINE][c] = (double)PNB__INK - (double)scene->ground[c];
    }
}

static double entropy(const double *p, int n)
{
    double bits = 0.0;
    for (int i = 0; i < n; i++)
        if (p[i] > 0)
            bits -= p[i] * log2(p[i]);
    return PNB_MAX(bits, 0.0);
}

static double dot3(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* Inner product of two drawn shapes less the ground; a and b are their first masks. */
static double drawn_product(double product[N_MASKS][N_MASKS], int a, double ca[N_PARTS][3], int b,
                            double cb[N_PARTS][3])
{
    double sum = 0.0;
    for (int i = 0; i < N_PARTS; i++)
        for (int j = 0; j < N_PARTS; j++)
            sum += product[a + i][b + j] * dot3(ca[i], cb[j]);
    return sum;
}

/* p[form][colour][size] of one shape. */
static void posterior(const pnb__scene *scene, const pnb__shape *truth,
                      double product[N_MASKS][N_MASKS], double p[PNB__N_COMBOS])
{
    double total = 0.0, ct[N_PARTS][3];
    int t = (truth->form * PNB__N_SIZES + truth->size) * N_PARTS;
    contrast_of(scene, truth, truth->colour, ct);
    for (int i = 0; i < PNB__N_COMBOS; i++) {
        int size = i % PNB__N_SIZES, colour = i / PNB__N_SIZES % PNB__N_COLOURS;
        int m = (i / (PNB__N_SIZES * PNB__N_COLOURS) * PNB__N_SIZES + size) * N_PARTS;
        double cc[N_PARTS][3];
        contrast_of(scene, truth, colour, cc);
        double distance2 = drawn_product(product, m, cc, m, cc) +
                           drawn_product(product, t, ct, t, ct) -
                           2.0 * drawn_product(product, m, cc, t, ct);
        p[i] = exp(-PNB_MAX(distance2, 0.0) / (2.0 * OBSERVER_STD * OBSERVER_STD));
        total += p[i];
    }
    for (int i = 0; i < PNB__N_COMBOS; i++)
        p[i] /= total;
}

static void add_shape(pnb__ambiguity *a, const double p[PNB__N_COMBOS])
{
    double form[PNB__N_FORMS] = {0}, colour[PNB__N_COLOURS] = {0}, size[PNB__N_SIZES] = {0};
    double largest = 0.0;
    int n_consistent = 0;
    for (int i = 0; i < PNB__N_COMBOS; i++) {
        size[i % PNB__N_SIZES] += p[i];
        colour[i / PNB__N_SIZES % PNB__N_COLOURS] += p[i];
        form[i / (PNB__N_SIZES * PNB__N_COLOURS)] += p[i];
        largest = PNB_MAX(largest, p[i]);
    }
    for (int i = 0; i < PNB__N_COMBOS; i++)
        n_consistent += p[i] >= 0.01 * largest;
    a->entropy_bits += entropy(p, PNB__N_COMBOS);
    a->form_bits += entropy(form, PNB__N_FORMS);
    a->colour_bits += entropy(colour, PNB__N_COLOURS);
    a->size_bits += entropy(size, PNB__N_SIZES);
    a->n_consistent *= n_consistent;
}

pnb_status pnb__scene_ambiguity(pnb__scene *scene, const pnb_shapes_opts *opts, pnb_error *err)
{
    size_t n = (size_t)opts->width * (size_t)opts->height;
    pnb__ambiguity *a = &scene->ambiguity;
    float *masks = pnb__alloc_array((N_MASKS + 1) * n, sizeof *masks);
    if (!masks)
        return pnb__fail_nomem(err, (N_MASKS + 1) * n * sizeof *masks);
    a->entropy_bits = a->form_bits = a->colour_bits = a->size_bits = 0.0;
    a->n_consistent = 1.0;
    for (int k = 0; k < scene->n_shapes; k++) {
        double product[N_MASKS][N_MASKS], p[PNB__N_COMBOS];
        mask_products(scene, &scene->shapes[k], opts, masks, product);
        posterior(scene, &scene->shapes[k], product, p);
        add_shape(a, p);
    }
    if (a->has_occluder) {
        const pnb__shape *s = &scene->shapes[a->occluded];
        double all = 0.0, covered = 0.0;
        pnb__shape_coverage(s, opts->width, opts->height, masks, masks + n);
        for (int y = 0; y < opts->height; y++)
            for (int x = 0; x < opts->width; x++) {
                size_t at = (size_t)y * (size_t)opts->width + (size_t)x;
                double value = (double)masks[at] + (double)masks[n + at];
                bool is_in = x >= lround(a->box[0]) && x < lround(a->box[2]) &&
                             y >= lround(a->box[1]) && y < lround(a->box[3]);
                all += value;
                covered += is_in ? value : 0.0;
            }
        a->occluded_share = all > 0 ? covered / all : 0.0;
    }
    pnb__free(masks);
    return PNB_OK;
}
