/* A collection in a schema of a Postgres database: opening, and what writes.
 *
 * A batch is one transaction. Rows wait in memory and go by COPY, some megabytes at a time and at
 * commit; whatever asks for rows within a transaction sends them first. An advisory lock of the
 * connection makes one program the writer, on whatever machine. What reads is in postgres_read.c,
 * embeddings are in postgres_copy.c. */
#include <stdlib.h>
#include <string.h>

#include "io/tables/pgcopy.h"
#include "store/postgres/postgres.h"

#define VERSION "1"
enum { WAITING_BYTES = 4 << 20 };

/* ---- opening ---- */

/* The extension may be there and not be ours to make; then there is no column of it. */
static void make_extension(pnb__pg *s)
{
    PGresult *result = NULL;
    if (pnb__pg_query(s, "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'", 0, NULL,
                      &result, NULL) == PNB_OK &&
        pnb__pq.PQntuples(result) > 0)
        (void)pnb__pg_query(s, "CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public", 0, NULL,
                            NULL, NULL);
    pnb__pq.PQclear(result);
}

static pnb_status create(const pnb__place *place, pnb_error *err)
{
    pnb__pg *s = NULL;
    pnb__buf sql = {0};
    pnb_status status;
    PNB_TRY(pnb__pg_connect(&s, place, err));
    make_extension(s);
    pnb__pg_schema_sql(&sql, s->schema);
    PNB_TRY(pnb__buf_check(&sql, err));
    PGresult *result = pnb__pq.PQexec(s->conn, sql.data); /* one transaction */
    if (pnb__pq.PQresultStatus(result) != PGRES_COMMAND_OK)
        status = pnb__pg_fail(s, result, err);
    else
        pnb__pq.PQclear(result);
done:
    pnb__buf_reset(&sql);
    pnb__pg_close(s);
    return status;
}

static pnb_status check_version(pnb__pg *s, pnb_error *err)
{
    char *version = NULL;
    pnb_status status;
    PNB_TRY(pnb__pg_fact(s, "version", &version, err));
    if (version == NULL || strcmp(version, VERSION) != 0)
        status = pnb__fail(err, version == NULL ? PNB_FORMAT : PNB_UNSUPPORTED,
                           "%s is a collection of version %.20s, this program reads " VERSION,
                           s->where, version != NULL ? version : "(none)");
done:
    pnb__free(version);
    return status;
}

static pnb_status open_catalog(void **self, const pnb__place *place, pnb_error *err)
{
    pnb__pg *s = NULL;
    pnb_status status;
    PNB_TRY(pnb__pg_connect(&s, place, err));
    PNB_TRY(check_version(s, err));
    *self = s;
    s = NULL;
done:
    pnb__pg_close(s);
    return status;
}

/* ---- transactions ---- */

static pnb_status send_waiting(pnb__pg *s, pnb_error *err)
{
    pnb_status status = pnb__pg_copy_buffer(
        s,
        "COPY row(number, id, sha256, path, caption, extra, time, added, uncertainty) FROM STDIN "
        "(FORMAT binary)",
        &s->rows, err);
    if (status == PNB_OK)
        status = pnb__pg_copy_buffer(s, "COPY tag(tag, number) FROM STDIN (FORMAT binary)",
                                     &s->tags, err);
    if (status == PNB_OK)
        status = pnb__pg_copy_buffer(
            s, "COPY thumbnail(number, picture) FROM STDIN (FORMAT binary)", &s->thumbnails, err);
    return status;
}

static void forget_waiting(pnb__pg *s)
{
    s->is_writing = false;
    pnb__buf_reset(&s->rows);
    pnb__buf_reset(&s->tags);
    pnb__buf_reset(&s->thumbnails);
}

static pnb_status begin(void *self, pnb_error *err)
{
    pnb__pg *s = self;
    forget_waiting(s);
    pnb_status status = pnb__pg_query(s, "BEGIN", 0, NULL, NULL, err);
    s->is_writing = status == PNB_OK;
    return status;
}

static void rollback(void *self)
{
    pnb__pg *s = self;
    if (s->is_writing)
        (void)pnb__pg_query(s, "ROLLBACK", 0, NULL, NULL, NULL);
    s->knows_vector = s->knows_vector && !s->is_writing;
    forget_waiting(s);
}

static pnb_status commit(void *self, pnb_error *err)
{
    pnb__pg *s = self;
    pnb_status status;
    PNB_TRY(send_waiting(s, err));
    PNB_TRY(pnb__pg_change(s, "UPDATE fact SET value = value::bigint + 1 WHERE name = 'generation'",
                           0, NULL, NULL, err));
    PNB_TRY(pnb__pg_query(s, "COMMIT", 0, NULL, NULL, err));
    s->is_writing = false;
done:
    rollback(s);
    return status;
}

/* ---- writing ---- */

static pnb_status put_fact(void *self, const char *name, const char *value, pnb_error *err)
{
    const char *values[] = {name, value};
    return pnb__pg_query(self,
                         "INSERT INTO fact VALUES($1, $2) ON CONFLICT (name) DO UPDATE SET value = "
                         "excluded.value",
                         2, values, NULL, err);
}

static pnb_status add_shard(void *self, const pnb__shard_entry *shard, pnb_error *err)
{
    char first[24], n[24];
    const char *values[] = {first, n, shard->file};
    const int64_t next = shard->first + (int64_t)shard->n;
    snprintf(first, sizeof first, "%lld", (long long)shard->first);
    snprintf(n, sizeof n, "%zu", shard->n);
    pnb_status status =
        pnb__pg_query(self, "INSERT INTO shard VALUES($1, $2, $3)", 3, values, NULL, err);
    if (status == PNB_OK)
        status = pnb__pg_change(
            self, "UPDATE fact SET value = greatest(value::bigint, $1) WHERE name = 'next'", 1,
            &next, NULL, err);
    return status;
}

static pnb_status drop_shard(void *self, int64_t first, pnb_error *err)
{
    return pnb__pg_change(self, "DELETE FROM shard WHERE first = $1", 1, &first, NULL, err);
}

static void put_text(pnb__buf *out, const char *text)
{
    pnb__buf escaped = {0};
    if (text == NULL) {
        pnb__pgcopy_text(out, NULL);
        return;
    }
    pnb__pg_escape(&escaped, text);
    out->failed = out->failed || escaped.failed;
    pnb__pgcopy_text(out, escaped.data != NULL ? escaped.data : "");
    pnb__buf_reset(&escaped);
}

static bool stands_before(const char *tags, const char *tag, size_t n)
{
    for (const char *p = tags; p < tag; p += strcspn(p, "\n") + 1)
        if (strcspn(p, "\n") == n && memcmp(p, tag, n) == 0)
            return true;
    return false;
}

static pnb_status put_tags(pnb__pg *s, const pnb_store_row *row, pnb_error *err)
{
    for (const char *tag = row->tags; tag != NULL && *tag != '\0';) {
        size_t n = strcspn(tag, "\n");
        if (!stands_before(row->tags, tag, n)) {
            char *one = pnb__strndup(tag, n);
            if (one == NULL)
                return pnb__fail_nomem(err, n);
            if (s->tags.size == 0)
                pnb__pgcopy_begin(&s->tags);
            pnb__pgcopy_row(&s->tags, 2);
            put_text(&s->tags, one);
            pnb__pgcopy_int(&s->tags, row->number);
            pnb__free(one);
        }
        tag += n + (tag[n] == '\n');
    }
    return PNB_OK;
}

static pnb_status add_row(void *self, const pnb_store_row *row, pnb_error *err)
{
    pnb__pg *s = self;
    const char *const texts[] = {row->id, row->sha256, row->path, row->text, row->extra};
    if (s->rows.size == 0)
        pnb__pgcopy_begin(&s->rows);
    pnb__pgcopy_row(&s->rows, 9);
    pnb__pgcopy_int(&s->rows, row->number);
    for (size_t i = 0; i < PNB_COUNT(texts); i++)
        put_text(&s->rows, texts[i]);
    pnb__pgcopy_int(&s->rows, row->time);
    pnb__pgcopy_int(&s->rows, row->added);
    pnb__pgcopy_double(&s->rows, row->uncertainty);
    pnb_status status = put_tags(s, row, err);
    if (status == PNB_OK && s->rows.size + s->tags.size > WAITING_BYTES)
        status = send_waiting(s, err);
    return status;
}

static pnb_status put_thumbnail(void *self, int64_t number, const pnb_store_thumbnail *image,
                                pnb_error *err)
{
    pnb__pg *s = self;
    if (s->thumbnails.size == 0)
        pnb__pgcopy_begin(&s->thumbnails);
    pnb__pgcopy_row(&s->thumbnails, 2);
    pnb__pgcopy_int(&s->thumbnails, number);
    pnb__pgcopy_bytes(&s->thumbnails, image->bytes, image->n_bytes);
    return s->thumbnails.size > WAITING_BYTES ? send_waiting(s, err) : PNB_OK;
}

static pnb_status add_removed(void *self, int64_t number, pnb_error *err)
{
    return pnb__pg_change(self, "INSERT INTO removed VALUES($1)", 1, &number, NULL, err);
}

static pnb_status remove_ids(void *self, const char *const *ids, size_t n, size_t *n_gone,
                             pnb_error *err)
{
    static const char sql[] =
        "WITH gone AS (DELETE FROM row WHERE id = ANY($1::text[]) RETURNING number), untagged AS "
        "(DELETE FROM tag WHERE number IN (SELECT number FROM gone)), unseen AS (DELETE FROM "
        "thumbnail WHERE number IN (SELECT number FROM gone)) INSERT INTO removed SELECT "
        "number FROM gone";
    pnb__buf array = {0};
    PGresult *result = NULL;
    pnb_status status = send_waiting(self, err);
    *n_gone = 0;
    PNB_TRY(status);
    pnb__pg_text_array(&array, ids, n);
    PNB_TRY(pnb__buf_check(&array, err));
    const char *values[] = {array.data};
    PNB_TRY(pnb__pg_query(self, sql, 1, values, &result, err));
    *n_gone = (size_t)strtoull(pnb__pq.PQcmdTuples(result), NULL, 10);
done:
    pnb__pq.PQclear(result);
    pnb__buf_reset(&array);
    return status;
}

static pnb_status remove_range(void *self, int64_t first, int64_t end, size_t *n_gone,
                               pnb_error *err)
{
    const int64_t values[] = {first, end};
    pnb_status status = send_waiting(self, err);
    if (status == PNB_OK)
        status = pnb__pg_change(
            self,
            "WITH gone AS (DELETE FROM row WHERE number >= $1 AND number < $2 RETURNING number), "
            "untagged AS (DELETE FROM tag WHERE number >= $1 AND number < $2), unseen AS (DELETE "
            "FROM thumbnail WHERE number >= $1 AND number < $2) INSERT INTO removed "
            "SELECT number FROM gone",
            2, values, n_gone, err);
    return status;
}

static pnb_status forget(void *self, int64_t first, int64_t end, pnb_error *err)
{
    const int64_t values[] = {first, end};
    pnb_status status = pnb__pg_change(
        self, "DELETE FROM removed WHERE number >= $1 AND number < $2", 2, values, NULL, err);
    if (status == PNB_OK)
        status = pnb__pg_change(self, "DELETE FROM embedding WHERE number >= $1 AND number < $2", 2,
                                values, NULL, err);
    return status;
}

const pnb__catalog_calls pnb__catalog_postgres = {.kind = "postgresql",
                                                  .name = "Postgres",
                                                  .keep_address = pnb__pg_keep_address,
                                                  .create = create,
                                                  .open = open_catalog,
                                                  .close = pnb__pg_close,
                                                  .claim = pnb__pg_claim,
                                                  .generation = pnb__pg_generation,
                                                  .state = pnb__pg_state,
                                                  .fact = pnb__pg_fact,
                                                  .knows = pnb__pg_knows,
                                                  .numbers = pnb__pg_numbers,
                                                  .rows = pnb__pg_rows,
                                                  .thumbnail = pnb__pg_thumbnail,
                                                  .get_set = pnb__pg_get_set,
                                                  .check = pnb__pg_check,
                                                  .begin = begin,
                                                  .commit = commit,
                                                  .rollback = rollback,
                                                  .put_fact = put_fact,
                                                  .add_shard = add_shard,
                                                  .drop_shard = drop_shard,
                                                  .put_set = pnb__pg_put_set,
                                                  .add_row = add_row,
                                                  .put_thumbnail = put_thumbnail,
                                                  .add_removed = add_removed,
                                                  .remove_ids = remove_ids,
                                                  .remove_range = remove_range,
                                                  .forget = forget};
