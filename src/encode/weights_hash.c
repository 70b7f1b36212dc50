/* The record beside the weights (<file>.sha256), in sha256sum's format with a comment in front:
 *   # penumbra size=791694344 mtime_ns=1700000000000000000
 *   69081b...92  model.safetensors
 * Size and time must match to the nanosecond, so replaced weights are hashed anew; the record may
 * be deleted at any time. Hashing ViT-B/16 costs seconds, reading this microseconds. */
#include "encode/weights_hash.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

static bool is_hash(const char *text)
{
    return strspn(text, "0123456789abcdef") >= 64;
}

/* blobs/<sha256> behind a snapshot's link. */
static bool from_link(const char *path, char hex[65])
{
    char target[1024];
    ssize_t n = readlink(path, target, sizeof target - 1);
    if (n <= 0)
        return false;
    target[n] = '\0';
    const char *name = pnb__path_base(target);
    if (strlen(name) != 64 || !is_hash(name))
        return false;
    memcpy(hex, name, 65);
    return true;
}

static void describe_file(const struct stat *s, char *text, size_t size)
{
    snprintf(text, size, "# penumbra size=%lld mtime_ns=%lld%09ld\n", (long long)s->st_size,
             (long long)s->st_mtim.tv_sec, s->st_mtim.tv_nsec);
}

static bool from_record(const char *record, const char *head, char hex[65])
{
    char *text = NULL;
    size_t size = 0, n_head = strlen(head);
    if (!pnb__path_is_file(record) || pnb__read_file(record, 4096, &text, &size, NULL) != PNB_OK)
        return false;
    bool fits = size >= n_head + 64 && memcmp(text, head, n_head) == 0 && is_hash(text + n_head);
    if (fits) {
        memcpy(hex, text + n_head, 64);
        hex[64] = '\0';
    }
    pnb__free(text);
    return fits;
}

/* A directory that cannot be written only means hashing again next time. */
static void leave_record(const char *record, const char *head, const char *hex, const char *path)
{
    char *text = pnb__format("%s%s  %s\n", head, hex, pnb__path_base(path));
    if (text != NULL)
        (void)pnb__write_file(record, text, strlen(text), NULL);
    pnb__free(text);
}

pnb_status pnb__weights_hash(pnb_model *model, char hex[65], pnb_error *err)
{
    const char *path = pnb_model_weights_path(model);
    char *record = pnb__format("%s.sha256", path);
    char head[96] = "";
    struct stat info;
    const char *computed = NULL;
    pnb_status status = PNB_OK;
    if (record == NULL) {
        status = pnb__fail_nomem(err, strlen(path) + 32);
        goto done;
    }
    bool is_file = !pnb__ends_with(path, ".index.json") && stat(path, &info) == 0 &&
                   S_ISREG(info.st_mode); /* of shards the joined bytes count */
    if (is_file)
        describe_file(&info, head, sizeof head);
    if (is_file && (from_link(path, hex) || from_record(record, head, hex)))
        goto done;
    PNB_TRY(pnb_model_weights_sha256(model, &computed, err));
    snprintf(hex, 65, "%s", computed);
    if (is_file && hex[0] != '\0')
        leave_record(record, head, hex, path);
done:
    pnb__free(record);
    return status;
}
