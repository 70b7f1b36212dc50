/* Building: leaves and nodes, shapes and their words, the first error that stays, segments. */
#include "tests/tensor/graphs.h"

static void test_errors_are_sticky_and_say_what(void **state)
{
    (void)state;
    pnb_error err = PNB_ERROR_INIT;
    begin_graph(PNB__F32, false);
    pnb__tensor *x = pnb__input(g, PNB__REAL, 2, (size_t[]){3, 4});
    pnb__tensor *w = pnb__input(g, PNB__REAL, 2, (size_t[]){5, 6});
    pnb__tensor *y = pnb__linear(x, w, NULL);
    assert_null(y);
    assert_null(pnb__apply(PNB__EXP, y));
    assert_null(pnb__add(x, x)); /* fine in itself, but the graph already failed */
    assert_int_equal(pnb__graph_plan(g, NULL, &err), PNB_SHAPE);
    assert_non_null(strstr(err.text, "linear"));
    assert_non_null(strstr(err.text, "(3, 4)"));
    assert_non_null(strstr(err.text, "(5, 6)"));
    assert_int_equal(pnb__graph_run(g, NULL), PNB_ARG);
    end_graph();
}

/* The reasons that are the graph's own. */
static void test_what_cannot_be_built(void **state)
{
    (void)state;
    REFUSED(pnb__input(g, PNB__REAL, 6, (size_t[6]){1}),
            "a tensor has 6 dimensions, the limit is 5");
    REFUSED(pnb__input(g, PNB__REAL, -1, NULL), "a tensor has -1 dimensions");
    REFUSED(pnb__input(g, PNB__REAL, SHAPE(SIZE_MAX / 2, 3, 3)),
            "a tensor has more elements than memory can hold");
    begin_graph(PNB__F64, false);
    pnb__graph *other = g;
    pnb__tensor *foreign = IN(2);
    begin_graph(PNB__F64, false);
    expect_refused(pnb__add(IN(2), foreign), PNB_ARG, "binary: an input belongs to another graph");
    g = other;
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb__graph_plan(g, NULL, &err), PNB_OK);
    assert_null(pnb__apply(PNB__EXP, foreign));
    assert_int_equal(g->error.status, PNB_ARG);
    assert_string_equal(g->error.text, "the graph is already planned; build a new one");
    end_graph();
    pnb__graph_free(NULL);
}

/* Weights in few bits are factors of a linear and nothing else, by a view or not. */
static void test_few_bits_are_read_by_products_only(void **state)
{
    static const struct {
        pnb__store store;
        const char *words;
    } cases[] = {{PNB__STORE_I8, "w is stored in 8 bits, unary cannot read it"},
                 {PNB__STORE_F16, "w is stored in 16 bits, unary cannot read it"},
                 {PNB__STORE_BF16, "w is stored in 16 bits, unary cannot read it"}};
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(cases); i++)
        for (int by_view = 0; by_view < 2; by_view++) {
            pnb__param p = {"w", 2, {4, 4}, 16, NULL, .store = cases[i].store};
            begin_graph(PNB__F32, false);
            pnb__tensor *w = pnb__param_tensor(g, &p);
            w = by_view ? pnb__reshape(w, SHAPE(16)) : w;
            assert_non_null(w);
            expect_refused(pnb__apply(PNB__EXP, w), PNB_UNSUPPORTED, cases[i].words);
        }
}

/* A weight is one tensor of a graph however often it is asked for; a number is a tensor of (). */
static void test_leaves(void **state)
{
    double of_weight[2] = {3, 4};
    pnb__param p = {"w", 1, {2}, 2, of_weight, .trainable = true}, fixed = p;
    (void)state;
    fixed.trainable = false;
    begin_graph(PNB__F64, true);
    pnb__tensor *w = pnb__param_tensor(g, &p), *other = pnb__param_tensor(g, &fixed);
    assert_ptr_equal(pnb__param_tensor(g, &p), w);
    assert_ptr_not_equal(other, w);
    assert_null(pnb__param_tensor(g, NULL));
    assert_true(w->wants_grad && !other->wants_grad);
    expect_shape(w, SHAPE(2));
    pnb__tensor *half = pnb__constant(g, 0.5);
    assert_int_equal(pnb__n_dims(half), 0);
    expect_values(pnb__add(w, half), (const double[]){3.5, 4.5}, 2);
}

/* A frozen graph has gradients of its inputs and none of its weights. */
static void test_freeze(void **state)
{
    double of_weight[2] = {3, 4}, dx[2] = {0, 0};
    const double x_values[2] = {5, 6};
    pnb__param p = {"w", 1, {2}, 2, of_weight, .trainable = true};
    (void)state;
    begin_graph(PNB__F64, true);
    assert_false(pnb__graph_is_frozen(g));
    pnb__graph_freeze(g);
    assert_true(pnb__graph_is_frozen(g));
    pnb__tensor *x = pnb__input_with_grad(g, SHAPE(2)), *w = pnb__param_tensor(g, &p);
    assert_false(w->wants_grad);
    pnb__tensor *loss = pnb__sum(pnb__mul(x, w), PNB__ALL_AXES);
    assert_int_equal(pnb__graph_plan(g, loss, NULL), PNB_OK);
    pnb__write_f64(x, x_values);
    assert_int_equal(pnb__graph_run(g, NULL), PNB_OK);
    assert_true(pnb__read_grad_f64(x, dx));
    assert_true(dx[0] == 3 && dx[1] == 4);
    assert_null(p.grad);
    end_graph();
}

static void test_shapes(void **state)
{
    char text[96];
    (void)state;
    begin_graph(PNB__F32, false);
    pnb__tensor *x = IN(2, 3, 4), *one = real_in(0, NULL),
                *ints = pnb__input(g, PNB__INT32, SHAPE(2));
    assert_true(pnb__dim(x, 0) == 2 && pnb__dim(x, 2) == 4 && pnb__dim(x, -1) == 4);
    assert_true(pnb__dim(x, 3) == 0 && pnb__dim(x, -4) == 0 && pnb__dim(NULL, 0) == 0);
    assert_true(pnb__n(x) == 24 && pnb__rows(x) == 6 && pnb__width(x) == 4);
    assert_true(pnb__n(one) == 1 && pnb__rows(one) == 1 && pnb__width(one) == 1);
    assert_true(pnb__n_dims(x) == 3 && pnb__n_dims(NULL) == 0 && pnb__n(NULL) == 0);
    assert_string_equal(pnb__shape_text(x, text), "(2, 3, 4)");
    assert_string_equal(pnb__shape_text(one, text), "()");
    assert_int_equal(pnb__elem_bytes(x), 4);
    assert_int_equal(pnb__elem_bytes(ints), 4);
    size_t large[PNB__DIMS] = {SIZE_MAX, 1, 1, 1, 1}; /* twenty digits a number: the text is cut */
    pnb__tensor longest = *x;
    for (int i = 0; i < PNB__DIMS; i++)
        longest.shape[i] = large[0];
    longest.n_dims = PNB__DIMS;
    assert_true(strlen(pnb__shape_text(&longest, text)) < sizeof text);
    assert_int_equal(pnb__graph_kernels(g)->real, PNB__F32);
    end_graph();
}

/* Keeping a view keeps what it looks at. */
static void test_keep(void **state)
{
    (void)state;
    begin_graph(PNB__F64, true);
    pnb__tensor *x = IN(4, 2), *y = pnb__apply(PNB__EXP, x);
    pnb__tensor *view = pnb__reshape(pnb__slice(y, 0, 1, 2), SHAPE(4));
    pnb__keep(view);
    pnb__keep_grad(view);
    assert_true(y->keep && view->keep && y->keep_grad && view->keep_grad);
    assert_true(!x->keep && x->keep_grad); /* asked for when it was made */
    assert_ptr_equal(pnb__root(view), y);
    assert_ptr_equal(pnb__root_const(x), x);
    pnb__keep(NULL);
    pnb__keep_grad(NULL);
    end_graph();
}

/* Nodes of a segment are made again, all but its result, views and leaves; only where gradients are
 * wanted and checkpointing is on. */
static void test_segments(void **state)
{
    (void)state;
    for (unsigned form = 0; form < 4; form++) {
        bool with_grad = form & 1, on = form & 2;
        begin_graph(PNB__F64, with_grad);
        pnb__graph_set_checkpointing(g, on);
        pnb__tensor *before = pnb__apply(PNB__EXP, IN(2, 2));
        size_t begin = pnb__segment_begin(g);
        pnb__tensor *leaf = IN(2, 2), *inner = pnb__add(before, leaf);
        pnb__tensor *view = pnb__reshape(inner, SHAPE(4)), *result = pnb__apply(PNB__EXP, view);
        pnb__segment_end(g, begin, pnb__reshape(result, SHAPE(2, 2)));
        pnb__segment_end(g, begin, NULL); /* of something that could not be built */
        pnb__tensor *after = pnb__apply(PNB__EXP, result);
        assert_int_equal(inner->recompute_all, with_grad && on);
        assert_false(before->recompute_all || leaf->recompute_all || view->recompute_all ||
                     result->recompute_all || after->recompute_all);
        end_graph();
    }
}

#ifdef PNB_FAULTS
/* The node that could not be made says how far building came; later ones are NULL, too. */
static void test_no_memory_while_building(void **state)
{
    (void)state;
    for (long n = 0;; n++) {
        pnb_error err = PNB_ERROR_INIT;
        begin_graph(PNB__F32, false);
        pnb__tensor *x = pnb__input(g, PNB__REAL, SHAPE(3, 4));
        pnb__alloc_fail_after(n);
        for (int i = 0; i < 300; i++)
            x = pnb__apply(PNB__TANH, x);
        pnb__alloc_fail_after(-1);
        if (x != NULL) {
            assert_true(n > 1);
            break;
        }
        assert_null(pnb__input(g, PNB__REAL, SHAPE(1)));
        assert_int_equal(pnb__graph_plan(g, NULL, &err), PNB_NOMEM);
        assert_non_null(strstr(err.text, "out of memory while building a graph"));
        end_graph();
    }
    end_graph();
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors_are_sticky_and_say_what),
        cmocka_unit_test(test_what_cannot_be_built),
        cmocka_unit_test(test_few_bits_are_read_by_products_only),
        cmocka_unit_test(test_leaves),
        cmocka_unit_test(test_freeze),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_keep),
        cmocka_unit_test(test_segments),
#ifdef PNB_FAULTS
        cmocka_unit_test(test_no_memory_while_building),
#endif
    };
    return cmocka_run_group_tests(tests, open_ctx, close_ctx);
}
