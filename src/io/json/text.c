/* JSON values to text.
 *
 * Numbers get the fewest digits that read back as the same double. An incomplete tree fails as out
 * of memory does. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/json/json.h"
#include "io/json/value_internal.h"

/* Bytes of the character of more than one byte at s; 0: they are no UTF-8. */
static size_t long_character(const char *s)
{
    uint32_t code_point;
    return pnb__utf8_decode(s, strnlen(s, 4), &code_point);
}

/* A byte of a file name that is no UTF-8 becomes a lone surrogate (io/byte_names.h). */
void pnb__json_append_string(pnb__buf *b, const char *s)
{
    size_t start = 0, i = 0;
    pnb__buf_putc(b, '"');
    for (; s[i] != '\0'; i++) {
        unsigned char c = (unsigned char)s[i];
        size_t n = c >= 0x80 ? long_character(s + i) : 1;
        if (n > 0 && c >= 0x20 && c != '"' && c != '\\') {
            i += n - 1;
            continue;
        }
        pnb__buf_append(b, s + start, i - start);
        start = i + 1;
        if (c == '"' || c == '\\')
            pnb__buf_printf(b, "\\%c", c);
        else if (c == '\n')
            pnb__buf_puts(b, "\\n");
        else if (c == '\t')
            pnb__buf_puts(b, "\\t");
        else if (c == '\r')
            pnb__buf_puts(b, "\\r");
        else
            pnb__buf_printf(b, "\\u%04x", c < 0x80 ? c : 0xDC00u + c);
    }
    pnb__buf_append(b, s + start, i - start);
    pnb__buf_putc(b, '"');
}

/* `precision` digits; 0: as many as it takes. */
static void append_real(pnb__buf *b, double x, int precision)
{
    char text[40];
    if (!isfinite(x)) {
        pnb__buf_puts(b, "null");
        return;
    }
    for (int digits = precision > 0 ? precision : 15; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, x);
        if (precision > 0 || strtod(text, NULL) == x)
            break;
    }
    for (char *p = text; *p != '\0'; p++) {
        if (*p == ',') /* a host program may have set a locale with decimal commas */
            *p = '.';
    }
    pnb__buf_puts(b, text);
    if (strpbrk(text, ".e") == NULL)
        pnb__buf_puts(b, ".0"); /* stays a real number when read back */
}

void pnb__json_append_double(pnb__buf *b, double x)
{
    append_real(b, x, 0);
}

/* One value at `conversion`, behind its '%'; returns what follows it. */
static const char *put_value(pnb__buf *b, const char *conversion, va_list *args)
{
    switch (*conversion) {
    case 's':
        pnb__json_append_string(b, va_arg(*args, const char *));
        return conversion + 1;
    case 'f':
        pnb__json_append_double(b, va_arg(*args, double));
        return conversion + 1;
    case 'i':
        pnb__buf_puts(b, va_arg(*args, int) ? "true" : "false");
        return conversion + 1;
    case 'd':
        pnb__buf_printf(b, "%d", va_arg(*args, int));
        return conversion + 1;
    case 'z':
        pnb__buf_printf(b, "%zu", va_arg(*args, size_t));
        return conversion + 2;
    default: /* lld, llu */
        pnb__buf_printf(b, conversion[2] == 'd' ? "%lld" : "%llu", va_arg(*args, long long));
        return conversion + 3;
    }
}

void pnb__json_put(pnb__buf *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    while (*format != '\0') {
        size_t n = strcspn(format, "%");
        pnb__buf_append(b, format, n);
        format += n;
        if (*format == '%')
            format = put_value(b, format + 1, &args);
    }
    va_end(args);
}

/* ---- trees ---- */

typedef struct json_style {
    pnb__buf *buf;
    int indent; /* 0: on one line */
    bool sorts, is_compact;
    int precision;
} json_style;

static void append_json(const json_style *style, const json_t *value, int depth);

static void append_break(const json_style *style, int depth)
{
    if (style->indent > 0)
        pnb__buf_printf(style->buf, "\n%*s", style->indent * depth, "");
}

static void append_comma(const json_style *style, size_t i)
{
    if (i > 0)
        pnb__buf_puts(style->buf, style->indent > 0 || style->is_compact ? "," : ", ");
}

static int compare_keys(const void *a, const void *b)
{
    const pnb__jv_entry *const *x = a, *const *y = b;
    return strcmp((*x)->key, (*y)->key);
}

static void append_array(const json_style *style, const json_t *value, int depth)
{
    size_t n = json_array_size(value);
    pnb__buf_putc(style->buf, '[');
    for (size_t i = 0; i < n; i++) {
        append_comma(style, i);
        append_break(style, depth + 1);
        append_json(style, json_array_get(value, i), depth + 1);
    }
    if (n > 0)
        append_break(style, depth);
    pnb__buf_putc(style->buf, ']');
}

static void append_entries(const json_style *style, const pnb__jv_object_node *o,
                           const pnb__jv_entry **order, int depth)
{
    pnb__buf_putc(style->buf, '{');
    for (size_t i = 0; i < o->n; i++) {
        const pnb__jv_entry *e = order != NULL ? order[i] : &o->entries[i];
        append_comma(style, i);
        append_break(style, depth + 1);
        pnb__json_append_string(style->buf, e->key);
        pnb__buf_puts(style->buf, style->is_compact ? ":" : ": ");
        append_json(style, e->value, depth + 1);
    }
    if (o->n > 0)
        append_break(style, depth);
    pnb__buf_putc(style->buf, '}');
}

static void append_object(const json_style *style, const json_t *value, int depth)
{
    const pnb__jv_object_node *o = (const pnb__jv_object_node *)value;
    if (!style->sorts || o->n < 2) {
        append_entries(style, o, NULL, depth);
        return;
    }
    const pnb__jv_entry **order = pnb__alloc_array(o->n, sizeof(*order));
    if (order == NULL) {
        style->buf->failed = true;
        return;
    }
    for (size_t i = 0; i < o->n; i++)
        order[i] = &o->entries[i];
    qsort(order, o->n, sizeof(*order), compare_keys);
    append_entries(style, o, order, depth);
    pnb__free(order);
}

static void append_json(const json_style *style, const json_t *value, int depth)
{
    if (depth > PNB__JSON_MAX_DEPTH || value == NULL || value->is_incomplete) {
        style->buf->failed = true;
        return;
    }
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        append_object(style, value, depth);
        break;
    case JSON_ARRAY:
        append_array(style, value, depth);
        break;
    case JSON_STRING:
        pnb__json_append_string(style->buf, json_string_value(value));
        break;
    case JSON_INTEGER:
        pnb__buf_printf(style->buf, "%lld", json_integer_value(value));
        break;
    case JSON_REAL:
        append_real(style->buf, json_real_value(value), style->precision);
        break;
    case JSON_TRUE:
        pnb__buf_puts(style->buf, "true");
        break;
    case JSON_FALSE:
        pnb__buf_puts(style->buf, "false");
        break;
    case JSON_NULL:
    default:
        pnb__buf_puts(style->buf, "null");
        break;
    }
}

void pnb__json_append_value(pnb__buf *b, const json_t *value)
{
    append_json(&(json_style){.buf = b}, value, 0);
}

char *json_dumps(const json_t *value, size_t flags)
{
    pnb__buf text = {0};
    json_style style = {.buf = &text,
                        .indent = (int)(flags & 0x1F),
                        .sorts = (flags & JSON_SORT_KEYS) != 0,
                        .is_compact = (flags & JSON_COMPACT) != 0,
                        .precision = (int)(flags >> 8)};
    append_json(&style, value, 0);
    if (!text.failed)
        return text.data;
    pnb__buf_reset(&text);
    return NULL;
}

void pnb__json_append_pretty(pnb__buf *b, const json_t *value)
{
    append_json(&(json_style){.buf = b, .indent = 2, .sorts = true}, value, 0);
    pnb__buf_putc(b, '\n');
}

pnb_status pnb__json_save_file(const json_t *value, const char *path, pnb_error *err)
{
    pnb__buf text = {0};
    pnb__json_append_pretty(&text, value);
    return pnb__buf_write(&text, path, err);
}
