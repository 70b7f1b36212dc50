/* The cost of a drawing by relaxation: each pass goes through the elements backwards, so that
 * children are added to their parents, and takes what references cost from the pass before. Chains
 * of k references settle after k + 1 passes; what has not settled after 64 is a circle, or so deep
 * that it is treated as one. Hashes stand for ids: a collision makes a cost larger, or takes
 * another element's, in one file of 10^14. */
#include "io/svg/svg_cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/order.h"

enum { MAX_PASSES = 64 };

uint64_t pnb__svg_id(const char *name, size_t n)
{
    uint64_t hash = pnb__hash_bytes(name, n, 0);
    return hash != 0 ? hash : 1;
}

void pnb__svg_tree_reset(pnb__svg_tree *t)
{
    pnb__free(t->nodes);
    pnb__free(t->links);
    *t = (pnb__svg_tree){0};
}

pnb_status pnb__svg_links_of(pnb__svg_tree *t, size_t node, const char *value, bool is_href,
                             double times, pnb_error *err)
{
    pnb_status status = PNB_OK;
    if (is_href) {
        const char *name = value + strspn(value, " \t\r\n");
        if (*name == '#')
            status =
                PNB_PUSH(t->links, t->n_links, err,
                         (pnb__svg_link){node, pnb__svg_id(name + 1, strlen(name + 1)), times});
        return status;
    }
    for (const char *p = strstr(value, "url("); p && status == PNB_OK; p = strstr(p, "url(")) {
        p += 4;
        p += strspn(p, " \t\r\n'\"");
        if (*p != '#')
            continue;
        size_t n = strcspn(p + 1, ")'\" \t\r\n");
        status = PNB_PUSH(t->links, t->n_links, err,
                          (pnb__svg_link){node, pnb__svg_id(p + 1, n), times});
    }
    return status;
}

/* ids[place] sorted by hash: the node that has it. */
typedef struct named_node {
    uint64_t id;
    size_t node;
} named_node;

static int by_id(const void *a, const void *b)
{
    const named_node *x = a, *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

/* target[l]: the first element with the id of link l, SIZE_MAX none. */
static pnb_status find_targets(const pnb__svg_tree *t, size_t *target, pnb_error *err)
{
    named_node *ids = NULL;
    size_t n = 0;
    pnb_status status = PNB_ALLOC(ids, t->n_nodes + 1, err);
    if (status != PNB_OK)
        return status;
    for (size_t i = 0; i < t->n_nodes; i++)
        if (t->nodes[i].id != 0)
            ids[n++] = (named_node){t->nodes[i].id, i};
    qsort(ids, n, sizeof *ids, by_id);
    for (size_t l = 0; l < t->n_links; l++) {
        size_t low = 0, high = n;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (ids[middle].id < t->links[l].to)
                low = middle + 1;
            else
                high = middle;
        }
        target[l] = low < n && ids[low].id == t->links[l].to ? ids[low].node : SIZE_MAX;
    }
    pnb__free(ids);
    return PNB_OK;
}

/* One pass: `now` from `before`; whether they are the same. */
static bool relax(const pnb__svg_tree *t, const size_t *target, const double *before, double *now)
{
    bool is_settled = true;
    for (size_t i = 0; i < t->n_nodes; i++)
        now[i] = t->nodes[i].weight;
    for (size_t l = 0; l < t->n_links; l++)
        if (target[l] != SIZE_MAX)
            now[t->links[l].from] += t->links[l].times * before[target[l]];
    for (size_t i = t->n_nodes; i-- > 0;) {
        if (t->nodes[i].parent != SIZE_MAX)
            now[t->nodes[i].parent] += now[i];
        is_settled &= now[i] == before[i];
    }
    return is_settled;
}

pnb_status pnb__svg_cost(const pnb__svg_tree *t, double *cost, pnb_error *err)
{
    size_t *target = NULL;
    double *before = NULL, *now = NULL;
    bool is_settled = false;
    pnb_status status;
    PNB_TRY(PNB_ALLOC(target, t->n_links + 1, err));
    PNB_TRY(PNB_ALLOC_ZERO(before, t->n_nodes + 1, err));
    PNB_TRY(PNB_ALLOC(now, t->n_nodes + 1, err));
    PNB_TRY(find_targets(t, target, err));
    for (int pass = 0; pass < MAX_PASSES && !is_settled; pass++) {
        is_settled = relax(t, target, before, now);
        double *swap = before;
        before = now;
        now = swap;
    }
    *cost = !is_settled ? INFINITY : t->n_nodes > 0 ? before[0] : 0;
done:
    pnb__free(target);
    pnb__free(before);
    pnb__free(now);
    return status;
}
