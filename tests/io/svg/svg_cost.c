/* The cost of drawings: sums over trees and references, circles, and what multiplies. */
#include "io/svg/svg_cost.h"

#include <math.h>

#include "base/grow.h"
#include "tests/io/scratch.h"

static size_t add(pnb__svg_tree *t, size_t parent, const char *id)
{
    pnb_error err = PNB_ERROR_INIT;
    pnb__svg_node node = {parent, 1, id != NULL ? pnb__svg_id(id, strlen(id)) : 0};
    assert_int_equal(PNB_PUSH(t->nodes, t->n_nodes, &err, node), PNB_OK);
    return t->n_nodes - 1;
}

static void refer(pnb__svg_tree *t, size_t node, const char *value, bool is_href, double times)
{
    assert_int_equal(pnb__svg_links_of(t, node, value, is_href, times, NULL), PNB_OK);
}

static double cost_of(pnb__svg_tree *t)
{
    double cost = -1;
    assert_int_equal(pnb__svg_cost(t, &cost, NULL), PNB_OK);
    pnb__svg_tree_reset(t);
    return cost;
}

/* 1 root, 1 group with two children and an id, drawn twice more by reference. */
static void references_are_counted_out(void **state)
{
    pnb__svg_tree t = {0};
    (void)state;
    size_t root = add(&t, SIZE_MAX, NULL), group = add(&t, root, "g");
    add(&t, group, NULL);
    add(&t, group, NULL);
    refer(&t, add(&t, root, NULL), " #g", true, 1);
    refer(&t, add(&t, root, NULL), "url( '#g' )", false, 1);
    refer(&t, add(&t, root, NULL), "url(#nowhere) url(other.svg#g)", false, 1);
    refer(&t, add(&t, root, NULL), "other.svg#g", true, 1);
    assert_true(cost_of(&t) == 1 + 3 + 4 + 4 + 1 + 1);
    assert_true(cost_of(&t) == 0); /* an empty tree */
}

/* Ten groups of ten references each, then what a marker on each vertex would draw. */
static void what_multiplies(void **state)
{
    pnb__svg_tree t = {0};
    (void)state;
    size_t root = add(&t, SIZE_MAX, NULL);
    add(&t, root, "a0");
    for (int level = 1; level < 10; level++) {
        char id[8], from[8];
        snprintf(id, sizeof id, "a%d", level);
        snprintf(from, sizeof from, "#a%d", level - 1);
        size_t group = add(&t, root, id);
        for (int k = 0; k < 10; k++)
            refer(&t, add(&t, group, NULL), from, true, 1);
    }
    double cost = cost_of(&t);
    assert_true(cost > 1e9 && cost < 1e10);
    root = add(&t, SIZE_MAX, NULL);
    add(&t, root, "m");
    refer(&t, add(&t, root, NULL), "url(#m)", false, 250);
    assert_true(cost_of(&t) == 1 + 1 + 1 + 250);
}

static void circles_are_infinite(void **state)
{
    pnb__svg_tree t = {0};
    (void)state;
    size_t root = add(&t, SIZE_MAX, NULL);
    size_t a = add(&t, root, "a"), b = add(&t, root, "b");
    refer(&t, a, "#b", true, 1);
    refer(&t, b, "#a", true, 1);
    assert_true(isinf(cost_of(&t)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(references_are_counted_out),
        cmocka_unit_test(what_multiplies),
        cmocka_unit_test(circles_are_infinite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
