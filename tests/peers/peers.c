/* How ranks end together: one that fails, several at once, one that is killed. */
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

/* Rank 1 cannot go on while the others wait for it in a sum. */
static int one_fails(pnb_peers *r)
{
    pnb_error e = PNB_ERROR_INIT;
    pnb_status status = work(r, &e);
    if (pnb_peers_rank(r) == 1) {
        status = pnb_peers_agree(r, pnb__fail(&e, PNB_NOT_FOUND, "x.tar is gone"), &e);
        if (pnb_peers_agree(r, PNB_OK, &e) == PNB_OK) /* a failure stays */
            return 1;
    } else {
        status = work(r, &e);
    }
    return outcome(r, status, PNB_NOT_FOUND, &e, "rank 1: x.tar is gone");
}

static int all_fail(pnb_peers *r)
{
    pnb_error e = PNB_ERROR_INIT;
    pnb_status status = pnb_peers_agree(r, pnb__fail(&e, PNB_ARG, "wrong"), &e);
    return outcome(r, status, PNB_ARG, &e, "rank 0: wrong");
}

static int last_is_killed(pnb_peers *r)
{
    pnb_error e = PNB_ERROR_INIT;
    if (pnb_peers_rank(r) == pnb_peers_count(r) - 1)
        raise(SIGKILL);
    return outcome(r, work(r, &e), PNB_IO, &e, "rank 2: its process is gone");
}

static int first_is_killed(pnb_peers *r)
{
    pnb_error e = PNB_ERROR_INIT;
    if (pnb_peers_rank(r) == 0)
        raise(SIGKILL);
    return outcome(r, work(r, &e), PNB_IO, &e, "rank 0: its process is gone");
}

static void expect(part_fn part, double timeout_s, const int wanted[3])
{
    int got[3];
    play_together(3, timeout_s, part, got);
    for (int p = 0; p < 3; p++)
        assert_int_equal(got[p], wanted[p]);
}

static void test_one_fails(void **state)
{
    (void)state;
    expect(one_fails, 20, (const int[]){QUIET, SPEAKS, QUIET});
}

static void test_all_fail(void **state)
{
    (void)state;
    expect(all_fail, 20, (const int[]){SPEAKS, QUIET, QUIET});
}

static void test_killed(void **state)
{
    (void)state;
    expect(last_is_killed, 20, (const int[]){SPEAKS, QUIET, 128 + SIGKILL});
    expect(first_is_killed, 20, (const int[]){128 + SIGKILL, SPEAKS, QUIET});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_fails),
        cmocka_unit_test(test_all_fail),
        cmocka_unit_test(test_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
