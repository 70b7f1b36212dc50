/* Chains of weights and adapters: who may be compared with whom, in which words it is refused, and
 * that a chain comes back from every kind of file a set is kept in. */
#include "tests/io/scratch.h"

#include "sets/embeddings.h"
#include "sets/provenance.h"

#define ONES "1111111111111111111111111111111111111111111111111111111111111111"
#define TWOS "2222222222222222222222222222222222222222222222222222222222222222"
#define SHA_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define SHA_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define SHA_C "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"

/* A is of both sides, T of texts alone, I of images alone; lower-case words for the tables below.
 */
static const pnb_adapter_link link_a = {"whitened", SHA_A, false, false};
static const pnb_adapter_link link_t = {"heads", SHA_B, true, false};
static const pnb_adapter_link link_i = {"image-heads", SHA_C, false, true};

/* "text 1 A T": modality, weights (1, 2 or -), adapters. */
static pnb_embeddings_info info_of(const char *words)
{
    pnb_embeddings_info info = {.model = "tiny"};
    char modality[16];
    int used = 0;
    assert_int_equal(sscanf(words, "%15s %n", modality, &used), 1);
    if (strcmp(modality, "unknown") != 0)
        strcpy(info.modality, modality);
    for (const char *c = words + used; *c != '\0'; c++) {
        const pnb_adapter_link *link = *c == 'A'   ? &link_a
                                       : *c == 'T' ? &link_t
                                       : *c == 'I' ? &link_i
                                                   : NULL;
        if (*c == '1' || *c == '2')
            strcpy(info.weights_sha256, *c == '1' ? ONES : TWOS);
        if (link != NULL)
            assert_int_equal(pnb__adapter_links_add(&info.adapters, link, NULL), PNB_OK);
    }
    return info;
}

static void who_may_be_compared(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b, *says; /* NULL: may be compared */
    } cases[] = {
        {"image 1", "text 1", NULL},
        {"image 1 A", "text 1 A", NULL},
        {"image 1 A T", "text 1 A T", NULL},
        {"image 1", "text 2", "different weights (tiny 111111111111..., tiny 222222222222...)"},
        {"image 1 A", "text 2 A", "embed both with one model"},
        /* an adapter of both sides on one of them */
        {"image 1", "text 1 A", "whitened does not leave image embeddings alone"},
        {"image 1 A", "text 1", "whitened does not leave text embeddings alone"},
        {"text 1", "text 1 A", "whitened does not leave text embeddings alone"},
        /* one that adapts captions alone: pictures may, captions may not */
        {"image 1", "text 1 T", NULL},
        {"text 1", "text 1 T", "heads does not leave text embeddings alone"},
        {"image 1 A", "text 1 A T", NULL},
        {"image 1", "text 1 A T", "whitened does not leave image embeddings alone"},
        {"image 1", "text 1 T T", NULL},
        {"image 1 I", "text 1", NULL},
        {"image 1 I", "image 1", "image-heads does not leave image embeddings alone"},
        {"unknown 1", "text 1 T", "does not tell whether it is of images or texts"},
        /* made beside each other: each of them was made for the other's frozen side */
        {"image 1 I", "text 1 T", "adapt both with one adapter"},
        {"image 1 A", "text 1 T", "adapt both with one adapter"},
        {"image 1 A T", "text 1 A I", "adapt both with one adapter"},
        /* unknown altogether: the user's word */
        {"unknown -", "text 1 A", NULL},
        {"unknown -", "unknown -", NULL},
        /* weights unknown, adapters not */
        {"image - A", "text 1 A", NULL},
        {"image - A", "text - A", NULL},
        {"image - A", "text 1", "whitened does not leave text embeddings alone"},
        {"image - A", "text - T", "unknown weights > whitened aaaaaaaaaaaa"},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++)
        for (int turn = 0; turn < 2; turn++) {
            pnb_embeddings_info a = info_of(turn ? cases[i].b : cases[i].a);
            pnb_embeddings_info b = info_of(turn ? cases[i].a : cases[i].b);
            pnb_error err = PNB_ERROR_INIT;
            pnb_status found = pnb__provenance_check_mix(&a, &b, &err);
            if (cases[i].says == NULL)
                assert_ok(found, &err);
            else if (turn == 0 || strstr(cases[i].says, "..., ") == NULL)
                assert_failed(found, &err, PNB_ARG, cases[i].says);
        }
}

/* Both chains, whole, stand in a refusal. */
static void both_chains_are_named(void **state)
{
    (void)state;
    pnb_embeddings_info a = info_of("image 1 A"), b = info_of("text 1 T");
    pnb_error err = PNB_ERROR_INIT;
    assert_failed(pnb__provenance_check_mix(&a, &b, &err), &err, PNB_ARG,
                  "embeddings of tiny 111111111111 > whitened aaaaaaaaaaaa (image) and of tiny "
                  "111111111111 > heads bbbbbbbbbbbb (text) cannot be compared");
}

static void chains_in_words(void **state)
{
    (void)state;
    char text[PNB_PROVENANCE_BYTES], little[20];
    pnb_embeddings_info info = info_of("image 1 A T");
    pnb_provenance_text(&info, text, sizeof text);
    assert_string_equal(text, "tiny 111111111111 > whitened aaaaaaaaaaaa > heads bbbbbbbbbbbb");
    pnb_provenance_text(&info, little, sizeof little);
    assert_string_equal(little, "tiny 111111111111 >");
    info = (pnb_embeddings_info){0};
    pnb_provenance_text(&info, text, sizeof text);
    assert_string_equal(text, "unknown weights");
    /* the longest there is fits */
    memset(info.model, 'm', sizeof info.model - 1);
    memset(info.weights_sha256, 'a', 64);
    pnb_adapter_link link = link_a;
    memset(link.name, 'n', sizeof link.name - 1);
    while (info.adapters.n < PNB_MAX_ADAPTERS)
        assert_int_equal(pnb__adapter_links_add(&info.adapters, &link, NULL), PNB_OK);
    pnb_provenance_text(&info, text, sizeof text);
    assert_true(strlen(text) < sizeof text - 1);
    pnb_error err = PNB_ERROR_INIT;
    assert_failed(pnb__adapter_links_add(&info.adapters, &link, &err), &err, PNB_LIMIT,
                  "went through 8 adapters already");
}

/* One set holds rows of one chain, with no exception for sides that are left alone. */
static void one_set_one_chain(void **state)
{
    (void)state;
    static const char *const others[] = {"image 1", "image 1 A T", "image 1 T A", "image 2 A"};
    pnb_embeddings *a = NULL, *b = NULL, *both = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_embeddings_create(&a, PNB_POINT, 1, 2, &err), &err);
    assert_ok(pnb_embeddings_create(&b, PNB_POINT, 1, 2, &err), &err);
    a->info = info_of("image 1 A");
    b->info = info_of("image 1 A");
    assert_ok(pnb_embeddings_concat(&both, (const pnb_embeddings *const[]){a, b}, 2, &err), &err);
    assert_int_equal(both->info.adapters.n, 1);
    pnb_embeddings_free(both);
    both = NULL;
    for (size_t i = 0; i < PNB_COUNT(others); i++) {
        pnb_error_reset(&err);
        b->info = info_of(others[i]);
        assert_failed(pnb_embeddings_concat(&both, (const pnb_embeddings *const[]){a, b}, 2, &err),
                      &err, PNB_ARG, "whitened aaaaaaaaaaaa");
    }
    /* images that a text adapter leaves alone are still not its texts */
    a->info = info_of("unknown 1 T");
    b->info = info_of("image 1");
    pnb_error_reset(&err);
    assert_ok(pnb_embeddings_check_mix(a, b, &err), &err);
    assert_failed(pnb_embeddings_concat(&both, (const pnb_embeddings *const[]){a, b}, 2, &err),
                  &err, PNB_ARG, "cannot be in one set");
    pnb_embeddings_free(a);
    pnb_embeddings_free(b);
}

static void assert_same_links(const pnb_adapter_links *a, const pnb_adapter_links *b)
{
    assert_int_equal(a->n, b->n);
    for (size_t i = 0; i < a->n; i++) {
        assert_string_equal(a->items[i].name, b->items[i].name);
        assert_string_equal(a->items[i].sha256, b->items[i].sha256);
        assert_int_equal(a->items[i].leaves_images, b->items[i].leaves_images);
        assert_int_equal(a->items[i].leaves_texts, b->items[i].leaves_texts);
    }
}

static void chains_come_back_from_files(void **state)
{
    scratch *s = *state;
    static const char *const chains[] = {"text 1", "text 1 A", "text 1 A T I", "text - T"};
    for (size_t i = 0; i < PNB_COUNT(chains); i++) {
        pnb_embeddings *e = NULL, *back = NULL;
        pnb_error err = PNB_ERROR_INIT;
        scratch_clear(s);
        assert_ok(pnb_embeddings_create(&e, PNB_GAUSSIAN_DIAG, 2, 3, &err), &err);
        e->info = info_of(chains[i]);
        strcpy(e->info.measure, "w2");
        assert_ok(pnb_embeddings_save(e, scratch_path(s, "x.safetensors"), &err), &err);
        assert_ok(pnb_embeddings_load(&back, s->path, &err), &err);
        assert_same_links(&back->info.adapters, &e->info.adapters);
        assert_string_equal(back->info.measure, "w2");
        pnb_embeddings_free(back);
        assert_ok(pnb_embeddings_save_npy(e, scratch_path(s, "y.npy"), &err), &err);
        assert_ok(pnb_embeddings_load_npy(&back, s->path, &err), &err);
        assert_same_links(&back->info.adapters, &e->info.adapters);
        assert_string_equal(back->info.measure, "w2");
        pnb_embeddings_free(back);
        /* parts of a long job */
        const char *parts[] = {"", ""};
        char path[512];
        snprintf(path, sizeof path, "%s/x.safetensors", s->dir);
        parts[0] = parts[1] = path;
        assert_ok(pnb_embeddings_merge(scratch_path(s, "z.safetensors"), parts, 2, &err), &err);
        assert_ok(pnb_embeddings_load(&back, s->path, &err), &err);
        assert_same_links(&back->info.adapters, &e->info.adapters);
        pnb_embeddings_free(back);
        pnb_embeddings_free(e);
    }
}

/* What the release before wrote: one hash, no list. It reads as a chain of one link, and a set
 * without adapters is still written so, byte for byte. */
static void files_of_version_1(void **state)
{
    scratch *s = *state;
    static const char *const names[] = {"x.safetensors", "x.ids.jsonl", "x.npy", "x_logvar.npy",
                                        "x.json"};
    pnb_embeddings *e = NULL, *npy = NULL;
    pnb_error err = PNB_ERROR_INIT;
    scratch_clear(s);
    assert_ok(pnb_embeddings_load(&e, PNB_SOURCE_DIR "/tests/sets/v1/x.safetensors", &err), &err);
    assert_ok(pnb_embeddings_load_npy(&npy, PNB_SOURCE_DIR "/tests/sets/v1/x.npy", &err), &err);
    assert_int_equal(e->n, 2);
    assert_string_equal(e->info.model, "tiny");
    assert_string_equal(e->info.weights_sha256, ONES);
    assert_int_equal(e->info.adapters.n, 0);
    assert_int_equal(npy->info.adapters.n, 0);
    assert_ok(pnb_embeddings_check_mix(e, npy, &err), &err);
    assert_ok(pnb_embeddings_save(e, scratch_path(s, "x.safetensors"), &err), &err);
    assert_ok(pnb_embeddings_save_npy(e, scratch_path(s, "x.npy"), &err), &err);
    for (size_t i = 0; i < PNB_COUNT(names); i++) {
        char path[512], *was = NULL, *is = NULL;
        size_t n_was = 0, n_is = 0;
        snprintf(path, sizeof path, PNB_SOURCE_DIR "/tests/sets/v1/%s", names[i]);
        assert_ok(pnb__read_file(path, 1 << 20, &was, &n_was, &err), &err);
        assert_ok(pnb__read_file(scratch_path(s, names[i]), 1 << 20, &is, &n_is, &err), &err);
        assert_int_equal(n_was, n_is);
        assert_memory_equal(was, is, n_is);
        pnb__free(was);
        pnb__free(is);
    }
    /* the old program read no other version: a set with a chain says that it is one */
    pnb_safetensors *st = NULL;
    e->info.adapters.items[e->info.adapters.n++] = link_a;
    assert_ok(pnb_embeddings_save(e, scratch_path(s, "x.safetensors"), &err), &err);
    assert_ok(pnb_safetensors_open(&st, s->path, &err), &err);
    assert_string_equal(pnb_safetensors_metadata(st, "version"), "2");
    assert_string_equal(pnb_safetensors_metadata(st, "weights_sha256"), ONES);
    pnb_safetensors_free(st);
    pnb_embeddings_free(e);
    pnb_embeddings_free(npy);
}

static void links_from_strangers(void **state)
{
    (void)state;
#define LINK(name, sha, leaves)                                                                    \
    "{\"name\": \"" name "\", \"sha256\": \"" sha "\", \"leaves\": " leaves "}"
    static const struct {
        const char *text;
        pnb_status status;
        const char *says;
    } cases[] = {
        {"[" LINK("a", SHA_A, "[]") "]", PNB_OK, ""},
        {"[" LINK("a", SHA_A, "[\"image\", \"text\"]") "]", PNB_OK, ""},
        {"[]", PNB_OK, ""},
        {"{}", PNB_FORMAT, "no list"},
        {"[", PNB_FORMAT, ""},
        {"[3]", PNB_FORMAT, ""},
        {"[{}]", PNB_FORMAT, "is called \"\""},
        {"[" LINK("Whitened", SHA_A, "[]") "]", PNB_FORMAT, "is called \"Whitened\""},
        {"[" LINK("a\\nb", SHA_A, "[]") "]", PNB_FORMAT, "is called"},
        {"[" LINK("a-name-of-more-than-thirty-one-bytes", SHA_A, "[]") "]", PNB_FORMAT, "1 to 31"},
        {"[" LINK("a", "12", "[]") "]", PNB_FORMAT, "64 digits"},
        {"[" LINK("a", SHA_A "0", "[]") "]", PNB_FORMAT, "64 digits"},
        {"[" LINK("a", SHA_A, "[\"sound\"]") "]", PNB_FORMAT, "\"sound\" alone"},
        {"[" LINK("a", SHA_A, "[1]") "]", PNB_FORMAT, "(no text)"},
        {"[" LINK("a", SHA_A, "\"image\"") "]", PNB_FORMAT, "leaves"},
        {"[{},{},{},{},{},{},{},{},{}]", PNB_LIMIT, "9 adapters"},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb_adapter_links links = {.n = 3};
        pnb_error err = PNB_ERROR_INIT;
        pnb_status found = pnb__adapter_links_parse(&links, cases[i].text, "x", &err);
        if (cases[i].status == PNB_OK)
            assert_ok(found, &err);
        else
            assert_failed(found, &err, cases[i].status, cases[i].says);
        assert_int_equal(links.n, found != PNB_OK ? 3 : i < 2 ? 1 : 0);
    }
}

#ifdef PNB_FAULTS
static pnb_status write_and_read(scratch *s, pnb_error *err)
{
    pnb_embeddings e = {.family = PNB_POINT, .n = 1, .dim = 1, .mean = (float[]){1}}, *back = NULL;
    e.info = info_of("text 1 A T");
    pnb_status status = pnb_embeddings_save(&e, scratch_path(s, "x.safetensors"), err);
    if (status == PNB_OK)
        status = pnb_embeddings_load(&back, s->path, err);
    if (status == PNB_OK)
        assert_same_links(&back->info.adapters, &e.info.adapters);
    pnb_embeddings_free(back);
    return status;
}

static void out_of_memory(void **state)
{
    fail_every_allocation(write_and_read, *state);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_may_be_compared),
        cmocka_unit_test(both_chains_are_named),
        cmocka_unit_test(chains_in_words),
        cmocka_unit_test(one_set_one_chain),
        cmocka_unit_test(chains_come_back_from_files),
        cmocka_unit_test(files_of_version_1),
        cmocka_unit_test(links_from_strangers),
#ifdef PNB_FAULTS
        cmocka_unit_test(out_of_memory),
#endif
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
