/* Lists in text files: a line an entry, comments and empty lines left out.
 *
 * The whole file is read and cut in place; lines are those of pnb__line_next, so that a byte order
 * mark and CRLF are no part of an entry. */
#include "io/tables/text_lines.h"

#define MAX_LINES_BYTES ((size_t)1 << 30)

static size_t count_lines(const char *text, size_t size)
{
    size_t n = 1;
    for (size_t i = 0; i < size; i++)
        n += text[i] == '\n';
    return n;
}

pnb_status pnb__lines_load(pnb__lines *out, const char *path, pnb_error *err)
{
    size_t size = 0;
    *out = (pnb__lines){0};
    pnb_status status = pnb__read_file(path, MAX_LINES_BYTES, &out->text, &size, err);
    if (status != PNB_OK)
        return status;
    if (!pnb__utf8_valid(out->text, size))
        PNB_TRY(pnb__fail(err, PNB_FORMAT, "%s: not UTF-8 text", path));
    size_t n = count_lines(out->text, size);
    PNB_TRY(PNB_ALLOC(out->line, n, err));
    pnb__line_reader lines = {.at = out->text, .end = out->text + size, .path = path};
    for (char *line;;) {
        PNB_TRY(pnb__line_next(&lines, &line, err));
        if (line == NULL)
            break;
        if (line[0] != '\0' && line[0] != '#')
            out->line[out->n++] = line;
    }
done:
    if (status != PNB_OK)
        pnb__lines_reset(out);
    return status;
}

void pnb__lines_reset(pnb__lines *l)
{
    pnb__free(l->text);
    pnb__free(l->line);
    *l = (pnb__lines){0};
}

pnb_status pnb__stream_read(FILE *in, const char *name, pnb__buf *out, pnb_error *err)
{
    char block[4096];
    for (size_t n; (n = fread(block, 1, sizeof block, in)) > 0;)
        pnb__buf_append(out, block, n);
    return ferror(in) ? pnb__fail_errno(err, "cannot read", name) : pnb__buf_check(out, err);
}
