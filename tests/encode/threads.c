/* One opened model, eight threads: texts and pictures have the bits they have alone, in whatever
 * order the threads come and whoever is first to plan, to find the weights finite and to pack them.
 */
#include <pthread.h>

#include "tests/encode/model_folder.h"

enum { N_THREADS = 8, N_ROUNDS = 4 };

typedef struct caller {
    const fixture *f;
    pnb_encoder *encoder;
    const pnb_embeddings *alone[2]; /* texts, pictures */
    int number;
    const char *problem; /* NULL: none */
} caller;

static bool are_same(const pnb_embeddings *a, const pnb_embeddings *b)
{
    size_t bytes = a->n * a->dim * sizeof(float);
    return a->n == b->n && a->dim == b->dim && memcmp(a->mean, b->mean, bytes) == 0 &&
           memcmp(a->log_var, b->log_var, bytes) == 0;
}

static pnb_status encode(const fixture *f, pnb_encoder *encoder, bool images, size_t batch_size,
                         pnb_embeddings **out, pnb_error *err)
{
    pnb_encode_opts opts = pnb_encode_opts_default();
    opts.batch_size = batch_size;
    return images ? pnb_encode_images(encoder, f->images, N_IMAGES, &opts, out, err)
                  : pnb_encode_texts(encoder, texts, N_TEXTS, &opts, out, err);
}

/* Half of the threads begin with pictures. */
static void *call(void *user)
{
    caller *c = user;
    for (int i = 0; i < 2 * N_ROUNDS && c->problem == NULL; i++) {
        bool images = (i + c->number) % 2 == 1;
        pnb_embeddings *set = NULL;
        if (encode(c->f, c->encoder, images, 2, &set, NULL) != PNB_OK)
            c->problem = images ? "pictures fail" : "texts fail";
        else if (!are_same(set, c->alone[images]))
            c->problem = images ? "other bits of pictures" : "other bits of texts";
        pnb_embeddings_free(set);
    }
    return NULL;
}

/* The eight use an encoder that nobody has used; what they should get comes from another one. */
static void threads_have_the_bits_of_one(void **state)
{
    const fixture *f = *state;
    pnb_encoder *first = NULL, *shared = NULL;
    pnb_embeddings *alone[2] = {0};
    caller callers[N_THREADS];
    pthread_t threads[N_THREADS];
    assert_ok(pnb_encoder_open(&first, f->ctx, f->dir, NULL, err));
    assert_ok(pnb_encoder_open(&shared, f->ctx, f->dir, NULL, err));
    assert_ok(encode(f, first, false, 2, &alone[0], err));
    assert_ok(encode(f, first, true, 2, &alone[1], err));
    for (int i = 0; i < N_THREADS; i++) {
        callers[i] = (caller){f, shared, {alone[0], alone[1]}, i, NULL};
        assert_int_equal(pthread_create(&threads[i], NULL, call, &callers[i]), 0);
    }
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < N_THREADS; i++)
        if (callers[i].problem != NULL)
            fail_msg("thread %d: %s", i, callers[i].problem);
    pnb_embeddings_free(alone[0]);
    pnb_embeddings_free(alone[1]);
    pnb_encoder_free(first);
    pnb_encoder_free(shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(threads_have_the_bits_of_one)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
