/* What a pickle may name and what each name makes; everything else is refused by that name, and
 * nothing is ever called. */
#include "tests/io/weights/unpickled.h"

/* The bytes are what Python 3.11's pickle.dumps writes at protocols 0 to 5, or Python 2 wrote. */
static const pickled VALUES[] = {
    P("c_codecs\nencode\n(Vh\\u0069\nVlatin1\ntR.", "b'hi'"),
    P("c__builtin__\nset\n](K\x01"
      "e\x85R.",
      "[1]"),
    P("ccollections\nOrderedDict\n)R}U\x09_metadata}sb.", "{}"),
    P("ccollections\nOrderedDict\n]](U\x01"
      "aK\x01"
      "ea\x85R.",
      "{'a': 1}"),
    P("ctorch\nSize\n(K\x02K\x03t\x85R.", "(2, 3)"),
    P("ctorch\ndevice\nU\x03"
      "cpu\x85R.",
      "object"),
    P("cargparse\nNamespace\n)\x81}U\x02lrK\x01sb.", "object{'lr': 1}"),
    P("c__torch__.a.b\nNet\n)\x81}U\x01wK\x01sb.", "object{'w': 1}"),
    P("ctorch.jit._pickle\nbuild_intlist\n](K\x01"
      "e\x85R.",
      "[1]"),
    P("cnumpy.core.multiarray\nscalar\n(cnumpy\ndtype\n(U\x02"
      "f8I00\nI01\ntR(K\x03U\x01<NNNJ"
      "\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tbC\x08\x00\x00\x00\x00\x00\x00\x04\x40tR.",
      "2.5"),
    P("\x8c\x0b"
      "collections\x8c\x0bOrderedDict\x93)R.",
      "{}"),
};

static void values_are_what_python_reads(void **state)
{
    (void)state;
    expect_values(VALUES, PNB_COUNT(VALUES));
}

/* Names outside the table, and calls that torch.save does not write. */
static const pickled REFUSED[] = {
    P("cos\nsystem\n(S'touch /tmp/x'\ntR.", "os.system"),
    P("cposix\nsystem\n(S'true'\ntR.", "posix.system"),
    P("cbuiltins\neval\n(S'1'\ntR.", "builtins.eval"),
    P("c__builtin__\ngetattr\n(S'1'\ntR.", "__builtin__.getattr"),
    P("cbuiltins\ngetattr\n.", "builtins.getattr"),
    P("\x8c\x0asubprocess\x8c\x05Popen\x93.", "subprocess.Popen"),
    P("ctorch.nn.modules.linear\nLinear\n)\x81.", "torch.nn.modules.linear.Linear"),
    P("ctorch\nload\n.", "torch.load"),
    P("ctorch\nQInt8Storage\n.", "torch.QInt8Storage"),
    P("c__torch__x\ny\n.", "__torch__x.y"),
    P("ca\x1b[31mb\nc\xff\n.", "a?[31mb.c?"),
    P("c\n\n.", "names ."),
    P("ctorch._utils\n_rebuild_tensor_v2.eval\n.", "_rebuild_tensor_v2.eval"),
    P("(cos\nsystem\nS'1'\no.", "os.system"),
    P("K\x01)R.", "a call of a plain value"),
    P("ctorch\nFloatStorage\n)R.", "a call of torch.FloatStorage"),
    P("cargparse\nNamespace\n)R.", "a call of argparse.Namespace"),
    P("ccollections\nOrderedDict\n)\x81.", "a new object of collections.OrderedDict"),
    P("cargparse\nNamespace\nK\x01\x85\x81.", "a new object of argparse.Namespace"),
    P("K\x01}b.", "state for a plain value"),
    P("]}b.", "state for a plain value"),
    P("ctorch\nfloat32\n}b.", "state for torch.float32"),
    P("ccollections\nOrderedDict\n)R]b.", "state for a plain value"),
    P("cargparse\nNamespace\n)\x81}b}b.", "state for a plain value"),
};

static void everything_else_is_refused_by_name(void **state)
{
    (void)state;
    expect_refusals(REFUSED, PNB_COUNT(REFUSED), PNB_UNSUPPORTED);
}

/* Arguments that do not fit what is named. */
static const pickled NONSENSE[] = {
    P("K\x01K\x02\x93.", "no strings"),
    P("NQ.", "no storage"),
    P("(U\x07storageNtQ.", "without a type"),
    P("(U\x07storagectorch\nFloatStorage\nU\x01"
      "0U\x03"
      "cpuI-1\ntQ.",
      "without a type"),
    P("ctorch._utils\n_rebuild_tensor_v2\n)R.", "without a storage"),
    P("ctorch._utils\n_rebuild_parameter\n)R.", "unexpected kind"),
    P("ctorch.jit._pickle\nbuild_intlist\n)R.", NULL),
    P("ctorch\nSize\nK\x01\x85R.", "unexpected kind"),
    P("c_codecs\nencode\n(V\\u0100\nVlatin1\ntR.", "latin1"),
    P("c_codecs\nencode\n(Vhi\nVrot13\ntR.", "latin1"),
    P("ccollections\nOrderedDict\nK\x01\x85R.", "list of pairs"),
    P("ccollections\nOrderedDict\n]K\x01"
      "a\x85R.",
      "list of pairs"),
};

static void nonsense_is_refused(void **state)
{
    (void)state;
    expect_refusals(NONSENSE, PNB_COUNT(NONSENSE), PNB_FORMAT);
}

/* ---- storages and tensors ---- */

#define STORAGE(type, n)                                                                           \
    "(U\x07storagectorch\n" type "\nU\x01"                                                         \
    "kU\x03"                                                                                       \
    "cpuI" n "\ntQ"

static void storages_and_tensors(void **state)
{
    (void)state;
    static const struct {
        const char *pickle;
        size_t n;
        pnb_dtype dtype;
    } cases[] = {
#define TENSOR(type, dtype, tail)                                                                  \
    {"ctorch._utils\n_rebuild_tensor_v2\n(" STORAGE(                                               \
         type, "12") "K\x03(K\x02K\x04t(K\x04K\x01t" tail "tR.",                                   \
     sizeof("ctorch._utils\n_rebuild_tensor_v2\n(" STORAGE(                                        \
         type, "12") "K\x03(K\x02K\x04t(K\x04K\x01t" tail "tR.") -                                 \
         1,                                                                                        \
     dtype}
        TENSOR("FloatStorage", PNB_F32, "\x89}"),
        TENSOR("BFloat16Storage", PNB_BF16, ""),
        TENSOR("BoolStorage", PNB_BOOL, ""),
        TENSOR("CharStorage", PNB_I8, ""),
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        loaded l = load(cases[i].pickle, cases[i].n);
        assert_ok(l.status, &l.err);
        assert_int_equal(l.result.root->kind, PNB__PK_TENSOR);
        const pnb__pk_tensor *t = l.result.root->u.tensor;
        assert_true(t->dtype == cases[i].dtype && t->n_dims == 2 && t->offset == 3);
        assert_true(t->shape[0] == 2 && t->shape[1] == 4 && t->stride[0] == 4 && t->stride[1] == 1);
        assert_int_equal(t->storage->u.storage.n_elements, 12);
        assert_memory_equal(t->storage->u.storage.key, "k", 1);
        assert_int_equal(l.result.storages->u.list.n, 1);
        assert_ptr_equal(l.result.storages->u.list.items[0], t->storage);
        unload(&l);
    }
}

/* A storage of bytes has no type of its own: v3 tells it as seventh argument, v2 cannot. */
static void untyped_storages(void **state)
{
    (void)state;
    loaded l = LOAD("ctorch._utils\n_rebuild_tensor_v3\n(" STORAGE(
        "UntypedStorage", "8") "K\x00(K\x04t(K\x01t\x89}ctorch\nuint16\ntR.");
    assert_ok(l.status, &l.err);
    assert_int_equal(l.result.root->u.tensor->dtype, PNB_U16);
    unload(&l);
    static const pickled bad[] = {
        P("ctorch._utils\n_rebuild_tensor_v2\n(" STORAGE("UntypedStorage",
                                                         "8") "K\x00(K\x04t(K\x01ttR.",
          "an untyped storage without a dtype"),
        P("ctorch._utils\n_rebuild_tensor_v3\n(" STORAGE("FloatStorage",
                                                         "8") "K\x00(K\x04t(K\x01t\x89}NtR.",
          "a tensor without a dtype"),
        P("ctorch._utils\n_rebuild_tensor_v2\n(" STORAGE("FloatStorage", "8") "K\x00]]tR.",
          "is no tuple"),
        P("ctorch._utils\n_rebuild_tensor_v2\n(" STORAGE("FloatStorage", "8") "K\x00(K\x02t)tR.",
          "more or fewer strides"),
        P("ctorch._utils\n_rebuild_tensor_v2\n(" STORAGE(
              "FloatStorage", "8") "K\x00(G\x40\x00\x00\x00\x00\x00\x00\x00t(K\x01ttR.",
          "not a whole number from 0"),
    };
    expect_refusals(bad, PNB_COUNT(bad), PNB_FORMAT);
    static const pickled old[] = {
        P("(U\x07storagectorch\nFloatStorage\nU\x01"
          "kU\x03"
          "cpuI8\n(K\x01ttQ.",
          "a view of another (torch before 0.4)"),
    };
    expect_refusals(old, PNB_COUNT(old), PNB_UNSUPPORTED);
}

/* Scalars of numpy by their bytes; a dtype of another byte order would read them wrong. */
static void scalars_of_numpy(void **state)
{
    (void)state;
#define SCALAR(type, order, bytes)                                                                 \
    "cnumpy.core.multiarray\nscalar\n(cnumpy\ndtype\n(U\x02" type "tR(K\x03U\x01" order "tb" bytes \
    "tR."
    static const pickled good[] = {
        P(SCALAR("i8", "<", "C\x08\xff\xff\xff\xff\xff\xff\xff\xff"), "-1"),
        P(SCALAR("f4", "<", "C\x04\x00\x00\x20\x40"), "2.5"),
        P(SCALAR("b1", "|", "C\x01\x01"), "object"),
        P(SCALAR("f8", "<", "C\x04\x00\x00\x20\x40"), "object"), /* four bytes are no f8 */
    };
    static const pickled bad[] = {
        P(SCALAR("f8", ">", "C\x08\x40\x04\x00\x00\x00\x00\x00\x00"), "another byte order"),
        P("cnumpy\ndtype\n(K\x01tR.", "a numpy dtype without a name"),
    };
    expect_values(good, PNB_COUNT(good));
    expect_refusals(bad, PNB_COUNT(bad), PNB_FORMAT);
}

/* Instances of one class, of whatever module, where they are asked for: state and no code. */
static void instances_of_a_class(void **state)
{
    static const char one[] = "cmod.sub\nWords\n)\x81}U\x01wK\x01sb.";
    static const char called[] = "cmod\nWords\n)R.", other[] = "cmod\nWord\n)\x81.";
    static const char given[] = "cmod\nWords\nK\x01\x85\x81.";
    pnb__buf text = {0};
    (void)state;
    loaded l = load_class(one, sizeof one - 1, "Words");
    assert_ok(l.status, &l.err);
    show(l.result.root, &text);
    assert_string_equal(text.data, "object{'w': 1}");
    assert_true(pnb__pk_is_text(l.result.module, "mod.sub"));
    pnb__buf_reset(&text);
    unload(&l);
    l = load(one, sizeof one - 1);
    assert_failed(l.status, &l.err, PNB_UNSUPPORTED, "names mod.sub.Words, which is not among");
    unload(&l);
    l = load_class(called, sizeof called - 1, "Words");
    assert_failed(l.status, &l.err, PNB_UNSUPPORTED, "a call of");
    unload(&l);
    l = load_class(given, sizeof given - 1, "Words");
    assert_failed(l.status, &l.err, PNB_UNSUPPORTED, "a new object of");
    unload(&l);
    l = load_class(other, sizeof other - 1, "Words");
    assert_failed(l.status, &l.err, PNB_UNSUPPORTED,
                  "names mod.Word; plain dicts and instances of a class Words");
    unload(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_what_python_reads),
        cmocka_unit_test(everything_else_is_refused_by_name),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(storages_and_tensors),
        cmocka_unit_test(untyped_storages),
        cmocka_unit_test(scalars_of_numpy),
        cmocka_unit_test(instances_of_a_class),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
