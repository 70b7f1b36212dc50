/* GET /: the page. It holds nothing of anybody's, so it needs no key; what it asks for does. The
 * policy beside it names the hash of each part, so that nothing else may run in it. Its text is
 * embedded when the program is built (page/page_document.h). */
#include "server/page/page_document.h"
#include "server/routes.h"

static pnb_status run(pnb__served *s, const pnb__http_request *q, const json_t *body,
                      pnb__http_reply *r, pnb_error *err)
{
    (void)s;
    (void)q;
    (void)body;
    if (!pnb__page_put(&r->body, r->policy, sizeof r->policy))
        return r->body.failed ? pnb__fail_nomem(err, 0)
                              : pnb__fail(err, PNB_UNSUPPORTED, "the page was built wrong");
    r->content_type = "text/html; charset=utf-8";
    return PNB_OK;
}

const pnb__route pnb__route_page = {.method = "GET",
                                    .path = "/",
                                    .summary = "A page to search with",
                                    .content = "text/html",
                                    .is_open = true,
                                    .is_quick = true,
                                    .run = run};
