/* Parquet as its format description has it (apache/parquet-format, README and parquet.thrift): the
 * magic, one row group, per column a chunk of data pages, the footer, its length, the magic again.
 *
 * Pages are PLAIN and not compressed. A text column is OPTIONAL: each page begins with definition
 * levels, 1 where there is a text and 0 for null, as runs of the RLE hybrid with bit width 1 behind
 * their byte length; then the texts that are there, each behind its length. A double column is
 * REQUIRED and has values alone. Headers and footer are structs of Thrift's compact protocol. */
#include "io/tables/parquet/parquet.h"

#include <string.h>

#define MAGIC "PAR1"
enum { PAGE_ROWS = 20000, MAGIC_BYTES = 4 };

/* ---- Thrift, compact protocol ---- */

enum { T_I32 = 5, T_I64 = 6, T_BINARY = 8, T_LIST = 9, T_STRUCT = 12 };

typedef struct thrift {
    pnb__buf out;
    int last[8]; /* number of the last field of each open struct */
    int depth;
} thrift;

static void put_varint(pnb__buf *b, uint64_t x)
{
    for (; x >= 0x80; x >>= 7)
        pnb__buf_putc(b, (char)(0x80 | (x & 0x7F)));
    pnb__buf_putc(b, (char)x);
}

static void put_zigzag(pnb__buf *b, int64_t x)
{
    put_varint(b, ((uint64_t)x << 1) ^ (uint64_t)(x >> 63));
}

/* Numbers of fields rise by 1 to 15 within a struct here, so the short form always does. */
static void put_field(thrift *t, int number, int type)
{
    pnb__buf_putc(&t->out, (char)((number - t->last[t->depth]) << 4 | type));
    t->last[t->depth] = number;
}

static void put_int(thrift *t, int number, int type, int64_t x)
{
    put_field(t, number, type);
    put_zigzag(&t->out, x);
}

static void put_bytes(thrift *t, const char *text)
{
    put_varint(&t->out, strlen(text));
    pnb__buf_puts(&t->out, text);
}

static void put_text(thrift *t, int number, const char *text)
{
    put_field(t, number, T_BINARY);
    put_bytes(t, text);
}

static void put_list(thrift *t, int number, int type, size_t n)
{
    put_field(t, number, T_LIST);
    if (n < 15) {
        pnb__buf_putc(&t->out, (char)(n << 4 | (unsigned)type));
    } else {
        pnb__buf_putc(&t->out, (char)(0xF0 | type));
        put_varint(&t->out, n);
    }
}

static void begin_struct(thrift *t)
{
    t->last[++t->depth] = 0;
}

static void end_struct(thrift *t)
{
    pnb__buf_putc(&t->out, 0);
    t->depth--;
}

/* ---- names of parquet.thrift ---- */

enum { TYPE_DOUBLE = 5, TYPE_BYTE_ARRAY = 6 };
enum { REQUIRED = 0, OPTIONAL = 1, CONVERTED_UTF8 = 0 };
enum { ENCODING_PLAIN = 0, ENCODING_RLE = 3, DATA_PAGE = 0, UNCOMPRESSED = 0 };

/* Where the pages of a column lie. */
typedef struct chunk {
    uint64_t offset, n_bytes;
} chunk;

typedef struct writer {
    pnb__out_file *f;
    uint64_t position;
    const pnb__parquet_column *columns;
    size_t n_columns, n_rows;
    chunk *chunks;
} writer;

static pnb_status put_out(writer *w, const pnb__buf *b, pnb_error *err)
{
    if (b->failed)
        return pnb__fail_nomem(err, b->size);
    if (b->size > 0 && fwrite(b->data, 1, b->size, w->f->file) != b->size)
        return pnb__fail_errno(err, "cannot write", w->f->path);
    w->position += b->size;
    return PNB_OK;
}

/* ---- pages ---- */

static void put_u32(pnb__buf *b, size_t x)
{
    const unsigned char bytes[4] = {(unsigned char)x, (unsigned char)(x >> 8),
                                    (unsigned char)(x >> 16), (unsigned char)(x >> 24)};
    pnb__buf_append(b, bytes, sizeof bytes);
}

static void put_levels(pnb__buf *b, const char *const *texts, size_t n)
{
    pnb__buf runs = {0};
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && (texts[end] == NULL) == (texts[i] == NULL);)
            end++;
        put_varint(&runs, (uint64_t)(end - i) << 1);
        pnb__buf_putc(&runs, texts[i] != NULL);
    }
    put_u32(b, runs.size);
    pnb__buf_append(b, runs.data, runs.size);
    b->failed |= runs.failed;
    pnb__buf_reset(&runs);
}

static pnb_status put_texts(pnb__buf *b, const pnb__parquet_column *c, size_t first, size_t n,
                            pnb_error *err)
{
    put_levels(b, c->texts + first, n);
    for (size_t i = first; i < first + n; i++) {
        size_t length = c->texts[i] != NULL ? strlen(c->texts[i]) : 0;
        if (c->texts[i] == NULL)
            continue;
        if (!pnb__utf8_valid(c->texts[i], length))
            return pnb__fail(err, PNB_ARG, "row %zu: %s is not valid UTF-8", i, c->name);
        put_u32(b, length);
        pnb__buf_append(b, c->texts[i], length);
        if (b->size > INT32_MAX)
            return pnb__fail(err, PNB_LIMIT, "%s of rows %zu to %zu takes more than 2 GB", c->name,
                             first, first + n - 1);
    }
    return PNB_OK;
}

static void put_numbers(pnb__buf *b, const double *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, &numbers[i], sizeof bits);
        put_u32(b, bits & 0xFFFFFFFFu);
        put_u32(b, bits >> 32);
    }
}

static void put_page_header(thrift *t, size_t n_values, size_t n_bytes)
{
    begin_struct(t);
    put_int(t, 1, T_I32, DATA_PAGE);
    put_int(t, 2, T_I32, (int64_t)n_bytes);
    put_int(t, 3, T_I32, (int64_t)n_bytes);
    put_field(t, 5, T_STRUCT);
    begin_struct(t);
    put_int(t, 1, T_I32, (int64_t)n_values);
    put_int(t, 2, T_I32, ENCODING_PLAIN);
    put_int(t, 3, T_I32, ENCODING_RLE);
    put_int(t, 4, T_I32, ENCODING_RLE);
    end_struct(t);
    end_struct(t);
}

static pnb_status write_page(writer *w, const pnb__parquet_column *c, size_t first, size_t n,
                             pnb_error *err)
{
    pnb__buf page = {0};
    thrift header = {0};
    pnb_status status = PNB_OK;
    if (c->type == PNB__PARQUET_TEXT)
        PNB_TRY(put_texts(&page, c, first, n, err));
    else
        put_numbers(&page, c->numbers + first, n);
    put_page_header(&header, n, page.size);
    PNB_TRY(put_out(w, &header.out, err));
    status = put_out(w, &page, err);
done:
    pnb__buf_reset(&page);
    pnb__buf_reset(&header.out);
    return status;
}

static pnb_status write_column(writer *w, size_t i, pnb_error *err)
{
    pnb_status status = PNB_OK;
    w->chunks[i].offset = w->position;
    for (size_t first = 0; first < w->n_rows && status == PNB_OK; first += PAGE_ROWS)
        status = write_page(w, &w->columns[i], first, PNB_MIN(w->n_rows - first, (size_t)PAGE_ROWS),
                            err);
    w->chunks[i].n_bytes = w->position - w->chunks[i].offset;
    return status;
}

/* ---- footer ---- */

static int type_of(const pnb__parquet_column *c)
{
    return c->type == PNB__PARQUET_TEXT ? TYPE_BYTE_ARRAY : TYPE_DOUBLE;
}

static void put_schema(thrift *t, const writer *w)
{
    put_list(t, 2, T_STRUCT, w->n_columns + 1);
    begin_struct(t);
    put_text(t, 4, "schema");
    put_int(t, 5, T_I32, (int64_t)w->n_columns);
    end_struct(t);
    for (size_t i = 0; i < w->n_columns; i++) {
        const pnb__parquet_column *c = &w->columns[i];
        begin_struct(t);
        put_int(t, 1, T_I32, type_of(c));
        put_int(t, 3, T_I32, c->type == PNB__PARQUET_TEXT ? OPTIONAL : REQUIRED);
        put_text(t, 4, c->name);
        if (c->type == PNB__PARQUET_TEXT)
            put_int(t, 6, T_I32, CONVERTED_UTF8);
        end_struct(t);
    }
}

static void put_chunk(thrift *t, const writer *w, size_t i)
{
    begin_struct(t);
    put_int(t, 2, T_I64, (int64_t)w->chunks[i].offset);
    put_field(t, 3, T_STRUCT);
    begin_struct(t);
    put_int(t, 1, T_I32, type_of(&w->columns[i]));
    put_list(t, 2, T_I32, 2);
    put_zigzag(&t->out, ENCODING_PLAIN);
    put_zigzag(&t->out, ENCODING_RLE);
    put_list(t, 3, T_BINARY, 1);
    put_bytes(t, w->columns[i].name);
    put_int(t, 4, T_I32, UNCOMPRESSED);
    put_int(t, 5, T_I64, (int64_t)w->n_rows);
    put_int(t, 6, T_I64, (int64_t)w->chunks[i].n_bytes);
    put_int(t, 7, T_I64, (int64_t)w->chunks[i].n_bytes);
    put_int(t, 9, T_I64, (int64_t)w->chunks[i].offset);
    end_struct(t);
    end_struct(t);
}

static void put_footer(thrift *t, const writer *w)
{
    begin_struct(t);
    put_int(t, 1, T_I32, 1);
    put_schema(t, w);
    put_int(t, 3, T_I64, (int64_t)w->n_rows);
    put_list(t, 4, T_STRUCT, 1);
    begin_struct(t);
    put_list(t, 1, T_STRUCT, w->n_columns);
    for (size_t i = 0; i < w->n_columns; i++)
        put_chunk(t, w, i);
    put_int(t, 2, T_I64, (int64_t)(w->position - MAGIC_BYTES));
    put_int(t, 3, T_I64, (int64_t)w->n_rows);
    end_struct(t);
    put_text(t, 6, "penumbra");
    end_struct(t);
}

pnb_status pnb__parquet_write(pnb__out_file *f, const pnb__parquet_column *columns,
                              size_t n_columns, size_t n_rows, pnb_error *err)
{
    writer w = {.f = f, .columns = columns, .n_columns = n_columns, .n_rows = n_rows};
    thrift footer = {0};
    pnb__buf edge = {0};
    pnb_status status = PNB_OK;
    if (n_columns == 0)
        return pnb__fail(err, PNB_ARG, "%s: a table without columns", f->path);
    PNB_TRY(PNB_ALLOC_ZERO(w.chunks, n_columns, err));
    pnb__buf_puts(&edge, MAGIC);
    PNB_TRY(put_out(&w, &edge, err));
    for (size_t i = 0; i < n_columns; i++)
        PNB_TRY(write_column(&w, i, err));
    put_footer(&footer, &w);
    put_u32(&footer.out, footer.out.size);
    pnb__buf_puts(&footer.out, MAGIC);
    status = put_out(&w, &footer.out, err);
done:
    pnb__buf_reset(&edge);
    pnb__buf_reset(&footer.out);
    pnb__free(w.chunks);
    return status;
}
