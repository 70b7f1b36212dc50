/* From a request to its reply. */
#ifndef PNB_SERVER_ANSWER_H
#define PNB_SERVER_ANSWER_H

#include "server/routes.h"

/* Looks at everything but the body. NULL: the request is refused, and the reply says why.
 * `n_announced` is its Content-Length, 0 where there is none. */
const pnb__route *pnb__server_admit(pnb__server *s, const pnb__http_request *q, size_t n_announced,
                                    pnb__http_reply *r);
/* Answers an admitted request and counts it. */
void pnb__server_run(pnb__server *s, const pnb__route *route, const pnb__http_request *q,
                     pnb__http_reply *r);
/* Both: for tests. */
void pnb__server_answer(pnb__server *s, const pnb__http_request *q, pnb__http_reply *r);

#endif
