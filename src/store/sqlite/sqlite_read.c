/* What is read of a collection.db.
 *
 * Each call is one transaction, so that it sees one state, whatever a writer does meanwhile. Texts
 * are copied, or live as long as the call that visits them. */
#include <math.h>
#include <string.h>

#include "base/grow.h"
#include "store/sqlite/sqlite_catalog.h"

static pnb_status bind_text(const pnb__sqlite *s, sqlite3_stmt *statement, int at, const char *text,
                            pnb_error *err)
{
    int code = sqlite3_bind_text(statement, at, text, -1, SQLITE_STATIC);
    return code == SQLITE_OK ? PNB_OK : pnb__sqlite_fail(s, code, err);
}

static const char *column(sqlite3_stmt *statement, int at)
{
    return (const char *)sqlite3_column_text(statement, at);
}

/* A text of the row that a statement stands at, as a copy. NULL where it is null. */
static pnb_status copy_column(const pnb__sqlite *s, sqlite3_stmt *statement, int at, char **out,
                              pnb_error *err)
{
    const char *text = column(statement, at);
    *out = NULL;
    if (text == NULL)
        return sqlite3_errcode(s->db) == SQLITE_NOMEM ? pnb__fail_nomem(err, 0) : PNB_OK;
    return pnb__copy_text(out, text, err);
}

pnb_status pnb__sqlite_fact(void *self, const char *name, char **out, pnb_error *err)
{
    const pnb__sqlite *s = self;
    sqlite3_stmt *find = NULL;
    bool more = false;
    pnb_status status;
    *out = NULL;
    PNB_TRY(pnb__sqlite_prepare(s, "SELECT value FROM fact WHERE name = ?", &find, err));
    PNB_TRY(bind_text(s, find, 1, name, err));
    PNB_TRY(pnb__sqlite_step(s, find, &more, err));
    if (more)
        status = copy_column(s, find, 0, out, err);
done:
    sqlite3_finalize(find);
    return status;
}

static pnb_status number_fact(const pnb__sqlite *s, const char *name, int64_t *out, pnb_error *err)
{
    sqlite3_stmt *find = NULL;
    bool more = false;
    pnb_status status;
    PNB_TRY(pnb__sqlite_prepare(s, "SELECT CAST(value AS INTEGER) FROM fact WHERE name = ?", &find,
                                err));
    PNB_TRY(bind_text(s, find, 1, name, err));
    PNB_TRY(pnb__sqlite_step(s, find, &more, err));
    *out = more ? sqlite3_column_int64(find, 0) : 0;
done:
    sqlite3_finalize(find);
    return status;
}

pnb_status pnb__sqlite_generation(void *self, int64_t *out, pnb_error *err)
{
    pnb_status status = pnb__sqlite_check_there(self, err);
    return status == PNB_OK ? number_fact(self, "generation", out, err) : status;
}

pnb_status pnb__sqlite_knows(void *self, const char (*sha256)[65], size_t n, bool *out,
                             pnb_error *err)
{
    pnb__sqlite *s = self;
    sqlite3_stmt *find = NULL;
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < n; i++) {
        PNB_TRY(pnb__sqlite_kept(s, PNB__KNOWS, "SELECT 1 FROM row WHERE sha256 = ?", &find, err));
        PNB_TRY(bind_text(s, find, 1, sha256[i], err));
        PNB_TRY(pnb__sqlite_step(s, find, &out[i], err));
    }
done:
    sqlite3_reset(find);
    return status;
}

/* ---- the state ---- */

static pnb_status read_shards(const pnb__sqlite *s, pnb__catalog_state *out, pnb_error *err)
{
    sqlite3_stmt *list = NULL;
    bool more;
    pnb_status status =
        pnb__sqlite_prepare(s, "SELECT first, n, file FROM shard ORDER BY first", &list, err);
    while (status == PNB_OK) {
        pnb__shard_entry entry = {0};
        PNB_TRY(pnb__sqlite_step(s, list, &more, err));
        if (!more)
            break;
        entry.first = sqlite3_column_int64(list, 0);
        entry.n = (size_t)sqlite3_column_int64(list, 1);
        PNB_TRY(copy_column(s, list, 2, &entry.file, err));
        status = entry.file != NULL && strchr(entry.file, '/') == NULL
                     ? PNB_PUSH(out->shards, out->n_shards, err, entry)
                     : pnb__sqlite_fail(s, SQLITE_CORRUPT, err);
        if (status != PNB_OK)
            pnb__free(entry.file);
    }
done:
    sqlite3_finalize(list);
    return status;
}

static pnb_status read_removed(const pnb__sqlite *s, pnb__catalog_state *out, pnb_error *err)
{
    sqlite3_stmt *list = NULL;
    bool more;
    pnb_status status =
        pnb__sqlite_prepare(s, "SELECT number FROM removed ORDER BY number", &list, err);
    while (status == PNB_OK) {
        PNB_TRY(pnb__sqlite_step(s, list, &more, err));
        if (!more)
            break;
        status = PNB_PUSH(out->removed, out->n_removed, err, sqlite3_column_int64(list, 0));
    }
done:
    sqlite3_finalize(list);
    return status;
}

/* Inside a writing of this connection it is a part of that; else several reads see one state. */
pnb_status pnb__sqlite_state(void *self, pnb__catalog_state *out, pnb_error *err)
{
    const pnb__sqlite *s = self;
    bool is_alone = sqlite3_get_autocommit(s->db) != 0;
    pnb_status status;
    *out = (pnb__catalog_state){0};
    if (is_alone)
        PNB_TRY(pnb__sqlite_run(s, "BEGIN", err));
    PNB_TRY(number_fact(s, "generation", &out->generation, err));
    PNB_TRY(number_fact(s, "next", &out->next, err));
    PNB_TRY(read_shards(s, out, err));
    status = read_removed(s, out, err);
done:
    if (is_alone && sqlite3_get_autocommit(s->db) == 0)
        (void)pnb__sqlite_run(s, "ROLLBACK", NULL); /* nothing was written */
    if (status != PNB_OK)
        pnb__catalog_state_reset(out);
    return status;
}

/* ---- rows ---- */

static bool is_bounded(double low, double high)
{
    return low > -(double)INFINITY || high < (double)INFINITY;
}

static const char *order_of(pnb_store_order order)
{
    switch (order) {
    case PNB_STORE_NEWEST:
        return "number DESC";
    case PNB_STORE_CERTAIN:
        return "uncertainty, number";
    case PNB_STORE_UNCERTAIN:
        return "uncertainty DESC, number";
    default:
        return "number";
    }
}

static void write_numbers_sql(pnb__buf *sql, const pnb__page *page)
{
    const pnb_store_filter *f = page->filter;
    pnb__buf_puts(sql, "SELECT number FROM row WHERE number > ?1");
    if (f != NULL && (f->since > INT64_MIN || f->until < INT64_MAX))
        pnb__buf_puts(sql, " AND time BETWEEN ?2 AND ?3");
    if (f != NULL && is_bounded(f->min_uncertainty, f->max_uncertainty))
        pnb__buf_puts(sql, " AND uncertainty BETWEEN ?4 AND ?5");
    for (size_t i = 0; f != NULL && i < f->n_tags; i++)
        pnb__buf_printf(sql, " AND number IN (SELECT number FROM tag WHERE tag = ?%zu)", 7 + i);
    pnb__buf_printf(sql, " ORDER BY %s LIMIT ?6", order_of(page->order));
}

static pnb_status bind_page(const pnb__sqlite *s, sqlite3_stmt *list, const pnb__page *page,
                            pnb_error *err)
{
    const pnb_store_filter *f = page->filter;
    int64_t limit = page->limit > 0 && page->limit < INT64_MAX ? (int64_t)page->limit : -1;
    pnb_status status = PNB_OK;
    sqlite3_bind_int64(list, 1,
                       page->after); /* a place that the filter has no use for is refused */
    sqlite3_bind_int64(list, 6, limit);
    if (f == NULL)
        return PNB_OK;
    sqlite3_bind_int64(list, 2, f->since);
    sqlite3_bind_int64(list, 3, f->until);
    sqlite3_bind_double(list, 4, f->min_uncertainty);
    sqlite3_bind_double(list, 5, f->max_uncertainty);
    for (size_t i = 0; i < f->n_tags && status == PNB_OK; i++)
        status = bind_text(s, list, 7 + (int)i, f->tags[i], err);
    return status;
}

pnb_status pnb__sqlite_numbers(void *self, const pnb__page *page, pnb__number_fn visit, void *user,
                               pnb_error *err)
{
    const pnb__sqlite *s = self;
    sqlite3_stmt *list = NULL;
    pnb__buf sql = {0};
    bool more;
    pnb_status status;
    if (page->filter != NULL && page->filter->n_tags > 64)
        return pnb__fail(err, PNB_ARG, "%zu tags to filter by; at most 64", page->filter->n_tags);
    PNB_TRY(pnb__sqlite_check_there(s, err));
    write_numbers_sql(&sql, page);
    PNB_TRY(pnb__buf_check(&sql, err));
    PNB_TRY(pnb__sqlite_prepare(s, sql.data, &list, err));
    PNB_TRY(bind_page(s, list, page, err));
    for (;;) {
        PNB_TRY(pnb__sqlite_step(s, list, &more, err));
        if (!more)
            break;
        PNB_TRY(visit(user, sqlite3_column_int64(list, 0), err));
    }
done:
    sqlite3_finalize(list);
    pnb__buf_reset(&sql);
    return status;
}

#define ROW_COLUMNS                                                                                \
    "SELECT number, id, path, caption, extra, sha256, time, added, uncertainty, "                  \
    "(SELECT group_concat(tag, char(10)) FROM (SELECT tag FROM tag WHERE tag.number = row.number " \
    "ORDER BY tag)) FROM row WHERE "

static void read_row(sqlite3_stmt *find, pnb_store_row *row)
{
    const char *sha256 = column(find, 5);
    *row = (pnb_store_row){.number = sqlite3_column_int64(find, 0),
                           .id = column(find, 1),
                           .path = column(find, 2),
                           .text = column(find, 3),
                           .extra = column(find, 4),
                           .time = sqlite3_column_int64(find, 6),
                           .added = sqlite3_column_int64(find, 7),
                           .uncertainty = sqlite3_column_double(find, 8),
                           .tags = column(find, 9)};
    snprintf(row->sha256, sizeof row->sha256, "%s", sha256 != NULL ? sha256 : "");
}

pnb_status pnb__sqlite_rows(void *self, const pnb__keys *keys, pnb__row_fn visit, void *user,
                            pnb_error *err)
{
    const pnb__sqlite *s = self;
    sqlite3_stmt *find = NULL;
    pnb_store_row row;
    bool more;
    pnb_status status;
    PNB_TRY(pnb__sqlite_check_there(s, err));
    PNB_TRY(pnb__sqlite_prepare(
        s, keys->ids != NULL ? ROW_COLUMNS "id = ?" : ROW_COLUMNS "number = ?", &find, err));
    for (size_t i = 0; i < keys->n; i++) {
        if (keys->ids != NULL)
            PNB_TRY(bind_text(s, find, 1, keys->ids[i], err));
        else
            sqlite3_bind_int64(find, 1, keys->numbers[i]);
        PNB_TRY(pnb__sqlite_step(s, find, &more, err));
        if (more) {
            read_row(find, &row);
            PNB_TRY(row.id != NULL ? visit(user, &row, err)
                                   : pnb__sqlite_fail(s, SQLITE_CORRUPT, err));
        }
        sqlite3_reset(find);
    }
done:
    sqlite3_finalize(find);
    return status;
}

/* ---- thumbnails ---- */

static pnb_status has_thumbnails(const pnb__sqlite *s, bool *has, pnb_error *err)
{
    sqlite3_stmt *find = NULL;
    pnb_status status = pnb__sqlite_prepare(
        s, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'thumbnail'", &find, err);
    if (status == PNB_OK)
        status = pnb__sqlite_step(s, find, has, err);
    sqlite3_finalize(find);
    return status;
}

pnb_status pnb__sqlite_thumbnail(void *self, int64_t number, pnb__buf *out, bool *has,
                                 pnb_error *err)
{
    const pnb__sqlite *s = self;
    sqlite3_stmt *find = NULL;
    *has = false;
    pnb_status status = pnb__sqlite_check_there(s, err);
    if (status == PNB_OK)
        status = has_thumbnails(s, has, err);
    if (status != PNB_OK || !*has)
        return status;
    PNB_TRY(pnb__sqlite_prepare(s, "SELECT picture FROM thumbnail WHERE number = ?", &find, err));
    sqlite3_bind_int64(find, 1, number);
    PNB_TRY(pnb__sqlite_step(s, find, has, err));
    if (*has)
        pnb__buf_append(out, sqlite3_column_blob(find, 0), (size_t)sqlite3_column_bytes(find, 0));
done:
    sqlite3_finalize(find);
    return status;
}

/* ---- checks ---- */

/* Calls `problem` with each text a statement gives but "ok". */
static pnb_status report(const pnb__sqlite *s, const char *sql,
                         void (*problem)(void *user, const char *text), void *user, pnb_error *err)
{
    sqlite3_stmt *list = NULL;
    bool more;
    pnb_status status = pnb__sqlite_prepare(s, sql, &list, err);
    while (status == PNB_OK) {
        status = pnb__sqlite_step(s, list, &more, err);
        if (status != PNB_OK || !more)
            break;
        const char *text = column(list, 0);
        if (text != NULL && strcmp(text, "ok") != 0)
            problem(user, text);
    }
    sqlite3_finalize(list);
    return status;
}

pnb_status pnb__sqlite_check(void *self, void (*problem)(void *user, const char *text), void *user,
                             pnb_error *err)
{
    static const char *const checks[] = {
        "PRAGMA integrity_check(10)",
        "SELECT 'row ' || id || ': no shard holds its number ' || number FROM row WHERE number >= "
        "ifnull((SELECT s.first + s.n FROM shard s WHERE s.first <= row.number ORDER BY s.first "
        "DESC LIMIT 1), -1) LIMIT 10",
        "SELECT 'row ' || id || ': its number ' || number || ' was removed' FROM row WHERE number "
        "IN (SELECT number FROM removed) LIMIT 10",
        "SELECT 'shard ' || file || ': ' || k || ' of its ' || n || ' rows are known, ' || r || "
        "' removed' FROM (SELECT file, n, (SELECT count(*) FROM row WHERE number >= first AND "
        "number < first + n) AS k, (SELECT count(*) FROM removed WHERE number >= first AND number "
        "< first + n) AS r FROM shard) WHERE k + r <> n LIMIT 10",
        "SELECT 'shard ' || b.file || ' overlaps the one before' FROM shard a JOIN shard b ON "
        "b.first = (SELECT min(first) FROM shard WHERE first > a.first) WHERE a.first + a.n > "
        "b.first LIMIT 10"};
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < PNB_COUNT(checks) && status == PNB_OK; i++)
        status = report(self, checks[i], problem, user, err);
    return status;
}
