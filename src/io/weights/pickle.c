/* The pickle machine: opcodes, stack and memo (Python's Lib/pickletools.py, protocols 0 to 5).
 *
 * A pickle is a program for a stack machine. This one only ever makes plain values; the opcodes
 * that would import and call things are decided in pickle_build.c against a fixed table, and those
 * that only such programs need (EXT, INST, out-of-band buffers) are refused; plain values are
 * pushed by pickle_values.c. Values are never followed here, so depth costs nothing; memory is
 * counted against a budget that grows with the bytes read, and memo numbers above the pickle's own
 * size are refused. */
#include "io/weights/pickle_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define POOL_VALUES 128
#define BYTES_PER_BYTE ((size_t)64)
#define MOST_BYTES ((size_t)1 << 30)

typedef pnb_status (*op_fn)(pnb__unpickler *u, unsigned char op);

pnb__pk_budget pnb__pk_budget_for(size_t n_bytes)
{
    size_t most = MOST_BYTES;
    if (n_bytes < MOST_BYTES / BYTES_PER_BYTE)
        most = PNB_MIN(BYTES_PER_BYTE * n_bytes + ((size_t)64 << 10), MOST_BYTES);
    return (pnb__pk_budget){0, most};
}

/* ---- memory ---- */

pnb_status pnb__pk_bad(pnb__unpickler *u, const char *problem)
{
    return pnb__fail(u->err, PNB_FORMAT, "%s: pickle byte %zu: %s", u->source.where, u->at,
                     problem);
}

void *pnb__pk_take(pnb__unpickler *u, size_t bytes)
{
    pnb__pk_budget *b = u->source.budget;
    size_t counted = PNB_MAX(bytes, (size_t)64);
    if (counted > b->most - b->used) {
        u->status = pnb__fail(u->err, PNB_LIMIT,
                              "%s: the pickle unfolds to more than %zu bytes; no checkpoint does",
                              u->source.where, b->most);
        return NULL;
    }
    b->used += counted;
    void *p = pnb__arena_alloc(u->source.arena, bytes);
    if (p == NULL)
        u->status = pnb__fail_nomem(u->err, bytes);
    return p;
}

pnb__pk_value *pnb__pk_new(pnb__unpickler *u, pnb__pk_kind kind)
{
    if (u->n_pool == 0) {
        u->pool = pnb__pk_take(u, POOL_VALUES * sizeof *u->pool);
        if (u->pool == NULL)
            return NULL;
        u->n_pool = POOL_VALUES;
    }
    u->n_pool--;
    u->pool->kind = (unsigned char)kind;
    return u->pool++;
}

pnb_status pnb__pk_add(pnb__unpickler *u, pnb__pk_value *list, pnb__pk_value *item)
{
    uint32_t n = list->u.list.n;
    if (n == list->u.list.capacity) {
        if (n > UINT32_MAX / 4)
            return pnb__pk_bad(u, "a list of more than 2^30 items");
        uint32_t capacity = PNB_MAX(2 * n, (uint32_t)4);
        pnb__pk_value **items = pnb__pk_take(u, capacity * sizeof *items);
        if (items == NULL)
            return u->status;
        if (n > 0)
            memcpy(items, list->u.list.items, n * sizeof *items);
        list->u.list.items = items;
        list->u.list.capacity = capacity;
    }
    list->u.list.items[list->u.list.n++] = item;
    return PNB_OK;
}

/* ---- stack ---- */

pnb_status pnb__pk_push(pnb__unpickler *u, pnb__pk_value *v)
{
    if (v == NULL)
        return u->status;
    pnb_status status = PNB_GROW(u->stack, u->stack_capacity, u->n_stack + 1, u->err);
    if (status == PNB_OK)
        u->stack[u->n_stack++] = v;
    return status;
}

static size_t floor_of(const pnb__unpickler *u)
{
    return u->n_marks > 0 ? u->marks[u->n_marks - 1] : 0;
}

static pnb_status pop(pnb__unpickler *u, pnb__pk_value **v)
{
    if (u->n_stack <= floor_of(u))
        return pnb__pk_bad(u, "takes a value from an empty stack");
    *v = u->stack[--u->n_stack];
    return PNB_OK;
}

/* The values above the last mark, which is taken off; valid until the next push. */
static pnb_status pop_mark(pnb__unpickler *u, pnb__pk_value ***items, size_t *n)
{
    if (u->n_marks == 0)
        return pnb__pk_bad(u, "needs a mark, there is none");
    size_t first = u->marks[--u->n_marks];
    *items = u->stack != NULL ? u->stack + first : NULL;
    *n = u->n_stack - first;
    u->n_stack = first;
    return PNB_OK;
}

static pnb_status top_of_kind(pnb__unpickler *u, pnb__pk_kind kind, pnb__pk_value **v)
{
    if (u->n_stack <= floor_of(u))
        return pnb__pk_bad(u, "adds to something on an empty stack");
    *v = u->stack[u->n_stack - 1];
    return (*v)->kind == kind ? PNB_OK : pnb__pk_bad(u, "adds items to something that has none");
}

/* ---- bytes ---- */

pnb_status pnb__pk_need(pnb__unpickler *u, size_t n, const unsigned char **p)
{
    if (n > u->source.n_bytes - u->at)
        return pnb__pk_bad(u, "ends in the middle of a value; the file is truncated");
    *p = u->source.bytes + u->at;
    u->at += n;
    return PNB_OK;
}

/* A little-endian number of 1, 2, 4 or 8 bytes. */
pnb_status pnb__pk_need_number(pnb__unpickler *u, size_t n, uint64_t *value)
{
    const unsigned char *p = NULL;
    pnb_status status = pnb__pk_need(u, n, &p);
    *value = 0;
    for (size_t i = 0; status == PNB_OK && i < n; i++)
        *value |= (uint64_t)p[i] << (8 * i);
    return status;
}

pnb_status pnb__pk_need_line(pnb__unpickler *u, const char **line, size_t *n)
{
    const unsigned char *start = u->source.bytes + u->at;
    const unsigned char *end = memchr(start, '\n', u->source.n_bytes - u->at);
    if (end == NULL)
        return pnb__pk_bad(u, "a line without end; the file is truncated");
    *line = (const char *)start;
    *n = (size_t)(end - start);
    u->at += *n + 1;
    return PNB_OK;
}

/* A line that is a number, as a terminated copy. */
pnb_status pnb__pk_need_number_line(pnb__unpickler *u, char text[64])
{
    const char *line = NULL;
    size_t n = 0;
    pnb_status status = pnb__pk_need_line(u, &line, &n);
    if (status != PNB_OK)
        return status;
    if (n == 0 || n > 63)
        return pnb__pk_bad(u, "a number of no or more than 63 digits");
    memcpy(text, line, n);
    text[n] = '\0';
    return PNB_OK;
}

/* ---- containers ---- */

static pnb_status add_all(pnb__unpickler *u, pnb__pk_value *list, pnb__pk_value **items, size_t n)
{
    pnb_status status = PNB_OK;
    for (size_t i = 0; status == PNB_OK && i < n; i++)
        status = pnb__pk_add(u, list, items[i]);
    return status;
}

static pnb_status op_empty(pnb__unpickler *u, unsigned char op)
{
    pnb__pk_kind kind = op == '}' ? PNB__PK_DICT : op == ')' ? PNB__PK_TUPLE : PNB__PK_LIST;
    return pnb__pk_push(u, pnb__pk_new(u, kind));
}

/* TUPLE, LIST, DICT, FROZENSET: everything above the mark. */
static pnb_status op_gather(pnb__unpickler *u, unsigned char op)
{
    pnb__pk_kind kind = op == 'd' ? PNB__PK_DICT : op == 't' ? PNB__PK_TUPLE : PNB__PK_LIST;
    pnb__pk_value **items = NULL;
    size_t n = 0;
    pnb_status status = pop_mark(u, &items, &n);
    if (status != PNB_OK)
        return status;
    if (kind == PNB__PK_DICT && n % 2 != 0)
        return pnb__pk_bad(u, "a key without a value");
    pnb__pk_value *v = pnb__pk_new(u, kind);
    status = v != NULL ? add_all(u, v, items, n) : u->status;
    return status == PNB_OK ? pnb__pk_push(u, v) : status;
}

static pnb_status op_small_tuple(pnb__unpickler *u, unsigned char op)
{
    size_t n = (size_t)op - 0x84;
    if (u->n_stack - floor_of(u) < n)
        return pnb__pk_bad(u, "takes a value from an empty stack");
    pnb__pk_value *v = pnb__pk_new(u, PNB__PK_TUPLE);
    pnb_status status = v != NULL ? add_all(u, v, u->stack + u->n_stack - n, n) : u->status;
    u->n_stack -= n;
    return status == PNB_OK ? pnb__pk_push(u, v) : status;
}

/* APPEND, SETITEM: one; APPENDS, ADDITEMS, SETITEMS: everything above the mark. */
static pnb_status op_add(pnb__unpickler *u, unsigned char op)
{
    bool is_dict = op == 's' || op == 'u';
    pnb__pk_value **items = NULL, *target = NULL;
    size_t n = op == 's' ? 2 : 1;
    pnb_status status = PNB_OK;
    if (op == 'a' || op == 's') {
        if (u->n_stack - floor_of(u) < n)
            return pnb__pk_bad(u, "takes a value from an empty stack");
        u->n_stack -= n;
        items = u->stack + u->n_stack;
    } else {
        status = pop_mark(u, &items, &n);
    }
    if (status == PNB_OK)
        status = top_of_kind(u, is_dict ? PNB__PK_DICT : PNB__PK_LIST, &target);
    if (status == PNB_OK && is_dict && n % 2 != 0)
        return pnb__pk_bad(u, "a key without a value");
    return status == PNB_OK ? add_all(u, target, items, n) : status;
}

/* ---- stack and memo ---- */

static pnb_status op_mark(pnb__unpickler *u, unsigned char op)
{
    (void)op;
    pnb_status status = PNB_GROW(u->marks, u->marks_capacity, u->n_marks + 1, u->err);
    if (status == PNB_OK)
        u->marks[u->n_marks++] = u->n_stack;
    return status;
}

static pnb_status op_pop(pnb__unpickler *u, unsigned char op)
{
    pnb__pk_value **items = NULL, *v = NULL;
    size_t n = 0;
    bool at_mark = u->n_marks > 0 && u->n_stack == floor_of(u);
    return op == '1' || at_mark ? pop_mark(u, &items, &n) : pop(u, &v);
}

static pnb_status op_dup(pnb__unpickler *u, unsigned char op)
{
    (void)op;
    if (u->n_stack <= floor_of(u))
        return pnb__pk_bad(u, "takes a value from an empty stack");
    return pnb__pk_push(u, u->stack[u->n_stack - 1]);
}

static pnb_status read_memo_index(pnb__unpickler *u, unsigned char op, uint64_t *index)
{
    char text[64], *end = NULL;
    if (op != 'p' && op != 'g')
        return pnb__pk_need_number(u, op == 'q' || op == 'h' ? 1 : 4, index);
    pnb_status status = pnb__pk_need_number_line(u, text);
    if (status != PNB_OK)
        return status;
    *index = strtoull(text, &end, 10);
    return *end == '\0' ? PNB_OK : pnb__pk_bad(u, "a memo number that is none");
}

static pnb_status op_put(pnb__unpickler *u, unsigned char op)
{
    uint64_t index = 0;
    pnb_status status = PNB_OK;
    if (op == 0x94) /* MEMOIZE counts by itself */
        index = u->n_memo;
    else
        status = read_memo_index(u, op, &index);
    if (status != PNB_OK)
        return status;
    if (index > u->source.n_bytes)
        return pnb__pk_bad(u, "a memo number larger than the pickle");
    if (u->n_stack <= floor_of(u))
        return pnb__pk_bad(u, "remembers a value of an empty stack");
    size_t n_before = u->memo_capacity;
    status = PNB_GROW(u->memo, u->memo_capacity, (size_t)index + 1, u->err);
    if (status != PNB_OK)
        return status;
    for (size_t i = n_before; i < u->memo_capacity; i++)
        u->memo[i] = NULL;
    u->n_memo += u->memo[index] == NULL;
    u->memo[index] = u->stack[u->n_stack - 1];
    return PNB_OK;
}

static pnb_status op_get(pnb__unpickler *u, unsigned char op)
{
    uint64_t index = 0;
    pnb_status status = read_memo_index(u, op, &index);
    if (status != PNB_OK)
        return status;
    if (index >= u->memo_capacity || u->memo[index] == NULL)
        return pnb__pk_bad(u, "recalls a memo number that was never stored");
    return pnb__pk_push(u, u->memo[index]);
}

/* ---- names and calls: see pickle_build.c ---- */

static pnb_status op_global(pnb__unpickler *u, unsigned char op)
{
    const char *module = NULL, *name = NULL;
    size_t n_module = 0, n_name = 0;
    pnb__pk_value *v = NULL, *a = NULL, *b = NULL;
    pnb_status status;
    if (op == 'c') {
        PNB_TRY(pnb__pk_need_line(u, &module, &n_module));
        PNB_TRY(pnb__pk_need_line(u, &name, &n_name));
    } else {
        PNB_TRY(pop(u, &b));
        PNB_TRY(pop(u, &a));
        if (a->kind != PNB__PK_STR || b->kind != PNB__PK_STR)
            return pnb__pk_bad(u, "names something by values that are no strings");
        module = a->u.text.data, n_module = a->u.text.n;
        name = b->u.text.data, n_name = b->u.text.n;
    }
    PNB_TRY(pnb__pk_global(u, module, n_module, name, n_name, &v));
    status = pnb__pk_push(u, v);
done:
    return status;
}

/* REDUCE, NEWOBJ, BUILD, BINPERSID. */
static pnb_status op_call(pnb__unpickler *u, unsigned char op)
{
    pnb__pk_value *a = NULL, *b = NULL, *made = NULL;
    pnb_status status;
    PNB_TRY(pop(u, &b));
    if (op != 'Q')
        PNB_TRY(pop(u, &a));
    if (op == 'R')
        PNB_TRY(pnb__pk_reduce(u, a, b, &made));
    else if (op == 0x81)
        PNB_TRY(pnb__pk_new_object(u, a, b, &made));
    else if (op == 'Q')
        PNB_TRY(pnb__pk_persistent(u, b, &made));
    else {
        PNB_TRY(pnb__pk_build(u, a, b));
        made = a;
    }
    status = pnb__pk_push(u, made);
done:
    return status;
}

static pnb_status op_refused(pnb__unpickler *u, unsigned char op)
{
    return pnb__fail(u->err, PNB_UNSUPPORTED,
                     "%s: pickle byte %zu: opcode 0x%02x, which torch.save does not write; nothing "
                     "was executed",
                     u->source.where, u->at - 1, op);
}

/* ---- the machine ---- */

static pnb_status op_header(pnb__unpickler *u, unsigned char op)
{
    uint64_t value = 0;
    pnb_status status = pnb__pk_need_number(u, op == 0x80 ? 1 : 8, &value);
    if (status == PNB_OK && op == 0x80 && value > 5)
        return pnb__pk_bad(u, "a pickle protocol above 5");
    return status; /* FRAME only helps readers that buffer */
}

static const op_fn ops[256] = {
    [0x80] = op_header,
    [0x95] = op_header,
    ['('] = op_mark,
    ['0'] = op_pop,
    ['1'] = op_pop,
    ['2'] = op_dup,
    ['N'] = pnb__pk_op_constant,
    [0x88] = pnb__pk_op_constant,
    [0x89] = pnb__pk_op_constant,
    ['I'] = pnb__pk_op_int_line,
    ['L'] = pnb__pk_op_int_line,
    ['J'] = pnb__pk_op_int,
    ['K'] = pnb__pk_op_int,
    ['M'] = pnb__pk_op_int,
    [0x8a] = pnb__pk_op_long,
    [0x8b] = pnb__pk_op_long,
    ['F'] = pnb__pk_op_float,
    ['G'] = pnb__pk_op_float,
    ['S'] = pnb__pk_op_string_line,
    ['V'] = pnb__pk_op_unicode_line,
    ['T'] = pnb__pk_op_text,
    ['U'] = pnb__pk_op_text,
    ['X'] = pnb__pk_op_text,
    [0x8c] = pnb__pk_op_text,
    [0x8d] = pnb__pk_op_text,
    ['B'] = pnb__pk_op_text,
    ['C'] = pnb__pk_op_text,
    [0x8e] = pnb__pk_op_text,
    [0x96] = pnb__pk_op_text,
    [')'] = op_empty,
    [']'] = op_empty,
    ['}'] = op_empty,
    [0x8f] = op_empty,
    ['t'] = op_gather,
    ['l'] = op_gather,
    ['d'] = op_gather,
    [0x91] = op_gather,
    [0x85] = op_small_tuple,
    [0x86] = op_small_tuple,
    [0x87] = op_small_tuple,
    ['a'] = op_add,
    ['e'] = op_add,
    [0x90] = op_add,
    ['s'] = op_add,
    ['u'] = op_add,
    ['p'] = op_put,
    ['q'] = op_put,
    ['r'] = op_put,
    [0x94] = op_put,
    ['g'] = op_get,
    ['h'] = op_get,
    ['j'] = op_get,
    ['c'] = op_global,
    [0x93] = op_global,
    ['R'] = op_call,
    [0x81] = op_call,
    ['b'] = op_call,
    ['Q'] = op_call,
    ['P'] = op_refused,
    ['i'] = op_refused,
    ['o'] = op_refused,
    [0x82] = op_refused,
    [0x83] = op_refused,
    [0x84] = op_refused,
    [0x92] = op_refused,
    [0x97] = op_refused,
    [0x98] = op_refused,
};

static pnb_status run(pnb__unpickler *u, pnb__pk_value **result)
{
    for (;;) {
        const unsigned char *op = NULL;
        pnb_status status = pnb__pk_need(u, 1, &op);
        if (status != PNB_OK)
            return status;
        if (*op == '.')
            return pop(u, result);
        if (ops[*op] == NULL)
            return pnb__pk_bad(u, "a byte that is no opcode; this is not a pickle");
        status = ops[*op](u, *op);
        if (status != PNB_OK)
            return status;
    }
}

pnb_status pnb__pickle_load(const pnb__pk_source *source, pnb__pk_result *out, pnb_error *err)
{
    pnb__unpickler u = {.source = *source, .status = PNB_OK, .err = err};
    pnb__pk_value *result = NULL;
    pnb_status status = run(&u, &result);
    if (status == PNB_OK)
        *out = (pnb__pk_result){result, u.storages, u.module, u.at};
    pnb__free(u.stack);
    pnb__free(u.marks);
    pnb__free(u.memo);
    return status;
}
