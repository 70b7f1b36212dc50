/* OUT.journal/: `lock`, `job` (signature of the job), part-BEGIN.safetensors, and a list of parts
 * for each process that writes: parts.jsonl, parts-1.jsonl, ...
 *
 * A line {"begin", "end", "part", "rows", "truncated", "unknown", "inputs", "skipped": [{"input",
 * "why"}]} is appended and flushed to disk after its part; "inputs" is the stamp of the inputs it
 * covers. Read are lines that no crash cut short, whose part is whole, and whose inputs are those
 * that were read; the others are dropped, and where there is one of these, or more than one list,
 * what is left becomes one list before any part is written. Whatever the moment a run is killed at,
 * the next one therefore finds a shorter journal or none. Joining the parts is the job's business.
 */
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

/* parts.jsonl, parts-1.jsonl and what a killed run left of them. */
static bool is_list(const char *name)
{
    return pnb__starts_with(name, "parts.jsonl") || pnb__starts_with(name, "parts-");
}

/* Files a journal has, what a killed run left of them included; a stranger's are not touched. */
static bool is_ours(const char *name)
{
    return strcmp(name, "job") == 0 || pnb__starts_with(name, "job.") ||
           pnb__starts_with(name, "part-") || is_list(name) || pnb__starts_with(name, "all.");
}

/* Removes what is ours and passes `which`. */
static pnb_status remove_files(const pnb__embed_journal *j, bool (*which)(const char *name),
                               pnb_error *err)
{
    pnb_status status = PNB_OK;
    DIR *d = opendir(j->dir);
    if (d == NULL)
        return pnb__fail_errno(err, "cannot read the folder", j->dir);
    for (const struct dirent *e; status == PNB_OK && (e = readdir(d)) != NULL;)
        if (which(e->d_name))
            status = remove_file(j, e->d_name, err);
    closedir(d);
    return status;
}

/* Removes everything but `lock`, the lists of parts first. */
static pnb_status empty_dir(const pnb__embed_journal *j, pnb_error *err)
{
    pnb_status status = remove_files(j, is_list, err);
    return status == PNB_OK ? remove_files(j, is_ours, err) : status;
}

static void reset_skips(pnb__embed_skip *skips, size_t n)
{
    for (size_t i = 0; i < n; i++)
        pnb__free(skips[i].why);
    pnb__free(skips);
}

static void reset_part(pnb__embed_part *part)
{
    reset_skips(part->skips, part->n_skips);
    pnb__free(part->path);
    *part = (pnb__embed_part){0};
}

static pnb_status add_skip(pnb__embed_skip **skips, size_t *n, size_t input, const char *why,
                           pnb_error *err)
{
    char *copy = pnb__strdup(why);
    if (copy == NULL)
        return pnb__fail_nomem(err, strlen(why));
    pnb_status status = PNB_PUSH(*skips, *n, err, (pnb__embed_skip){input, copy});
    if (status != PNB_OK)
        pnb__free(copy);
    return status;
}

pnb_status pnb__embed_journal_skip(pnb__embed_journal *j, size_t input, const char *why,
                                   pnb_error *err)
{
    return add_skip(&j->skips, &j->n_skips, input, why, err);
}

static void part_name(size_t begin, char name[40])
{
    snprintf(name, 40, "part-%05zu.safetensors", begin);
}

static void list_name(size_t writer, char name[40])
{
    if (writer == 0)
        snprintf(name, 40, "parts.jsonl");
    else
        snprintf(name, 40, "parts-%zu.jsonl", writer);
}

static pnb_status part_path(const pnb__embed_journal *j, size_t begin, char **path, pnb_error *err)
{
    char name[40];
    part_name(begin, name);
    return file_in(j, name, path, err);
}

/* Puts a part in its place and takes it; a failure leaves it the caller's. */
static pnb_status insert_part(pnb__embed_journal *j, pnb__embed_part *part, pnb_error *err)
{
    pnb_status status = PNB_PUSH(j->parts, j->n_parts, err, *part);
    if (status != PNB_OK)
        return status;
    size_t at = j->n_parts - 1;
    for (; at > 0 && j->parts[at - 1].begin > part->begin; at--)
        j->parts[at] = j->parts[at - 1];
    j->parts[at] = *part;
    *part = (pnb__embed_part){0};
    return PNB_OK;
}

/* Whether no part covers any of the inputs. */
static bool is_free(const pnb__embed_journal *j, size_t begin, size_t end)
{
    for (size_t i = 0; i < j->n_parts; i++)
        if (begin < j->parts[i].end && j->parts[i].begin < end)
            return false;
    return true;
}

/* ---- reading ---- */

/* What reading a list asks of its lines. */
typedef struct reading {
    pnb__embed_journal *journal;
    const pnb__embed_job_key *key;
    bool is_fresh;    /* written by this job: nothing can have changed since */
    size_t n_dropped; /* lines, or a piece of one */
} reading;

/* False: not a whole record of this job. */
static bool parse_record(pnb__embed_part *p, const json_t *root, const pnb__embed_job_key *key)
{
    char name[40], *stop = NULL;
    const json_t *begin = json_object_get(root, "begin"), *end = json_object_get(root, "end");
    const json_t *rows = json_object_get(root, "rows"), *cut = json_object_get(root, "truncated");
    const char *part = json_string_value(json_object_get(root, "part"));
    const char *stamp = json_string_value(json_object_get(root, "inputs"));
    if (!json_is_integer(begin) || !json_is_integer(end) || !json_is_integer(rows) ||
        !json_is_integer(cut) || !json_is_array(json_object_get(root, "skipped")) || stamp == NULL)
        return false;
    p->begin = (size_t)json_integer_value(begin);
    p->end = (size_t)json_integer_value(end);
    p->n_rows = (size_t)json_integer_value(rows);
    p->n_truncated = (size_t)json_integer_value(cut);
    p->n_unknown = (size_t)json_integer_value(json_object_get(root, "unknown"));
    p->stamp = strtoull(stamp, &stop, 16);
    part_name(p->begin, name);
    return *stop == '\0' && p->begin < p->end && p->end <= key->n_inputs &&
           p->begin % key->batch == 0 && (p->end % key->batch == 0 || p->end == key->n_inputs) &&
           p->n_rows <= p->end - p->begin && (part != NULL) == (p->n_rows > 0) &&
           (part == NULL || strcmp(part, name) == 0);
}

/* Whether the file of a part is there and whole. */
static pnb_status check_part(const pnb__embed_part *p, bool *whole, pnb_error *err)
{
    pnb_embeddings *set = NULL;
    pnb_error why = PNB_ERROR_INIT;
    pnb_status loaded = pnb_embeddings_load(&set, p->path, &why);
    *whole = loaded == PNB_OK && set->n == p->n_rows;
    pnb_embeddings_free(set);
    return loaded == PNB_NOMEM ? pnb__fail(err, PNB_NOMEM, "%s", why.text) : PNB_OK;
}

static pnb_status take_skips(pnb__embed_part *p, const json_t *skipped, pnb_error *err)
{
    pnb_status status = PNB_OK;
    const json_t *skip;
    size_t i;
    json_array_foreach(skipped, i, skip)
    {
        const char *why = json_string_value(json_object_get(skip, "why"));
        json_int_t input = json_integer_value(json_object_get(skip, "input"));
        if (status == PNB_OK && why != NULL && input >= 0 && (size_t)input >= p->begin &&
            (size_t)input < p->end)
            status = add_skip(&p->skips, &p->n_skips, (size_t)input, why, err);
    }
    return status;
}

/* A line that says nothing that holds now is dropped. */
static pnb_status read_record(reading *r, const char *line, size_t n, pnb_error *err)
{
    json_t *root = NULL;
    pnb__embed_part part = {0};
    pnb__embed_journal *j = r->journal;
    const pnb__embed_job_key *key = r->key;
    pnb_status status = pnb__json_try_bytes(&root, line, n, err);
    if (status != PNB_OK)
        return status;
    bool valid = parse_record(&part, root, key) && is_free(j, part.begin, part.end);
    if (valid && key->stamp != NULL && !r->is_fresh)
        valid = key->stamp(key->user, part.begin, part.end) == part.stamp;
    if (valid && part.n_rows > 0)
        PNB_TRY(part_path(j, part.begin, &part.path, err));
    if (valid && part.n_rows > 0 && !r->is_fresh)
        PNB_TRY(check_part(&part, &valid, err));
    r->n_dropped += !valid;
    if (!valid)
        goto done;
    PNB_TRY(take_skips(&part, json_object_get(root, "skipped"), err));
    status = insert_part(j, &part, err);
done:
    reset_part(&part);
    json_decref(root);
    return status;
}

static pnb_status read_list(reading *r, const char *name, pnb_error *err)
{
    char *path = NULL, *text = NULL;
    size_t size = 0, at = 0;
    pnb_status status = file_in(r->journal, name, &path, err);
    if (status == PNB_OK && pnb__path_is_file(path))
        status = pnb__read_file(path, (size_t)1 << 31, &text, &size, err);
    while (status == PNB_OK && at < size) {
        const char *end = memchr(text + at, '\n', size - at);
        if (end == NULL)
            break;
        status = read_record(r, text + at, (size_t)(end - text) - at, err);
        at = (size_t)(end - text) + 1;
    }
    r->n_dropped += at < size;
    pnb__free(text);
    pnb__free(path);
    return status;
}

/* parts.jsonl and the lists of other writers, of whom there may have been any number. */
static pnb_status read_lists(reading *r, size_t *n_lists, pnb_error *err)
{
    pnb_status status = PNB_OK;
    DIR *d = opendir(r->journal->dir);
    if (d == NULL)
        return pnb__fail_errno(err, "cannot read the folder", r->journal->dir);
    for (const struct dirent *e; status == PNB_OK && (e = readdir(d)) != NULL;)
        if (is_list(e->d_name) && pnb__ends_with(e->d_name, ".jsonl")) {
            status = read_list(r, e->d_name, err);
            *n_lists += 1;
        }
    closedir(d);
    return status;
}

/* Drops what follows the first gap. */
static void cut_at_gap(pnb__embed_journal *j, size_t *n_dropped)
{
    size_t n = 0;
    while (n < j->n_parts && j->parts[n].begin == (n > 0 ? j->parts[n - 1].end : 0))
        n++;
    *n_dropped += j->n_parts - n;
    while (j->n_parts > n)
        reset_part(&j->parts[--j->n_parts]);
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

/* ---- lines ---- */

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

static void append_record(pnb__buf *line, const pnb__embed_part *p, const pnb__embed_skip *skips,
                          size_t n_skips)
{
    char name[40];
    part_name(p->begin, name);
    pnb__buf_printf(line,
                    "{\"begin\":%zu,\"end\":%zu,\"rows\":%zu,\"truncated\":%zu,\"unknown\":%zu,"
                    "\"inputs\":\"%016llx\",",
                    p->begin, p->end, p->n_rows, p->n_truncated, p->n_unknown,
                    (unsigned long long)p->stamp);
    if (p->n_rows > 0)
        pnb__buf_printf(line, "\"part\":\"%s\",", name);
    pnb__buf_puts(line, "\"skipped\":[");
    for (size_t i = 0; i < n_skips; i++) {
        pnb__buf_printf(line, "%s{\"input\":%zu,\"why\":", i > 0 ? "," : "", skips[i].input);
        append_reason(line, skips[i].why);
        pnb__buf_putc(line, '}');
    }
    pnb__buf_puts(line, "]}\n");
}

static bool is_other_list(const char *name)
{
    return is_list(name) && strcmp(name, "parts.jsonl") != 0;
}

/* ---- opening ---- */

/* All parts in one list: what was dropped must not come back when its inputs are embedded again. */
static pnb_status rewrite_lists(const pnb__embed_journal *j, pnb_error *err)
{
    pnb__buf lines = {0};
    char *path = NULL;
    pnb_status status;
    for (size_t i = 0; i < j->n_parts; i++)
        append_record(&lines, &j->parts[i], j->parts[i].skips, j->parts[i].n_skips);
    PNB_TRY(pnb__buf_check(&lines, err));
    PNB_TRY(file_in(j, "parts.jsonl", &path, err));
    PNB_TRY(pnb__write_file(path, lines.data, lines.size, err));
    status = remove_files(j, is_other_list, err);
done:
    pnb__buf_reset(&lines);
    pnb__free(path);
    return status;
}

static pnb_status take_up(pnb__embed_journal *j, const pnb__embed_job_key *key, pnb_error *err)
{
    reading r = {.journal = j, .key = key};
    size_t n_lists = 0;
    pnb_status status = read_lists(&r, &n_lists, err);
    if (status == PNB_OK && key->in_order)
        cut_at_gap(j, &r.n_dropped);
    if (status == PNB_OK && j->n_parts > 0 && (n_lists > 1 || r.n_dropped > 0))
        status = rewrite_lists(j, err);
    return status;
}

pnb_status pnb__embed_journal_open(pnb__embed_journal *j, const char *out_path,
                                   const pnb__embed_job_key *key, pnb_error *err)
{
    char *job = NULL;
    pnb_status status = pnb__embed_journal_join(j, out_path, 0, err);
    if (status != PNB_OK)
        return status;
    PNB_TRY(file_in(j, "job", &job, err));
    status = lock_dir(j, err);
    if (status == PNB_BUSY)
        pnb__error_prefix(err, "%s is being written by another run", out_path);
    if (status != PNB_OK)
        goto done;
    if (is_same_job(job, key->signature))
        PNB_TRY(take_up(j, key, err));
    if (j->n_parts == 0) {
        PNB_TRY(empty_dir(j, err));
        PNB_TRY(pnb__write_file(job, key->signature, strlen(key->signature), err));
    }
done:
    pnb__free(job);
    return status;
}

pnb_status pnb__embed_journal_join(pnb__embed_journal *j, const char *out_path, size_t writer,
                                   pnb_error *err)
{
    *j = (pnb__embed_journal){.lock_fd = -1, .writer = writer};
    j->dir = pnb__format("%s.journal", out_path);
    if (j->dir == NULL)
        return pnb__fail_nomem(err, strlen(out_path));
    if (writer > 0 && !pnb__path_is_dir(j->dir))
        return pnb__fail(err, PNB_NOT_FOUND,
                         "%s, which rank 0 has made, is not there: all processes must see that "
                         "folder under its name",
                         j->dir);
    return PNB_OK;
}

pnb_status pnb__embed_journal_collect(pnb__embed_journal *j, const pnb__embed_job_key *key,
                                      size_t n_writers, pnb_error *err)
{
    reading r = {.journal = j, .key = key, .is_fresh = true};
    pnb_status status = PNB_OK;
    for (size_t w = 1; w < n_writers && status == PNB_OK; w++) {
        char name[40];
        list_name(w, name);
        status = read_list(&r, name, err);
    }
    return status;
}

/* ---- writing ---- */

/* In two pieces, so that tests can stand in the middle of a line. */
static pnb_status append_line(const pnb__embed_journal *j, const pnb__buf *line, pnb_error *err)
{
    char name[40], *path = NULL;
    size_t half = line->size / 2;
    list_name(j->writer, name);
    pnb_status status = file_in(j, name, &path, err);
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

pnb_status pnb__embed_journal_add(pnb__embed_journal *j, const pnb_embeddings *set,
                                  const pnb__embed_part *what, pnb_error *err)
{
    pnb__embed_part part = {.begin = what->begin,
                            .end = what->end,
                            .n_rows = set != NULL ? set->n : 0,
                            .n_truncated = what->n_truncated,
                            .n_unknown = what->n_unknown,
                            .stamp = what->stamp};
    pnb__buf line = {0};
    pnb_status status = PNB_OK;
    if (set != NULL) {
        PNB_TRY(part_path(j, part.begin, &part.path, err));
        PNB_TRY(pnb_embeddings_save(set, part.path, err));
    }
    append_record(&line, &part, j->skips, j->n_skips);
    PNB_TRY(pnb__buf_check(&line, err));
    PNB_TRY(append_line(j, &line, err));
    part.skips = j->skips;
    part.n_skips = j->n_skips;
    j->skips = NULL;
    j->n_skips = 0;
    status = insert_part(j, &part, err);
done:
    reset_part(&part);
    pnb__buf_reset(&line);
    return status;
}

/* Whether any writer has finished a part. */
static bool has_list(const pnb__embed_journal *j)
{
    bool found = false;
    DIR *d = opendir(j->dir);
    for (const struct dirent *e; d != NULL && !found && (e = readdir(d)) != NULL;)
        found = is_list(e->d_name);
    if (d != NULL)
        closedir(d);
    return found;
}

void pnb__embed_journal_close(pnb__embed_journal *j, bool remove)
{
    if (j->dir != NULL && j->lock_fd >= 0 && (remove || !has_list(j)) &&
        empty_dir(j, NULL) == PNB_OK && remove_file(j, "lock", NULL) == PNB_OK &&
        !pnb__disk_step_fails())
        rmdir(j->dir);
    pnb__lock_close(j->lock_fd);
    for (size_t i = 0; i < j->n_parts; i++)
        reset_part(&j->parts[i]);
    reset_skips(j->skips, j->n_skips);
    pnb__free(j->parts);
    pnb__free(j->dir);
    *j = (pnb__embed_journal){.lock_fd = -1};
}
