/* In place of listen.c where libmicrohttpd is not there.
 *
 * Everything but listening itself is built all the same: routes and their tests need no socket. */
#include "server/sockets/listen.h"

const char *pnb__listen_version(void)
{
    return NULL;
}

pnb_status pnb__listen(pnb__listener **out, pnb__server *s, const pnb__listen_opts *opts, int *port,
                       pnb_error *err)
{
    (void)out;
    (void)s;
    (void)opts;
    (void)port;
    return pnb__fail(
        err, PNB_UNSUPPORTED,
        "this build speaks no HTTP: install libmicrohttpd-dev (tools/install-deps) and "
        "build again");
}

void pnb__listen_end(pnb__listener *l, double limit_s)
{
    (void)l;
    (void)limit_s;
}
