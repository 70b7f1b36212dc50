/* The metadata of a collection in an SQLite file: opening, and what writes.
 *
 * The file is in WAL mode: readers see the state their statement began with while a writer adds,
 * and a transaction is on the disk when commit returns (synchronous = FULL). Tables are in
 * `schema`; anyone may read them with sqlite3(1), and docs/collections.md says what they mean. What
 * reads is in sqlite_read.c. */
#include "store/sqlite/sqlite_catalog.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_NAME "collection.db"
#define APPLICATION_ID "1347305010" /* "PNB2" */
#define VERSION "1"
enum { WAIT_MS = 10000 };

static const char schema[] =
    "CREATE TABLE fact(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE shard(first INTEGER PRIMARY KEY, n INTEGER NOT NULL, file TEXT NOT NULL);"
    "CREATE TABLE row(number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,"
    " sha256 TEXT NOT NULL UNIQUE, path TEXT, caption TEXT, extra TEXT, time INTEGER NOT NULL,"
    " added INTEGER NOT NULL, uncertainty REAL NOT NULL);"
    "CREATE INDEX row_time ON row(time);"
    "CREATE INDEX row_uncertainty ON row(uncertainty);"
    "CREATE TABLE tag(tag TEXT NOT NULL, number INTEGER NOT NULL, PRIMARY KEY(tag, number))"
    " WITHOUT ROWID;"
    "CREATE INDEX tag_number ON tag(number);"
    "CREATE TABLE removed(number INTEGER PRIMARY KEY);"
    "INSERT INTO fact VALUES('generation', '0'), ('next', '1');";

/* Came later: collections from before get it with their first writing. */
static const char thumbnail_table[] =
    "CREATE TABLE IF NOT EXISTS thumbnail(number INTEGER PRIMARY KEY, picture BLOB NOT NULL)";

/* ---- statements ---- */

pnb_status pnb__sqlite_fail(const pnb__sqlite *s, int code, pnb_error *err)
{
    const char *why = s->db != NULL ? sqlite3_errmsg(s->db) : sqlite3_errstr(code);
    switch (code & 0xff) {
    case SQLITE_NOMEM:
        return pnb__fail_nomem(err, 0);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return pnb__fail(err, PNB_BUSY, "%s: another program holds it (%s)", s->path, why);
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
    case SQLITE_ERROR: /* our statements are right: a table of theirs is missing */
        return pnb__fail(err, PNB_FORMAT,
                         "%s is damaged or no collection (%s): put a copy of it back; the "
                         "embeddings beside it in shards/ are sets that can be added to a new "
                         "collection",
                         s->path, why);
    case SQLITE_FULL:
        return pnb__fail(err, PNB_IO, "cannot write %s: No space left on device", s->path);
    default:
        return pnb__fail(err, PNB_IO, "%s: %s", s->path, why);
    }
}

pnb_status pnb__sqlite_run(const pnb__sqlite *s, const char *sql, pnb_error *err)
{
    int code = sqlite3_exec(s->db, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? PNB_OK : pnb__sqlite_fail(s, code, err);
}

pnb_status pnb__sqlite_prepare(const pnb__sqlite *s, const char *sql, sqlite3_stmt **out,
                               pnb_error *err)
{
    int code = sqlite3_prepare_v2(s->db, sql, -1, out, NULL);
    return code == SQLITE_OK ? PNB_OK : pnb__sqlite_fail(s, code, err);
}

pnb_status pnb__sqlite_kept(pnb__sqlite *s, int which, const char *sql, sqlite3_stmt **out,
                            pnb_error *err)
{
    pnb_status status = PNB_OK;
    if (s->kept[which] == NULL)
        status = pnb__sqlite_prepare(s, sql, &s->kept[which], err);
    if (s->kept[which] != NULL)
        sqlite3_reset(s->kept[which]);
    *out = s->kept[which];
    return status;
}

pnb_status pnb__sqlite_step(const pnb__sqlite *s, sqlite3_stmt *statement, bool *more,
                            pnb_error *err)
{
    int code = sqlite3_step(statement);
    *more = code == SQLITE_ROW;
    return *more || code == SQLITE_DONE ? PNB_OK : pnb__sqlite_fail(s, code, err);
}

pnb_status pnb__sqlite_change(const pnb__sqlite *s, size_t *n, pnb_error *err, const char *sql,
                              const char *kinds, ...)
{
    sqlite3_stmt *statement = NULL;
    va_list values;
    bool more;
    int code = SQLITE_OK;
    pnb_status status = pnb__sqlite_prepare(s, sql, &statement, err);
    if (status != PNB_OK)
        return status;
    va_start(values, kinds);
    for (int i = 0; kinds[i] != '\0' && code == SQLITE_OK; i++)
        code = kinds[i] == 'i' ? sqlite3_bind_int64(statement, i + 1, va_arg(values, int64_t))
                               : sqlite3_bind_text(statement, i + 1, va_arg(values, const char *),
                                                   -1, SQLITE_STATIC);
    va_end(values);
    status = code == SQLITE_OK ? pnb__sqlite_step(s, statement, &more, err)
                               : pnb__sqlite_fail(s, code, err);
    if (n != NULL)
        *n = status == PNB_OK ? (size_t)sqlite3_changes(s->db) : 0;
    sqlite3_finalize(statement);
    return status;
}

/* ---- opening ---- */

static void close_catalog(void *self)
{
    pnb__sqlite *s = self;
    if (s == NULL)
        return;
    for (int i = 0; i < PNB__N_KEPT; i++)
        sqlite3_finalize(s->kept[i]);
    sqlite3_close(s->db);
    pnb__free(s->path);
    pnb__free(s);
}

/* Of a folder that may only be read nothing changes, and no lock can be had either. */
static int open_file(pnb__sqlite *s, int flags)
{
    int code = sqlite3_open_v2(s->path, &s->db, flags | SQLITE_OPEN_FULLMUTEX, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_busy_timeout(s->db, WAIT_MS);
    return code;
}

static pnb_status connect(pnb__sqlite **out, const pnb__place *place, int flags, pnb_error *err)
{
    pnb__sqlite *s = NULL;
    struct stat info;
    pnb_status status;
    PNB_TRY(PNB_ALLOC_ZERO(s, 1, err));
    s->path = place->address != NULL ? pnb__strdup(place->address)
                                     : pnb__path_join(place->dir, FILE_NAME);
    if (s->path == NULL)
        PNB_TRY(pnb__fail_nomem(err, strlen(place->dir) + sizeof FILE_NAME));
    int code = open_file(s, flags);
    if (code != SQLITE_OK)
        PNB_TRY(pnb__sqlite_fail(s, code, err));
    if (stat(s->path, &info) != 0)
        PNB_TRY(pnb__fail_errno(err, "cannot examine", s->path));
    s->device = info.st_dev;
    s->file = info.st_ino;
    *out = s;
    s = NULL;
done:
    close_catalog(s);
    return status;
}

pnb_status pnb__sqlite_check_there(const pnb__sqlite *s, pnb_error *err)
{
    struct stat info;
    bool is_there = stat(s->path, &info) == 0;
    if (is_there && info.st_dev == s->device && info.st_ino == s->file)
        return PNB_OK;
    return pnb__fail(err, PNB_IO, "%s %s: put it back, or open the collection again", s->path,
                     is_there ? "is another file than the one that was opened"
                              : "is gone since it was opened");
}

/* What people write, sqlite:PATH, or its absolute path. */
static pnb_status keep_address(const char *address, char **out, pnb_error *err)
{
    const char *path = address + (strncmp(address, "sqlite:", 7) == 0 ? 7 : 0);
    char *here = NULL;
    *out = NULL;
    if (path[0] == '\0')
        return pnb__fail(err, PNB_ARG, "\"%s\" names no file; wanted is sqlite:PATH", address);
    if (path[0] == '/')
        return pnb__copy_text(out, path, err);
    here = realpath(".", NULL);
    if (here == NULL)
        return pnb__fail_errno(err, "cannot find the path of", ".");
    *out = pnb__path_join(here, path);
    free(here);
    return *out != NULL ? PNB_OK : pnb__fail_nomem(err, strlen(path));
}

static pnb_status create(const pnb__place *place, pnb_error *err)
{
    pnb__sqlite *s = NULL;
    struct stat info;
    pnb_status status;
    if (place->address != NULL && lstat(place->address, &info) == 0)
        return pnb__fail(err, PNB_EXISTS,
                         "%s is there already; a collection has a database of its "
                         "own",
                         place->address);
    PNB_TRY(connect(&s, place, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err));
    PNB_TRY(
        pnb__sqlite_run(s, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; BEGIN;", err));
    PNB_TRY(pnb__sqlite_run(s, schema, err));
    if (pnb__disk_step_fails())
        PNB_TRY(pnb__fail_errno(err, "cannot write", s->path));
    status = pnb__sqlite_run(s,
                             "PRAGMA application_id = " APPLICATION_ID ";"
                             "PRAGMA user_version = " VERSION "; COMMIT;",
                             err);
done:
    close_catalog(s);
    return status;
}

static pnb_status read_pragma(const pnb__sqlite *s, const char *sql, int64_t *out, pnb_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool more = false;
    pnb_status status = pnb__sqlite_prepare(s, sql, &statement, err);
    if (status == PNB_OK)
        status = pnb__sqlite_step(s, statement, &more, err);
    *out = more ? sqlite3_column_int64(statement, 0) : -1;
    sqlite3_finalize(statement);
    return status;
}

static pnb_status check_kind(const pnb__sqlite *s, pnb_error *err)
{
    int64_t id, version;
    pnb_status status;
    PNB_TRY(read_pragma(s, "PRAGMA application_id", &id, err));
    PNB_TRY(read_pragma(s, "PRAGMA user_version", &version, err));
    if (id != strtoll(APPLICATION_ID, NULL, 10))
        status = pnb__fail(err, PNB_FORMAT,
                           "%s is an SQLite database of another program, no collection", s->path);
    else if (version != strtoll(VERSION, NULL, 10))
        status = pnb__fail(err, PNB_UNSUPPORTED,
                           "%s is a collection of version %lld, this program reads " VERSION,
                           s->path, (long long)version);
done:
    return status;
}

static pnb_status open_catalog(void **self, const pnb__place *place, pnb_error *err)
{
    pnb__sqlite *s = NULL;
    struct stat info;
    pnb_status status;
    if (place->address == NULL && !pnb__path_has_file(place->dir, FILE_NAME))
        return pnb__fail(err, PNB_NOT_FOUND,
                         "%s holds no collection; `penumbra collection create` makes one",
                         place->dir);
    if (place->address != NULL && stat(place->address, &info) != 0)
        return pnb__fail(err, PNB_NOT_FOUND, "the database %s of collection %s is gone",
                         place->address, place->dir);
    PNB_TRY(connect(&s, place, SQLITE_OPEN_READWRITE, err));
    PNB_TRY(check_kind(s, err));
    PNB_TRY(pnb__sqlite_run(s, "PRAGMA synchronous = FULL; PRAGMA cache_size = -16384", err));
    *self = s;
    s = NULL;
done:
    close_catalog(s);
    return status;
}

/* ---- writing ---- */

static pnb_status begin(void *self, pnb_error *err)
{
    pnb_status status = pnb__sqlite_run(self, "BEGIN IMMEDIATE", err);
    return status == PNB_OK ? pnb__sqlite_run(self, thumbnail_table, err) : status;
}

static void rollback(void *self)
{
    pnb__sqlite *s = self;
    if (sqlite3_get_autocommit(s->db) == 0)
        (void)pnb__sqlite_run(s, "ROLLBACK", NULL);
}

static pnb_status commit(void *self, pnb_error *err)
{
    pnb__sqlite *s = self;
    pnb_status status = pnb__sqlite_change(
        s, NULL, err, "UPDATE fact SET value = value + 1 WHERE name = 'generation'", "");
    if (status == PNB_OK && pnb__disk_step_fails())
        status = pnb__fail_errno(err, "cannot write", s->path);
    if (status == PNB_OK)
        status = pnb__sqlite_run(s, "COMMIT", err);
    rollback(s);
    return status;
}

static pnb_status put_fact(void *self, const char *name, const char *value, pnb_error *err)
{
    return pnb__sqlite_change(self, NULL, err, "INSERT OR REPLACE INTO fact VALUES(?, ?)", "ss",
                              name, value);
}

static pnb_status add_shard(void *self, const pnb__shard_entry *shard, pnb_error *err)
{
    pnb_status status = pnb__sqlite_change(self, NULL, err, "INSERT INTO shard VALUES(?, ?, ?)",
                                           "iis", shard->first, (int64_t)shard->n, shard->file);
    if (status == PNB_OK)
        status = pnb__sqlite_change(
            self, NULL, err,
            "UPDATE fact SET value = max(CAST(value AS INTEGER), ?) WHERE name = 'next'", "i",
            shard->first + (int64_t)shard->n);
    return status;
}

static pnb_status drop_shard(void *self, int64_t first, pnb_error *err)
{
    return pnb__sqlite_change(self, NULL, err, "DELETE FROM shard WHERE first = ?", "i", first);
}

static pnb_status add_tags(pnb__sqlite *s, const pnb_store_row *row, pnb_error *err)
{
    sqlite3_stmt *add = NULL;
    bool more;
    pnb_status status =
        pnb__sqlite_kept(s, PNB__ADD_TAG, "INSERT OR IGNORE INTO tag VALUES(?, ?)", &add, err);
    for (const char *tag = row->tags; tag != NULL && *tag != '\0' && status == PNB_OK;) {
        size_t n = strcspn(tag, "\n");
        int code = sqlite3_bind_text(add, 1, tag, (int)n, SQLITE_STATIC);
        if (code == SQLITE_OK)
            code = sqlite3_bind_int64(add, 2, row->number);
        status = code == SQLITE_OK ? pnb__sqlite_step(s, add, &more, err)
                                   : pnb__sqlite_fail(s, code, err);
        sqlite3_reset(add);
        tag += n + (tag[n] == '\n');
    }
    return status;
}

static pnb_status add_row(void *self, const pnb_store_row *row, pnb_error *err)
{
    pnb__sqlite *s = self;
    sqlite3_stmt *add = NULL;
    bool more;
    const char *const texts[] = {row->id, row->sha256, row->path, row->text, row->extra};
    pnb_status status =
        pnb__sqlite_kept(s, PNB__ADD_ROW,
                         "INSERT INTO row(id, sha256, path, caption, extra, number, time, "
                         "added, uncertainty) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)",
                         &add, err);
    if (status != PNB_OK)
        return status;
    int code = SQLITE_OK, at = 1;
    for (size_t i = 0; i < PNB_COUNT(texts) && code == SQLITE_OK; i++)
        code = sqlite3_bind_text(add, at++, texts[i], -1, SQLITE_STATIC);
    const int64_t numbers[] = {row->number, row->time, row->added};
    for (size_t i = 0; i < PNB_COUNT(numbers) && code == SQLITE_OK; i++)
        code = sqlite3_bind_int64(add, at++, numbers[i]);
    if (code == SQLITE_OK)
        code = sqlite3_bind_double(add, at, row->uncertainty);
    status =
        code == SQLITE_OK ? pnb__sqlite_step(s, add, &more, err) : pnb__sqlite_fail(s, code, err);
    sqlite3_reset(add); /* the texts are the caller's */
    return status == PNB_OK ? add_tags(s, row, err) : status;
}

static pnb_status put_thumbnail(void *self, int64_t number, const pnb_store_thumbnail *image,
                                pnb_error *err)
{
    pnb__sqlite *s = self;
    sqlite3_stmt *add = NULL;
    bool more;
    pnb_status status =
        pnb__sqlite_kept(s, PNB__ADD_THUMBNAIL, "INSERT INTO thumbnail VALUES(?, ?)", &add, err);
    if (status != PNB_OK)
        return status;
    int code = sqlite3_bind_int64(add, 1, number);
    if (code == SQLITE_OK)
        code = sqlite3_bind_blob64(add, 2, image->bytes, image->n_bytes, SQLITE_STATIC);
    status =
        code == SQLITE_OK ? pnb__sqlite_step(s, add, &more, err) : pnb__sqlite_fail(s, code, err);
    sqlite3_reset(add); /* the bytes are the caller's */
    return status;
}

static pnb_status remove_range(void *self, int64_t first, int64_t end, size_t *n, pnb_error *err)
{
    pnb_status status;
    PNB_TRY(pnb__sqlite_change(self, NULL, err, "DELETE FROM tag WHERE number >= ? AND number < ?",
                               "ii", first, end));
    PNB_TRY(pnb__sqlite_change(self, NULL, err,
                               "DELETE FROM thumbnail WHERE number >= ? AND number < ?", "ii",
                               first, end));
    PNB_TRY(pnb__sqlite_change(self, NULL, err,
                               "INSERT INTO removed SELECT number FROM row WHERE number >= ? AND "
                               "number < ?",
                               "ii", first, end));
    status = pnb__sqlite_change(self, n, err, "DELETE FROM row WHERE number >= ? AND number < ?",
                                "ii", first, end);
done:
    return status;
}

static pnb_status remove_id(void *self, const char *id, size_t *n, pnb_error *err)
{
    pnb__sqlite *s = self;
    sqlite3_stmt *find = NULL;
    bool is_there = false;
    *n = 0;
    pnb_status status =
        pnb__sqlite_kept(s, PNB__NUMBER_OF, "SELECT number FROM row WHERE id = ?", &find, err);
    if (status != PNB_OK)
        return status;
    int code = sqlite3_bind_text(find, 1, id, -1, SQLITE_STATIC);
    status = code == SQLITE_OK ? pnb__sqlite_step(s, find, &is_there, err)
                               : pnb__sqlite_fail(s, code, err);
    int64_t number = is_there ? sqlite3_column_int64(find, 0) : 0;
    sqlite3_reset(find);
    return is_there ? remove_range(s, number, number + 1, n, err) : status;
}

static pnb_status remove_ids(void *self, const char *const *ids, size_t n, size_t *n_gone,
                             pnb_error *err)
{
    pnb_status status = PNB_OK;
    *n_gone = 0;
    for (size_t i = 0; i < n && status == PNB_OK; i++) {
        size_t n_now = 0;
        status = remove_id(self, ids[i], &n_now, err);
        *n_gone += n_now;
    }
    return status;
}

static pnb_status add_removed(void *self, int64_t number, pnb_error *err)
{
    return pnb__sqlite_change(self, NULL, err, "INSERT INTO removed VALUES(?)", "i", number);
}

static pnb_status forget(void *self, int64_t first, int64_t end, pnb_error *err)
{
    return pnb__sqlite_change(
        self, NULL, err, "DELETE FROM removed WHERE number >= ? AND number < ?", "ii", first, end);
}

const pnb__catalog_calls pnb__catalog_sqlite = {.kind = "sqlite",
                                                .name = "SQLite",
                                                .keep_address = keep_address,
                                                .create = create,
                                                .open = open_catalog,
                                                .close = close_catalog,
                                                .generation = pnb__sqlite_generation,
                                                .state = pnb__sqlite_state,
                                                .fact = pnb__sqlite_fact,
                                                .knows = pnb__sqlite_knows,
                                                .numbers = pnb__sqlite_numbers,
                                                .rows = pnb__sqlite_rows,
                                                .thumbnail = pnb__sqlite_thumbnail,
                                                .check = pnb__sqlite_check,
                                                .begin = begin,
                                                .commit = commit,
                                                .rollback = rollback,
                                                .put_fact = put_fact,
                                                .add_shard = add_shard,
                                                .drop_shard = drop_shard,
                                                .add_row = add_row,
                                                .put_thumbnail = put_thumbnail,
                                                .add_removed = add_removed,
                                                .remove_ids = remove_ids,
                                                .remove_range = remove_range,
                                                .forget = forget};
