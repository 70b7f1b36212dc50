/* The restricted unpickler: each opcode against what Python's pickle makes of it, and pickles that
 * want to run something, to grow, or make no sense. Nothing a pickle names may ever be called. */
#include "tests/io/scratch.h"

#include "io/weights/pickle.h"

typedef struct loaded {
    pnb__arena arena;
    pnb__pk_result result;
    pnb_error err;
    pnb_status status;
} loaded;

/* Exactly n bytes, kept until unload. */
static loaded load(const char *pickle, size_t n)
{
    loaded l = {.err = PNB_ERROR_INIT};
    pnb__pk_budget budget = pnb__pk_budget_for(n);
    pnb__arena_init(&l.arena, 4096);
    pnb__pk_source source = {(const unsigned char *)pickle, n, "p", &l.arena, &budget};
    l.status = pnb__pickle_load(&source, &l.result, &l.err);
    return l;
}

static void unload(loaded *l)
{
    pnb__arena_free(&l->arena);
}

#define LOAD(text) load(text, sizeof(text) - 1)

/* A value as Python's repr would nearly write it. */
static void show(const pnb__pk_value *v, pnb__buf *out)
{
    static const char *const ends[] = {"()", "[]", "{}"};
    switch ((pnb__pk_kind)v->kind) {
    case PNB__PK_NONE:
        pnb__buf_puts(out, "None");
        return;
    case PNB__PK_BOOL:
        pnb__buf_puts(out, v->u.truth ? "True" : "False");
        return;
    case PNB__PK_INT:
        pnb__buf_printf(out, "%lld", (long long)v->u.integer);
        return;
    case PNB__PK_FLOAT:
        pnb__buf_printf(out, "%.17g", v->u.real);
        return;
    case PNB__PK_STR:
    case PNB__PK_BYTES:
        pnb__buf_puts(out, v->kind == PNB__PK_BYTES ? "b'" : "'");
        pnb__buf_append(out, v->u.text.data, v->u.text.n);
        pnb__buf_putc(out, '\'');
        return;
    case PNB__PK_TUPLE:
    case PNB__PK_LIST:
    case PNB__PK_DICT: {
        const char *end = ends[v->kind - PNB__PK_TUPLE];
        pnb__buf_putc(out, end[0]);
        for (uint32_t i = 0; i < v->u.list.n; i++) {
            if (i > 0)
                pnb__buf_puts(out, v->kind == PNB__PK_DICT && i % 2 ? ": " : ", ");
            show(v->u.list.items[i], out);
        }
        pnb__buf_putc(out, end[1]);
        return;
    }
    case PNB__PK_BIG:
        pnb__buf_printf(out, "big %zu", v->u.text.n);
        return;
    case PNB__PK_OBJECT:
        pnb__buf_puts(out, "object");
        for (uint32_t i = 0; i < v->u.list.n; i++)
            show(v->u.list.items[i], out);
        return;
    default:
        pnb__buf_printf(out, "kind %d", v->kind);
    }
}

typedef struct pickled {
    const char *bytes;
    size_t n;
    const char *want;
} pickled;
#define P(bytes, want)                                                                             \
    {                                                                                              \
        bytes, sizeof(bytes) - 1, want                                                             \
    }

/* The bytes are what Python 3.11's pickle.dumps writes at protocols 0 to 5, or Python 2 wrote. */
static const pickled python_values[] = {
    P("N.", "None"),
    P("\x88.", "True"),
    P("I01\n.", "True"),
    P("I00\n.", "False"),
    P("I-7\n.", "-7"),
    P("L12345678901L\n.", "12345678901"),
    P("L123456789012345678901234567890L\n.", "big 31"),
    P("J\xfe\xff\xff\xff.", "-2"),
    P("K\xff.", "255"),
    P("M\x01\x02.", "513"),
    P("\x8a\x00.", "0"),
    P("\x8a\x01\xff.", "-1"),
    P("\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80.", "-9223372036854775808"),
    P("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00.", "big 9"),
    P("\x8b\x02\x00\x00\x00\x39\x30.", "12345"),
    P("F2.5\n.", "2.5"),
    P("G\x40\x04\x00\x00\x00\x00\x00\x00.", "2.5"),
    P("S'abc'\n.", "'abc'"),
    P("U\x02hi.", "'hi'"),
    P("T\x02\x00\x00\x00hi.", "'hi'"),
    P("Vh\\u00e9\\U0001f600\xe9\n.", "'h\xc3\xa9\xf0\x9f\x98\x80\xc3\xa9'"),
    P("X\x02\x00\x00\x00hi.", "'hi'"),
    P("\x80\x04\x95\x06\x00\x00\x00\x00\x00\x00\x00\x8c\x02hi\x94.", "'hi'"),
    P("\x8d\x02\x00\x00\x00\x00\x00\x00\x00hi.", "'hi'"),
    P("C\x02hi.", "b'hi'"),
    P("B\x02\x00\x00\x00hi.", "b'hi'"),
    P("\x8e\x02\x00\x00\x00\x00\x00\x00\x00hi.", "b'hi'"),
    P("\x96\x02\x00\x00\x00\x00\x00\x00\x00hi.", "b'hi'"),
    P("c_codecs\nencode\n(Vh\\u0069\nVlatin1\ntR.", "b'hi'"),
    P(").", "()"),
    P("(K\x01K\x02t.", "(1, 2)"),
    P("K\x01\x85.", "(1)"),
    P("K\x01K\x02\x86.", "(1, 2)"),
    P("K\x01K\x02K\x03\x87.", "(1, 2, 3)"),
    P("(K\x01K\x02l.", "[1, 2]"),
    P("](K\x01K\x02"
      "e.",
      "[1, 2]"),
    P("]K\x01"
      "aK\x02"
      "a.",
      "[1, 2]"),
    P("(K\x01K\x02"
      "d.",
      "{1: 2}"),
    P("}K\x01K\x02s.", "{1: 2}"),
    P("}(K\x01K\x02K\x03K\x04u.", "{1: 2, 3: 4}"),
    P("\x8f(K\x01K\x02\x90.", "[1, 2]"),
    P("(K\x01K\x02\x91.", "[1, 2]"),
    P("c__builtin__\nset\n](K\x01"
      "e\x85R.",
      "[1]"),
    P("K\x01q\x05K\x02"
      "0h\x05\x86.",
      NULL),
    P("(K\x01q\x05h\x05t.", "(1, 1)"),
    P("(K\x01p3\ng3\nt.", "(1, 1)"),
    P("(K\x01r\x05\x00\x00\x00j\x05\x00\x00\x00t.", "(1, 1)"),
    P("(K\x01\x94K\x02\x94h\x00h\x01t.", "(1, 2, 1, 2)"),
    P("(K\x01"
      "2t.",
      "(1, 1)"),
    P("K\x05(K\x01K\x02"
      "1.",
      "5"),
    P("K\x05(0.", "5"),
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
    for (size_t i = 0; i < PNB_COUNT(python_values); i++) {
        loaded l = load(python_values[i].bytes, python_values[i].n);
        pnb__buf text = {0};
        if (python_values[i].want != NULL && l.status != PNB_OK)
            fail_msg("case %zu, %s: %s", i, python_values[i].want, l.err.text);
        if (python_values[i].want == NULL) {
            assert_int_equal(l.status, PNB_OK);
        } else {
            show(l.result.root, &text);
            assert_string_equal(text.data, python_values[i].want);
            assert_int_equal(l.result.used, python_values[i].n);
        }
        pnb__buf_reset(&text);
        unload(&l);
    }
}

static void everything_else_is_refused_by_name(void **state)
{
    (void)state;
    static const pickled cases[] = {
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
        P("(S'1'\nios\nsystem\n.", "opcode 0x69"),
        P("(cos\nsystem\nS'1'\no.", "os.system"),
        P("(ccollections\nOrderedDict\no.", "opcode 0x6f"),
        P("ccollections\nOrderedDict\n)}\x92.", "opcode 0x92"),
        P("\x82\x01.", "opcode 0x82"),
        P("P1\n.", "opcode 0x50"),
        P("\x97.", "opcode 0x97"),
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
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        loaded l = load(cases[i].bytes, cases[i].n);
        if (l.status != PNB_UNSUPPORTED || strstr(l.err.text, cases[i].want) == NULL)
            fail_msg("case %zu, %s: %s \"%s\"", i, cases[i].want, pnb_status_name(l.status),
                     l.err.text);
        unload(&l);
    }
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    static const pickled cases[] = {
        P("", "truncated"),
        P(".", "empty stack"),
        P("N", "truncated"),
        P("0.", "empty stack"),
        P("(.", "empty stack"),
        P("t.", "mark"),
        P("]e.", "mark"),
        P("K\x01\x86.", "empty stack"),
        P("(K\x01"
          "d.",
          "key without a value"),
        P("}(K\x01u.", "key without a value"),
        P("}K\x01s.", "empty stack"),
        P("NK\x01K\x02s.", "adds items to something that has none"),
        P("K\x01(K\x02"
          "e.",
          "adds items"),
        P(")K\x01"
          "a.",
          "adds items"),
        P("N(K\x01"
          "a.",
          "empty stack"),
        P("h\x00.", "never stored"),
        P("j\xff\xff\xff\xff.", "never stored"),
        P("Nr\xff\xff\xff\xff.", "larger than the pickle"),
        P("Np99999999999\n.", "larger than the pickle"),
        P("q\x00.", "empty stack"),
        P("Npx\n.", "memo number"),
        P("X\xff\xff\xff\xffhi.", "longer than the file"),
        P("\x8d\xff\xff\xff\xff\xff\xff\xff\xffhi.", "longer than the file"),
        P("\x8b\xff\xff\xff\xffhi.", "truncated"),
        P("S'abc.", "without end"),
        P("Sabc\n.", "not quoted"),
        P("S'a\\n'\n.", "escapes"),
        P("V\\u12\n.", "escape"),
        P("V\\U99999999999\n.", NULL),
        P("Iabc\n.", "a number that is none"),
        P("I\n.", "no or more"),
        P("F1.5x\n.", "a number that is none"),
        P("\x80\x06N.", "protocol above 5"),
        P("\x01.", "no opcode"),
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
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        loaded l = load(cases[i].bytes, cases[i].n);
        if (cases[i].want == NULL)
            assert_true(l.err.text[0] != '\0' || l.status == PNB_OK);
        else if (l.status != PNB_FORMAT || strstr(l.err.text, cases[i].want) == NULL)
            fail_msg("case %zu, %s: %s \"%s\"", i, cases[i].want, pnb_status_name(l.status),
                     l.err.text);
        unload(&l);
    }
}

/* Memory grows with the pickle's bytes at most: many empty things, and many copies of a tensor. */
static void memory_is_bounded(void **state)
{
    (void)state;
    static const char *const parts[] = {"}", "(", "N", "]N", "h\x01"};
    for (size_t k = 0; k < PNB_COUNT(parts); k++) {
        pnb__buf b = {0};
        pnb__buf_append(&b, "Nq\x01", 3);
        for (int i = 0; i < 200000; i++)
            pnb__buf_puts(&b, parts[k]);
        pnb__buf_putc(&b, '.');
        loaded l = load(b.data, b.size);
        pnb__pk_budget budget = pnb__pk_budget_for(b.size);
        assert_true(l.status == PNB_OK || l.status == PNB_FORMAT || l.status == PNB_LIMIT);
        assert_true(budget.most <= 64 * b.size + (64 << 10));
        unload(&l);
        pnb__buf_reset(&b);
    }
}

/* Dicts of dicts, each holding the one before twice: small here, endless for who walks it. */
static void keys_are_found_last_first(void **state)
{
    (void)state;
    loaded l = LOAD("}(U\x01"
                    "aK\x01U\x01"
                    "bK\x02U\x01"
                    "aK\x03u.");
    assert_int_equal(pnb__pk_get(l.result.root, "a")->u.integer, 3);
    assert_int_equal(pnb__pk_get(l.result.root, "b")->u.integer, 2);
    assert_null(pnb__pk_get(l.result.root, "c"));
    assert_null(pnb__pk_get(NULL, "c"));
    unload(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_what_python_reads),
        cmocka_unit_test(everything_else_is_refused_by_name),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(keys_are_found_last_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
