/* A server without a socket, for tests: asks and keeps the reply. */
#ifndef TESTS_SERVER_ASK_H
#define TESTS_SERVER_ASK_H

#include <string.h>

#include "server/answer.h"

static inline int ask_with(pnb__server *s, pnb__http_request q, pnb__http_reply *r)
{
    pnb__http_reply_reset(r);
    if (q.body != NULL && q.n_body == 0)
        q.n_body = strlen(q.body);
    pnb__server_answer(s, &q, r);
    return r->status;
}

static inline int ask(pnb__server *s, const char *method, const char *path, const char *body,
                      pnb__http_reply *r)
{
    return ask_with(s, (pnb__http_request){.method = method, .path = path, .body = body}, r);
}

#endif
