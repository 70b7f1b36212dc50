/* Options of methods: their words, their defaults, and their way into config.json and back.
 *
 * A method lists what it reads as a table of pnb__field over pnb_adapter_opts; an option is of a
 * method when its table has it. Which values are in range is the method's own matter. */
#include <math.h>
#include <string.h>

#include "adapt/adapter.h"
#include "base/names.h"
#include "io/json/json.h"

#define DEFINE_WORD(function, LIST)                                                                \
    const char *function(int value)                                                                \
    {                                                                                              \
        return pnb__name_at(PNB_NAMES(LIST), (unsigned)value, NULL);                               \
    }
DEFINE_WORD(pnb__adapt_uncertain_word, PNB_ADAPT_UNCERTAIN_LIST)
DEFINE_WORD(pnb__adapt_recipe_word, PNB_ADAPT_RECIPE_LIST)
DEFINE_WORD(pnb__adapt_texts_word, PNB_ADAPT_TEXTS_LIST)
DEFINE_WORD(pnb__adapt_start_word, PNB_ADAPT_START_LIST)
DEFINE_WORD(pnb__adapt_loss_word, PNB_ADAPT_LOSS_LIST)
DEFINE_WORD(pnb__adapt_normaliser_word, PNB_ADAPT_NORMALISER_LIST)
DEFINE_WORD(pnb__adapt_ablation_word, PNB_ADAPT_ABLATION_LIST)
DEFINE_WORD(pnb__adapt_likelihood_word, PNB_ADAPT_LIKELIHOOD_LIST)
DEFINE_WORD(pnb__adapt_marginal_word, PNB_ADAPT_MARGINAL_LIST)
#undef DEFINE_WORD

pnb_adapter_opts pnb_adapter_opts_default(void)
{
    return (pnb_adapter_opts){.uncertain = PNB_ADAPT_RARE,
                              .shrinkage = NAN,
                              .lr = NAN,
                              .patience = 10,
                              .cross_modal = NAN,
                              .dropout = NAN,
                              .mc_samples = 15,
                              .samples = 7,
                              .vib = NAN,
                              .pseudo = NAN,
                              .elbo_weight = NAN,
                              .align_weight = NAN,
                              .logit_scale = NAN,
                              .logit_bias = NAN,
                              .prior_precision = NAN};
}

/* ---- a value of any kind ---- */

/* As a whole number; enums have the size of an int. */
static int64_t whole_of(const pnb_adapter_opts *opts, const pnb__field *f)
{
    const unsigned char *at = (const unsigned char *)opts + f->offset;
    int64_t wide;
    int code;
    bool flag;
    if (f->kind == PNB__FIELD_BOOL) {
        memcpy(&flag, at, sizeof flag);
        return flag;
    }
    if (f->kind == PNB__FIELD_ENUM) {
        memcpy(&code, at, sizeof code);
        return code;
    }
    memcpy(&wide, at, sizeof wide); /* I64 and U64 */
    return wide;
}

static double real_of(const pnb_adapter_opts *opts, const pnb__field *f)
{
    double x;
    memcpy(&x, (const unsigned char *)opts + f->offset, sizeof x);
    return x;
}

bool pnb__adapter_is_default(const pnb_adapter_opts *opts, const pnb__field *f)
{
    const pnb_adapter_opts defaults = pnb_adapter_opts_default();
    if (f->kind != PNB__FIELD_DOUBLE)
        return whole_of(opts, f) == whole_of(&defaults, f);
    double x = real_of(opts, f), y = real_of(&defaults, f);
    return x == y || (isnan(x) && isnan(y));
}

pnb_status pnb__adapter_check_words(const pnb_adapter *a, pnb_error *err)
{
    for (size_t i = 0; i < a->calls->n_fields; i++) {
        const pnb__field *f = &a->calls->fields[i];
        if (f->kind == PNB__FIELD_ENUM && f->enum_name((int)whole_of(&a->opts, f)) == NULL)
            return pnb__fail(err, PNB_ARG, "%s is number %d, which is none of its words", f->name,
                             (int)whole_of(&a->opts, f));
    }
    return PNB_OK;
}

/* ---- by name ---- */

static bool same_name(const char *a, const char *b)
{
    for (; *a != '\0' && *b != '\0'; a++, b++)
        if (*a != *b && !((*a == '-' || *a == '_') && (*b == '-' || *b == '_')))
            return false;
    return *a == *b;
}

bool pnb_adapter_method_reads(const char *method, const char *option)
{
    const pnb_adapter_about *about = pnb_adapter_method_find(method);
    const pnb__adapter_calls *calls = about != NULL ? pnb__adapter_calls_of(about) : NULL;
    for (size_t i = 0; calls != NULL && i < calls->n_fields; i++)
        if (same_name(calls->fields[i].name, option))
            return true;
    return false;
}

static const pnb__field *find_field(const pnb_adapter_about *about, const char *name,
                                    pnb_error *err)
{
    const pnb__adapter_calls *calls = pnb__adapter_calls_of(about);
    char list[300] = "";
    for (size_t i = 0; i < calls->n_fields; i++) {
        size_t used = strlen(list);
        if (same_name(calls->fields[i].name, name))
            return &calls->fields[i];
        snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "", calls->fields[i].name);
    }
    pnb__fail(err, PNB_NOT_FOUND, "%s reads no option '%.40s'; it reads %s", about->name, name,
              list);
    return NULL;
}

static bool set_word(unsigned char *at, const pnb__field *f, const char *value)
{
    for (int code = 0; f->enum_name(code) != NULL; code++)
        if (strcmp(f->enum_name(code), value) == 0) {
            memcpy(at, &code, sizeof code);
            return true;
        }
    return false;
}

/* A number or a truth value, as JSON has it in any locale. */
static bool set_value(unsigned char *at, const pnb__field *f, const json_t *value)
{
    if (f->kind == PNB__FIELD_BOOL && json_is_boolean(value)) {
        bool x = json_is_true(value);
        memcpy(at, &x, sizeof x);
        return true;
    }
    if (f->kind == PNB__FIELD_DOUBLE && json_is_number(value)) {
        double x = json_number_value(value);
        memcpy(at, &x, sizeof x);
        return true;
    }
    int64_t x = json_integer_value(value);
    bool is_whole = f->kind == PNB__FIELD_I64 || (f->kind == PNB__FIELD_U64 && x >= 0);
    if (!is_whole || !json_is_integer(value))
        return false;
    memcpy(at, &x, sizeof x);
    return true;
}

pnb_status pnb_adapter_opts_set(pnb_adapter_opts *opts, const pnb_adapter_about *about,
                                const char *name, const char *value, pnb_error *err)
{
    const pnb__field *f = find_field(about, name, err);
    if (f == NULL)
        return PNB_NOT_FOUND;
    unsigned char *at = (unsigned char *)opts + f->offset;
    bool is_set = false;
    if (f->kind == PNB__FIELD_ENUM) {
        is_set = set_word(at, f, value);
    } else {
        json_t *array = NULL;
        char *text = pnb__format("[%s]", value);
        if (text == NULL)
            return pnb__fail_nomem(err, strlen(value) + 3);
        if (pnb__json_load_bytes(&array, text, strlen(text), name, NULL) == PNB_OK)
            is_set = json_array_size(array) == 1 && set_value(at, f, json_array_get(array, 0));
        json_decref(array);
        pnb__free(text);
    }
    return is_set
               ? PNB_OK
               : pnb__fail(err, PNB_ARG, "%s of %s cannot be '%.60s'", f->name, about->name, value);
}

/* ---- config.json ---- */

static json_t *option_json(const pnb_adapter_opts *opts, const pnb__field *f)
{
    if (f->kind == PNB__FIELD_ENUM)
        return json_string(f->enum_name((int)whole_of(opts, f)));
    if (f->kind == PNB__FIELD_BOOL)
        return json_boolean(whole_of(opts, f));
    if (f->kind != PNB__FIELD_DOUBLE)
        return json_integer((json_int_t)whole_of(opts, f));
    double x = real_of(opts, f);
    return isnan(x) ? json_null() : json_real(x);
}

json_t *pnb__adapter_options(const pnb_adapter *a)
{
    json_t *o = json_object();
    for (size_t i = 0; i < a->calls->n_fields; i++)
        json_object_set_new(o, a->calls->fields[i].name,
                            option_json(&a->opts, &a->calls->fields[i]));
    return o;
}

static void read_choice(pnb__jobj *o, const pnb__field *f, unsigned char *at, pnb_error *err)
{
    const char *word = pnb__json_get_string(o, f->name, NULL, err);
    if (o->status != PNB_OK || word == NULL)
        return;
    for (int code = 0; f->enum_name(code) != NULL; code++)
        if (strcmp(f->enum_name(code), word) == 0) {
            memcpy(at, &code, sizeof code);
            return;
        }
    o->status = pnb__fail(err, PNB_UNSUPPORTED, "%s: %s is \"%.40s\", which is unknown", o->where,
                          f->name, word);
}

static void read_option(pnb__jobj *o, const pnb__field *f, pnb_adapter_opts *opts, pnb_error *err)
{
    unsigned char *at = (unsigned char *)opts + f->offset;
    if (f->kind == PNB__FIELD_ENUM) {
        read_choice(o, f, at, err);
    } else if (f->kind == PNB__FIELD_DOUBLE) {
        double x = pnb__json_get_double(o, f->name, (double)NAN, err);
        memcpy(at, &x, sizeof x);
    } else if (f->kind == PNB__FIELD_BOOL) {
        bool x = pnb__json_get_bool(o, f->name, false, err);
        memcpy(at, &x, sizeof x);
    } else {
        int64_t x = pnb__json_get_int(o, f->name, whole_of(opts, f), err);
        memcpy(at, &x, sizeof x);
    }
}

/* The name that a file has for an option: grove's had '-' where all have '_' now. */
static const char *name_in(const json_t *options, const pnb__field *f, char old[64])
{
    snprintf(old, 64, "%s", f->name);
    for (char *c = old; *c != '\0'; c++)
        *c = *c == '_' ? '-' : *c;
    return json_object_get(options, old) != NULL ? old : f->name;
}

void pnb__adapter_read_options(pnb__jobj *root, pnb_adapter *a, pnb_error *err)
{
    char where[300];
    json_t *value = pnb__json_get_object(root, "options", err);
    if (root->status != PNB_OK || value == NULL)
        return;
    snprintf(where, sizeof where, "%.280s: options", root->where);
    pnb__jobj o = pnb__json_object(value, where, err);
    for (size_t i = 0; i < a->calls->n_fields; i++) {
        char old[64];
        pnb__field f = a->calls->fields[i];
        f.name = name_in(value, &f, old);
        read_option(&o, &f, &a->opts, err);
    }
    root->status = o.status;
}
