/* One pool of threads for the process, whoever asks: callers post jobs of a few parts, and they and
 * the pool's threads take parts until none is left.
 *
 * What it is for is a machine with others on it. A caller never waits for a part that nobody has
 * begun (it does that part itself), only for parts in work. Waiting is a short spin, because the
 * next job mostly comes within microseconds, and then sleep, because on a crowded machine a thread
 * that spins holds a core which the thread it waits for could have. Nobody can be told how crowded
 * a machine is; a spinning thread sees it: its clock jumps when another process had its core.
 *
 * Where others compute all the time, no core is idle when a thread wakes, and it stays on the core
 * on which it slept, be it that of its caller: the two then share one core while the other process
 * has its own, until the system's next balancing, which is tens of milliseconds away. So a thread
 * of the pool that comes for work on a core where another one computes moves to a core of its own.
 */
#include "base/threads/pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "base/threads/affinity.h"

#define SPIN_FOR_WORK_NS 200000  /* the pool's threads, between two jobs */
#define SPIN_FOR_END_NS 50000    /* a caller, for parts in work elsewhere */
#define SPIN_CROWDED_NS 2000     /* either, on a crowded machine */
#define JUMP_NS 50000            /* between two looks at the clock that are a microsecond apart */
#define CROWDED_FOR_NS 100000000 /* what was seen holds so long */
#define PAUSES_PER_LOOK 16
#define MOVE_EVERY_NS 4000000 /* a process of that kind is there for longer */

typedef struct job {
    pnb__part_fn fn;
    void *user;
    int n_parts, next; /* under the lock */
    atomic_int n_open; /* parts not ended yet: changed under the lock, read anywhere */
    bool is_awaited;   /* the caller sleeps on `ended` */
    pthread_cond_t ended;
    struct job *link;
} job;

/* The one variable of the library that can change: threads belong to the process. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t work;
    job *first, *last;               /* with parts that nobody has taken */
    atomic_int n_jobs;               /* of that list */
    int n_threads, n_idle, n_asleep; /* those asleep are idle too, the other idle ones spin */
    int n_processors;                /* 0 before the first job */
    pthread_once_t watches_forks;
    _Atomic int64_t crowded_until;
    int n_on[CPU_SETSIZE]; /* threads that compute, by the processor on which each began */
    int64_t next_move;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .work = PTHREAD_COND_INITIALIZER,
          .watches_forks = PTHREAD_ONCE_INIT};

static _Thread_local bool is_inside;

bool pnb__pool_is_inside(void)
{
    return is_inside;
}

/* ---- waiting ---- */

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void pause_once(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Whether *value became zero (or, `!zero`, something else) before the time was over. */
static bool spin(atomic_int *value, bool zero, int64_t budget_ns)
{
    int64_t begin = now_ns(), before = begin;
    if (begin < atomic_load_explicit(&pool.crowded_until, memory_order_relaxed))
        budget_ns = SPIN_CROWDED_NS;
    for (;;) {
        for (int i = 0; i < PAUSES_PER_LOOK; i++) {
            if ((atomic_load_explicit(value, memory_order_acquire) == 0) == zero)
                return true;
            pause_once();
        }
        int64_t now = now_ns();
        if (now - before > JUMP_NS)
            atomic_store_explicit(&pool.crowded_until, now + CROWDED_FOR_NS, memory_order_relaxed);
        if (now - begin > budget_ns)
            return false;
        before = now;
    }
}

/* ---- parts ---- */

static void unlink_job(const job *j)
{
    job **at = &pool.first, *before = NULL;
    while (*at != j) {
        before = *at;
        at = &before->link;
    }
    *at = j->link;
    if (pool.last == j)
        pool.last = before;
    atomic_fetch_sub(&pool.n_jobs, 1);
}

/* The calling thread's, or -1 beyond those that are counted. */
static int this_processor(void)
{
    int number = sched_getcpu();
    return number < CPU_SETSIZE ? number : -1;
}

/* Called and left with the lock held, which is given up meanwhile. */
static void move_apart(void)
{
    int here = this_processor();
    if (here < 0 || pool.n_on[here] == 0)
        return;
    int64_t now = now_ns();
    if (now < pool.next_move)
        return;
    pool.next_move = now + MOVE_EVERY_NS;
    cpu_set_t taken;
    CPU_ZERO(&taken);
    for (size_t i = 0; i < CPU_SETSIZE; i++)
        if (pool.n_on[i] > 0)
            CPU_SET(i, &taken);
    pthread_mutex_unlock(&pool.lock);
    pnb__affinity_leave(&taken);
    pthread_mutex_lock(&pool.lock);
}

/* Called and left with the lock held. Once the last part has ended the caller of *j may return, and
 * *j with it, as soon as the lock is given up. */
static void take_parts(job *j)
{
    int here = this_processor();
    if (here >= 0)
        pool.n_on[here]++;
    while (j->next < j->n_parts) {
        int part = j->next++;
        if (j->next == j->n_parts)
            unlink_job(j);
        pthread_mutex_unlock(&pool.lock);
        is_inside = true;
        j->fn(j->user, part);
        is_inside = false;
        pthread_mutex_lock(&pool.lock);
        if (atomic_fetch_sub(&j->n_open, 1) == 1 && j->is_awaited)
            pthread_cond_signal(&j->ended);
    }
    if (here >= 0)
        pool.n_on[here]--;
}

static void wait_for_work(void)
{
    pthread_mutex_unlock(&pool.lock);
    spin(&pool.n_jobs, false, SPIN_FOR_WORK_NS);
    pthread_mutex_lock(&pool.lock);
    while (pool.first == NULL) {
        pool.n_asleep++;
        pthread_cond_wait(&pool.work, &pool.lock);
        pool.n_asleep--;
    }
}

static void *serve(void *unused)
{
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        if (pool.first == NULL)
            wait_for_work();
        pool.n_idle--;
        move_apart();
        if (pool.first != NULL)
            take_parts(pool.first);
        pool.n_idle++;
    }
    return unused;
}

/* ---- threads ---- */

/* A child has its parent's memory and none of its threads. */
static void before_fork(void)
{
    pthread_mutex_lock(&pool.lock);
}

static void after_fork_parent(void)
{
    pthread_mutex_unlock(&pool.lock);
}

static void after_fork_child(void)
{
    pool.first = pool.last = NULL;
    atomic_store(&pool.n_jobs, 0);
    pool.n_threads = pool.n_idle = pool.n_asleep = 0;
    memset(pool.n_on, 0, sizeof pool.n_on);
    pthread_cond_init(&pool.work, NULL);
    pthread_mutex_init(&pool.lock, NULL);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

/* The pool's threads handle no signals, so that Ctrl-C reaches the program's own. A thread that
 * cannot be started is done without. */
static void start_threads(int n)
{
    pthread_once(&pool.watches_forks, watch_forks);
    sigset_t all, before;
    pthread_attr_t detached;
    sigfillset(&all);
    sigdelset(&all, SIGBUS); /* is of who reads a mapped file */
    if (pthread_attr_init(&detached) != 0)
        return;
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int i = 0; i < n; i++) {
        pthread_t thread;
        if (pthread_create(&thread, &detached, serve, NULL) != 0)
            break;
        pool.n_threads++;
        pool.n_idle++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&detached);
}

/* Callers at the same time share the processors: threads for all of them at once are started up to
 * the number of processors only, or what the largest job can use. */
static void have_threads(int n_helpers)
{
    if (pool.n_processors == 0)
        pool.n_processors = pnb__n_processors();
    int missing = n_helpers - pool.n_idle;
    int room = PNB_MAX(pool.n_processors - 1, n_helpers) - pool.n_threads;
    if (missing > 0 && room > 0)
        start_threads(PNB_MIN(missing, room));
}

/* ---- jobs ---- */

static void post(job *j)
{
    have_threads(j->n_parts - 1);
    if (pool.last != NULL)
        pool.last->link = j;
    else
        pool.first = j;
    pool.last = j;
    atomic_fetch_add(&pool.n_jobs, 1);
    int n_spinning = pool.n_idle - pool.n_asleep;
    for (int i = PNB_MIN(pool.n_asleep, j->n_parts - 1 - n_spinning); i > 0; i--)
        pthread_cond_signal(&pool.work);
}

/* With the lock held, which also says that nobody looks at *j any more. */
static void await_end(job *j)
{
    if (atomic_load(&j->n_open) == 0)
        return;
    pthread_mutex_unlock(&pool.lock);
    spin(&j->n_open, true, SPIN_FOR_END_NS);
    pthread_mutex_lock(&pool.lock);
    while (atomic_load(&j->n_open) > 0) {
        j->is_awaited = true;
        pthread_cond_wait(&j->ended, &pool.lock);
    }
}

void pnb__pool_run(int n_parts, pnb__part_fn fn, void *user)
{
    if (n_parts <= 1 || is_inside) {
        for (int part = 0; part < n_parts; part++)
            fn(user, part);
        return;
    }
    job j = {.fn = fn, .user = user, .n_parts = n_parts, .ended = PTHREAD_COND_INITIALIZER};
    atomic_init(&j.n_open, n_parts);
    pthread_mutex_lock(&pool.lock);
    post(&j);
    take_parts(&j);
    await_end(&j);
    pthread_mutex_unlock(&pool.lock);
    pthread_cond_destroy(&j.ended);
}
