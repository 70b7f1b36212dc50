/* A request and its reply as the routes see them: no socket, no library of HTTP. */
#ifndef PNB_SERVER_SOCKETS_HTTP_H
#define PNB_SERVER_SOCKETS_HTTP_H

#include "base/base.h"

/* What a client sent; every text is borrowed for the time of the call, headers are NULL where they
 * were not sent. */
typedef struct pnb__http_request {
    const char *method, *path;
    const char *authorization, *host, *origin, *content_encoding;
    const char *peer; /* address of the client, without its port */
    const char *body;
    size_t n_body;
    bool has_two_lengths; /* Content-Length is there twice, with different values */
    bool wants_slot;      /* ?fail_on_no_slot=1 */
    /* Whether nobody waits for the answer any more; NULL: somebody always does. */
    bool (*is_gone)(const void *user);
    const void *user;
} pnb__http_request;

/* What is sent back. All zero is an empty one; release with pnb__http_reply_reset. */
typedef struct pnb__http_reply {
    int status;
    const char *content_type; /* NULL: application/json */
    const char *allow;        /* of 405: the method that would do */
    const char *origin;       /* who else may read it, of Access-Control-Allow-Origin; or NULL */
    const char *caching;      /* of Cache-Control; NULL: no-store */
    char policy[512];         /* Content-Security-Policy of a page; "" none */
    int retry_after_s;        /* 0: not said */
    bool closes;              /* the connection, which nobody can read on from */
    pnb__buf body;
} pnb__http_reply;

void pnb__http_reply_reset(pnb__http_reply *r);

/* Makes it an error in OpenAI's form, in place of whatever it held:
 *   {"error":{"code":400,"message":"...","type":"invalid_request_error","param":null}} */
void pnb__http_fail(pnb__http_reply *r, int status, const char *fmt, ...) PNB_PRINTF(3, 4);
/* The same from an error record: which status that is follows from its kind. */
void pnb__http_fail_with(pnb__http_reply *r, const pnb_error *err);
/* A reply whose body is complete: 200, or an error where memory ran out. */
void pnb__http_done(pnb__http_reply *r);

/* The bare address or name in a Host or Origin header: without scheme, port and brackets, cut to
 * `size`; false where there is none. */
bool pnb__http_host_of(const char *header, char *host, size_t size);
/* "localhost", a name below it, or an address that only this machine has. */
bool pnb__http_is_local(const char *host);
/* An IPv4 or IPv6 address, which no name server can turn into another one. */
bool pnb__http_is_address(const char *host);

#endif
