/* Fits on disk: the calibration of a set (pnb_match_probability_fit) and the scaling of
 * classification scores (pnb_scaling), each one JSON object. docs/formats.md#calibration has the
 * keys.
 *
 * Reading checks every number as if a stranger had written it: what loads can be applied. */
#include "eval/calibration/fit_file.h"

#include <math.h>
#include <string.h>

#include "sets/provenance.h"

#define MATCH_FORMAT "penumbra-match-calibration"
#define SCALING_FORMAT "penumbra-scaling"
#define MAX_FILE_BYTES ((size_t)64 << 20)
enum { VERSION = 3 }; /* 1 told measure and weights only, 2 no adapters */

/* ---- writing; a value that could not be made leaves a NULL, which `is_complete` finds ---- */

static void put(json_t *o, bool *ok, const char *key, json_t *value)
{
    if (json_object_set_new(o, key, value) != 0)
        *ok = false;
}

static json_t *numbers(const double *values, size_t n)
{
    json_t *array = json_array();
    for (size_t i = 0; i < n; i++)
        if (json_array_append_new(array, json_real(values[i])) != 0) {
            json_decref(array);
            return NULL;
        }
    return array;
}

/* A path may be any bytes; what JSON cannot hold is left out. */
static json_t *text_of(const char *text)
{
    return json_string(pnb__utf8_valid(text, strlen(text)) ? text : "");
}

static json_t *platt_object(const pnb_platt *p)
{
    return json_pack("{s:f,s:f,s:b}", "a", p->a, "b", p->b, "smoothed", (int)p->is_smoothed);
}

static json_t *isotonic_object(const pnb_isotonic *fit)
{
    return json_pack("{s:o,s:o}", "score", numbers(fit->score, fit->n), "p",
                     numbers(fit->p, fit->n));
}

static json_t *conformal_object(const pnb_conformal *c)
{
    json_t *o = json_object();
    bool ok = true;
    put(o, &ok, "kind", json_string(pnb_conformal_name(c->kind)));
    for (int k = 0; k < PNB_N_CONFORMALS; k++)
        put(o, &ok, pnb_conformal_name((pnb_conformal_kind)k), numbers(c->value[k], c->n));
    if (!ok) {
        json_decref(o);
        return NULL;
    }
    return o;
}

/* Version 2 where no side went through an adapter: programs that know none go on reading it. */
static json_t *new_file(const char *format, const pnb_fit_origin *o, bool *ok)
{
    bool is_adapted = o->queries.adapters.n + o->gallery.adapters.n > 0;
    json_t *root = json_object();
    put(root, ok, "format", json_string(format));
    put(root, ok, "version", json_integer(is_adapted ? VERSION : 2));
    return root;
}

static json_t *side_object(const pnb_fit_side *s, bool *ok)
{
    json_t *side = json_pack("{s:o,s:o,s:o,s:o}", "modality", text_of(s->modality), "family",
                             text_of(s->family), "weights_sha256", text_of(s->weights_sha256),
                             "preprocess", text_of(s->preprocess));
    pnb__adapter_links_put(side, &s->adapters, ok);
    return side;
}

/* Keys of the two sides differ between the files. */
typedef struct side_keys {
    const char *queries, *gallery;
} side_keys;

static const side_keys match_sides = {"query_origin", "gallery_origin"},
                       scaling_sides = {"picture_origin", "class_origin"};

static void put_origin(json_t *root, bool *ok, const pnb_fit_origin *o, const side_keys *keys)
{
    const pnb_measure_opts *m = &o->measure_opts;
    put(root, ok, "measure", json_string(o->has_measure ? pnb_measure_name(o->measure) : ""));
    put(root, ok, "measure_options",
        json_pack("{s:f,s:f,s:f,s:f,s:I}", "inclusion_eps", m->inclusion_eps, "match_a", m->match_a,
                  "match_b", m->match_b, "match_factor", m->match_factor, "n_samples",
                  (json_int_t)m->n_samples));
    put(root, ok, keys->queries, side_object(&o->queries, ok));
    put(root, ok, keys->gallery, side_object(&o->gallery, ok));
}

/* Takes ownership of `root`. */
static pnb_status save(json_t *root, bool ok, const char *path, pnb_error *err)
{
    pnb_status status = ok ? pnb__json_save_file(root, path, err) : pnb__fail_nomem(err, 0);
    json_decref(root);
    return status;
}

pnb_status pnb_match_probability_fit_save(const pnb_match_probability_fit *fit, const char *path,
                                          pnb_error *err)
{
    bool ok = true;
    if (!(fit->has_platt || fit->has_isotonic) || fit->conformal.n == 0 ||
        !(fit->method == PNB_MATCH_ISOTONIC ? fit->has_isotonic : fit->has_platt))
        return pnb__fail(err, PNB_ARG, "%s: the calibration to save holds no fit", path);
    json_t *root = new_file(MATCH_FORMAT, &fit->origin, &ok);
    put_origin(root, &ok, &fit->origin, &match_sides);
    put(root, &ok, "gallery", text_of(fit->gallery));
    put(root, &ok, "gallery_ids_sha256", text_of(fit->gallery_ids_sha256));
    put(root, &ok, "queries", text_of(fit->queries));
    put(root, &ok, "truth", text_of(fit->truth));
    put(root, &ok, "n_gallery", json_integer((json_int_t)fit->n_gallery));
    put(root, &ok, "n_queries", json_integer((json_int_t)fit->n_queries));
    put(root, &ok, "n_matches", json_integer((json_int_t)fit->n_matches));
    put(root, &ok, "depth", json_integer((json_int_t)fit->depth));
    if (fit->has_level)
        put(root, &ok, "level", json_integer(fit->level));
    put(root, &ok, "base_rate", json_real(fit->base_rate));
    put(root, &ok, "seed", json_integer((json_int_t)fit->seed));
    put(root, &ok, "method", json_string(fit->method == PNB_MATCH_ISOTONIC ? "isotonic" : "platt"));
    if (fit->has_platt)
        put(root, &ok, "platt", platt_object(&fit->platt));
    if (fit->has_isotonic)
        put(root, &ok, "isotonic", isotonic_object(&fit->isotonic));
    if (fit->has_first)
        put(root, &ok, "first_hit", platt_object(&fit->first));
    put(root, &ok, "conformal", conformal_object(&fit->conformal));
    return save(root, ok, path, err);
}

pnb_status pnb_scaling_save(const pnb_scaling *scaling, const char *path, pnb_error *err)
{
    const pnb_temperature *t = &scaling->temperature;
    bool ok = true;
    if (!scaling->has_temperature && !scaling->has_platt)
        return pnb__fail(err, PNB_ARG, "%s: the scaling to save holds neither fit", path);
    if ((scaling->has_temperature && !(t->t > 0.0 && isfinite(t->t))) ||
        (scaling->has_platt &&
         !(scaling->platt.a > 0.0 && isfinite(scaling->platt.a) && isfinite(scaling->platt.b))))
        return pnb__fail(
            err, PNB_ARG,
            "%s: temperature %g, a %g, b %g; finite values are needed, t and a above 0", path, t->t,
            scaling->platt.a, scaling->platt.b);
    json_t *root = new_file(SCALING_FORMAT, &scaling->origin, &ok);
    put_origin(root, &ok, &scaling->origin, &scaling_sides);
    if (scaling->has_temperature)
        put(root, &ok, "temperature",
            json_pack("{s:f,s:b,s:I,s:I,s:f,s:f}", "t", t->t, "smoothed", (int)t->is_smoothed, "n",
                      (json_int_t)t->n, "n_classes", (json_int_t)t->n_classes, "nll_before",
                      t->nll_before, "nll_after", t->nll_after));
    if (scaling->has_platt)
        put(root, &ok, "platt", platt_object(&scaling->platt));
    return save(root, ok, path, err);
}

/* ---- reading ---- */

/* Records that a number is outside its range, once. */
static void want(pnb__jobj *o, bool holds, const char *what, pnb_error *err)
{
    if (o->status == PNB_OK && !holds)
        o->status = pnb__fail(err, PNB_FORMAT, "%s: %s", o->where, what);
}

/* The object under `key`; `where` receives what starts its messages. */
static bool open_part(pnb__jobj *root, const char *key, pnb__jobj *part, char where[600],
                      pnb_error *err)
{
    json_t *value = pnb__json_get_object(root, key, err);
    if (root->status != PNB_OK || value == NULL)
        return false;
    snprintf(where, 600, "%s: %s", root->where, key);
    *part = pnb__json_object(value, where, err);
    return part->status == PNB_OK;
}

static bool read_platt(pnb__jobj *root, const char *key, pnb_platt *out, pnb_error *err)
{
    char where[600];
    pnb__jobj o;
    if (!open_part(root, key, &o, where, err))
        return false;
    *out = (pnb_platt){pnb__json_get_double(&o, "a", 0.0, err),
                       pnb__json_get_double(&o, "b", (double)NAN, err),
                       pnb__json_get_bool(&o, "smoothed", false, err)};
    want(&o, out->a > 0.0 && isfinite(out->a) && isfinite(out->b),
         "a above 0 and a finite b are needed", err);
    root->status = o.status;
    return o.status == PNB_OK;
}

/* Numbers of an array that never fall (rise, when strict) and lie in [low, high]. NULL on failure;
 * free with pnb__free. */
typedef struct number_rule {
    const char *key;
    bool is_strict;
    double low, high;
} number_rule;

static double *read_numbers(pnb__jobj *o, const number_rule *rule, size_t *n, pnb_error *err)
{
    json_t *array = pnb__json_get_array(o, rule->key, err);
    char text[160];
    *n = json_array_size(array);
    snprintf(text, sizeof text, "%s is missing or empty", rule->key);
    want(o, *n > 0, text, err);
    if (o->status != PNB_OK)
        return NULL;
    double *values = pnb__alloc_array(*n, sizeof *values);
    if (values == NULL) {
        o->status = pnb__fail_nomem(err, *n * sizeof *values);
        return NULL;
    }
    for (size_t i = 0; i < *n && o->status == PNB_OK; i++) {
        const json_t *value = json_array_get(array, i);
        values[i] = json_is_number(value) ? json_number_value(value) : (double)NAN;
        bool rises =
            i == 0 || (rule->is_strict ? values[i] > values[i - 1] : values[i] >= values[i - 1]);
        snprintf(text, sizeof text, "%s[%zu] is not a number from %g to %g that %s", rule->key, i,
                 rule->low, rule->high, rule->is_strict ? "rises" : "does not fall");
        want(o, values[i] >= rule->low && values[i] <= rule->high && rises, text, err);
    }
    if (o->status == PNB_OK)
        return values;
    pnb__free(values);
    return NULL;
}

static bool read_isotonic(pnb__jobj *root, pnb_isotonic *out, pnb_error *err)
{
    static const number_rule score = {"score", true, -1.7e308, 1.7e308}, p = {"p", false, 0.0, 1.0};
    char where[600];
    pnb__jobj o;
    size_t n_p = 0;
    if (!open_part(root, "isotonic", &o, where, err))
        return false;
    out->score = read_numbers(&o, &score, &out->n, err);
    out->p = o.status == PNB_OK ? read_numbers(&o, &p, &n_p, err) : NULL;
    want(&o, out->n == n_p, "score and p differ in length", err);
    root->status = o.status;
    return o.status == PNB_OK;
}

static void read_conformal(pnb__jobj *root, pnb_conformal *out, pnb_error *err)
{
    static const number_rule rules[PNB_N_CONFORMALS] = {{"score", false, -1.7e308, 1.7e308},
                                                        {"margin", false, 0.0, 1.7e308},
                                                        {"rank", false, 1.0, 1e15}};
    char where[600];
    pnb__jobj o;
    if (!open_part(root, "conformal", &o, where, err)) {
        want(root, false, "conformal is missing", err);
        return;
    }
    const char *kind = pnb__json_get_string(&o, "kind", "score", err);
    if (o.status == PNB_OK && pnb_conformal_parse(&out->kind, kind, NULL) != PNB_OK)
        want(&o, false, "kind is none of score, margin, rank", err);
    for (int k = 0; k < PNB_N_CONFORMALS && o.status == PNB_OK; k++) {
        size_t n = 0;
        out->value[k] = read_numbers(&o, &rules[k], &n, err);
        want(&o, k == 0 || n == out->n, "score, margin and rank differ in length", err);
        out->n = n;
    }
    root->status = o.status;
}

static void read_side(pnb__jobj *root, const char *key, pnb_fit_side *out, pnb_error *err)
{
    char where[600];
    pnb__jobj o;
    if (!open_part(root, key, &o, where, err))
        return;
    pnb__json_get_text(&o, "modality", out->modality, sizeof out->modality, err);
    pnb__json_get_text(&o, "family", out->family, sizeof out->family, err);
    pnb__json_get_text(&o, "weights_sha256", out->weights_sha256, sizeof out->weights_sha256, err);
    pnb__adapter_links_get(&o, &out->adapters, err);
    pnb__json_get_text(&o, "preprocess", out->preprocess, sizeof out->preprocess, err);
    root->status = o.status;
}

static void read_measure_options(pnb__jobj *root, pnb_measure_opts *out, pnb_error *err)
{
    char where[600];
    pnb__jobj o;
    *out = pnb_measure_opts_default();
    if (!open_part(root, "measure_options", &o, where, err))
        return;
    out->inclusion_eps = pnb__json_get_double(&o, "inclusion_eps", out->inclusion_eps, err);
    out->match_a = pnb__json_get_double(&o, "match_a", out->match_a, err);
    out->match_b = pnb__json_get_double(&o, "match_b", out->match_b, err);
    out->match_factor = pnb__json_get_double(&o, "match_factor", out->match_factor, err);
    out->n_samples =
        (size_t)pnb__json_get_int_in(&o, "n_samples", (int64_t)out->n_samples, 1, 1000 * 1000, err);
    root->status = o.status;
}

/* Version 1 told the weights once for both sides, and nothing else of them. */
static void read_origin(pnb__jobj *o, pnb_fit_origin *out, const side_keys *keys, pnb_error *err)
{
    const char *measure = pnb__json_get_string(o, "measure", "", err);
    if (o->status != PNB_OK)
        return;
    out->has_measure = pnb_measure_parse(&out->measure, measure, NULL) == PNB_OK;
    want(o, out->has_measure || measure[0] == '\0', "the measure is unknown", err);
    read_measure_options(o, &out->measure_opts, err);
    if (pnb__json_get_int(o, "version", 0, err) == 1) {
        pnb__json_get_text(o, "weights_sha256", out->queries.weights_sha256,
                           sizeof out->queries.weights_sha256, err);
        memcpy(out->gallery.weights_sha256, out->queries.weights_sha256,
               sizeof out->gallery.weights_sha256);
        return;
    }
    read_side(o, keys->queries, &out->queries, err);
    read_side(o, keys->gallery, &out->gallery, err);
}

static void read_counts(pnb__jobj *o, pnb_match_probability_fit *fit, pnb_error *err)
{
    const int64_t most = (int64_t)1 << 53;
    fit->n_gallery = (size_t)pnb__json_get_int_in(o, "n_gallery", 0, 1, most, err);
    fit->n_queries = (size_t)pnb__json_get_int_in(o, "n_queries", 0, 1, most, err);
    fit->n_matches = (size_t)pnb__json_get_int_in(o, "n_matches", 0, 1, most, err);
    fit->depth = (size_t)pnb__json_get_int_in(o, "depth", 0, 0, most, err);
    const json_t *level = json_object_get(o->obj, "level");
    fit->has_level = level != NULL && !json_is_null(level);
    fit->level = (int)pnb__json_get_int_in(o, "level", 0, 0, 1000, err);
    fit->base_rate = pnb__json_get_double(o, "base_rate", 0.0, err);
    fit->seed = (uint64_t)pnb__json_get_int(o, "seed", 0, err);
    want(o, fit->n_gallery > 0 && fit->n_queries > 0 && fit->n_matches > 0,
         "n_gallery, n_queries or n_matches is missing", err);
    want(o, fit->base_rate > 0.0 && fit->base_rate < 1.0, "base_rate must lie between 0 and 1",
         err);
}

static void read_match(pnb__jobj *o, pnb_match_probability_fit *fit, pnb_error *err)
{
    read_origin(o, &fit->origin, &match_sides, err);
    want(o, fit->origin.has_measure, "the measure is unknown", err);
    pnb__json_get_text(o, "gallery", fit->gallery, sizeof fit->gallery, err);
    pnb__json_get_text(o, "gallery_ids_sha256", fit->gallery_ids_sha256,
                       sizeof fit->gallery_ids_sha256, err);
    pnb__json_get_text(o, "queries", fit->queries, sizeof fit->queries, err);
    pnb__json_get_text(o, "truth", fit->truth, sizeof fit->truth, err);
    read_counts(o, fit, err);
    const char *method = pnb__json_get_string(o, "method", "", err);
    if (o->status != PNB_OK)
        return;
    fit->method = strcmp(method, "isotonic") == 0 ? PNB_MATCH_ISOTONIC : PNB_MATCH_PLATT;
    want(o, fit->method == PNB_MATCH_ISOTONIC || strcmp(method, "platt") == 0,
         "the method is neither platt nor isotonic", err);
    fit->has_platt = read_platt(o, "platt", &fit->platt, err);
    fit->has_isotonic = read_isotonic(o, &fit->isotonic, err);
    fit->has_first = read_platt(o, "first_hit", &fit->first, err);
    read_conformal(o, &fit->conformal, err);
    want(o, fit->method == PNB_MATCH_ISOTONIC ? fit->has_isotonic : fit->has_platt,
         "the fit that method names is missing", err);
}

/* Checks what the file says it is. */
static pnb__jobj open_root(json_t *root, const char *format, const char *where, pnb_error *err)
{
    pnb__jobj o = pnb__json_object(root, where, err);
    const char *found = pnb__json_get_string(&o, "format", "", err);
    if (o.status == PNB_OK && strcmp(found, format) != 0)
        o.status = pnb__fail(err, PNB_FORMAT, "%s: format is '%.80s', '%s' is wanted", where, found,
                             format);
    int64_t version = pnb__json_get_int(&o, "version", 0, err);
    if (o.status == PNB_OK && (version < 1 || version > VERSION))
        o.status = pnb__fail(err, PNB_FORMAT, "%s: version %lld; this program reads 1 to %d", where,
                             (long long)version, VERSION);
    return o;
}

pnb_status pnb__match_probability_fit_read(pnb_match_probability_fit *out, json_t *root,
                                           const char *where, pnb_error *err)
{
    pnb__jobj o = open_root(root, MATCH_FORMAT, where, err);
    *out = (pnb_match_probability_fit){0};
    if (o.status == PNB_OK)
        read_match(&o, out, err);
    if (o.status != PNB_OK)
        pnb_match_probability_fit_reset(out);
    return o.status;
}

pnb_status pnb_match_probability_fit_load(pnb_match_probability_fit *out, const char *path,
                                          pnb_error *err)
{
    json_t *root = NULL;
    *out = (pnb_match_probability_fit){0};
    pnb_status status = pnb__json_load_file(&root, path, MAX_FILE_BYTES, err);
    if (status == PNB_OK)
        status = pnb__match_probability_fit_read(out, root, path, err);
    json_decref(root);
    return status;
}

static void read_temperature(pnb__jobj *root, pnb_scaling *out, pnb_error *err)
{
    const int64_t most = (int64_t)1 << 53;
    char where[600];
    pnb__jobj o;
    if (!open_part(root, "temperature", &o, where, err))
        return;
    pnb_temperature *t = &out->temperature;
    t->t = pnb__json_get_double(&o, "t", 0.0, err);
    t->is_smoothed = pnb__json_get_bool(&o, "smoothed", false, err);
    t->n = (size_t)pnb__json_get_int_in(&o, "n", 0, 0, most, err);
    t->n_classes = (size_t)pnb__json_get_int_in(&o, "n_classes", 0, 0, most, err);
    t->nll_before = pnb__json_get_double(&o, "nll_before", 0.0, err);
    t->nll_after = pnb__json_get_double(&o, "nll_after", 0.0, err);
    want(&o, t->t > 0.0 && isfinite(t->t), "t above 0 is needed", err);
    out->has_temperature = o.status == PNB_OK;
    root->status = o.status;
}

pnb_status pnb__scaling_read(pnb_scaling *out, json_t *root, const char *where, pnb_error *err)
{
    pnb__jobj o = open_root(root, SCALING_FORMAT, where, err);
    pnb_scaling read = {0};
    read_origin(&o, &read.origin, &scaling_sides, err);
    read_temperature(&o, &read, err);
    read.has_platt = read_platt(&o, "platt", &read.platt, err);
    want(&o, read.has_temperature || read.has_platt, "holds neither temperature nor platt", err);
    if (o.status == PNB_OK)
        *out = read;
    return o.status;
}

pnb_status pnb_scaling_load(pnb_scaling *out, const char *path, pnb_error *err)
{
    json_t *root = NULL;
    pnb_status status = pnb__json_load_file(&root, path, MAX_FILE_BYTES, err);
    if (status == PNB_OK)
        status = pnb__scaling_read(out, root, path, err);
    json_decref(root);
    return status;
}
