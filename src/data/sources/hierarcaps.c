/* Reads a file of caption hierarchies, as HierarCaps is distributed: csv with a header row, an id,
 * captions joined by "=>" from the most general to the most specific, the picture's url.
 *
 * Columns are taken by place, because their names differ between copies of the file. The number of
 * levels comes from the first row and holds for all: a traversal is scored level by level. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/order.h"
#include "io/tables/csv.h"
#include "penumbra/hierarcaps.h"

enum { MAX_LEVELS = 64 };

typedef struct reader {
    const char *path;
    pnb_hierarcaps *h;
} reader;

void pnb_hierarcaps_free(pnb_hierarcaps *h)
{
    if (h == NULL)
        return;
    for (size_t i = 0; i < h->n; i++) {
        pnb__free(h->id[i]);
        pnb__free(h->url[i]);
        for (size_t l = 0; l < h->n_levels; l++)
            pnb__free(h->text[i * h->n_levels + l]);
    }
    pnb__free(h->id);
    pnb__free(h->url);
    pnb__free(h->text);
    pnb__free(h);
}

/* Room for another row, its texts NULL; `n` already counts it, so that freeing finds them. */
static pnb_status add_row(reader *r, pnb_error *err)
{
    pnb_hierarcaps *h = r->h;
    pnb_status status = PNB_OK;
    PNB_TRY(pnb__grow_one(&h->id, h->n, sizeof *h->id, err));
    PNB_TRY(pnb__grow_one(&h->url, h->n, sizeof *h->url, err));
    PNB_TRY(pnb__grow_one(&h->text, h->n, h->n_levels * sizeof *h->text, err));
    h->id[h->n] = h->url[h->n] = NULL;
    for (size_t l = 0; l < h->n_levels; l++)
        h->text[h->n * h->n_levels + l] = NULL;
    h->n++;
done:
    return status;
}

static size_t count_levels(const char *joined)
{
    size_t n = 1;
    for (const char *at = strstr(joined, "=>"); at != NULL; at = strstr(at + 2, "=>"))
        n++;
    return n;
}

static char *trimmed(const char *text, size_t n)
{
    text = pnb__trimmed(text, n, &n);
    return pnb__strndup(text, n);
}

static pnb_status check_levels(const reader *r, const char *joined, size_t line, pnb_error *err)
{
    size_t n = count_levels(joined);
    if (!pnb__utf8_valid(joined, strlen(joined)))
        return pnb__fail(err, PNB_FORMAT, "%s line %zu: the captions are not UTF-8", r->path, line);
    if (n < 2)
        return pnb__fail(err, PNB_FORMAT,
                         "%s line %zu: no \"=>\" in \"%.60s\"; the second column holds captions "
                         "joined by \"=>\", general to specific",
                         r->path, line, joined);
    if (n > MAX_LEVELS)
        return pnb__fail(err, PNB_FORMAT, "%s line %zu: %zu levels; at most %d are read", r->path,
                         line, n, MAX_LEVELS);
    if (r->h->n_levels != 0 && n != r->h->n_levels)
        return pnb__fail(err, PNB_FORMAT,
                         "%s line %zu: %zu levels, the rows before have %zu; every row needs the "
                         "same number",
                         r->path, line, n, r->h->n_levels);
    return PNB_OK;
}

static pnb_status split_texts(const reader *r, const char *joined, size_t line, pnb_error *err)
{
    pnb_hierarcaps *h = r->h;
    char **text = h->text + (h->n - 1) * h->n_levels;
    for (size_t l = 0; l < h->n_levels; l++) {
        const char *end = strstr(joined, "=>");
        size_t n = end != NULL ? (size_t)(end - joined) : strlen(joined);
        text[l] = trimmed(joined, n);
        if (text[l] == NULL)
            return pnb__fail_nomem(err, n);
        if (text[l][0] == '\0')
            return pnb__fail(err, PNB_FORMAT, "%s line %zu: the caption of level %zu is empty",
                             r->path, line, l);
        joined += n + 2;
    }
    return PNB_OK;
}

static pnb_status read_row(reader *r, const pnb__csv *csv, size_t line, pnb_error *err)
{
    pnb_status status = PNB_OK;
    const char *joined = csv->fields[1];
    PNB_TRY(check_levels(r, joined, line, err));
    r->h->n_levels = count_levels(joined);
    PNB_TRY(add_row(r, err));
    size_t row = r->h->n - 1;
    r->h->id[row] = trimmed(csv->fields[0], strlen(csv->fields[0]));
    r->h->url[row] = trimmed(csv->fields[2], strlen(csv->fields[2]));
    if (r->h->id[row] == NULL || r->h->url[row] == NULL)
        return pnb__fail_nomem(err, strlen(csv->fields[0]));
    status = split_texts(r, joined, line, err);
done:
    return status;
}

static pnb_status check_unique(const reader *r, pnb_error *err)
{
    size_t n = r->h->n;
    char **sorted = pnb__alloc_array(n, sizeof *sorted);
    pnb_status status = PNB_OK;
    if (sorted == NULL)
        return pnb__fail_nomem(err, n * sizeof *sorted);
    memcpy(sorted, r->h->id, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, pnb__compare_texts);
    for (size_t i = 1; i < n && status == PNB_OK; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            status = pnb__fail(err, PNB_ARG, "%s: the id '%s' occurs twice; ids must be unique",
                               r->path, sorted[i]);
    pnb__free(sorted);
    return status;
}

pnb_status pnb_hierarcaps_load(pnb_hierarcaps **out, const char *path, pnb_error *err)
{
    pnb_status status = PNB_OK;
    pnb__csv csv = {0};
    bool more = true;
    reader r = {.path = path, .h = pnb__alloc_zero(1, sizeof(pnb_hierarcaps))};
    *out = NULL;
    if (r.h == NULL)
        return pnb__fail_nomem(err, sizeof *r.h);
    PNB_TRY(pnb__csv_open(&csv, path, ',', err));
    if (csv.n_columns < 3)
        PNB_TRY(pnb__fail(err, PNB_FORMAT,
                          "%s: %zu columns; id, captions joined by \"=>\" and image_url are wanted",
                          path, csv.n_columns));
    for (;;) {
        size_t line = csv.line;
        PNB_TRY(pnb__csv_next(&csv, &more, err));
        if (!more)
            break;
        PNB_TRY(read_row(&r, &csv, line, err));
    }
    if (r.h->n == 0)
        PNB_TRY(pnb__fail(err, PNB_ARG, "%s: no row behind the header", path));
    PNB_TRY(check_unique(&r, err));
    *out = r.h;
    r.h = NULL;
done:
    pnb__csv_close(&csv);
    pnb_hierarcaps_free(r.h);
    return status;
}
