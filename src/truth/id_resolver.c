/* Names of rows. A picture called "val2014/COCO_val2014_000000391895.jpg" answers to its id, its
 * path, either without folder or ending, and to 391895; a caption to its id, to "x#2" in all forms
 * of the picture x, and to its text. Fields cocoid, image_id, sentid and caption_id of a row's
 * further fields are names too.
 *
 * Shorter forms are weaker: tier 0 is the id itself, each step of shortening adds one. A name is
 * ambiguous only when two rows have it in the same tier. */
#include "truth/id_resolver.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "io/json/json.h"
#include "penumbra/embeddings.h"

enum { TIER_ID, TIER_FIELD, TIER_STEM, TIER_BASE, TIER_BASE_STEM, TIER_NUMBER, TIER_PATH_OFFSET };

pnb_truth_rows pnb_truth_rows_of(const struct pnb_embeddings *set)
{
    return (pnb_truth_rows){.n = set->n,
                            .ids = (const char *const *)set->ids,
                            .paths = (const char *const *)set->paths,
                            .texts = (const char *const *)set->texts,
                            .extras = (const char *const *)set->extras};
}

static pnb_status add_alias(pnb__id_resolver *names, const char *name, size_t n, size_t row,
                            int tier, pnb_error *err)
{
    if (n == 0)
        return PNB_OK;
    pnb__alias alias = {names->pool.size, row, tier};
    pnb_status status = PNB_PUSH(names->alias, names->n, err, alias);
    if (status != PNB_OK)
        return status;
    pnb__buf_append(&names->pool, name, n);
    pnb__buf_putc(&names->pool, '\0');
    return names->pool.failed ? pnb__fail_nomem(err, names->pool.size + n) : PNB_OK;
}

/* Length without an ending of 1 to 5 letters or digits behind the last point ("x.jpg"). */
size_t pnb__without_ending(const char *name, size_t n)
{
    size_t dot = n;
    while (dot > 0 && name[dot - 1] != '.' && name[dot - 1] != '/' && n - dot < 6)
        dot--;
    bool is_ending = dot > 1 && name[dot - 1] == '.' && name[dot - 2] != '/' && n - dot >= 1 &&
                     n - dot <= 5 && isalpha((unsigned char)name[dot]);
    return is_ending ? dot - 1 : n;
}

/* 391895 of "COCO_val2014_000000391895": the digits behind the last '_' without leading zeros;
 * they must fill that part. */
static size_t number_of(const char *stem, size_t n, size_t *begin)
{
    size_t first = n;
    while (first > 0 && isdigit((unsigned char)stem[first - 1]))
        first--;
    if (first == n || (first > 0 && stem[first - 1] != '_'))
        return 0;
    while (first + 1 < n && stem[first] == '0')
        first++;
    *begin = first;
    return n - first;
}

/* All forms of one id or path, each with `tail` ("#2" or "") behind it. */
static pnb_status add_forms(pnb__id_resolver *names, const char *name, size_t n, const char *tail,
                            size_t row, int tier, pnb_error *err)
{
    const char *base = name;
    for (size_t i = 0; i < n; i++)
        base = name[i] == '/' ? name + i + 1 : base;
    size_t n_base = n - (size_t)(base - name), begin = 0;
    size_t n_stem = pnb__without_ending(name, n), n_base_stem = pnb__without_ending(base, n_base);
    size_t n_number = number_of(base, n_base_stem, &begin);
    const struct {
        const char *text;
        size_t n;
        int tier;
    } forms[] = {{name, n, TIER_ID},
                 {name, n_stem, TIER_STEM},
                 {base, n_base, TIER_BASE},
                 {base, n_base_stem, TIER_BASE_STEM},
                 {base + begin, n_number, TIER_NUMBER}};
    pnb_status status = PNB_OK;
    char text[512];
    for (size_t f = 0; status == PNB_OK && f < PNB_COUNT(forms); f++) {
        bool repeated = false;
        for (size_t g = 0; g < f; g++)
            repeated = repeated || (forms[g].n == forms[f].n &&
                                    memcmp(forms[g].text, forms[f].text, forms[f].n) == 0);
        if (repeated || forms[f].n == 0 || forms[f].n + strlen(tail) >= sizeof text)
            continue;
        int length = snprintf(text, sizeof text, "%.*s%s", (int)forms[f].n, forms[f].text, tail);
        status = add_alias(names, text, (size_t)length, row, tier + forms[f].tier, err);
    }
    return status;
}

/* "x.jpg#2" of a caption: the picture's forms with the number behind each. */
static pnb_status add_id(pnb__id_resolver *names, const char *id, size_t row, int tier,
                         pnb_error *err)
{
    const char *hash = names->kind == PNB__NAMES_TEXTS ? strrchr(id, '#') : NULL;
    if (hash != NULL)
        return add_forms(names, id, (size_t)(hash - id), hash, row, tier, err);
    return add_forms(names, id, strlen(id), "", row, tier, err);
}

/* Ids of other files that a row carries along. */
static pnb_status add_fields(pnb__id_resolver *names, const char *extra, size_t row, pnb_error *err)
{
    static const char *const KEYS[2][2] = {{"cocoid", "image_id"}, {"sentid", "caption_id"}};
    const char *const *keys = KEYS[names->kind == PNB__NAMES_TEXTS];
    if (strstr(extra, keys[0]) == NULL && strstr(extra, keys[1]) == NULL)
        return PNB_OK; /* most rows: no need to parse */
    json_t *root = NULL;
    pnb_status status = pnb__json_try_bytes(&root, extra, strlen(extra), err);
    for (size_t k = 0; status == PNB_OK && k < 2; k++) {
        const json_t *value = json_object_get(root, keys[k]);
        char number[32];
        const char *text = json_string_value(value);
        if (json_is_integer(value)) {
            snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
            text = number;
        }
        if (text != NULL)
            status = add_alias(names, text, strlen(text), row, TIER_FIELD, err);
    }
    json_decref(root);
    return status;
}

/* ---- sorting and searching ---- */

/* qsort has no context: sort offsets resolved to pointers. */
typedef struct sortable {
    const char *name;
    pnb__alias alias;
} sortable;

static int compare_aliases(const void *a, const void *b)
{
    const sortable *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    if (order != 0)
        return order;
    if (x->alias.tier != y->alias.tier)
        return x->alias.tier < y->alias.tier ? -1 : 1;
    return (x->alias.row > y->alias.row) - (x->alias.row < y->alias.row);
}

static pnb_status sort_aliases(pnb__alias *alias, size_t n, const char *pool, pnb_error *err)
{
    sortable *s = pnb__alloc_array(PNB_MAX(n, 1), sizeof *s);
    if (s == NULL)
        return pnb__fail_nomem(err, n * sizeof *s);
    for (size_t i = 0; i < n; i++)
        s[i] = (sortable){pool + alias[i].name, alias[i]};
    qsort(s, n, sizeof *s, compare_aliases);
    for (size_t i = 0; i < n; i++)
        alias[i] = s[i].alias;
    pnb__free(s);
    return PNB_OK;
}

/* First of the sorted aliases that is not below `name`. */
static size_t lower_bound(const pnb__id_resolver *names, const pnb__alias *alias, size_t n,
                          const char *name)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(names->pool.data + alias[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_at(const pnb__id_resolver *names, const pnb__alias *alias, size_t n, size_t i,
                  const char *name)
{
    return i < n && strcmp(names->pool.data + alias[i].name, name) == 0;
}

pnb_status pnb__id_resolver_find(const pnb__id_resolver *names, const char *name, int64_t *row,
                                 pnb_error *err)
{
    size_t i = lower_bound(names, names->alias, names->n, name);
    *row = -1;
    if (!is_at(names, names->alias, names->n, i, name))
        return PNB_OK;
    const pnb__alias *first = &names->alias[i], *next = first + 1;
    if (is_at(names, names->alias, names->n, i + 1, name) && next->tier == first->tier &&
        next->row != first->row)
        return pnb__fail(err, PNB_ARG,
                         "'%.200s' fits rows %zu and %zu of the %s; a name in a truth file must "
                         "fit one row",
                         name, first->row, next->row,
                         names->kind == PNB__NAMES_IMAGES ? "pictures" : "captions");
    *row = (int64_t)first->row;
    return PNB_OK;
}

int64_t pnb__id_resolver_take_text(pnb__id_resolver *names, const char *text)
{
    size_t first = lower_bound(names, names->by_text, names->n_texts, text);
    if (!is_at(names, names->by_text, names->n_texts, first, text))
        return -1;
    for (size_t i = first; is_at(names, names->by_text, names->n_texts, i, text); i++) {
        size_t row = names->by_text[i].row;
        if (names->taken[row])
            continue;
        names->taken[row] = 1;
        return (int64_t)row;
    }
    return (int64_t)names->by_text[first].row;
}

/* ---- building ---- */

static bool is_unnamed(const pnb_truth_rows *rows)
{
    for (size_t i = 0; rows->ids != NULL && i < rows->n; i++) {
        char number[24];
        snprintf(number, sizeof number, "%zu", i);
        if (rows->ids[i] != NULL && strcmp(rows->ids[i], number) != 0)
            return false;
    }
    return true;
}

static pnb_status index_texts(pnb__id_resolver *names, pnb_error *err)
{
    const pnb_truth_rows *rows = names->rows;
    if (PNB_ALLOC(names->by_text, PNB_MAX(rows->n, 1), err) != PNB_OK ||
        PNB_ALLOC_ZERO(names->taken, PNB_MAX(rows->n, 1), err) != PNB_OK)
        return PNB_NOMEM;
    for (size_t i = 0; rows->texts != NULL && i < rows->n; i++) {
        if (rows->texts[i] == NULL)
            continue;
        size_t n = 0;
        const char *text = pnb__trimmed(rows->texts[i], strlen(rows->texts[i]), &n);
        names->by_text[names->n_texts++] = (pnb__alias){names->pool.size, i, 0};
        pnb__buf_append(&names->pool, text, n);
        pnb__buf_putc(&names->pool, '\0');
    }
    if (names->pool.failed)
        return pnb__fail_nomem(err, names->pool.size);
    return sort_aliases(names->by_text, names->n_texts, names->pool.data, err);
}

pnb_status pnb__id_resolver_init(pnb__id_resolver *names, pnb__name_kind kind,
                                 const pnb_truth_rows *rows, pnb_error *err)
{
    pnb_status status = PNB_OK;
    *names = (pnb__id_resolver){.rows = rows, .kind = kind, .unnamed = is_unnamed(rows)};
    for (size_t i = 0; i < rows->n; i++) {
        if (rows->ids != NULL && rows->ids[i] != NULL)
            PNB_TRY(add_id(names, rows->ids[i], i, TIER_ID, err));
        if (rows->paths != NULL && rows->paths[i] != NULL)
            PNB_TRY(add_id(names, rows->paths[i], i, TIER_PATH_OFFSET, err));
        if (rows->extras != NULL && rows->extras[i] != NULL)
            PNB_TRY(add_fields(names, rows->extras[i], i, err));
    }
    PNB_TRY(sort_aliases(names->alias, names->n, names->pool.data, err));
    if (kind == PNB__NAMES_TEXTS)
        PNB_TRY(index_texts(names, err));
done:
    return status;
}

void pnb__id_resolver_reset(pnb__id_resolver *names)
{
    pnb__buf_reset(&names->pool);
    pnb__free(names->alias);
    pnb__free(names->by_text);
    pnb__free(names->taken);
    *names = (pnb__id_resolver){0};
}
