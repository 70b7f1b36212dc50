/* gzip and Zstandard into a file without a name, which is then mapped.
 *
 * A data loader goes to samples in any order, and neither format can be entered in the middle. What
 * comes out is counted against a limit and written in pieces, so that a small file that claims much
 * costs no more than it unfolds to. A stream that breaks off gives the bytes in front of the
 * damage, as a plain archive that ends early does; the reader of the archive says where it ends. */
#include "io/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <zlib.h>
#ifdef PNB_HAVE_ZSTD
#include <zstd.h>
#endif

enum { PIECE = 1 << 18 };

/* Where unpacked bytes go. */
typedef struct sink {
    int fd;
    uint64_t n, max_bytes;
    const char *path; /* of the packed file, for messages */
    unsigned char *piece;
} sink;

static bool is_zstd(const unsigned char *p, size_t n)
{
    return n >= 4 && memcmp(p, "\x28\xb5\x2f\xfd", 4) == 0;
}

bool pnb__is_packed(const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    return (n >= 2 && p[0] == 0x1f && p[1] == 0x8b) || is_zstd(p, n);
}

static pnb_status put(sink *s, size_t n, pnb_error *err)
{
    s->n += n;
    if (s->n > s->max_bytes)
        return pnb__fail(err, PNB_LIMIT, "%s: more than %llu bytes when unpacked", s->path,
                         (unsigned long long)s->max_bytes);
    for (size_t done = 0; done < n;) {
        ssize_t written = write(s->fd, s->piece + done, n - done);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return pnb__fail_errno(err, "no room to unpack", s->path);
        done += (size_t)written;
    }
    return PNB_OK;
}

/* ---- the two formats; *is_whole false: the stream is damaged or ends early ---- */

static pnb_status inflate_members(z_stream *z, const pnb__map *m, sink *s, bool *is_whole,
                                  pnb_error *err)
{
    int code = Z_OK;
    z->next_in = (Bytef *)(uintptr_t)m->data;
    for (;;) {
        size_t left = m->size - (size_t)(z->next_in - m->data);
        z->avail_in = (uInt)PNB_MIN(left, (size_t)UINT_MAX); /* zlib counts in 32 bits */
        if (code == Z_STREAM_END && !pnb__is_packed(z->next_in, left))
            return PNB_OK; /* padding behind the last member, as gunzip ignores it */
        if (code == Z_STREAM_END && inflateReset(z) != Z_OK)
            return pnb__fail_nomem(err, 64 << 10);
        z->next_out = s->piece;
        z->avail_out = PIECE;
        code = inflate(z, Z_NO_FLUSH);
        pnb_status status = put(s, PIECE - z->avail_out, err);
        if (status != PNB_OK)
            return status;
        if (code != Z_OK && code != Z_STREAM_END) {
            *is_whole = false;
            return PNB_OK;
        }
    }
}

static pnb_status from_gzip(const pnb__map *m, sink *s, bool *is_whole, pnb_error *err)
{
    z_stream z = {0};
    if (inflateInit2(&z, 16 + MAX_WBITS) != Z_OK)
        return pnb__fail_nomem(err, 64 << 10);
    pnb_status status = inflate_members(&z, m, s, is_whole, err);
    inflateEnd(&z);
    return status;
}

#ifdef PNB_HAVE_ZSTD
static pnb_status from_zstd(const pnb__map *m, sink *s, bool *is_whole, pnb_error *err)
{
    ZSTD_DCtx *z = ZSTD_createDCtx();
    ZSTD_inBuffer in = {m->data, m->size, 0};
    pnb_status status = z == NULL ? pnb__fail_nomem(err, 1 << 20) : PNB_OK;
    size_t rest = 0; /* 0: a frame is whole */
    while (status == PNB_OK && *is_whole && (in.pos < in.size || rest > 0)) {
        ZSTD_outBuffer out = {s->piece, PIECE, 0};
        size_t from = in.pos;
        rest = ZSTD_decompressStream(z, &out, &in);
        status = put(s, out.pos, err);
        bool stands_still = in.pos == from && out.pos == 0;
        *is_whole = !ZSTD_isError(rest) && !stands_still;
    }
    ZSTD_freeDCtx(z);
    return status;
}
#else
static pnb_status from_zstd(const pnb__map *m, sink *s, bool *is_whole, pnb_error *err)
{
    (void)m, (void)is_whole;
    return pnb__fail(err, PNB_UNSUPPORTED,
                     "%s is packed by zstd, and this program was built without it (libzstd-dev); "
                     "unpack it first (unzstd)",
                     s->path);
}
#endif

/* ---- the file ---- */

static pnb_status open_nameless(int *fd, const char *path, pnb_error *err)
{
    char *dir = pnb__path_dir(path), name[] = "/tmp/penumbra-XXXXXX";
    if (dir == NULL)
        return pnb__fail_nomem(err, strlen(path));
    *fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    pnb__free(dir);
    if (*fd < 0) {
        *fd = mkostemp(name, O_CLOEXEC);
        if (*fd >= 0)
            (void)unlink(name);
    }
    return *fd < 0 ? pnb__fail_errno(err, "nowhere to unpack", path) : PNB_OK;
}

static pnb_status map_sink(const sink *s, pnb__map *out, pnb_error *err)
{
    void *data = mmap(NULL, (size_t)s->n, PROT_READ, MAP_PRIVATE, s->fd, 0);
    if (data == MAP_FAILED)
        return pnb__fail_errno(err, "cannot map what was unpacked of", s->path);
    *out = (pnb__map){.data = data, .size = (size_t)s->n};
    return PNB_OK;
}

pnb_status pnb__unpack_map(pnb__map *m, const char *path, uint64_t max_bytes, pnb_error *err)
{
    sink s = {.fd = -1, .max_bytes = max_bytes, .path = path};
    pnb__map unpacked = {0};
    bool is_whole = true;
    pnb_status status;
    PNB_TRY(PNB_ALLOC(s.piece, PIECE, err));
    PNB_TRY(open_nameless(&s.fd, path, err));
    PNB_TRY(is_zstd(m->data, m->size) ? from_zstd(m, &s, &is_whole, err)
                                      : from_gzip(m, &s, &is_whole, err));
    if (s.n == 0)
        PNB_TRY(pnb__fail(err, PNB_FORMAT, "%s: %s", path,
                          is_whole ? "nothing is packed in it" : "what is packed is damaged"));
    PNB_TRY(map_sink(&s, &unpacked, err));
    pnb__map_close(m);
    *m = unpacked;
done:
    if (s.fd >= 0)
        close(s.fd); /* the map keeps the file */
    pnb__free(s.piece);
    return status;
}
