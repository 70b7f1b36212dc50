/* Status names and the error record.
 *
 * The record belongs to the caller and the first error wins: an outer function that fails because
 * an inner one did must not hide what the inner one said. Context is added in front of the text
 * with pnb__error_prefix instead. Names and sentences come from PNB_STATUS_LIST only. */
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "base/names.h"

/* Functions here, also where the analyzer sees macros. */
#undef pnb__fail
#undef pnb__fail_nomem
#undef pnb__fail_errno

const char *pnb_status_name(pnb_status status)
{
#define STATUS_NAME(name, sentence) #name "\0"
    return pnb__name_at(PNB_STATUS_LIST(STATUS_NAME), status, "UNKNOWN");
#undef STATUS_NAME
}

const char *pnb_status_sentence(pnb_status status)
{
    return pnb__name_at(PNB_NAMES(PNB_STATUS_LIST), status, "not a status of this library");
}

void pnb_error_reset(pnb_error *err)
{
    if (err == NULL)
        return;
    err->status = PNB_OK;
    err->text[0] = '\0';
}

pnb_status pnb__fail(pnb_error *err, pnb_status status, const char *fmt, ...)
{
    if (err == NULL || err->status != PNB_OK)
        return status;
    err->status = status;
    va_list args;
    va_start(args, fmt);
    vsnprintf(err->text, sizeof err->text, fmt, args);
    va_end(args);
    return status;
}

pnb_status pnb__fail_nomem(pnb_error *err, size_t bytes)
{
    return pnb__fail(err, PNB_NOMEM, "out of memory: %zu bytes wanted", bytes);
}

static pnb_status status_of_errno(int code)
{
    switch (code) {
    case ENOENT:
        return PNB_NOT_FOUND;
    case EEXIST:
        return PNB_EXISTS;
    case ENOMEM:
        return PNB_NOMEM;
    default:
        return PNB_IO;
    }
}

pnb_status pnb__fail_errno(pnb_error *err, const char *what, const char *path)
{
    int code = errno;
    char buffer[128];
    /* The GNU form: thread safe, and may return a constant string instead of `buffer`. */
    const char *reason = strerror_r(code, buffer, sizeof buffer);
    if (code == ENOMEM)
        return pnb__fail(err, PNB_NOMEM, "%s %s: out of memory", what, path);
    return pnb__fail(err, status_of_errno(code), "%s %s: %s", what, path, reason);
}

void pnb__error_prefix(pnb_error *err, const char *fmt, ...)
{
    if (err == NULL || err->status == PNB_OK)
        return;
    char old[sizeof err->text];
    memcpy(old, err->text, sizeof old);
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(err->text, sizeof err->text, fmt, args);
    va_end(args);
    if (n < 0)
        n = 0;
    size_t used = PNB_MIN((size_t)n, sizeof err->text - 1);
    /* What does not fit is cut at the end: the prefix says where, which is worth more. */
    snprintf(err->text + used, sizeof err->text - used, ": %s", old);
}
