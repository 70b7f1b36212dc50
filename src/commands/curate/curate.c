/* Loads a set, has its rows examined, prints the first of them and writes the whole list.
 *
 * What counts as near, far out or worth a label is decided in
 * src/eval/curation/{duplicates,outliers,selection}.c; here rows get their names back. */
#include "commands/curate/curate.h"

#include <math.h>
#include <string.h>

#include "commands/common/rows/id_map.h"
#include "commands/common/set_use.h"
#include "io/json/json.h"
#include "io/tables/text_lines.h"
#include "penumbra/selection.h"
#include "program/progress.h"
#include "sets/set_rows.h"
#include "sets/settle.h"

enum { N_PRINTED = 20, N_OF_GROUP = 8 };

/* ---- a ranked list ---- */

typedef struct row_list {
    const pnb_embeddings *set;
    size_t n;
    const size_t *row;      /* [n] */
    const double *value;    /* [n] by rank, or NULL */
    const int64_t *nearest; /* [rows of the set], or NULL */
    const double *u;        /* [rows of the set] */
    const char *value_name;
} row_list;

static void put_row(const row_list *l, size_t rank, pnb__buf *b)
{
    size_t row = l->row[rank];
    pnb__json_put(b, "{\"rank\":%zu,\"row\":%zu,\"id\":%s", rank + 1, row,
                  pnb__set_id(l->set, row));
    if (l->value != NULL)
        pnb__json_put(b, ",%s:%f", l->value_name, l->value[rank]);
    pnb__json_put(b, ",\"uncertainty\":%f", l->u[row]);
    if (l->nearest != NULL && l->nearest[row] >= 0)
        pnb__json_put(b, ",\"nearest\":%s", pnb__set_id(l->set, (size_t)l->nearest[row]));
    if (l->set->texts != NULL && l->set->texts[row] != NULL)
        pnb__json_put(b, ",\"text\":%s", l->set->texts[row]);
    pnb__buf_puts(b, "}\n");
}

static pnb_status write_rows(const row_list *l, const char *path, pnb_error *err)
{
    pnb__buf text = {0};
    bool is_jsonl = pnb__ends_with(path, ".jsonl");
    for (size_t i = 0; i < l->n; i++)
        if (is_jsonl)
            put_row(l, i, &text);
        else
            pnb__buf_printf(&text, "%s\n", pnb__set_id(l->set, l->row[i]));
    return pnb__buf_write(&text, path, err);
}

/* The first rows as a table; all of them in JSON. */
static void print_rows(const pnb__app *app, const row_list *l, pnb__result *r)
{
    const pnb__column columns[] = {{"rank", "rank"},
                                   {"row", "row"},
                                   {"id", "id"},
                                   {l->value != NULL ? l->value_name : "uncertainty",
                                    l->value != NULL ? l->value_name : "uncertainty"},
                                   {"item", "item"}};
    size_t n = app->common.json ? l->n : PNB_MIN(l->n, (size_t)N_PRINTED);
    pnb__result_table(r, "rows", "", columns, PNB_COUNT(columns));
    for (size_t i = 0; i < n; i++) {
        size_t row = l->row[i];
        pnb__result_row(r, "%zu %zu %s %.5f %s", i + 1, row, pnb__set_id(l->set, row),
                        l->value != NULL ? l->value[i] : l->u[row], pnb__set_label(l->set, row));
    }
    if (n < l->n)
        pnb__result_note(r, "the first 20 are shown; --out writes all of them, --json prints them");
}

static pnb_status finish_rows(const pnb__app *app, const row_list *l, const char *out,
                              pnb__result *r, pnb_error *err)
{
    pnb_status status = out != NULL ? write_rows(l, out, err) : PNB_OK;
    print_rows(app, l, r);
    if (out != NULL && status == PNB_OK)
        pnb__result_text(r, "out", "written", out);
    return status;
}

static pnb_status load_set(pnb__app *app, const char *path, pnb_uncertainty kind,
                           pnb_embeddings **set, double **u)
{
    pnb_status status = pnb__set_load(set, path, app);
    return status == PNB_OK ? pnb__row_uncertainty(*set, kind, u, &app->err) : status;
}

/* ---- duplicates ---- */

static void put_group(const pnb_embeddings *set, const double *u, const pnb_duplicates *d, size_t g,
                      pnb__buf *b)
{
    pnb__json_put(b, "{\"keep\":%s,\"rows\":[", pnb__set_id(set, d->keep[g]));
    for (size_t i = d->offset[g]; i < d->offset[g + 1]; i++) {
        size_t row = d->row[i];
        pnb__buf_puts(b, i > d->offset[g] ? "," : "");
        pnb__json_put(b, "{\"row\":%zu,\"id\":%s,\"uncertainty\":%f}", row, pnb__set_id(set, row),
                      u[row]);
    }
    pnb__buf_puts(b, "]}\n");
}

/* All groups as lines of JSON, or one pair of ids with its score a line. */
static pnb_status write_groups(const pnb_embeddings *set, const double *u, const pnb_duplicates *d,
                               const char *path, pnb_error *err)
{
    pnb__buf text = {0};
    bool is_jsonl = pnb__ends_with(path, ".jsonl");
    for (size_t g = 0; is_jsonl && g < d->n_groups; g++)
        put_group(set, u, d, g, &text);
    for (size_t i = 0; !is_jsonl && i < d->n_pairs; i++)
        pnb__buf_printf(&text, "%s\t%s\t%.6f\n", pnb__set_id(set, d->pair[i].a),
                        pnb__set_id(set, d->pair[i].b), d->pair[i].score);
    return pnb__buf_write(&text, path, err);
}

/* Ids of the rows that go, or of all that stay. */
static pnb_status write_side(const pnb_embeddings *set, const unsigned char *is_dropped, bool kept,
                             const char *path, pnb_error *err)
{
    pnb__buf text = {0};
    for (size_t i = 0; i < set->n; i++)
        if ((is_dropped[i] == 0) == kept)
            pnb__buf_printf(&text, "%s\n", pnb__set_id(set, i));
    return pnb__buf_write(&text, path, err);
}

/* Large groups are cut in text: some of the rows, and always the one to keep. */
static void print_groups(const pnb_embeddings *set, const double *u, const pnb_duplicates *d,
                         size_t n_shown, bool whole, pnb__result *r)
{
    static const pnb__column columns[] = {{"group", "group"},
                                          {"keep", "keep"},
                                          {"row", "row"},
                                          {"id", "id"},
                                          {"uncertainty", "uncertainty"},
                                          {"item", "item"}};
    if (n_shown == 0)
        return;
    pnb__result_table(r, "groups", "", columns, PNB_COUNT(columns));
    for (size_t g = 0; g < PNB_MIN(n_shown, d->n_groups); g++)
        for (size_t i = d->offset[g]; i < d->offset[g + 1]; i++) {
            size_t row = d->row[i];
            if (!whole && i - d->offset[g] >= N_OF_GROUP && row != d->keep[g])
                continue;
            pnb__result_row(r, "%zu %s %zu %s %.5f %s", g + 1, row == d->keep[g] ? "yes" : "", row,
                            pnb__set_id(set, row), u[row], pnb__set_label(set, row));
        }
    if (n_shown < d->n_groups || (!whole && d->n_groups > 0 && d->offset[1] > N_OF_GROUP))
        pnb__result_note(r,
                         "the largest groups are shown, 8 rows of each; --out writes everything");
}

static void print_counts(const pnb__duplicates_opts *o, const pnb_embeddings *set,
                         const pnb_duplicates *d, pnb__result *r)
{
    size_t n_rows = d->offset[d->n_groups];
    pnb__result_text(r, "set", NULL, o->set);
    pnb__result_text(r, "measure", "measure", pnb_measure_name(o->find.measure));
    pnb__result_real(r, "min_score", "score of at least", o->find.min_score, 4);
    pnb__result_int(r, "n_rows", "rows", (int64_t)set->n);
    pnb__result_int(r, "n_pairs", "pairs", (int64_t)d->n_pairs);
    pnb__result_int(r, "n_groups", "groups", (int64_t)d->n_groups);
    pnb__result_int(r, "n_in_groups", "rows in groups", (int64_t)n_rows);
    pnb__result_int(r, "n_dropped", "rows to drop", (int64_t)(n_rows - d->n_groups));
    pnb__result_int(r, "n_cut", NULL, (int64_t)d->n_cut);
}

/* Each id names one row. */
static pnb_status check_names(const pnb_embeddings *set, pnb_error *err)
{
    pnb__id_map map = {0};
    pnb_status status =
        pnb__id_map_init(&map, (const char *const *)set->ids, set->n, "row id", err);
    pnb__id_map_reset(&map);
    return status;
}

pnb_status pnb__duplicates_run(pnb__app *app, void *args, pnb__result *r)
{
    const pnb__duplicates_opts *o = args;
    pnb_embeddings *set = NULL;
    pnb_view view = {0};
    pnb_duplicates_opts find = o->find;
    pnb_duplicates found = {0};
    pnb__watching watching = {0};
    double *u = NULL;
    unsigned char *is_dropped = NULL;
    pnb_error *err = &app->err;
    pnb_status status;
    PNB_TRY(load_set(app, o->set, o->uncertainty, &set, &u));
    if (o->keep != NULL || o->drop != NULL) /* else an id could stand on both lists */
        PNB_TRY(check_names(set, err));
    PNB_TRY(pnb__match_settle(app, &o->match, find.measure, &set->info, NULL, &find.measure_opts));
    PNB_TRY(pnb__set_view(&view, set, find.measure, err));
    find.watch = pnb__watch_begin(&watching, app, "comparing", "rows");
    status = pnb_duplicates_find(app->ctx, &view.rows, u, &find, &found, err);
    pnb__watch_end(&watching);
    if (status != PNB_OK)
        goto done;
    PNB_TRY(PNB_ALLOC_ZERO(is_dropped, set->n, err));
    for (size_t g = 0; g < found.n_groups; g++)
        for (size_t i = found.offset[g]; i < found.offset[g + 1]; i++)
            is_dropped[found.row[i]] = found.row[i] != found.keep[g];
    if (found.n_cut > 0)
        pnb__warn(app,
                  "there are more than %zu pairs; only %zu near-duplicates of each row were looked "
                  "at, and %zu rows may have more (--max-pairs, --max-neighbours)",
                  find.max_pairs, find.max_neighbours, found.n_cut);
    if (o->out != NULL)
        PNB_TRY(write_groups(set, u, &found, o->out, err));
    if (o->keep != NULL)
        PNB_TRY(write_side(set, is_dropped, true, o->keep, err));
    if (o->drop != NULL)
        PNB_TRY(write_side(set, is_dropped, false, o->drop, err));
    print_counts(o, set, &found, r);
    print_groups(set, u, &found, o->n_shown, app->common.json, r);
done:
    pnb_duplicates_reset(&found);
    pnb_view_reset(&view);
    pnb__free(is_dropped);
    pnb__free(u);
    pnb_embeddings_free(set);
    return status;
}

/* ---- outliers ---- */

pnb_status pnb__outliers_run(pnb__app *app, const pnb__outliers_opts *o, pnb__result *r)
{
    pnb_embeddings *set = NULL;
    pnb_view view = {0};
    pnb_outliers_opts rank = o->rank;
    pnb_outliers found = {0};
    pnb__watching watching = {0};
    double *u = NULL, *value = NULL;
    pnb_error *err = &app->err;
    bool by_u = rank.kind == PNB_OUTLIER_UNCERTAINTY;
    pnb_status status;
    PNB_TRY(load_set(app, o->set, o->uncertainty, &set, &u));
    PNB_TRY(pnb__match_settle(app, &o->match, rank.measure, &set->info, NULL, &rank.measure_opts));
    PNB_TRY(pnb__set_view(&view, set, by_u ? PNB_MEASURE_MEAN : rank.measure, err));
    rank.watch = pnb__watch_begin(&watching, app, "comparing", "rows");
    status = pnb_outliers_rank(app->ctx, &view.rows, u, &rank, &found, err);
    pnb__watch_end(&watching);
    if (status != PNB_OK)
        goto done;
    PNB_TRY(PNB_ALLOC(value, set->n, err));
    for (size_t i = 0; i < set->n; i++)
        value[i] = found.value[found.order[i]];
    const row_list list = {.set = set,
                           .n = PNB_MIN(o->count, set->n),
                           .row = found.order,
                           .value = by_u ? NULL : value,
                           .nearest = found.nearest,
                           .u = u,
                           .value_name = "score"};
    pnb__result_text(r, "set", NULL, o->set);
    pnb__result_text(r, "by", "by", pnb_outlier_name(rank.kind));
    pnb__result_int(r, "n_rows", "rows", (int64_t)set->n);
    status = finish_rows(app, &list, o->out, r, err);
done:
    pnb_outliers_reset(&found);
    pnb_view_reset(&view);
    pnb__free(value);
    pnb__free(u);
    pnb_embeddings_free(set);
    return status;
}

/* ---- selection ---- */

/* Marks the rows that a file names: its lines up to a tab. */
static pnb_status read_labelled(const pnb_embeddings *set, const char *path, unsigned char *taken,
                                size_t *n_taken, pnb_error *err)
{
    pnb__lines lines = {0};
    pnb__id_map map = {0};
    pnb_status status = pnb__lines_load(&lines, path, err);
    if (status == PNB_OK && set->ids == NULL)
        status = pnb__fail(err, PNB_ARG, "the rows have no ids to be named by");
    if (status == PNB_OK)
        status = pnb__id_map_init(&map, (const char *const *)set->ids, set->n, "row id", err);
    for (size_t i = 0; status == PNB_OK && i < lines.n; i++) {
        size_t row = pnb__id_map_find(&map, lines.line[i], strcspn(lines.line[i], "\t"));
        if (row == SIZE_MAX) {
            status = pnb__fail(err, PNB_NOT_FOUND, "%s: '%.200s' is no row of the set", path,
                               lines.line[i]);
        } else {
            *n_taken += taken[row] == 0;
            taken[row] = 1;
        }
    }
    pnb__id_map_reset(&map);
    pnb__lines_reset(&lines);
    return status;
}

/* Chooses rows into row[count]; distance is filled by k_centre only. */
static pnb_status choose(pnb__app *app, const pnb__select_opts *o, const pnb_embeddings *set,
                         const double *u, const unsigned char *taken, size_t *row, double *distance)
{
    pnb_k_centre_opts centre = {.with_spread = o->with_spread, .seed = (uint64_t)app->common.seed};
    pnb__watching watching;
    pnb_view view;
    pnb_error *err = &app->err;
    if (strcmp(o->by, "uncertain") == 0)
        return pnb_select_uncertain(u, set->n, taken, o->count, row, err);
    if (strcmp(o->by, "random") == 0)
        return pnb_select_random(set->n, taken, o->count, centre.seed, row, err);
    pnb_measure measure = o->with_spread ? PNB_MEASURE_W2 : PNB_MEASURE_MEAN;
    pnb_status status = pnb__set_view(&view, set, measure, err);
    if (status != PNB_OK)
        return status;
    centre.watch = pnb__watch_begin(&watching, app, "covering", "rows");
    status =
        pnb_select_k_centre(app->ctx, &view.rows, taken, o->count, &centre, row, distance, err);
    pnb__watch_end(&watching);
    pnb_view_reset(&view);
    return status;
}

pnb_status pnb__select_run(pnb__app *app, const pnb__select_opts *o, pnb__result *r)
{
    pnb_embeddings *set = NULL;
    double *u = NULL, *distance = NULL;
    unsigned char *taken = NULL;
    size_t *row = NULL, n_taken = 0;
    pnb_error *err = &app->err;
    bool covers = strcmp(o->by, "k_centre") == 0;
    pnb_status status;
    PNB_TRY(load_set(app, o->set, o->uncertainty, &set, &u));
    PNB_TRY(PNB_ALLOC_ZERO(taken, set->n, err));
    PNB_TRY(PNB_ALLOC(row, PNB_MIN(o->count, set->n), err));
    PNB_TRY(PNB_ALLOC(distance, PNB_MIN(o->count, set->n), err));
    if (o->labelled != NULL)
        PNB_TRY(read_labelled(set, o->labelled, taken, &n_taken, err));
    PNB_TRY(choose(app, o, set, u, taken, row, distance));
    const row_list list = {.set = set,
                           .n = o->count,
                           .row = row,
                           .value = covers ? distance : NULL,
                           .u = u,
                           .value_name = "distance"};
    pnb__result_text(r, "set", NULL, o->set);
    pnb__result_text(r, "by", "by", o->by);
    pnb__result_int(r, "n_rows", "rows", (int64_t)set->n);
    pnb__result_int(r, "n_labelled", "labelled already", (int64_t)n_taken);
    status = finish_rows(app, &list, o->out, r, err);
done:
    pnb__free(distance);
    pnb__free(row);
    pnb__free(taken);
    pnb__free(u);
    pnb_embeddings_free(set);
    return status;
}
