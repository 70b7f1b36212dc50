/* Lines of a file of captions or records, whatever it holds.
 *
 * A line that is not UTF-8 or too long is told, so that one bad line does not end a long job; a
 * file that is no text at all is refused, by what its first bytes say it is. */
#include "encode/inputs/inputs_lines.h"

#include <string.h>

#include "io/foreign.h"

void pnb__text_lines_reset(pnb__text_lines *r)
{
    pnb__buf_reset(&r->line);
}

/* Bytes up to the line end, of which `most` are kept; false at the end of the file. */
static bool read_bytes(pnb__text_lines *r)
{
    size_t n = 0;
    r->line.size = 0;
    pnb__buf_append(&r->line, "", 0);
    for (int c; (c = getc_unlocked(r->in)) != EOF; n++) {
        if (c == '\n') {
            n++;
            break;
        }
        if (n < r->most || c == 0)
            pnb__buf_putc(&r->line, (char)c);
        if (c == 0) { /* no text: not read to its end, which may not come */
            n++;
            break;
        }
    }
    r->n_bytes += n;
    r->too_long = n > r->most + 1;
    return n > 0;
}

static size_t count_invalid(const char *s, size_t n)
{
    size_t bad = 0;
    for (size_t i = 0; i < n;) {
        size_t used = 1;
        while (used < 4 && i + used < n && !pnb__utf8_valid(s + i, used))
            used++;
        bool valid = pnb__utf8_valid(s + i, used);
        bad += valid ? 0 : 1;
        i += valid ? used : 1;
    }
    return bad;
}

static pnb_status refuse(const pnb__text_lines *r, const char *problem, pnb_error *err)
{
    if (r->what[0] != '\0')
        return pnb__fail(err, PNB_FORMAT, "%s: this is %s", r->where, r->what);
    return pnb__fail(err, PNB_FORMAT,
                     "%s: not a text file (%s): wanted are captions in UTF-8, one a line", r->where,
                     problem);
}

static void drop_front(pnb__buf *b, size_t n)
{
    memmove(b->data, b->data + n, b->size - n + 1);
    b->size -= n;
}

static pnb_status look_at_first(pnb__text_lines *r, pnb_error *err)
{
    const char *what = pnb__foreign(r->line.data, r->line.size);
    snprintf(r->what, sizeof r->what, "%s", what != NULL ? what : "");
    if (r->line.size >= 3 && memcmp(r->line.data, "\xEF\xBB\xBF", 3) == 0)
        drop_front(&r->line, 3);
    return pnb__refuse_stand_in(r->where, r->line.data, r->line.size, err);
}

pnb_status pnb__text_lines_next(pnb__text_lines *r, bool *more, bool *valid, pnb_error *err)
{
    pnb_status status = PNB_OK;
    *more = read_bytes(r);
    if (r->line.failed)
        return pnb__fail_nomem(err, r->line.size);
    if (!*more && ferror(r->in))
        return pnb__fail_errno(err, "cannot read", r->where);
    if (!*more)
        return r->n_invalid * 100 > r->n_bytes && (r->n_bad_lines > 1 || r->number == 1)
                   ? refuse(r, "more than 1% of its bytes are not UTF-8", err)
                   : PNB_OK;
    if (++r->number == 1)
        status = look_at_first(r, err);
    if (status != PNB_OK)
        return status;
    if (memchr(r->line.data, 0, r->line.size) != NULL)
        return refuse(r, "it holds NUL bytes", err);
    if (r->line.size > 0 && r->line.data[r->line.size - 1] == '\r')
        r->line.data[--r->line.size] = '\0';
    *valid = pnb__utf8_valid(r->line.data, r->line.size);
    r->n_bad_lines += !*valid;
    if (!*valid && !r->too_long)
        r->n_invalid += count_invalid(r->line.data, r->line.size);
    return PNB_OK;
}
