/* Embeddings to Postgres and back, by binary COPY (io/tables/pgcopy.h).
 *
 * Rows go a megabyte at a time; those that come are put where their number says. */
#include <string.h>

#include "index/augmented.h"
#include "io/tables/pgcopy.h"
#include "sets/embeddings.h"
#include "store/postgres/postgres.h"

enum { PIECE_BYTES = 1 << 20 };

/* ---- to the server ---- */

static pnb_status begin_copy(pnb__pg *s, const char *sql, ExecStatusType wanted, pnb_error *err)
{
    PGresult *result = pnb__pq.PQexec(s->conn, sql);
    if (pnb__pq.PQresultStatus(result) != wanted)
        return pnb__pg_fail(s, result, err);
    pnb__pq.PQclear(result);
    return PNB_OK;
}

static pnb_status send(pnb__pg *s, pnb__buf *rows, pnb_error *err)
{
    pnb_status status = pnb__buf_check(rows, err);
    for (size_t at = 0; status == PNB_OK && at < rows->size;) {
        size_t n = PNB_MIN(rows->size - at, (size_t)PIECE_BYTES);
        if (pnb__pq.PQputCopyData(s->conn, rows->data + at, (int)n) != 1)
            status = pnb__pg_fail(s, NULL, err);
        at += n;
    }
    rows->size = 0;
    return status;
}

/* What the server says to all of it. */
static pnb_status end_copy(pnb__pg *s, pnb_status status, pnb_error *err)
{
    int sent = pnb__pq.PQputCopyEnd(s->conn, status == PNB_OK ? NULL : "stopped");
    PGresult *result = pnb__pq.PQgetResult(s->conn);
    if (status == PNB_OK && (sent != 1 || pnb__pq.PQresultStatus(result) != PGRES_COMMAND_OK)) {
        status = pnb__pg_fail(s, result, err);
        result = NULL;
    }
    while (result != NULL) {
        pnb__pq.PQclear(result);
        result = pnb__pq.PQgetResult(s->conn);
    }
    return status;
}

pnb_status pnb__pg_copy_buffer(pnb__pg *s, const char *sql, pnb__buf *rows, pnb_error *err)
{
    if (rows->size == 0 && !rows->failed)
        return PNB_OK;
    pnb_status status = begin_copy(s, sql, PGRES_COPY_IN, err);
    if (status != PNB_OK)
        return status;
    pnb__pgcopy_end(rows);
    return end_copy(s, send(s, rows, err), err);
}

/* ---- sets ---- */

/* Whether there is the column of pgvector; the first rows of a collection bring it where the
 * extension is. */
static pnb_status find_vector(pnb__pg *s, int64_t first, size_t width, pnb_error *err)
{
    static const char sql[] =
        "SELECT to_regtype('vector') IS NOT NULL, EXISTS(SELECT 1 FROM pg_attribute WHERE attrelid "
        "= 'embedding'::regclass AND attname = 'vector' AND NOT attisdropped)";
    pnb__buf add = {0};
    PGresult *result = NULL;
    pnb_status status;
    if (s->knows_vector)
        return PNB_OK;
    PNB_TRY(pnb__pg_query(s, sql, 0, NULL, &result, err));
    bool has_type = strcmp(pnb__pq.PQgetvalue(result, 0, 0), "t") == 0;
    s->has_vector = strcmp(pnb__pq.PQgetvalue(result, 0, 1), "t") == 0;
    if (has_type && !s->has_vector && first == 1)
        pnb__pg_vector_sql(&add, width);
    PNB_TRY(pnb__buf_check(&add, err));
    if (add.size > 0) {
        pnb__pq.PQclear(result);
        result = pnb__pq.PQexec(s->conn, add.data);
        if (pnb__pq.PQresultStatus(result) != PGRES_COMMAND_OK) {
            status = pnb__pg_fail(s, result, err);
            result = NULL;
            goto done;
        }
        s->has_vector = true;
    }
    s->knows_vector = true;
done:
    pnb__pq.PQclear(result);
    pnb__buf_reset(&add);
    return status;
}

static void put_row(pnb__buf *out, const pnb_embeddings *set, int64_t first, size_t row)
{
    pnb__pgcopy_int(out, first + (int64_t)row);
    for (int i = 0; i < PNB__N_EMBEDDING_ARRAYS; i++) {
        if (!pnb__embedding_has_array(set, i))
            continue;
        size_t width = pnb__embedding_count(set, i) / set->n;
        const float *x = pnb__embedding_values(set, i) + row * width;
        if (pnb__embedding_array_at(i)->is_per_row)
            pnb__pgcopy_float(out, *x);
        else
            pnb__pgcopy_reals(out, x, width);
    }
}

static size_t count_fields(const pnb_embeddings *set)
{
    size_t n = 1;
    for (int i = 0; i < PNB__N_EMBEDDING_ARRAYS; i++)
        n += pnb__embedding_has_array(set, i);
    return n;
}

static pnb_status send_set(pnb__pg *s, int64_t first, const pnb_embeddings *set,
                           const float *vectors, size_t width, pnb_error *err)
{
    pnb__buf rows = {0};
    size_t n_fields = count_fields(set) + (vectors != NULL);
    pnb_status status = PNB_OK;
    pnb__pgcopy_begin(&rows);
    for (size_t row = 0; row < set->n && status == PNB_OK; row++) {
        pnb__pgcopy_row(&rows, n_fields);
        put_row(&rows, set, first, row);
        if (vectors != NULL)
            pnb__pgcopy_vector(&rows, vectors + row * width, width);
        if (rows.size >= PIECE_BYTES || rows.failed)
            status = send(s, &rows, err);
    }
    pnb__pgcopy_end(&rows);
    if (status == PNB_OK)
        status = send(s, &rows, err);
    pnb__buf_reset(&rows);
    return status;
}

pnb_status pnb__pg_put_set(void *self, int64_t first, const pnb_embeddings *set, pnb_error *err)
{
    pnb__pg *s = self;
    pnb__augmented form = {0};
    pnb__buf sql = {0};
    float *vectors = NULL;
    pnb_status status;
    if (pnb__augmented_form(set->family, set->dim, &form, NULL) == PNB_OK)
        PNB_TRY(find_vector(s, first, form.width, err));
    if (s->has_vector) {
        PNB_TRY(PNB_ALLOC_ROWS(vectors, set->n, form.width, err));
        PNB_TRY(pnb__augmented_rows(set, vectors, err));
    }
    pnb__pg_copy_sql(&sql, set, vectors != NULL, true, first);
    PNB_TRY(pnb__buf_check(&sql, err));
    PNB_TRY(begin_copy(s, sql.data, PGRES_COPY_IN, err));
    status = end_copy(s, send_set(s, first, set, vectors, form.width, err), err);
done:
    pnb__buf_reset(&sql);
    pnb__free(vectors);
    return status;
}

/* ---- from the server ---- */

static pnb_status take_row(pnb__pgcopy_reader *r, int64_t first, size_t row, pnb_embeddings *set,
                           pnb_error *err)
{
    int64_t number = 0;
    pnb_status status;
    PNB_TRY(pnb__pgcopy_get_int(r, &number, err));
    if (number != first + (int64_t)row)
        PNB_TRY(pnb__fail(err, PNB_NOT_FOUND, "Postgres has no embedding of row %lld any more",
                          (long long)first + (long long)row));
    for (int i = 0; i < PNB__N_EMBEDDING_ARRAYS; i++) {
        if (!pnb__embedding_has_array(set, i))
            continue;
        size_t width = pnb__embedding_count(set, i) / set->n;
        float *x = *pnb__embedding_field(set, i) + row * width;
        PNB_TRY(pnb__embedding_array_at(i)->is_per_row ? pnb__pgcopy_get_float(r, x, err)
                                                       : pnb__pgcopy_get_reals(r, x, width, err));
    }
done:
    return status;
}

/* Each piece is a whole row; the first has the head of the format before its own. */
static pnb_status take_piece(const char *bytes, int n, size_t *row, int64_t first,
                             pnb_embeddings *set, pnb_error *err)
{
    pnb__pgcopy_reader r = {(const unsigned char *)bytes, (const unsigned char *)bytes + n};
    bool is_end = false;
    pnb_status status = PNB_OK;
    if (n >= 11 && memcmp(bytes, "PGCOPY\n\377\r\n", 11) == 0)
        status = pnb__pgcopy_skip_head(&r, err);
    if (status != PNB_OK || r.at == r.end)
        return status;
    status = pnb__pgcopy_next(&r, count_fields(set), &is_end, err);
    if (status != PNB_OK || is_end)
        return status;
    if (*row == set->n)
        return pnb__fail(err, PNB_FORMAT, "Postgres sent more rows than were asked for");
    return take_row(&r, first, (*row)++, set, err);
}

static pnb_status receive(pnb__pg *s, int64_t first, pnb_embeddings *set, pnb_error *err)
{
    pnb_status status = PNB_OK;
    size_t row = 0;
    char *bytes = NULL;
    int n;
    while ((n = pnb__pq.PQgetCopyData(s->conn, &bytes, 0)) > 0) {
        if (status == PNB_OK) /* what is under way is read to its end in any case */
            status = take_piece(bytes, n, &row, first, set, err);
        pnb__pq.PQfreemem(bytes);
    }
    for (PGresult *result; (result = pnb__pq.PQgetResult(s->conn)) != NULL;) {
        if (status == PNB_OK && pnb__pq.PQresultStatus(result) != PGRES_COMMAND_OK) {
            status = pnb__pg_fail(s, result, err);
            continue;
        }
        pnb__pq.PQclear(result);
    }
    if (status == PNB_OK && n == -2)
        status = pnb__pg_fail(s, NULL, err);
    if (status == PNB_OK && row < set->n)
        status = pnb__fail(err, PNB_NOT_FOUND, "Postgres has %zu of %zu embeddings", row, set->n);
    return status;
}

pnb_status pnb__pg_get_set(void *self, int64_t first, pnb_embeddings *set, pnb_error *err)
{
    pnb__pg *s = self;
    pnb__buf sql = {0};
    pnb_status status;
    PNB_TRY(pnb__pg_query(s, "SELECT 1", 0, NULL, NULL, err)); /* connects where it has to */
    pnb__pg_copy_sql(&sql, set, false, false, first);
    PNB_TRY(pnb__buf_check(&sql, err));
    PNB_TRY(begin_copy(s, sql.data, PGRES_COPY_OUT, err));
    status = receive(s, first, set, err);
done:
    pnb__buf_reset(&sql);
    return status;
}
