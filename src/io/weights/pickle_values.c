/* Opcodes that push one plain value: none, booleans, integers, floats, and strings of every
 * spelling (counted bytes, quoted lines of Python 2, "raw-unicode-escape" lines).
 *
 * Strings point into the pickle's bytes where they stand there as they are; only escaped lines are
 * written anew, into the arena. Numbers beyond 64 bits stay bytes: no checkpoint counts with them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "io/weights/pickle_internal.h"

static pnb_status push_int(pnb__unpickler *u, int64_t i)
{
    pnb__pk_value *v = pnb__pk_new(u, PNB__PK_INT);
    if (v != NULL)
        v->u.integer = i;
    return pnb__pk_push(u, v);
}

static pnb_status push_bool(pnb__unpickler *u, bool truth)
{
    pnb__pk_value *v = pnb__pk_new(u, PNB__PK_BOOL);
    if (v != NULL)
        v->u.truth = truth;
    return pnb__pk_push(u, v);
}

static pnb_status push_real(pnb__unpickler *u, double real)
{
    pnb__pk_value *v = pnb__pk_new(u, PNB__PK_FLOAT);
    if (v != NULL)
        v->u.real = real;
    return pnb__pk_push(u, v);
}

static pnb_status push_text(pnb__unpickler *u, pnb__pk_kind kind, const void *data, size_t n)
{
    pnb__pk_value *v = pnb__pk_new(u, kind);
    if (v != NULL) {
        v->u.text.data = data;
        v->u.text.n = n;
    }
    return pnb__pk_push(u, v);
}

pnb_status pnb__pk_op_constant(pnb__unpickler *u, unsigned char op)
{
    return op == 'N' ? pnb__pk_push(u, pnb__pk_new(u, PNB__PK_NONE)) : push_bool(u, op == 0x88);
}

/* BININT, BININT1, BININT2. */
pnb_status pnb__pk_op_int(pnb__unpickler *u, unsigned char op)
{
    uint64_t value = 0;
    pnb_status status = pnb__pk_need_number(u, op == 'J' ? 4 : op == 'M' ? 2 : 1, &value);
    int64_t number = op == 'J' ? (int64_t)(int32_t)(uint32_t)value : (int64_t)value;
    return status == PNB_OK ? push_int(u, number) : status;
}

/* INT and LONG: decimal lines; INT also spells the booleans of old protocols. */
pnb_status pnb__pk_op_int_line(pnb__unpickler *u, unsigned char op)
{
    char text[64], *end = NULL;
    const unsigned char *line = u->source.bytes + u->at;
    pnb_status status = pnb__pk_need_number_line(u, text);
    if (status != PNB_OK)
        return status;
    if (op == 'I' && (strcmp(text, "00") == 0 || strcmp(text, "01") == 0))
        return push_bool(u, text[1] == '1');
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || (*end != '\0' && strcmp(end, "L") != 0))
        return pnb__pk_bad(u, "a number that is none");
    return errno == ERANGE ? push_text(u, PNB__PK_BIG, line, strlen(text)) : push_int(u, value);
}

/* LONG1, LONG4: two's complement of any length. */
pnb_status pnb__pk_op_long(pnb__unpickler *u, unsigned char op)
{
    uint64_t n = 0, value = 0;
    const unsigned char *p = NULL;
    pnb_status status = pnb__pk_need_number(u, op == 0x8a ? 1 : 4, &n);
    if (status == PNB_OK)
        status = pnb__pk_need(u, (size_t)n, &p);
    if (status != PNB_OK)
        return status;
    if (n > 8)
        return push_text(u, PNB__PK_BIG, p, (size_t)n);
    for (size_t i = 0; i < 8; i++) {
        unsigned char sign = n > 0 && (p[n - 1] & 0x80) != 0 ? 0xFF : 0;
        value |= (uint64_t)(i < n ? p[i] : sign) << (8 * i);
    }
    return push_int(u, (int64_t)value);
}

pnb_status pnb__pk_op_float(pnb__unpickler *u, unsigned char op)
{
    char text[64], *end = NULL;
    double real = 0;
    if (op == 'F') {
        pnb_status status = pnb__pk_need_number_line(u, text);
        if (status != PNB_OK)
            return status;
        real = strtod(text, &end);
        return *end == '\0' ? push_real(u, real) : pnb__pk_bad(u, "a number that is none");
    }
    const unsigned char *p = NULL;
    pnb_status status = pnb__pk_need(u, 8, &p);
    uint64_t bits = 0;
    for (size_t i = 0; status == PNB_OK && i < 8; i++)
        bits = bits << 8 | p[i]; /* the only big-endian number of the format */
    memcpy(&real, &bits, sizeof real);
    return status == PNB_OK ? push_real(u, real) : status;
}

/* ---- strings ---- */

/* Counted text: the opcode says how wide the count is and whether it is bytes. */
pnb_status pnb__pk_op_text(pnb__unpickler *u, unsigned char op)
{
    bool is_bytes = op == 'B' || op == 'C' || op == 0x8e || op == 0x96;
    bool is_short = op == 'C' || op == 'U' || op == 0x8c;
    bool is_long = op == 0x8d || op == 0x8e || op == 0x96;
    uint64_t n = 0;
    const unsigned char *p = NULL;
    pnb_status status = pnb__pk_need_number(u, is_short ? 1 : is_long ? 8 : 4, &n);
    if (status == PNB_OK && n > u->source.n_bytes - u->at)
        return pnb__pk_bad(u, "a string longer than the file");
    if (status == PNB_OK)
        status = pnb__pk_need(u, (size_t)n, &p);
    return status == PNB_OK ? push_text(u, is_bytes ? PNB__PK_BYTES : PNB__PK_STR, p, (size_t)n)
                            : status;
}

/* STRING: a quoted line of Python 2. Escapes stand for bytes that no key of ours has. */
pnb_status pnb__pk_op_string_line(pnb__unpickler *u, unsigned char op)
{
    const char *line = NULL;
    size_t n = 0;
    (void)op;
    pnb_status status = pnb__pk_need_line(u, &line, &n);
    if (status != PNB_OK)
        return status;
    bool is_quoted = n >= 2 && line[0] == line[n - 1] && (line[0] == '\'' || line[0] == '"');
    if (!is_quoted || memchr(line, '\\', n) != NULL)
        return pnb__pk_bad(u, "a string line that is not quoted or has escapes");
    return push_text(u, PNB__PK_STR, line + 1, n - 2);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* One character of a "raw-unicode-escape" line: \uXXXX, \UXXXXXXXX or a Latin-1 byte. Returns the
 * bytes it took, 0 when the escape is broken. */
static size_t raw_character(const char *p, size_t n, uint32_t *code)
{
    *code = (unsigned char)*p;
    if (*p != '\\' || n < 2 || (p[1] != 'u' && p[1] != 'U'))
        return 1;
    size_t n_digits = p[1] == 'u' ? 4 : 8;
    if (n < 2 + n_digits)
        return 0;
    *code = 0;
    for (size_t i = 0; i < n_digits; i++) {
        int digit = hex_digit(p[2 + i]);
        if (digit < 0 || *code > 0xFFFFFFF)
            return 0;
        *code = *code << 4 | (uint32_t)digit;
    }
    return 2 + n_digits;
}

pnb_status pnb__pk_op_unicode_line(pnb__unpickler *u, unsigned char op)
{
    const char *line = NULL;
    size_t n = 0, n_out = 0, step;
    (void)op;
    pnb_status status = pnb__pk_need_line(u, &line, &n);
    if (status != PNB_OK)
        return status;
    char *text = pnb__pk_take(u, 2 * n + 4); /* a Latin-1 byte becomes two */
    if (text == NULL)
        return u->status;
    for (size_t i = 0; i < n; i += step) {
        uint32_t code = 0;
        step = raw_character(line + i, n - i, &code);
        if (step == 0)
            return pnb__pk_bad(u, "a broken \\u escape");
        n_out += pnb__utf8_encode(code, text + n_out);
    }
    return push_text(u, PNB__PK_STR, text, n_out);
}

/* ---- reading the tree ---- */

bool pnb__pk_is_text(const pnb__pk_value *v, const char *text)
{
    size_t n = strlen(text);
    return v != NULL && v->kind == PNB__PK_STR && v->u.text.n == n &&
           memcmp(v->u.text.data, text, n) == 0;
}

const pnb__pk_value *pnb__pk_get(const pnb__pk_value *dict, const char *key)
{
    if (dict == NULL || dict->kind != PNB__PK_DICT)
        return NULL;
    for (uint32_t i = dict->u.list.n; i >= 2; i -= 2) /* the last one wins, as in Python */
        if (pnb__pk_is_text(dict->u.list.items[i - 2], key))
            return dict->u.list.items[i - 1];
    return NULL;
}
