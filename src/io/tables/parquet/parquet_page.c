/* Pages of a Parquet column: a header, perhaps a dictionary, levels, values.
 *
 * A page that is packed is unpacked into memory of its own; what it claims to unfold to is bounded
 * first. Values of a dictionary page are looked up by index, those of PLAIN pages are walked; both
 * are handed out as they lie, so bytes are not copied. parquet_plain.c makes the others PLAIN.
 * Levels and indices are runs of the RLE hybrid: `count << 1, value` repeats one, `groups << 1 | 1`
 * has groups of eight packed bits. */
#include "io/tables/parquet/parquet_read.h"

#include <string.h>

#include "base/grow.h"
#include "io/tables/parquet/parquet_codec.h"
#include "io/tables/parquet/parquet_plain.h"
#include "io/tables/parquet/rle_runs.h"
#include "io/tables/parquet/thrift_read.h"

enum { DATA_PAGE = 0, DICTIONARY_PAGE = 2, DATA_PAGE_V2 = 3 };
enum { PLAIN = 0, PLAIN_DICTIONARY = 2, RLE = 3, RLE_DICTIONARY = 8 };

/* ---- headers ---- */

typedef struct header {
    int type, encoding, level_encoding;
    int64_t n_values, n_unpacked, n_packed, n_levels, n_repetitions;
    bool is_plain; /* of version 2: values are not packed whatever the codec */
} header;

static void read_data_header(pnb__thrift *t, header *h)
{
    pnb__thrift_field f;
    for (int last = 0; pnb__thrift_next(t, &last, &f);)
        if (f.number == 1)
            h->n_values = pnb__thrift_int(t, f);
        else if (f.number == 2)
            h->encoding = (int)pnb__thrift_int(t, f);
        else if (f.number == 3)
            h->level_encoding = (int)pnb__thrift_int(t, f);
        else
            pnb__thrift_skip(t, f.type);
}

static void read_data_header_v2(pnb__thrift *t, header *h)
{
    pnb__thrift_field f;
    for (int last = 0; pnb__thrift_next(t, &last, &f);)
        if (f.number == 1)
            h->n_values = pnb__thrift_int(t, f);
        else if (f.number == 4)
            h->encoding = (int)pnb__thrift_int(t, f);
        else if (f.number == 5)
            h->n_levels = pnb__thrift_int(t, f);
        else if (f.number == 6)
            h->n_repetitions = pnb__thrift_int(t, f);
        else if (f.number == 7)
            h->is_plain = pnb__thrift_int(t, f) == 0;
        else
            pnb__thrift_skip(t, f.type);
}

/* *at moves behind the header. False: there is none. */
static bool read_header(const unsigned char **at, const unsigned char *end, header *h)
{
    pnb__thrift t = {*at, end, false};
    pnb__thrift_field f;
    *h = (header){.type = -1, .level_encoding = RLE};
    for (int last = 0; pnb__thrift_next(&t, &last, &f);)
        if (f.number == 1)
            h->type = (int)pnb__thrift_int(&t, f);
        else if (f.number == 2)
            h->n_unpacked = pnb__thrift_int(&t, f);
        else if (f.number == 3)
            h->n_packed = pnb__thrift_int(&t, f);
        else if ((f.number == 5 || f.number == 7) && f.type == PNB__THRIFT_STRUCT)
            read_data_header(&t, h); /* a dictionary's header begins in the same way */
        else if (f.number == 8 && f.type == PNB__THRIFT_STRUCT)
            read_data_header_v2(&t, h);
        else
            pnb__thrift_skip(&t, f.type);
    *at = t.at;
    return !t.failed && h->n_packed >= 0 && h->n_packed <= end - t.at && h->n_unpacked >= 0 &&
           h->n_values >= 0 && h->n_values <= INT32_MAX;
}

/* ---- columns ---- */

/* Bytes of a page, unpacked where they were packed. */
typedef struct body {
    const unsigned char *at, *end;
    unsigned char *own;
    unsigned char *made; /* values that were not PLAIN */
    size_t n_made;
} body;

/* What a read of a column needs beside the page at hand. */
typedef struct column {
    const pnb__parquet *p;
    const pnb__parquet_leaf *leaf;
    const pnb__parquet_chunk *chunk;
    body dictionary;
    const unsigned char **entry; /* of the dictionary: where each begins */
    size_t n_entries;
} column;

static pnb_status fail_column(const column *c, pnb_status status, pnb_error *err, const char *what)
{
    return pnb__fail(err, status, "%s: column %s: %s", c->p->where, c->leaf->name, what);
}

static void free_body(body *b)
{
    pnb__free(b->own);
    pnb__free(b->made);
}

/* `n_plain` bytes in front are not packed: the levels of version 2. */
static pnb_status open_body(const column *c, const header *h, const unsigned char *at,
                            size_t n_plain, body *out, pnb_error *err)
{
    size_t n = (size_t)h->n_packed, n_to = (size_t)h->n_unpacked;
    char text[160];
    const char *missing = NULL;
    *out = (body){.at = at, .end = at + n};
    if (c->chunk->codec == PNB__PARQUET_UNCOMPRESSED || h->is_plain)
        return PNB_OK;
    if (h->n_unpacked > PNB__PARQUET_MOST_PAGE) {
        snprintf(text, sizeof text, "a page of %lld bytes, at most %d are read",
                 (long long)h->n_unpacked, (int)PNB__PARQUET_MOST_PAGE);
        return fail_column(c, PNB_LIMIT, err, text);
    }
    if (n_plain > n || n_plain > n_to)
        return fail_column(c, PNB_FORMAT, err, "a page is shorter than its levels");
    out->own = pnb__alloc(n_to + 1);
    if (out->own == NULL)
        return pnb__fail_nomem(err, n_to);
    memcpy(out->own, at, n_plain);
    bool ok = n == n_plain ? n_to == n_plain
                           : pnb__parquet_unpack(c->chunk->codec, at + n_plain, n - n_plain,
                                                 out->own + n_plain, n_to - n_plain, &missing);
    out->at = out->own;
    out->end = out->own + n_to;
    if (ok)
        return PNB_OK;
    pnb__free(out->own);
    *out = (body){0};
    if (missing == NULL)
        return fail_column(c, PNB_FORMAT, err, "a page cannot be unpacked: it is damaged");
    snprintf(
        text, sizeof text, "is packed by %s, which %s%s", pnb__parquet_codec_name(c->chunk->codec),
        missing[0] != '\0' ? "this program was built without: install " : "is not read", missing);
    return fail_column(c, PNB_UNSUPPORTED, err, text);
}

/* ---- values ---- */

static pnb_status read_dictionary(column *c, const header *h, const unsigned char *at,
                                  pnb_error *err)
{
    if (c->entry != NULL)
        return fail_column(c, PNB_FORMAT, err, "has two dictionaries");
    if (h->encoding != PLAIN && h->encoding != PLAIN_DICTIONARY)
        return fail_column(c, PNB_UNSUPPORTED, err, "its dictionary is not PLAIN");
    pnb_status status = open_body(c, h, at, 0, &c->dictionary, err);
    const unsigned char *value = c->dictionary.at;
    size_t n = (size_t)h->n_values, least = PNB_MAX(pnb__parquet_value_bytes(c->leaf), (size_t)1);
    if (status == PNB_OK && n > (size_t)(c->dictionary.end - value) / least)
        return fail_column(c, PNB_FORMAT, err, "a dictionary of more values than it has room for");
    if (status == PNB_OK)
        status = PNB_ALLOC(c->entry, n + 1, err);
    for (size_t i = 0; i < n && status == PNB_OK; i++) {
        pnb__parquet_value v;
        c->entry[i] = value;
        if (c->leaf->type == PNB__STORED_BOOLEAN ||
            !pnb__parquet_take_plain(c->leaf, &value, c->dictionary.end, &v))
            status = fail_column(c, PNB_FORMAT, err, "its dictionary ends early");
    }
    c->n_entries = status == PNB_OK ? n : 0;
    return status;
}

/* Values of a data page, one after the other. */
typedef struct page {
    pnb__runs levels, values; /* values: indices, or flags as runs */
    const unsigned char *at, *end;
    unsigned bit; /* of a PLAIN flag */
    bool is_indexed, is_runs;
} page;

static bool next_value(const column *c, page *p, pnb__parquet_value *v)
{
    uint32_t index = 0;
    if (p->is_indexed) {
        if (!pnb__runs_next(&p->values, &index) || index >= c->n_entries)
            return false;
        const unsigned char *at = c->entry[index];
        return pnb__parquet_take_plain(c->leaf, &at, c->dictionary.end, v);
    }
    if (c->leaf->type != PNB__STORED_BOOLEAN)
        return pnb__parquet_take_plain(c->leaf, &p->at, p->end, v);
    *v = (pnb__parquet_value){.kind = PNB__PARQUET_FLAG};
    if (p->is_runs) {
        bool ok = pnb__runs_next(&p->values, &index);
        v->integer = index != 0;
        return ok;
    }
    if (p->at == p->end)
        return false;
    v->integer = *p->at >> p->bit & 1;
    p->bit = (p->bit + 1) % 8;
    p->at += p->bit == 0;
    return true;
}

/* Bytes behind their own length of four bytes. */
static bool take_sized(const unsigned char **at, const unsigned char *end, pnb__runs *r)
{
    if (end - *at < 4)
        return false;
    uint64_t n = pnb__parquet_little(*at, 4);
    if (n > (uint64_t)(end - *at - 4))
        return false;
    r->at = *at + 4;
    r->end = r->at + n;
    *at = r->end;
    return true;
}

static unsigned bits_of(unsigned most)
{
    unsigned n = 0;
    for (; most > 0; most >>= 1)
        n++;
    return n;
}

/* Values from p->at on are PLAIN in memory of the body's from here on. */
static pnb_status make_plain(const column *c, const header *h, body *b, page *p, pnb_error *err)
{
    const pnb__parquet_coded from = {c->leaf, h->encoding, p->at, p->end, (size_t)h->n_values};
    const char *name = pnb__parquet_encoding_name(h->encoding);
    char text[100];
    pnb_status status = pnb__parquet_make_plain(&from, &b->made, &b->n_made);
    p->at = b->made;
    p->end = b->made != NULL ? b->made + b->n_made : NULL;
    switch (status) {
    case PNB_OK:
        return PNB_OK;
    case PNB_UNSUPPORTED:
        snprintf(text, sizeof text, "its encoding, %s, is not read of such a column", name);
        break;
    case PNB_LIMIT:
        snprintf(text, sizeof text, "a page of more than %d bytes by %s",
                 (int)PNB__PARQUET_MOST_PAGE, name);
        break;
    case PNB_FORMAT:
        snprintf(text, sizeof text, "a page by %s is damaged", name);
        break;
    default:
        return pnb__fail_nomem(err, b->n_made);
    }
    return fail_column(c, status, err, text);
}

/* Finds levels and values in a page's bytes. */
static pnb_status open_page(const column *c, const header *h, body *b, page *p, pnb_error *err)
{
    const unsigned char *at = b->at;
    bool ok = true;
    *p = (page){.end = b->end, .levels.width = bits_of((unsigned)c->leaf->max_level)};
    if (h->type == DATA_PAGE_V2) {
        ok = h->n_levels >= 0 && h->n_repetitions == 0 && h->n_levels <= b->end - at;
        p->levels.at = at;
        at = ok ? at + h->n_levels : at;
        p->levels.end = at;
    } else if (p->levels.width > 0) {
        if (h->level_encoding != RLE)
            return fail_column(c, PNB_UNSUPPORTED, err, "its levels are not RLE");
        ok = take_sized(&at, b->end, &p->levels);
    }
    p->is_indexed = h->encoding == PLAIN_DICTIONARY || h->encoding == RLE_DICTIONARY;
    p->is_runs = h->encoding == RLE && c->leaf->type == PNB__STORED_BOOLEAN;
    if (ok && p->is_indexed) {
        ok = c->entry != NULL && (at == b->end || *at <= 32);
        p->values.width = ok && at < b->end ? *at++ : 0;
        p->values.at = at;
        p->values.end = b->end;
    } else if (ok && p->is_runs) {
        p->values.width = 1;
        ok = take_sized(&at, b->end, &p->values);
    }
    if (!ok)
        return fail_column(c, PNB_FORMAT, err, "a page is damaged");
    p->at = at;
    if (p->is_indexed || p->is_runs || h->encoding == PLAIN)
        return PNB_OK;
    return make_plain(c, h, b, p, err);
}

/* The page's values, as rows from `first` on, to fn. */
static pnb_status walk_values(const column *c, const header *h, body *b,
                              const pnb__parquet_visit *to, size_t first, pnb_error *err)
{
    page p;
    pnb_status status = open_page(c, h, b, &p, err);
    for (size_t i = 0; i < (size_t)h->n_values && status == PNB_OK; i++) {
        pnb__parquet_value v = {.kind = PNB__PARQUET_NULL};
        uint32_t level = 0;
        bool ok = pnb__runs_next(&p.levels, &level);
        if (ok && level == (uint32_t)c->leaf->max_level)
            ok = next_value(c, &p, &v);
        status = ok ? to->fn(to->user, first + i, &v, err)
                    : fail_column(c, PNB_FORMAT, err, "a page has fewer values than it says");
    }
    return status;
}

static pnb_status open_data(const column *c, const header *h, const unsigned char *at, body *b,
                            pnb_error *err)
{
    size_t n_plain = h->type == DATA_PAGE_V2 ? (size_t)PNB_MAX(h->n_levels, 0) : 0;
    return open_body(c, h, at, n_plain, b, err);
}

/* ---- columns ---- */

static pnb_status check_column(const column *c, pnb_error *err)
{
    if (c->chunk->is_encrypted)
        return fail_column(c, PNB_UNSUPPORTED, err, "is encrypted");
    if (c->chunk->is_elsewhere)
        return fail_column(c, PNB_UNSUPPORTED, err, "lies in another file");
    if (c->leaf->is_list)
        return fail_column(c, PNB_UNSUPPORTED, err, "is a list, which is not read");
    if (c->leaf->type < PNB__STORED_BOOLEAN || c->leaf->type > PNB__STORED_FIXED)
        return fail_column(c, PNB_UNSUPPORTED, err, "is of an unknown type");
    return PNB_OK;
}

static void reset_column(column *c)
{
    free_body(&c->dictionary);
    pnb__free(c->entry);
}

/* Told of each data page, with the row it begins at; `read` is whether it wants the values. */
typedef pnb_status (*page_fn)(void *user, const column *c, const header *h,
                              const unsigned char *begin, const unsigned char *at, size_t row,
                              pnb_error *err);

/* The pages of a chunk in order; its dictionary is read where `reads` is set. */
static pnb_status walk_pages(column *c, size_t n_rows, bool reads, page_fn fn, void *user,
                             pnb_error *err)
{
    pnb_status status = check_column(c, err);
    if (status != PNB_OK)
        return status; /* where the pages of such a one lie was not checked */
    const unsigned char *at = c->p->bytes + c->chunk->begin, *end = c->p->bytes + c->chunk->end;
    size_t row = 0;
    while (status == PNB_OK && row < n_rows) {
        header h;
        const unsigned char *begin = at;
        if (at == end || !read_header(&at, end, &h))
            return fail_column(c, PNB_FORMAT, err, "ends before its rows do");
        if (h.type == DICTIONARY_PAGE && reads)
            status = read_dictionary(c, &h, at, err);
        if (h.type == DATA_PAGE || h.type == DATA_PAGE_V2) {
            if ((uint64_t)h.n_values > n_rows - row)
                return fail_column(c, PNB_FORMAT, err, "has more values than rows");
            status = fn(user, c, &h, begin, at, row, err);
            row += (size_t)h.n_values;
        }
        at += h.n_packed;
    }
    return status;
}

static pnb_status visit_page(void *user, const column *c, const header *h,
                             const unsigned char *begin, const unsigned char *at, size_t row,
                             pnb_error *err)
{
    body b = {0};
    (void)begin;
    pnb_status status = open_data(c, h, at, &b, err);
    if (status == PNB_OK)
        status = walk_values(c, h, &b, user, row, err);
    free_body(&b);
    return status;
}

pnb_status pnb__parquet_read(const pnb__parquet *p, size_t group, size_t leaf, pnb__parquet_fn fn,
                             void *user, pnb_error *err)
{
    const pnb__parquet_group *g = &p->groups[group];
    column c = {.p = p, .leaf = &p->leaves[leaf], .chunk = &g->chunks[leaf]};
    pnb__parquet_visit v = {fn, user};
    pnb_status status = walk_pages(&c, g->n_rows, true, visit_page, &v, err);
    reset_column(&c);
    return status;
}

/* ---- single rows ---- */

typedef struct place_list {
    pnb__parquet_place *items;
    size_t n, group, first_row;
} place_list;

static pnb_status note_page(void *user, const column *c, const header *h,
                            const unsigned char *begin, const unsigned char *at, size_t row,
                            pnb_error *err)
{
    place_list *l = user;
    (void)at;
    const pnb__parquet_place place = {(uint64_t)(begin - c->p->bytes), l->group, l->first_row + row,
                                      (size_t)h->n_values};
    return h->n_values > 0 ? PNB_PUSH(l->items, l->n, err, place) : PNB_OK;
}

pnb_status pnb__parquet_places(const pnb__parquet *p, size_t leaf, pnb__parquet_place **out,
                               size_t *n, pnb_error *err)
{
    place_list l = {0};
    pnb_status status = PNB_OK;
    for (size_t g = 0; g < p->n_groups && status == PNB_OK; g++) {
        column c = {.p = p, .leaf = &p->leaves[leaf], .chunk = &p->groups[g].chunks[leaf]};
        l.group = g;
        l.first_row = p->groups[g].first_row;
        status = walk_pages(&c, p->groups[g].n_rows, false, note_page, &l, err);
        reset_column(&c);
    }
    if (status != PNB_OK) {
        pnb__free(l.items);
        l = (place_list){0};
    }
    *out = l.items;
    *n = l.n;
    return status;
}

static pnb_status note_cell(void *user, size_t row, const pnb__parquet_value *v, pnb_error *err)
{
    pnb__parquet_page *to = user;
    (void)err;
    to->cell[row].bytes = v->kind == PNB__PARQUET_BYTES ? v->bytes : NULL;
    to->cell[row].n = v->n_bytes;
    return PNB_OK;
}

/* The dictionary of a chunk, where its first page is one. */
static pnb_status open_dictionary(column *c, pnb_error *err)
{
    const unsigned char *at = c->p->bytes + c->chunk->begin;
    header h;
    if (!read_header(&at, c->p->bytes + c->chunk->end, &h) || h.type != DICTIONARY_PAGE)
        return PNB_OK;
    return read_dictionary(c, &h, at, err);
}

pnb_status pnb__parquet_page_open(pnb__parquet_page *out, const pnb__parquet *p, size_t leaf,
                                  const pnb__parquet_place *place, pnb_error *err)
{
    column c = {.p = p, .leaf = &p->leaves[leaf], .chunk = &p->groups[place->group].chunks[leaf]};
    const unsigned char *at = p->bytes + place->offset;
    pnb__parquet_page to = {.n_rows = place->n_rows};
    pnb__parquet_visit each = {note_cell, &to};
    body b = {0};
    header h;
    if (!read_header(&at, p->bytes + c.chunk->end, &h) || (size_t)h.n_values != place->n_rows)
        return fail_column(&c, PNB_FORMAT, err, "is not as it was when the table was opened");
    pnb_status status;
    PNB_TRY(open_dictionary(&c, err));
    PNB_TRY(open_data(&c, &h, at, &b, err));
    PNB_TRY(PNB_ALLOC(to.cell, to.n_rows + 1, err));
    PNB_TRY(walk_values(&c, &h, &b, &each, 0, err));
    to.own[0] = b.own;
    to.own[1] = c.dictionary.own;
    to.own[2] = b.made;
    to.n_own = to.n_rows * sizeof *to.cell + (b.own != NULL ? (size_t)(b.end - b.at) : 0) +
               b.n_made + (to.own[1] != NULL ? (size_t)(c.dictionary.end - c.dictionary.at) : 0);
    *out = to;
    b.own = b.made = c.dictionary.own = NULL;
    to.cell = NULL;
done:
    pnb__free(to.cell);
    free_body(&b);
    reset_column(&c);
    return status;
}

void pnb__parquet_page_close(pnb__parquet_page *p)
{
    pnb__free(p->cell);
    for (size_t i = 0; i < PNB_COUNT(p->own); i++)
        pnb__free(p->own[i]);
    *p = (pnb__parquet_page){0};
}
