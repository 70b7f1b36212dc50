/* From the text of --train-data to a list of files and folders: sources joined by "::", brace
 * ranges {00000..00012} (the width of the first number is kept) and lists {a,b}, then shell globs.
 */
#include <dirent.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/order.h"
#include "data/sources/dataset_internal.h"

enum { MAX_PATHS = 1000000, MAX_BRACES = 8 };

void pnb__paths_free(pnb__paths *p)
{
    for (size_t i = 0; i < p->n; i++)
        pnb__free(p->items[i]);
    pnb__free(p->items);
    *p = (pnb__paths){0};
}

pnb_status pnb__paths_add(pnb__paths *p, const char *path, size_t n, pnb_error *err)
{
    if (p->n >= MAX_PATHS)
        return pnb__fail(err, PNB_LIMIT, "the list of files is longer than %d", (int)MAX_PATHS);
    char *copy = pnb__strndup(path, n);
    if (!copy)
        return pnb__fail_nomem(err, n);
    pnb_status status = PNB_PUSH(p->items, p->n, err, copy);
    if (status != PNB_OK)
        pnb__free(copy);
    return status;
}

void pnb__paths_sort(pnb__paths *p, size_t first)
{
    if (p->n > first)
        qsort(p->items + first, p->n - first, sizeof *p->items, pnb__compare_texts);
}

pnb_status pnb__list_dir(pnb__paths *out, const char *dir, pnb_error *err)
{
    pnb_status status = PNB_OK;
    size_t first = out->n;
    DIR *d = opendir(dir);
    if (!d)
        return pnb__fail_errno(err, "cannot read the folder", dir);
    for (struct dirent *e; status == PNB_OK && (e = readdir(d)) != NULL;)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            status = pnb__paths_add(out, e->d_name, strlen(e->d_name), err);
    closedir(d);
    pnb__paths_sort(out, first);
    return status;
}

static pnb_status expand_glob(pnb__paths *out, const char *pattern, pnb_error *err)
{
    glob_t found;
    pnb_status status = PNB_OK;
    if (!strpbrk(pattern, "*?["))
        return pnb__paths_add(out, pattern, strlen(pattern), err);
    int code = glob(pattern, 0, NULL, &found);
    if (code == GLOB_NOMATCH)
        return pnb__fail(err, PNB_NOT_FOUND, "%s: no file matches this pattern", pattern);
    if (code != 0)
        return pnb__fail(err, code == GLOB_NOSPACE ? PNB_NOMEM : PNB_IO,
                         "%s: the pattern could not be searched", pattern);
    for (size_t i = 0; status == PNB_OK && i < found.gl_pathc; i++)
        status = pnb__paths_add(out, found.gl_pathv[i], strlen(found.gl_pathv[i]), err);
    globfree(&found);
    return status;
}

static pnb_status expand_braces(pnb__paths *out, const char *text, int depth, pnb_error *err);

/* prefix + middle + suffix, expanded further. */
static pnb_status expand_joined(pnb__paths *out, const char *text, size_t n_prefix,
                                const char *middle, size_t n_middle, const char *suffix, int depth,
                                pnb_error *err)
{
    pnb__buf b = {0};
    pnb__buf_append(&b, text, n_prefix);
    pnb__buf_append(&b, middle, n_middle);
    pnb__buf_puts(&b, suffix);
    pnb_status status = b.failed || !b.data ? pnb__fail_nomem(err, n_prefix + n_middle)
                                            : expand_braces(out, b.data, depth + 1, err);
    pnb__buf_reset(&b);
    return status;
}

/* "{first..last}" with open and close the positions of the braces. */
static pnb_status expand_range(pnb__paths *out, const char *text, const char *open,
                               const char *close, int depth, pnb_error *err)
{
    char *end;
    const char *dots = strstr(open, "..");
    long long first = strtoll(open + 1, &end, 10);
    int width = (int)(dots - open - 1);
    if (end != dots || width < 1 || width > 18 || close - dots < 3 || close - dots > 20)
        return pnb__fail(err, PNB_ARG, "%s: a brace range must look like {00000..00012}", text);
    long long last = strtoll(dots + 2, &end, 10);
    if (end != close || first < 0 || last < first || last - first >= MAX_PATHS)
        return pnb__fail(err, PNB_ARG,
                         "%s: a brace range must go up from a number >= 0, by less than %d", text,
                         (int)MAX_PATHS);
    pnb_status status = PNB_OK;
    for (long long i = first; status == PNB_OK && i <= last; i++) {
        char number[32];
        int n = snprintf(number, sizeof number, "%0*lld", width, i);
        status = expand_joined(out, text, (size_t)(open - text), number, (size_t)n, close + 1,
                               depth, err);
    }
    return status;
}

static pnb_status expand_braces(pnb__paths *out, const char *text, int depth, pnb_error *err)
{
    const char *open = strchr(text, '{');
    const char *close = open ? strchr(open, '}') : NULL;
    if (!open)
        return expand_glob(out, text, err);
    if (!close || depth > MAX_BRACES)
        return pnb__fail(err, PNB_ARG, "%s: %s", text,
                         close ? "too many braces" : "a brace is not closed");
    const char *dots = strstr(open, ".."), *comma = strchr(open, ',');
    if (dots && dots < close && !(comma && comma < close))
        return expand_range(out, text, open, close, depth, err);
    pnb_status status = PNB_OK;
    for (const char *p = open + 1; status == PNB_OK && p <= close;) {
        size_t n = strcspn(p, ",}");
        status = expand_joined(out, text, (size_t)(open - text), p, n, close + 1, depth, err);
        p += n + 1;
    }
    return status;
}

/* Braces and globs are of the path; settings behind it go with each path that it stands for. */
static pnb_status expand_source(pnb__paths *out, const char *source, pnb_error *err)
{
    size_t head = pnb__spec_head(source), first = out->n;
    char *path = pnb__strndup(source, head);
    if (path == NULL)
        return pnb__fail_nomem(err, head);
    pnb_status status = expand_braces(out, path, 0, err);
    pnb__free(path);
    for (size_t i = first; i < out->n && source[head] != 0 && status == PNB_OK; i++) {
        char *full = pnb__format("%s%s", out->items[i], source + head);
        if (full == NULL)
            return pnb__fail_nomem(err, strlen(source));
        pnb__free(out->items[i]);
        out->items[i] = full;
    }
    return status;
}

pnb_status pnb__spec_expand(pnb__paths *out, const char *spec, pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (const char *p = spec; status == PNB_OK;) {
        const char *next = strstr(p, "::");
        size_t n = next ? (size_t)(next - p) : strlen(p);
        char *part = pnb__strndup(p, n);
        if (!part)
            return pnb__fail_nomem(err, n);
        if (n == 0)
            status = pnb__fail(err, PNB_ARG, "\"%s\": a source is empty", spec);
        else if (pnb__starts_with(part, "pipe:"))
            status = pnb__fail(err, PNB_UNSUPPORTED,
                               "%s: commands are not run as data sources; copy the shards to files",
                               part);
        else if (strstr(part, "://") != NULL)
            status = pnb__fail(err, PNB_NOT_FOUND,
                               "%s: this is a URL, and nothing is downloaded here: fetch the files "
                               "first (curl -O, or img2dataset for a list of pictures) and give "
                               "their paths",
                               part);
        else
            status = expand_source(out, part, err);
        pnb__free(part);
        if (!next)
            break;
        p = next + 2;
    }
    return status;
}
