/* What is made of trades: gathering, summing, comparing.
 *
 * A sum of n numbers over R ranks goes in two trades: each rank gets its R-th part from all, adds
 * in the order of ranks, and sends the sum to all. Every number travels twice whatever R is, and
 * all ranks end with the same bits. Where each rank needs its own part alone one trade does. */
#include <math.h>
#include <string.h>

#include "peers/peers_internal.h"

static void send_to(pnb_peers *r, size_t p, const void *data, size_t n_bytes)
{
    r->out[p].is_used = true;
    r->out[p].data = (void *)(uintptr_t)data; /* only read */
    r->out[p].header.n_bytes = n_bytes;
}

static void take_from(pnb_peers *r, size_t p, void *data, size_t n_bytes)
{
    r->in[p].is_used = true;
    r->in[p].data = data;
    r->in[p].header.n_bytes = n_bytes;
}

pnb_status pnb__peers_gather(pnb_peers *r, void *data, const size_t *from, pnb_error *err)
{
    if (r == NULL)
        return PNB_OK;
    char *bytes = data;
    pnb__peers_begin(r);
    for (size_t p = 0; p < r->n_ranks; p++) {
        if (p == r->rank)
            continue;
        send_to(r, p, bytes + from[r->rank], from[r->rank + 1] - from[r->rank]);
        take_from(r, p, bytes + from[p], from[p + 1] - from[p]);
    }
    return pnb__peers_trade(r, 0, err);
}

size_t pnb__peers_part_at(size_t n, size_t n_parts, size_t i)
{
    return n / n_parts * i + n % n_parts * i / n_parts;
}

pnb_status pnb__peers_gather_even(pnb_peers *r, void *data, size_t n, size_t size, pnb_error *err)
{
    size_t *from = NULL, count = pnb_peers_count(r);
    if (r == NULL)
        return PNB_OK;
    pnb_status status = PNB_ALLOC(from, count + 1, err);
    for (size_t p = 0; status == PNB_OK && p <= count; p++)
        from[p] = pnb__peers_part_at(n, count, p) * size;
    if (status == PNB_OK)
        status = pnb__peers_gather(r, data, from, err);
    pnb__free(from);
    return status;
}

pnb_status pnb__peers_any(pnb_peers *r, bool *flag, pnb_error *err)
{
    if (r == NULL)
        return PNB_OK;
    pnb__peers_begin(r);
    for (size_t p = 0; p < r->n_ranks; p++)
        r->out[p].is_used = r->in[p].is_used = p != r->rank;
    pnb_status status = pnb__peers_trade(r, *flag, err);
    for (size_t p = 0; p < r->n_ranks && status == PNB_OK; p++)
        if (p != r->rank)
            *flag = *flag || r->in[p].header.flags != 0;
    return status;
}

/* ---- sums ---- */

/* sum[i] = x_0[i] + x_1[i] + ...; parts (n_ranks, n), that of this rank stands elsewhere. */
#define DEFINE_ADD(REAL, NAME)                                                                     \
    static void NAME(const pnb_peers *r, REAL *sum, const REAL *parts, const REAL *mine, size_t n) \
    {                                                                                              \
        for (size_t i = 0; i < n; i++)                                                             \
            sum[i] = r->rank == 0 ? mine[i] : parts[i];                                            \
        for (size_t p = 1; p < r->n_ranks; p++) {                                                  \
            const REAL *x = p == r->rank ? mine : parts + p * n;                                   \
            for (size_t i = 0; i < n; i++)                                                         \
                sum[i] += x[i];                                                                    \
        }                                                                                          \
    }
DEFINE_ADD(float, add_floats)
DEFINE_ADD(double, add_doubles)

/* x - x is 0 of finite numbers only. */
#define DEFINE_FINITE(REAL, NAME)                                                                  \
    static bool NAME(const REAL *x, size_t n)                                                      \
    {                                                                                              \
        REAL sum = 0;                                                                              \
        for (size_t i = 0; i < n; i++)                                                             \
            sum += x[i] - x[i];                                                                    \
        return sum == 0;                                                                           \
    }
DEFINE_FINITE(float, are_finite_floats)
DEFINE_FINITE(double, are_finite_doubles)

static bool are_finite(const void *x, size_t n, bool is_double)
{
    return is_double ? are_finite_doubles(x, n) : are_finite_floats(x, n);
}

/* The first rank whose part is not finite, counted from 1; 0: all are. */
static uint32_t find_culprit(const pnb_peers *r, const void *parts, const void *mine, size_t n,
                             bool is_double)
{
    size_t size = is_double ? sizeof(double) : sizeof(float);
    for (size_t p = 0; p < r->n_ranks; p++) {
        const void *x = p == r->rank ? mine : (const char *)parts + p * n * size;
        if (!are_finite(x, n, is_double))
            return (uint32_t)p + 1;
    }
    return 0;
}

/* Room for what comes, kept: sums are of the same sizes in every step. */
static void *make_scratch(pnb_peers *r, size_t bytes, pnb_error *err)
{
    if (bytes + 1 > r->n_scratch) {
        pnb__free_aligned(r->scratch);
        r->scratch = pnb__alloc_aligned(bytes + 1);
        r->n_scratch = r->scratch != NULL ? bytes + 1 : 0;
    }
    if (r->scratch == NULL)
        pnb__fail_nomem(err, bytes);
    return r->scratch;
}

/* What all ranks have of our numbers, in their order, with one rounding. */
static void add_parts(const pnb_peers *r, float *mine, const float *parts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (size_t p = 0; p < r->n_ranks; p++)
            sum += (double)(p == r->rank ? mine[i] : parts[p * n + i]);
        mine[i] = (float)sum;
    }
}

pnb_status pnb__peers_sum_part(pnb_peers *r, float *data, const size_t *from, pnb_error *err)
{
    if (r == NULL)
        return PNB_OK;
    size_t ours = from[r->rank + 1] - from[r->rank];
    float *parts = make_scratch(r, r->n_ranks * ours * sizeof *parts, err);
    if (parts == NULL)
        return PNB_NOMEM;
    pnb__peers_begin(r);
    for (size_t p = 0; p < r->n_ranks; p++) {
        if (p == r->rank)
            continue;
        send_to(r, p, data + from[p], (from[p + 1] - from[p]) * sizeof *data);
        take_from(r, p, parts + p * ours, ours * sizeof *parts);
    }
    pnb_status status = pnb__peers_trade(r, 0, err);
    if (status == PNB_OK)
        add_parts(r, data + from[r->rank], parts, ours);
    return status;
}

/* First number of rank p's share of n. */
static size_t share_at(const pnb_peers *r, size_t n, size_t p)
{
    return n / r->n_ranks * p + n % r->n_ranks * p / r->n_ranks;
}

/* Shares of all are sent, and our own share of each comes into parts (n_ranks, ours). */
static pnb_status trade_shares(pnb_peers *r, char *data, size_t n, size_t size, char *parts,
                               pnb_error *err)
{
    size_t ours = share_at(r, n, r->rank + 1) - share_at(r, n, r->rank);
    pnb__peers_begin(r);
    for (size_t p = 0; p < r->n_ranks; p++) {
        size_t at = share_at(r, n, p), n_its = share_at(r, n, p + 1) - at;
        if (p == r->rank)
            continue;
        send_to(r, p, data + at * size, n_its * size);
        take_from(r, p, parts + p * ours * size, ours * size);
    }
    return pnb__peers_trade(r, 0, err);
}

/* The sums of all shares; who is not finite goes along as a flag. */
static pnb_status trade_sums(pnb_peers *r, char *data, size_t n, size_t size, uint32_t *culprit,
                             pnb_error *err)
{
    size_t mine = share_at(r, n, r->rank), n_mine = share_at(r, n, r->rank + 1) - mine;
    pnb__peers_begin(r);
    for (size_t p = 0; p < r->n_ranks; p++) {
        size_t at = share_at(r, n, p);
        if (p == r->rank)
            continue;
        send_to(r, p, data + mine * size, n_mine * size);
        take_from(r, p, data + at * size, (share_at(r, n, p + 1) - at) * size);
    }
    pnb_status status = pnb__peers_trade(r, *culprit, err);
    for (size_t p = 0; p < r->n_ranks && status == PNB_OK; p++) {
        uint32_t its = p == r->rank ? 0 : r->in[p].header.flags;
        if (its != 0 && (*culprit == 0 || its < *culprit))
            *culprit = its;
    }
    return status;
}

pnb_status pnb__peers_sum(pnb_peers *r, void *data, size_t n, bool is_double, int *culprit,
                          pnb_error *err)
{
    size_t size = is_double ? sizeof(double) : sizeof(float);
    uint32_t whose = 0;
    if (culprit != NULL)
        *culprit = -1;
    if (r == NULL || n == 0)
        return PNB_OK;
    size_t at = share_at(r, n, r->rank), ours = share_at(r, n, r->rank + 1) - at;
    char *parts = make_scratch(r, r->n_ranks * ours * size, err);
    if (parts == NULL)
        return PNB_NOMEM;
    char *mine = (char *)data + at * size;
    pnb_status status = trade_shares(r, data, n, size, parts, err);
    if (status == PNB_OK) {
        char *own = parts + r->rank * ours * size; /* nobody wrote there */
        memcpy(own, mine, ours * size);
        if (is_double)
            add_doubles(r, (double *)(void *)mine, (const double *)(void *)parts,
                        (const double *)(void *)own, ours);
        else
            add_floats(r, (float *)(void *)mine, (const float *)(void *)parts,
                       (const float *)(void *)own, ours);
        if (!are_finite(mine, ours, is_double))
            whose = find_culprit(r, parts, own, ours, is_double);
        status = trade_sums(r, data, n, size, &whose, err);
    }
    if (culprit != NULL)
        *culprit = (int)whose - 1;
    return status;
}

/* ---- bytes of any length ---- */

/* Far above what ranks have to tell each other: a length is not believed before its bytes come. */
#define MOST_TOLD ((uint64_t)1 << 30)

/* Lengths first, then what they are of. Rank `only`, where it is a rank, is the only one that
 * sends. */
static pnb_status tell(pnb_peers *r, const void *bytes, size_t n, size_t only, pnb__buf *out,
                       pnb_error *err)
{
    uint64_t *lengths = NULL;
    bool sends = only >= r->n_ranks || only == r->rank;
    if (PNB_ALLOC_ZERO(lengths, r->n_ranks + 1, err) != PNB_OK)
        return PNB_NOMEM;
    uint64_t mine = sends ? n : 0;
    pnb__peers_begin(r);
    for (size_t p = 0; p < r->n_ranks; p++)
        if (p != r->rank) {
            send_to(r, p, &mine, sizeof mine);
            take_from(r, p, &lengths[p], sizeof *lengths);
        }
    pnb_status status = pnb__peers_trade(r, 0, err);
    pnb__peers_begin(r);
    for (size_t p = 0; p < r->n_ranks && status == PNB_OK; p++) {
        pnb__buf_reset(&out[p]);
        if (p == r->rank)
            continue;
        send_to(r, p, bytes, (size_t)mine);
        if (lengths[p] > MOST_TOLD) {
            status = pnb__fail(err, PNB_LIMIT,
                               "rank %zu has %llu bytes to tell, at most %llu are "
                               "taken",
                               p, (unsigned long long)lengths[p], (unsigned long long)MOST_TOLD);
            break;
        }
        out[p].data = pnb__alloc_zero((size_t)lengths[p] + 1, 1);
        if (out[p].data == NULL) {
            status = pnb__fail_nomem(err, (size_t)lengths[p]);
            break;
        }
        out[p].size = out[p].capacity = (size_t)lengths[p];
        take_from(r, p, out[p].data, (size_t)lengths[p]);
    }
    if (status == PNB_OK)
        status = pnb__peers_trade(r, 0, err);
    pnb__free(lengths);
    return status;
}

pnb_status pnb__peers_tell_all(pnb_peers *r, const void *bytes, size_t n, pnb__buf *out,
                               pnb_error *err)
{
    pnb_status status = r != NULL ? tell(r, bytes, n, SIZE_MAX, out, err) : PNB_OK;
    if (status == PNB_OK) {
        pnb__buf *own = &out[pnb_peers_rank(r)];
        own->size = 0;
        pnb__buf_append(own, bytes, n);
        status = pnb__buf_check(own, err);
    }
    return status;
}

pnb_status pnb__peers_share(pnb_peers *r, pnb__buf *b, pnb_error *err)
{
    pnb__buf *all = NULL;
    if (r == NULL)
        return PNB_OK;
    if (PNB_ALLOC_ZERO(all, r->n_ranks, err) != PNB_OK)
        return PNB_NOMEM;
    pnb_status status = tell(r, b->data, b->size, 0, all, err);
    if (status == PNB_OK && r->rank != 0) {
        pnb__buf_reset(b);
        *b = all[0];
        all[0] = (pnb__buf){0};
    }
    for (size_t p = 0; p < r->n_ranks; p++)
        pnb__buf_reset(&all[p]);
    pnb__free(all);
    return status;
}

/* The first line in which two texts differ, of each of them. */
static void first_difference(const char *a, const char *b, char line_a[160], char line_b[160])
{
    for (;;) {
        size_t na = strcspn(a, "\n"), nb = strcspn(b, "\n");
        bool same = na == nb && strncmp(a, b, na) == 0;
        if (!same || a[na] == '\0' || b[nb] == '\0') {
            snprintf(line_a, 160, "%.*s", (int)PNB_MIN(na, (size_t)159), a);
            snprintf(line_b, 160, "%.*s", (int)PNB_MIN(nb, (size_t)159), b);
            if (!same || a[na] == b[nb])
                return;
        }
        a += na + (a[na] != '\0');
        b += nb + (b[nb] != '\0');
        if (*a == '\0' && *b == '\0')
            return;
    }
}

pnb_status pnb__peers_compare(pnb_peers *r, const char *what, const char *text, pnb_error *err)
{
    pnb__buf *all = NULL;
    if (r == NULL)
        return PNB_OK;
    if (PNB_ALLOC_ZERO(all, r->n_ranks, err) != PNB_OK)
        return PNB_NOMEM;
    pnb_status status = pnb__peers_tell_all(r, text, strlen(text), all, err);
    for (size_t p = 1; p < r->n_ranks && status == PNB_OK; p++) {
        const char *a = all[0].data != NULL ? all[0].data : "";
        const char *b = all[p].data != NULL ? all[p].data : "";
        char line_a[160] = "", line_b[160] = "";
        if (strcmp(a, b) == 0)
            continue;
        first_difference(a, b, line_a, line_b);
        pnb_error why = PNB_ERROR_INIT;
        status = pnb__fail(&why, PNB_ARG, "its %s is not that of rank 0: \"%s\" there, \"%s\" here",
                           what, line_a, line_b);
        pnb__peers_blame(r, p, PNB_ARG, &why); /* all find the same */
        pnb__fail(err, PNB_ARG, "%s", why.text);
    }
    for (size_t p = 0; p < r->n_ranks; p++)
        pnb__buf_reset(&all[p]);
    pnb__free(all);
    return status;
}
