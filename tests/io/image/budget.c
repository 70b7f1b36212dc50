/* Memory shared by the decodes of several threads: who waits, in which order, and that all is given
 * back. */
#include <pthread.h>
#include <sched.h>

#include "tests/io/image/support.h"

static const char *const FILES[] = {
    "rgb8.png",
    "rgba16_i.png",
    "pal4_i.png",
    "grey1.png",
    "q95_2.jpg",
    "prog.jpg",
    "cmyk.jpg",
    "grey.jpg",
    "lossy.webp",
    "alpha.webp",
    "exif6.jpg",
    "b8.bmp",
    "b24.bmp",
    "b32m4_124.bmp",
    "r8.bmp",
    "r4.bmp",
    "lossless.webp",
#ifdef PNB_HAVE_GIF
    "inter.gif",
    "offsett.gif",
    "local.gif",
#endif
#ifdef PNB_HAVE_TIFF
    "t_RGB_tiff_lzw.tif",
    "t_RGB_packbits.tif",
    "t_YCbCr_jpeg.tif",
    "tile16x16_le1.tif",
    "t_YCbCr_tiff_lzw.tif",
    "pl8_4_2_le8.tif",
    "orient6.tif",
    "t_1_group4.tif",
#endif
};

/* Threads that decode with one budget. */
typedef struct crowd {
    const unsigned char *bytes;
    size_t n_bytes;
    pnb_image_budget *budget;
    pthread_mutex_t lock;
    int n_inside, most_inside, n_done;
} crowd;

static void *decode_some(void *user)
{
    crowd *c = user;
    for (int i = 0; i < 20; i++) {
        pnb_image image;
        pnb_image_opts opts = pnb_image_opts_default();
        opts.budget = c->budget;
        bool is_decoded = pnb_image_decode(&image, c->bytes, c->n_bytes, &opts, NULL) == PNB_OK;
        pthread_mutex_lock(&c->lock);
        c->n_done += is_decoded;
        c->n_inside++;
        c->most_inside = PNB_MAX(c->most_inside, c->n_inside);
        pthread_mutex_unlock(&c->lock);
        sched_yield();
        pthread_mutex_lock(&c->lock);
        c->n_inside--;
        pthread_mutex_unlock(&c->lock);
        pnb_image_free(&image);
    }
    return NULL;
}

/* A picture that needs more than half of the budget, or more than all of it, is alone in memory;
 * one that needs little is not; and nobody waits for ever. */
static void a_budget_is_shared(void **state)
{
    (void)state;
    enum { N_THREADS = 4 };
    static const struct {
        int64_t pixels;
        int most;
    } cases[] = {{37 * 29, 1}, {37 * 29 / 8, 1}, {37 * 29 * 100, N_THREADS}};
    crowd c = {.lock = PTHREAD_MUTEX_INITIALIZER};
    unsigned char *bytes = read_file("rgb8.png", &c.n_bytes);
    c.bytes = bytes;
    for (size_t k = 0; k < PNB_COUNT(cases); k++) {
        pthread_t threads[N_THREADS];
        c.n_done = c.most_inside = 0;
        assert_int_equal(pnb_image_budget_create(&c.budget, cases[k].pixels, NULL), PNB_OK);
        for (int i = 0; i < N_THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, decode_some, &c), 0);
        for (int i = 0; i < N_THREADS; i++)
            pthread_join(threads[i], NULL);
        assert_int_equal(c.n_done, 20 * N_THREADS);
        assert_in_range(c.most_inside, 1, cases[k].most);
        pnb_image_budget_free(c.budget);
    }
    /* damage gives back what was taken: a second decode would wait for ever */
    assert_int_equal(pnb_image_budget_create(&c.budget, 10, NULL), PNB_OK);
    for (size_t f = 0; f < PNB_COUNT(FILES); f++) {
        size_t n;
        unsigned char *damaged = read_file(FILES[f], &n);
        pnb_image image;
        pnb_image_opts opts = pnb_image_opts_default();
        opts.budget = c.budget;
        (void)pnb_image_decode(&image, damaged, n * 2 / 3, &opts, NULL);
        pnb_image_free(&image);
        assert_int_equal(pnb_image_decode(&image, damaged, n, &opts, NULL), PNB_OK);
        pnb_image_free(&image);
        pnb__free(damaged);
    }
    pnb_image_budget_free(c.budget);
    pnb__free(bytes);
}

typedef struct waiter {
    pnb_image_budget *budget;
    size_t n_bytes;
    pthread_mutex_t lock;
    bool is_asking, has_got;
} waiter;

static void *take(void *user)
{
    waiter *w = user;
    pthread_mutex_lock(&w->lock);
    w->is_asking = true;
    pthread_mutex_unlock(&w->lock);
    pnb__budget_take(w->budget, w->n_bytes);
    pthread_mutex_lock(&w->lock);
    w->has_got = true;
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* Starts a thread that asks, and leaves it time to be put in the queue. */
static void ask(waiter *w, pthread_t *thread)
{
    assert_int_equal(pthread_create(thread, NULL, take, w), 0);
    for (bool is_asking = false; !is_asking; usleep(10000)) {
        pthread_mutex_lock(&w->lock);
        is_asking = w->is_asking;
        pthread_mutex_unlock(&w->lock);
    }
}

static bool has_got(waiter *w)
{
    pthread_mutex_lock(&w->lock);
    bool got = w->has_got;
    pthread_mutex_unlock(&w->lock);
    return got;
}

/* 100 pixels of 4 bytes, half of them held: the first asks for more than the other half, the second
 * for little. */
static bool second_waits_for_first(void)
{
    pnb_image_budget *b = NULL;
    assert_int_equal(pnb_image_budget_create(&b, 100, NULL), PNB_OK);
    waiter large = {.budget = b, .n_bytes = 300, .lock = PTHREAD_MUTEX_INITIALIZER};
    waiter small = {.budget = b, .n_bytes = 100, .lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t first, second;
    pnb__budget_take(b, 200);
    ask(&large, &first);
    ask(&small, &second);
    bool both_wait = !has_got(&large) && !has_got(&small);
    pnb__budget_give(b, 200);
    pthread_join(first, NULL);
    pthread_join(second, NULL); /* 300 + 100 is all there is */
    assert_true(has_got(&large) && has_got(&small));
    pnb__budget_give(b, 400);
    pnb_image_budget_free(b);
    return both_wait;
}

/* A large picture is not overtaken by small ones. On a busy machine the first may come late to the
 * queue: it is in front of the second in one of several tries, or never. */
static void first_come_first_served(void **state)
{
    (void)state;
    bool is_so = false;
    for (int i = 0; i < 8 && !is_so; i++)
        is_so = second_waits_for_first();
    assert_true(is_so);
}

static void what_is_refused(void **state)
{
    (void)state;
    static char somewhere[64];
    pnb_image_budget *b = (pnb_image_budget *)(void *)somewhere;
    pnb_error err = PNB_ERROR_INIT;
    assert_failed(pnb_image_budget_create(&b, 0, &err), &err, PNB_ARG,
                  "max_pixels is 0: want at least 1");
    assert_null(b);
    pnb_image_budget_free(NULL);
    pnb__budget_give(NULL, 7);
    pnb_image image = {0}; /* not counted anywhere */
    pnb_image_release_budget(&image);
    assert_null(image.budget);
}

/* A picture released stays and is not counted any more. */
static void released_images_stay(void **state)
{
    (void)state;
    pnb_image_budget *b = NULL;
    pnb_image image;
    size_t n;
    unsigned char *bytes = read_file("rgb8.png", &n);
    assert_int_equal(pnb_image_budget_create(&b, 37 * 29, NULL), PNB_OK);
    pnb_image_opts opts = pnb_image_opts_default();
    opts.budget = b;
    assert_int_equal(pnb_image_decode(&image, bytes, n, &opts, NULL), PNB_OK);
    assert_ptr_equal(image.budget, b);
    assert_int_equal(image.held_bytes, 37 * 29 * 3);
    pnb_image_release_budget(&image);
    assert_true(image.pixels != NULL && image.budget == NULL && image.held_bytes == 0);
    pnb__budget_take(b, 37 * 29 * 4); /* all of it: would wait for ever otherwise */
    pnb__budget_give(b, 37 * 29 * 4);
    pnb_image_free(&image);
    pnb_image_budget_free(b);
    pnb__free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_budget_is_shared),
        cmocka_unit_test(first_come_first_served),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(released_images_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
