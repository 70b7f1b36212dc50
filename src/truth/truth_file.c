/* Reads a pairs file: query TAB item, one pair a line.
 *
 * The first pair decides whether the columns are ids or row numbers; a file that then changes its
 * mind is refused instead of guessed at. Ids are found by binary search in sorted lists, which also
 * shows duplicates: an id that names two rows cannot be evaluated.
 *
 * Rows that were embedded sample by sample are called "KEY#k" and carry the id of their caption as
 * "caption_id". A file that speaks of those ids means every row of the caption: pictures that share
 * it have a row each, and all are right for each of them. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/grow.h"
#include "base/order.h"
#include "io/foreign.h"
#include "io/json/json.h"
#include "penumbra/truth.h"
#include "truth/ground_truth.h"

#define MAX_TRUTH_BYTES ((size_t)1 << 30)
#define MOST_PAIRS ((size_t)1 << 26) /* a GiB of them */

typedef struct side {
    const char *what; /* "query", "item" */
    pnb__named *sorted;
    size_t n;
    char **names;   /* [n] its own, NULL: those of the caller */
    bool is_shared; /* a name may be that of several rows, and means them all */
} side;

typedef struct reader {
    const char *path;
    side query, item;
    side texts; /* rows by their "caption_id", where they have any */
    bool by_id;
    bool has_stranger; /* reading ended at a name or a number of no row */
    int64_t *pairs;
    size_t n_pairs;
} reader;

static pnb_status init_side(side *s, const char *what, const char *const *ids, size_t n,
                            pnb_error *err)
{
    *s = (side){.what = what, .n = n};
    if (ids == NULL)
        return PNB_OK;
    if (PNB_ALLOC(s->sorted, PNB_MAX(n, 1), err) != PNB_OK)
        return PNB_NOMEM;
    for (size_t i = 0; i < n; i++)
        s->sorted[i] = (pnb__named){ids[i] == NULL ? "" : ids[i], i};
    qsort(s->sorted, n, sizeof *s->sorted, pnb__by_name);
    return PNB_OK;
}

static void reset_side(side *s)
{
    for (size_t i = 0; s->names != NULL && i < s->n; i++)
        pnb__free(s->names[i]);
    pnb__free(s->names);
    pnb__free(s->sorted);
    *s = (side){0};
}

/* The text of "caption_id" in a row's further fields, to be freed; NULL: it has none. */
static pnb_status text_id(const char *extra, char **out, pnb_error *err)
{
    json_t *root = NULL;
    *out = NULL;
    if (extra == NULL || strstr(extra, "\"caption_id\"") == NULL)
        return PNB_OK;
    pnb_status status = pnb__json_try_bytes(&root, extra, strlen(extra), err);
    const json_t *id = json_object_get(root, "caption_id");
    if (json_is_string(id))
        *out = pnb__strdup(json_string_value(id));
    else if (json_is_integer(id))
        *out = pnb__format("%lld", (long long)json_integer_value(id));
    bool is_there = json_is_string(id) || json_is_integer(id);
    json_decref(root);
    return status == PNB_OK && is_there && *out == NULL ? pnb__fail_nomem(err, 64) : status;
}

/* Nothing where no row has one. */
static pnb_status init_texts(side *s, const pnb_truth_rows *rows, pnb_error *err)
{
    pnb_status status = PNB_OK;
    size_t n_named = 0;
    *s = (side){.what = "item", .n = rows->n, .is_shared = true};
    if (rows->extras == NULL)
        return PNB_OK;
    PNB_TRY(PNB_ALLOC_ZERO(s->names, PNB_MAX(rows->n, 1), err));
    for (size_t i = 0; i < rows->n; i++) {
        PNB_TRY(text_id(rows->extras[i], &s->names[i], err));
        n_named += s->names[i] != NULL;
    }
    if (n_named == 0)
        goto done;
    PNB_TRY(PNB_ALLOC(s->sorted, rows->n, err));
    for (size_t i = 0; i < rows->n; i++)
        s->sorted[i] = (pnb__named){s->names[i] == NULL ? "" : s->names[i], i};
    qsort(s->sorted, rows->n, sizeof *s->sorted, pnb__by_name);
done:
    return status;
}

static pnb_status check_unique(const side *s, pnb_error *err)
{
    for (size_t i = 1; s->sorted != NULL && !s->is_shared && i < s->n; i++)
        if (s->sorted[i].name[0] != '\0' && strcmp(s->sorted[i - 1].name, s->sorted[i].name) == 0)
            return pnb__fail(err, PNB_ARG,
                             "%s id '%s' names rows %zu and %zu; ids must be unique to be used in "
                             "a truth file",
                             s->what, s->sorted[i].name, s->sorted[i - 1].place,
                             s->sorted[i].place);
    return PNB_OK;
}

static int64_t find_id(const side *s, const char *id)
{
    size_t place =
        s->sorted != NULL && id[0] != '\0' ? pnb__names_find(s->sorted, s->n, id) : SIZE_MAX;
    return place != SIZE_MAX ? (int64_t)place : -1;
}

/* A row number, or -1 for anything but up to 18 digits. */
static int64_t parse_row(const char *text)
{
    int64_t row = 0;
    size_t n = strlen(text);
    if (n == 0 || n > 18)
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (!isdigit((unsigned char)text[i]))
            return -1;
        row = 10 * row + (text[i] - '0');
    }
    return row;
}

static pnb_status resolve(reader *r, const side *s, const char *text, size_t line, int64_t *row,
                          pnb_error *err)
{
    r->has_stranger = true;
    if (r->by_id) {
        *row = find_id(s, text);
        if (*row < 0)
            return pnb__fail(
                err, PNB_NOT_FOUND,
                "%s line %zu: '%s' is not an id of the %zu %s rows: give the truth that "
                "belongs to both sets, or embed all that it speaks of",
                r->path, line, text, s->n, s->what);
        r->has_stranger = false;
        return PNB_OK;
    }
    *row = parse_row(text);
    if (*row < 0)
        return pnb__fail(err, PNB_FORMAT,
                         "%s line %zu: '%s' is not a row number, and the first pair of the file is "
                         "not made of known ids either; a header line must start with '#'",
                         r->path, line, text);
    if ((size_t)*row >= s->n)
        return pnb__fail(err, PNB_ARG, "%s line %zu: %s row %s, but there are %zu, counted from 0",
                         r->path, line, s->what, text, s->n);
    r->has_stranger = false;
    return PNB_OK;
}

static pnb_status add_pair(reader *r, const int64_t pair[2], pnb_error *err)
{
    if (r->n_pairs >= MOST_PAIRS)
        return pnb__fail(err, PNB_LIMIT, "%s: more than %zu pairs of rows%s", r->path, MOST_PAIRS,
                         r->item.is_shared
                             ? ", for each caption stands in many rows; embed the "
                               "captions.jsonl of the data set, where each stands once"
                             : "");
    pnb_status status = pnb__grow_one(&r->pairs, r->n_pairs, 2 * sizeof *r->pairs, err);
    if (status != PNB_OK)
        return status;
    r->pairs[2 * r->n_pairs] = pair[0];
    r->pairs[2 * r->n_pairs + 1] = pair[1];
    r->n_pairs++;
    return PNB_OK;
}

/* The pairs of a query with every row of that name. */
static pnb_status add_shared(reader *r, int64_t query, const char *name, pnb_error *err)
{
    const pnb__named *sorted = r->item.sorted;
    size_t low = 0, high = r->item.n;
    pnb_status status = PNB_OK;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(sorted[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; status == PNB_OK && low < r->item.n && strcmp(sorted[low].name, name) == 0; low++)
        status = add_pair(r, (const int64_t[2]){query, (int64_t)sorted[low].place}, err);
    return status;
}

/* What the file calls the rows, by its first pair. */
static pnb_status choose_names(reader *r, const char *query, const char *item, pnb_error *err)
{
    pnb_status status = PNB_OK;
    bool query_fits = find_id(&r->query, query) >= 0;
    r->by_id = query_fits && find_id(&r->item, item) >= 0;
    if (query_fits && !r->by_id && find_id(&r->texts, item) >= 0) {
        side ids = r->item;
        r->item = r->texts;
        r->texts = ids;
        r->by_id = true;
    }
    if (r->by_id)
        PNB_TRY(check_unique(&r->query, err));
    if (r->by_id)
        PNB_TRY(check_unique(&r->item, err));
done:
    return status;
}

/* One line, already terminated; splits it in place. */
static pnb_status read_line(reader *r, char *text, size_t line, pnb_error *err)
{
    if (text[0] == '\0' || text[0] == '#')
        return PNB_OK;
    char *second = strchr(text, '\t');
    if (second == NULL)
        return pnb__fail(err, PNB_FORMAT, "%s line %zu: no tab; a pair is query, tab, item",
                         r->path, line);
    *second++ = '\0';
    if (strchr(second, '\t') != NULL)
        return pnb__fail(err, PNB_FORMAT,
                         "%s line %zu: there is a third column; a pair is query, tab, item",
                         r->path, line);
    pnb_status status = PNB_OK;
    if (r->n_pairs == 0)
        PNB_TRY(choose_names(r, text, second, err));
    int64_t pair[2];
    PNB_TRY(resolve(r, &r->query, text, line, &pair[0], err));
    PNB_TRY(resolve(r, &r->item, second, line, &pair[1], err));
    status = r->item.is_shared ? add_shared(r, pair[0], second, err) : add_pair(r, pair, err);
done:
    return status;
}

static pnb_status read_lines(reader *r, char *data, size_t size, pnb_error *err)
{
    pnb__line_reader lines = {.at = data, .end = data + size, .path = r->path};
    pnb_status status;
    for (char *line;;) {
        PNB_TRY(pnb__line_next(&lines, &line, err));
        if (line == NULL)
            break;
        PNB_TRY(read_line(r, line, lines.number, err));
    }
    if (r->n_pairs == 0)
        status = pnb__fail(err, PNB_ARG,
                           "%s: holds no pairs; one a line is needed, query, tab, item", r->path);
done:
    return status;
}

/* ---- a file that speaks of other rows ---- */

static const char *example_of(const side *s)
{
    for (size_t i = 0; s->sorted != NULL && i < s->n; i++)
        if (s->sorted[i].name[0] != '\0')
            return s->sorted[i].name;
    return "0";
}

/* Whether a name is an id of a side, or the number of a row. */
static bool fits(const side *s, const char *text)
{
    int64_t row = parse_row(text);
    return find_id(s, text) >= 0 || (row >= 0 && (size_t)row < s->n);
}

/* Before the first name that fits no row: how many pairs do fit, when they are less than half.
 * The file is read anew, for its lines were cut. */
static void say_other_split(const reader *r, pnb_error *err)
{
    pnb_error own = PNB_ERROR_INIT;
    char *data = NULL, *line, first[2][64] = {"", ""};
    size_t size = 0, n = 0, n_fit = 0;
    if (pnb__read_file(r->path, MAX_TRUTH_BYTES, &data, &size, &own) != PNB_OK)
        return;
    pnb__line_reader lines = {.at = data, .end = data + size, .path = r->path};
    while (pnb__line_next(&lines, &line, &own) == PNB_OK && line != NULL) {
        char *second = strchr(line, '\t');
        if (line[0] == '#' || second == NULL)
            continue;
        *second++ = '\0';
        if (n++ == 0) {
            snprintf(first[0], sizeof first[0], "%.60s", line);
            snprintf(first[1], sizeof first[1], "%.60s", second);
        }
        n_fit +=
            fits(&r->query, line) && (fits(&r->item, second) || find_id(&r->texts, second) >= 0);
    }
    pnb__free(data);
    if (2 * n_fit >= n)
        return;
    pnb__error_prefix(err,
                      "only %zu of the %zu pairs fit the sets: the file speaks of '%s' and '%s', "
                      "the sets hold '%.60s' and '%.60s'; it looks like the truth of another "
                      "split, give that of these sets",
                      n_fit, n, first[0], first[1], example_of(&r->query), example_of(&r->item));
}

pnb_status pnb__read_truth_pairs(pnb_truth **out, const char *path, const pnb_truth_rows *queries,
                                 const pnb_truth_rows *items, pnb_error *err)
{
    pnb_status status = PNB_OK;
    reader r = {.path = path};
    char *data = NULL;
    size_t size = 0;
    *out = NULL;
    PNB_TRY(init_side(&r.query, "query", queries->ids, queries->n, err));
    PNB_TRY(init_side(&r.item, "item", items->ids, items->n, err));
    PNB_TRY(init_texts(&r.texts, items, err));
    PNB_TRY(pnb__read_file(path, MAX_TRUTH_BYTES, &data, &size, err));
    PNB_TRY(pnb__refuse_stand_in(path, data, size, err));
    status = read_lines(&r, data, size, err);
    if (r.has_stranger)
        say_other_split(&r, err);
    if (status != PNB_OK)
        goto done;
    status = pnb_truth_create_pairs(out, queries->n, items->n, r.pairs, r.n_pairs, err);
done:
    pnb__free(data);
    pnb__free(r.pairs);
    reset_side(&r.query);
    reset_side(&r.item);
    reset_side(&r.texts);
    return status;
}

pnb_status pnb_truth_load(pnb_truth **out, const char *path, const pnb_truth_names *names,
                          pnb_error *err)
{
    const pnb_truth_rows queries = {.ids = names->query_ids, .n = names->n_queries};
    const pnb_truth_rows items = {.ids = names->item_ids, .n = names->n_items};
    return pnb__read_truth_pairs(out, path, &queries, &items, err);
}
