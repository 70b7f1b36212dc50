/* The footer of a Parquet table (apache/parquet-format, parquet.thrift): FileMetaData with the
 * schema as a tree in depth-first order, and the row groups with a chunk for each leaf of it.
 *
 * A leaf's definition level counts the optional fields on its path, so a struct's field is a column
 * like any other; one repeated field makes the column a list. Positions are checked against the
 * file here, pages in parquet_page.c. */
#include "io/tables/parquet/parquet_read.h"

#include <string.h>

#include "base/grow.h"
#include "io/foreign.h"
#include "io/tables/parquet/thrift_read.h"

enum { MAX_FOOTER = 256 << 20, MAX_LEAVES = 20000, MAX_DEPTH = 16, MAGIC_BYTES = 4 };
enum { MAX_GROUP_ROWS = 1 << 26 }; /* the most that pyarrow ever wrote by itself */
enum { REQUIRED = 0, OPTIONAL = 1, REPEATED = 2 };
enum {
    CONVERTED_UTF8 = 0,
    CONVERTED_ENUM = 4,
    CONVERTED_DECIMAL = 5,
    CONVERTED_UINT_8 = 11,
    CONVERTED_UINT_16 = 12,
    CONVERTED_UINT_32 = 13,
    CONVERTED_UINT_64 = 14,
    CONVERTED_JSON = 19,
    CONVERTED_BSON = 20,
    CONVERTED_INTERVAL = 21
};
enum {
    LOGICAL_STRING = 1,
    LOGICAL_ENUM = 4,
    LOGICAL_DECIMAL = 5,
    LOGICAL_DATE = 6,
    LOGICAL_TIME = 7,
    LOGICAL_TIMESTAMP = 8,
    LOGICAL_INTEGER = 10,
    LOGICAL_UNKNOWN = 11, /* nulls alone */
    LOGICAL_JSON = 12,
    LOGICAL_UUID = 14,
    LOGICAL_FLOAT16 = 15
};
enum { NO_TYPE = -1, UUID_BYTES = 16, HALF_BYTES = 2 };

void pnb__parquet_close(pnb__parquet *p)
{
    for (size_t i = 0; i < p->n_leaves; i++)
        pnb__free(p->leaves[i].name);
    for (size_t i = 0; i < p->n_groups; i++)
        pnb__free(p->groups[i].chunks);
    pnb__free(p->leaves);
    pnb__free(p->groups);
    pnb__free(p->where);
    *p = (pnb__parquet){0};
}

size_t pnb__parquet_find(const pnb__parquet *p, const char *name)
{
    for (size_t i = 0; i < p->n_leaves; i++)
        if (strcmp(p->leaves[i].name, name) == 0)
            return i;
    return SIZE_MAX;
}

/* ---- schema ---- */

typedef struct element {
    int type, type_length, repetition, scale;
    int converted, logical; /* what values are, said in the old way and in the new: -1 is unsaid */
    bool is_unsigned;
    const char *name;
    size_t n_name;
    int64_t n_children;
} element;

/* A union of structs: of numbers, that which is there; of an integer, whether it has a sign too. */
static void read_logical(pnb__thrift *t, element *e)
{
    pnb__thrift_field f, in;
    for (int last = 0; pnb__thrift_next(t, &last, &f);) {
        e->logical = f.number;
        if (f.type != PNB__THRIFT_STRUCT) {
            pnb__thrift_skip(t, f.type);
            continue;
        }
        for (int inner = 0; pnb__thrift_next(t, &inner, &in);)
            if (f.number == LOGICAL_DECIMAL && in.number == 1)
                e->scale = (int)pnb__thrift_int(t, in);
            else if (f.number == LOGICAL_INTEGER && in.number == 2)
                e->is_unsigned = pnb__thrift_int(t, in) == 0;
            else
                pnb__thrift_skip(t, in.type);
    }
}

static element read_element(pnb__thrift *t)
{
    element e = {.type = NO_TYPE, .converted = -1, .logical = -1, .name = ""};
    pnb__thrift_field f;
    for (int last = 0; pnb__thrift_next(t, &last, &f);)
        switch (f.number) {
        case 1:
            e.type = (int)pnb__thrift_int(t, f);
            break;
        case 2:
            e.type_length = (int)pnb__thrift_int(t, f);
            break;
        case 3:
            e.repetition = (int)pnb__thrift_int(t, f);
            break;
        case 4:
            e.name = pnb__thrift_bytes(t, f, &e.n_name);
            break;
        case 5:
            e.n_children = pnb__thrift_int(t, f);
            break;
        case 6:
            e.converted = (int)pnb__thrift_int(t, f);
            break;
        case 7:
            e.scale = (int)pnb__thrift_int(t, f);
            break;
        case 10:
            if (f.type == PNB__THRIFT_STRUCT) {
                read_logical(t, &e);
                break;
            }
            pnb__thrift_skip(t, f.type);
            break;
        default:
            pnb__thrift_skip(t, f.type);
        }
    return e;
}

static pnb__parquet_meaning converted_meaning(int converted)
{
    switch (converted) {
    case CONVERTED_UTF8:
    case CONVERTED_ENUM:
    case CONVERTED_JSON:
        return PNB__PARQUET_UTF8;
    case CONVERTED_DECIMAL:
        return PNB__PARQUET_DECIMAL;
    case CONVERTED_UINT_8:
    case CONVERTED_UINT_16:
    case CONVERTED_UINT_32:
    case CONVERTED_UINT_64:
        return PNB__PARQUET_UNSIGNED;
    case CONVERTED_BSON:
    case CONVERTED_INTERVAL:
        return PNB__PARQUET_OTHER;
    default:
        return PNB__PARQUET_BARE;
    }
}

static pnb__parquet_meaning logical_meaning(const element *e)
{
    switch (e->logical) {
    case LOGICAL_STRING:
    case LOGICAL_ENUM:
    case LOGICAL_JSON:
        return PNB__PARQUET_UTF8;
    case LOGICAL_DECIMAL:
        return PNB__PARQUET_DECIMAL;
    case LOGICAL_INTEGER:
        return e->is_unsigned ? PNB__PARQUET_UNSIGNED : PNB__PARQUET_BARE;
    case LOGICAL_UUID:
        return e->type_length == UUID_BYTES ? PNB__PARQUET_UUID : PNB__PARQUET_OTHER;
    case LOGICAL_FLOAT16:
        return e->type_length == HALF_BYTES ? PNB__PARQUET_HALF : PNB__PARQUET_OTHER;
    case LOGICAL_DATE:
    case LOGICAL_TIME:
    case LOGICAL_TIMESTAMP:
    case LOGICAL_UNKNOWN:
        return PNB__PARQUET_BARE;
    default:
        return PNB__PARQUET_OTHER;
    }
}

/* What is said of a type that cannot be so is not believed; nor is it taken for a text then. */
static pnb__parquet_meaning meaning_of(const element *e)
{
    const bool is_integer = e->type == PNB__STORED_INT32 || e->type == PNB__STORED_INT64;
    const bool is_fixed = e->type == PNB__STORED_FIXED;
    const bool is_bytes = e->type == PNB__STORED_BYTE_ARRAY || is_fixed;
    pnb__parquet_meaning m = e->logical >= 0 ? logical_meaning(e) : converted_meaning(e->converted);
    if (e->type == PNB__STORED_INT96)
        return PNB__PARQUET_OTHER; /* a time */
    if (!is_bytes && !is_integer)
        return PNB__PARQUET_BARE;
    if ((m == PNB__PARQUET_UNSIGNED && !is_integer) ||
        ((m == PNB__PARQUET_UUID || m == PNB__PARQUET_HALF) && !is_fixed) ||
        (m == PNB__PARQUET_UTF8 && !is_bytes))
        return is_bytes ? PNB__PARQUET_OTHER : PNB__PARQUET_BARE;
    return m;
}

/* Where a walk of the tree is: the open structs from the root on. */
typedef struct walk {
    int64_t left[MAX_DEPTH]; /* children to come */
    size_t name[MAX_DEPTH];  /* length of the path up to it */
    int level[MAX_DEPTH];
    bool is_list[MAX_DEPTH];
    int depth;
    pnb__buf path;
} walk;

static pnb_status add_leaf(pnb__parquet *p, const walk *w, const element *e, int level,
                           bool is_list, pnb_error *err)
{
    pnb__parquet_leaf leaf = {
        .type = e->type,
        .type_length = e->type_length,
        .max_level = level,
        .meaning = meaning_of(e),
        .scale = e->scale,
        .is_bytes = e->type == PNB__STORED_BYTE_ARRAY,
        .is_list = is_list,
        .name = pnb__strndup(w->path.data != NULL ? w->path.data : "", w->path.size)};
    if (leaf.name == NULL)
        return pnb__fail_nomem(err, w->path.size);
    if (p->n_leaves == MAX_LEAVES) {
        pnb__free(leaf.name);
        return pnb__fail(err, PNB_LIMIT, "%s: more than %d columns", p->where, (int)MAX_LEAVES);
    }
    pnb_status status = PNB_PUSH(p->leaves, p->n_leaves, err, leaf);
    if (status != PNB_OK)
        pnb__free(leaf.name);
    return status;
}

/* One element of the tree below the root. */
static pnb_status take_element(pnb__parquet *p, walk *w, const element *e, pnb_error *err)
{
    int above = w->depth;
    int level = w->level[above] + (e->repetition != REQUIRED);
    bool is_list = w->is_list[above] || e->repetition == REPEATED;
    w->path.size = w->name[above];
    if (w->path.size > 0)
        pnb__buf_putc(&w->path, '.');
    pnb__buf_append(&w->path, e->name, e->n_name);
    if (w->path.failed)
        return pnb__fail_nomem(err, e->n_name);
    w->left[above]--;
    if (e->n_children > 0) {
        if (w->depth + 1 == MAX_DEPTH)
            return pnb__fail(err, PNB_LIMIT, "%s: structs within structs, more than %d deep",
                             p->where, (int)MAX_DEPTH);
        w->depth++;
        w->left[w->depth] = e->n_children;
        w->name[w->depth] = w->path.size;
        w->level[w->depth] = level;
        w->is_list[w->depth] = is_list;
        return PNB_OK;
    }
    return add_leaf(p, w, e, level, is_list, err);
}

static pnb_status read_schema(pnb__parquet *p, pnb__thrift *t, pnb__thrift_field f, pnb_error *err)
{
    int type = 0;
    size_t n = pnb__thrift_list(t, f, &type);
    walk w = {.depth = 0};
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < n && status == PNB_OK && !t->failed; i++) {
        element e = read_element(t);
        while (i > 0 && w.depth > 0 && w.left[w.depth] <= 0)
            w.depth--;
        if (i == 0)
            w.left[0] = e.n_children;
        else
            status = take_element(p, &w, &e, err);
    }
    pnb__buf_reset(&w.path);
    return status;
}

/* ---- row groups ---- */

typedef struct meta {
    int64_t data, dictionary, packed, values;
    int codec;
    bool has_dictionary;
} meta;

static meta read_meta(pnb__thrift *t)
{
    meta m = {0};
    pnb__thrift_field f;
    for (int last = 0; pnb__thrift_next(t, &last, &f);)
        switch (f.number) {
        case 4:
            m.codec = (int)pnb__thrift_int(t, f);
            break;
        case 5:
            m.values = pnb__thrift_int(t, f);
            break;
        case 7:
            m.packed = pnb__thrift_int(t, f);
            break;
        case 9:
            m.data = pnb__thrift_int(t, f);
            break;
        case 11:
            m.dictionary = pnb__thrift_int(t, f);
            m.has_dictionary = true;
            break;
        default:
            pnb__thrift_skip(t, f.type);
        }
    return m;
}

/* A chunk begins with its dictionary where it has one; some writers say 0 for none. */
static pnb__parquet_chunk read_chunk(const pnb__parquet *p, pnb__thrift *t, bool *is_sound)
{
    pnb__parquet_chunk c = {.codec = -1};
    meta m = {0};
    bool has_meta = false;
    pnb__thrift_field f;
    for (int last = 0; pnb__thrift_next(t, &last, &f);)
        if (f.number == 3 && f.type == PNB__THRIFT_STRUCT) {
            m = read_meta(t);
            has_meta = true;
        } else {
            size_t n = 0;
            if (f.number == 1)
                (void)pnb__thrift_bytes(t, f, &n);
            else
                pnb__thrift_skip(t, f.type);
            c.is_elsewhere = c.is_elsewhere || n > 0;
            c.is_encrypted = c.is_encrypted || f.number == 8;
        }
    int64_t begin =
        m.has_dictionary && m.dictionary > 0 && m.dictionary < m.data ? m.dictionary : m.data;
    c.is_encrypted = c.is_encrypted || !has_meta;
    *is_sound =
        c.is_encrypted || c.is_elsewhere ||
        (begin >= MAGIC_BYTES && m.packed >= 0 && m.values >= 0 && (uint64_t)begin <= p->n_bytes &&
         (uint64_t)m.packed <= p->n_bytes - (uint64_t)begin);
    c.begin = (uint64_t)begin;
    c.end = (uint64_t)begin + (uint64_t)m.packed;
    c.n_values = (uint64_t)m.values;
    c.codec = m.codec;
    return c;
}

static pnb_status read_chunks(pnb__parquet *p, pnb__thrift *t, pnb__thrift_field f,
                              pnb__parquet_group *g, pnb_error *err)
{
    int type = 0;
    size_t n = pnb__thrift_list(t, f, &type);
    if (g->chunks != NULL || n != p->n_leaves)
        return pnb__fail(err, PNB_FORMAT, "%s: a row group of %zu columns, the table has %zu",
                         p->where, n, p->n_leaves);
    if (PNB_ALLOC_ZERO(g->chunks, n + 1, err) != PNB_OK)
        return PNB_NOMEM;
    for (size_t i = 0; i < n && !t->failed; i++) {
        bool is_sound = true;
        g->chunks[i] = read_chunk(p, t, &is_sound);
        if (!is_sound && !t->failed)
            return pnb__fail(err, PNB_FORMAT, "%s: column %s lies beyond the end of the file",
                             p->where, p->leaves[i].name);
    }
    return PNB_OK;
}

static pnb_status read_group(pnb__parquet *p, pnb__thrift *t, pnb_error *err)
{
    pnb__parquet_group g = {.first_row = p->n_rows};
    int64_t n_rows = 0;
    pnb_status status = PNB_OK;
    pnb__thrift_field f;
    for (int last = 0; status == PNB_OK && pnb__thrift_next(t, &last, &f);)
        if (f.number == 1)
            status = read_chunks(p, t, f, &g, err);
        else if (f.number == 3)
            n_rows = pnb__thrift_int(t, f);
        else
            pnb__thrift_skip(t, f.type);
    if (status == PNB_OK && !t->failed &&
        (g.chunks == NULL || n_rows < 0 || (uint64_t)n_rows > SIZE_MAX / 2 - p->n_rows))
        status = pnb__fail(err, PNB_FORMAT, "%s: a row group without columns, or of %lld rows",
                           p->where, (long long)n_rows);
    if (status == PNB_OK && !t->failed && n_rows > MAX_GROUP_ROWS)
        status = pnb__fail(err, PNB_LIMIT, "%s: a row group of %lld rows, at most %d are read",
                           p->where, (long long)n_rows, (int)MAX_GROUP_ROWS);
    g.n_rows = (size_t)n_rows;
    if (status == PNB_OK && !t->failed)
        status = PNB_PUSH(p->groups, p->n_groups, err, g);
    if (status != PNB_OK || t->failed)
        pnb__free(g.chunks);
    else
        p->n_rows += g.n_rows;
    return status;
}

static pnb_status read_groups(pnb__parquet *p, pnb__thrift *t, pnb__thrift_field f, pnb_error *err)
{
    int type = 0;
    size_t n = pnb__thrift_list(t, f, &type);
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < n && status == PNB_OK && !t->failed; i++)
        status = read_group(p, t, err);
    return status;
}

/* ---- the file ---- */

static pnb_status read_footer(pnb__parquet *p, pnb__thrift *t, pnb_error *err)
{
    pnb_status status = PNB_OK;
    int64_t n_rows = -1;
    pnb__thrift_field f;
    for (int last = 0; status == PNB_OK && pnb__thrift_next(t, &last, &f);)
        if (f.number == 2)
            status = p->n_leaves == 0 ? read_schema(p, t, f, err)
                                      : pnb__fail(err, PNB_FORMAT, "%s: two schemas", p->where);
        else if (f.number == 3)
            n_rows = pnb__thrift_int(t, f);
        else if (f.number == 4)
            status = read_groups(p, t, f, err);
        else
            pnb__thrift_skip(t, f.type);
    if (status == PNB_OK && (t->failed || (uint64_t)n_rows != p->n_rows))
        status = pnb__fail(err, PNB_FORMAT, "%s: the footer of the table is damaged", p->where);
    return status;
}

pnb_status pnb__parquet_open(pnb__parquet *p, const void *bytes, size_t n, const char *where,
                             pnb_error *err)
{
    const unsigned char *b = bytes;
    *p = (pnb__parquet){.bytes = b, .n_bytes = n, .where = pnb__strdup(where)};
    pnb_status status = p->where != NULL ? PNB_OK : pnb__fail_nomem(err, strlen(where));
    size_t tail = 2 * MAGIC_BYTES, size = 0;
    if (status == PNB_OK)
        status = pnb__refuse_stand_in(where, bytes, n, err);
    if (status == PNB_OK && n >= MAGIC_BYTES && memcmp(b, "PARE", MAGIC_BYTES) == 0)
        status = pnb__fail(err, PNB_UNSUPPORTED, "%s: an encrypted Parquet table", where);
    if (status == PNB_OK && (n < tail + MAGIC_BYTES || memcmp(b, "PAR1", MAGIC_BYTES) != 0 ||
                             memcmp(b + n - MAGIC_BYTES, "PAR1", MAGIC_BYTES) != 0))
        status = pnb__fail(err, PNB_FORMAT,
                           "%s: is no Parquet table, which begins and ends with PAR1", where);
    for (int i = 3; status == PNB_OK && i >= 0; i--)
        size = size << 8 | b[n - tail + (size_t)i];
    if (status == PNB_OK && size > n - tail - MAGIC_BYTES)
        status = pnb__fail(err, PNB_FORMAT, "%s: a footer of %zu bytes in a file of %zu", where,
                           size, n);
    if (status == PNB_OK && size > MAX_FOOTER)
        status = pnb__fail(err, PNB_LIMIT, "%s: a footer of %zu bytes, at most %d are read", where,
                           size, (int)MAX_FOOTER);
    if (status == PNB_OK) {
        pnb__thrift t = {b + n - tail - size, b + n - tail, false};
        status = read_footer(p, &t, err);
    }
    if (status != PNB_OK)
        pnb__parquet_close(p);
    return status;
}
