/* Tensors of a checkpoint: shape, offset and strides within their storage; the names that dicts
 * within dicts give them; what has no name. */
#include "io/weights/torch_file.h"

#include "tests/io/weights/archives.h"

static pnb_status open_tensor(const char *n_elements, const char *offset, const char *shape,
                              const char *stride, pnb_error *err)
{
    char pickle[512];
    static const float values[12] = {1, 2, 3};
    archive a = {0};
    size_t n = tensor_pickle(pickle, sizeof pickle, n_elements, offset, shape, stride);
    add_stored(&a, "a/data.pkl", pickle, n);
    add_stored(&a, "a/data/0", values, sizeof values);
    return close_and_open(&a, err);
}

static void tensors_must_fit_their_storage(void **state)
{
    (void)state;
    static const struct {
        const char *n, *offset, *shape, *stride;
        pnb_status want;
        const char *words;
    } cases[] = {
        {"12", "0", "I3\nI4\n", "I4\nI1\n", PNB_OK, ""},
        {"12", "0", "I4\nI3\n", "I1\nI4\n", PNB_OK, ""},
        {"12", "12", "I0\n", "I1\n", PNB_OK, ""},
        {"12", "11", "", "", PNB_OK, ""},
        {"12", "12", "", "", PNB_FORMAT, "beyond its storage"},
        {"12", "1", "I3\nI4\n", "I4\nI1\n", PNB_FORMAT, "beyond its storage"},
        {"12", "0", "I13\n", "I1\n", PNB_FORMAT, "beyond its storage"},
        {"13", "0", "I3\n", "I1\n", PNB_FORMAT, "48 bytes"},
        {"11", "0", "I3\n", "I1\n", PNB_FORMAT, "48 bytes"},
        {"12", "-1", "I3\n", "I1\n", PNB_FORMAT, "offset"},
        {"12", "4", "I3\n", "I-1\n", PNB_FORMAT, "from 0"},
        {"12", "0", "I-3\n", "I1\n", PNB_FORMAT, "from 0"},
        {"12", "0", "I3\n", "I1\nI1\n", PNB_FORMAT, "strides"},
        {"12", "0", "I4611686018427387904\nI4\n", "I0\nI0\n", PNB_FORMAT, "\"w\""},
        {"12", "0", "I2\n", "I9223372036854775807\n", PNB_FORMAT, "beyond its storage"},
        {"12", "0", "I3\nI2\n", "I9223372036854775807\nI1\n", PNB_FORMAT, "beyond its storage"},
        {"12", "9223372036854775807", "I3\n", "I1\n", PNB_FORMAT, "beyond its storage"},
        {"12", "0", "I1000000000\n", "I0\n", PNB_LIMIT, "unfold"},
        {"9223372036854775807", "0", "I3\n", "I1\n", PNB_FORMAT, "promised"},
        {"12", "0", "I1\nI1\nI1\nI1\nI1\nI1\nI1\nI1\nI1\n", "I1\n", PNB_UNSUPPORTED, "dimensions"},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb_error err = PNB_ERROR_INIT;
        pnb_status found =
            open_tensor(cases[i].n, cases[i].offset, cases[i].shape, cases[i].stride, &err);
        if (found != cases[i].want || (found != PNB_OK && !strstr(err.text, cases[i].words)))
            fail_msg("case %zu: %s \"%s\"", i, pnb_status_name(found), err.text);
    }
}

/* Contiguous tensors are not copied, and tensors of one storage lie in the same bytes. */
static void tensors_are_mapped_and_shared(void **state)
{
    (void)state;
    char *bytes = NULL;
    size_t n = 0;
    pnb_checkpoint *c = NULL;
    assert_int_equal(pnb__read_file(DATA "strided_zip.pt", 1 << 20, &bytes, &n, NULL), PNB_OK);
    assert_int_equal(pnb_checkpoint_open_bytes(&c, bytes, n, NULL), PNB_OK);
    const char *whole = pnb_checkpoint_find(c, "whole")->data;
    assert_true(whole > bytes && whole < bytes + n);
    assert_ptr_equal(pnb_checkpoint_find(c, "again")->data, whole);
    assert_ptr_equal(pnb_checkpoint_find(c, "offset")->data, whole + 7 * sizeof(float));
    assert_true(pnb_array_is_aligned(pnb_checkpoint_find(c, "whole")));
    const char *t = pnb_checkpoint_find(c, "t")->data;
    assert_false(t >= bytes && t < bytes + n);
    assert_true(((const float *)(const void *)t)[1] == 10.0f);
    assert_null(pnb_checkpoint_find(c, "absent"));
    assert_null(pnb_checkpoint_find(c, NULL));
    assert_null(pnb_checkpoint_at(c, pnb_checkpoint_count(c)));
    assert_string_equal(pnb_checkpoint_at(c, 0)->name, "t"); /* the order of the dict */
    assert_null(pnb_checkpoint_metadata(c, "format"));
    pnb_checkpoint_retain(c);
    pnb_checkpoint_free(c);
    assert_ptr_equal(pnb_checkpoint_find(c, "whole")->data, whole);
    pnb_checkpoint_free(c);
    pnb_checkpoint_free(NULL);
    pnb__free(bytes);
}

/* ---- trees made here: one storage of 6 floats, a tensor of two of them for each name ---- */

static pnb__pk_value STORAGE = {
    .kind = PNB__PK_STORAGE, .detail = PNB_F32, .u.storage = {"0", 1, 6}};
static const pnb__pk_tensor PAIR = {
    .storage = &STORAGE, .dtype = PNB_F32, .n_dims = 1, .offset = 2, .shape = {2}, .stride = {1}};
static pnb__pk_value TENSOR = {.kind = PNB__PK_TENSOR, .u.tensor = &PAIR};
static const float VALUES[6] = {0, 1, 2, 3, 4, 5};

static pnb__pk_value text(const char *s)
{
    return (pnb__pk_value){.kind = PNB__PK_STR, .u.text = {s, strlen(s)}};
}

static pnb__pk_value list_of(pnb__pk_kind kind, pnb__pk_value **items, uint32_t n)
{
    return (pnb__pk_value){.kind = (unsigned char)kind, .u.list = {items, n, n}};
}

typedef struct viewed {
    pnb__torch_file file;
    pnb__torch_storage storage;
    pnb__arena arena;
    pnb_status status;
    pnb_error err;
} viewed;

static void view(viewed *v, const pnb__pk_value *root)
{
    *v = (viewed){.file = {.root = ""}, .err = PNB_ERROR_INIT};
    v->storage = (pnb__torch_storage){
        .key = "0", .n_key = 1, .data = (const unsigned char *)VALUES, .n_bytes = sizeof VALUES};
    pnb__arena_init(&v->arena, 4096);
    pnb__torch_job job = {.file = &v->file,
                          .where = "x.pt",
                          .arena = &v->arena,
                          .storages = &v->storage,
                          .n_storages = 1,
                          .copy_left = 1000,
                          .err = &v->err};
    v->status = pnb__torch_views(&job, root);
}

static void unview(viewed *v)
{
    pnb__torch_close(&v->file);
    pnb__arena_free(&v->arena);
}

/* {"state_dict": {"a": T, "b": {"c": T, 7: T}, "l": [T, T], "n": 7}} */
static void nested_names(void **state)
{
    (void)state;
    pnb__pk_value a = text("a"), b = text("b"), c = text("c"), l = text("l"), n = text("n"),
                  key = text("state_dict");
    pnb__pk_value seven = {.kind = PNB__PK_INT, .u.integer = 7};
    pnb__pk_value inner =
        list_of(PNB__PK_DICT, (pnb__pk_value *[]){&c, &TENSOR, &seven, &TENSOR}, 4);
    pnb__pk_value two = list_of(PNB__PK_LIST, (pnb__pk_value *[]){&TENSOR, &TENSOR}, 2);
    pnb__pk_value dict = list_of(
        PNB__PK_DICT, (pnb__pk_value *[]){&a, &TENSOR, &b, &inner, &l, &two, &n, &seven}, 8);
    pnb__pk_value root = list_of(PNB__PK_DICT, (pnb__pk_value *[]){&seven, &seven, &key, &dict}, 4);
    viewed v;
    view(&v, &root);
    assert_ok(v.status, &v.err);
    assert_string_equal(v.file.root, "state_dict");
    assert_int_equal(v.file.n, 2);
    assert_string_equal(v.file.views[0].name, "a");
    assert_string_equal(v.file.views[1].name, "b.c");
    assert_int_equal(v.file.n_unnamed, 3); /* two of the list, one that is numbered */
    assert_ptr_equal(v.file.views[1].data, (const unsigned char *)VALUES + 8);
    assert_int_equal(v.file.n_owned, 0);
    unview(&v);
    view(&v, &dict); /* bare */
    assert_ok(v.status, &v.err);
    assert_string_equal(v.file.root, "");
    assert_int_equal(v.file.n, 2);
    unview(&v);
}

/* "module." goes where every name has it and none is nothing without it. */
static void the_prefix_of_parallel_training_goes(void **state)
{
    (void)state;
    static const struct {
        const char *first, *second, *want;
    } cases[] = {{"module.a", "module.b", "a"},
                 {"module.a", "b", "module.a"},
                 {"module.a", "module.", "module.a"}};
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb__pk_value a = text(cases[i].first), b = text(cases[i].second);
        pnb__pk_value dict =
            list_of(PNB__PK_DICT, (pnb__pk_value *[]){&a, &TENSOR, &b, &TENSOR}, 4);
        viewed v;
        view(&v, &dict);
        assert_ok(v.status, &v.err);
        assert_string_equal(v.file.views[0].name, cases[i].want);
        unview(&v);
    }
}

/* {"model": {"module.a": T}, "criterion": {"negative_scale": T, "shift": T}, "word2idx": words}, as
 * PCME's code saves it: the criterion stands behind no "module.", words come in order of their ids,
 * or not at all. */
static void beside_the_model(void **state)
{
    (void)state;
    static const struct {
        const char *word[3];
        int64_t id[3];
        const char *want;
    } cases[] = {{{"two", "<pad>", "one"}, {2, 0, 1}, "<pad>\none\ntwo\n"},
                 {{"two", "<pad>", "one"}, {3, 0, 1}, NULL},
                 {{"two", "<pad>", "one"}, {1, 0, 1}, NULL},
                 {{"two", "<pad>", "one"}, {-1, 0, 1}, NULL},
                 {{"t\nwo", "<pad>", "one"}, {2, 0, 1}, NULL},
                 {{"", "<pad>", "one"}, {2, 0, 1}, NULL}};
    pnb__pk_value a = text("module.a"), scale = text("negative_scale"), shift = text("shift");
    pnb__pk_value keys[3] = {text("model"), text("criterion"), text("word2idx")};
    pnb__pk_value model = list_of(PNB__PK_DICT, (pnb__pk_value *[]){&a, &TENSOR}, 2);
    pnb__pk_value criterion =
        list_of(PNB__PK_DICT, (pnb__pk_value *[]){&scale, &TENSOR, &shift, &TENSOR}, 4);
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb__pk_value words[3], ids[3];
        for (int k = 0; k < 3; k++) {
            words[k] = text(cases[i].word[k]);
            ids[k] = (pnb__pk_value){.kind = PNB__PK_INT, .u.integer = cases[i].id[k]};
        }
        pnb__pk_value dict = list_of(
            PNB__PK_DICT,
            (pnb__pk_value *[]){&words[0], &ids[0], &words[1], &ids[1], &words[2], &ids[2]}, 6);
        pnb__pk_value root = list_of(
            PNB__PK_DICT,
            (pnb__pk_value *[]){&keys[0], &model, &keys[1], &criterion, &keys[2], &dict}, 6);
        viewed v;
        view(&v, &root);
        assert_ok(v.status, &v.err);
        assert_int_equal(v.file.n, 3);
        assert_string_equal(v.file.views[0].name, "a");
        assert_string_equal(v.file.views[1].name, "criterion.negative_scale");
        assert_true((v.file.words == NULL) == (cases[i].want == NULL));
        if (cases[i].want != NULL)
            assert_string_equal(v.file.words, cases[i].want);
        unview(&v);
    }
}

/* Every third value of a transposed view is copied, once, and counted. */
static void strided_tensors_are_gathered(void **state)
{
    (void)state;
    const pnb__pk_tensor turned = {
        .storage = &STORAGE, .dtype = PNB_F32, .n_dims = 2, .shape = {3, 2}, .stride = {1, 3}};
    const float want[6] = {0, 3, 1, 4, 2, 5};
    pnb__pk_value t = {.kind = PNB__PK_TENSOR, .u.tensor = &turned}, a = text("a");
    pnb__pk_value dict = list_of(PNB__PK_DICT, (pnb__pk_value *[]){&a, &t}, 2);
    viewed v;
    view(&v, &dict);
    assert_ok(v.status, &v.err);
    assert_int_equal(v.file.n_owned, 1);
    assert_memory_equal(v.file.views[0].data, want, sizeof want);
    unview(&v);
    pnb__torch_close(&v.file);
}

/* torch.save(tensor): the whole file is one. */
static void a_bare_tensor(void **state)
{
    (void)state;
    viewed v;
    view(&v, &TENSOR);
    assert_ok(v.status, &v.err);
    assert_int_equal(v.file.n, 1);
    assert_string_equal(v.file.views[0].name, "tensor");
    unview(&v);
}

static void trees_that_hold_nothing(void **state)
{
    (void)state;
    pnb__pk_value a = text("a"), nul = {.kind = PNB__PK_STR, .u.text = {"a\0b", 3}},
                  bad = text("\xFF"), empty = text("");
    pnb__pk_value circle = {0}, none = list_of(PNB__PK_DICT, NULL, 0),
                  lone = list_of(PNB__PK_LIST, NULL, 0);
    circle = list_of(PNB__PK_DICT, (pnb__pk_value *[]){&a, &circle}, 2);
    const struct {
        pnb__pk_value root;
        pnb_status want;
        const char *says;
    } cases[] = {
        {lone, PNB_FORMAT, "x.pt: the file holds no dict of tensors"},
        {none, PNB_FORMAT, "no tensor with a name in its dict"},
        {circle, PNB_LIMIT, "dicts within dicts more than 32 deep, or in a circle"},
        {list_of(PNB__PK_DICT, (pnb__pk_value *[]){&nul, &TENSOR}, 2), PNB_FORMAT,
         "a tensor's name is empty"},
        {list_of(PNB__PK_DICT, (pnb__pk_value *[]){&bad, &TENSOR}, 2), PNB_FORMAT, "not UTF-8"},
        {list_of(PNB__PK_DICT, (pnb__pk_value *[]){&empty, &TENSOR}, 2), PNB_FORMAT,
         "a tensor's name is empty"},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        viewed v;
        view(&v, &cases[i].root);
        assert_failed(v.status, &v.err, cases[i].want, cases[i].says);
        unview(&v);
    }
}

static void storages_are_looked_up(void **state)
{
    (void)state;
    pnb__pk_value other = STORAGE, a = text("a");
    other.u.storage.key = "1";
    const pnb__pk_tensor lost = {
        .storage = &other, .dtype = PNB_F32, .n_dims = 1, .shape = {2}, .stride = {1}};
    pnb__pk_value t = {.kind = PNB__PK_TENSOR, .u.tensor = &lost};
    pnb__pk_value dict = list_of(PNB__PK_DICT, (pnb__pk_value *[]){&a, &t}, 2);
    viewed v;
    view(&v, &dict);
    assert_failed(v.status, &v.err, PNB_FORMAT, "\"a\": its storage is not in the file");
    unview(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_must_fit_their_storage),
        cmocka_unit_test(tensors_are_mapped_and_shared),
        cmocka_unit_test(nested_names),
        cmocka_unit_test(the_prefix_of_parallel_training_goes),
        cmocka_unit_test(beside_the_model),
        cmocka_unit_test(strided_tensors_are_gathered),
        cmocka_unit_test(a_bare_tensor),
        cmocka_unit_test(trees_that_hold_nothing),
        cmocka_unit_test(storages_are_looked_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
