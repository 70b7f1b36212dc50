/* Who may ask: keys, pages of other sites, and how often. */
#ifndef PNB_SERVER_SOCKETS_ACCESS_H
#define PNB_SERVER_SOCKETS_ACCESS_H

#include <pthread.h>

#include "server/sockets/http.h"

/* A key as its SHA-256, so that keys of any length are compared in the same time. */
typedef struct pnb__api_key {
    char sha256[65];
} pnb__api_key;

enum { PNB__N_RATE_SLOTS = 1024 };

/* Requests that one address may still make. */
typedef struct pnb__rate_slot {
    uint64_t peer; /* hash of the address; 0: free */
    double left, seen_s;
} pnb__rate_slot;

/* All zero lets everybody in, as often as they like. */
typedef struct pnb__access {
    pnb__api_key *keys; /* none: no key is asked for */
    size_t n_keys;
    const char *const *origins; /* sites whose pages may ask and read; borrowed */
    size_t n_origins;
    bool local_names_only; /* a Host that is a name of elsewhere is refused: DNS rebinding */
    double rate;           /* requests a second of one address; 0: any number */
    uint64_t seed;         /* of the hash of addresses */
    pthread_mutex_t lock;  /* of the slots */
    pnb__rate_slot slots[PNB__N_RATE_SLOTS];
} pnb__access;

void pnb__access_init(pnb__access *a);
void pnb__access_reset(pnb__access *a);

/* Reads keys, one a line; empty lines and lines that begin with # are none.
 * Errors  FORMAT (no key, one shorter than 16 bytes: it could be guessed), those of reading */
pnb_status pnb__access_read_keys(pnb__access *a, const char *path, pnb_error *err);

/* Whether `authorization` is "Bearer KEY" with one of the keys, in a time that tells nothing of
 * them; true where there are none. */
bool pnb__access_has_key(const pnb__access *a, const char *authorization);
/* Whether the request may come from where its Host and Origin say; *allowed receives the origin
 * that may read the answer, or NULL. */
bool pnb__access_is_same_site(const pnb__access *a, const pnb__http_request *q,
                              const char **allowed);
/* Takes one request of the address at the time given. False: wait *retry_after_s. */
bool pnb__access_take(pnb__access *a, const char *peer, double now_s, int *retry_after_s);

#endif
