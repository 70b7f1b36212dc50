/* Pickles read and written down as Python's repr nearly writes them. */
#ifndef TESTS_IO_WEIGHTS_UNPICKLED_H
#define TESTS_IO_WEIGHTS_UNPICKLED_H

#include "io/weights/pickle.h"
#include "tests/io/scratch.h"

typedef struct loaded {
    pnb__arena arena;
    pnb__pk_result result;
    pnb_error err;
    pnb_status status;
} loaded;

/* Exactly n bytes, kept until unload; instances of class_name may stand in it. */
static inline loaded load_class(const char *pickle, size_t n, const char *class_name)
{
    loaded l = {.err = PNB_ERROR_INIT};
    pnb__pk_budget budget = pnb__pk_budget_for(n);
    pnb__arena_init(&l.arena, 4096);
    pnb__pk_source source = {(const unsigned char *)pickle, n, "p", &l.arena, &budget, class_name};
    l.status = pnb__pickle_load(&source, &l.result, &l.err);
    return l;
}

static inline loaded load(const char *pickle, size_t n)
{
    return load_class(pickle, n, NULL);
}

static inline void unload(loaded *l)
{
    pnb__arena_free(&l->arena);
}

#define LOAD(text) load(text, sizeof(text) - 1)

/* A value as Python's repr would nearly write it. */
static inline void show(const pnb__pk_value *v, pnb__buf *out)
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

/* Each gives what is wanted (NULL: anything) and is used up. */
static inline void expect_values(const pickled *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        loaded l = load(cases[i].bytes, cases[i].n);
        pnb__buf text = {0};
        if (cases[i].want != NULL && l.status != PNB_OK)
            fail_msg("case %zu, %s: %s", i, cases[i].want, l.err.text);
        if (cases[i].want == NULL) {
            assert_int_equal(l.status, PNB_OK);
        } else {
            show(l.result.root, &text);
            assert_string_equal(text.data, cases[i].want);
            assert_int_equal(l.result.used, cases[i].n);
        }
        pnb__buf_reset(&text);
        unload(&l);
    }
}

/* Each is refused so; want NULL: it need not be. */
static inline void expect_refusals(const pickled *cases, size_t n, pnb_status status)
{
    for (size_t i = 0; i < n; i++) {
        loaded l = load(cases[i].bytes, cases[i].n);
        if (cases[i].want == NULL)
            assert_true(l.err.text[0] != '\0' || l.status == PNB_OK);
        else if (l.status != status || strstr(l.err.text, cases[i].want) == NULL)
            fail_msg("case %zu, %s: %s \"%s\"", i, cases[i].want, pnb_status_name(l.status),
                     l.err.text);
        unload(&l);
    }
}

#endif
