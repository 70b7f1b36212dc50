/* Tables of a collection in Postgres, as SQL: docs/collections.md says what they mean.
 *
 * Embeddings are real[] on any server, not compressed: numbers of a network do not get smaller, and
 * trying costs more than the copy. Where the pgvector extension is, a column has the augmented
 * vector (index/augmented.h) with an HNSW index on its inner product. */
#include "sets/embeddings.h"
#include "store/postgres/postgres.h"

enum { MOST_INDEXED = 2000, MOST_DIMENSIONS = 16000 };

void pnb__pg_schema_sql(pnb__buf *out, const char *schema)
{
    pnb__buf_printf(
        out,
        "CREATE SCHEMA %s;"
        "CREATE TABLE %s.fact(name text PRIMARY KEY, value text NOT NULL);"
        "CREATE TABLE %s.shard(first bigint PRIMARY KEY, n bigint NOT NULL, file text NOT NULL);"
        "CREATE TABLE %s.row(number bigint PRIMARY KEY, id text NOT NULL UNIQUE, sha256 text NOT "
        "NULL UNIQUE, path text, caption text, extra text, time bigint NOT NULL, added bigint NOT "
        "NULL, uncertainty double precision NOT NULL);"
        "CREATE INDEX row_time ON %s.row(time);"
        "CREATE INDEX row_uncertainty ON %s.row(uncertainty);"
        "CREATE TABLE %s.tag(tag text NOT NULL, number bigint NOT NULL, PRIMARY KEY(tag, number));"
        "CREATE INDEX tag_number ON %s.tag(number);"
        "CREATE TABLE %s.thumbnail(number bigint PRIMARY KEY, picture bytea NOT NULL);"
        "CREATE TABLE %s.removed(number bigint PRIMARY KEY);"
        "INSERT INTO %s.fact VALUES('version', '1'), ('generation', '0'), ('next', '1');"
        "CREATE TABLE %s.embedding(number bigint PRIMARY KEY",
        schema, schema, schema, schema, schema, schema, schema, schema, schema, schema, schema,
        schema);
    for (int i = 0; i < PNB__N_EMBEDDING_ARRAYS; i++) {
        const pnb__embedding_array *array = pnb__embedding_array_at(i);
        pnb__buf_printf(out, ", %s %s", array->name, array->is_per_row ? "real" : "real[]");
    }
    pnb__buf_puts(out, ");");
    for (int i = 0; i < PNB__N_EMBEDDING_ARRAYS; i++) {
        const pnb__embedding_array *array = pnb__embedding_array_at(i);
        if (!array->is_per_row)
            pnb__buf_printf(out, "ALTER TABLE %s.embedding ALTER %s SET STORAGE EXTERNAL;", schema,
                            array->name);
    }
}

void pnb__pg_vector_sql(pnb__buf *out, size_t width)
{
    if (width > MOST_DIMENSIONS)
        return;
    pnb__buf_printf(out, "ALTER TABLE embedding ADD COLUMN vector vector(%zu)", width);
    if (width <= MOST_INDEXED)
        pnb__buf_puts(out, "; CREATE INDEX embedding_vector ON embedding USING hnsw (vector "
                           "vector_ip_ops)");
}

void pnb__pg_copy_sql(pnb__buf *out, const pnb_embeddings *set, bool has_vector, bool to_server,
                      int64_t first)
{
    pnb__buf_puts(out, to_server ? "COPY embedding(number" : "COPY (SELECT number");
    for (int i = 0; i < PNB__N_EMBEDDING_ARRAYS; i++)
        if (pnb__embedding_has_array(set, i))
            pnb__buf_printf(out, ", %s", pnb__embedding_array_at(i)->name);
    pnb__buf_puts(out, has_vector ? ", vector" : "");
    if (to_server)
        pnb__buf_puts(out, ") FROM STDIN (FORMAT binary)");
    else
        pnb__buf_printf(out,
                        " FROM embedding WHERE number >= %lld AND number < %lld ORDER BY number) "
                        "TO STDOUT (FORMAT binary)",
                        (long long)first, (long long)first + (long long)set->n);
}
