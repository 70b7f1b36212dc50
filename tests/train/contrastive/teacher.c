/* Rows of a teacher by the ids of samples and captions, whatever their order in the sets; those
 * that are missing are counted and named. */
#include "penumbra/embeddings.h"
#include "tests/train/fixture.h"
#include "train/contrastive/contrastive.h"

enum { DIM = 3 };

/* A set of `n` rows, written under ids, and with what they say; NULL: that is not known. */
static char *save_set(const fixture *f, const char *name, char **ids, char **said, size_t n)
{
    pnb_embeddings *set = NULL;
    char *path = pnb__path_join(f->dir, name);
    ASSERT_OK(pnb_embeddings_create(&set, PNB_POINT, n, DIM, &err));
    for (size_t i = 0; i < n; i++) {
        set->mean[i * DIM] = 1;
        set->mean[i * DIM + 1] = (float)i;
        ASSERT_OK(pnb_embeddings_set_id(set, i, ids[i], &err));
        if (said != NULL)
            ASSERT_OK(pnb_embeddings_set_text(set, i, said[i], &err));
    }
    ASSERT_OK(pnb_embeddings_save(set, path, &err));
    pnb_embeddings_free(set);
    return path;
}

/* Ids of all pictures and captions, backwards. */
typedef struct names {
    char *image[200], *text[4000], *said[4000];
    size_t n_images, n_texts;
} names;

static names *collect(const pnb_dataset *set)
{
    names *out = calloc(1, sizeof *out);
    assert_non_null(out);
    for (size_t i = pnb_dataset_size(set); i-- > 0;) {
        pnb_sample s = {0};
        ASSERT_OK(pnb_dataset_get(set, i, &s, &err));
        const char *slash = strrchr(s.key, '/'), *id = slash != NULL ? slash + 1 : s.key;
        out->image[out->n_images++] = pnb__strdup(id);
        for (size_t k = s.n_texts; k-- > 0;) {
            out->said[out->n_texts] = pnb__strdup(s.texts[k]);
            out->text[out->n_texts++] = pnb__format("%s#%zu", id, k);
        }
        pnb_sample_reset(&s);
    }
    return out;
}

static void drop(names *n)
{
    for (size_t i = 0; i < n->n_images; i++)
        pnb__free(n->image[i]);
    for (size_t i = 0; i < n->n_texts; i++) {
        pnb__free(n->text[i]);
        pnb__free(n->said[i]);
    }
    free(n);
}

static void test_rows_by_id(void **state)
{
    const fixture *f = *state;
    pnb_train_opts o = fixture_opts(f, "teacher");
    pnb__contrastive c = {.ctx = f->ctx, .opts = &o};
    ASSERT_OK(pnb_dataset_open(&c.train, f->train, NULL, &err));
    names *n = collect(c.train);
    char *images = save_set(f, "i.safetensors", n->image, NULL, n->n_images);
    char *texts = save_set(f, "t.safetensors", n->text, NULL, n->n_texts);
    o.distill_images = images;
    o.distill_texts = texts;
    o.loss.weight[PNB_LOSS_DISTILL] = 1;
    ASSERT_OK(pnb__teacher_check(&o, &err));
    ASSERT_OK(pnb__teacher_open(&c, &err));
    assert_true(pnb__teacher_dim(c.teacher) == DIM && pnb__teacher_scale(c.teacher) == 100);
    size_t row = n->n_texts;
    for (size_t i = 0; i < pnb_dataset_size(c.train); i++) {
        pnb_sample s = {0};
        ASSERT_OK(pnb_dataset_get(c.train, i, &s, &err));
        int32_t of_image = pnb__teacher_row(c.teacher, 0, (int64_t)i, 0);
        assert_int_equal(of_image, n->n_images - 1 - i);
        for (size_t k = 0; k < s.n_texts; k++)
            assert_int_equal(pnb__teacher_row(c.teacher, 1, (int64_t)i, (int32_t)k), --row);
        const float *unit = pnb__teacher_part(c.teacher, 0, false, of_image);
        double length = (double)unit[0] * (double)unit[0] + (double)unit[1] * (double)unit[1];
        assert_true(length > 1 - 1e-6 && length < 1 + 1e-6);
        pnb_sample_reset(&s);
    }
    pnb__teacher_free(c.teacher);
    c.teacher = NULL;
    pnb__free(n->text[7]);
    n->text[7] = pnb__strdup("somebody#1");
    pnb__free(texts);
    texts = save_set(f, "t2.safetensors", n->text, NULL, n->n_texts);
    o.distill_texts = texts;
    ASSERT_FAILS(pnb__teacher_open(&c, &err), PNB_NOT_FOUND, "lack 1 of the rows");
    pnb__teacher_free(c.teacher);
    pnb_dataset_free(c.train);
    pnb__free(images);
    pnb__free(texts);
    drop(n);
}

/* Names that a table gave, or that belong to other words: what is said decides. */
static void test_rows_by_words(void **state)
{
    const fixture *f = *state;
    pnb_train_opts o = fixture_opts(f, "teacher");
    pnb__contrastive c = {.ctx = f->ctx, .opts = &o};
    ASSERT_OK(pnb_dataset_open(&c.train, f->train, NULL, &err));
    names *n = collect(c.train);
    char *images = save_set(f, "i.safetensors", n->image, NULL, n->n_images);
    for (size_t i = 0; i < n->n_texts / 2; i++) { /* the first half's names go round */
        char *first = n->text[i];
        n->text[i] = n->text[(i + 1) % (n->n_texts / 2)];
        n->text[(i + 1) % (n->n_texts / 2)] = first;
    }
    for (size_t i = n->n_texts / 2; i < n->n_texts; i++) {
        pnb__free(n->text[i]);
        n->text[i] = pnb__format("%zu", i);
    }
    char *texts = save_set(f, "t.safetensors", n->text, n->said, n->n_texts);
    o.distill_images = images;
    o.distill_texts = texts;
    o.loss.weight[PNB_LOSS_DISTILL] = 1;
    ASSERT_OK(pnb__teacher_open(&c, &err));
    for (size_t i = 0; i < pnb_dataset_size(c.train); i++) {
        pnb_sample s = {0};
        ASSERT_OK(pnb_dataset_get(c.train, i, &s, &err));
        for (size_t k = 0; k < s.n_texts; k++)
            assert_string_equal(n->said[pnb__teacher_row(c.teacher, 1, (int64_t)i, (int32_t)k)],
                                s.texts[k]);
        pnb_sample_reset(&s);
    }
    pnb__teacher_free(c.teacher);
    pnb_dataset_free(c.train);
    pnb__free(images);
    pnb__free(texts);
    drop(n);
}

static void test_checked(void **state)
{
    pnb_train_opts o = fixture_opts(*state, "teacher");
    o.distill_images = "i";
    ASSERT_FAILS(pnb__teacher_check(&o, &err), PNB_ARG, "--distill-texts");
    o.distill_texts = "t";
    ASSERT_FAILS(pnb__teacher_check(&o, &err), PNB_ARG, "a weight above 0");
    o.loss.weight[PNB_LOSS_DISTILL_KL] = 1;
    ASSERT_OK(pnb__teacher_check(&o, &err));
    o.distill_scale = -1;
    ASSERT_FAILS(pnb__teacher_check(&o, &err), PNB_ARG, "distill-scale");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_by_id),
        cmocka_unit_test(test_rows_by_words),
        cmocka_unit_test(test_checked),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
