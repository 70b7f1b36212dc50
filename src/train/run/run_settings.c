/* Options of a run as text, by tables (run_settings.h): an option is written in one place.
 *
 * params.txt has every option, a checkpoint the fixed ones as strings, so that what a resumed run
 * compares is what its options say and not how they were typed. */
#include "train/run/run_settings.h"

#include <math.h>
#include <string.h>

/* 17 digits bring a double back to the bit. */
static void append_value(pnb__buf *b, const void *values, const pnb__field *f)
{
    const void *p = (const unsigned char *)values + f->offset;
    int code = 0;
    switch (f->kind) {
    case PNB__FIELD_INT:
        pnb__buf_printf(b, "%d", *(const int *)p);
        break;
    case PNB__FIELD_I64:
        pnb__buf_printf(b, "%lld", (long long)*(const int64_t *)p);
        break;
    case PNB__FIELD_U64:
        pnb__buf_printf(b, "%llu", (unsigned long long)*(const uint64_t *)p);
        break;
    case PNB__FIELD_SIZE:
        pnb__buf_printf(b, "%zu", *(const size_t *)p);
        break;
    case PNB__FIELD_DOUBLE:
        pnb__buf_printf(b, "%.17g", *(const double *)p);
        break;
    case PNB__FIELD_BOOL:
        pnb__buf_puts(b, *(const bool *)p ? "true" : "false");
        break;
    case PNB__FIELD_STRING:
        pnb__buf_puts(b, *(const char *const *)p != NULL ? *(const char *const *)p : "none");
        break;
    case PNB__FIELD_ENUM: /* every enum of the options has the size of an int */
        memcpy(&code, p, sizeof code);
        pnb__buf_puts(b, f->enum_name(code) != NULL ? f->enum_name(code) : "?");
        break;
    }
}

/* open_clip's params.txt, one "name: value" a line. */
void pnb__settings_text(const pnb__settings *tables, size_t n_tables, pnb__buf *out)
{
    for (size_t t = 0; t < n_tables; t++)
        for (size_t i = 0; i < tables[t].n; i++) {
            pnb__buf_printf(out, "%s: ", tables[t].fields[i].name);
            append_value(out, tables[t].values, &tables[t].fields[i]);
            pnb__buf_putc(out, '\n');
        }
}

/* As text: a JSON number would lose the last bits of a 64-bit seed. */
static bool add_fixed(json_t *object, const pnb__settings *table)
{
    bool ok = true;
    for (size_t i = 0; ok && i < table->n; i++) {
        if (!table->fields[i].fixed)
            continue;
        pnb__buf text = {0};
        append_value(&text, table->values, &table->fields[i]);
        ok = !text.failed &&
             json_object_set_new(object, table->fields[i].name,
                                 json_string(text.data != NULL ? text.data : "")) == 0;
        pnb__buf_reset(&text);
    }
    return ok;
}

/* One object for all tables: names of options are unique over them. */
json_t *pnb__settings_fixed(const pnb__settings *tables, size_t n_tables)
{
    json_t *object = json_object();
    bool ok = object != NULL;
    for (size_t t = 0; ok && t < n_tables; t++)
        ok = add_fixed(object, &tables[t]);
    if (ok)
        return object;
    json_decref(object);
    return NULL;
}

/* By the names of now: an option that is new since the checkpoint was not recorded, which is
 * said. */
pnb_status pnb__settings_compare(const json_t *saved, const json_t *now, pnb_error *err)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)now, name, value)
    {
        const char *was = json_string_value(json_object_get(saved, name));
        const char *is = json_string_value(value);
        /* equal numbers have equal texts, so texts are enough */
        if (was == NULL || is == NULL || strcmp(was, is) != 0)
            return pnb__fail(
                err, PNB_ARG,
                "the checkpoint was trained with %s = %s, this run asks for %s: resume "
                "with the same options, or start a new run from it with --model",
                name, was != NULL ? was : "(not recorded)", is != NULL ? is : "?");
    }
    return PNB_OK;
}

/* NaN means "not given", infinity "no limit", where the option's row says so. */
static bool may_be(const pnb__field *f, double value)
{
    return isfinite(value) || (isnan(value) && f->also == PNB__ALSO_NAN) ||
           (value > 0 && f->also == PNB__ALSO_INFINITE);
}

/* In the order of the table, named as it is typed: "lr-min-ratio". */
pnb_status pnb__settings_check_finite(const pnb__settings *table, pnb_error *err)
{
    for (size_t i = 0; i < table->n; i++) {
        const pnb__field *f = &table->fields[i];
        if (f->kind != PNB__FIELD_DOUBLE)
            continue;
        double value = *(const double *)((const unsigned char *)table->values + f->offset);
        if (may_be(f, value))
            continue;
        char name[64];
        snprintf(name, sizeof name, "%s", f->name);
        for (char *c = strchr(name, '_'); c != NULL; c = strchr(c, '_'))
            *c = '-'; /* as the option is written */
        return pnb__fail(err, PNB_ARG, "%s is %g, it must be a finite number", name, value);
    }
    return PNB_OK;
}
