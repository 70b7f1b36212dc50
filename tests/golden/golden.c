/* golden [--device cpu|ref|cuda] [--threads N] [--data DIR] CASE_DIR...
 *
 * Prints the worst error of every tensor and ends with 0 only when every case compared at least one
 * value and every value was within its tolerance. Acceptance: |got - want| <= abs + rel * |want|,
 * or rel * max|want| of the tensor where the tolerance says scale "max"; anything not finite that
 * should be finite is a miss. A case that needs files which are nowhere is skipped, and says why;
 * the exit status is 77 when every case was. */
#include "tests/golden/golden.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct tolerance {
    double abs, rel;
    bool scale_max;
} tolerance;

static const struct {
    const char *name;
    golden_family_fn run;
} families[] = {
    {"prolip_model", golden_family_prolip_model},
    {"prolip_loss", golden_family_prolip_loss},
    {"optimizers", golden_family_optimizers},
    {"tokenizers", golden_family_tokenizers},
    {"preprocess", golden_family_preprocess},
    {"asymvlm", golden_family_asymvlm},
    {"metrics", golden_family_metrics},
    {"bprw", golden_family_bprw},
    {"gp", golden_family_gp},
    {"adapters", golden_family_adapters},
    {"pcme", golden_family_pcme},
};

/* ---- reading ---- */

const json_t *golden_value(const golden_case *c, const char *path)
{
    const json_t *value = c->hyperparameters;
    char key[128];
    while (value != NULL && *path != '\0') {
        size_t n = strcspn(path, ".");
        snprintf(key, sizeof key, "%.*s", (int)n, path);
        value = json_object_get(value, key);
        path += n + (path[n] == '.');
    }
    return value;
}

double golden_number(const golden_case *c, const char *path, double fallback)
{
    const json_t *value = golden_value(c, path);
    return json_is_number(value) ? json_number_value(value) : fallback;
}

bool golden_flag(const golden_case *c, const char *path, bool fallback)
{
    const json_t *value = golden_value(c, path);
    return json_is_boolean(value) ? json_is_true(value) : fallback;
}

const pnb_array_view *golden_find(const golden_case *c, const char *name)
{
    return c->tensors == NULL ? NULL : pnb_safetensors_find(c->tensors, name);
}

static const pnb_array_view *require(const golden_case *c, const char *name, pnb_error *err)
{
    const pnb_array_view *view = golden_find(c, name);
    if (view == NULL)
        pnb__fail(err, PNB_NOT_FOUND, "the case has no tensor %s", name);
    return view;
}

double *golden_f64(const golden_case *c, const char *name, size_t *n, pnb_error *err)
{
    const pnb_array_view *view = require(c, name, err);
    if (view == NULL)
        return NULL;
    double *values = pnb__alloc_array(pnb_array_size(view) + 1, sizeof *values);
    if (values != NULL && pnb_array_to_f64(view, values, err) != PNB_OK) {
        pnb__free(values);
        return NULL;
    }
    if (n != NULL)
        *n = pnb_array_size(view);
    return values;
}

float *golden_f32(const golden_case *c, const char *name, size_t *n, pnb_error *err)
{
    const pnb_array_view *view = require(c, name, err);
    if (view == NULL)
        return NULL;
    float *values = pnb__alloc_array(pnb_array_size(view) + 1, sizeof *values);
    if (values != NULL && pnb_array_to_f32(view, values, err) != PNB_OK) {
        pnb__free(values);
        return NULL;
    }
    if (n != NULL)
        *n = pnb_array_size(view);
    return values;
}

int32_t *golden_i32(const golden_case *c, const char *name, size_t *n, pnb_error *err)
{
    const pnb_array_view *view = require(c, name, err);
    if (view == NULL)
        return NULL;
    size_t count = pnb_array_size(view);
    int64_t *wide = pnb__alloc_array(count + 1, sizeof *wide);
    int32_t *values = pnb__alloc_array(count + 1, sizeof *values);
    if (wide == NULL || values == NULL || pnb_array_to_i64(view, wide, err) != PNB_OK) {
        pnb__free(wide);
        pnb__free(values);
        return NULL;
    }
    for (size_t i = 0; i < count; i++)
        values[i] = (int32_t)wide[i];
    pnb__free(wide);
    if (n != NULL)
        *n = count;
    return values;
}

/* ---- giving ---- */

void golden_give(golden_case *c, const char *name, const double *values, size_t n)
{
    if (c->n_results == c->capacity) {
        c->capacity = c->capacity ? 2 * c->capacity : 64;
        c->results = realloc(c->results, c->capacity * sizeof *c->results);
        if (c->results == NULL)
            abort();
    }
    golden_result *r = &c->results[c->n_results++];
    *r = (golden_result){pnb__strdup(name), pnb__alloc_array(n + 1, sizeof(double)), n};
    if (r->name == NULL || r->values == NULL)
        abort();
    if (n > 0)
        memcpy(r->values, values, n * sizeof *values);
}

void golden_give_f32(golden_case *c, const char *name, const float *values, size_t n)
{
    double *wide = pnb__alloc_array(n + 1, sizeof *wide);
    if (wide == NULL)
        abort();
    for (size_t i = 0; i < n; i++)
        wide[i] = (double)values[i];
    golden_give(c, name, wide, n);
    pnb__free(wide);
}

void golden_give_scalar(golden_case *c, const char *name, double value)
{
    golden_give(c, name, &value, 1);
}

void golden_skip(golden_case *c, const char *pattern, const char *why)
{
    if (c->n_skipped < PNB_COUNT(c->skipped))
        c->skipped[c->n_skipped++] = (golden_skipped){pattern, why};
}

static const char *why_skipped(const golden_case *c, const char *name)
{
    for (size_t i = 0; i < c->n_skipped; i++)
        if (fnmatch(c->skipped[i].pattern, name, 0) == 0)
            return c->skipped[i].why;
    return NULL;
}

static const golden_result *find_result(const golden_case *c, const char *name)
{
    for (size_t i = 0; i < c->n_results; i++)
        if (strcmp(c->results[i].name, name) == 0)
            return &c->results[i];
    return NULL;
}

bool golden_wants(const golden_case *c, const char *name)
{
    const json_t *tensor = json_object_get(json_object_get(c->root, "tensors"), name);
    const char *role = json_string_value(json_object_get(tensor, "role"));
    return role != NULL && (strcmp(role, "output") == 0 || strcmp(role, "grad") == 0);
}

/* ---- comparing ---- */

static tolerance read_tolerance(const json_t *value, tolerance t)
{
    const json_t *abs_value = json_object_get(value, "abs"), *rel = json_object_get(value, "rel");
    const char *scale = json_string_value(json_object_get(value, "scale"));
    if (json_is_number(abs_value))
        t.abs = json_number_value(abs_value);
    if (json_is_number(rel))
        t.rel = json_number_value(rel);
    t.scale_max = scale != NULL && strcmp(scale, "max") == 0;
    return t;
}

/* The last matching pattern wins over `default`. */
static tolerance tolerance_of(const golden_case *c, const char *name)
{
    const json_t *all = json_object_get(c->root, "tolerance");
    tolerance t = read_tolerance(json_object_get(all, "default"), (tolerance){0, 0, false});
    const char *pattern;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)all, pattern, value)
    {
        if (strcmp(pattern, "default") != 0 && fnmatch(pattern, name, 0) == 0)
            t = read_tolerance(value, (tolerance){0, 0, false});
    }
    return t;
}

/* Worst excess ratio |got-want| / allowed over a tensor; above 1 is a miss. */
static bool compare(const golden_case *c, const char *name, const double *want, size_t n)
{
    const golden_result *got = find_result(c, name);
    if (got == NULL || got->n != n) {
        printf("    MISS %-40s %s\n", name, got == NULL ? "was not computed" : "has another size");
        return false;
    }
    tolerance t = tolerance_of(c, name);
    double biggest = 0, worst = 0, worst_ratio = 0;
    for (size_t i = 0; i < n; i++)
        biggest = fmax(biggest, fabs(want[i]));
    bool fine = true;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(want[i]) &&
            (got->values[i] == want[i] || (isnan(want[i]) && isnan(got->values[i]))))
            continue;
        double err = fabs(got->values[i] - want[i]);
        double allowed = t.abs + t.rel * (t.scale_max ? biggest : fabs(want[i]));
        if (!(err <= allowed))
            fine = false;
        if (!(err <= worst))
            worst = err;
        double ratio = err / (allowed > 0 ? allowed : 1e-300);
        if (!(ratio <= worst_ratio))
            worst_ratio = ratio;
    }
    printf("    %s %-40s worst error %.3g, %.2g of what is allowed\n", fine ? "ok  " : "MISS", name,
           worst, worst_ratio);
    return fine;
}

static bool compare_tensors(const golden_case *c, size_t *n_compared)
{
    bool fine = true;
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(c->root, "tensors"), name, value)
    {
        if (!golden_wants(c, name))
            continue;
        const char *why = why_skipped(c, name);
        if (why != NULL) {
            printf("    skip %-40s %s\n", name, why);
            continue;
        }
        size_t n = 0;
        pnb_error err = PNB_ERROR_INIT;
        double *want = golden_f64(c, name, &n, &err);
        if (want == NULL) {
            printf("    MISS %-40s %s\n", name, err.text);
            fine = false;
            continue;
        }
        fine &= compare(c, name, want, n);
        pnb__free(want);
        (*n_compared)++;
    }
    return fine;
}

/* Scalars of `expected`, nested objects and arrays by dotted path. */
static bool compare_expected(const golden_case *c, const json_t *value, const char *path,
                             size_t *n_compared)
{
    char sub[256];
    bool fine = true;
    if (json_is_number(value)) {
        double want = json_number_value(value);
        (*n_compared)++;
        return compare(c, path, &want, 1);
    }
    if (json_is_array(value)) {
        for (size_t i = 0; i < json_array_size(value); i++) {
            snprintf(sub, sizeof sub, "%s.%zu", path, i);
            fine &= compare_expected(c, json_array_get(value, i), sub, n_compared);
        }
    }
    const char *key;
    json_t *item;
    json_object_foreach((json_t *)(uintptr_t)value, key, item)
    {
        snprintf(sub, sizeof sub, "%s%s%s", path, *path ? "." : "", key);
        fine &= compare_expected(c, item, sub, n_compared);
    }
    return fine;
}

/* ---- one case ---- */

static pnb_status open_case(golden_case *c, pnb_error *err)
{
    char *path = pnb__path_join(c->dir, "case.json");
    pnb_status status = path == NULL ? pnb__fail_nomem(err, strlen(c->dir))
                                     : pnb__json_load_file(&c->root, path, 0, err);
    pnb__free(path);
    if (status != PNB_OK)
        return status;
    c->hyperparameters = json_object_get(c->root, "hyperparameters");
    path = pnb__path_join(c->dir, "tensors.safetensors");
    if (path != NULL && pnb__path_is_file(path))
        status = pnb_safetensors_open(&c->tensors, path, err);
    pnb__free(path);
    return status;
}

static pnb_status run_family(golden_case *c, pnb_error *err)
{
    const char *family = json_string_value(json_object_get(c->root, "family"));
    for (size_t i = 0; family != NULL && i < PNB_COUNT(families); i++)
        if (strcmp(families[i].name, family) == 0)
            return families[i].run(c, err);
    return pnb__fail(err, PNB_UNSUPPORTED, "the runner does not know family \"%s\"",
                     family ? family : "(none)");
}

static void close_case(golden_case *c)
{
    for (size_t i = 0; i < c->n_results; i++) {
        pnb__free(c->results[i].name);
        pnb__free(c->results[i].values);
    }
    free(c->results);
    json_decref(c->root);
    pnb_safetensors_free(c->tensors);
}

/* `c` has what all cases share. */
static bool run_case(const char *dir, golden_case c, size_t *n_skipped)
{
    c.dir = dir;
    pnb_error err = PNB_ERROR_INIT;
    size_t n_compared = 0;
    pnb_status status = open_case(&c, &err);
    if (status == PNB_OK)
        status = run_family(&c, &err);
    bool fine = status == PNB_OK;
    printf("%s\n", dir);
    if (!fine)
        printf("    MISS %s\n", err.text);
    bool skipped = fine && c.skipped_case != NULL;
    *n_skipped += skipped;
    if (c.root != NULL && fine && !skipped) {
        fine &= compare_tensors(&c, &n_compared);
        fine &= compare_expected(&c, json_object_get(c.root, "expected"), "", &n_compared);
        if (n_compared == 0) {
            printf("    MISS nothing was compared\n");
            fine = false;
        }
    }
    if (skipped)
        printf("    skipped: %s\n", c.skipped_case);
    else
        printf("    %s (%zu compared)\n", fine ? "passed" : "FAILED", n_compared);
    close_case(&c);
    return fine;
}

int main(int argc, char **argv)
{
    pnb_ctx_opts opts = pnb_ctx_opts_default();
    size_t n_cases = 0, n_failed = 0, n_skipped = 0;
    golden_case all = {0};
    int first = 1;
    for (; first < argc && argv[first][0] == '-'; first++) {
        bool has_value = first + 1 < argc;
        if (has_value && strcmp(argv[first], "--device") == 0 &&
            pnb_device_parse(&opts.device, &opts.device_index, argv[first + 1], NULL) == PNB_OK)
            first++;
        else if (has_value && strcmp(argv[first], "--threads") == 0)
            opts.n_threads = atoi(argv[++first]);
        else if (has_value && strcmp(argv[first], "--data") == 0)
            all.data_dir = argv[++first];
        else if (strcmp(argv[first], "--tiles") == 0) {
            opts.isa = PNB_ISA_EMULATED;
            all.precision = PNB_PRECISION_FP32_TILES;
        } else {
            fprintf(stderr,
                    "usage: golden [--device cpu|ref|cuda] [--threads N] [--data DIR] [--tiles] "
                    "CASE_DIR...\n");
            return 2;
        }
    }
    pnb_ctx *ctx = NULL;
    pnb_error err = PNB_ERROR_INIT;
    if (pnb_ctx_create(&ctx, &opts, &err) != PNB_OK) {
        fprintf(stderr, "golden: %s\n", err.text);
        return 1;
    }
    all.ctx = ctx;
    for (int i = first; i < argc; i++, n_cases++)
        n_failed += !run_case(argv[i], all, &n_skipped);
    pnb_ctx_free(ctx);
    printf("%zu cases, %zu failed", n_cases, n_failed);
    printf(n_skipped > 0 ? ", %zu skipped\n" : "\n", n_skipped);
    if (n_cases == 0 || n_failed > 0)
        return 1;
    return n_skipped == n_cases ? 77 : 0;
}
