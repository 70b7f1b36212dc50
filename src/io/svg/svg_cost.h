/* What drawing costs when every reference is followed: internal to svg_facts.c. */
#ifndef PNB_IO_SVG_SVG_COST_H
#define PNB_IO_SVG_SVG_COST_H

#include "base/base.h"

/* An element in document order: a parent stands before its children. */
typedef struct pnb__svg_node {
    size_t parent; /* SIZE_MAX: none */
    double weight; /* of itself */
    uint64_t id;   /* hash of its id, 0 none */
} pnb__svg_node;

/* Element `from` draws what has the id `to`, so many times. */
typedef struct pnb__svg_link {
    size_t from;
    uint64_t to;
    double times;
} pnb__svg_link;

typedef struct pnb__svg_tree {
    pnb__svg_node *nodes;
    pnb__svg_link *links;
    size_t n_nodes, n_links;
} pnb__svg_tree;

uint64_t pnb__svg_id(const char *name, size_t n); /* never 0 */
/* Links of all `#name` in href and `url(#name)` in an attribute's value. */
pnb_status pnb__svg_links_of(pnb__svg_tree *t, size_t node, const char *value, bool is_href,
                             double times, pnb_error *err);
/*   cost(e) = weight(e) + sum of cost(child) + sum of times * cost(target)
 * of the root, INFINITY for circles and chains that do not end within 64 steps.  Errors  NOMEM */
pnb_status pnb__svg_cost(const pnb__svg_tree *t, double *cost, pnb_error *err);
void pnb__svg_tree_reset(pnb__svg_tree *t);

#endif
