/* Reads a pairs file: query TAB item, one pair a line.
 *
 * The first pair decides whether the columns are ids or row numbers; a file that then changes its
 * mind is refused instead of guessed at. Ids are found by binary search in sorted lists, which also
 * shows duplicates: an id that names two rows cannot be evaluated. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/grow.h"
#include "base/order.h"
#include "penumbra/truth.h"

#define MAX_TRUTH_BYTES ((size_t)1 << 30)

typedef struct side {
    const char *what; /* "query", "item" */
    pnb__named *sorted;
    size_t n;
} side;

typedef struct reader {
    const char *path;
    side query, item;
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

static pnb_status check_unique(const side *s, pnb_error *err)
{
    for (size_t i = 1; s->sorted != NULL && i < s->n; i++)
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
            return pnb__fail(err, PNB_NOT_FOUND,
                             "%s line %zu: '%s' is not an id of the %zu %s rows", r->path, line,
                             text, s->n, s->what);
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
    pnb_status status = pnb__grow_one(&r->pairs, r->n_pairs, 2 * sizeof *r->pairs, err);
    if (status != PNB_OK)
        return status;
    r->pairs[2 * r->n_pairs] = pair[0];
    r->pairs[2 * r->n_pairs + 1] = pair[1];
    r->n_pairs++;
    return PNB_OK;
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
    if (r->n_pairs == 0) {
        r->by_id = find_id(&r->query, text) >= 0 && find_id(&r->item, second) >= 0;
        if (r->by_id)
            PNB_TRY(check_unique(&r->query, err));
        if (r->by_id)
            PNB_TRY(check_unique(&r->item, err));
    }
    int64_t pair[2];
    PNB_TRY(resolve(r, &r->query, text, line, &pair[0], err));
    PNB_TRY(resolve(r, &r->item, second, line, &pair[1], err));
    status = add_pair(r, pair, err);
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
        n_fit += fits(&r->query, line) && fits(&r->item, second);
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

pnb_status pnb_truth_load(pnb_truth **out, const char *path, const pnb_truth_names *names,
                          pnb_error *err)
{
    pnb_status status = PNB_OK;
    reader r = {.path = path};
    char *data = NULL;
    size_t size = 0;
    *out = NULL;
    PNB_TRY(init_side(&r.query, "query", names->query_ids, names->n_queries, err));
    PNB_TRY(init_side(&r.item, "item", names->item_ids, names->n_items, err));
    PNB_TRY(pnb__read_file(path, MAX_TRUTH_BYTES, &data, &size, err));
    status = read_lines(&r, data, size, err);
    if (r.has_stranger)
        say_other_split(&r, err);
    if (status != PNB_OK)
        goto done;
    status = pnb_truth_create_pairs(out, names->n_queries, names->n_items, r.pairs, r.n_pairs, err);
done:
    pnb__free(data);
    pnb__free(r.pairs);
    pnb__free(r.query.sorted);
    pnb__free(r.item.sorted);
    return status;
}
