/* The pool of threads: each part once, callers that share it, parts within parts, a child process,
 * waiting that holds no core, and cores that are not shared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/threads/affinity.h"
#include "base/threads/pool.h"

#define N_PARTS 64

typedef struct visits {
    atomic_int n[N_PARTS];
    atomic_int n_at_once, most_at_once;
    int sleep_us;
} visits;

static void sleep_us(int us)
{
    nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000L}, NULL);
}

static void visit(void *user, int part)
{
    visits *v = user;
    int now = atomic_fetch_add(&v->n_at_once, 1) + 1, most = atomic_load(&v->most_at_once);
    while (now > most && !atomic_compare_exchange_weak(&v->most_at_once, &most, now))
        ;
    if (v->sleep_us > 0)
        sleep_us(v->sleep_us);
    atomic_fetch_add(&v->n[part], 1);
    atomic_fetch_sub(&v->n_at_once, 1);
}

static void expect_visited(visits *v, int n_parts)
{
    for (int i = 0; i < N_PARTS; i++)
        assert_int_equal(atomic_load(&v->n[i]), i < n_parts);
}

static void every_part_once(void **state)
{
    (void)state;
    for (int round = 0; round < 2000; round++) {
        visits v = {.sleep_us = 0};
        int n_parts = round % (N_PARTS + 1);
        pnb__pool_run(n_parts, visit, &v);
        expect_visited(&v, n_parts);
        assert_false(pnb__pool_is_inside());
    }
}

/* Parts that sleep overlap: the caller has help. */
static void parts_run_at_once(void **state)
{
    (void)state;
    visits v = {.sleep_us = 50000};
    pnb__pool_run(4, visit, &v);
    expect_visited(&v, 4);
    assert_true(atomic_load(&v.most_at_once) > 1);
    assert_true(atomic_load(&v.most_at_once) <= 4);
}

typedef struct nest {
    visits inner;
    atomic_int n_inside;
} nest;

static void visit_again(void *user, int part)
{
    nest *n = user;
    (void)part;
    atomic_fetch_add(&n->n_inside, pnb__pool_is_inside());
    pnb__pool_run(5, visit, &n->inner);
}

/* Parts within a part run one after another, on its thread. */
static void parts_within_parts(void **state)
{
    (void)state;
    nest n = {.n_inside = 0};
    pnb__pool_run(3, visit_again, &n);
    assert_int_equal(atomic_load(&n.n_inside), 3);
    for (int i = 0; i < N_PARTS; i++)
        assert_int_equal(atomic_load(&n.inner.n[i]), i < 5 ? 3 : 0);
    assert_false(pnb__pool_is_inside());
}

enum { N_CALLERS = 8, N_JOBS = 500 };

static void *call_often(void *user)
{
    atomic_int *n_wrong = user;
    for (int job = 0; job < N_JOBS; job++) {
        visits v = {.sleep_us = 0};
        int n_parts = 2 + job % 7;
        pnb__pool_run(n_parts, visit, &v);
        for (int i = 0; i < n_parts; i++)
            if (atomic_load(&v.n[i]) != 1)
                atomic_fetch_add(n_wrong, 1);
    }
    return NULL;
}

static void callers_share_it(void **state)
{
    (void)state;
    pthread_t callers[N_CALLERS];
    atomic_int n_wrong = 0;
    for (int i = 0; i < N_CALLERS; i++)
        assert_int_equal(pthread_create(&callers[i], NULL, call_often, &n_wrong), 0);
    for (int i = 0; i < N_CALLERS; i++)
        pthread_join(callers[i], NULL);
    assert_int_equal(atomic_load(&n_wrong), 0);
}

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Short on the caller's thread, long elsewhere. */
static void visit_long_elsewhere(void *user, int part)
{
    const pthread_t *caller = user;
    (void)part;
    sleep_us(pthread_equal(pthread_self(), *caller) ? 10000 : 300000);
}

/* Neither the threads without work nor a caller whose last part is elsewhere keep a core busy. On a
 * crowded machine they never do, so each round begins when the pool has forgotten the last one. */
static void those_who_wait_sleep(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) {
        visits v = {.sleep_us = 0};
        pthread_t caller = pthread_self();
        sleep_us(150000);
        pnb__pool_run(2, visit, &v);
        double before = cpu_seconds();
        sleep_us(300000);
        assert_true(cpu_seconds() - before < 0.1);
        before = cpu_seconds();
        pnb__pool_run(2, visit_long_elsewhere, &caller);
        assert_true(cpu_seconds() - before < 0.1);
    }
}

#if defined __SANITIZE_THREAD__
#define HAS_TSAN 1
#elif defined __has_feature
#if __has_feature(thread_sanitizer)
#define HAS_TSAN 1
#endif
#endif

/* A child process has none of its parent's threads, and works. ThreadSanitizer allows no threads
 * after a fork of several. */
static void children_work(void **state)
{
    (void)state;
#ifdef HAS_TSAN
    skip();
#endif
    visits v = {.sleep_us = 0};
    pnb__pool_run(4, visit, &v);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        visits own = {.sleep_us = 50000};
        pnb__pool_run(4, visit, &own);
        int n = atomic_load(&own.most_at_once) > 1 ? 0 : -1;
        for (int i = 0; i < 4; i++)
            n += atomic_load(&own.n[i]);
        _exit(n == 4 ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void look_at_signals(void *user, int part)
{
    sigset_t blocked;
    int *is_blocked = user;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    is_blocked[part] = sigismember(&blocked, SIGINT);
    sleep_us(50000);
}

/* Ctrl-C comes to the caller's thread, not to the pool's. */
static void signals_are_the_callers(void **state)
{
    (void)state;
    int is_blocked[3] = {0}, n = 0;
    pnb__pool_run(3, look_at_signals, is_blocked);
    for (int i = 0; i < 3; i++)
        n += is_blocked[i];
    assert_true(n > 0 && n < 3);
}

static void *compute_always(void *user)
{
    const atomic_bool *is_over = user;
    while (!atomic_load(is_over))
        ;
    return NULL;
}

typedef struct place {
    int ms; /* of computing: so long that threads on one processor all come to it */
    pthread_t caller;
    atomic_int callers, others; /* processors; -1: the part was not begun there */
} place;

static void compute_somewhere(void *user, int part)
{
    place *p = user;
    (void)part;
    bool is_caller = pthread_equal(pthread_self(), p->caller);
    atomic_store(is_caller ? &p->callers : &p->others, sched_getcpu());
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec <
           p->ms * 1000000L);
}

static cpu_set_t only(size_t processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    return set;
}

/* The caller's and the pool's thread are driven together onto one processor while something else
 * computes on the other: at the next job the pool's goes there. Left to the system, most parts
 * begin where the caller computes. */
static void threads_share_no_processor(void **state)
{
    (void)state;
    enum { TRIES = 20 };
    cpu_set_t before, two;
    size_t n = 0, at[2];
    assert_true(pnb__affinity_get(&before));
    for (size_t i = 0; i < CPU_SETSIZE && n < 2; i++)
        if (CPU_ISSET(i, &before))
            at[n++] = i;
    if (n < 2)
        skip(); /* one processor */
    atomic_bool is_over = false;
    pthread_t neighbour;
    assert_int_equal(pthread_create(&neighbour, NULL, compute_always, &is_over), 0);
    int n_apart = 0, n_helped = 0;
    for (int i = 0; i < TRIES; i++) {
        cpu_set_t first = only(at[0]), second = only(at[1]);
        place p = {.caller = pthread_self(), .callers = -1, .others = -1, .ms = 5};
        assert_true(pnb__affinity_keep_process(&first));
        assert_int_equal(pthread_setaffinity_np(neighbour, sizeof second, &second), 0);
        pnb__pool_run(2, compute_somewhere, &p);
        CPU_OR(&two, &first, &second);
        assert_true(pnb__affinity_keep_process(&two));
        assert_int_equal(pthread_setaffinity_np(neighbour, sizeof second, &second), 0);
        atomic_store(&p.others, -1);
        p.ms = 40;
        pnb__pool_run(2, compute_somewhere, &p);
        n_helped += atomic_load(&p.others) >= 0;
        n_apart += atomic_load(&p.others) >= 0 && atomic_load(&p.others) != atomic_load(&p.callers);
    }
    atomic_store(&is_over, true);
    pthread_join(neighbour, NULL);
    assert_true(pnb__affinity_keep_process(&before));
    assert_true(pnb__affinity_is_shared(&before));
    assert_true(n_helped >= TRIES - 2);
    assert_true(n_apart >= TRIES - 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_part_once),         cmocka_unit_test(parts_run_at_once),
        cmocka_unit_test(parts_within_parts),      cmocka_unit_test(callers_share_it),
        cmocka_unit_test(those_who_wait_sleep),    cmocka_unit_test(children_work),
        cmocka_unit_test(signals_are_the_callers), cmocka_unit_test(threads_share_no_processor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
