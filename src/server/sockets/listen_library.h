/* libmicrohttpd, opened when the first server listens: with TLS it brings ten libraries. */
#ifndef PNB_SERVER_SOCKETS_LISTEN_LIBRARY_H
#define PNB_SERVER_SOCKETS_LISTEN_LIBRARY_H

#include <microhttpd.h>

#include "base/library.h"

#define PNB__MHD_PACKAGE "libmicrohttpd12"

#define PNB__MHD_FUNCTIONS(X)                                                                      \
    X(MHD_add_response_header)                                                                     \
    X(MHD_create_response_from_buffer)                                                             \
    X(MHD_create_response_from_buffer_with_free_callback)                                          \
    X(MHD_destroy_response)                                                                        \
    X(MHD_get_connection_info)                                                                     \
    X(MHD_get_connection_values)                                                                   \
    X(MHD_get_version)                                                                             \
    X(MHD_lookup_connection_value)                                                                 \
    X(MHD_queue_response)                                                                          \
    X(MHD_quiesce_daemon)                                                                          \
    X(MHD_resume_connection)                                                                       \
    X(MHD_start_daemon)                                                                            \
    X(MHD_stop_daemon)                                                                             \
    X(MHD_suspend_connection)

typedef struct pnb__mhd_library {
    void *handle;
    PNB__MHD_FUNCTIONS(PNB__LIBRARY_FIELD)
} pnb__mhd_library;

/* Filled by pnb__mhd_open and never changed again. */
extern pnb__mhd_library pnb__mhd;

/* Before anything is called through it; any thread, any number of times.
 * Errors  UNSUPPORTED: what to install */
pnb_status pnb__mhd_open(pnb_error *err);

#endif
