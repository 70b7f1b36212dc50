/* Keys, pages of other sites, and requests a second.
 *
 * A browser on this machine runs pages of anybody: what such a page may do to a server that listens
 * on localhost without a key is decided by Origin (it says which site asks) and Host (a name that
 * was rebound to 127.0.0.1 still stands there). Rates are token buckets in a table of fixed size:
 * addresses that share a slot share its allowance, and nobody can make the table grow. */
#include "server/sockets/access.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/grow.h"
#include "base/map.h"

enum { MIN_KEY_BYTES = 16, MAX_KEY_FILE = 1 << 20 };

void pnb__access_init(pnb__access *a)
{
    *a = (pnb__access){0};
    pthread_mutex_init(&a->lock, NULL);
}

void pnb__access_reset(pnb__access *a)
{
    pnb__free(a->keys);
    pthread_mutex_destroy(&a->lock);
    *a = (pnb__access){0};
}

/* ---- keys ---- */

static void hash_key(const char *key, size_t n, char hex[65])
{
    pnb__sha256 hash;
    pnb__sha256_init(&hash);
    pnb__sha256_update(&hash, key, n);
    pnb__sha256_hex(&hash, hex);
}

static pnb_status add_key(pnb__access *a, const char *key, size_t n, size_t line, const char *path,
                          pnb_error *err)
{
    pnb__api_key item;
    if (n < MIN_KEY_BYTES)
        return pnb__fail(err, PNB_FORMAT,
                         "%s: the key on line %zu has %zu bytes, at least %d are wanted: `openssl "
                         "rand -hex 24` makes one",
                         path, line, n, MIN_KEY_BYTES);
    hash_key(key, n, item.sha256);
    return PNB_PUSH(a->keys, a->n_keys, err, item);
}

pnb_status pnb__access_read_keys(pnb__access *a, const char *path, pnb_error *err)
{
    char *data = NULL, *line;
    size_t size = 0, n;
    pnb_status status;
    PNB_TRY(pnb__read_file(path, MAX_KEY_FILE, &data, &size, err));
    pnb__line_reader lines = {.at = data, .end = data + size, .path = path};
    for (;;) {
        PNB_TRY(pnb__line_next(&lines, &line, err));
        if (line == NULL)
            break;
        const char *key = pnb__trimmed(line, strlen(line), &n);
        if (n > 0 && key[0] != '#')
            PNB_TRY(add_key(a, key, n, lines.number, path, err));
    }
    if (a->n_keys == 0)
        PNB_TRY(pnb__fail(err, PNB_FORMAT, "%s holds no key: one a line is wanted", path));
done:
    pnb__free(data);
    return status;
}

bool pnb__access_has_key(const pnb__access *a, const char *authorization)
{
    static const char scheme[] = "Bearer ";
    bool is_bearer =
        authorization != NULL && strncasecmp(authorization, scheme, sizeof scheme - 1) == 0;
    const char *key = is_bearer ? authorization + sizeof scheme - 1 : "";
    char hex[65];
    size_t n, n_equal = 0;
    key = pnb__trimmed(key, strlen(key), &n);
    hash_key(key, n, hex);
    for (size_t i = 0; i < a->n_keys; i++) {
        unsigned difference = 0;
        for (size_t k = 0; k < sizeof hex; k++) /* all of all keys, whatever was found */
            difference |= (unsigned char)(hex[k] ^ a->keys[i].sha256[k]);
        n_equal += difference == 0;
    }
    return a->n_keys == 0 || (is_bearer && n_equal > 0);
}

/* ---- pages of other sites ---- */

bool pnb__access_is_same_site(const pnb__access *a, const pnb__http_request *q,
                              const char **allowed)
{
    char host[256] = "", origin[256] = "";
    *allowed = NULL;
    bool has_host = pnb__http_host_of(q->host, host, sizeof host);
    if (a->local_names_only && has_host && !pnb__http_is_local(host) && !pnb__http_is_address(host))
        return false;
    if (q->origin == NULL)
        return true; /* no browser, or a page that only looks */
    for (size_t i = 0; i < a->n_origins; i++)
        if (strcmp(a->origins[i], q->origin) == 0 || strcmp(a->origins[i], "*") == 0) {
            *allowed = a->origins[i];
            return true;
        }
    /* The server's own page: what stands behind the scheme is the Host, its port included. */
    const char *site = strstr(q->origin, "://");
    return has_host && site != NULL && strcmp(site + 3, q->host) == 0 &&
           pnb__http_host_of(q->origin, origin, sizeof origin) && strcmp(origin, host) == 0;
}

/* ---- how often ---- */

bool pnb__access_take(pnb__access *a, const char *peer, double now_s, int *retry_after_s)
{
    if (!(a->rate > 0) || peer == NULL)
        return true;
    uint64_t hash = pnb__hash_bytes(peer, strlen(peer), a->seed) | 1;
    double burst = fmax(a->rate, 1); /* a second's worth at once */
    pthread_mutex_lock(&a->lock);
    pnb__rate_slot *slot = &a->slots[(hash >> 1) % PNB__N_RATE_SLOTS];
    if (slot->peer == 0)
        *slot = (pnb__rate_slot){hash, burst, now_s};
    slot->left = fmin(burst, slot->left + a->rate * fmax(now_s - slot->seen_s, 0));
    slot->seen_s = now_s;
    bool is_left = slot->left >= 1;
    if (is_left)
        slot->left -= 1;
    else
        *retry_after_s = (int)fmin(ceil((1 - slot->left) / a->rate), 3600);
    pthread_mutex_unlock(&a->lock);
    return is_left;
}
