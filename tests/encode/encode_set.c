/* The public calls in memory: names and record of rows, and what they refuse. */
#include "tests/encode/model_folder.h"

/* Rows, their names, and the record of a set made in memory. */
static void rows_are_named(void **state)
{
    const fixture *f = *state;
    pnb_encoder *encoder = NULL;
    pnb_embeddings *set = NULL;
    const char *bad[] = {"fine", "\xff"};
    pnb_encode_opts opts = pnb_encode_opts_default();
    assert_ok(pnb_encoder_open(&encoder, f->ctx, f->dir, NULL, err));
    assert_ok(pnb_encode_texts(encoder, texts, N_TEXTS, NULL, &set, err));
    assert_int_equal(set->n, N_TEXTS);
    assert_string_equal(set->ids[4], "4");
    assert_string_equal(set->texts[1], "two green bars");
    assert_int_equal(strlen(set->info.weights_sha256), 64);
    assert_string_equal(set->info.modality, "text");
    pnb_embeddings_free(set);
    set = NULL;
    assert_ok(pnb_encode_images(encoder, f->images, N_IMAGES, NULL, &set, err));
    assert_string_equal(set->ids[2], "2");
    assert_string_equal(set->info.modality, "image");
    pnb_embeddings_free(set);
    set = NULL;
    assert_int_equal(pnb_encode_texts(encoder, bad, 2, NULL, &set, NULL), PNB_FORMAT);
    opts.batch_size = 0;
    assert_int_equal(pnb_encode_texts(encoder, texts, 1, &opts, &set, NULL), PNB_ARG);
    assert_null(set);
    pnb_encoder_free(encoder);
}

static void a_side_that_is_closed(void **state)
{
    const fixture *f = *state;
    const pnb_encoder_opts sides = {.sides = PNB_ENCODE_TEXTS};
    pnb_encoder *encoder = NULL;
    pnb_embeddings *set = NULL;
    pnb_error why = PNB_ERROR_INIT;
    assert_ok(pnb_encoder_open(&encoder, f->ctx, f->dir, &sides, err));
    assert_int_equal(pnb_encode_images(encoder, f->images, 1, NULL, &set, &why), PNB_UNSUPPORTED);
    assert_non_null(strstr(why.text, "opened without the side for pictures"));
    pnb_encoder_free(encoder);
}

/* A name and reason for each input left out. */
typedef struct left_out {
    size_t n;
    char last[200];
} left_out;

static void note(void *user, const char *what, const char *why)
{
    left_out *l = user;
    l->n++;
    snprintf(l->last, sizeof l->last, "%s: %s", what, why);
}

/* Writes three lines, one of which is no UTF-8, and removes what a job leaves beside them. */
static void write_lines(const char *path)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (int i = 0; i < 200; i++) /* one bad line is an input left out, many are no text file */
        fputs(i == 7 ? "bad \xff line\n" : i == 9 ? "\n" : "a red star\n", f);
    fclose(f);
}

static void files_and_jobs(void **state)
{
    const fixture *f = *state;
    char dir[] = "/tmp/pnb-encode-XXXXXX", list[64], out[64], ids[64];
    pnb_encoder *encoder = NULL;
    pnb_embeddings *memory = NULL, *disk = NULL;
    left_out left = {0};
    pnb_encode_opts opts = pnb_encode_opts_default();
    pnb_encode_result result = {0};
    assert_non_null(mkdtemp(dir));
    snprintf(list, sizeof list, "%s/list.txt", dir);
    snprintf(out, sizeof out, "%s/set.safetensors", dir);
    snprintf(ids, sizeof ids, "%s/set.ids.jsonl", dir);
    write_lines(list);
    const char *paths[] = {list};
    const pnb_encode_file file = {.out = out, .save_every = 16};
    assert_ok(pnb_encoder_open(&encoder, f->ctx, f->dir, NULL, err));
    assert_int_equal(pnb_encode_files(encoder, PNB_ENCODE_TEXTS, paths, 1, NULL, &memory, NULL),
                     PNB_FORMAT); /* nobody hears of the bad line */
    opts.skipped = note;
    opts.skipped_user = &left;
    assert_ok(pnb_encode_files(encoder, PNB_ENCODE_TEXTS, paths, 1, &opts, &memory, err));
    assert_int_equal(left.n, 1);
    assert_int_equal(memory->n, 199);
    assert_ok(pnb_encode_to_file(encoder, PNB_ENCODE_TEXTS, paths, 1, &opts, &file, &result, err));
    assert_true(result.n_rows == 199 && result.n_inputs == 199 && left.n == 2);
    assert_ok(pnb_embeddings_load(&disk, out, err));
    assert_int_equal(disk->n, 199);
    assert_memory_equal(disk->mean, memory->mean, disk->n * disk->dim * sizeof(float));
    assert_memory_equal(disk->log_var, memory->log_var, disk->n * disk->dim * sizeof(float));
    pnb_embeddings_free(memory);
    pnb_embeddings_free(disk);
    pnb_encoder_free(encoder);
    unlink(list);
    unlink(out);
    unlink(ids);
    assert_int_equal(rmdir(dir), 0); /* no journal is left */
}

/* Masked copies are a function of the seed. */
static void seed_of_masked_copies(void **state)
{
    const fixture *f = *state;
    pnb_encoder *encoder = NULL;
    pnb_embeddings *set[3] = {NULL};
    pnb_encode_opts opts = pnb_encode_opts_default();
    opts.masked = true;
    assert_ok(pnb_encoder_open(&encoder, f->ctx, f->dir, NULL, err));
    for (size_t i = 0; i < 3; i++) {
        opts.seed = i / 2;
        assert_ok(pnb_encode_images(encoder, f->images, N_IMAGES, &opts, &set[i], err));
    }
    size_t bytes = set[0]->n * set[0]->dim * sizeof(float);
    assert_memory_equal(set[0]->mean, set[1]->mean, bytes);
    assert_memory_not_equal(set[0]->mean, set[2]->mean, bytes);
    for (size_t i = 0; i < 3; i++)
        pnb_embeddings_free(set[i]);
    pnb_encoder_free(encoder);
}

static bool stop_at_once(void *user, size_t done, size_t total)
{
    (void)user;
    (void)done;
    (void)total;
    return false;
}

/* What a program may hand over by mistake is a status, and *out stays NULL. */
static void mistakes(void **state)
{
    const fixture *f = *state;
    pnb_encoder *encoder = NULL;
    pnb_embeddings *set = NULL;
    const char *none[] = {"a", NULL}, *dash[] = {"-"}, *nowhere[] = {"/nowhere/x.txt"};
    const pnb_image empty = {.width = 4, .height = 4, .channels = 3}, odd = f->images[0];
    pnb_image five = odd;
    pnb_encode_opts opts = pnb_encode_opts_default();
    const pnb_encode_file no_name = {.save_every = 1},
                          no_format = {.out = "/tmp/x", .format = (pnb_encode_format)9};
    five.channels = 5;
    assert_ok(pnb_encoder_open(&encoder, f->ctx, f->dir, NULL, err));
    assert_fails(pnb_encode_texts(encoder, NULL, 0, NULL, &set, err), PNB_NOT_FOUND, "no input");
    assert_fails(pnb_encode_images(encoder, NULL, 0, NULL, &set, err), PNB_NOT_FOUND, "no input");
    assert_fails(pnb_encode_texts(encoder, none, 2, NULL, &set, err), PNB_ARG, "text 1");
    assert_fails(pnb_encode_images(encoder, &empty, 1, NULL, &set, err), PNB_ARG, "image 0");
    assert_fails(pnb_encode_images(encoder, &five, 1, NULL, &set, err), PNB_ARG, "image 0");
    assert_fails(pnb_encode_files(encoder, (pnb_encode_side)7, dash, 1, NULL, &set, err), PNB_ARG,
                 "side");
    assert_true(pnb_encode_files(encoder, PNB_ENCODE_TEXTS, dash, 1, NULL, &set, NULL) != PNB_OK);
    assert_int_equal(pnb_encode_files(encoder, PNB_ENCODE_TEXTS, nowhere, 1, NULL, &set, NULL),
                     PNB_NOT_FOUND);
    assert_fails(
        pnb_encode_to_file(encoder, PNB_ENCODE_TEXTS, nowhere, 1, NULL, &no_name, NULL, err),
        PNB_ARG, "name");
    assert_fails(
        pnb_encode_to_file(encoder, PNB_ENCODE_TEXTS, nowhere, 1, NULL, &no_format, NULL, err),
        PNB_ARG, "format");
    opts.mask_keep = NAN;
    assert_fails(pnb_encode_texts(encoder, texts, 1, &opts, &set, err), PNB_ARG, "mask_keep");
    opts = pnb_encode_opts_default();
    opts.watch.step = stop_at_once;
    assert_int_equal(pnb_encode_texts(encoder, texts, 1, &opts, &set, NULL), PNB_INTERRUPTED);
    assert_null(set);
    pnb_encoder_free(encoder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_named), cmocka_unit_test(a_side_that_is_closed),
        cmocka_unit_test(files_and_jobs), cmocka_unit_test(seed_of_masked_copies),
        cmocka_unit_test(mistakes)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
