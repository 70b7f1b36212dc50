/* Pictures with classes, from an embedding set or from a data set that is embedded here.
 *
 * Both carry class and label in the rows' extra fields, so one way of numbering serves both; a file
 * of labels replaces them. Readers of data sets and the splits' places are data's business. */
#include "commands/classify/class_inputs.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "commands/common/encode_use.h"
#include "commands/common/set_use.h"
#include "io/json/json.h"
#include "sets/set_rows.h"

/* ---- opening ---- */

static bool is_set(const char *what)
{
    return pnb__ends_with(what, ".safetensors") || pnb__ends_with(what, ".npy");
}

static pnb_status open_images(pnb__class_source *s, pnb__app *app, const char *what,
                              const pnb__class_source_opts *o)
{
    pnb_dataset_opts opts = pnb_dataset_opts_default();
    char *where = NULL;
    pnb_status status;
    opts.allow_no_caption = true;
    opts.csv_img_key = o->csv_img_key;
    opts.csv_label_key = o->csv_label_key;
    PNB_TRY(pnb_dataset_split(&where, what, o->split != NULL ? o->split : "test", &app->err));
    s->what = where;
    PNB_TRY(pnb__image_inputs_open_set(&s->images, where, &opts, &app->err));
    const pnb_dataset *set = pnb__image_inputs_set(s->images);
    for (size_t i = 0; i < pnb_dataset_n_warnings(set); i++)
        pnb__warn(app, "%s", pnb_dataset_warning(set, i));
    for (size_t i = 0; i < pnb_dataset_n_classes(set); i++) {
        const char *name = pnb_dataset_class_name(set, i);
        PNB_TRY(pnb__texts_add(&s->classes, name, strlen(name), &app->err));
    }
done:
    return status;
}

/* Class of a row as it was given. */
typedef struct given {
    int64_t number; /* -1 unknown */
    char *name;     /* may be NULL */
} given;

static void free_given(given *g, size_t n)
{
    for (size_t i = 0; g != NULL && i < n; i++)
        pnb__free(g[i].name);
    pnb__free(g);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const given *)a)->name, ((const given *)b)->name);
}

static int compare_numbers(const void *a, const void *b)
{
    const given *x = a, *y = b;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Whether the numbers, in order, are 0, 1, 2, ... and each has one name: then they are the order
 * of the data set that was embedded, where a name may even stand for two classes. */
static bool numbers_are_places(const given *g, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool is_next = g[i].number == (i > 0 ? g[i - 1].number + 1 : 0);
        bool is_same =
            i > 0 && g[i].number == g[i - 1].number && strcmp(g[i].name, g[i - 1].name) == 0;
        if (!is_next && !is_same)
            return false;
    }
    return true;
}

/* The names of a set's rows, by their numbers where those are complete, else sorted. */
static pnb_status collect_classes(pnb__class_source *s, pnb_error *err)
{
    given *g = pnb__alloc_zero(s->set->n, sizeof *g);
    size_t n = 0;
    bool by_number = false;
    pnb_status status = PNB_OK;
    if (g == NULL)
        return pnb__fail_nomem(err, s->set->n * sizeof *g);
    for (size_t i = 0; i < s->set->n && status == PNB_OK; i++) {
        status = pnb__row_class(s->set, i, &g[n].number, &g[n].name, err);
        n += g[n].name != NULL;
    }
    if (status == PNB_OK && n > 0) {
        qsort(g, n, sizeof *g, compare_numbers);
        by_number = numbers_are_places(g, n);
        if (!by_number)
            qsort(g, n, sizeof *g, compare_names);
    }
    for (size_t i = 0; i < n && status == PNB_OK; i++)
        if (i == 0 ||
            (by_number ? g[i].number != g[i - 1].number : strcmp(g[i].name, g[i - 1].name) != 0))
            status = pnb__texts_add(&s->classes, g[i].name, strlen(g[i].name), err);
    free_given(g, s->set->n);
    return status;
}

/* Single pictures by their names, which carry no class: not a folder, a table or a binary. */
static bool is_loose(const char *what, const pnb__text_list *words)
{
    static const char *const endings[] = {".jpg", ".jpeg", ".png",  ".webp", ".gif",
                                          ".bmp", ".tif",  ".tiff", ".avif", ".heic"};
    if (words != NULL && words->n > 1)
        return true;
    for (size_t i = 0; i < PNB_COUNT(endings); i++) {
        size_t n = strlen(what), length = strlen(endings[i]);
        if (n > length && strcasecmp(what + n - length, endings[i]) == 0)
            return strstr(what, "::") == NULL && strchr(what, '{') == NULL;
    }
    bool is_there = pnb__path_is_file(what) || pnb__path_is_dir(what);
    return strcmp(what, "-") == 0 || (!is_there && strpbrk(what, "*?[") != NULL &&
                                      strstr(what, ".tar") == NULL && strchr(what, '{') == NULL);
}

static pnb_status refuse_sets(pnb__app *app, const pnb__text_list *words)
{
    for (size_t i = 0; i < words->n; i++)
        if (is_set(words->items[i]))
            return pnb__fail(&app->err, PNB_ARG,
                             "%s: an embedding set stands alone, not among %zu pictures or folders",
                             words->items[i], words->n);
    return PNB_OK;
}

static pnb_status open_loose(pnb__class_source *s, pnb__app *app, const char *what,
                             const pnb__text_list *words)
{
    const pnb__text_list one = {&what, 1};
    pnb_status status = PNB_OK;
    if (words == NULL)
        words = &one;
    PNB_TRY(refuse_sets(app, words));
    s->what = words->n > 1 ? pnb__format("%s and %zu more", what, words->n - 1) : pnb__strdup(what);
    if (s->what == NULL)
        PNB_TRY(pnb__fail_nomem(&app->err, strlen(what)));
    status = pnb__image_inputs_open(&s->images, words->items, words->n, app->in, &app->err);
done:
    return status;
}

pnb_status pnb__class_source_open(pnb__class_source *s, pnb__app *app, const char *what,
                                  const pnb__class_source_opts *opts)
{
    pnb_status status;
    *s = (pnb__class_source){.exif = opts->exif};
    if (is_loose(what, opts->words))
        return open_loose(s, app, what, opts->words);
    if (!is_set(what))
        return open_images(s, app, what, opts);
    if (pnb__copy_text(&s->what, what, &app->err) != PNB_OK)
        return PNB_NOMEM;
    status = pnb__set_load(&s->set, what, app);
    return status == PNB_OK ? collect_classes(s, &app->err) : status;
}

pnb_status pnb__class_source_embed(pnb__class_source *s, pnb__app *app, pnb_encoder *encoder)
{
    if (s->set != NULL)
        return PNB_OK;
    const pnb__embed_source source = pnb__image_inputs_source(s->images);
    return pnb__embed_all(app, encoder, &source, "pictures", s->exif, &s->set);
}

/* Rows stand in the order of the inputs, and those that were skipped have none: an input that would
 * be called as the next row is that row. */
pnb_status pnb__class_source_rows(const pnb__class_source *s, size_t *row, pnb_error *err)
{
    const pnb__embed_source source = pnb__image_inputs_source(s->images);
    bool is_whole = source.n == s->set->n || s->set->ids == NULL;
    size_t next = 0;
    for (size_t i = 0; i < source.n; i++) {
        pnb_embeddings *named = NULL;
        row[i] = is_whole ? i : SIZE_MAX;
        if (is_whole || next == s->set->n)
            continue;
        pnb_status status = pnb_embeddings_create(&named, PNB_POINT, 1, 1, err);
        if (status == PNB_OK)
            status = source.label(source.user, i, named, 0, err);
        if (status == PNB_OK && strcmp(pnb__row_name(named, 0), pnb__row_name(s->set, next)) == 0)
            row[i] = next++;
        pnb_embeddings_free(named);
        if (status != PNB_OK)
            return status;
    }
    return PNB_OK;
}

void pnb__class_source_reset(pnb__class_source *s)
{
    pnb__free(s->what);
    pnb__image_inputs_free(s->images);
    pnb_embeddings_free(s->set);
    pnb__texts_reset(&s->classes);
    pnb__free(s->label);
    *s = (pnb__class_source){0};
}

/* ---- what rows say ---- */

pnb_status pnb__row_class(const pnb_embeddings *set, size_t row, int64_t *label, char **name,
                          pnb_error *err)
{
    json_t *root = NULL;
    pnb_status status = pnb__set_extra(&root, set, row, err);
    const json_t *number = json_object_get(root, "label");
    const char *text = json_string_value(json_object_get(root, "class"));
    *label = json_is_integer(number) ? json_integer_value(number) : -1;
    *name = NULL;
    if (text == NULL)
        text = json_string_value(number);
    if (text != NULL && (*name = pnb__strdup(text)) == NULL)
        status = pnb__fail_nomem(err, strlen(text));
    json_decref(root);
    return status;
}

/* ---- numbering ---- */

/* True when `text` fills a whole number from 0. */
static bool read_number(const char *text, int64_t *out)
{
    return pnb__read_int(text, out) && *out >= 0;
}

/* The text of a line: what is a class's name is that, also where it looks like a number. */
static void take_label(char **text, const pnb__name_index *names, given *g)
{
    bool is_shared;
    size_t place = pnb__name_find(names, *text, &is_shared);
    if (place != SIZE_MAX && !is_shared) {
        g->number = (int64_t)place;
        return;
    }
    if (read_number(*text, &g->number))
        return;
    g->number = -1;
    g->name = *text;
    *text = NULL;
}

static pnb_status read_labels(const pnb_embeddings *set, const char *path,
                              const pnb__name_index *names, given *g, pnb_error *err)
{
    char **text = NULL;
    pnb_status status = PNB_ALLOC_ZERO(text, set->n, err);
    if (status == PNB_OK)
        status = pnb__id_file_read(set, path, "class", text, err);
    for (size_t i = 0; text != NULL && i < set->n; i++) {
        if (status == PNB_OK && text[i] != NULL)
            take_label(&text[i], names, &g[i]);
        pnb__free(text[i]);
    }
    pnb__free(text);
    return status;
}

static pnb_status read_rows(const pnb_embeddings *set, given *g, pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < set->n && status == PNB_OK; i++)
        status = pnb__row_class(set, i, &g[i].number, &g[i].name, err);
    return status;
}

/* Numbers by name into label; the first row whose name is unknown or shared is told by *bad. */
static bool number_by_name(const given *g, size_t n, const pnb__name_index *names, int32_t *label,
                           size_t *bad)
{
    bool is_shared;
    for (size_t i = 0; i < n; i++) {
        size_t at = g[i].name != NULL ? pnb__name_find(names, g[i].name, &is_shared) : SIZE_MAX;
        label[i] = at != SIZE_MAX ? (int32_t)at : -1;
        if (g[i].name != NULL && (at == SIZE_MAX || is_shared)) {
            *bad = i;
            return false;
        }
    }
    return true;
}

static pnb_status number_by_number(const pnb_embeddings *set, const given *g, size_t n_classes,
                                   int32_t *label, pnb_error *err)
{
    for (size_t i = 0; i < set->n; i++) {
        if (g[i].number >= (int64_t)n_classes)
            return pnb__fail(
                err, PNB_ARG, "picture \"%s\" has label %lld; there are %zu classes, 0 to %zu",
                pnb__row_name(set, i), (long long)g[i].number, n_classes, n_classes - 1);
        if (label[i] < 0)
            label[i] = (int32_t)g[i].number;
    }
    return PNB_OK;
}

/* Whether the rows' own numbers may be taken: all that have a name have one, of as many classes. */
static bool has_numbers(const pnb__class_source *s, const given *g, size_t n_classes)
{
    for (size_t i = 0; i < s->set->n; i++)
        if (g[i].name != NULL && g[i].number < 0)
            return false;
    return s->classes.n == 0 || s->classes.n == n_classes;
}

static pnb_status resolve(pnb__class_source *s, const given *g, const pnb__name_index *names,
                          pnb_error *err)
{
    const pnb_embeddings *set = s->set;
    size_t bad = 0;
    bool by_name = number_by_name(g, set->n, names, s->label, &bad), is_shared = false;
    if (!by_name && has_numbers(s, g, names->n)) {
        for (size_t i = 0; i < set->n; i++)
            s->label[i] = -1;
        by_name = true;
    }
    if (by_name)
        return number_by_number(set, g, names->n, s->label, err);
    pnb__name_find(names, g[bad].name, &is_shared);
    return pnb__fail(err, is_shared ? PNB_ARG : PNB_NOT_FOUND,
                     is_shared ? "picture \"%s\" is of class \"%s\", a name that two classes share"
                               : "picture \"%s\" is of class \"%s\", which is none of the class "
                                 "names",
                     pnb__row_name(set, bad), g[bad].name);
}

pnb_status pnb__class_source_label(pnb__class_source *s, const pnb__texts *classes,
                                   const char *labels, pnb_error *err)
{
    size_t n = s->set->n;
    given *g = pnb__alloc_zero(n, sizeof *g);
    pnb__name_index names = {0};
    pnb_status status = PNB_OK;
    s->label = pnb__alloc_array(n, sizeof *s->label);
    if (g == NULL || s->label == NULL)
        PNB_TRY(pnb__fail_nomem(err, n * sizeof *g));
    for (size_t i = 0; i < n; i++)
        g[i].number = -1;
    PNB_TRY(pnb__name_index_make(&names, classes, err));
    if (labels != NULL)
        PNB_TRY(read_labels(s->set, labels, &names, g, err));
    else
        PNB_TRY(read_rows(s->set, g, err));
    status = resolve(s, g, &names, err);
done:
    pnb__name_index_reset(&names);
    free_given(g, n);
    return status;
}
