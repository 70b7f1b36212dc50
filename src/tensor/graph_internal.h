/* What ops and the planner know about a tensor; nothing above this folder includes this file. */
#ifndef PNB_TENSOR_GRAPH_INTERNAL_H
#define PNB_TENSOR_GRAPH_INTERNAL_H

#include "tensor/graph.h"

#define PNB__MAX_INPUTS 7
#define PNB__MAX_AUX 2
#define PNB__NO_BUFFER (-1)

typedef enum pnb__op_id {
#define PNB__OP(NAME, name) PNB__OP_##NAME,
#define PNB__OP_NO_GRAD(NAME, name) PNB__OP_##NAME,
#include "tensor/ops.def"
#undef PNB__OP
#undef PNB__OP_NO_GRAD
    PNB__N_OPS
} pnb__op_id;

/* shape: checks inputs, sets shape and the facts below; false after pnb__node_fail.
 * forward: recompute true means "again, in the backward pass, only the value is missing"; nodes of
 *   a segment, whose aux is missing too, run it with false a second time.
 * backward: for each input i with d_in[i] not NULL, writes or adds (acc_in[i]) its gradient. */
typedef struct pnb__op {
    const char *name;
    bool (*shape)(pnb__tensor *t);
    bool (*forward)(pnb__tensor *t, bool recompute); /* false: input invalid (NUMERIC) */
    void (*backward)(pnb__tensor *t);                /* NULL: NO_GRAD */
} pnb__op;

extern const pnb__op pnb__ops[PNB__N_OPS];

struct pnb__tensor {
    pnb__graph *graph;
    const pnb__op *op; /* NULL for leaves */
    pnb__tensor *in[PNB__MAX_INPUTS];
    int n_in, index;
    void *attrs; /* the op's own struct, in the graph's arena */
    pnb__kind kind;
    int n_dims;
    size_t shape[PNB__DIMS], n;

    /* Facts set by the shape rule. */
    unsigned saves_in;     /* bit i: backward reads the value of in[i] */
    unsigned zeroed_in;    /* bit i: backward only adds into part of in[i]'s gradient */
    unsigned recompute_in; /* bit i: recomputing reads in[i] */
    bool saves_out;        /* backward reads the value of this tensor */
    bool recompute;        /* cheap: drop the value after forward, compute it again for backward */
    bool recompute_all; /* inside a segment: value and aux are dropped and made again by forward */
    int inplace_in;     /* forward may overwrite this input, -1 none */
    int steals;         /* this input's gradient equals ours: it may take our buffer, -1 none */
    size_t aux_bytes[PNB__MAX_AUX]; /* kept from forward to backward */
    size_t work_bytes, work_bwd_bytes;
    double flops;
    pnb__tensor *view_of; /* a view shares the memory of view_of, view_offset elements in */
    size_t view_offset;

    /* Leaves. */
    pnb__param *param;
    bool is_input, wants_grad, is_constant;
    double constant;

    /* Asked by the user. */
    bool keep, keep_grad;

    /* Set by the planner: buffer numbers, then pointers. */
    bool read_back;   /* a backward step reads the value */
    bool is_in_place; /* forward writes over inplace_in */
    bool is_half;     /* value and gradient are bfloat16: halves.c */
    bool is_again;    /* by the run: forward is called in backward, for a second time */
    bool needed, needs_grad, grad_started, has_partial_views, is_recomputed;
    int buffer, again_buffer, aux_buffer[PNB__MAX_AUX], aux_again_buffer[PNB__MAX_AUX];
    int work_buffer, work_again_buffer, work_bwd_buffer, grad_buffer;
    void *first_data, *again_data;
    void *first_aux[PNB__MAX_AUX], *again_aux[PNB__MAX_AUX], *first_work, *again_work;
    void *data, *grad, *aux[PNB__MAX_AUX], *work, *work_bwd;
    void *d_in[PNB__MAX_INPUTS];
    bool acc_in[PNB__MAX_INPUTS];
};

typedef enum pnb__step_kind {
    PNB__STEP_FORWARD,
    PNB__STEP_SEED, /* gradient of the loss = 1 */
    PNB__STEP_ZERO, /* gradient buffer = 0 */
    PNB__STEP_RECOMPUTE,
    PNB__STEP_BACKWARD
} pnb__step_kind;

typedef struct pnb__step {
    pnb__step_kind kind;
    pnb__tensor *t;
} pnb__step;

typedef struct pnb__buffer {
    size_t bytes, offset;
    int first, last; /* steps between which the bytes matter, inclusive */
} pnb__buffer;

/* The step behind which a parameter has all of its gradient. */
typedef struct pnb__ready {
    size_t step;
    pnb__param *param;
} pnb__ready;

struct pnb__graph {
    const pnb_ctx *ctx;
    pnb__kernels kernels;
    bool with_grad, is_frozen, planned, only_plans, checkpointing, rounds_products;
    pnb_error error; /* the first one: of building, then of moving values since the last check */
    pnb__arena arena;
    pnb__tensor **nodes;
    size_t n_nodes, nodes_capacity;
    pnb__tensor *loss;
    pnb__step *steps;
    size_t n_steps, steps_capacity;
    pnb__buffer *buffers;
    size_t n_buffers, buffers_capacity;
    unsigned char *memory; /* the arena of values, device memory */
    size_t memory_bytes;
    void (*watch)(void *user, pnb__param *p); /* of gradients; watch_grads.c */
    void *watch_user;
    pnb__ready *ready; /* in the order of steps; NULL before anybody watched */
    size_t n_ready;
    double flops; /* of one run */
    uint64_t n_runs;
    void *recorded; /* its steps, kept by the device: run.c; NULL: none */
    bool never_record;
    uint64_t stream;
};

/* ---- building (graph.c) ---- */
/* A node of op `id`; copies attrs. NULL when any input is NULL (first `n_required` must not be; the
 * rest may be NULL and are then skipped by the op) or when the shape rule fails. */
pnb__tensor *pnb__node(pnb__graph *g, pnb__op_id id, pnb__tensor *const *in, int n_in,
                       const void *attrs, size_t attrs_bytes);
/* Records a building error once and returns false / NULL. */
bool pnb__node_fail(pnb__graph *g, pnb_status status, const char *fmt, ...) PNB_PRINTF(3, 4);
void pnb__set_shape(pnb__tensor *t, int n_dims, const size_t *shape);
void pnb__same_shape(pnb__tensor *t, const pnb__tensor *like);
/* "(2, 3, 4)" into text; for messages. */
const char *pnb__shape_text(const pnb__tensor *t, char text[96]);
size_t pnb__rows(const pnb__tensor *t);  /* product of all dims but the last; 1 for () */
size_t pnb__width(const pnb__tensor *t); /* last dim; 1 for () */
pnb__tensor *pnb__root(pnb__tensor *t);
const pnb__tensor *pnb__root_const(const pnb__tensor *t);
size_t pnb__elem_bytes(const pnb__tensor *t);

/* Does the derivative of op read its output (tanh) rather than its input (GELU)? */
bool pnb__unary_bwd_reads_output(pnb__unary op);

/* ---- running (run.c) ---- */
void *pnb__data(const pnb__tensor *t); /* device pointer of the value, views resolved */
/* Bytes of t's graph become 0; a failure is recorded there, and its run ends with it. */
void pnb__zero(const pnb__tensor *t, void *device, size_t bytes);

/* ---- packed weights (pack.c) ---- */
/* Is the weight of this linear node fixed and does it begin where packed columns can begin? */
bool pnb__linear_can_pack(const pnb__tensor *t);
/* The second factor of a linear node as product arguments: b, ldb, trans_b, n, k. */
void pnb__linear_factor(const pnb__tensor *t, pnb__gemm_args *m);
pnb__store pnb__linear_store(const pnb__tensor *t);  /* of its weight */
int pnb__linear_bf16_parts(const pnb__tensor *t);    /* it is multiplied in; 0: in floats */
bool pnb__linear_wants_packed(const pnb__tensor *t); /* and reads it in no other form */
/* Is the weight of this conv2d node fixed? And its sizes and weight as a kernel wants them. */
bool pnb__conv2d_can_pack(const pnb__tensor *t);
void pnb__conv2d_args_of(const pnb__tensor *t, pnb__conv2d_args *a);
/* Packs the weights in small types, which products read in no other form, or else the fixed ones,
 * which are only faster packed: where memory is short these stay as they are. NOMEM for the former.
 */
pnb_status pnb__graph_pack(pnb__graph *g, bool small, pnb_error *err);

/* ---- values in bfloat16 (halves.c) ---- */
void pnb__graph_mark_halves(pnb__graph *g);          /* before buffers are planned */
bool pnb__linear_makes_halves(const pnb__tensor *t); /* could end in them */
bool pnb__linear_reads_halves(const pnb__tensor *t, int input);
void pnb__linear_reserve(
    pnb__tensor *t); /* of factors: again, once it is known what is in halves */
size_t pnb__attention_head_dim(const pnb__tensor *t);

/* Prototypes of every op. */
#define PNB__OP(NAME, name)                                                                        \
    bool pnb__op_##name##_shape(pnb__tensor *t);                                                   \
    bool pnb__op_##name##_forward(pnb__tensor *t, bool recompute);                                 \
    void pnb__op_##name##_backward(pnb__tensor *t);
#define PNB__OP_NO_GRAD(NAME, name)                                                                \
    bool pnb__op_##name##_shape(pnb__tensor *t);                                                   \
    bool pnb__op_##name##_forward(pnb__tensor *t, bool recompute);
#include "tensor/ops.def"
#undef PNB__OP
#undef PNB__OP_NO_GRAD

#endif
