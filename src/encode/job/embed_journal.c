/* OUT.journal/: `lock`, `job` (signature of the job), `parts.jsonl`, part-NNNNN.safetensors.
 *
 * A line {"end", "part", "rows", "truncated", "unknown", "inputs", "skipped": [{"input", "why"}]}
 * is appended and flushed to disk after its part; "inputs" is the stamp of the inputs it covers.
 * Reading stops before the first line that a crash cut short, whose part is not whole, or whose
 * inputs are not those that were read, and the file is cut there. Whatever the moment a run is
 * killed at, the next one therefore finds a shorter journal or none. Joining the parts is the job's
 * business. */
#include "encode/job/embed_journal.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/grow.h"
#include "io/json/json.h"

enum { MAX_RETRIES = 10 };

static pnb_status file_in(const pnb__embed_journal *j, const char *name, char **path,
                          pnb_error *err)
{
    *path = pnb__path_join(j->dir, name);
    return *path != NULL ? PNB_OK : pnb__fail_nomem(err, strlen(name));
}

static pnb_status remove_file(const pnb__embed_journal *j, const char *name, pnb_error *err)
{
    char *path = NULL;
    pnb_status status = file_in(j, name, &path, err);
    if (status == PNB_OK && (pnb__disk_step_fails() || (unlink(path) != 0 && errno != ENOENT)))
        status = pnb__fail_errno(err, "cannot remove", path);
    pnb__free(path);
    return status;
}

/* Files a journal has, what a killed run left of them included; a stranger's are not touched. */
static bool is_ours(const char *name)
{
    return strcmp(name, "job") == 0 || pnb__starts_with(name, "job.") ||
           pnb__starts_with(name, "part-") || pnb__starts_with(name, "parts.jsonl") ||
           pnb__starts_with(name, "all.");
}

/* Removes everything but `lock`, the list of parts first. */
static pnb_status empty_dir(const pnb__embed_journal *j, pnb_error *err)
{
    pnb_status status = remove_file(j, "parts.jsonl", err);
    DIR *d = status == PNB_OK ? opendir(j->dir) : NULL;
    if (status == PNB_OK && d == NULL)
        return pnb__fail_errno(err, "cannot read the folder", j->dir);
    for (const struct dirent *e; status == PNB_OK && (e = readdir(d)) != NULL;)
        if (is_ours(e->d_name))
            status = remove_file(j, e->d_name, err);
    if (d != NULL)
        closedir(d);
    return status;
}

pnb_status pnb__embed_journal_skip(pnb__embed_journal *j, size_t input, const char *why,
                                   pnb_error *err)
{
    char *copy = pnb__strdup(why);
    if (copy == NULL)
        return pnb__fail_nomem(err, strlen(why));
    pnb_status status = PNB_PUSH(j->skips, j->n_skips, err, (pnb__embed_skip){input, copy});
    if (status != PNB_OK)
        pnb__free(copy);
    return status;
}

static void part_name(size_t number, char name[40])
{
    snprintf(name, 40, "part-%05zu.safetensors", number);
}

static pnb_status remember_part(pnb__embed_journal *j, pnb_error *err)
{
    char name[40];
    char *path = NULL;
    part_name(j->n_parts, name);
    pnb_status status = file_in(j, name, &path, err);
    if (status != PNB_OK)
        return status;
    status = PNB_PUSH(j->parts, j->n_parts, err, path);
    if (status != PNB_OK)
        pnb__free(path);
    return status;
}

/* ---- reading ---- */

/* One line of parts.jsonl. */
typedef struct record {
    json_t *root;
    const json_t *skipped;
    size_t end, n_rows, n_truncated, n_unknown;
    bool has_part;
    uint64_t stamp;
} record;

/* False: not a whole record, or not the next one. */
static bool parse_record(record *r, const pnb__embed_journal *j, size_t n_inputs)
{
    char name[40];
    const json_t *end = json_object_get(r->root, "end"), *rows = json_object_get(r->root, "rows");
    const json_t *cut = json_object_get(r->root, "truncated");
    const char *part = json_string_value(json_object_get(r->root, "part"));
    const char *stamp = json_string_value(json_object_get(r->root, "inputs"));
    char *stop = NULL;
    r->skipped = json_object_get(r->root, "skipped");
    if (!json_is_integer(end) || !json_is_integer(rows) || !json_is_integer(cut) ||
        !json_is_array(r->skipped) || stamp == NULL)
        return false;
    r->end = (size_t)json_integer_value(end);
    r->n_rows = (size_t)json_integer_value(rows);
    r->n_truncated = (size_t)json_integer_value(cut);
    r->n_unknown = (size_t)json_integer_value(json_object_get(r->root, "unknown"));
    r->stamp = strtoull(stamp, &stop, 16);
    r->has_part = part != NULL;
    part_name(j->n_parts, name);
    return *stop == '\0' && r->end > j->n_done && r->end <= n_inputs &&
           r->n_rows <= r->end - j->n_done && r->has_part == (r->n_rows > 0) &&
           (part == NULL || strcmp(part, name) == 0);
}

/* Takes the part of a record up; *whole is false when it is not there or damaged. */
static pnb_status take_part(pnb__embed_journal *j, const record *r, bool *whole, pnb_error *err)
{
    pnb_embeddings *set = NULL;
    pnb_error why = PNB_ERROR_INIT;
    pnb_status status = remember_part(j, err);
    if (status != PNB_OK)
        return status;
    pnb_status loaded = pnb_embeddings_load(&set, j->parts[j->n_parts - 1], &why);
    *whole = loaded == PNB_OK && set->n == r->n_rows;
    pnb_embeddings_free(set);
    if (loaded == PNB_NOMEM)
        return pnb__fail(err, PNB_NOMEM, "%s", why.text);
    if (!*whole)
        pnb__free(j->parts[--j->n_parts]);
    return PNB_OK;
}

static pnb_status take_skips(pnb__embed_journal *j, const json_t *skipped, pnb_error *err)
{
    pnb_status status = PNB_OK;
    const json_t *skip;
    size_t i;
    json_array_foreach(skipped, i, skip)
    {
        const char *why = json_string_value(json_object_get(skip, "why"));
        if (status == PNB_OK && why != NULL)
            status = pnb__embed_journal_skip(
                j, (size_t)json_integer_value(json_object_get(skip, "input")), why, err);
    }
    return status;
}

/* False in *valid: the journal ends before this line. */
static pnb_status read_record(pnb__embed_journal *j, const pnb__embed_job_key *key,
                              const char *line, size_t n, bool *valid, pnb_error *err)
{
    record r = {0};
    pnb_status status = pnb__json_try_bytes(&r.root, line, n, err);
    if (status != PNB_OK)
        return status;
    *valid = parse_record(&r, j, key->n_inputs);
    if (*valid && key->stamp != NULL)
        *valid = key->stamp(key->user, j->n_done, r.end) == r.stamp;
    if (*valid && r.has_part)
        status = take_part(j, &r, valid, err);
    if (*valid && status == PNB_OK)
        status = take_skips(j, r.skipped, err);
    if (*valid && status == PNB_OK) {
        j->n_done = r.end;
        j->n_rows += r.n_rows;
        j->n_truncated += r.n_truncated;
        j->n_unknown += r.n_unknown;
    }
    json_decref(r.root);
    return status;
}

/* New lines go behind the last valid one, not behind what follows it. */
static pnb_status cut_records(const char *path, size_t size, pnb_error *err)
{
    if (pnb__disk_step_fails() || truncate(path, (off_t)size) != 0)
        return pnb__fail_errno(err, "cannot cut", path);
    return PNB_OK;
}

static pnb_status read_records(pnb__embed_journal *j, const pnb__embed_job_key *key, pnb_error *err)
{
    char *path = NULL, *text = NULL;
    size_t size = 0, at = 0;
    bool valid = true;
    pnb_status status = file_in(j, "parts.jsonl", &path, err);
    if (status == PNB_OK && pnb__path_is_file(path))
        status = pnb__read_file(path, (size_t)1 << 31, &text, &size, err);
    while (status == PNB_OK && at < size) {
        const char *end = memchr(text + at, '\n', size - at);
        if (end == NULL)
            break;
        status = read_record(j, key, text + at, (size_t)(end - text) - at, &valid, err);
        if (!valid)
            break;
        at = (size_t)(end - text) + 1;
    }
    if (status == PNB_OK && at < size)
        status = cut_records(path, at, err);
    pnb__free(text);
    pnb__free(path);
    return status;
}

/* True when the folder was left by this very job. */
static bool is_same_job(const char *job_path, const char *signature)
{
    char *text = NULL;
    size_t size = 0;
    if (!pnb__path_is_file(job_path) ||
        pnb__read_file(job_path, 4096, &text, &size, NULL) != PNB_OK)
        return false;
    bool same = size == strlen(signature) && memcmp(text, signature, size) == 0;
    pnb__free(text);
    return same;
}

/* A run that ends removes the folder with the lock that this one may have been waiting for: such a
 * lock belongs to nobody. */
static pnb_status lock_dir(pnb__embed_journal *j, pnb_error *err)
{
    struct stat info = {0};
    char *lock = NULL;
    pnb_status status = file_in(j, "lock", &lock, err);
    for (int i = 0; status == PNB_OK && info.st_nlink == 0 && i < MAX_RETRIES; i++) {
        pnb__lock_close(j->lock_fd);
        j->lock_fd = -1;
        PNB_TRY(pnb__make_dirs(j->dir, err));
        PNB_TRY(pnb__lock_open(&j->lock_fd, lock, err));
        if (fstat(j->lock_fd, &info) != 0)
            status = pnb__fail_errno(err, "cannot examine", lock);
    }
done:
    pnb__free(lock);
    return status;
}

pnb_status pnb__embed_journal_open(pnb__embed_journal *j, const char *out_path,
                                   const pnb__embed_job_key *key, bool *continued, pnb_error *err)
{
    char *job = NULL;
    pnb_status status = PNB_OK;
    *j = (pnb__embed_journal){.lock_fd = -1};
    *continued = false;
    j->dir = pnb__format("%s.journal", out_path);
    if (j->dir == NULL)
        return pnb__fail_nomem(err, strlen(out_path));
    PNB_TRY(file_in(j, "job", &job, err));
    status = lock_dir(j, err);
    if (status == PNB_BUSY)
        pnb__error_prefix(err, "%s is being written by another run", out_path);
    if (status != PNB_OK)
        goto done;
    if (is_same_job(job, key->signature)) {
        PNB_TRY(read_records(j, key, err));
        *continued = j->n_done > 0;
    }
    if (!*continued) {
        PNB_TRY(empty_dir(j, err));
        PNB_TRY(pnb__write_file(job, key->signature, strlen(key->signature), err));
    }
done:
    pnb__free(job);
    return status;
}

/* ---- writing ---- */

/* In two pieces, so that tests can stand in the middle of a line. */
static pnb_status append_line(const pnb__embed_journal *j, const pnb__buf *line, pnb_error *err)
{
    char *path = NULL;
    size_t half = line->size / 2;
    pnb_status status = file_in(j, "parts.jsonl", &path, err);
    FILE *file = status == PNB_OK && !pnb__disk_step_fails() ? fopen(path, "ab") : NULL;
    if (status == PNB_OK &&
        (file == NULL || fwrite(line->data, 1, half, file) != half || fflush(file) != 0 ||
         pnb__disk_step_fails() ||
         fwrite(line->data + half, 1, line->size - half, file) != line->size - half ||
         fflush(file) != 0 || fdatasync(fileno(file)) != 0))
        status = pnb__fail_errno(err, "cannot write", path);
    if (file != NULL)
        fclose(file);
    pnb__free(path);
    return status;
}

/* A reason may quote a name that is not UTF-8. */
static void append_reason(pnb__buf *line, const char *why)
{
    char text[sizeof((pnb_error *)0)->text];
    uint32_t code_point;
    size_t n = 0;
    snprintf(text, sizeof text, "%s", why);
    for (size_t left = strlen(text), step; left > 0; n += step, left -= step) {
        step = pnb__utf8_decode(text + n, left, &code_point);
        if (step == 0) {
            text[n] = '?';
            step = 1;
        }
    }
    pnb__json_append_string(line, text);
}

pnb_status pnb__embed_journal_add(pnb__embed_journal *j, const pnb_embeddings *set,
                                  const pnb__embed_span *span, pnb_error *err)
{
    char name[40];
    pnb__buf line = {0};
    pnb_status status = PNB_OK;
    part_name(j->n_parts, name);
    if (set != NULL) {
        PNB_TRY(remember_part(j, err));
        PNB_TRY(pnb_embeddings_save(set, j->parts[j->n_parts - 1], err));
    }
    pnb__buf_printf(
        &line,
        "{\"end\":%zu,\"rows\":%zu,\"truncated\":%zu,\"unknown\":%zu,\"inputs\":\"%016llx\",",
        span->end, set != NULL ? set->n : 0, span->n_truncated, span->n_unknown,
        (unsigned long long)span->stamp);
    if (set != NULL)
        pnb__buf_printf(&line, "\"part\":\"%s\",", name);
    pnb__buf_puts(&line, "\"skipped\":[");
    bool first = true;
    for (size_t i = 0; i < j->n_skips; i++) {
        if (j->skips[i].input < j->n_done)
            continue;
        pnb__buf_printf(&line, "%s{\"input\":%zu,\"why\":", first ? "" : ",", j->skips[i].input);
        append_reason(&line, j->skips[i].why);
        pnb__buf_putc(&line, '}');
        first = false;
    }
    pnb__buf_puts(&line, "]}\n");
    status = line.failed ? pnb__fail_nomem(err, line.size) : append_line(j, &line, err);
    if (status == PNB_OK) {
        j->n_done = span->end;
        j->n_rows += set != NULL ? set->n : 0;
        j->n_truncated += span->n_truncated;
        j->n_unknown += span->n_unknown;
    }
done:
    pnb__buf_reset(&line);
    return status;
}

void pnb__embed_journal_close(pnb__embed_journal *j, bool remove)
{
    if (j->dir != NULL && j->lock_fd >= 0 && (remove || j->n_done == 0) &&
        empty_dir(j, NULL) == PNB_OK && remove_file(j, "lock", NULL) == PNB_OK &&
        !pnb__disk_step_fails())
        rmdir(j->dir);
    pnb__lock_close(j->lock_fd);
    for (size_t i = 0; i < j->n_parts; i++)
        pnb__free(j->parts[i]);
    for (size_t i = 0; i < j->n_skips; i++)
        pnb__free(j->skips[i].why);
    pnb__free(j->parts);
    pnb__free(j->skips);
    pnb__free(j->dir);
    *j = (pnb__embed_journal){.lock_fd = -1};
}
