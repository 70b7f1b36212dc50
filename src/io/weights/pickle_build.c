/* What a pickle may name, and what each name makes (torch/_utils.py, torch/serialization.py,
 * collections, numpy scalars).
 *
 * Nothing is ever called: a name is a row of the table below, and "calling" it means that a
 * function of this file turns plain arguments into a plain value. A name outside the table ends the
 * reading with that name in the message. Namespaces and TorchScript modules become objects known
 * by name only; whether a tensor's numbers fit its storage is checked in torch_tensors.c. */
#include <assert.h>
#include <string.h>

#include "io/weights/pickle_internal.h"

typedef enum meaning {
    NAME_DICT, /* OrderedDict */
    NAME_SET,
    NAME_ENCODE, /* how protocol 2 spells bytes */
    NAME_STORAGE,
    NAME_DTYPE,
    NAME_TENSOR_V1,
    NAME_TENSOR_V2,
    NAME_TENSOR_V3,
    NAME_PARAMETER,
    NAME_TUPLE, /* torch.Size */
    NAME_FIRST, /* gives its first argument back */
    NAME_OPAQUE,
    NAME_NUMPY_DTYPE,
    NAME_NUMPY_SCALAR,
    NAME_NAMESPACE,
    NAME_SCRIPT,
    NAME_CLASS /* whose instances the reader asked for */
} meaning;

typedef struct allowed {
    const char *module, *name;
    meaning means;
    pnb_dtype dtype;
} allowed;

#define STORAGE(name, dtype)                                                                       \
    {                                                                                              \
        "torch", name, NAME_STORAGE, dtype                                                         \
    }
#define DTYPE(name, dtype)                                                                         \
    {                                                                                              \
        "torch", name, NAME_DTYPE, dtype                                                           \
    }

static const allowed table[] = {
    {"collections", "OrderedDict", NAME_DICT, PNB_F32},
    {"builtins", "set", NAME_SET, PNB_F32},
    {"__builtin__", "set", NAME_SET, PNB_F32},
    {"builtins", "frozenset", NAME_SET, PNB_F32},
    {"__builtin__", "frozenset", NAME_SET, PNB_F32},
    {"_codecs", "encode", NAME_ENCODE, PNB_F32},
    STORAGE("FloatStorage", PNB_F32),
    STORAGE("DoubleStorage", PNB_F64),
    STORAGE("HalfStorage", PNB_F16),
    STORAGE("BFloat16Storage", PNB_BF16),
    STORAGE("LongStorage", PNB_I64),
    STORAGE("IntStorage", PNB_I32),
    STORAGE("ShortStorage", PNB_I16),
    STORAGE("CharStorage", PNB_I8),
    STORAGE("ByteStorage", PNB_U8),
    STORAGE("BoolStorage", PNB_BOOL),
    STORAGE("UntypedStorage", PNB_N_DTYPES),
    {"torch.storage", "UntypedStorage", NAME_STORAGE, PNB_N_DTYPES},
    DTYPE("float32", PNB_F32),
    DTYPE("float64", PNB_F64),
    DTYPE("float16", PNB_F16),
    DTYPE("bfloat16", PNB_BF16),
    DTYPE("int64", PNB_I64),
    DTYPE("int32", PNB_I32),
    DTYPE("int16", PNB_I16),
    DTYPE("int8", PNB_I8),
    DTYPE("uint8", PNB_U8),
    DTYPE("bool", PNB_BOOL),
    DTYPE("uint16", PNB_U16),
    DTYPE("uint32", PNB_U32),
    DTYPE("uint64", PNB_U64),
    {"torch._utils", "_rebuild_tensor", NAME_TENSOR_V1, PNB_F32},
    {"torch._utils", "_rebuild_tensor_v2", NAME_TENSOR_V2, PNB_F32},
    {"torch._utils", "_rebuild_tensor_v3", NAME_TENSOR_V3, PNB_F32},
    {"torch._utils", "_rebuild_parameter", NAME_PARAMETER, PNB_F32},
    {"torch._utils", "_rebuild_parameter_with_state", NAME_PARAMETER, PNB_F32},
    {"torch", "Size", NAME_TUPLE, PNB_F32},
    {"torch", "device", NAME_OPAQUE, PNB_F32},
    {"torch.serialization", "_get_layout", NAME_OPAQUE, PNB_F32},
    {"torch.jit._pickle", "build_intlist", NAME_FIRST, PNB_F32},
    {"torch.jit._pickle", "build_doublelist", NAME_FIRST, PNB_F32},
    {"torch.jit._pickle", "build_boollist", NAME_FIRST, PNB_F32},
    {"torch.jit._pickle", "build_tensorlist", NAME_FIRST, PNB_F32},
    {"torch.jit._pickle", "restore_type_tag", NAME_FIRST, PNB_F32},
    {"numpy", "dtype", NAME_NUMPY_DTYPE, PNB_F32},
    {"numpy.core.multiarray", "scalar", NAME_NUMPY_SCALAR, PNB_F32},
    {"numpy._core.multiarray", "scalar", NAME_NUMPY_SCALAR, PNB_F32},
    {"argparse", "Namespace", NAME_NAMESPACE, PNB_F32},
    {"__torch__", NULL, NAME_SCRIPT, PNB_F32}, /* any class of a TorchScript archive */
    {"", NULL, NAME_CLASS, PNB_F32},           /* the source's class_name, of any module */
};

/* ---- names ---- */

static bool same_text(const char *text, size_t n, const char *wanted)
{
    return strlen(wanted) == n && memcmp(text, wanted, n) == 0;
}

static bool is_script_module(const char *module, size_t n)
{
    const size_t length = strlen("__torch__");
    return n >= length && memcmp(module, "__torch__", length) == 0 &&
           (n == length || module[length] == '.');
}

static bool matches(const pnb__unpickler *u, const allowed *a, const char *module, size_t n_module,
                    const char *name, size_t n_name)
{
    if (a->means == NAME_CLASS)
        return u->source.class_name != NULL && same_text(name, n_name, u->source.class_name);
    if (a->name == NULL)
        return is_script_module(module, n_module);
    return same_text(module, n_module, a->module) && same_text(name, n_name, a->name);
}

/* At most 80 characters that a terminal can show. */
static void printable(char out[84], const char *text, size_t n)
{
    size_t shown = PNB_MIN(n, (size_t)80);
    for (size_t i = 0; i < shown; i++)
        out[i] = (char)(text[i] > ' ' && text[i] < 127 ? text[i] : '?');
    memcpy(out + shown, n > shown ? "..." : "", n > shown ? 4 : 1);
}

/* Where the class is from; the first place stands for all. */
static bool record_module(pnb__unpickler *u, const char *module, size_t n)
{
    if (u->module != NULL)
        return true;
    u->module = pnb__pk_new(u, PNB__PK_STR);
    if (u->module == NULL)
        return false;
    u->module->u.text.data = module;
    u->module->u.text.n = n;
    return true;
}

/* Says what such a pickle is made of, and what to do. */
static pnb_status refuse_name(pnb__unpickler *u, const char *module, const char *name)
{
    if (u->source.class_name != NULL)
        return pnb__fail(u->err, PNB_UNSUPPORTED,
                         "%s: the pickle names %s.%s; plain dicts and instances of a class %s are "
                         "read here. Nothing was executed",
                         u->source.where, module, name, u->source.class_name);
    return pnb__fail(u->err, PNB_UNSUPPORTED,
                     "%s: the pickle names %s.%s, which is not among what weights are made of; "
                     "nothing was executed. If you trust the file, load it in Python and save its "
                     "state_dict() alone, best as safetensors",
                     u->source.where, module, name);
}

pnb_status pnb__pk_global(pnb__unpickler *u, const char *module, size_t n_module, const char *name,
                          size_t n_name, pnb__pk_value **out)
{
    for (size_t i = 0; i < PNB_COUNT(table); i++) {
        if (!matches(u, &table[i], module, n_module, name, n_name))
            continue;
        if (table[i].means == NAME_CLASS && !record_module(u, module, n_module))
            return u->status;
        *out = pnb__pk_new(u, PNB__PK_GLOBAL);
        if (*out == NULL)
            return u->status;
        (*out)->detail = (unsigned char)i;
        return PNB_OK;
    }
    char shown_module[84], shown_name[84];
    printable(shown_module, module, n_module);
    printable(shown_name, name, n_name);
    return refuse_name(u, shown_module, shown_name);
}

static const allowed *allowed_of(const pnb__pk_value *v)
{
    return v->kind == PNB__PK_GLOBAL ? &table[v->detail] : NULL;
}

static pnb_status refuse(pnb__unpickler *u, const char *what, const pnb__pk_value *v)
{
    const allowed *a = allowed_of(v);
    return pnb__fail(u->err, PNB_UNSUPPORTED,
                     "%s: pickle byte %zu: %s %s%s%s, which torch.save does not write; nothing was "
                     "executed",
                     u->source.where, u->at, what, a != NULL ? a->module : "a plain value",
                     a != NULL && a->name != NULL ? "." : "",
                     a != NULL && a->name != NULL ? a->name : "");
}

/* ---- arguments ---- */

static const pnb__pk_value *argument(const pnb__pk_value *args, uint32_t i)
{
    return i < args->u.list.n ? args->u.list.items[i] : NULL;
}

static bool is_kind(const pnb__pk_value *v, pnb__pk_kind kind)
{
    return v != NULL && v->kind == kind;
}

/* ---- tensors ---- */

static pnb_status read_extents(pnb__unpickler *u, const pnb__pk_value *v, int64_t *extents, int *n)
{
    if (!is_kind(v, PNB__PK_TUPLE))
        return pnb__pk_bad(u, "a tensor whose size or stride is no tuple");
    if (v->u.list.n > PNB_MAX_DIMS)
        return pnb__fail(u->err, PNB_UNSUPPORTED,
                         "%s: a tensor of %u dimensions, at most %d are supported", u->source.where,
                         v->u.list.n, PNB_MAX_DIMS);
    for (uint32_t i = 0; i < v->u.list.n; i++) {
        const pnb__pk_value *item = v->u.list.items[i];
        if (item->kind != PNB__PK_INT || item->u.integer < 0)
            return pnb__pk_bad(u, "a tensor whose size or stride is not a whole number from 0");
        extents[i] = item->u.integer;
    }
    *n = (int)v->u.list.n;
    return PNB_OK;
}

/* _rebuild_tensor(storage, offset, size, stride), v2 with more that does not matter here; v3 tells
 * the dtype as seventh argument and has a storage of bytes. */
static pnb_status make_tensor(pnb__unpickler *u, const allowed *how, const pnb__pk_value *args,
                              pnb__pk_value **out)
{
    const pnb__pk_value *storage = argument(args, 0), *offset = argument(args, 1);
    if (!is_kind(storage, PNB__PK_STORAGE) || !is_kind(offset, PNB__PK_INT) ||
        offset->u.integer < 0)
        return pnb__pk_bad(u, "a tensor without a storage, or with a bad offset");
    pnb__pk_tensor *t = pnb__pk_take(u, sizeof *t);
    pnb__pk_value *v = t != NULL ? pnb__pk_new(u, PNB__PK_TENSOR) : NULL;
    if (v == NULL)
        return u->status;
    t->storage = storage;
    t->offset = offset->u.integer;
    t->dtype = (pnb_dtype)storage->detail;
    int n_strides = 0;
    pnb_status status = read_extents(u, argument(args, 2), t->shape, &t->n_dims);
    if (status == PNB_OK)
        status = read_extents(u, argument(args, 3), t->stride, &n_strides);
    if (status != PNB_OK)
        return status;
    if (n_strides != t->n_dims)
        return pnb__pk_bad(u, "a tensor with more or fewer strides than dimensions");
    if (how->means == NAME_TENSOR_V3) {
        const pnb__pk_value *dtype = argument(args, 6);
        const allowed *named = dtype != NULL ? allowed_of(dtype) : NULL;
        if (named == NULL || named->means != NAME_DTYPE)
            return pnb__pk_bad(u, "a tensor without a dtype");
        t->dtype = named->dtype;
    }
    if (t->dtype >= PNB_N_DTYPES)
        return pnb__pk_bad(u, "a tensor of an untyped storage without a dtype");
    v->u.tensor = t;
    *out = v;
    return PNB_OK;
}

pnb_status pnb__pk_persistent(pnb__unpickler *u, const pnb__pk_value *id, pnb__pk_value **out)
{
    const pnb__pk_value *type, *key, *n;
    if (id->kind != PNB__PK_TUPLE || !pnb__pk_is_text(argument(id, 0), "storage"))
        return pnb__pk_bad(u, "a persistent id that is no storage");
    type = argument(id, 1), key = argument(id, 2), n = argument(id, 4);
    const allowed *named = type != NULL ? allowed_of(type) : NULL;
    if (named == NULL || named->means != NAME_STORAGE || !is_kind(key, PNB__PK_STR) ||
        !is_kind(n, PNB__PK_INT) || n->u.integer < 0 || key->u.text.n > 255)
        return pnb__pk_bad(u, "a storage without a type, key or size");
    if (argument(id, 5) != NULL && argument(id, 5)->kind != PNB__PK_NONE)
        return pnb__fail(u->err, PNB_UNSUPPORTED,
                         "%s: a storage that is a view of another (torch before 0.4); load and "
                         "save the file with a newer PyTorch",
                         u->source.where);
    *out = pnb__pk_new(u, PNB__PK_STORAGE);
    if (*out == NULL)
        return u->status;
    (*out)->detail = (unsigned char)named->dtype;
    (*out)->u.storage.key = key->u.text.data;
    (*out)->u.storage.n_key = (uint32_t)key->u.text.n;
    (*out)->u.storage.n_elements = n->u.integer;
    if (u->storages == NULL)
        u->storages = pnb__pk_new(u, PNB__PK_LIST);
    return u->storages != NULL ? pnb__pk_add(u, u->storages, *out) : u->status;
}

/* ---- other values ---- */

/* OrderedDict(), or OrderedDict([[key, value], ...]) as protocols below 2 spell it. */
static pnb_status make_dict(pnb__unpickler *u, const pnb__pk_value *args, pnb__pk_value **out)
{
    const pnb__pk_value *pairs = argument(args, 0);
    *out = pnb__pk_new(u, PNB__PK_DICT);
    if (*out == NULL)
        return u->status;
    if (pairs != NULL && pairs->kind != PNB__PK_LIST)
        return pnb__pk_bad(u, "an OrderedDict of something that is no list of pairs");
    pnb_status status = PNB_OK;
    for (uint32_t i = 0; pairs != NULL && status == PNB_OK && i < pairs->u.list.n; i++) {
        const pnb__pk_value *pair = pairs->u.list.items[i];
        bool is_pair =
            (pair->kind == PNB__PK_LIST || pair->kind == PNB__PK_TUPLE) && pair->u.list.n == 2;
        if (!is_pair)
            return pnb__pk_bad(u, "an OrderedDict of something that is no list of pairs");
        status = pnb__pk_add(u, *out, pair->u.list.items[0]);
        if (status == PNB_OK)
            status = pnb__pk_add(u, *out, pair->u.list.items[1]);
    }
    return status;
}

/* _codecs.encode(text, "latin1"): every character is one byte. */
static pnb_status make_bytes(pnb__unpickler *u, const pnb__pk_value *args, pnb__pk_value **out)
{
    const pnb__pk_value *text = argument(args, 0);
    if (!is_kind(text, PNB__PK_STR) || !pnb__pk_is_text(argument(args, 1), "latin1"))
        return pnb__pk_bad(u, "encoded bytes that are not latin1 text");
    char *bytes = pnb__pk_take(u, text->u.text.n + 1);
    *out = bytes != NULL ? pnb__pk_new(u, PNB__PK_BYTES) : NULL;
    if (*out == NULL)
        return u->status;
    size_t n = 0;
    for (size_t i = 0; i < text->u.text.n;) {
        uint32_t code = 0;
        size_t step = pnb__utf8_decode(text->u.text.data + i, text->u.text.n - i, &code);
        if (step == 0 || code > 255)
            return pnb__pk_bad(u, "encoded bytes that are not latin1 text");
        bytes[n++] = (char)(unsigned char)code;
        i += step;
    }
    (*out)->u.text.data = bytes;
    (*out)->u.text.n = n;
    return PNB_OK;
}

/* numpy.dtype("f8", ...): kept by its text. */
static pnb_status make_numpy_dtype(pnb__unpickler *u, const pnb__pk_value *args,
                                   pnb__pk_value **out)
{
    const pnb__pk_value *name = argument(args, 0);
    if (!is_kind(name, PNB__PK_STR))
        return pnb__pk_bad(u, "a numpy dtype without a name");
    *out = pnb__pk_new(u, PNB__PK_STR);
    if (*out == NULL)
        return u->status;
    (*out)->u.text = name->u.text;
    return PNB_OK;
}

/* scalar(dtype, bytes) of the number types; others stay known by name only. */
static pnb_status make_numpy_scalar(pnb__unpickler *u, const pnb__pk_value *args,
                                    pnb__pk_value **out)
{
    const pnb__pk_value *dtype = argument(args, 0), *bytes = argument(args, 1);
    bool has_bytes = is_kind(bytes, PNB__PK_BYTES) || is_kind(bytes, PNB__PK_STR);
    *out = pnb__pk_new(u, PNB__PK_OBJECT);
    if (*out == NULL)
        return u->status;
    if (pnb__pk_is_text(dtype, "f8") && has_bytes && bytes->u.text.n == sizeof(double)) {
        (*out)->kind = PNB__PK_FLOAT;
        memcpy(&(*out)->u.real, bytes->u.text.data, sizeof(double));
    } else if (pnb__pk_is_text(dtype, "f4") && has_bytes && bytes->u.text.n == sizeof(float)) {
        float f;
        memcpy(&f, bytes->u.text.data, sizeof f);
        (*out)->kind = PNB__PK_FLOAT;
        (*out)->u.real = (double)f;
    } else if (pnb__pk_is_text(dtype, "i8") && has_bytes && bytes->u.text.n == sizeof(int64_t)) {
        (*out)->kind = PNB__PK_INT;
        memcpy(&(*out)->u.integer, bytes->u.text.data, sizeof(int64_t));
    }
    return PNB_OK;
}

static pnb_status give_argument(pnb__unpickler *u, const pnb__pk_value *args, pnb__pk_kind kind,
                                pnb__pk_value **out)
{
    if (args->u.list.n == 0 || args->u.list.items[0]->kind != kind)
        return pnb__pk_bad(u, "an argument of an unexpected kind");
    *out = args->u.list.items[0];
    return PNB_OK;
}

static pnb_status make_opaque(pnb__unpickler *u, pnb__pk_value **out)
{
    *out = pnb__pk_new(u, PNB__PK_OBJECT);
    return *out != NULL ? PNB_OK : u->status;
}

/* ---- calls ---- */

pnb_status pnb__pk_reduce(pnb__unpickler *u, const pnb__pk_value *callable, pnb__pk_value *args,
                          pnb__pk_value **out)
{
    const allowed *a = allowed_of(callable);
    if (a == NULL || args->kind != PNB__PK_TUPLE)
        return refuse(u, "a call of", callable);
    switch (a->means) {
    case NAME_DICT:
        return make_dict(u, args, out);
    case NAME_SET:
        return give_argument(u, args, PNB__PK_LIST, out);
    case NAME_ENCODE:
        return make_bytes(u, args, out);
    case NAME_TENSOR_V1:
    case NAME_TENSOR_V2:
    case NAME_TENSOR_V3:
        return make_tensor(u, a, args, out);
    case NAME_PARAMETER:
        return give_argument(u, args, PNB__PK_TENSOR, out);
    case NAME_TUPLE:
        return give_argument(u, args, PNB__PK_TUPLE, out);
    case NAME_FIRST:
        if (args->u.list.n == 0)
            return refuse(u, "a call without arguments of", callable);
        *out = args->u.list.items[0];
        return PNB_OK;
    case NAME_OPAQUE:
        return make_opaque(u, out);
    case NAME_NUMPY_DTYPE:
        return make_numpy_dtype(u, args, out);
    case NAME_NUMPY_SCALAR:
        return make_numpy_scalar(u, args, out);
    case NAME_STORAGE:
    case NAME_DTYPE:
    case NAME_NAMESPACE:
    case NAME_SCRIPT:
    case NAME_CLASS:
        break;
    }
    return refuse(u, "a call of", callable);
}

pnb_status pnb__pk_new_object(pnb__unpickler *u, const pnb__pk_value *class,
                              const pnb__pk_value *args, pnb__pk_value **out)
{
    const allowed *a = allowed_of(class);
    bool is_known = a != NULL && (a->means == NAME_NAMESPACE || a->means == NAME_SCRIPT ||
                                  a->means == NAME_CLASS);
    if (!is_known || args->kind != PNB__PK_TUPLE || args->u.list.n != 0)
        return refuse(u, "a new object of", class);
    pnb_status status = make_opaque(u, out);
    assert(status != PNB_OK || *out != NULL);
    if (status == PNB_OK)
        (*out)->detail = a->means == NAME_SCRIPT;
    return status;
}

/* An object takes its state; attributes of an OrderedDict (state dicts have `_metadata`) and the
 * byte order of a numpy dtype are not needed. */
pnb_status pnb__pk_build(pnb__unpickler *u, pnb__pk_value *object, pnb__pk_value *state)
{
    if (object->kind == PNB__PK_DICT && state->kind == PNB__PK_DICT)
        return PNB_OK;
    if (object->kind == PNB__PK_STR && state->kind == PNB__PK_TUPLE) {
        const pnb__pk_value *order = argument(state, 1);
        if (pnb__pk_is_text(order, "<") || pnb__pk_is_text(order, "|"))
            return PNB_OK;
        return pnb__pk_bad(u, "a numpy dtype of another byte order");
    }
    if (object->kind == PNB__PK_OBJECT && object->u.list.n == 0)
        return pnb__pk_add(u, object, state);
    return refuse(u, "state for", object);
}
