/* The table of routes, in the order of the list in routes.h.
 *
 * Finding one is a walk through all of them: there are few, and no request is so small that it
 * would be seen. */
#include "server/routes.h"

#define PNB__ROUTE_ADDRESS(name) &pnb__route_##name,
const pnb__route *const pnb__routes[] = {PNB__ROUTE_LIST(PNB__ROUTE_ADDRESS)};
#undef PNB__ROUTE_ADDRESS
const size_t pnb__n_routes = sizeof pnb__routes / sizeof *pnb__routes;
