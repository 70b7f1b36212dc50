/* The pickle machine's inside: what pickle.c (stack, memo, containers), pickle_values.c (plain
 * values) and pickle_build.c (names and calls) share. Every function returns OK or a failure that
 * names the byte; all sizes were checked against the bytes that are left. */
#ifndef PNB_IO_WEIGHTS_PICKLE_INTERNAL_H
#define PNB_IO_WEIGHTS_PICKLE_INTERNAL_H

#include "io/weights/pickle.h"

typedef struct pnb__unpickler {
    pnb__pk_source source;
    size_t at;
    pnb__pk_value **stack;
    size_t n_stack, stack_capacity;
    size_t *marks;
    size_t n_marks, marks_capacity;
    pnb__pk_value **memo;
    size_t memo_capacity, n_memo;
    pnb__pk_value *pool; /* values handed out one by one */
    size_t n_pool;
    pnb__pk_value *storages, *module;
    pnb_status status; /* why a NULL came back */
    pnb_error *err;
} pnb__unpickler;

/* ---- pickle.c ---- */
void *pnb__pk_take(pnb__unpickler *u, size_t bytes);              /* NULL: see status */
pnb__pk_value *pnb__pk_new(pnb__unpickler *u, pnb__pk_kind kind); /* likewise */
pnb_status pnb__pk_bad(pnb__unpickler *u, const char *problem);   /* FORMAT */
pnb_status pnb__pk_add(pnb__unpickler *u, pnb__pk_value *list, pnb__pk_value *item);
pnb_status pnb__pk_push(pnb__unpickler *u, pnb__pk_value *v); /* v NULL: u->status */
/* The next n bytes, in place. */
pnb_status pnb__pk_need(pnb__unpickler *u, size_t n, const unsigned char **p);
/* A little-endian number of 1, 2, 4 or 8 bytes. */
pnb_status pnb__pk_need_number(pnb__unpickler *u, size_t n, uint64_t *value);
/* A line in place, without its end; and one that is a number, as a terminated copy. */
pnb_status pnb__pk_need_line(pnb__unpickler *u, const char **line, size_t *n);
pnb_status pnb__pk_need_number_line(pnb__unpickler *u, char text[64]);

/* ---- pickle_values.c: opcodes, each given its own byte ---- */
pnb_status pnb__pk_op_constant(pnb__unpickler *u, unsigned char op);
pnb_status pnb__pk_op_int(pnb__unpickler *u, unsigned char op);
pnb_status pnb__pk_op_int_line(pnb__unpickler *u, unsigned char op);
pnb_status pnb__pk_op_long(pnb__unpickler *u, unsigned char op);
pnb_status pnb__pk_op_float(pnb__unpickler *u, unsigned char op);
pnb_status pnb__pk_op_text(pnb__unpickler *u, unsigned char op);
pnb_status pnb__pk_op_string_line(pnb__unpickler *u, unsigned char op);
pnb_status pnb__pk_op_unicode_line(pnb__unpickler *u, unsigned char op);

/* ---- pickle_build.c ---- */
/* Names: a GLOBAL for an allowed module.name, or UNSUPPORTED with the name in the text. */
pnb_status pnb__pk_global(pnb__unpickler *u, const char *module, size_t n_module, const char *name,
                          size_t n_name, pnb__pk_value **out);
/* callable(*args), class.__new__(*args), object.__setstate__(state), persistent ids. */
pnb_status pnb__pk_reduce(pnb__unpickler *u, const pnb__pk_value *callable, pnb__pk_value *args,
                          pnb__pk_value **out);
pnb_status pnb__pk_new_object(pnb__unpickler *u, const pnb__pk_value *class,
                              const pnb__pk_value *args, pnb__pk_value **out);
pnb_status pnb__pk_build(pnb__unpickler *u, pnb__pk_value *object, pnb__pk_value *state);
pnb_status pnb__pk_persistent(pnb__unpickler *u, const pnb__pk_value *id, pnb__pk_value **out);

#endif
