/* Whole files: reading, mapping, locking, and outputs that appear whole or not at all.
 *
 * An output is written to a temporary file beside its target, flushed to the disk and renamed over
 * it, so a full disk, a crash or an error leaves the old file as it was. A target that exists and
 * is not a regular file (/dev/stdout, a pipe) is written directly: nothing can be renamed over it.
 * A process that is killed may leave "<target>.tmp-<pid>-<k>" behind. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

#define READ_STEP_BYTES ((size_t)64 * 1024)
#define MAX_TEMP_NAMES 100

/* ---- reading ---- */

static pnb_status open_for_reading(int *fd, struct stat *info, const char *path, pnb_error *err)
{
    *info = (struct stat){0};
    *fd = open(path, O_RDONLY | O_CLOEXEC);
    if (*fd < 0)
        return pnb__fail_errno(err, "cannot open", path);
    pnb_status status = PNB_OK;
    if (fstat(*fd, info) != 0)
        status = pnb__fail_errno(err, "cannot examine", path);
    else if (S_ISDIR(info->st_mode))
        status = pnb__fail(err, PNB_IO, "%s is a directory, a file is wanted", path);
    if (status != PNB_OK) {
        close(*fd);
        *fd = -1;
    }
    return status;
}

/* Reads until end of file, also from pipes and from /proc, whose sizes are not known before. */
static pnb_status read_all(int fd, size_t size_hint, size_t max_bytes, pnb__buf *out,
                           const char *path, pnb_error *err)
{
    size_t step = PNB_MAX(PNB_MIN(size_hint, max_bytes) + 1, READ_STEP_BYTES);
    char *chunk = pnb__alloc(step);
    if (chunk == NULL)
        return pnb__fail_nomem(err, step);
    pnb_status status = PNB_OK;
    for (;;) {
        ssize_t n = read(fd, chunk, step);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            status = pnb__fail_errno(err, "cannot read", path);
            break;
        }
        if (n == 0)
            break;
        if ((size_t)n > max_bytes - out->size) {
            status = pnb__fail(err, PNB_LIMIT, "%s: more than the %zu bytes accepted for this file",
                               path, max_bytes);
            break;
        }
        pnb__buf_append(out, chunk, (size_t)n);
        if (out->failed) {
            status = pnb__fail_nomem(err, out->size + (size_t)n);
            break;
        }
    }
    pnb__free(chunk);
    return status;
}

pnb_status pnb__read_file(const char *path, size_t max_bytes, char **data, size_t *size,
                          pnb_error *err)
{
    int fd;
    struct stat info;
    pnb__buf content = {0};
    pnb_status status = open_for_reading(&fd, &info, path, err);
    if (status != PNB_OK)
        return status;
    size_t size_hint = 0;
    if (S_ISREG(info.st_mode)) {
        size_hint = (size_t)info.st_size;
        if (size_hint > max_bytes) {
            status = pnb__fail(err, PNB_LIMIT, "%s: %zu bytes, at most %zu are accepted", path,
                               size_hint, max_bytes);
            goto done;
        }
    }
    PNB_TRY(read_all(fd, PNB_MIN(size_hint, (size_t)1 << 20), max_bytes, &content, path, err));
    pnb__buf_append(&content, "", 0); /* an empty file also gets its terminator */
    if (content.failed) {
        status = pnb__fail_nomem(err, content.size + 1);
        goto done;
    }
    *data = content.data;
    *size = content.size;
    content.data = NULL;
done:
    pnb__buf_reset(&content);
    close(fd);
    return status;
}

pnb_status pnb__map_open(pnb__map *m, const char *path, pnb_error *err)
{
    int fd;
    struct stat info;
    const char *special = pnb__path_special(path); /* opening a pipe would wait for its writer */
    *m = (pnb__map){0};
    if (special != NULL)
        return pnb__fail(err, PNB_IO, "%s is %s, a file is wanted; copy it to one first", path,
                         special);
    pnb_status status = open_for_reading(&fd, &info, path, err);
    if (status != PNB_OK)
        return status;
    if (!S_ISREG(info.st_mode)) {
        status = pnb__fail(err, PNB_IO, "%s is not a regular file; copy it to one first", path);
    } else if (info.st_size > 0) {
        void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED)
            status = pnb__fail_errno(err, "cannot map", path);
        else
            *m = (pnb__map){.data = data,
                            .size = (size_t)info.st_size,
                            .device = info.st_dev,
                            .file = info.st_ino,
                            .written_s = info.st_mtim.tv_sec,
                            .written_ns = info.st_mtim.tv_nsec};
    }
    close(fd); /* the map keeps the file */
    return status;
}

void pnb__map_close(pnb__map *m)
{
    if (m->data != NULL)
        munmap((void *)(uintptr_t)m->data, m->size);
    *m = (pnb__map){0};
}

pnb_status pnb__map_check(const pnb__map *m, const char *path, pnb_error *err)
{
    struct stat now;
    if (m->data == NULL || stat(path, &now) != 0 || now.st_dev != m->device ||
        now.st_ino != m->file)
        return PNB_OK;
    if ((uint64_t)now.st_size == m->size && now.st_mtim.tv_sec == m->written_s &&
        now.st_mtim.tv_nsec == m->written_ns)
        return PNB_OK;
    return pnb__fail(
        err, PNB_IO,
        "%s was written to since it was opened (%zu bytes then, %lld now), and is read "
        "where it lies: open it again; a file in use is replaced by renaming another "
        "one over it",
        path, m->size, (long long)now.st_size);
}

void pnb__drop_pages(const void *mapped, size_t bytes)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)mapped;
    uintptr_t first = (begin + page - 1) / page * page, last = (begin + bytes) / page * page;
    if (last > first)
        (void)madvise((void *)first, last - first, MADV_DONTNEED); /* refused: nothing is lost */
}

/* ---- writing ---- */

/* The file a name leads to: renaming over a link would replace the link, not its target. */
static char *resolve_target(const char *path)
{
    char resolved[PATH_MAX];
    return pnb__strdup(realpath(path, resolved) != NULL ? resolved : path);
}

/* Creates "<path>.tmp-<pid>-<k>" with the permissions the process gives new files. */
static int open_temp(pnb__out_file *f)
{
    for (int k = 0; k < MAX_TEMP_NAMES; k++) {
        f->temp_path = pnb__format("%s.tmp-%ld-%d", f->path, (long)getpid(), k);
        if (f->temp_path == NULL) {
            errno = ENOMEM;
            return -1;
        }
        int fd = pnb__disk_step_fails()
                     ? -1
                     : open(f->temp_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0)
            return fd;
        int reason = errno;
        pnb__free(f->temp_path);
        f->temp_path = NULL;
        errno = reason;
        if (reason != EEXIST)
            return -1;
    }
    return -1;
}

static int open_target(pnb__out_file *f)
{
    struct stat info;
    if (stat(f->path, &info) == 0 && !S_ISREG(info.st_mode))
        return open(f->path, O_WRONLY | O_CLOEXEC); /* a directory fails here with EISDIR */
    return open_temp(f);
}

pnb_status pnb__out_open(pnb__out_file *f, const char *path, pnb_error *err)
{
    *f = (pnb__out_file){NULL, NULL, NULL};
    f->path = resolve_target(path);
    if (f->path == NULL)
        return pnb__fail_nomem(err, strlen(path) + 1);
    int fd = open_target(f);
    if (fd >= 0)
        f->file = fdopen(fd, "wb");
    if (f->file != NULL)
        return PNB_OK;
    pnb_status status = pnb__fail_errno(err, "cannot write", path);
    if (fd >= 0)
        close(fd);
    pnb__out_abort(f);
    return status;
}

/* A rename is on the disk only when its directory is; failure here is not reported because the
 * file is already complete and in place. */
static void sync_dir_of(const char *path)
{
    char *dir = pnb__path_dir(path);
    if (dir == NULL)
        return;
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
    pnb__free(dir);
}

/* An earlier write failed and its reason is gone: the same disk gives the same answer again. The
 * byte more does no harm, the file is thrown away. */
static void find_reason(int fd)
{
    errno = 0;
    if (write(fd, "", 1) == 1 || errno == 0)
        errno = EIO;
}

/* Flush, check and close the stream. Pipes and terminals cannot be synced, files must be. */
static pnb_status finish_stream(pnb__out_file *f, pnb_error *err)
{
    pnb_status status = PNB_OK;
    errno = 0;
    bool was_bad = ferror(f->file) != 0;
    if (pnb__disk_step_fails() || fflush(f->file) != 0 || was_bad) {
        if (errno == 0)
            find_reason(fileno(f->file));
        status = pnb__fail_errno(err, "cannot write", f->path);
    } else if (f->temp_path != NULL && fsync(fileno(f->file)) != 0) {
        status = pnb__fail_errno(err, "cannot write", f->path);
    }
    if (fclose(f->file) != 0 && status == PNB_OK)
        status = pnb__fail_errno(err, "cannot close", f->path);
    f->file = NULL;
    return status;
}

static int rename_step(const char *from, const char *to)
{
    return pnb__disk_step_fails() ? -1 : rename(from, to);
}

pnb_status pnb__out_commit(pnb__out_file *f, pnb_error *err)
{
    return pnb__out_commit_all(&f, 1, err);
}

/* ---- several files ---- */

/* Where a file of a set stands: its old version moved aside (NULL: there was none), the new one in
 * its place. */
typedef struct placing {
    char *aside;
    bool is_moved, is_placed;
} placing;

/* Targets that exist go aside, the last one first. */
static pnb_status move_aside(pnb__out_file *const *files, placing *p, size_t n, pnb_error *err)
{
    for (size_t i = n; i-- > 0;) {
        struct stat info;
        if (files[i] == NULL || files[i]->temp_path == NULL || lstat(files[i]->path, &info) != 0)
            continue;
        p[i].aside = pnb__format("%s.old-%ld", files[i]->path, (long)getpid());
        if (p[i].aside == NULL)
            return pnb__fail_nomem(err, strlen(files[i]->path));
        if (rename_step(files[i]->path, p[i].aside) != 0)
            return pnb__fail_errno(err, "cannot replace", files[i]->path);
        p[i].is_moved = true;
    }
    return PNB_OK;
}

static pnb_status place(pnb__out_file *const *files, placing *p, size_t n, pnb_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (files[i] == NULL || files[i]->temp_path == NULL)
            continue;
        if (rename_step(files[i]->temp_path, files[i]->path) != 0)
            return pnb__fail_errno(err, "cannot replace", files[i]->path);
        p[i].is_placed = true;
        pnb__free(files[i]->temp_path); /* nothing left for abort to remove */
        files[i]->temp_path = NULL;
    }
    return PNB_OK;
}

/* Everything as it was before; the last file comes back last. */
static void put_back(pnb__out_file *const *files, const placing *p, size_t n, pnb_error *err)
{
    for (size_t i = 0; i < n; i++) {
        bool is_lost = false;
        if (p[i].is_moved)
            is_lost = rename(p[i].aside, files[i]->path) != 0;
        else if (p[i].is_placed)
            unlink(files[i]->path);
        if (is_lost)
            pnb__error_prefix(err, "the old file is kept as %s", p[i].aside);
    }
}

/* One file replaces its target in one step; several need a moment in which none of the old ones
 * stands beside a new one. */
static pnb_status put_in_place(pnb__out_file *const *files, size_t n, pnb_error *err)
{
    placing p[PNB__MAX_COMMIT] = {{0}};
    assert(n <= PNB__MAX_COMMIT);
    pnb_status status = n > 1 ? move_aside(files, p, n, err) : PNB_OK;
    if (status == PNB_OK)
        status = place(files, p, n, err);
    if (status != PNB_OK)
        put_back(files, p, n, err);
    for (size_t i = 0; i < n; i++) {
        if (status == PNB_OK && p[i].is_placed)
            sync_dir_of(files[i]->path);
        if (status == PNB_OK && p[i].is_moved && !pnb__disk_step_fails())
            unlink(p[i].aside);
        pnb__free(p[i].aside);
    }
    return status;
}

pnb_status pnb__out_commit_all(pnb__out_file *const *files, size_t n, pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < n && status == PNB_OK; i++)
        if (files[i] != NULL)
            status = finish_stream(files[i], err);
    if (status == PNB_OK)
        status = put_in_place(files, n, err);
    for (size_t i = 0; i < n; i++)
        if (files[i] != NULL)
            pnb__out_abort(files[i]);
    return status;
}

void pnb__out_abort(pnb__out_file *f)
{
    if (f->file != NULL)
        fclose(f->file);
    if (f->temp_path != NULL)
        unlink(f->temp_path);
    pnb__free(f->temp_path);
    pnb__free(f->path);
    *f = (pnb__out_file){NULL, NULL, NULL};
}

pnb_status pnb__write_file(const char *path, const void *data, size_t size, pnb_error *err)
{
    pnb__out_file f;
    pnb_status status = pnb__out_open(&f, path, err);
    if (status != PNB_OK)
        return status;
    if (size > 0 && fwrite(data, 1, size, f.file) != size) {
        status = pnb__fail_errno(err, "cannot write", path);
        pnb__out_abort(&f);
        return status;
    }
    return pnb__out_commit(&f, err);
}

pnb_status pnb__buf_write(pnb__buf *b, const char *path, pnb_error *err)
{
    pnb_status status = pnb__buf_check(b, err);
    if (status == PNB_OK)
        status = pnb__write_file(path, b->data, b->size, err);
    pnb__buf_reset(b);
    return status;
}

/* ---- locks ---- */

pnb_status pnb__lock_open(int *fd, const char *path, pnb_error *err)
{
    *fd = -1;
    int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lock < 0)
        return pnb__fail_errno(err, "cannot open lock file", path);
    if (flock(lock, LOCK_EX | LOCK_NB) == 0) {
        *fd = lock;
        return PNB_OK;
    }
    pnb_status status =
        errno == EWOULDBLOCK
            ? pnb__fail(err, PNB_BUSY, "%s: another process holds this lock; wait for it to end",
                        path)
            : pnb__fail_errno(err, "cannot lock", path);
    close(lock);
    return status;
}

void pnb__lock_close(int fd)
{
    if (fd >= 0)
        close(fd); /* releases the lock; the file stays, removing it would race with the next */
}
