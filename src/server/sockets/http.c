/* Replies: bodies of errors, and which HTTP status an error of the library is.
 *
 * Errors have the form of OpenAI's service, because that is what stock clients take apart: `code`
 * is the status, `type` one of a few words, `message` the text of the library's own error. */
#include "server/sockets/http.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "io/json/json.h"

void pnb__http_reply_reset(pnb__http_reply *r)
{
    pnb__buf_reset(&r->body);
    *r = (pnb__http_reply){0};
}

static const char *type_of(int status)
{
    switch (status) {
    case 401:
        return "authentication_error";
    case 403:
        return "permission_error";
    case 404:
        return "not_found_error";
    case 409:
        return "conflict_error";
    case 429:
        return "rate_limit_error";
    case 501:
        return "not_supported_error";
    case 503:
        return "unavailable_error";
    default:
        return status >= 500 ? "server_error" : "invalid_request_error";
    }
}

/* A message may quote bytes of the request, or end inside of a letter: JSON is UTF-8. */
static void mend_utf8(const char *text, char *out, size_t size)
{
    size_t n_left = strlen(text), at = 0, n;
    uint32_t letter;
    for (; n_left > 0 && at + 4 < size; text += n, n_left -= n) {
        n = pnb__utf8_decode(text, n_left, &letter);
        if (n == 0) {
            out[at++] = '?';
            n = 1;
            continue;
        }
        memcpy(out + at, text, n);
        at += n;
    }
    out[at] = '\0';
}

static void fail(pnb__http_reply *r, int status, const char *said)
{
    char text[sizeof((pnb_error *)NULL)->text + 4];
    mend_utf8(said, text, sizeof text);
    r->status = status;
    r->content_type = NULL;
    pnb__buf_reset(&r->body);
    pnb__json_put(&r->body, "{\"error\":{\"code\":%d,\"message\":%s,\"type\":%s,\"param\":null}}\n",
                  status, text, type_of(status));
}

void pnb__http_fail(pnb__http_reply *r, int status, const char *fmt, ...)
{
    char text[sizeof((pnb_error *)NULL)->text];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    fail(r, status, text);
}

static int status_of(pnb_status status)
{
    switch (status) {
    case PNB_ARG:
    case PNB_SHAPE:
    case PNB_DTYPE:
    case PNB_FORMAT:
        return 400;
    case PNB_NOT_FOUND:
        return 404;
    case PNB_EXISTS:
        return 409;
    case PNB_LIMIT:
        return 413;
    case PNB_BUSY:
        return 429;
    case PNB_UNSUPPORTED:
        return 501;
    case PNB_NOMEM:
    case PNB_INTERRUPTED:
    case PNB_IO: /* a database that does not answer, a disk that is full: another time it may be */
        return 503;
    default:
        return 500;
    }
}

void pnb__http_fail_with(pnb__http_reply *r, const pnb_error *err)
{
    bool is_told = err->text[0] != '\0';
    int status = status_of(err->status);
    fail(r, status, is_told ? err->text : pnb_status_sentence(err->status));
    if (status == 429 || status == 503)
        r->retry_after_s = 1;
}

void pnb__http_done(pnb__http_reply *r)
{
    r->status = 200;
    if (r->body.failed)
        pnb__http_fail(r, 503, "out of memory");
}

/* ---- whom a header names ---- */

bool pnb__http_host_of(const char *header, char *host, size_t size)
{
    const char *at = header != NULL ? strstr(header, "://") : NULL;
    at = at != NULL ? at + 3 : header;
    if (at == NULL || *at == '\0')
        return false;
    bool has_brackets = *at == '[';
    size_t n = has_brackets ? strcspn(++at, "]") : strcspn(at, ":/");
    snprintf(host, size, "%.*s", (int)PNB_MIN(n, size - 1), at);
    return n > 0;
}

bool pnb__http_is_address(const char *host)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

bool pnb__http_is_local(const char *host)
{
    static const char name[] = "localhost";
    size_t n = strlen(host);
    struct in_addr v4;
    struct in6_addr v6;
    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    if (inet_pton(AF_INET6, host, &v6) == 1)
        return memcmp(&v6, &in6addr_loopback, sizeof v6) == 0;
    if (n < sizeof name - 1 || strcasecmp(host + n - (sizeof name - 1), name) != 0)
        return false;
    return n == sizeof name - 1 || host[n - sizeof name] == '.';
}
