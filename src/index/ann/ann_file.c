/* Files of approximate indexes: a line of JSON, FAISS's own bytes, and a hash of those.
 *
 * The line says of which rows the index is, by a hash of all their numbers, so that it is refused
 * when the set was changed; the hash at the end finds damage before FAISS reads what it trusts. An
 * index is believed as a program is: from strangers it is not to be taken. */
#include <string.h>

#include "index/ann/ann.h"
#include "io/json/json.h"

#define FORMAT "penumbra-ann"
#define ANEW                                                                                       \
    ": remove the file, and it is built anew by the next `search --approx` of a set, or for a "    \
    "collection by `collection build`"
enum { VERSION = 1, HASH_BYTES = 1 << 20, LINE_BYTES = 4096 };

/* ---- which rows ---- */

typedef struct hash_job {
    const char *bytes;
    size_t n;
    uint64_t *hash; /* [piece] */
} hash_job;

static void hash_pieces(void *user, size_t begin, size_t end, int thread)
{
    (void)thread;
    const hash_job *job = user;
    for (size_t i = begin; i < end; i++) {
        size_t at = i * HASH_BYTES;
        job->hash[i] =
            pnb__hash_bytes(job->bytes + at, PNB_MIN((size_t)HASH_BYTES, job->n - at), i);
    }
}

static pnb_status hash_values(const pnb_ctx *ctx, const float *x, size_t n, uint64_t *sum,
                              pnb_error *err)
{
    hash_job job = {(const char *)x, n * sizeof *x, NULL};
    size_t n_pieces = (job.n + HASH_BYTES - 1) / HASH_BYTES;
    if (x == NULL || n == 0)
        return PNB_OK;
    pnb_status status = PNB_ALLOC(job.hash, n_pieces, err);
    if (status != PNB_OK)
        return status;
    pnb__parallel_for(ctx, n_pieces, 1, hash_pieces, &job);
    *sum = pnb__hash_bytes(job.hash, n_pieces * sizeof *job.hash, *sum);
    pnb__free(job.hash);
    return PNB_OK;
}

/* Of the numbers that make the vectors. */
static pnb_status hash_rows(const pnb__ann *ann, const pnb_ctx *ctx, char hex[17], pnb_error *err)
{
    const pnb_gaussians *g = &ann->gallery;
    uint64_t sum = 1;
    pnb_status status;
    PNB_TRY(hash_values(ctx, g->mean, g->n * g->dim, &sum, err));
    if (ann->opts.measure == PNB_MEASURE_CSD)
        PNB_TRY(hash_values(ctx, g->log_var, g->n * g->dim, &sum, err));
    if (ann->opts.measure == PNB_MEASURE_VMF)
        PNB_TRY(hash_values(ctx, g->kappa, g->n, &sum, err));
    snprintf(hex, 17, "%016llx", (unsigned long long)sum);
done:
    return status;
}

/* ---- writing ---- */

typedef struct writing {
    pnb__out_file *f;
    uint64_t hash;
    char piece[HASH_BYTES]; /* what is hashed next */
    size_t n;
} writing;

static void hash_piece(writing *w)
{
    w->hash = pnb__hash_bytes(w->piece, w->n, w->hash);
    w->n = 0;
}

static bool write_piece(void *user, const void *bytes, size_t n)
{
    writing *w = user;
    if (n == 0) /* FAISS writes empty arrays too */
        return true;
    if (pnb__disk_step_fails() || fwrite(bytes, 1, n, w->f->file) != n)
        return false;
    for (const char *p = bytes; n > 0;) {
        size_t m = PNB_MIN(n, sizeof w->piece - w->n);
        memcpy(w->piece + w->n, p, m);
        w->n += m;
        p += m;
        n -= m;
        if (w->n == sizeof w->piece)
            hash_piece(w);
    }
    return true;
}

static pnb_status write_line(const pnb__ann *ann, const char *of, pnb__out_file *f, pnb_error *err)
{
    pnb__buf line = {0};
    pnb__json_put(&line,
                  "{\"format\": %s, \"version\": %d, \"kind\": %s, \"measure\": %s, \"rows\": %zu, "
                  "\"width\": %zu, \"effort\": %zu, \"recall\": %f, \"n_sample\": %zu, \"of\": %s}",
                  FORMAT, VERSION, ann->kind, pnb_measure_name(ann->opts.measure), ann->gallery.n,
                  ann->width, ann->effort, ann->recall, ann->n_sample, of);
    pnb__buf_putc(&line, '\n');
    pnb_status status = pnb__buf_check(&line, err);
    if (status == PNB_OK && fwrite(line.data, 1, line.size, f->file) != line.size)
        status = pnb__fail_errno(err, "cannot write", f->path);
    pnb__buf_reset(&line);
    return status;
}

pnb_status pnb__ann_save(const void *self, const pnb_ctx *ctx, pnb__out_file *f, pnb_error *err)
{
    const pnb__ann *ann = self;
    writing *w = NULL;
    char of[17];
    pnb__faiss_error why;
    pnb_status status;
    PNB_TRY(hash_rows(ann, ctx, of, err));
    PNB_TRY(write_line(ann, of, f, err));
    PNB_TRY(PNB_ALLOC(w, 1, err));
    w->f = f;
    w->hash = 0;
    w->n = 0;
    if (!pnb__faiss_write(ann->faiss, write_piece, w, &why))
        PNB_TRY(why.is_memory ? pnb__fail_nomem(err, 0)
                              : pnb__fail_errno(err, "cannot write", f->path));
    hash_piece(w);
    if (fprintf(f->file, "%016llx", (unsigned long long)w->hash) != 16)
        status = pnb__fail_errno(err, "cannot write", f->path);
done:
    pnb__free(w);
    return status;
}

/* ---- reading ---- */

static pnb_status fail_other(const pnb__ann *ann, const char *path, pnb_error *err)
{
    return pnb__fail(err, PNB_ARG,
                     "%s is the %s index of other rows, or of another measure: the set was changed "
                     "since it was built" ANEW,
                     path, ann->kind);
}

/* The line's facts; what the rows are is seen last, since all of them are read for it. */
static pnb_status take_line(pnb__ann *ann, const pnb_ctx *ctx, const char *line, size_t n,
                            const char *path, pnb_error *err)
{
    json_t *root = NULL;
    char of[17];
    pnb_status status;
    PNB_TRY(pnb__json_load_bytes(&root, line, n, path, err));
    pnb__jobj o = pnb__json_object(root, path, err);
    const char *format = pnb__json_get_string(&o, "format", "", err);
    const char *kind = pnb__json_get_string(&o, "kind", "", err);
    const char *measure = pnb__json_get_string(&o, "measure", "", err);
    const char *rows = pnb__json_get_string(&o, "of", "", err);
    int64_t version = pnb__json_get_int_in(&o, "version", 0, 0, 1000, err);
    int64_t n_rows = pnb__json_get_int_in(&o, "rows", 0, 0, INT64_MAX, err);
    ann->effort = (size_t)pnb__json_get_int_in(&o, "effort", 1, 1, 1 << 30, err);
    ann->n_sample = (size_t)pnb__json_get_int_in(&o, "n_sample", 0, 0, 1 << 30, err);
    ann->recall = pnb__json_get_double(&o, "recall", 0, err);
    PNB_TRY(o.status);
    if (strcmp(format, FORMAT) != 0 || version != VERSION)
        PNB_TRY(
            pnb__fail(err, PNB_FORMAT, "%s is no index of version %d" ANEW, path, (int)VERSION));
    if (strcmp(kind, ann->kind) != 0 || (size_t)n_rows != ann->gallery.n ||
        strcmp(measure, pnb_measure_name(ann->opts.measure)) != 0)
        PNB_TRY(fail_other(ann, path, err));
    PNB_TRY(hash_rows(ann, ctx, of, err));
    if (strcmp(of, rows) != 0)
        status = fail_other(ann, path, err);
done:
    json_decref(root);
    return status;
}

static bool is_whole(const char *body, size_t n, const char *end)
{
    uint64_t hash = 0;
    char hex[17];
    for (size_t at = 0; at < n; at += HASH_BYTES)
        hash = pnb__hash_bytes(body + at, PNB_MIN((size_t)HASH_BYTES, n - at), hash);
    if (n % HASH_BYTES == 0)
        hash = pnb__hash_bytes(body, 0, hash); /* the writer's last, empty piece */
    snprintf(hex, sizeof hex, "%016llx", (unsigned long long)hash);
    return memcmp(hex, end, 16) == 0;
}

pnb_status pnb__ann_load(pnb__ann *ann, const pnb_ctx *ctx, const char *path, pnb_error *err)
{
    pnb__map map = {0};
    pnb__faiss_error why;
    pnb_status status = pnb__map_open(&map, path, err);
    if (status != PNB_OK)
        return status;
    const char *bytes = (const char *)map.data;
    const char *end =
        map.size > 0 ? memchr(bytes, '\n', PNB_MIN(map.size, (size_t)LINE_BYTES)) : NULL;
    if (end == NULL || map.size < (size_t)(end - bytes) + 1 + 16)
        PNB_TRY(pnb__fail(err, PNB_FORMAT, "%s is no index, or was cut short" ANEW, path));
    PNB_TRY(take_line(ann, ctx, bytes, (size_t)(end - bytes), path, err));
    const char *body = end + 1;
    size_t n = map.size - (size_t)(body - bytes) - 16;
    if (!is_whole(body, n, body + n))
        PNB_TRY(pnb__fail(err, PNB_FORMAT, "%s is damaged" ANEW, path));
    if (!pnb__faiss_read(&ann->faiss, body, n, ann->gallery.n, ann->width, &why) ||
        !pnb__faiss_use_dot(ann->faiss, pnb__ann_dot(ctx), &why))
        status = why.is_memory
                     ? pnb__fail_nomem(err, map.size)
                     : pnb__fail(err, PNB_FORMAT, "%s: FAISS says: %s" ANEW, path, why.text);
done:
    pnb__map_close(&map);
    return status;
}
