/* The table of routes, in the order of the list in routes.h.
 *
 * Finding one is a walk through all of them: there are few, and no request is so small that it
 * would be seen. */
#include "server/routes.h"

#include <string.h>

pnb_status pnb__server_check_model(const pnb__server *s, const json_t *body, pnb_error *err)
{
    const char *name = pnb__field_text(body, "model", s->name);
    if (strcmp(name, s->name) == 0)
        return PNB_OK;
    return pnb__fail(err, PNB_NOT_FOUND, "the model '%.80s' is not served here; '%s' is", name,
                     s->name);
}

#define PNB__ROUTE_ADDRESS(name) &pnb__route_##name,
const pnb__route *const pnb__routes[] = {PNB__ROUTE_LIST(PNB__ROUTE_ADDRESS)};
#undef PNB__ROUTE_ADDRESS
const size_t pnb__n_routes = sizeof pnb__routes / sizeof *pnb__routes;
