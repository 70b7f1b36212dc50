/* JSON text to values (RFC 8259), by recursive descent.
 *
 * Memory is asked for as the text is read, and every request may fail: what was made so far is
 * released and the caller hears NOMEM. Numbers are exact: 19 digits and a power of ten that a
 * double holds go the short way (Clinger 1990: both are exact, so one rounding), the others through
 * strtod as digits and exponent without a decimal point, which no locale can misread. */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/json/json.h"
#include "io/json/value_internal.h"

typedef struct parser {
    const char *start, *at, *end;
    const char *where;
    pnb_error *err;
    pnb_status status;
    int depth;
    pnb__buf scratch; /* a string with escapes, the digits of a long number */
} parser;

/* ---- errors ---- */

/* Line and column, in characters, of the byte at `at`. */
static void place_of(const parser *p, const char *at, int *line, int *column)
{
    *line = *column = 1;
    for (const char *c = p->start; c < at; c++) {
        if (*c == '\n') {
            *column = 1;
            ++*line;
        } else if (((unsigned char)*c & 0xC0) != 0x80) {
            ++*column;
        }
    }
}

/* "<words>" and what stands at `at`. */
static void fail_at(parser *p, const char *at, const char *words)
{
    int line, column, n = 0;
    if (p->status != PNB_OK)
        return;
    place_of(p, at, &line, &column);
    while (n < 20 && at + n < p->end && (unsigned char)at[n] > ' ' && (unsigned char)at[n] < 0x7F)
        n++;
    if (at >= p->end)
        p->status = pnb__fail(p->err, PNB_FORMAT, "%s: line %d, column %d: %s near end of file",
                              p->where, line, column, words);
    else
        p->status = pnb__fail(p->err, PNB_FORMAT, "%s: line %d, column %d: %s%s%.*s%s", p->where,
                              line, column, words, n > 0 ? " near '" : "", n, at, n > 0 ? "'" : "");
}

static void fail_nomem(parser *p)
{
    if (p->status == PNB_OK)
        p->status = pnb__fail_nomem(p->err, (size_t)(p->end - p->start));
}

/* ---- small steps ---- */

static void skip_space(parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\n' || *p->at == '\t' || *p->at == '\r'))
        p->at++;
}

/* The next character that is no white space, 0 at the end. */
static char peek(parser *p)
{
    skip_space(p);
    return p->at < p->end ? *p->at : '\0';
}

static bool is_digit_at(const parser *p, const char *at)
{
    return at < p->end && *at >= '0' && *at <= '9';
}

/* ---- strings ---- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Four hexadecimal digits behind "\u"; -1 if they are not there. */
static int32_t code_unit(const parser *p, const char *at)
{
    int32_t unit = 0;
    if (p->end - at < 6 || at[0] != '\\' || at[1] != 'u')
        return -1;
    for (int i = 2; i < 6; i++) {
        int digit = hex_digit(at[i]);
        if (digit < 0)
            return -1;
        unit = unit * 16 + digit;
    }
    return unit;
}

/* "\uXXXX", two of them for a character beyond 16 bits, at p->at. */
static void unicode_escape(parser *p)
{
    char text[4];
    int32_t unit = code_unit(p, p->at), low;
    const char *from = p->at;
    if (unit < 0) {
        fail_at(p, from, "invalid escape");
        return;
    }
    p->at += 6;
    if (unit >= 0xD800 && unit < 0xDC00) {
        low = code_unit(p, p->at);
        if (low < 0xDC00 || low > 0xDFFF) {
            fail_at(p, from, "invalid Unicode: half of a surrogate pair");
            return;
        }
        p->at += 6;
        unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
    } else if (unit >= 0xDC00 && unit < 0xE000) {
        fail_at(p, from, "invalid Unicode: half of a surrogate pair");
        return;
    } else if (unit == 0) {
        fail_at(p, from, "\\u0000: a NUL inside a string is not supported");
        return;
    }
    pnb__buf_append(&p->scratch, text, pnb__utf8_encode((uint32_t)unit, text));
}

/* An escape at p->at, into the scratch text. */
static void escape(parser *p)
{
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    char c = p->end - p->at >= 2 ? p->at[1] : '\0';
    const char *found = c != '\0' ? strchr(letters, c) : NULL;
    if (c == 'u') {
        unicode_escape(p);
    } else if (found == NULL) {
        fail_at(p, p->at, "invalid escape");
    } else {
        pnb__buf_putc(&p->scratch, meant[found - letters]);
        p->at += 2;
    }
}

/* Bytes from p->at to the next quote, backslash or control character. Sets *is_ascii to false when
 * one of them is not. */
static size_t plain_run(const parser *p, bool *is_ascii)
{
    const char *at = p->at;
    unsigned char high = 0;
    for (; at < p->end; at++) {
        unsigned char c = (unsigned char)*at;
        if (c == '"' || c == '\\' || c < 0x20)
            break;
        high |= c;
    }
    *is_ascii = *is_ascii && high < 0x80;
    return (size_t)(at - p->at);
}

static void bad_bytes(parser *p, const char *from, size_t n)
{
    char words[40];
    uint32_t code;
    for (size_t length; n > 0 && (length = pnb__utf8_decode(from, n, &code)) > 0; n -= length)
        from += length;
    snprintf(words, sizeof words, "unable to decode byte 0x%02x as UTF-8",
             n > 0 ? (unsigned)(unsigned char)*from : 0u);
    fail_at(p, from, words);
}

/* The string whose quote is at p->at: *text is in the input, or in the scratch text when it has
 * escapes. False when it is broken. */
static bool read_string(parser *p, const char **text, size_t *n)
{
    const char *from = ++p->at;
    bool is_ascii = true, has_escapes = false;
    p->scratch.size = 0;
    while (p->status == PNB_OK) {
        size_t run = plain_run(p, &is_ascii);
        const char *run_at = p->at;
        p->at += run;
        char c = p->at < p->end ? *p->at : '\0';
        if (has_escapes || c == '\\')
            pnb__buf_append(&p->scratch, run_at, run);
        if (c == '\\') {
            has_escapes = true;
            escape(p);
        } else if (c == '"') {
            break;
        } else {
            fail_at(p, p->at,
                    p->at == p->end ? "premature end of input: a string is not closed"
                                    : "a control character inside a string");
        }
    }
    if (p->status == PNB_OK && !is_ascii && !pnb__utf8_valid(from, (size_t)(p->at - from)))
        bad_bytes(p, from, (size_t)(p->at - from));
    if (p->scratch.failed)
        fail_nomem(p);
    if (p->status != PNB_OK)
        return false;
    *text = has_escapes ? p->scratch.data : from;
    *n = has_escapes ? p->scratch.size : (size_t)(p->at - from);
    p->at++;
    return true;
}

static json_t *string_value(parser *p)
{
    const char *text;
    size_t n;
    return read_string(p, &text, &n) ? pnb__jv_utf8(text, n) : NULL;
}

/* ---- numbers ---- */

typedef struct number {
    const char *from, *end; /* of the digits, the point among them */
    bool is_negative, is_real;
    uint64_t mantissa; /* of the first 19 digits that count */
    int n_digits;      /* that count: from the first that is not 0 */
    int64_t exponent;  /* of ten, so that digits without the point times it is the value */
} number;

static const char *digits(parser *p, number *x, const char *at, bool behind_point)
{
    for (; is_digit_at(p, at); at++) {
        if (x->n_digits > 0 || *at != '0')
            x->n_digits++;
        if (x->n_digits <= 19)
            x->mantissa = 10 * x->mantissa + (uint64_t)(*at - '0');
        x->exponent -= behind_point;
        x->n_digits = PNB_MIN(x->n_digits, 1000);
    }
    return at;
}

/* Reads the number at p->at; false when it is none. */
static bool scan_number(parser *p, number *x)
{
    const char *at = p->at;
    *x = (number){.is_negative = *at == '-'};
    at += x->is_negative;
    x->from = at;
    if (!is_digit_at(p, at) || (*at == '0' && is_digit_at(p, at + 1)))
        return false;
    at = x->end = digits(p, x, at, false);
    if (at < p->end && *at == '.') {
        x->is_real = true;
        if (!is_digit_at(p, at + 1))
            return false;
        at = x->end = digits(p, x, at + 1, true);
    }
    if (at < p->end && (*at == 'e' || *at == 'E')) {
        int64_t power = 0;
        x->is_real = true;
        bool down = at + 1 < p->end && at[1] == '-';
        at += 1 + (at + 1 < p->end && (at[1] == '-' || at[1] == '+'));
        if (!is_digit_at(p, at))
            return false;
        for (; is_digit_at(p, at); at++)
            power = PNB_MIN(10 * power + (*at - '0'), (int64_t)1000000000);
        x->exponent += down ? -power : power;
    }
    p->at = at;
    return true;
}

/* Through strtod, from the digits alone. */
static double long_way(parser *p, const number *x)
{
    pnb__buf *text = &p->scratch;
    text->size = 0;
    for (const char *at = x->from; at < x->end;) {
        const char *point = memchr(at, '.', (size_t)(x->end - at));
        const char *stop = point != NULL ? point : x->end;
        pnb__buf_append(text, at, (size_t)(stop - at));
        at = stop + (point != NULL);
    }
    pnb__buf_printf(text, "e%lld", (long long)x->exponent);
    if (text->failed) {
        fail_nomem(p);
        return 0;
    }
    return strtod(text->data, NULL);
}

static double real_of(parser *p, const number *x)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    double value;
    if (FLT_EVAL_METHOD == 0 && x->n_digits <= 19 && x->mantissa <= (uint64_t)1 << 53 &&
        x->exponent >= -22 && x->exponent <= 22)
        value = x->exponent < 0 ? (double)x->mantissa / powers[-x->exponent]
                                : (double)x->mantissa * powers[x->exponent];
    else
        value = long_way(p, x);
    return x->is_negative ? -value : value;
}

static json_t *number_value(parser *p)
{
    const char *from = p->at;
    number x;
    if (!scan_number(p, &x)) {
        fail_at(p, from, "invalid token");
        return NULL;
    }
    if (x.is_real) {
        double value = real_of(p, &x);
        if (isinf(value))
            fail_at(p, from, "real number overflow");
        return p->status == PNB_OK ? json_real(value) : NULL;
    }
    uint64_t most = (uint64_t)INT64_MAX + x.is_negative;
    if (x.n_digits > 19 || x.mantissa > most) {
        fail_at(p, from, x.is_negative ? "too big negative integer" : "too big integer");
        return NULL;
    }
    return json_integer(x.is_negative ? (json_int_t)(0 - x.mantissa) : (json_int_t)x.mantissa);
}

/* ---- values ---- */

static json_t *any_value(parser *p);

/* Counts a level of brackets. */
static bool enter(parser *p)
{
    if (++p->depth <= PNB__JSON_MAX_DEPTH)
        return true;
    p->status = pnb__fail(p->err, PNB_LIMIT, "%s: JSON nested deeper than %d levels", p->where,
                          PNB__JSON_MAX_DEPTH);
    return false;
}

/* Behind an item: true when another one follows. */
static bool has_more(parser *p, char close, const char *words)
{
    char c = peek(p);
    if (c == ',') {
        p->at++;
        return true;
    }
    if (c == close)
        p->at++;
    else
        fail_at(p, p->at, words);
    return false;
}

static void array_items(parser *p, json_t *array)
{
    p->at++;
    if (peek(p) == ']') {
        p->at++;
        return;
    }
    do {
        json_t *item = any_value(p);
        if (p->status == PNB_OK && json_array_append_new(array, item) != 0)
            fail_nomem(p);
    } while (p->status == PNB_OK && has_more(p, ']', "']' expected"));
}

/* "key": value. The key is copied before its value is read, because that uses the scratch text. */
static void object_item(parser *p, json_t *object)
{
    const char *text, *from = p->at;
    size_t n;
    if (peek(p) != '"') {
        fail_at(p, p->at, "string or '}' expected");
        return;
    }
    from = p->at;
    if (!read_string(p, &text, &n))
        return;
    pnb__jv_added added = pnb__jv_object_add(object, text, n, json_null());
    if (added == PNB__JV_DUPLICATE)
        fail_at(p, from, "duplicate object key");
    else if (added == PNB__JV_NO_MEMORY)
        fail_nomem(p);
    else if (peek(p) != ':')
        fail_at(p, p->at, "':' expected");
    if (p->status != PNB_OK)
        return;
    p->at++;
    pnb__jv_object_node *o = (pnb__jv_object_node *)object;
    json_t *value = any_value(p);
    if (p->status == PNB_OK)
        o->entries[o->n - 1].value = value;
}

static void object_items(parser *p, json_t *object)
{
    p->at++;
    if (peek(p) == '}') {
        p->at++;
        return;
    }
    do {
        object_item(p, object);
    } while (p->status == PNB_OK && has_more(p, '}', "'}' expected"));
}

static json_t *container(parser *p, bool is_object)
{
    if (!enter(p))
        return NULL;
    json_t *made = is_object ? json_object() : json_array();
    if (made != NULL && is_object)
        object_items(p, made);
    else if (made != NULL)
        array_items(p, made);
    p->depth--;
    if (p->status == PNB_OK)
        return made;
    json_decref(made);
    return NULL;
}

static json_t *word(parser *p)
{
    static const struct {
        const char *text;
        json_t *(*make)(void);
    } words[] = {{"true", json_true}, {"false", json_false}, {"null", json_null}};
    for (size_t i = 0; i < PNB_COUNT(words); i++) {
        size_t n = strlen(words[i].text);
        if ((size_t)(p->end - p->at) >= n && memcmp(p->at, words[i].text, n) == 0) {
            p->at += n;
            return words[i].make();
        }
    }
    fail_at(p, p->at, "invalid token");
    return NULL;
}

/* NULL, with a status, when there is none. */
static json_t *any_value(parser *p)
{
    json_t *value;
    char c = peek(p);
    if (c == '{' || c == '[')
        value = container(p, c == '{');
    else if (c == '"')
        value = string_value(p);
    else if (c == '-' || (c >= '0' && c <= '9'))
        value = number_value(p);
    else
        value = word(p);
    if (value == NULL) /* nothing was said against the text */
        fail_nomem(p);
    return value;
}

pnb_status pnb__json_load_bytes(json_t **out, const char *bytes, size_t n, const char *where,
                                pnb_error *err)
{
    if (n > 0 && bytes == NULL)
        return pnb__fail(err, PNB_ARG, "%s: no bytes", where);
    if (n == 0)
        bytes = "";
    parser p = {.start = bytes, .at = bytes, .end = bytes + n, .where = where, .err = err};
    char first = peek(&p);
    json_t *value = NULL;
    if (first != '{' && first != '[')
        fail_at(&p, p.at, "'[' or '{' expected");
    else
        value = any_value(&p);
    if (p.status == PNB_OK && (peek(&p), p.at < p.end))
        fail_at(&p, p.at, "end of file expected");
    pnb__buf_reset(&p.scratch);
    if (p.status == PNB_OK)
        *out = value;
    else
        json_decref(value);
    return p.status;
}

pnb_status pnb__json_try_bytes(json_t **out, const char *bytes, size_t n, pnb_error *err)
{
    *out = NULL;
    pnb_status status = pnb__json_load_bytes(out, bytes, n, "text", NULL);
    return status == PNB_NOMEM ? pnb__fail_nomem(err, n) : PNB_OK;
}
