/* OUT.journal/: `lock`, `job` (signature of the job), `parts.jsonl`, part-NNNNN.safetensors.
 *
 * A line {"end", "part", "rows", "truncated", "skipped": [{"input", "why"}]} is appended and
 * flushed to disk after its part; a line that a crash cut short does not count, and neither does a
 * part without a line. Joining the parts is the job's business. */
#include "app/embed_journal.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/json.h"

static pnb_status file_in(const pnb__embed_journal *j, const char *name, char **path,
                          pnb_error *err)
{
    *path = pnb__path_join(j->dir, name);
    return *path != NULL ? PNB_OK : pnb__fail_nomem(err, strlen(name));
}

/* Deletes the files of the journal except `lock`. */
static void empty_dir(const char *dir)
{
    DIR *d = opendir(dir);
    if (d == NULL)
        return;
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.' && strcmp(e->d_name, "lock") != 0)
            unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
}

pnb_status pnb__embed_journal_skip(pnb__embed_journal *j, size_t input, const char *why,
                                   pnb_error *err)
{
    pnb__embed_skip *skips = pnb__realloc(j->skips, (j->n_skips + 1) * sizeof *skips);
    char *copy = pnb__strdup(why);
    if (skips != NULL)
        j->skips = skips;
    if (skips == NULL || copy == NULL) {
        pnb__free(copy);
        return pnb__fail_nomem(err, (j->n_skips + 1) * sizeof *skips);
    }
    skips[j->n_skips++] = (pnb__embed_skip){input, copy};
    return PNB_OK;
}

static pnb_status remember_part(pnb__embed_journal *j, const char *name, pnb_error *err)
{
    char **parts = pnb__realloc(j->parts, (j->n_parts + 1) * sizeof *parts);
    if (parts == NULL)
        return pnb__fail_nomem(err, (j->n_parts + 1) * sizeof *parts);
    j->parts = parts;
    pnb_status status = file_in(j, name, &parts[j->n_parts], err);
    j->n_parts += status == PNB_OK;
    return status;
}

/* One line of parts.jsonl. False in *valid: not a whole record, so the journal ends before it. */
static pnb_status read_record(pnb__embed_journal *j, const char *line, size_t n, bool *valid,
                              pnb_error *err)
{
    json_t *record = NULL;
    pnb_status status = pnb__json_try_bytes(&record, line, n, err);
    if (status != PNB_OK)
        return status;
    const char *part = json_string_value(json_object_get(record, "part"));
    const json_t *end = json_object_get(record, "end"), *skip;
    const json_t *skipped = json_object_get(record, "skipped");
    size_t i;
    *valid = json_is_integer(end) && json_is_array(skipped);
    if (*valid && part != NULL) {
        status = remember_part(j, part, err);
        *valid = status == PNB_OK && pnb__path_is_file(j->parts[j->n_parts - 1]);
    }
    if (*valid) {
        j->n_done = (size_t)json_integer_value(end);
        j->n_rows += (size_t)json_integer_value(json_object_get(record, "rows"));
        j->n_truncated += (size_t)json_integer_value(json_object_get(record, "truncated"));
        json_array_foreach(skipped, i, skip)
        {
            const char *why = json_string_value(json_object_get(skip, "why"));
            if (status == PNB_OK && why != NULL)
                status = pnb__embed_journal_skip(
                    j, (size_t)json_integer_value(json_object_get(skip, "input")), why, err);
        }
    }
    json_decref(record);
    return status;
}

static pnb_status read_records(pnb__embed_journal *j, pnb_error *err)
{
    char *path = NULL, *text = NULL;
    size_t size = 0;
    bool valid = true;
    pnb_status status = file_in(j, "parts.jsonl", &path, err);
    if (status == PNB_OK && pnb__path_is_file(path))
        status = pnb__read_file(path, (size_t)1 << 31, &text, &size, err);
    for (size_t at = 0; status == PNB_OK && valid && at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        if (end == NULL)
            break;
        status = read_record(j, text + at, (size_t)(end - text) - at, &valid, err);
        at = (size_t)(end - text) + 1;
    }
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

pnb_status pnb__embed_journal_open(pnb__embed_journal *j, const char *out_path,
                                   const char *signature, bool *continued, pnb_error *err)
{
    char *lock = NULL, *job = NULL;
    pnb_status status = PNB_OK;
    *j = (pnb__embed_journal){.lock_fd = -1};
    *continued = false;
    j->dir = pnb__format("%s.journal", out_path);
    if (j->dir == NULL)
        return pnb__fail_nomem(err, strlen(out_path));
    PNB_TRY(pnb__make_dirs(j->dir, err));
    PNB_TRY(file_in(j, "lock", &lock, err));
    PNB_TRY(file_in(j, "job", &job, err));
    status = pnb__lock_open(&j->lock_fd, lock, err);
    if (status != PNB_OK) {
        pnb__error_prefix(err, "%s is being written by another run", out_path);
        goto done;
    }
    if (is_same_job(job, signature)) {
        PNB_TRY(read_records(j, err));
        *continued = j->n_done > 0;
    }
    if (!*continued) {
        empty_dir(j->dir);
        PNB_TRY(pnb__write_file(job, signature, strlen(signature), err));
    }
done:
    pnb__free(lock);
    pnb__free(job);
    return status;
}

static pnb_status append_line(const pnb__embed_journal *j, const pnb__buf *line, pnb_error *err)
{
    char *path = NULL;
    pnb_status status = file_in(j, "parts.jsonl", &path, err);
    FILE *file = status == PNB_OK ? fopen(path, "ab") : NULL;
    if (status == PNB_OK &&
        (file == NULL || fwrite(line->data, 1, line->size, file) != line->size ||
         fflush(file) != 0 || fdatasync(fileno(file)) != 0))
        status = pnb__fail_errno(err, "cannot write", path);
    if (file != NULL)
        fclose(file);
    pnb__free(path);
    return status;
}

pnb_status pnb__embed_journal_add(pnb__embed_journal *j, const pnb_embeddings *set, size_t end,
                                  size_t n_truncated, pnb_error *err)
{
    char name[40];
    pnb__buf line = {0};
    pnb_status status = PNB_OK;
    snprintf(name, sizeof name, "part-%05zu.safetensors", j->n_parts);
    if (set != NULL) {
        PNB_TRY(remember_part(j, name, err));
        PNB_TRY(pnb_embeddings_save(set, j->parts[j->n_parts - 1], err));
    }
    pnb__buf_printf(&line, "{\"end\":%zu,\"rows\":%zu,\"truncated\":%zu,", end,
                    set != NULL ? set->n : 0, n_truncated);
    if (set != NULL)
        pnb__buf_printf(&line, "\"part\":\"%s\",", name);
    pnb__buf_puts(&line, "\"skipped\":[");
    bool first = true;
    for (size_t i = 0; i < j->n_skips; i++) {
        if (j->skips[i].input < j->n_done)
            continue;
        pnb__buf_printf(&line, "%s{\"input\":%zu,\"why\":", first ? "" : ",", j->skips[i].input);
        pnb__json_append_string(&line, pnb__utf8_valid(j->skips[i].why, strlen(j->skips[i].why))
                                           ? j->skips[i].why
                                           : "unreadable");
        pnb__buf_putc(&line, '}');
        first = false;
    }
    pnb__buf_puts(&line, "]}\n");
    status = line.failed ? pnb__fail_nomem(err, line.size) : append_line(j, &line, err);
    if (status == PNB_OK) {
        j->n_done = end;
        j->n_rows += set != NULL ? set->n : 0;
        j->n_truncated += n_truncated;
    }
done:
    pnb__buf_reset(&line);
    return status;
}

void pnb__embed_journal_close(pnb__embed_journal *j, bool remove)
{
    if (j->dir != NULL && j->lock_fd >= 0 && (remove || j->n_done == 0)) {
        char *lock = pnb__path_join(j->dir, "lock");
        empty_dir(j->dir);
        if (lock != NULL)
            unlink(lock);
        rmdir(j->dir);
        pnb__free(lock);
    }
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
