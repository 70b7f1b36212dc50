/* The SQL of a collection, where no server is asked: pgvector's part above all, which Debian's
 * server cannot run. */
#include "tests/sets/made_rows.h"

#include "store/postgres/postgres.h"

static void vectors(void **state)
{
    (void)state;
    pnb__buf sql = {0};
    pnb__pg_vector_sql(&sql, 513);
    assert_string_equal(sql.data,
                        "ALTER TABLE embedding ADD COLUMN vector vector(513); CREATE INDEX "
                        "embedding_vector ON embedding USING hnsw (vector vector_ip_ops)");
    sql.size = 0;
    pnb__pg_vector_sql(&sql, 2001); /* more than its index holds */
    assert_string_equal(sql.data, "ALTER TABLE embedding ADD COLUMN vector vector(2001)");
    sql.size = 0;
    pnb__pg_vector_sql(&sql, 16001); /* more than its type holds */
    assert_int_equal(sql.size, 0);
    pnb__buf_reset(&sql);
}

static void copies(void **state)
{
    (void)state;
    pnb_embeddings *e = rows_from(0, 5);
    pnb__buf sql = {0};
    pnb__pg_copy_sql(&sql, e, true, true, 7);
    assert_string_equal(sql.data, "COPY embedding(number, mean, log_var, vector) FROM STDIN "
                                  "(FORMAT binary)");
    sql.size = 0;
    pnb__pg_copy_sql(&sql, e, false, false, 7);
    assert_string_equal(sql.data,
                        "COPY (SELECT number, mean, log_var FROM embedding WHERE number "
                        ">= 7 AND number < 12 ORDER BY number) TO STDOUT (FORMAT binary)");
    pnb__buf_reset(&sql);
    pnb_embeddings_free(e);
}

static void tables(void **state)
{
    (void)state;
    pnb__buf sql = {0};
    pnb__pg_schema_sql(&sql, "photos");
    assert_false(sql.failed);
    assert_non_null(strstr(sql.data, "CREATE SCHEMA photos;"));
    assert_non_null(strstr(sql.data, "mean real[]"));
    assert_non_null(strstr(sql.data, "kappa real,"));
    assert_non_null(strstr(sql.data, "ALTER log_var SET STORAGE EXTERNAL"));
    pnb__buf_reset(&sql);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(vectors), cmocka_unit_test(copies),
                                       cmocka_unit_test(tables)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
