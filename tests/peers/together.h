/* R processes of one test, tied by sockets on this machine: children of the test, which is none of
 * them. */
#ifndef PNB_TESTS_PEERS_TOGETHER_H
#define PNB_TESTS_PEERS_TOGETHER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peers/peers.h"
#include "peers/wire.h"

/* Fails the test with the error's text unless `call`, which fills `err`, returns PNB_OK. */
#define ASSERT_OK(call)                                                                            \
    do {                                                                                           \
        pnb_error err = PNB_ERROR_INIT;                                                            \
        if ((call) != PNB_OK)                                                                      \
            fail_msg("%s", err.text);                                                              \
    } while (0)

/* What a rank does; what it returns is its exit status, 0 if all is well. */
typedef int (*part_fn)(pnb_peers *r);

/* A port that nobody listens at now. */
static inline int free_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int s = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(s, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(getsockname(s, (struct sockaddr *)&a, &n), 0);
    close(s);
    return ntohs(a.sin_port);
}

static inline int play(const pnb_launch *l, double timeout_s, part_fn part)
{
    pnb_peers *r = NULL;
    pnb_error e = PNB_ERROR_INIT;
    if (pnb_peers_open(&r, l, timeout_s, NULL, &e) != PNB_OK) {
        fprintf(stderr, "rank %zu: %s\n", l->rank, e.text);
        return 99;
    }
    int status = part(r);
    pnb_peers_close(r);
    return status;
}

/* Runs `part` as n ranks; statuses (n), where not NULL, gets how each ended (128 + signal). */
static inline void play_together(size_t n, double timeout_s, part_fn part, int *statuses)
{
    enum { MOST = 16 };
    pid_t pids[MOST];
    int port = free_port();
    assert_true(n <= MOST);
    for (size_t p = 0; p < n; p++) {
        pnb_launch l = {PNB_LAUNCH_TCP, p, n, n, "127.0.0.1", port};
        pids[p] = fork();
        assert_true(pids[p] >= 0);
        if (pids[p] == 0)
            _exit(play(&l, timeout_s, part));
    }
    for (size_t p = 0; p < n; p++) {
        int how = 0;
        assert_int_equal(waitpid(pids[p], &how, 0), pids[p]);
        int status = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
        if (statuses != NULL)
            statuses[p] = status;
        else if (status != 0)
            fail_msg("rank %zu of %zu ended with %d", p, n, status);
    }
}

#endif
