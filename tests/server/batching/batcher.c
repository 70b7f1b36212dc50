/* The queue of batches with an encoder of one line: who is encoded with whom, in which order, and
 * what one request can do to another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "server/batching/batcher.h"

enum { DIM = 3, MOST = 8, POISON = 13 };

/* What the encoder saw. */
typedef struct seen {
    atomic_int n_batches, n_rows, largest, n_waited;
    atomic_int sides; /* of all batches */
    atomic_bool is_held;
    atomic_int n_inside;
    atomic_int small_at; /* number of the batch that had a picture */
} seen;

static void pause_ms(int ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
}

static pnb_status encode(void *user, pnb_encode_side side, const void *const *rows, size_t n,
                         pnb_embeddings **out, pnb_error *err)
{
    seen *s = user;
    atomic_fetch_add(&s->n_inside, 1);
    while (atomic_load(&s->is_held))
        pause_ms(1);
    for (size_t i = 0; i < n; i++)
        if (*(const int *)rows[i] == POISON)
            return pnb__fail(err, PNB_NUMERIC, "13 of %zu", n);
    atomic_fetch_or(&s->sides, 1 << side);
    int number = atomic_fetch_add(&s->n_batches, 1) + 1;
    if (side == PNB_ENCODE_IMAGES)
        atomic_store(&s->small_at, number);
    atomic_fetch_add(&s->n_rows, (int)n);
    if ((int)n > atomic_load(&s->largest))
        atomic_store(&s->largest, (int)n);
    pnb_status status = pnb_embeddings_create(out, PNB_GAUSSIAN_DIAG, n, DIM, err);
    for (size_t i = 0; i < n && status == PNB_OK; i++)
        for (size_t d = 0; d < DIM; d++) {
            (*out)->mean[i * DIM + d] = (float)(*(const int *)rows[i] * 10 + (int)d);
            (*out)->log_var[i * DIM + d] = -(*out)->mean[i * DIM + d];
        }
    return status;
}

static void waited(void *user, double seconds)
{
    assert_true(seconds >= 0);
    atomic_fetch_add(&((seen *)user)->n_waited, 1);
}

static pnb__batcher *start(seen *s, double wait_s)
{
    const pnb__batcher_opts opts = {encode, s, MOST, wait_s, waited};
    pnb__batcher *b = NULL;
    assert_int_equal(pnb__batcher_start(&b, &opts, NULL), PNB_OK);
    return b;
}

/* One request on a thread of its own. */
typedef struct client {
    pnb__batcher *b;
    pthread_t thread;
    pnb__batch_rows ask;
    int rows[100];
    atomic_bool has_left;
    pnb_embeddings *set;
    pnb_error err;
    atomic_bool is_done;
} client;

static bool has_left(const void *user)
{
    return atomic_load(&((client *)(uintptr_t)user)->has_left);
}

static void *run(void *user)
{
    client *c = user;
    (void)pnb__batcher_encode(c->b, &c->ask, &c->set, &c->err);
    atomic_store(&c->is_done, true);
    return NULL;
}

static void begin(client *c, pnb__batcher *b, pnb_encode_side side, int first, size_t n,
                  bool is_expected)
{
    *c = (client){.b = b};
    c->ask = (pnb__batch_rows){side, c->rows, n, sizeof(int), is_expected, has_left, c};
    for (size_t i = 0; i < n; i++)
        c->rows[i] = first + (int)i;
    assert_int_equal(pthread_create(&c->thread, NULL, run, c), 0);
}

static void end(client *c, pnb_status status)
{
    pthread_join(c->thread, NULL);
    assert_int_equal(c->err.status, status);
    if (status != PNB_OK) {
        assert_null(c->set);
        return;
    }
    assert_int_equal(c->set->n, c->ask.n);
    for (size_t i = 0; i < c->ask.n; i++)
        for (size_t d = 0; d < DIM; d++) {
            float x = (float)(c->rows[i] * 10 + (int)d);
            assert_true(c->set->mean[i * DIM + d] == x && c->set->log_var[i * DIM + d] == -x);
        }
    pnb_embeddings_free(c->set);
}

static void those_on_their_way_are_waited_for(void **state)
{
    static client c[MOST];
    seen s = {.is_held = false};
    pnb__batcher *b = start(&s, 20);
    (void)state;
    pnb__batcher_expect(b, MOST - 1);
    for (int i = 0; i < MOST - 1; i++) {
        begin(&c[i], b, PNB_ENCODE_TEXTS, 100 * i, 1, true);
        pause_ms(2);
    }
    for (int i = 0; i < MOST - 1; i++)
        end(&c[i], PNB_OK);
    assert_int_equal(s.n_batches, 1);
    assert_int_equal(s.largest, MOST - 1);
    assert_int_equal(s.n_waited, MOST - 1);
    pnb__batcher_free(b);
}

static void nobody_is_waited_for_in_vain(void **state)
{
    client c;
    seen s = {.is_held = false};
    pnb__batcher *b = start(&s, 0.05);
    (void)state;
    double now_s = pnb__now_s();
    begin(&c, b, PNB_ENCODE_TEXTS, 1, 1, false); /* alone */
    end(&c, PNB_OK);
    pnb__batcher_expect(b, 1); /* one that never comes: the limit ends it */
    begin(&c, b, PNB_ENCODE_TEXTS, 2, 1, false);
    end(&c, PNB_OK);
    double took_s = pnb__now_s() - now_s;
    assert_true(took_s >= 0.05 && took_s < 10);
    pnb__batcher_expect(b, -1);
    pnb__batcher_free(b);
    b = start(&s, 100);
    pnb__batcher_expect(b, 5);
    begin(&c, b, PNB_ENCODE_TEXTS, 3, MOST, false); /* full already */
    end(&c, PNB_OK);
    begin(&c, b, PNB_ENCODE_TEXTS, 3, 1, false);
    pause_ms(5);
    pnb__batcher_expect(b, -5); /* they went elsewhere */
    end(&c, PNB_OK);
    pnb__batcher_free(b);
}

static void many_rows_in_many_batches(void **state)
{
    static client big, small, image;
    seen s = {.is_held = true};
    pnb__batcher *b = start(&s, 0);
    (void)state;
    begin(&big, b, PNB_ENCODE_TEXTS, 1000, 100, false);
    while (atomic_load(&s.n_inside) == 0)
        pause_ms(1);
    begin(&small, b, PNB_ENCODE_TEXTS, 50, 3, false);
    begin(&image, b, PNB_ENCODE_IMAGES, 70, 2, false);
    pause_ms(20); /* both are in the list, behind the first batch of the big one */
    atomic_store(&s.is_held, false);
    end(&small, PNB_OK);
    end(&image, PNB_OK);
    end(&big, PNB_OK);
    assert_int_equal(s.n_rows, 105);
    assert_int_equal(s.largest, MOST);
    assert_int_equal(s.sides, 1 << PNB_ENCODE_TEXTS | 1 << PNB_ENCODE_IMAGES);
    pnb__batcher_free(b);
}

static void a_big_request_gives_way(void **state)
{
    static client big, small;
    seen s = {.is_held = true};
    pnb__batcher *b = start(&s, 0);
    (void)state;
    begin(&big, b, PNB_ENCODE_TEXTS, 1000, 100, false);
    while (atomic_load(&s.n_inside) == 0)
        pause_ms(1);
    begin(&small, b, PNB_ENCODE_IMAGES, 50, 1, false);
    pause_ms(20);
    atomic_store(&s.is_held, false);
    end(&small, PNB_OK);
    assert_true(s.small_at <= 3); /* behind the batch under way, and one more at most */
    end(&big, PNB_OK);
    assert_int_equal(s.n_batches, 14); /* 13 of the big one */
    pnb__batcher_free(b);
}

static void one_that_fails_spoils_nobody(void **state)
{
    client c[3];
    seen s = {.is_held = false};
    pnb__batcher *b = start(&s, 20);
    (void)state;
    pnb__batcher_expect(b, 3);
    begin(&c[0], b, PNB_ENCODE_TEXTS, 1, 2, true);
    begin(&c[1], b, PNB_ENCODE_TEXTS, POISON, 1, true);
    begin(&c[2], b, PNB_ENCODE_TEXTS, 20, 3, true);
    end(&c[0], PNB_OK);
    end(&c[1], PNB_NUMERIC);
    end(&c[2], PNB_OK);
    begin(&c[1], b, PNB_ENCODE_TEXTS, POISON - 50, 100, false); /* in one of many batches */
    end(&c[1], PNB_NUMERIC);
    pnb__batcher_free(b);
}

static void who_left_is_not_encoded(void **state)
{
    static client first, left, half;
    seen s = {.is_held = true};
    pnb__batcher *b = start(&s, 0);
    (void)state;
    begin(&first, b, PNB_ENCODE_TEXTS, 1, 1, false);
    while (atomic_load(&s.n_inside) == 0)
        pause_ms(1);
    begin(&left, b, PNB_ENCODE_TEXTS, 50, 1, false);
    atomic_store(&left.has_left, true);
    pause_ms(10);
    atomic_store(&s.is_held, false);
    end(&first, PNB_OK);
    end(&left, PNB_INTERRUPTED);
    assert_int_equal(s.n_rows, 1);
    atomic_store(&s.is_held, true);
    atomic_store(&s.n_inside, 0);
    begin(&half, b, PNB_ENCODE_TEXTS, 100, 50, false); /* leaves in its first batch */
    while (atomic_load(&s.n_inside) == 0)
        pause_ms(1);
    atomic_store(&half.has_left, true);
    atomic_store(&s.is_held, false);
    end(&half, PNB_INTERRUPTED);
    assert_int_equal(s.n_rows, 1 + MOST);
    pnb__batcher_free(b);
    pnb__batcher_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_on_their_way_are_waited_for),
        cmocka_unit_test(nobody_is_waited_for_in_vain),
        cmocka_unit_test(many_rows_in_many_batches),
        cmocka_unit_test(a_big_request_gives_way),
        cmocka_unit_test(one_that_fails_spoils_nobody),
        cmocka_unit_test(who_left_is_not_encoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
