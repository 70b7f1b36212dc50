/* A file that is cut short under many threads that read it: zeros for all of them, told of once,
 * and counted before anybody has seen one. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/lost_pages.c"

enum { N_THREADS = 8, N_PAGES = 64, N_ROUNDS = 20 };

typedef struct reading {
    pthread_barrier_t begin;
    const unsigned char *bytes;
    size_t page;
    unsigned n_before;
    atomic_int n_wrong;
} reading;

/* All threads begin with the same page, so that several of them lose it at once. */
static void *read_all(void *user)
{
    reading *r = user;
    pthread_barrier_wait(&r->begin);
    for (size_t p = 0; p < N_PAGES; p++) {
        bool is_zero = r->bytes[p * r->page + p] == 0;
        bool is_counted = atomic_load(&lost.n) != r->n_before;
        if (!is_zero || !is_counted)
            atomic_fetch_add(&r->n_wrong, 1);
    }
    return NULL;
}

static size_t count_lines(int fd)
{
    char bytes[4096];
    size_t n = 0;
    ssize_t got;
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    while ((got = read(fd, bytes, sizeof bytes)) > 0)
        for (ssize_t i = 0; i < got; i++)
            n += bytes[i] == '\n';
    return n;
}

/* A file of its own, mapped, filled and emptied. */
static const unsigned char *map_and_cut(size_t size)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    int fd = fileno(file);
    assert_int_equal(ftruncate(fd, (off_t)size), 0);
    void *map = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    assert_true(map != MAP_FAILED);
    assert_int_equal(ftruncate(fd, 0), 0);
    fclose(file);
    return map;
}

static void read_together(pnb__lost_pages *pages)
{
    reading r = {.page = (size_t)sysconf(_SC_PAGESIZE)};
    pthread_t threads[N_THREADS];
    r.bytes = map_and_cut(N_PAGES * r.page);
    r.n_before = atomic_load(&pages->n);
    atomic_store(&pages->is_told, 0);
    pthread_barrier_init(&r.begin, NULL, N_THREADS);
    for (size_t i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_all, &r), 0);
    for (size_t i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&r.begin);
    assert_int_equal(atomic_load(&r.n_wrong), 0);
    assert_true(atomic_load(&pages->n) - r.n_before >= N_PAGES);
    munmap((void *)(uintptr_t)r.bytes, N_PAGES * r.page);
}

static void test_many_threads_lose_the_same_pages(void **state)
{
    FILE *file = tmpfile();
    int before = dup(STDERR_FILENO);
    (void)state;
    assert_true(file != NULL && before >= 0);
    int told = fileno(file);
    assert_true(dup2(told, STDERR_FILENO) >= 0);
    pnb__lost_pages *pages = pnb__watch_lost_pages();
    atomic_store(&pages->is_expected, 1);
    for (int i = 0; i < N_ROUNDS; i++)
        read_together(pages);
    assert_true(dup2(before, STDERR_FILENO) >= 0);
    assert_int_equal(count_lines(told), N_ROUNDS);
    fclose(file);
    close(before);
}

/* What another thread has replaced since this one met it is neither another mistake nor told of. */
static void test_a_page_that_is_there_again(void **state)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *zeros = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *written = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)state;
    assert_true(zeros != MAP_FAILED && written != MAP_FAILED);
    atomic_store(&lost.is_told, 0);
    atomic_store(&lost.is_expected, 1);
    assert_true(is_of_file((uintptr_t)zeros));
    assert_int_equal(atomic_load(&lost.is_told), 0);
    atomic_store(&lost.is_expected, 0); /* then none was replaced: it is another mistake */
    assert_false(is_of_file((uintptr_t)zeros));
    assert_false(is_of_file((uintptr_t)written));
    munmap(zeros, page);
    munmap(written, page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_threads_lose_the_same_pages),
        cmocka_unit_test(test_a_page_that_is_there_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
