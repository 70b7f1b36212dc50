/* Methods of `adapt compare` against known truth: does a caption's uncertainty follow how many
 * pictures it fits?
 *
 * The captions are those of the page, so the truth is a field of their ids files, and what learned
 * nothing stands in the same order: an untrained head, the number of words, how common they are.
 * A folder's table.json tells the methods; their sets are measured as `eval uncertainty
 * --text-entropy` does it. A method whose sets are gone is left out with a warning; one that stands
 * in several folders is the last one's, as AsymVLM on captions with their lengths. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "commands/eval/uncertainty/known_entropy.h"
#include "commands/report/report_internal.h"
#include "io/json/json.h"
#include "report/plot.h"
#include "report/svg.h"

#define TABLE "table.json"
enum { MAX_SEEDS = 16, MODEL = 0, UNTRAINED = 1 /* scores of pnb__known_found */ };

typedef struct method_row {
    char name[64];
    const char *kind; /* a word of ours */
    pnb_interval rho;
    double r1;
} method_row;

typedef struct method_table {
    method_row *items;
    size_t n;
} method_table;

static method_row *find_row(const method_table *t, const char *name)
{
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->items[i].name, name) == 0)
            return &t->items[i];
    return NULL;
}

/* Rows without a rank correlation (points, all alike) say nothing; one that is there is
 * replaced. */
static pnb_status add(method_table *t, const char *name, const char *kind,
                      const pnb_rank_agreement *score, double r1, pnb_error *err)
{
    method_row row = {.kind = kind, .rho = score->figure[PNB_AGREEMENT_SPEARMAN], .r1 = r1};
    snprintf(row.name, sizeof row.name, "%s", name);
    if (!isfinite(row.rho.value))
        return PNB_OK;
    method_row *before = find_row(t, row.name);
    if (before == NULL)
        return PNB_PUSH(t->items, t->n, err, row);
    *before = row;
    return PNB_OK;
}

static pnb__known_opts known_of(const pnb__report *r, const char *images, const char *texts)
{
    const pnb__report_opts *o = r->opts;
    return (pnb__known_opts){.images = images,
                             .texts = texts,
                             .truth = o->sets.truth,
                             .read = o->sets.read,
                             .text_field = o->text_entropy,
                             .cluster = o->retrieval.cluster,
                             .n_resamples = o->retrieval.n_resamples};
}

/* ---- the page's own sets ---- */

/* The model, its untrained control, and what can be counted of the captions. */
static pnb_status add_model(pnb__report *r, method_table *t)
{
    pnb__known_opts job = known_of(r, r->opts->sets.images, r->opts->sets.texts);
    pnb__known_found found[2];
    pnb_error *err = &r->app->err;
    pnb_status status;
    job.control_texts = r->opts->control.texts;
    PNB_TRY(pnb__known_measure(r->app, &job, found));
    r->page.shown = r->every;
    PNB_TRY(add(t, "this model", "trained", &found[1].score[MODEL],
                pnb__page_number(&r->page, "metrics.image_retrieval_recall@1"), err));
    for (size_t k = UNTRAINED; k < PNB__MAX_KNOWN_SCORES; k++)
        if (found[1].name[k] != NULL)
            PNB_TRY(add(t, found[1].name[k], "control", &found[1].score[k], NAN, err));
done:
    return status;
}

/* The entropy of what a caption matches needs no variance: that of the control is its own. */
static pnb_status add_entropy_of_matches(pnb__report *r, method_table *t)
{
    const pnb__report_opts *o = r->opts;
    pnb__known_opts job = known_of(r, o->control.images, o->control.texts);
    pnb__known_found found[2];
    if (o->control.images == NULL || o->control.texts == NULL)
        return PNB_OK;
    job.matches.is_asked = true;
    pnb_status status = pnb__known_measure(r->app, &job, found);
    if (status == PNB_ARG) { /* sets that do not tell their scale */
        pnb_error_reset(&r->app->err);
        return PNB_OK;
    }
    if (status == PNB_OK)
        status =
            add(t, "entropy of matches", "no training", &found[1].score[MODEL], NAN, &r->app->err);
    return status;
}

/* ---- the folders ---- */

/* DIR/sets/NAME-SEED.texts.safetensors of the first seed that is there; NULL: none. */
static char *find_set(const char *dir, const char *name)
{
    for (int seed = 0; seed < MAX_SEEDS; seed++) {
        char *file = pnb__format("sets/%s-%d.texts.safetensors", name, seed);
        bool is_there = file != NULL && pnb__path_has_file(dir, file);
        char *path = is_there ? pnb__path_join(dir, file) : NULL;
        pnb__free(file);
        if (is_there)
            return path;
    }
    return NULL;
}

static pnb_status add_method(pnb__report *r, const char *dir, const json_t *row, method_table *t)
{
    const char *name = json_string_value(json_object_get(row, "method"));
    const char *kind = json_string_value(json_object_get(row, "kind"));
    pnb__known_found found[2];
    if (strcmp(kind, "frozen") == 0)
        return PNB_OK;
    char *path = find_set(dir, name);
    if (path == NULL) {
        pnb__warn(r->app, "%s/sets has no captions of %s: it is left out", dir, name);
        return PNB_OK;
    }
    const pnb__known_opts job = known_of(r, r->opts->sets.images, path);
    pnb_status status = pnb__known_measure(r->app, &job, found);
    if (status == PNB_OK)
        status = add(t, name, strcmp(kind, "control") == 0 ? "control" : "learned",
                     &found[1].score[MODEL], pnb__json_real_at(row, "t2i_r1"), &r->app->err);
    pnb__free(path);
    return status;
}

/* Every row has its words, or `path` is not what `adapt compare` writes. */
static pnb_status check_rows(const json_t *rows, const char *path, pnb_error *err)
{
    if (!json_is_array(rows))
        return pnb__fail(err, PNB_FORMAT, "%s: no \"methods\"; it is not of `adapt compare`", path);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        if (!json_is_string(json_object_get(row, "method")) ||
            !json_is_string(json_object_get(row, "kind")))
            return pnb__fail(err, PNB_FORMAT,
                             "%s: a method without \"method\" or \"kind\"; it is not of "
                             "`adapt compare`",
                             path);
        const char *name = json_string_value(json_object_get(row, "method"));
        if (name[0] == '\0' || strchr(name, '/') != NULL || /* a part of its sets' names */
            strlen(name) >= sizeof((method_row *)0)->name)  /* two that begin alike were one */
            return pnb__fail(err, PNB_FORMAT,
                             "%s: \"%s\" is no method's name; it is not of `adapt compare`", path,
                             name);
    }
    return PNB_OK;
}

/* The table of a folder; the caller lets *root go, also after an error. */
static pnb_status read_folder(const char *dir, json_t **root, pnb_error *err)
{
    char *path = pnb__path_join(dir, TABLE);
    pnb_status status = path != NULL ? PNB_OK : pnb__fail_nomem(err, strlen(dir) + sizeof TABLE);
    if (status == PNB_OK)
        status = pnb__json_load_file(root, path, 0, err);
    if (status == PNB_OK)
        status = check_rows(json_object_get(*root, "methods"), path, err);
    pnb__free(path);
    return status;
}

static pnb_status add_folder(pnb__report *r, const char *dir, method_table *t)
{
    json_t *root = NULL;
    pnb_status status = read_folder(dir, &root, &r->app->err);
    const json_t *rows = json_object_get(root, "methods");
    for (size_t i = 0; status == PNB_OK && i < json_array_size(rows); i++)
        status = add_method(r, dir, json_array_get(rows, i), t);
    json_decref(root);
    return status;
}

pnb_status pnb__report_check_methods(pnb__app *app, const pnb__report_opts *o)
{
    pnb_status status = PNB_OK;
    for (size_t i = 0; status == PNB_OK && i < o->methods.n; i++) {
        json_t *root = NULL;
        status = read_folder(o->methods.items[i], &root, &app->err);
        json_decref(root);
    }
    return status;
}

/* ---- the section ---- */

static int by_rho(const void *a, const void *b)
{
    const method_row *x = a, *y = b;
    if (x->rho.value != y->rho.value)
        return x->rho.value > y->rho.value ? -1 : 1;
    return strcmp(x->name, y->name);
}

static const method_row *first_of(const method_table *t, bool is_control)
{
    for (size_t i = 0; i < t->n; i++)
        if ((strcmp(t->items[i].kind, "control") == 0) == is_control)
            return &t->items[i];
    return NULL;
}

/* What the table says, in a sentence. */
static void put_words(pnb__report *r, const method_table *t)
{
    const method_row *best = first_of(t, false), *control = first_of(t, true);
    pnb__buf *out = pnb__page_block(&r->page);
    if (best == NULL || control == NULL)
        return;
    const char *how = best->rho.low > control->rho.high   ? "above"
                      : best->rho.high < control->rho.low ? "below"
                                                          : "not told apart from";
    pnb__buf_puts(out, "<p>Best: <b>");
    pnb__html_escape(out, best->name);
    pnb__buf_printf(out, "</b>, %.2f. Of what learned nothing the best is <b>", best->rho.value);
    pnb__html_escape(out, control->name);
    pnb__buf_printf(out, "</b>, %.2f: the best is %s it.</p>\n", control->rho.value, how);
}

/* Two digits behind the point, so that what is next to 0 is told as 0. */
static double rounded(double x)
{
    return round(100 * x) / 100 + 0.0;
}

static void put_table(pnb__report *r, const method_table *t)
{
    static const pnb__column columns[] = {{"method", "whose uncertainty"}, {"kind", "kind"},
                                          {"spearman", "\xCF\x81"},        {"spearman_low", "from"},
                                          {"spearman_high", "to"},         {"r1", "R@1, %"}};
    static const char *const shown[] = {"method", "kind", "spearman", "r1", NULL};
    pnb__result_table(r->more, "known_methods", NULL, columns, PNB_COUNT(columns));
    for (size_t i = 0; i < t->n; i++) {
        const method_row *m = &t->items[i];
        pnb__result_row(r->more, "%s %s %.2f %.2f %.2f %.1f", m->name, m->kind,
                        rounded(m->rho.value), rounded(m->rho.low), rounded(m->rho.high),
                        100 * m->r1);
    }
    r->page.shown = r->more;
    pnb__page_section(
        &r->page, "Whose uncertainty is true?",
        "Of every caption it is known how many pictures it fits: the log of that is what a caption "
        "leaves open. \xCF\x81 is the rank correlation of uncertainty with it (1 is best, 0 says "
        "nothing, below 0 is the wrong way round), with 95% intervals over resampled pictures with "
        "their captions; R@1 is the share of captions that find a right picture first. Methods "
        "learned from frozen rows of a plainly trained model; controls learned nothing, and a "
        "method that is not above the best of them has shown nothing here.");
    put_words(r, t);
    pnb__page_table(&r->page, "known_methods", shown);
}

pnb_status pnb__report_methods(pnb__report *r)
{
    method_table t = {0};
    pnb_status status;
    if (r->opts->methods.n == 0)
        return PNB_OK;
    for (size_t i = 0; i < r->opts->methods.n; i++)
        PNB_TRY(add_folder(r, r->opts->methods.items[i], &t));
    PNB_TRY(add_model(r, &t));
    PNB_TRY(add_entropy_of_matches(r, &t));
    if (t.n == 0)
        goto done;
    qsort(t.items, t.n, sizeof *t.items, by_rho);
    put_table(r, &t);
done:
    pnb__free(t.items);
    return status;
}
