/* Ranks that do not find each other: one that never comes, nobody there, another job, strangers. */
#include "tests/peers/together.h"

/* Rank 0 waits for one that never comes, and names it; one that comes to nobody says where. */
static void test_missing(void **state)
{
    pnb_launch l = {PNB_LAUNCH_TCP, 0, 2, 2, "127.0.0.1", free_port()};
    pnb_peers *r = NULL;
    pnb_error e = PNB_ERROR_INIT, e2 = PNB_ERROR_INIT;
    (void)state;
    assert_int_equal(pnb_peers_open(&r, &l, 0.2, NULL, &e), PNB_IO);
    assert_non_null(strstr(e.text, "rank 1 of 2 did not come"));
    l.rank = 1;
    assert_int_equal(pnb_peers_open(&r, &l, 0.2, NULL, &e2), PNB_NOT_FOUND);
    assert_non_null(strstr(e2.text, "does not answer"));
    assert_null(r);
}

/* Whoever waits hears Ctrl-C: rank 0 for one that never comes, another one for rank 0, and a rank
 * that has called for the list of all. */
static volatile sig_atomic_t stop;

static void on_alarm(int number)
{
    (void)number;
    stop = 1;
}

static void expect_stopped(const pnb_launch *l)
{
    pnb_peers *r = NULL;
    pnb_error e = PNB_ERROR_INIT;
    double begin = pnb__now_s();
    stop = 0;
    alarm(1);
    assert_int_equal(pnb_peers_open(&r, l, 60, &stop, &e), PNB_INTERRUPTED);
    assert_true(pnb__now_s() - begin < 10);
    assert_non_null(strstr(e.text, "still waited for the others"));
    assert_null(r);
}

static void test_interrupted(void **state)
{
    pnb_launch l = {PNB_LAUNCH_TCP, 0, 3, 3, "127.0.0.1", free_port()};
    const struct sigaction action = {.sa_handler = on_alarm};
    (void)state;
    sigaction(SIGALRM, &action, NULL);
    expect_stopped(&l);
    l.rank = 1;
    expect_stopped(&l);
    pid_t pid = fork(); /* a rank 0 that waits for rank 2 */
    assert_true(pid >= 0);
    if (pid == 0) {
        pnb_peers *r = NULL;
        l.rank = 0;
        _exit(pnb_peers_open(&r, &l, 3, NULL, NULL) == PNB_IO ? 0 : 1);
    }
    int how = 0;
    expect_stopped(&l);
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_int_equal(how, 0);
}

/* A caller that is no rank is hung up on, and the meeting goes on. */
static int nothing(pnb_peers *r)
{
    return pnb_peers_agree(r, PNB_OK, NULL) == PNB_OK ? 0 : 1;
}

static void test_stranger(void **state)
{
    int port = free_port();
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        pnb_launch l = {PNB_LAUNCH_TCP, 0, 2, 2, "127.0.0.1", port};
        _exit(play(&l, 20, nothing));
    }
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    static const char request[] = "GET / HTTP/1.1\r\nHost: somewhere\r\n\r\n";
    int s = socket(AF_INET, SOCK_STREAM, 0), how = 0;
    while (connect(s, (struct sockaddr *)&a, sizeof a) != 0)
        usleep(1000);
    assert_int_equal(send(s, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    pnb_launch l = {PNB_LAUNCH_TCP, 1, 2, 2, "127.0.0.1", port};
    assert_int_equal(play(&l, 20, nothing), 0);
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_int_equal(how, 0);
    close(s);
}

/* A rank of a job of another size is a mistake that would train something else. */
static void test_other_job(void **state)
{
    int port = free_port(), how = 0;
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        pnb_launch l = {PNB_LAUNCH_TCP, 1, 3, 3, "127.0.0.1", port};
        pnb_peers *r = NULL;
        _exit(pnb_peers_open(&r, &l, 5, NULL, NULL) == PNB_IO ? 0 : 1);
    }
    pnb_launch l = {PNB_LAUNCH_TCP, 0, 2, 2, "127.0.0.1", port};
    pnb_peers *r = NULL;
    pnb_error e = PNB_ERROR_INIT;
    assert_int_equal(pnb_peers_open(&r, &l, 5, NULL, &e), PNB_ARG);
    assert_non_null(strstr(e.text, "a rank 1 of 3 called"));
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_int_equal(how, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_interrupted),
        cmocka_unit_test(test_stranger),
        cmocka_unit_test(test_other_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
