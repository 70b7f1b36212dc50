/* Files of approximate indexes are read back, and refused when damaged, cut short, or when the rows
 * or the measure are others. */
#include "tests/index/heaps.h"

static void files(void **state)
{
    scratch *s = *state;
    made *m = make();
    pnb_search_opts opts = pnb_search_opts_default();
    pnb_index *again = NULL;
    pnb_error err = PNB_ERROR_INIT;
    for (pnb_index_kind kind = PNB_INDEX_HNSW; kind <= PNB_INDEX_IVF; kind++) {
        pnb_index *index = make_index(m, kind);
        char path[sizeof s->path];
        opts.kind = kind;
        snprintf(path, sizeof path, "%s", scratch_path(s, "index"));
        assert_ok(pnb_index_save(index, NULL, path, &err), &err);
        assert_ok(pnb_index_open(&again, NULL, &m->rows, &opts, path, &err), &err);
        pnb_hits a = search(index, m, NULL), b = search(again, m, NULL);
        assert_memory_equal(a.index, b.index, QUERIES * K * sizeof *a.index);
        pnb_hits_reset(&a);
        pnb_hits_reset(&b);
        pnb_index_free(again);
        pnb_index_free(index);
        /* one number of one row changed; another measure; another kind */
        float kept = m->log_var[N * DIM - 1];
        m->log_var[N * DIM - 1] += 1;
        assert_failed(pnb_index_open(&again, NULL, &m->rows, &opts, path, &err), &err, PNB_ARG,
                      "of other rows");
        m->log_var[N * DIM - 1] = kept;
        pnb_error_reset(&err);
        opts.measure = PNB_MEASURE_MEAN;
        assert_failed(pnb_index_open(&again, NULL, &m->rows, &opts, path, &err), &err, PNB_ARG,
                      "another measure");
        opts.measure = PNB_MEASURE_CSD;
        pnb_error_reset(&err);
        /* damage, and cut short anywhere */
        char *bytes = NULL;
        size_t n = 0;
        assert_ok(pnb__read_file(path, 1 << 24, &bytes, &n, &err), &err);
        bytes[n / 2] ^= 1;
        scratch_file(s, "index", bytes, n);
        assert_failed(pnb_index_open(&again, NULL, &m->rows, &opts, path, &err), &err, PNB_FORMAT,
                      "damaged");
        pnb_error_reset(&err);
        bytes[n / 2] ^= 1;
        for (size_t cut = 0; cut < n; cut += n / 7) {
            scratch_file(s, "index", bytes, cut);
            assert_int_equal(pnb_index_open(&again, NULL, &m->rows, &opts, path, &err), PNB_FORMAT);
            assert_null(again);
            pnb_error_reset(&err);
        }
        pnb__free(bytes);
    }
    free(m);
}

int main(void)
{
    if (pnb__faiss_version() == NULL)
        return without_faiss();
    const struct CMUnitTest tests[] = {cmocka_unit_test(files)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
