/* Reads any truth file and joins it with the rows of two sets.
 *
 * A reader makes a catalogue of pictures and captions; here each entry is looked for among the
 * rows, by its names in their order, a caption also as "picture#2" and by its text. A set whose
 * rows have no names (ids are the row numbers) is taken in the file's order when the numbers agree
 * and no caption contradicts. What is in no row is counted and left out. */
#include <string.h>

#include "base/grow.h"
#include "base/names.h"
#include "data/sources/dataset_internal.h"
#include "io/image/formats/codec.h"
#include "penumbra/embeddings.h"
#include "truth/ground_truth.h"
#include "truth/id_resolver.h"

PNB_DEFINE_NAME(pnb_truth_format_name, pnb_truth_format, PNB_NAMES(PNB_TRUTH_FORMAT_LIST),
                "unknown")

pnb_truth_read_opts pnb_truth_read_opts_default(void)
{
    return (pnb_truth_read_opts){.format = PNB_TRUTH_AUTO};
}

void pnb_truth_report_reset(pnb_truth_report *report)
{
    if (report == NULL)
        return;
    pnb__free(report->image_named);
    pnb__free(report->text_named);
    pnb__free(report->text_level);
    pnb__free(report->image_row);
    *report = (pnb_truth_report){0};
}

/* ---- which format ---- */

static bool is_text(const char *name)
{
    return pnb__ends_with(name, ".txt");
}

/* *found: a folder `depth` levels below `dir` holds a file of that kind of name. A folder that
 * cannot be read holds none. Errors  NOMEM */
static pnb_status holds(const char *dir, bool (*is_kind)(const char *), int depth, bool *found,
                        pnb_error *err)
{
    pnb__paths names = {0};
    pnb_error why = PNB_ERROR_INIT;
    *found = false;
    pnb_status status = pnb__list_dir(&names, dir, &why);
    for (size_t i = 0; i < names.n && !*found && status == PNB_OK; i++) {
        if (!pnb__path_has_dir(dir, names.items[i])) {
            *found = depth == 0 && is_kind(names.items[i]);
        } else if (depth > 0) {
            char *path = pnb__path_join(dir, names.items[i]);
            status = path == NULL ? PNB_NOMEM : holds(path, is_kind, depth - 1, found, &why);
            pnb__free(path);
        }
    }
    pnb__paths_free(&names);
    return status == PNB_NOMEM ? pnb__fail_nomem(err, strlen(dir)) : PNB_OK;
}

static pnb_status detect_folder(const char *path, pnb_truth_format *format, pnb_error *err)
{
    bool has_texts = pnb__path_has_dir(path, "text_c10"), has_images = false;
    pnb_status status = PNB_OK;
    if (!has_texts) {
        PNB_TRY(holds(path, pnb__image_is_named, 1, &has_images, err));
        if (!has_images)
            PNB_TRY(holds(path, is_text, 1, &has_texts, err));
    }
    *format = has_texts ? PNB_TRUTH_FOLDERS : PNB_TRUTH_DATASET;
done:
    return status;
}

static bool file_contains(const char *path, const char *part)
{
    pnb__map map = {0};
    bool found = false;
    if (pnb__map_open(&map, path, NULL) != PNB_OK)
        return false;
    size_t n = strlen(part), n_looked = PNB_MIN(map.size, (size_t)1 << 16);
    for (size_t i = 0; i + n <= n_looked && !found; i++)
        found = memcmp(map.data + i, part, n) == 0;
    pnb__map_close(&map);
    return found;
}

/* AUTO stays for JSON: its reader tells by the keys. */
static pnb_truth_format detect_file(const char *path)
{
    if (pnb__is_shard_name(path) || pnb__is_table_name(path) || strstr(path, "::") != NULL ||
        strchr(path, '{') != NULL)
        return PNB_TRUTH_DATASET;
    if (pnb__ends_with(path, ".json"))
        return PNB_TRUTH_AUTO;
    if (pnb__ends_with(path, ".token") || pnb__ends_with(path, ".token.txt"))
        return PNB_TRUTH_TOKENS;
    if (pnb__ends_with(path, "_ids.txt"))
        return PNB_TRUTH_PRECOMP;
    if (pnb__ends_with(path, ".csv") && file_contains(path, "=>"))
        return PNB_TRUTH_HIERARCAPS;
    return PNB_TRUTH_PAIRS;
}

/* A folder of tars is the data set of its tars in the order of their numbers. */
static pnb_status tars_of(const char *path, char **spec, pnb_error *err)
{
    pnb__paths names = {0};
    pnb__buf text = {0};
    pnb_status status = PNB_OK;
    *spec = NULL;
    bool has_shards = false;
    if (pnb__path_is_dir(path))
        PNB_TRY(holds(path, pnb__is_shard_name, 0, &has_shards, err));
    if (!has_shards)
        return PNB_OK;
    PNB_TRY(pnb__list_dir(&names, path, err));
    size_t longest = 0;
    for (size_t i = 0; i < names.n; i++)
        longest = PNB_MAX(longest, strlen(names.items[i]));
    for (size_t n = 0; n <= longest; n++) /* names are sorted: 0.tar ... 9.tar before 10.tar */
        for (size_t i = 0; i < names.n; i++)
            if (strlen(names.items[i]) == n && pnb__is_shard_name(names.items[i]))
                pnb__buf_printf(&text, "%s%s/%s", text.size > 0 ? "::" : "", path, names.items[i]);
    *spec = text.failed ? NULL : pnb__strdup(text.data);
    if (*spec == NULL)
        status = pnb__fail_nomem(err, text.size);
done:
    pnb__paths_free(&names);
    pnb__buf_reset(&text);
    return status;
}

/* ---- joining ---- */

typedef struct join {
    const char *path;
    bool texts_ask; /* id lists: the keys are captions */
    pnb__ground_truth *c;
    pnb__id_resolver images, texts;
    int64_t *image_row, *text_row; /* of each entry of the catalogue, -1: in no row */
    pnb_truth_report report;
    int64_t *pairs;
    size_t n_pairs;
} join;

/* Tries the names in order; an ambiguous one counts only when no other is found. */
static pnb_status find_first(const pnb__id_resolver *names, const char *const *tried, size_t n,
                             int64_t *row, pnb_error *err)
{
    pnb_error ambiguous = PNB_ERROR_INIT;
    for (size_t i = 0; i < n; i++) {
        pnb_error problem = PNB_ERROR_INIT;
        if (pnb__id_resolver_find(names, tried[i], row, &problem) == PNB_OK && *row >= 0)
            return PNB_OK;
        if (problem.status != PNB_OK)
            ambiguous = problem;
    }
    *row = -1;
    return ambiguous.status == PNB_OK ? PNB_OK
                                      : pnb__fail(err, ambiguous.status, "%s", ambiguous.text);
}

/* Forms of a picture's names with `tail` behind each: as they are, then without their folder, then
 * without their ending. */
enum { N_FORMS = 9 };
typedef struct name_forms {
    char text[N_FORMS][512];
    const char *tried[N_FORMS + 1]; /* [0] is left for a stronger name */
    size_t n;
} name_forms;

static void add_form(name_forms *f, const char *name, size_t n, const char *tail)
{
    char *text = f->text[f->n];
    int length = snprintf(text, sizeof f->text[0], "%.*s%s", (int)n, name, tail);
    if (n > 0 && length > 0 && (size_t)length < sizeof f->text[0]) {
        f->tried[1 + f->n] = text;
        f->n++;
    }
}

static void make_forms(const join *j, const pnb__image *p, const char *tail, name_forms *f)
{
    f->n = 0;
    for (int form = 0; form < 3; form++)
        for (size_t i = 0; i < PNB_COUNT(p->name); i++) {
            const char *name = pnb__ground_truth_get(j->c, p->name[i]);
            const char *shown = form == 0 ? name : pnb__path_base(name);
            size_t n = strlen(shown), n_stem = pnb__without_ending(shown, n);
            if (form == 0 || (form == 1 && shown != name) || (form == 2 && n_stem < n))
                add_form(f, shown, form == 2 ? n_stem : n, tail);
        }
}

static pnb_status find_image(const join *j, const pnb__image *p, int64_t *row, pnb_error *err)
{
    name_forms forms;
    make_forms(j, p, "", &forms);
    return find_first(&j->images, forms.tried + 1, forms.n, row, err);
}

static pnb_status find_text(join *j, const pnb__text_ref *text, int64_t *row, pnb_error *err)
{
    name_forms forms = {.n = 0};
    char tail[32];
    pnb_error ambiguous = PNB_ERROR_INIT;
    snprintf(tail, sizeof tail, "#%zu", text->place);
    if (text->owner != PNB__NO_OWNER)
        make_forms(j, &j->c->image[text->owner], tail, &forms);
    bool has_id = text->id != 0;
    forms.tried[0] = pnb__ground_truth_get(j->c, text->id);
    pnb_status status =
        find_first(&j->texts, forms.tried + !has_id, forms.n + has_id, row, &ambiguous);
    if (*row < 0 && text->text != 0)
        *row = pnb__id_resolver_take_text(&j->texts, pnb__ground_truth_get(j->c, text->text));
    return *row >= 0 || status == PNB_OK ? PNB_OK : pnb__fail(err, status, "%s", ambiguous.text);
}

/* Unnamed captions may stand in the file's order unless one of them says otherwise. */
static bool texts_agree(const join *j)
{
    const pnb_truth_rows *rows = j->texts.rows;
    for (size_t i = 0; rows->texts != NULL && i < rows->n; i++) {
        size_t n = 0;
        if (rows->texts[i] == NULL || j->c->text[i].text == 0)
            continue;
        const char *text = pnb__trimmed(rows->texts[i], strlen(rows->texts[i]), &n);
        const char *wanted = pnb__ground_truth_get(j->c, j->c->text[i].text);
        if (strlen(wanted) != n || memcmp(wanted, text, n) != 0)
            return false;
    }
    return true;
}

static pnb_status find_rows(join *j, pnb_error *err)
{
    pnb_truth_report *r = &j->report;
    const pnb__ground_truth *c = j->c;
    /* lists of ids have no order to go by */
    bool ordered = r->format != PNB_TRUTH_ID_LISTS;
    r->images_by_order = ordered && j->images.unnamed && j->images.rows->n == c->n_images;
    r->texts_by_order =
        ordered && j->texts.unnamed && j->texts.rows->n == c->n_texts && texts_agree(j);
    for (size_t i = 0; i < c->n_images; i++) {
        pnb_status status = PNB_OK;
        j->image_row[i] = (int64_t)i;
        if (!r->images_by_order)
            status = find_image(j, &c->image[i], &j->image_row[i], err);
        if (status != PNB_OK)
            return status;
        r->n_absent_images += j->image_row[i] < 0;
    }
    for (size_t i = 0; i < c->n_texts; i++) {
        pnb_status status = PNB_OK;
        j->text_row[i] = (int64_t)i;
        if (!r->texts_by_order)
            status = find_text(j, &c->text[i], &j->text_row[i], err);
        if (status != PNB_OK)
            return status;
        r->n_absent_texts += j->text_row[i] < 0;
    }
    return PNB_OK;
}

static pnb_status add_pair(join *j, size_t image_place, size_t text_place, pnb_error *err)
{
    int64_t image = j->image_row[image_place], text = j->text_row[text_place];
    if (image < 0 || text < 0)
        return PNB_OK;
    pnb_status status = pnb__grow_one(&j->pairs, j->n_pairs, 2 * sizeof *j->pairs, err);
    if (status != PNB_OK)
        return status;
    j->pairs[2 * j->n_pairs] = image;
    j->pairs[2 * j->n_pairs++ + 1] = text;
    return PNB_OK;
}

/* Pictures of a class stand together in the catalogue. */
static pnb_status add_class_pairs(join *j, size_t text, pnb_error *err)
{
    const pnb__ground_truth *c = j->c;
    size_t first = c->text[text].owner, last = first;
    int64_t group = c->image[first].group;
    while (first > 0 && c->image[first - 1].group == group)
        first--;
    while (last + 1 < c->n_images && c->image[last + 1].group == group)
        last++;
    pnb_status status = PNB_OK;
    for (size_t p = first; status == PNB_OK && p <= last; p++)
        status = add_pair(j, p, text, err);
    return status;
}

static pnb_status make_pairs(join *j, bool by_class, pnb_error *err)
{
    const pnb__ground_truth *c = j->c;
    pnb_status status = PNB_OK;
    for (size_t i = 0; status == PNB_OK && i < c->n_texts; i++) {
        size_t owner = c->text[i].owner;
        if (owner == PNB__NO_OWNER)
            continue;
        if (by_class && c->image[owner].group >= 0)
            status = add_class_pairs(j, i, err);
        else
            status = add_pair(j, owner, i, err);
    }
    for (size_t i = 0; status == PNB_OK && i < c->n_pairs; i++)
        status = add_pair(j, (size_t)c->pair[2 * i], (size_t)c->pair[2 * i + 1], err);
    return status;
}

/* What the first row is called. */
static const char *name_of_row(const pnb_truth_rows *rows)
{
    return rows->n > 0 && rows->ids != NULL && rows->ids[0] != NULL ? rows->ids[0] : "0";
}

/* Says by an example what did not fit: a caption where none was found, else a picture. */
static pnb_status fail_without_pairs(const join *j, pnb_error *err)
{
    const pnb__ground_truth *c = j->c;
    const pnb_truth_report *r = &j->report;
    bool by_text =
        c->n_texts > 0 && r->n_absent_texts == c->n_texts && r->n_absent_images < c->n_images;
    const char *example = "";
    if (c->n_images == 0 && c->n_texts == 0)
        return pnb__fail(err, PNB_ARG,
                         "%s (%s): no pair fits the sets: it names no picture and no caption",
                         j->path, pnb_truth_format_name(r->format));
    if (by_text)
        example = pnb__ground_truth_get(c, c->text[0].id != 0 ? c->text[0].id : c->text[0].text);
    else if (c->n_images > 0)
        example = pnb__ground_truth_get(c, c->image[0].name[0]);
    return pnb__fail(
        err, PNB_ARG,
        "%s (%s): no pair fits the sets: %zu of its %zu pictures and %zu of its %zu "
        "captions are in no row. A %s of the file is called '%.80s', one of the "
        "set '%.80s'; it looks like the truth of another split or data set%s",
        j->path, pnb_truth_format_name(r->format), r->n_absent_images, c->n_images,
        r->n_absent_texts, c->n_texts, by_text ? "caption" : "picture", example,
        name_of_row(by_text ? j->texts.rows : j->images.rows),
        r->format == PNB_TRUTH_KARPATHY ? " (ask for the split that the sets were made of)" : "");
}

/* Last, for the rows of the pictures go with the report. */
static pnb_status fill_report(join *j, pnb_error *err)
{
    pnb_truth_report *r = &j->report;
    size_t n_images = j->images.rows->n, n_texts = j->texts.rows->n;
    r->n_images = j->c->n_images;
    r->n_texts = j->c->n_texts;
    if (PNB_ALLOC_ZERO(r->image_named, PNB_MAX(n_images, 1), err) != PNB_OK ||
        PNB_ALLOC_ZERO(r->text_named, PNB_MAX(n_texts, 1), err) != PNB_OK ||
        PNB_ALLOC(r->text_level, PNB_MAX(n_texts, 1), err) != PNB_OK)
        return PNB_NOMEM;
    for (size_t i = 0; i < n_texts; i++)
        r->text_level[i] = -1;
    for (size_t i = 0; i < r->n_images; i++)
        if (j->image_row[i] >= 0)
            r->image_named[j->image_row[i]] = 1;
    for (size_t i = 0; i < r->n_texts; i++)
        if (j->text_row[i] >= 0) {
            r->text_named[j->text_row[i]] = 1;
            r->text_level[j->text_row[i]] = j->c->text[i].level;
        }
    r->has_coco_ids = r->format == PNB_TRUTH_KARPATHY && j->c->image[0].name[1] != 0;
    r->image_row = j->image_row;
    j->image_row = NULL;
    return PNB_OK;
}

/* Lists of ids name items that no row has: they stay in R of the row that asks (see pnb_truth). */
static pnb_status count_outside(const join *j, pnb_truth *truth, pnb_error *err)
{
    const pnb__ground_truth *c = j->c;
    size_t n = j->texts_ask ? truth->n_items : truth->n_queries;
    size_t *counts = pnb__alloc_zero(PNB_MAX(n, 1), sizeof *counts);
    if (counts == NULL)
        return pnb__fail_nomem(err, n * sizeof *counts);
    for (size_t i = 0; i < c->n_pairs; i++) {
        int64_t image = j->image_row[c->pair[2 * i]], text = j->text_row[c->pair[2 * i + 1]];
        int64_t asks = j->texts_ask ? text : image, found = j->texts_ask ? image : text;
        if (asks >= 0 && found < 0)
            counts[asks]++;
    }
    if (j->texts_ask)
        truth->n_outside_items = counts;
    else
        truth->n_outside = counts;
    return PNB_OK;
}

static pnb_status join_rows(join *j, const pnb_truth_rows *images, const pnb_truth_rows *texts,
                            bool by_class, pnb_truth **out, pnb_error *err)
{
    pnb_status status;
    PNB_TRY(pnb__id_resolver_init(&j->images, PNB__NAMES_IMAGES, images, err));
    PNB_TRY(pnb__id_resolver_init(&j->texts, PNB__NAMES_TEXTS, texts, err));
    PNB_TRY(PNB_ALLOC(j->image_row, PNB_MAX(j->c->n_images, 1), err));
    PNB_TRY(PNB_ALLOC(j->text_row, PNB_MAX(j->c->n_texts, 1), err));
    PNB_TRY(find_rows(j, err));
    PNB_TRY(make_pairs(j, by_class, err));
    if (j->n_pairs == 0)
        PNB_TRY(fail_without_pairs(j, err));
    PNB_TRY(pnb_truth_create_pairs(out, images->n, texts->n, j->pairs, j->n_pairs, err));
    if (j->report.format == PNB_TRUTH_ID_LISTS)
        PNB_TRY(count_outside(j, *out, err));
    status = fill_report(j, err);
done:
    return status;
}

static void join_reset(join *j)
{
    pnb__id_resolver_reset(&j->images);
    pnb__id_resolver_reset(&j->texts);
    pnb_truth_report_reset(&j->report);
    pnb__free(j->image_row);
    pnb__free(j->text_row);
    pnb__free(j->pairs);
}

/* ---- files written for the very sets ---- */

/* Every row that has a match is named. */
static pnb_status report_truth(const pnb_truth *t, pnb_truth_format format, pnb_truth_report *r,
                               pnb_error *err)
{
    *r = (pnb_truth_report){.format = format};
    r->image_named = pnb__alloc_zero(t->n_queries, 1);
    r->text_named = pnb__alloc_zero(t->n_items, 1);
    r->text_level = pnb__alloc_array(t->n_items, sizeof *r->text_level);
    if (r->image_named == NULL || r->text_named == NULL || r->text_level == NULL) {
        pnb_truth_report_reset(r);
        return pnb__fail_nomem(err, t->n_queries + 5 * t->n_items);
    }
    for (size_t i = 0; i < t->n_items; i++)
        r->text_level[i] = -1;
    for (size_t q = 0; q < t->n_queries; q++)
        for (size_t p = t->offset[q]; p < t->offset[q + 1]; p++) {
            r->image_named[q] = 1;
            r->text_named[t->item[p]] = 1;
        }
    for (size_t q = 0; q < t->n_queries; q++)
        r->n_images += r->image_named[q];
    for (size_t i = 0; i < t->n_items; i++)
        r->n_texts += r->text_named[i];
    return PNB_OK;
}

static pnb_status read_plain(pnb_truth **out, const char *path, pnb_truth_format format,
                             const pnb_truth_rows *images, const pnb_truth_rows *texts,
                             pnb_error *err)
{
    if (format == PNB_TRUTH_LABELS)
        return pnb__read_truth_labels(out, path, images, texts, err);
    return pnb__read_truth_pairs(out, path, images, texts, err);
}

/* ---- public ---- */

static pnb_status fill_catalogue(pnb__ground_truth *c, const pnb__truth_source *s,
                                 pnb_truth_format *format, bool *texts_ask, pnb_error *err)
{
    switch (*format) {
    case PNB_TRUTH_TOKENS:
        return pnb__read_truth_tokens(c, s, err);
    case PNB_TRUTH_PRECOMP:
        return pnb__read_truth_precomp(c, s, err);
    case PNB_TRUTH_HIERARCAPS:
        return pnb__read_truth_hierarcaps(c, s, err);
    case PNB_TRUTH_FOLDERS:
        return pnb__read_truth_folders(c, s, err);
    case PNB_TRUTH_DATASET:
        return pnb__read_truth_dataset(c, s, err);
    default:
        return pnb__read_truth_json(c, s, format, texts_ask, err);
    }
}

pnb_status pnb_truth_read(pnb_truth **out, const char *path, const pnb_truth_rows *images,
                          const pnb_truth_rows *texts, const pnb_truth_read_opts *opts,
                          pnb_truth_report *report, pnb_error *err)
{
    pnb_truth_read_opts o = opts == NULL ? pnb_truth_read_opts_default() : *opts;
    pnb_truth_format format = o.format;
    pnb__ground_truth c = {0};
    join j = {.path = path, .c = &c};
    char *spec = NULL;
    pnb_status status = PNB_OK;
    *out = NULL;
    if (report != NULL)
        *report = (pnb_truth_report){0};
    if (format == PNB_TRUTH_AUTO && pnb__path_is_dir(path))
        PNB_TRY(detect_folder(path, &format, err));
    else if (format == PNB_TRUTH_AUTO)
        format = detect_file(path);
    bool has_splits =
        format == PNB_TRUTH_FOLDERS || format == PNB_TRUTH_KARPATHY || format == PNB_TRUTH_AUTO;
    if (o.split != NULL && !has_splits)
        return pnb__fail(err, PNB_ARG, "%s (%s) has no splits; leave the split '%s' out", path,
                         pnb_truth_format_name(format), o.split);
    if (format == PNB_TRUTH_PAIRS || format == PNB_TRUTH_LABELS) {
        PNB_TRY(read_plain(out, path, format, images, texts, err));
        if (report != NULL)
            PNB_TRY(report_truth(*out, format, report, err));
        return PNB_OK;
    }
    if (format == PNB_TRUTH_DATASET)
        PNB_TRY(tars_of(path, &spec, err));
    const pnb__truth_source source = {spec != NULL ? spec : path, &o};
    PNB_TRY(fill_catalogue(&c, &source, &format, &j.texts_ask, err));
    j.report.format = format;
    PNB_TRY(join_rows(&j, images, texts, o.by_class, out, err));
    if (report != NULL) {
        *report = j.report;
        j.report = (pnb_truth_report){0};
    }
done:
    if (status != PNB_OK) {
        pnb_truth_free(*out);
        *out = NULL;
    }
    join_reset(&j);
    pnb__ground_truth_reset(&c);
    pnb__free(spec);
    return status;
}
