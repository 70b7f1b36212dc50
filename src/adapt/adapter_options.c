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
DEFINE_WORD(pnb__adapt_captions_word, PNB_ADAPT_CAPTIONS_LIST)
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

void pnb__adapter_read_options(pnb__jobj *root, pnb_adapter *a, pnb_error *err)
{
    char where[300];
    json_t *value = pnb__json_get_object(root, "options", err);
    if (root->status != PNB_OK || value == NULL)
        return;
    snprintf(where, sizeof where, "%.280s: options", root->where);
    pnb__jobj o = pnb__json_object(value, where, err);
    for (size_t i = 0; i < a->calls->n_fields; i++)
        read_option(&o, &a->calls->fields[i], &a->opts, err);
    root->status = o.status;
}
