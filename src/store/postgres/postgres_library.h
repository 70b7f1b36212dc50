/* libpq, opened when the first collection in Postgres is: with TLS, Kerberos and LDAP it brings
 * twenty libraries. */
#ifndef PNB_STORE_POSTGRES_POSTGRES_LIBRARY_H
#define PNB_STORE_POSTGRES_POSTGRES_LIBRARY_H

#include <libpq-fe.h>

#include "base/library.h"

#define PNB__PQ_FUNCTIONS(X)                                                                       \
    X(PQclear)                                                                                     \
    X(PQcmdTuples)                                                                                 \
    X(PQconnectdbParams)                                                                           \
    X(PQconnectionNeedsPassword)                                                                   \
    X(PQconninfoFree)                                                                              \
    X(PQconninfoParse)                                                                             \
    X(PQerrorMessage)                                                                              \
    X(PQexec)                                                                                      \
    X(PQexecParams)                                                                                \
    X(PQfinish)                                                                                    \
    X(PQfreemem)                                                                                   \
    X(PQgetCopyData)                                                                               \
    X(PQgetResult)                                                                                 \
    X(PQgetisnull)                                                                                 \
    X(PQgetlength)                                                                                 \
    X(PQgetvalue)                                                                                  \
    X(PQntuples)                                                                                   \
    X(PQputCopyData)                                                                               \
    X(PQputCopyEnd)                                                                                \
    X(PQreset)                                                                                     \
    X(PQresultErrorField)                                                                          \
    X(PQresultStatus)                                                                              \
    X(PQsetNoticeProcessor)                                                                        \
    X(PQstatus)

typedef struct pnb__pq_library {
    void *handle;
    PNB__PQ_FUNCTIONS(PNB__LIBRARY_FIELD)
} pnb__pq_library;

/* Filled by pnb__pq_open and never changed again; called through, it is libpq. */
extern pnb__pq_library pnb__pq;

/* For who reads an address or connects, before that; any thread, any number of times.
 * Errors  UNSUPPORTED: what to install */
pnb_status pnb__pq_open(pnb_error *err);

#endif
