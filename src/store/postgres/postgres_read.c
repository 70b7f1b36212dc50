/* What is read of a collection in Postgres: rows by their ids or in an order, their fields,
 * thumbnails and counts. Embeddings come by binary COPY (postgres_copy.c); every text that Postgres
 * sends is a number or a string of its schema's types (postgres_schema.c). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "store/postgres/postgres.h"

static int64_t number_at(const PGresult *result, int row, int column)
{
    return strtoll(pnb__pq.PQgetvalue(result, row, column), NULL, 10);
}

static char *text_at(const PGresult *result, int row, int column)
{
    return pnb__pq.PQgetisnull(result, row, column) != 0 ? NULL
                                                         : pnb__pq.PQgetvalue(result, row, column);
}

pnb_status pnb__pg_fact(void *self, const char *name, char **out, pnb_error *err)
{
    PGresult *result = NULL;
    *out = NULL;
    pnb_status status =
        pnb__pg_query(self, "SELECT value FROM fact WHERE name = $1", 1, &name, &result, err);
    if (status == PNB_OK && pnb__pq.PQntuples(result) > 0)
        status = pnb__copy_text(out, pnb__pq.PQgetvalue(result, 0, 0), err);
    pnb__pq.PQclear(result);
    return status;
}

pnb_status pnb__pg_generation(void *self, int64_t *out, pnb_error *err)
{
    char *text = NULL;
    pnb_status status = pnb__pg_fact(self, "generation", &text, err);
    if (status == PNB_OK)
        *out = text != NULL ? strtoll(text, NULL, 10) : 0;
    pnb__free(text);
    return status;
}

pnb_status pnb__pg_knows(void *self, const char (*sha256)[65], size_t n, bool *out, pnb_error *err)
{
    pnb__buf array = {0};
    PGresult *result = NULL;
    pnb_status status;
    memset(out, 0, n * sizeof *out);
    pnb__buf_putc(&array, '{');
    for (size_t i = 0; i < n; i++)
        pnb__buf_printf(&array, "%s\"%.64s\"", i > 0 ? "," : "", sha256[i]);
    pnb__buf_putc(&array, '}');
    PNB_TRY(pnb__buf_check(&array, err));
    const char *values[] = {array.data};
    PNB_TRY(
        pnb__pg_query(self,
                      "SELECT w.at - 1 FROM unnest($1::text[]) WITH ORDINALITY AS w(sha256, at) "
                      "JOIN row r USING (sha256)",
                      1, values, &result, err));
    for (int i = 0; i < pnb__pq.PQntuples(result); i++) {
        int64_t at = number_at(result, i, 0);
        if (at >= 0 && (size_t)at < n)
            out[at] = true;
    }
done:
    pnb__pq.PQclear(result);
    pnb__buf_reset(&array);
    return status;
}

/* ---- the state ---- */

static pnb_status read_shards(pnb__pg *s, pnb__catalog_state *out, pnb_error *err)
{
    PGresult *result = NULL;
    pnb_status status;
    PNB_TRY(
        pnb__pg_query(s, "SELECT first, n, file FROM shard ORDER BY first", 0, NULL, &result, err));
    for (int i = 0; i < pnb__pq.PQntuples(result); i++) {
        pnb__shard_entry entry = {.first = number_at(result, i, 0),
                                  .n = (size_t)number_at(result, i, 1)};
        const char *file = pnb__pq.PQgetvalue(result, i, 2);
        if (strchr(file, '/') != NULL || entry.n == 0 || entry.n > INT32_MAX)
            PNB_TRY(pnb__fail(err, PNB_FORMAT, "%s: its shard \"%.80s\" is none", s->where, file));
        PNB_TRY(pnb__copy_text(&entry.file, file, err));
        status = PNB_PUSH(out->shards, out->n_shards, err, entry);
        if (status != PNB_OK)
            pnb__free(entry.file);
        PNB_TRY(status);
    }
done:
    pnb__pq.PQclear(result);
    return status;
}

static pnb_status read_removed(pnb__pg *s, pnb__catalog_state *out, pnb_error *err)
{
    PGresult *result = NULL;
    pnb_status status =
        pnb__pg_query(s, "SELECT number FROM removed ORDER BY number", 0, NULL, &result, err);
    for (int i = 0; status == PNB_OK && i < pnb__pq.PQntuples(result); i++)
        status = PNB_PUSH(out->removed, out->n_removed, err, number_at(result, i, 0));
    pnb__pq.PQclear(result);
    return status;
}

static pnb_status read_next(pnb__pg *s, int64_t *out, pnb_error *err)
{
    char *text = NULL;
    pnb_status status = pnb__pg_fact(s, "next", &text, err);
    if (status == PNB_OK)
        *out = text != NULL ? strtoll(text, NULL, 10) : 0;
    pnb__free(text);
    return status;
}

/* Inside a writing of this connection it is a part of that; else several reads see one state. */
pnb_status pnb__pg_state(void *self, pnb__catalog_state *out, pnb_error *err)
{
    pnb__pg *s = self;
    bool is_alone = !s->is_writing;
    pnb_status status;
    *out = (pnb__catalog_state){0};
    if (is_alone) {
        PNB_TRY(pnb__pg_query(s, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", 0, NULL, NULL,
                              err));
        s->is_writing = true; /* what is lost within is not tried again by halves */
    }
    PNB_TRY(pnb__pg_generation(s, &out->generation, err));
    PNB_TRY(read_next(s, &out->next, err));
    PNB_TRY(read_shards(s, out, err));
    status = read_removed(s, out, err);
done:
    if (is_alone && s->is_writing) {
        (void)pnb__pg_query(s, "ROLLBACK", 0, NULL, NULL, NULL); /* nothing was written */
        s->is_writing = false;
    }
    if (status != PNB_OK)
        pnb__catalog_state_reset(out);
    return status;
}

/* ---- rows ---- */

/* A filter's conditions, with the values that stand for $1 and so on. */
typedef struct conditions {
    pnb__buf sql, values;
    size_t at[72]; /* of each value in `values` */
    int n;
} conditions;

static void add_value(conditions *c, const char *format, const char *text)
{
    c->at[c->n++] = c->values.size;
    pnb__pg_escape(&c->values, text);
    pnb__buf_putc(&c->values, '\0');
    pnb__buf_printf(&c->sql, format, c->n);
}

static void add_number(conditions *c, const char *format, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value);
    add_value(c, format, text);
}

static void add_real(conditions *c, const char *format, double value)
{
    char text[40];
    snprintf(text, sizeof text, "%.17g", value);
    add_value(c, format, text);
}

static void add_filter(conditions *c, const pnb_store_filter *f)
{
    if (f->since > INT64_MIN)
        add_number(c, " AND r.time >= $%d", f->since);
    if (f->until < INT64_MAX)
        add_number(c, " AND r.time <= $%d", f->until);
    if (f->min_uncertainty > -(double)INFINITY)
        add_real(c, " AND r.uncertainty >= $%d", f->min_uncertainty);
    if (f->max_uncertainty < (double)INFINITY)
        add_real(c, " AND r.uncertainty <= $%d", f->max_uncertainty);
    for (size_t i = 0; i < f->n_tags; i++)
        add_value(c, " AND r.number IN (SELECT t.number FROM tag t WHERE t.tag = $%d)", f->tags[i]);
}

static const char *order_of(pnb_store_order order)
{
    switch (order) {
    case PNB_STORE_NEWEST:
        return "r.number DESC";
    case PNB_STORE_CERTAIN:
        return "r.uncertainty, r.number";
    case PNB_STORE_UNCERTAIN:
        return "r.uncertainty DESC, r.number";
    default:
        return "r.number";
    }
}

pnb_status pnb__pg_numbers(void *self, const pnb__page *page, pnb__number_fn visit, void *user,
                           pnb_error *err)
{
    conditions c = {.n = 0};
    const char *values[PNB_COUNT(c.at)];
    PGresult *result = NULL;
    pnb_status status;
    if (page->filter != NULL && page->filter->n_tags > 64)
        return pnb__fail(err, PNB_ARG, "%zu tags to filter by; at most 64", page->filter->n_tags);
    add_number(&c, "SELECT r.number FROM row r WHERE r.number > $%d", page->after);
    if (page->filter != NULL)
        add_filter(&c, page->filter);
    pnb__buf_printf(&c.sql, " ORDER BY %s", order_of(page->order));
    if (page->limit > 0 && page->limit < INT64_MAX)
        add_number(&c, " LIMIT $%d", (int64_t)page->limit);
    c.values.failed = c.values.failed || c.sql.failed;
    PNB_TRY(pnb__buf_check(&c.values, err));
    for (int i = 0; i < c.n; i++)
        values[i] = c.values.data + c.at[i];
    PNB_TRY(pnb__pg_query(self, c.sql.data, c.n, values, &result, err));
    for (int i = 0; i < pnb__pq.PQntuples(result); i++)
        PNB_TRY(visit(user, number_at(result, i, 0), err));
done:
    pnb__pq.PQclear(result);
    pnb__buf_reset(&c.sql);
    pnb__buf_reset(&c.values);
    return status;
}

#define ROWS_OF                                                                                    \
    "SELECT r.number, r.id, r.path, r.caption, r.extra, r.sha256, r.time, r.added, r.uncertainty," \
    " (SELECT string_agg(t.tag, E'\\n' ORDER BY t.tag COLLATE \"C\") FROM tag t WHERE t.number = " \
    "r.number) FROM unnest($1::%s[]) WITH ORDINALITY AS w(key, at) JOIN row r ON r.%s = w.key "    \
    "ORDER BY w.at"

static pnb_status visit_row(const PGresult *result, int i, pnb__row_fn visit, void *user,
                            pnb_error *err)
{
    char *texts[] = {text_at(result, i, 1), text_at(result, i, 2), text_at(result, i, 3),
                     text_at(result, i, 4), text_at(result, i, 9)};
    for (size_t k = 0; k < PNB_COUNT(texts); k++)
        if (texts[k] != NULL)
            pnb__pg_unescape(texts[k]);
    pnb_store_row row = {.number = number_at(result, i, 0),
                         .id = texts[0],
                         .path = texts[1],
                         .text = texts[2],
                         .extra = texts[3],
                         .tags = texts[4],
                         .time = number_at(result, i, 6),
                         .added = number_at(result, i, 7),
                         .uncertainty = strtod(pnb__pq.PQgetvalue(result, i, 8), NULL)};
    snprintf(row.sha256, sizeof row.sha256, "%s", pnb__pq.PQgetvalue(result, i, 5));
    return visit(user, &row, err);
}

pnb_status pnb__pg_rows(void *self, const pnb__keys *keys, pnb__row_fn visit, void *user,
                        pnb_error *err)
{
    pnb__buf sql = {0}, array = {0};
    PGresult *result = NULL;
    pnb_status status;
    pnb__buf_printf(&sql, ROWS_OF, keys->ids != NULL ? "text" : "bigint",
                    keys->ids != NULL ? "id" : "number");
    if (keys->ids != NULL)
        pnb__pg_text_array(&array, keys->ids, keys->n);
    else
        for (size_t i = 0; i < keys->n; i++)
            pnb__buf_printf(&array, "%c%lld", i > 0 ? ',' : '{', (long long)keys->numbers[i]);
    pnb__buf_puts(&array, keys->ids != NULL ? "" : keys->n > 0 ? "}" : "{}");
    PNB_TRY(pnb__buf_check(&sql, err));
    PNB_TRY(pnb__buf_check(&array, err));
    const char *values[] = {array.data};
    PNB_TRY(pnb__pg_query(self, sql.data, 1, values, &result, err));
    for (int i = 0; i < pnb__pq.PQntuples(result); i++)
        PNB_TRY(visit_row(result, i, visit, user, err));
done:
    pnb__pq.PQclear(result);
    pnb__buf_reset(&sql);
    pnb__buf_reset(&array);
    return status;
}

/* ---- thumbnails ---- */

pnb_status pnb__pg_thumbnail(void *self, int64_t number, pnb__buf *out, bool *has, pnb_error *err)
{
    char text[24];
    const char *values[] = {text};
    size_t bad = 0;
    PGresult *result = NULL;
    snprintf(text, sizeof text, "%lld", (long long)number);
    pnb_status status = pnb__pg_query(self,
                                      "SELECT replace(encode(picture, 'base64'), E'\\n', '') FROM "
                                      "thumbnail WHERE number = $1",
                                      1, values, &result, err);
    *has = status == PNB_OK && pnb__pq.PQntuples(result) > 0;
    if (*has && !pnb__base64_decode(out, pnb__pq.PQgetvalue(result, 0, 0),
                                    (size_t)pnb__pq.PQgetlength(result, 0, 0), &bad))
        status = out->failed ? pnb__fail_nomem(err, 0)
                             : pnb__fail(err, PNB_FORMAT, "Postgres sent no base64");
    pnb__pq.PQclear(result);
    return status;
}

/* ---- checks ---- */

pnb_status pnb__pg_check(void *self, void (*problem)(void *user, const char *text), void *user,
                         pnb_error *err)
{
    static const char *const checks[] = {
        "SELECT 'row ' || r.id || ': no shard holds its number ' || r.number FROM row r WHERE NOT "
        "EXISTS (SELECT 1 FROM shard s WHERE r.number >= s.first AND r.number < s.first + s.n) "
        "LIMIT 10",
        "SELECT 'row ' || r.id || ': its number ' || r.number || ' was removed' FROM row r JOIN "
        "removed USING (number) LIMIT 10",
        "SELECT 'row ' || r.id || ': it has no embedding' FROM row r LEFT JOIN embedding e USING "
        "(number) WHERE e.number IS NULL LIMIT 10",
        "SELECT 'shard ' || file || ': ' || k || ' of its ' || n || ' rows are known, ' || g || ' "
        "removed' FROM (SELECT file, n, (SELECT count(*) FROM row r WHERE r.number >= first AND "
        "r.number < first + n) AS k, (SELECT count(*) FROM removed d WHERE d.number >= first AND "
        "d.number < first + n) AS g FROM shard) AS s WHERE k + g <> n LIMIT 10",
        "SELECT 'shard ' || b.file || ' overlaps the one before' FROM shard a JOIN shard b ON "
        "b.first = (SELECT min(c.first) FROM shard c WHERE c.first > a.first) WHERE a.first + a.n "
        "> b.first LIMIT 10"};
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < PNB_COUNT(checks) && status == PNB_OK; i++) {
        PGresult *result = NULL;
        status = pnb__pg_query(self, checks[i], 0, NULL, &result, err);
        for (int k = 0; status == PNB_OK && k < pnb__pq.PQntuples(result); k++)
            problem(user, pnb__pq.PQgetvalue(result, k, 0));
        pnb__pq.PQclear(result);
    }
    return status;
}
