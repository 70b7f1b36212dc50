/* A journal that several processes write: what each has finished is taken up in one list, whoever
 * goes on; what has changed is made again, and what follows it only where rows hang together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "encode/job/embed_journal.h"

enum { N = 11, BATCH = 2 };
static size_t changed = N; /* an input that was replaced since */

static uint64_t stamp(void *user, size_t begin, size_t end)
{
    (void)user;
    return changed >= begin && changed < end ? 1 : 2;
}

static pnb__embed_job_key key_of(bool in_order)
{
    return (pnb__embed_job_key){
        .signature = "job", .n_inputs = N, .batch = BATCH, .in_order = in_order, .stamp = stamp};
}

static void add(pnb__embed_journal *j, size_t begin, size_t end)
{
    pnb_embeddings *set = NULL;
    const pnb__embed_part part = {
        .begin = begin, .end = end, .n_truncated = 1, .stamp = stamp(NULL, begin, end)};
    assert_int_equal(pnb_embeddings_create(&set, PNB_POINT, end - begin - 1, 1, NULL), PNB_OK);
    for (size_t i = 0; i < set->n; i++)
        set->mean[i] = 1.0F;
    assert_int_equal(pnb__embed_journal_skip(j, end - 1, "not read", NULL), PNB_OK);
    assert_int_equal(pnb__embed_journal_add(j, set, &part, NULL), PNB_OK);
    pnb_embeddings_free(set);
}

/* Three writers, each with a part or two; the last one with a line that was cut short. */
static void leave_parts(const char *out)
{
    const pnb__embed_job_key key = key_of(false);
    pnb__embed_journal a, b, c;
    changed = N;
    assert_int_equal(pnb__embed_journal_open(&a, out, &key, NULL), PNB_OK);
    assert_int_equal(pnb__embed_journal_join(&b, out, 1, NULL), PNB_OK);
    assert_int_equal(pnb__embed_journal_join(&c, out, 2, NULL), PNB_OK);
    add(&b, 6, 8);
    add(&a, 0, 2);
    add(&c, 8, N);
    add(&a, 2, 6);
    pnb__embed_journal_close(&c, false);
    pnb__embed_journal_close(&b, true); /* not its folder */
    pnb__embed_journal_close(&a, false);
}

static void is_one_list(const char *out, size_t n)
{
    char path[200];
    char *text = NULL;
    size_t size = 0, lines = 0;
    snprintf(path, sizeof path, "%s.journal/parts-1.jsonl", out);
    assert_false(pnb__path_is_file(path));
    snprintf(path, sizeof path, "%s.journal/parts.jsonl", out);
    assert_int_equal(pnb__read_file(path, 1 << 20, &text, &size, NULL), PNB_OK);
    for (size_t i = 0; i < size; i++)
        lines += text[i] == '\n';
    assert_int_equal(lines, n);
    pnb__free(text);
}

static void others_are_taken_up(void **state)
{
    const char *out = *state;
    pnb__embed_job_key key = key_of(true);
    pnb__embed_journal j;
    leave_parts(out);
    assert_int_equal(pnb__embed_journal_open(&j, out, &key, NULL), PNB_OK);
    assert_int_equal(j.n_parts, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(j.parts[i].begin, i > 0 ? j.parts[i - 1].end : 0);
        assert_int_equal(j.parts[i].n_skips, 1);
        assert_int_equal(j.parts[i].skips[0].input, j.parts[i].end - 1);
        assert_int_equal(j.parts[i].n_truncated, 1);
    }
    is_one_list(out, 4);
    pnb__embed_journal_close(&j, false);
    changed = 7; /* the part of it alone */
    key.in_order = false;
    assert_int_equal(pnb__embed_journal_open(&j, out, &key, NULL), PNB_OK);
    assert_int_equal(j.n_parts, 3);
    assert_int_equal(j.parts[2].begin, 8);
    is_one_list(out, 3);
    add(&j, 6, 8);
    assert_int_equal(j.parts[2].begin, 6); /* in its place */
    pnb__embed_journal_close(&j, true);
    leave_parts(out);
    changed = 1; /* rows that hang together: nothing holds */
    key.in_order = true;
    assert_int_equal(pnb__embed_journal_open(&j, out, &key, NULL), PNB_OK);
    assert_int_equal(j.n_parts, 0);
    pnb__embed_journal_close(&j, true);
}

static void what_others_finish_is_collected(void **state)
{
    const char *out = *state;
    const pnb__embed_job_key key = key_of(false);
    pnb__embed_journal a, b;
    changed = N;
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb__embed_journal_join(&b, "/nowhere/o", 1, &err), PNB_NOT_FOUND);
    assert_non_null(strstr(err.text, "/nowhere/o.journal, which rank 0 has made"));
    pnb__embed_journal_close(&b, false);
    assert_int_equal(pnb__embed_journal_open(&a, out, &key, NULL), PNB_OK);
    assert_int_equal(pnb__embed_journal_join(&b, out, 1, NULL), PNB_OK);
    add(&b, 0, 4);
    add(&a, 4, N);
    assert_int_equal(pnb__embed_journal_collect(&a, &key, 3, NULL), PNB_OK);
    assert_int_equal(a.n_parts, 2);
    assert_int_equal(a.parts[0].end, 4);
    pnb__embed_journal_close(&b, false);
    pnb__embed_journal_close(&a, true);
    char path[200];
    snprintf(path, sizeof path, "%s.journal", out);
    assert_false(pnb__path_is_dir(path));
}

/* Cut somewhere else, above another, beyond the inputs: of another job, whatever it says. */
static void strange_lines_are_dropped(void **state)
{
    const char
        *out = *state,
        *lines =
            "{\"begin\":1,\"end\":2,\"rows\":0,\"truncated\":0,\"inputs\":\"2\",\"skipped\":[]}\n"
            "{\"begin\":0,\"end\":3,\"rows\":0,\"truncated\":0,\"inputs\":\"2\",\"skipped\":[]}\n"
            "{\"begin\":4,\"end\":4,\"rows\":0,\"truncated\":0,\"inputs\":\"2\",\"skipped\":[]}\n"
            "{\"begin\":10,\"end\":12,\"rows\":0,\"truncated\":0,\"inputs\":\"2\",\"skipped\":[]}\n"
            "{\"begin\":4,\"end\":6,\"rows\":3,\"part\":\"part-00004.safetensors\",\"truncated\":0,"
            "\"inputs\":\"2\",\"skipped\":[]}\n"
            "{\"begin\":8,\"end\":10,\"rows\":0,\"truncated\":0,\"inputs\":\"2\",\"skipped\":[{"
            "\"input\":7,"
            "\"why\":\"x\"},{\"input\":9,\"why\":\"y\"}]}\n"
            "{\"begin\":8,\"end\":11,\"rows\":0,\"truncated\":0,\"inputs\":\"2\",\"skipped\":[]}\n";
    const pnb__embed_job_key key = key_of(false);
    pnb__embed_journal j;
    char path[200];
    changed = N;
    assert_int_equal(pnb__embed_journal_open(&j, out, &key, NULL), PNB_OK);
    snprintf(path, sizeof path, "%s/parts.jsonl", j.dir);
    assert_int_equal(pnb__write_file(path, lines, strlen(lines), NULL), PNB_OK);
    pnb__embed_journal_close(&j, false);
    assert_int_equal(pnb__embed_journal_open(&j, out, &key, NULL), PNB_OK);
    assert_int_equal(j.n_parts, 1);
    assert_int_equal(j.parts[0].begin, 8);
    assert_int_equal(j.parts[0].n_skips, 1);
    is_one_list(out, 1);
    pnb__embed_journal_close(&j, true);
}

static char dir[] = "/tmp/pnb_journal_XXXXXX";

static int make_dir(void **state)
{
    static char out[64];
    if (mkdtemp(dir) == NULL)
        return 1;
    snprintf(out, sizeof out, "%s/o.safetensors", dir);
    *state = out;
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    return remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(others_are_taken_up),
                                       cmocka_unit_test(what_others_finish_is_collected),
                                       cmocka_unit_test(strange_lines_are_dropped)};
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
