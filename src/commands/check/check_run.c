/* The model doctor's runs: a built-in picture and caption, golden.safetensors of the folder, and
 * the published numbers of ProLIP ViT-B/16.
 *
 * golden.safetensors holds `pixels` (B,3,H,W) and `ids` (B,T) and what another implementation made
 * of them: `image`, `text` (or image.mean, text.mean) before normalisation, image_norm, text_norm,
 * image.std, text.std (log-variances). Accepted: 1e-4 in cosine distance, 1e-3 of each variance.
 * The published numbers are those of the authors' notebook, printed to four decimals. */
#include <math.h>
#include <string.h>

#include "commands/check/check.h"
#include "models/model.h"
#include "penumbra/safetensors.h"
#include "sets/settle.h"

#define MAX_COSINE_DISTANCE 1e-4
#define MAX_RELATIVE_VARIANCE 1e-3

/* ---- encoding with findings ---- */

static double dot(const float *a, const float *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

static double trace(const pnb_embeddings *e, size_t row)
{
    double sum = 0;
    for (size_t i = 0; i < e->dim; i++)
        sum += exp((double)e->log_var[row * e->dim + i]);
    return sum;
}

/* Into row 0. */
static pnb_status encode_pixels(pnb__visit *v, const pnb_image *image, pnb_embeddings *out,
                                pnb_error *err)
{
    const pnb_tower_info *t = &v->model.info->vision;
    const pnb_encode_out to = pnb__encode_rows(out, 0);
    float *chw = pnb__alloc_array(3 * t->image_height * t->image_width, sizeof *chw);
    if (chw == NULL)
        return pnb__fail_nomem(err, 3 * t->image_height * t->image_width * sizeof *chw);
    pnb_status status = pnb_preprocess_apply(&v->model.preprocess, image, chw, err);
    if (status == PNB_OK)
        status = pnb_model_encode_image(v->model.model, chw, 1, &to, err);
    pnb__free(chw);
    return status;
}

static pnb_status encode_text(pnb__visit *v, const char *sentence, pnb_embeddings *out, size_t row,
                              pnb_error *err)
{
    size_t context = v->model.info->text.context_length;
    int32_t *ids = pnb__alloc_array(context, sizeof *ids);
    if (ids == NULL)
        return pnb__fail_nomem(err, context * sizeof *ids);
    pnb_status status = pnb_tokenizer_encode(v->model.tokenizer, sentence, strlen(sentence),
                                             (int)context, ids, NULL, err);
    const pnb_encode_out to = pnb__encode_rows(out, row);
    if (status == PNB_OK)
        status = pnb_model_encode_text(v->model.model, ids, 1, context, &to, err);
    pnb__free(ids);
    return status;
}

/* ---- a built-in picture and caption ---- */

/* Colour ramps with a bright disc: every channel and both directions vary. */
static bool draw_image(pnb_image *image)
{
    enum { WIDTH = 320, HEIGHT = 240, RADIUS = 60 };
    if (pnb_image_create(image, WIDTH, HEIGHT, 3, NULL) != PNB_OK)
        return false;
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            unsigned char *p = image->pixels + 3 * (y * WIDTH + x);
            int dx = x - WIDTH / 2, dy = y - HEIGHT / 2;
            bool inside = dx * dx + dy * dy < RADIUS * RADIUS;
            p[0] = (unsigned char)(x * 255 / WIDTH);
            p[1] = (unsigned char)(y * 255 / HEIGHT);
            p[2] = (unsigned char)(inside ? 255 : (x + y) % 256);
        }
    return true;
}

/* Of the family's own kind: a trace, 1/kappa, a mean variance. */
static double uncertainty_of(pnb__visit *v, const pnb_embeddings *e)
{
    pnb_error err = PNB_ERROR_INIT;
    double *u = NULL, value = INFINITY; /* where it cannot be told, it is not one to use */
    if (pnb__row_uncertainty(e, PNB__UNCERTAINTY_AUTO, &u, &err) == PNB_OK)
        value = u[0];
    v->no_memory |= err.status == PNB_NOMEM;
    pnb__free(u);
    return value;
}

/* The norm that is farthest from 1 of the K embeddings that a row holds. */
static double worst_norm(const pnb_embeddings *e, size_t k)
{
    size_t width = e->dim / k;
    double worst = 1;
    for (size_t i = 0; i < k; i++) {
        const float *mean = e->mean + i * width;
        double norm = sqrt(dot(mean, mean, width));
        worst = fabs(norm - 1) <= fabs(worst - 1) ? worst : norm; /* a NaN stays */
    }
    return worst;
}

/* The largest of any two, as rows of several are compared. */
static double best_cosine(const pnb_embeddings *a, const pnb_embeddings *b, size_t k)
{
    size_t width = a->dim / k;
    double best = -1;
    for (size_t i = 0; i < k; i++)
        for (size_t j = 0; j < k; j++)
            best = fmax(best, dot(a->mean + i * width, b->mean + j * width, width));
    return best;
}

/* Means are directions, but for generalised Gaussians, which live in the space as it is. */
static void judge_row(pnb__visit *v, const char *what, const pnb_embeddings *e)
{
    double norm = worst_norm(e, v->model.info->n_embeddings), uncertainty = uncertainty_of(v, e);
    bool is_unit = e->family != PNB_GEN_GAUSSIAN;
    if (is_unit && !(fabs(norm - 1) < 1e-3))
        pnb__finding_add(v, PNB__FINDING_ERROR, "run",
                         "the embedding of the built-in %s has norm "
                         "%g, 1 is wanted",
                         what, norm);
    else if (e->family != PNB_POINT)
        pnb__finding_add(v, PNB__FINDING_OK, "run", "built-in %s: finite%s, uncertainty %.5g", what,
                         is_unit ? ", norm 1" : "", uncertainty);
    else
        pnb__finding_add(v, PNB__FINDING_OK, "run", "built-in %s: finite, norm 1", what);
    if (e->family != PNB_POINT && uncertainty > 100)
        pnb__finding_add(v, PNB__FINDING_WARNING, "run",
                         "the uncertainty of the built-in %s is %g, above that of any trained "
                         "model",
                         what, uncertainty);
}

void pnb__check_forward(pnb__visit *v)
{
    static const char sentence[] = "a bright disc on a colourful background";
    pnb_image drawn = {0};
    pnb_error err = PNB_ERROR_INIT;
    pnb_embeddings *image = NULL, *text = NULL;
    bool sees = v->model.info->vision.present && v->model.preprocess.width > 0;
    bool reads = v->model.tokenizer != NULL;
    if (pnb__encoder_make_set(&v->model, PNB_ENCODE_IMAGES, 1, &image, NULL) != PNB_OK ||
        pnb__encoder_make_set(&v->model, PNB_ENCODE_TEXTS, 1, &text, NULL) != PNB_OK ||
        !draw_image(&drawn)) {
        v->no_memory = true;
    } else {
        sees = sees && encode_pixels(v, &drawn, image, &err) == PNB_OK;
        reads = err.status == PNB_OK && reads && encode_text(v, sentence, text, 0, &err) == PNB_OK;
        if (err.status != PNB_OK)
            pnb__finding_fault(v, "run", &err);
        if (sees)
            judge_row(v, "picture", image);
        if (reads)
            judge_row(v, "caption", text);
        if (sees && reads)
            pnb__finding_add(v, PNB__FINDING_OK, "run", "their cosine is %.4f",
                             best_cosine(image, text, v->model.info->n_embeddings));
    }
    pnb_image_free(&drawn);
    pnb_embeddings_free(image);
    pnb_embeddings_free(text);
}

/* ---- golden.safetensors ---- */

static const pnb_array_view *first_of(const pnb_safetensors *st, const char *a, const char *b)
{
    const pnb_array_view *view = pnb_safetensors_find(st, a);
    return view != NULL ? view : pnb_safetensors_find(st, b);
}

/* Worst cosine distance of rows, or worst relative error of exp. */
static double worst_error(const float *got, const float *want, size_t n, size_t width, bool is_var)
{
    double worst = 0;
    for (size_t i = 0; i < n; i++) {
        const float *a = got + i * width, *b = want + i * width;
        if (!is_var) {
            double error = 1 - dot(a, b, width) / sqrt(dot(a, a, width) * dot(b, b, width));
            worst = error <= worst ? worst : error;
        }
        for (size_t d = 0; d < width && is_var; d++) {
            double error = fabs(expm1((double)a[d] - (double)b[d]));
            worst = error <= worst ? worst : error; /* a NaN stays */
        }
    }
    return worst;
}

static void compare_golden(pnb__visit *v, const pnb_array_view *want, const float *got, size_t n,
                           bool is_var)
{
    size_t width = v->model.info->embed_dim;
    pnb_error err = PNB_ERROR_INIT;
    if (want == NULL)
        return;
    if (want->n_dims != 2 || want->shape[0] != (int64_t)n || want->shape[1] != (int64_t)width) {
        pnb__finding_add(v, PNB__FINDING_ERROR, "golden", "%s is not (%zu, %zu)", want->name, n,
                         width);
        return;
    }
    float *values = pnb__alloc_array(n * width + 1, sizeof *values);
    if (values == NULL || pnb_array_to_f32(want, values, &err) != PNB_OK) {
        pnb__finding_add(v, PNB__FINDING_ERROR, "golden", "%s: %s", want->name, err.text);
    } else {
        double worst = worst_error(got, values, n, width, is_var);
        bool fine = worst <= (is_var ? MAX_RELATIVE_VARIANCE : MAX_COSINE_DISTANCE);
        pnb__finding_add(v, fine ? PNB__FINDING_OK : PNB__FINDING_ERROR, "golden",
                         "%s: worst %s %.3g", want->name,
                         is_var ? "relative error of a variance" : "cosine distance", worst);
    }
    pnb__free(values);
}

static pnb_status golden_encode(pnb__visit *v, const pnb_array_view *in, bool is_text,
                                pnb_embeddings *out, pnb_error *err)
{
    const pnb_tower_info *t = &v->model.info->vision;
    size_t n = (size_t)in->shape[0], size = pnb_array_size(in);
    const pnb_encode_out o = pnb__encode_rows(out, 0);
    pnb_status status = PNB_OK;
    if (!is_text &&
        (in->n_dims != 4 || in->shape[1] != 3 || in->shape[2] != (int64_t)t->image_height ||
         in->shape[3] != (int64_t)t->image_width))
        return pnb__fail(err, PNB_SHAPE, "pixels do not have the shape of the image tower");
    float *pixels = is_text ? NULL : pnb__alloc_array(size + 1, sizeof *pixels);
    int64_t *wide = is_text ? pnb__alloc_array(size + 1, sizeof *wide) : NULL;
    int32_t *ids = is_text ? pnb__alloc_array(size + 1, sizeof *ids) : NULL;
    if (is_text ? wide == NULL || ids == NULL : pixels == NULL)
        status = pnb__fail_nomem(err, size * 8);
    if (status == PNB_OK)
        status = is_text ? pnb_array_to_i64(in, wide, err) : pnb_array_to_f32(in, pixels, err);
    for (size_t i = 0; status == PNB_OK && is_text && i < size; i++)
        ids[i] = wide[i] >= 0 && wide[i] <= INT32_MAX ? (int32_t)wide[i] : -1;
    if (status == PNB_OK)
        status = is_text
                     ? pnb_model_encode_text(v->model.model, ids, n, (size_t)in->shape[1], &o, err)
                     : pnb_model_encode_image(v->model.model, pixels, n, &o, err);
    pnb__free(pixels);
    pnb__free(wide);
    pnb__free(ids);
    return status;
}

static void golden_side(pnb__visit *v, const pnb_safetensors *st, bool is_text)
{
    const pnb_array_view *in = pnb_safetensors_find(st, is_text ? "ids" : "pixels");
    const pnb_tower_info *t = is_text ? &v->model.info->text : &v->model.info->vision;
    const char *side = is_text ? "text" : "image";
    char names[3][32];
    pnb_error err = PNB_ERROR_INIT;
    pnb_embeddings *out = NULL;
    if (in == NULL || in->n_dims < 2 || in->shape[0] == 0 || !t->present)
        return;
    if (pnb__encoder_make_set(&v->model, is_text ? PNB_ENCODE_TEXTS : PNB_ENCODE_IMAGES,
                              (size_t)in->shape[0], &out, &err) == PNB_OK)
        golden_encode(v, in, is_text, out, &err);
    snprintf(names[0], sizeof names[0], "%s_norm", side);
    snprintf(names[1], sizeof names[1], "%s.mean", side);
    snprintf(names[2], sizeof names[2], "%s.std", side);
    if (err.status != PNB_OK) {
        pnb__finding_fault(v, "golden", &err);
    } else { /* directions are compared, so either form of the mean will do */
        const pnb_array_view *mean = first_of(st, names[0], names[1]);
        compare_golden(v, mean != NULL ? mean : pnb_safetensors_find(st, side), out->mean, out->n,
                       false);
        if (out->log_var != NULL)
            compare_golden(v, pnb_safetensors_find(st, names[2]), out->log_var, out->n, true);
    }
    pnb_embeddings_free(out);
}

void pnb__check_golden(pnb__visit *v)
{
    pnb_safetensors *st = NULL;
    pnb_error err = PNB_ERROR_INIT;
    char *path = pnb__path_join(v->dir, "golden.safetensors");
    v->no_memory = v->no_memory || path == NULL;
    if (path != NULL && pnb__path_is_file(path)) {
        size_t before = v->n;
        if (pnb_safetensors_open(&st, path, &err) != PNB_OK) {
            pnb__finding_fault(v, "golden", &err);
        } else {
            golden_side(v, st, false);
            golden_side(v, st, true);
        }
        if (v->n == before)
            pnb__finding_add(v, PNB__FINDING_ERROR, "golden",
                             "golden.safetensors holds nothing to compare (pixels with image, ids "
                             "with text)");
    }
    pnb_safetensors_free(st);
    pnb__free(path);
}

/* ---- published numbers ---- */

static const char published_sha256[] =
    "69081b72e4cd21dd2b45bc1a2dd26f9cb36b02b53bb145eef8720fd265a15691";
static const char photo_name[] = "000000039769.jpg";

static const struct {
    const char *sentence;
    double cosine, image_to_text, text_to_image, uncertainty;
} published[] = {
    {"A couple of cats laying on top of a pink blanket.", 0.2314, 0.2105, 0.2242, 0.0419},
    {"A man walks through a flooded road during a rainstorm", -0.2199, -0.2398, -0.2272, 0.0398},
    {"photo", 0.1002, 0.0702, 0.0929, 0.0599},
};
static const double published_image_uncertainty = 0.0145;

static void compare_number(pnb__visit *v, const char *what, double got, double want, size_t *n_bad)
{
    if (fabs(got - want) <= 2e-4) /* four decimals, and a float or two */
        return;
    *n_bad += 1;
    pnb__finding_add(v, PNB__FINDING_ERROR, "published", "%s is %.4f, published is %.4f", what, got,
                     want);
}

static pnb_status compare_published(pnb__visit *v, const char *photo, pnb_error *err)
{
    enum { N = PNB_COUNT(published) };
    size_t width = v->model.info->embed_dim, n_bad = 0;
    pnb_image drawn = {0};
    pnb_embeddings *image = NULL, *text = NULL;
    pnb_status status = PNB_OK;
    PNB_TRY(pnb__encoder_make_set(&v->model, PNB_ENCODE_IMAGES, 1, &image, err));
    PNB_TRY(pnb__encoder_make_set(&v->model, PNB_ENCODE_TEXTS, N, &text, err));
    PNB_TRY(pnb_image_load(&drawn, photo, NULL, err));
    PNB_TRY(encode_pixels(v, &drawn, image, err));
    double u_image = trace(image, 0);
    compare_number(v, "the photo's uncertainty", u_image, published_image_uncertainty, &n_bad);
    for (size_t i = 0; i < N; i++) {
        PNB_TRY(encode_text(v, published[i].sentence, text, i, err));
        double cosine = dot(image->mean, text->mean + i * width, width), u = trace(text, i);
        compare_number(v, "a cosine", cosine, published[i].cosine, &n_bad);
        compare_number(v, "an image-to-text score", cosine - u / 2, published[i].image_to_text,
                       &n_bad);
        compare_number(v, "a text-to-image score", cosine - u_image / 2, published[i].text_to_image,
                       &n_bad);
        compare_number(v, "a caption's uncertainty", u, published[i].uncertainty, &n_bad);
    }
    if (n_bad == 0)
        pnb__finding_add(v, PNB__FINDING_OK, "published",
                         "all 13 published numbers of ProLIP ViT-B/16 are met");
done:
    pnb_image_free(&drawn);
    pnb_embeddings_free(image);
    pnb_embeddings_free(text);
    return status;
}

void pnb__check_published(pnb__visit *v)
{
    pnb_error err = PNB_ERROR_INIT;
    char *beside = pnb__path_join(v->dir, photo_name);
    v->no_memory = v->no_memory || beside == NULL;
    const char *photo = v->inputs->photo != NULL ? v->inputs->photo : beside;
    bool released = strcmp(v->model.weights_sha256, published_sha256) == 0;
    bool complete = v->model.tokenizer != NULL && v->model.preprocess.width > 0;
    if (released && complete && photo != NULL && pnb__path_is_file(photo)) {
        if (compare_published(v, photo, &err) != PNB_OK)
            pnb__finding_fault(v, "published", &err);
    } else if (v->inputs->photo != NULL) {
        pnb__finding_add(v, PNB__FINDING_WARNING, "published",
                         "--photo is compared only with the released weights of ProLIP ViT-B/16, "
                         "with their tokenizer");
    }
    pnb__free(beside);
}
