/* Parquet tables: whatever stands in a footer or a page, every column can be asked for, rows come
 * in order and no more of them than there are, and a single row is the row of the whole. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "io/tables/parquet/parquet_rows.h"
#include "tests/fuzz/folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct seen {
    size_t next, n_rows, sum;
} seen;

static pnb_status look(void *user, size_t row, const pnb__parquet_value *v, pnb_error *err)
{
    seen *s = user;
    (void)err;
    if (row != s->next++ || row >= s->n_rows)
        abort();
    for (size_t i = 0; v->kind == PNB__PARQUET_BYTES && i < v->n_bytes; i++)
        s->sum += v->bytes[i];
    return PNB_OK;
}

static void read_rows(const pnb__parquet *p, size_t leaf)
{
    pnb__parquet_rows rows = {0};
    pnb__parquet_kept *kept = NULL;
    pnb_error err = PNB_ERROR_INIT;
    pnb_status status = pnb__parquet_kept_create(&kept, 1 << 12, &err);
    if (status == PNB_OK)
        status = pnb__parquet_rows_open(&rows, p, leaf, kept, &err);
    REQUIRE_TOLD(status, err);
    for (size_t row = 0; status == PNB_OK && row < p->n_rows && row < 8; row++) {
        pnb__buf out = {0};
        bool found = false;
        pnb_error why = PNB_ERROR_INIT;
        pnb_status got = pnb__parquet_row(&rows, row, &out, &found, &why);
        REQUIRE_TOLD(got, why);
        pnb__buf_reset(&out);
    }
    pnb__parquet_kept_free(kept);
    pnb__parquet_rows_close(&rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pnb__parquet p;
    pnb_error err = PNB_ERROR_INIT;
    pnb_status status = pnb__parquet_open(&p, data, size, "table", &err);
    REQUIRE_TOLD(status, err);
    for (size_t leaf = 0; status == PNB_OK && leaf < p.n_leaves && leaf < 32; leaf++) {
        for (size_t g = 0; g < p.n_groups && g < 8; g++) {
            seen s = {.n_rows = p.groups[g].n_rows};
            pnb_error why = PNB_ERROR_INIT;
            pnb_status got = pnb__parquet_read(&p, g, leaf, look, &s, &why);
            REQUIRE_TOLD(got, why);
        }
        read_rows(&p, leaf);
    }
    if (status == PNB_OK)
        pnb__parquet_close(&p);
    return 0;
}
