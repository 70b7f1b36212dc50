/* Trades over sockets that do not go well: one that hangs, one that does something else. */
#include "tests/peers/together.h"

enum { SPEAKS = 40, QUIET = 41 };

/* The exit status says who speaks; a wrong text or status is neither. */
static int outcome(pnb_peers *r, pnb_status status, pnb_status wanted, const pnb_error *e,
                   const char *text)
{
    if (status != wanted || strstr(e->text, text) == NULL) {
        fprintf(stderr, "rank %zu: %s \"%s\", not \"%s\"\n", pnb_peers_rank(r),
                pnb_status_name(status), e->text, text);
        return 1;
    }
    return pnb_peers_is_speaker(r) ? SPEAKS : QUIET;
}

static pnb_status work(pnb_peers *r, pnb_error *e)
{
    static float data[100000];
    return pnb__peers_sum(r, data, PNB_COUNT(data), false, NULL, e);
}

/* Longer than the others wait, and shorter than they would wait for its end. */
static int one_hangs(pnb_peers *r)
{
    pnb_error e = PNB_ERROR_INIT;
    if (pnb_peers_rank(r) == 1) { /* what it hears when it wakes may have been cut off */
        sleep(3);
        return work(r, &e) != PNB_OK ? QUIET : 1;
    }
    return outcome(r, work(r, &e), PNB_IO, &e, "rank 1: nothing came from it for 1 s");
}

static int one_strays(pnb_peers *r)
{
    pnb_error e = PNB_ERROR_INIT;
    float few[10] = {0};
    pnb_status status =
        pnb_peers_rank(r) == 2 ? pnb__peers_sum(r, few, 10, false, NULL, &e) : work(r, &e);
    return status == PNB_FORMAT && strstr(e.text, "peers/ do not do the same") != NULL ? 0 : 1;
}

static void expect(part_fn part, double timeout_s, const int wanted[3])
{
    int got[3];
    play_together(3, timeout_s, part, got);
    for (int p = 0; p < 3; p++)
        assert_int_equal(got[p], wanted[p]);
}

static void test_hanging(void **state)
{
    (void)state;
    expect(one_hangs, 1, (const int[]){SPEAKS, QUIET, QUIET});
}

static void test_straying(void **state)
{
    int got[3];
    (void)state;
    play_together(3, 20, one_strays, got);
    assert_int_equal(got[0], 0);
    assert_int_equal(got[1], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hanging),
        cmocka_unit_test(test_straying),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
