/* Word vectors as GloVe, fastText and word2vec publish them; fastText's models are read next door
 * (fasttext_model.c).
 *
 *   text     word v1 v2 ... vD        one a line, in UTF-8, fields apart by one space
 *            N D                      a first line that fastText and word2vec have and GloVe has
 * not binary   "N D\n" ( word ' ' D x f32 )*, little-endian, '\n' between words or not (word2vec.c)
 * Files are of gigabytes and a vocabulary needs some thousand rows: bytes come through one buffer
 * of a megabyte, every line is checked for its width, numbers are read of wanted words alone. */
#include "io/tables/word_vectors.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/tables/fasttext_model.h"

#define BUFFER_BYTES ((size_t)1 << 20) /* the longest line, or word and vector */
#define MAX_DIM ((size_t)16384)

typedef struct reader {
    pnb__wanted_words *wanted;
    FILE *file;
    const char *path;
    char *buffer;
    size_t at, end; /* unread bytes of the buffer */
    bool is_over;   /* the file has no more */
    size_t number;  /* of the line, or of the word in a binary file; from 1 */
    size_t n_said;  /* words by the header, 0 without one */
    pnb__spellings spellings;
    pnb_error *err;
} reader;

/* The next spelling that is these bytes and wins over what was found so far; step begins as 0. */
static const pnb__spelling *next_match(const reader *r, const char *word, size_t n, size_t *step)
{
    return pnb__spellings_next(&r->spellings, r->wanted, word, n, step);
}

/* ---- bytes ---- */

/* More bytes behind those unread; false when the buffer is full of them. */
static bool fill(reader *r)
{
    memmove(r->buffer, r->buffer + r->at, r->end - r->at);
    r->end -= r->at;
    r->at = 0;
    size_t room = BUFFER_BYTES - r->end;
    if (room == 0)
        return false;
    size_t got = fread(r->buffer + r->end, 1, room, r->file);
    r->end += got;
    r->is_over = got < room;
    return true;
}

/* At least n unread bytes, unless the file ends before. */
static void need(reader *r, size_t n)
{
    if (r->end - r->at < n && !r->is_over)
        fill(r);
}

/* The next line without its end, in the buffer; n SIZE_MAX behind the last. */
static pnb_status next_line(reader *r, char **line, size_t *n)
{
    char *stop = NULL;
    while ((stop = memchr(r->buffer + r->at, '\n', r->end - r->at)) == NULL && !r->is_over)
        if (!fill(r))
            return pnb__fail(r->err, PNB_LIMIT, "%s: line %zu has more than %zu bytes", r->path,
                             r->number + 1, BUFFER_BYTES);
    *line = r->buffer + r->at;
    *n = stop != NULL ? (size_t)(stop - *line) : r->end - r->at;
    if (stop == NULL && *n == 0) {
        *n = SIZE_MAX;
        return PNB_OK;
    }
    r->at += *n + (stop != NULL);
    r->number++;
    *n -= *n > 0 && (*line)[*n - 1] == '\r';
    while (*n > 0 && (*line)[*n - 1] == ' ') /* word2vec ends lines so */
        --*n;
    return PNB_OK;
}

/* ---- text ---- */

/* Reads the number that fills text..end, which a space or 0 byte follows. */
static bool read_number(const char *text, const char *end, float *out)
{
    char *stop = NULL;
    if (text == end || *text == ' ' || *text == '\t')
        return false;
    *out = strtof(text, &stop);
    return stop == end && isfinite((double)*out);
}

static size_t count_spaces(const char *line, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += line[i] == ' ';
    return count;
}

static pnb_status wrong_width(const reader *r, const char *line, size_t n_word, size_t n_numbers)
{
    return pnb__fail(r->err, PNB_FORMAT,
                     "%s: line %zu (\"%.*s\") has %zu numbers, the words have vectors of %zu",
                     r->path, r->number, (int)PNB_MIN(n_word, (size_t)40), line, n_numbers,
                     r->wanted->dim);
}

/* Where the word of a line ends: in front of its last dim fields. What is more must be words. */
static pnb_status find_word(const reader *r, const char *line, size_t n, size_t *n_word)
{
    size_t dim = r->wanted->dim, n_numbers = count_spaces(line, n), at = n;
    const char *space = n > 0 ? memchr(line, ' ', n) : NULL;
    size_t n_first = space != NULL ? (size_t)(space - line) : n;
    if (n_numbers < dim || n_first == 0)
        return wrong_width(r, line, n_first, n_numbers);
    for (size_t k = 0; k < dim; at--)
        k += line[at - 1] == ' ';
    *n_word = at;
    float number;
    for (size_t from = n_first + 1; from < at;) {
        const char *stop = memchr(line + from, ' ', at - from);
        size_t end = stop != NULL ? (size_t)(stop - line) : at;
        if (read_number(line + from, line + end, &number))
            return wrong_width(r, line, n_first, n_numbers);
        from = end + 1;
    }
    return PNB_OK;
}

/* The numbers of a line behind its word, into a row. */
static pnb_status read_row(const reader *r, const char *line, size_t n, size_t n_word, float *row)
{
    const char *at = line + n_word + 1, *end = line + n;
    for (size_t d = 0; d < r->wanted->dim; d++) {
        const char *stop = at < end ? memchr(at, ' ', (size_t)(end - at)) : NULL;
        stop = stop != NULL ? stop : end;
        if (!read_number(at, stop, &row[d]))
            return pnb__fail(r->err, PNB_FORMAT,
                             "%s: line %zu (\"%.*s\"): \"%.*s\" is no finite number", r->path,
                             r->number, (int)PNB_MIN(n_word, (size_t)40), line,
                             (int)PNB_MIN((size_t)(stop - at), (size_t)40), at);
        at = stop + 1;
    }
    return PNB_OK;
}

static void take(reader *r, const pnb__spelling *s)
{
    r->wanted->found[s->word] = (unsigned char)s->how;
}

static pnb_status take_line(reader *r, char *line, size_t n)
{
    size_t n_word = 0, step = 0;
    const pnb__spelling *s;
    pnb_status status = find_word(r, line, n, &n_word);
    char last = line[n];
    line[n] = '\0'; /* ends the last number */
    while (status == PNB_OK && (s = next_match(r, line, n_word, &step)) != NULL) {
        status = read_row(r, line, n, n_word, r->wanted->rows + s->word * r->wanted->dim);
        take(r, s);
    }
    line[n] = last;
    return status;
}

static pnb_status check_count(const reader *r, size_t n)
{
    if (r->n_said == 0 || n == r->n_said)
        return PNB_OK;
    return pnb__fail(r->err, PNB_FORMAT,
                     "%s: the first line says %zu words, the file has %zu: it is cut or another's",
                     r->path, r->n_said, n);
}

static pnb_status read_text(reader *r)
{
    char *line = NULL;
    size_t n = 0, n_words = 0;
    pnb_status status;
    while ((status = next_line(r, &line, &n)) == PNB_OK && n != SIZE_MAX) {
        if (n == 0)
            continue;
        status = take_line(r, line, n);
        if (status != PNB_OK)
            return status;
        n_words++;
    }
    if (status == PNB_OK && n_words == 0)
        return pnb__fail(r->err, PNB_FORMAT, "%s: no words", r->path);
    return status == PNB_OK ? check_count(r, n_words) : status;
}

/* ---- binary ---- */

static pnb_status ends_too_soon(const reader *r)
{
    return pnb__fail(r->err, PNB_FORMAT, "%s: the file ends in word %zu of %zu; it is cut", r->path,
                     r->number, r->n_said);
}

static pnb_status take_binary(reader *r)
{
    size_t bytes = r->wanted->dim * sizeof(float), step = 0;
    need(r, BUFFER_BYTES / 2);
    while (r->at < r->end && r->buffer[r->at] == '\n')
        r->at++;
    const char *word = r->buffer + r->at, *space = memchr(word, ' ', r->end - r->at);
    if (space == NULL)
        return ends_too_soon(r);
    size_t n_word = (size_t)(space - word);
    if (r->end - r->at - n_word - 1 < bytes)
        return ends_too_soon(r);
    const pnb__spelling *s;
    while ((s = next_match(r, word, n_word, &step)) != NULL) {
        float *row = r->wanted->rows + s->word * r->wanted->dim;
        memcpy(row, space + 1, bytes);
        for (size_t d = 0; d < r->wanted->dim; d++)
            if (!isfinite((double)row[d]))
                return pnb__fail(r->err, PNB_FORMAT, "%s: the vector of \"%.*s\" is not finite",
                                 r->path, (int)PNB_MIN(n_word, (size_t)40), word);
        take(r, s);
    }
    r->at += n_word + 1 + bytes;
    return PNB_OK;
}

static pnb_status read_binary(reader *r)
{
    pnb_status status = PNB_OK;
    for (r->number = 1; r->number <= r->n_said && status == PNB_OK; r->number++)
        status = take_binary(r);
    return status;
}

/* ---- what it is ---- */

/* A first line of two whole numbers: words and width. */
static bool read_header(const char *line, size_t n, size_t *n_words, size_t *dim)
{
    char text[48], *end;
    while (n > 0 && (line[n - 1] == '\r' || line[n - 1] == ' '))
        n--;
    if (n == 0 || n >= sizeof text || line[0] < '0' || line[0] > '9')
        return false;
    memcpy(text, line, n);
    text[n] = '\0';
    *n_words = strtoull(text, &end, 10);
    if (*end != ' ' || end[1] < '0' || end[1] > '9')
        return false;
    *dim = strtoull(end + 1, &end, 10);
    return *end == '\0';
}

/* Of the bytes behind a header: does the first vector have some that no text has? */
static bool looks_binary(const reader *r)
{
    size_t n = PNB_MIN(r->end - r->at, (size_t)512);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)r->buffer[r->at + i];
        if (c < 9 || (c > 13 && c < 32))
            return true;
    }
    return false;
}

static pnb_status refuse_packed(const reader *r)
{
    const unsigned char *b = (const unsigned char *)r->buffer;
    bool is_gzip = r->end >= 2 && b[0] == 0x1F && b[1] == 0x8B;
    bool is_zip = r->end >= 4 && memcmp(b, "PK\3\4", 4) == 0;
    if (is_gzip || is_zip)
        return pnb__fail(r->err, PNB_UNSUPPORTED, "%s: packed by %s; unpack it first", r->path,
                         is_zip ? "zip" : "gzip");
    return PNB_OK;
}

static pnb_status read_all(reader *r)
{
    size_t n_words = 0, dim = 0;
    fill(r);
    if (ferror(r->file)) /* a folder, for one */
        return pnb__fail(r->err, PNB_IO, "%s: cannot be read", r->path);
    if (pnb__is_fasttext_model(r->buffer, r->end))
        return pnb__fasttext_model_read(r->path, &r->spellings, r->wanted, r->err);
    pnb_status status = refuse_packed(r);
    const char *stop = r->end > 0 ? memchr(r->buffer, '\n', r->end) : NULL;
    if (status != PNB_OK || stop == NULL ||
        !read_header(r->buffer, (size_t)(stop - r->buffer), &n_words, &dim))
        return status == PNB_OK ? read_text(r) : status;
    if (dim != r->wanted->dim)
        return pnb__fail(r->err, PNB_FORMAT,
                         "%s: the first line says vectors of %zu, the words have %zu", r->path, dim,
                         r->wanted->dim);
    r->at = (size_t)(stop - r->buffer) + 1;
    r->number = 1;
    r->n_said = n_words;
    return looks_binary(r) ? read_binary(r) : read_text(r);
}

pnb_status pnb__word_vectors_read(const char *path, pnb__wanted_words *wanted, pnb_error *err)
{
    reader r = {.wanted = wanted, .path = path, .err = err};
    pnb_status status = PNB_OK;
    if (wanted->dim < 1 || wanted->dim > MAX_DIM)
        return pnb__fail(err, PNB_ARG, "word vectors of %zu numbers; 1 to %zu are read",
                         wanted->dim, MAX_DIM);
    r.file = fopen(path, "rb");
    if (r.file == NULL)
        return pnb__fail(err, errno == ENOENT ? PNB_NOT_FOUND : PNB_IO, "%s: %s", path,
                         strerror(errno));
    PNB_TRY(PNB_ALLOC(r.buffer, BUFFER_BYTES + 1, err)); /* a 0 byte may end the last line */
    PNB_TRY(pnb__spellings_init(&r.spellings, wanted, err));
    status = read_all(&r);
    if (status == PNB_OK && ferror(r.file))
        status = pnb__fail(err, PNB_IO, "%s: cannot be read to its end", path);
done:
    fclose(r.file);
    pnb__free(r.buffer);
    pnb__spellings_reset(&r.spellings);
    return status;
}
