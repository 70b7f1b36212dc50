/* What comes from another process: whatever it is, a rank ends its trades with what was sent or
 * with an error that has a text, takes no more than is waited for, and closes.
 *
 * The first byte says which calls are made and as which of two ranks; chunks follow, of a length in
 * two bytes and a kind: 0 bytes as they are, 1 a post that fits the trade at hand in its header
 * alone, 2 a notice. */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "peers/peers_internal.h"
#include "peers/tcp.h"
#include "tests/fuzz/folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put(int s, const void *bytes, size_t n)
{
    (void)!send(s, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT); /* the rest is lost: a short answer */
}

/* The other rank's whole life: all it sends, and the end. */
static void play_other(int s, const uint8_t *data, size_t size)
{
    uint64_t number = 0;
    while (size >= 3) {
        size_t n = (size_t)data[0] | (size_t)(data[1] & 0x3F) << 8, kind = data[2] % 3;
        data += 3;
        size -= 3;
        n = n < size ? n : size;
        pnb__post_header h = {.kind = kind == 1 ? PNB__POST_DATA : PNB__POST_NOTICE,
                              .flags = data[-1] >> 4,
                              .number = number,
                              .n_bytes = kind == 1 ? n : sizeof(pnb__notice)};
        if (kind != 0)
            put(s, &h, sizeof h);
        number += kind == 1;
        put(s, data, n);
        data += n;
        size -= n;
    }
    shutdown(s, SHUT_WR);
}

static pnb_status call(pnb_peers *r, unsigned which, pnb_error *err)
{
    float numbers[6] = {1, 2, 3, 4, 5, 6};
    const size_t from[3] = {0, 8, 24};
    pnb__buf told[2] = {{.data = NULL}, {.data = NULL}};
    int culprit = 0;
    bool flag = false;
    pnb_status status = PNB_OK;
    switch (which) {
    case 0:
        return pnb__peers_gather(r, numbers, from, err);
    case 1:
        return pnb__peers_sum(r, numbers, 5, false, &culprit, err);
    case 2:
        return pnb__peers_any(r, &flag, err);
    case 3:
        return pnb__peers_compare(r, "option", "a: 1\nb: 2\n", err);
    case 4:
        status = pnb__peers_share(r, &told[0], err);
        break;
    case 5:
        status = pnb__peers_tell_all(r, "hello", 5, told, err);
        break;
    default:
        return pnb_peers_agree(r, which == 6 ? PNB_OK : PNB_FORMAT, err);
    }
    pnb__buf_reset(&told[0]);
    pnb__buf_reset(&told[1]);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int pair[2], sockets[2] = {-1, -1};
    pnb_error err = PNB_ERROR_INIT;
    if (size == 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        return 0;
    size_t rank = data[0] >> 7;
    unsigned first = data[0] & 7, second = data[0] >> 3 & 7;
    fcntl(pair[0], F_SETFL, O_NONBLOCK);
    sockets[1 - rank] = pair[0];
    pnb_peers *r = pnb__alloc_zero(1, sizeof *r);
    if (r == NULL)
        abort();
    r->rank = rank;
    r->n_ranks = 2;
    r->timeout_s = 0.5;
    r->out = pnb__alloc_zero(2, sizeof *r->out);
    r->in = pnb__alloc_zero(2, sizeof *r->in);
    if (r->out == NULL || r->in == NULL || pnb__tcp_tie(&r->wire, rank, 2, sockets, &err) != PNB_OK)
        abort();
    play_other(pair[1], data + 1, size - 1);
    pnb_status status = call(r, first, &err);
    REQUIRE_TOLD(status, err);
    if (status == PNB_OK)
        status = call(r, second, &err);
    REQUIRE_TOLD(status, err);
    if (status != PNB_OK)
        pnb_peers_fail(r, status, &err);
    close(pair[1]);
    pnb_peers_close(r);
    return 0;
}
