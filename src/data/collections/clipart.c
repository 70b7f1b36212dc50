/* Open Clip Art of openclipart-svg and openclipart-png: 8,121 names of 7,458 drawings in 165
 * folders. Texts come from the metadata of the SVG (src/io/svg), levels 0 and 1 from the folders.
 *
 * A link gives its target one more category. Icon themes (folders that end in "-theme") and the
 * 1,378 stars of one program are left out unless asked for: thousands of near-copies with the name
 * of their theme for a title. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/map.h"
#include "data/collections/clipart_title.h"
#include "data/collections/collection.h"
#include "data/collections/collection_files.h"
#include "io/json/json.h"
#include "io/svg/svg_facts.h"

static const char DEFAULT_ROOT[] = "/usr/share/openclipart";
static const char INSTALL[] = "`tools/install-deps --data clipart`";
enum { FOREIGN_TITLES = 3, FOREIGN_SHARE = 30 };

/* What is read of a drawing before it is known who else has its title. */
typedef struct drawing {
    pnb__svg_facts facts;
    bool is_read;
    size_t *places; /* names it goes by: its own and links */
    size_t n_places;
    size_t n_carriers;
    bool is_creator_foreign;
} drawing;

typedef struct reading {
    pnb__collection *c;
    pnb__collection_files files;
    drawing *drawings; /* [files.n], those of targets are filled */
    const char *png_root;
    char *svg_root;
} reading;

static const char *text_or_empty(const char *text)
{
    return text != NULL ? text : "";
}

/* ---- folders ---- */

static bool is_wanted_name(const pnb_collection_opts *o, const char *name)
{
    if (!o->icon_themes && strstr(name, "-theme/") != NULL)
        return false;
    return o->stars || !pnb__starts_with(name, "shapes/stars/");
}

/* Some of its names is one that is asked for; links out of a theme do not count. */
static bool is_wanted(const reading *r, size_t place)
{
    return is_wanted_name(r->c->opts, r->files.items[place].name);
}

/* Folder names as words; "unsorted" and the like say nothing. */
static pnb_status add_folders(reading *r, pnb__collected *item, const char *name, pnb_error *err)
{
    int level = 0;
    for (const char *end; (end = strchr(name, '/')) != NULL; name = end + 1) {
        char word[PNB__TITLE_MAX + 1], *folder = pnb__strndup(name, (size_t)(end - name));
        if (folder == NULL)
            return pnb__fail_nomem(err, 0);
        pnb__keyword_clean(folder, NULL, word);
        pnb__free(folder);
        pnb_status status = word[0] ? pnb__text_add(r->c, item, word, level, false, err) : PNB_OK;
        if (status != PNB_OK)
            return status;
        level = 1;
    }
    return PNB_OK;
}

/* ---- reading all ---- */

static pnb_status read_drawing(reading *r, size_t place, pnb_error *err)
{
    const char *name = r->files.items[place].name;
    pnb_error why = PNB_ERROR_INIT;
    char *path = pnb__path_join(r->files.root, name), *bytes = NULL;
    size_t n = 0;
    if (path == NULL)
        return pnb__fail_nomem(err, strlen(name));
    pnb_status status = pnb__collection_read_file(path, &bytes, &n, &why);
    if (status == PNB_OK)
        status = pnb__svg_read(&r->drawings[place].facts, bytes, n, &why);
    if (status == PNB_OK && r->drawings[place].facts.is_incomplete)
        status = pnb__fail(&why, PNB_FORMAT, "SVG: it links to a picture in another file");
    pnb__free(bytes);
    pnb__free(path);
    r->drawings[place].is_read = status == PNB_OK;
    if (status == PNB_NOMEM || status == PNB_UNSUPPORTED)
        return pnb__fail(err, status, "%s", why.text);
    if (status != PNB_OK)
        pnb__collection_skip(r->c, name, why.text);
    return PNB_OK;
}

static pnb_status gather_names(reading *r, pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < r->files.n && status == PNB_OK; i++) {
        size_t target = r->files.items[i].target;
        if (target == SIZE_MAX || !pnb__ends_with(r->files.items[i].name, ".svg"))
            continue;
        r->c->stats->n_found += target == i;
        r->c->stats->n_links += target != i;
        if (!is_wanted(r, target)) {
            r->c->stats->n_optional += target == i;
            continue;
        }
        drawing *d = &r->drawings[target];
        status = PNB_PUSH(d->places, d->n_places, err, i);
    }
    for (size_t i = 0; i < r->files.n && status == PNB_OK; i++)
        if (r->drawings[i].n_places > 0)
            status = read_drawing(r, i, err);
    return status;
}

/* ---- what other files say: who shares a title, who writes another language ---- */

static uint64_t hash_of(const drawing *d, bool with_title)
{
    uint64_t hash = pnb__hash_bytes(text_or_empty(d->facts.creator),
                                    strlen(text_or_empty(d->facts.creator)), 0);
    const char *title = text_or_empty(d->facts.title);
    return with_title ? pnb__hash_bytes(title, strlen(title), hash) : hash;
}

typedef struct counted {
    uint64_t hash;
    size_t n, n_foreign;
} counted;

static int by_hash(const void *a, const void *b)
{
    const counted *x = a, *y = b;
    return (x->hash > y->hash) - (x->hash < y->hash);
}

/* Sorted and summed by hash. */
static size_t sum_up(counted *list, size_t n)
{
    size_t n_out = 0;
    qsort(list, n, sizeof *list, by_hash);
    for (size_t i = 0; i < n; i++) {
        if (n_out > 0 && list[n_out - 1].hash == list[i].hash) {
            list[n_out - 1].n += list[i].n;
            list[n_out - 1].n_foreign += list[i].n_foreign;
        } else {
            list[n_out++] = list[i];
        }
    }
    return n_out;
}

static pnb_status compare_all(reading *r, pnb_error *err)
{
    counted *list = NULL;
    pnb_status status = PNB_ALLOC(list, r->files.n + 1, err);
    for (int with_title = 0; with_title < 2 && status == PNB_OK; with_title++) {
        size_t n = 0;
        for (size_t i = 0; i < r->files.n; i++)
            if (r->drawings[i].is_read)
                list[n++] =
                    (counted){hash_of(&r->drawings[i], with_title), 1,
                              pnb__title_is_foreign(text_or_empty(r->drawings[i].facts.title))};
        n = sum_up(list, n);
        for (size_t i = 0; i < r->files.n; i++) {
            drawing *d = &r->drawings[i];
            counted key = {.hash = d->is_read ? hash_of(d, with_title) : 0};
            counted *found = d->is_read ? bsearch(&key, list, n, sizeof *list, by_hash) : NULL;
            if (found != NULL && with_title)
                d->n_carriers = found->n;
            else if (found != NULL)
                d->is_creator_foreign = d->facts.creator != NULL &&
                                        found->n_foreign >= FOREIGN_TITLES &&
                                        found->n_foreign * FOREIGN_SHARE >= found->n;
        }
    }
    pnb__free(list);
    return status;
}

/* ---- captions ---- */

static bool is_sensitive(const reading *r, const drawing *d)
{
    bool is = pnb__is_sensitive_text(d->facts.title);
    for (size_t i = 0; i < d->n_places; i++)
        is |= pnb__is_sensitive_text(r->files.items[d->places[i]].name);
    for (size_t i = 0; i < d->facts.n_subjects; i++)
        is |= pnb__is_sensitive_text(d->facts.subjects[i]);
    return is;
}

static pnb_status add_keywords(reading *r, pnb__collected *item, const drawing *d, pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < d->facts.n_subjects && status == PNB_OK; i++) {
        char word[PNB__TITLE_MAX + 1];
        const char *raw = d->facts.subjects[i];
        pnb__keyword_clean(raw, d->facts.creator, word);
        if (r->c->opts->noisy)
            status = pnb__text_add(r->c, item, raw, 2, word[0] == '\0', err);
        else if (word[0])
            status = pnb__text_add(r->c, item, word, 2, false, err);
    }
    return status;
}

/* The record's own fields: where the title comes from, and everything as it stands in the file. */
static const char *record_of(reading *r, const drawing *d, const char *kind, const char *from,
                             pnb_error *err)
{
    pnb__buf b = {0};
    pnb__json_put(&b,
                  ", \"raw_title\": %s, \"title_kind\": %s, \"title_from\": %s, \"author\": %s, "
                  "\"language\": %s, \"keywords\": [",
                  text_or_empty(d->facts.title), kind, from, text_or_empty(d->facts.creator),
                  text_or_empty(d->facts.language));
    for (size_t i = 0; i < d->facts.n_subjects; i++) {
        pnb__buf_puts(&b, i > 0 ? ", " : "");
        pnb__json_append_string(&b, d->facts.subjects[i]);
    }
    pnb__buf_puts(&b, "]");
    const char *kept = b.failed ? NULL : pnb__keep_text(r->c, b.data, b.size);
    if (kept == NULL)
        (void)pnb__fail_nomem(err, b.size);
    pnb__buf_reset(&b);
    return kept;
}

static pnb_status add_title(reading *r, pnb__collected *item, const drawing *d, pnb_error *err)
{
    static const char *const kinds[] = {
#define KIND(NAME, text) text,
        PNB__TITLE_LIST(KIND)
#undef KIND
    };
    const pnb__title_facts facts = {.title = d->facts.title,
                                    .creator = d->facts.creator,
                                    .language = d->facts.language,
                                    .file = item->file,
                                    .keywords = (const char *const *)d->facts.subjects,
                                    .n_keywords = d->facts.n_subjects,
                                    .n_carriers = d->n_carriers,
                                    .is_creator_foreign = d->is_creator_foreign};
    char title[PNB__TITLE_MAX + 1];
    const char *from = "title", *raw = d->facts.title;
    pnb_status status = PNB_OK;
    pnb__title_kind kind = pnb__title_clean(&facts, title);
    r->c->stats->n_titles[kind]++;
    if (kind != PNB__TITLE_DESCRIBES) {
        from = pnb__title_of_file(&facts, title) == PNB__TITLE_DESCRIBES ? "file" : "none";
        r->c->stats->n_from_file += from[0] == 'f';
    }
    if (r->c->opts->noisy && raw != NULL)
        status = pnb__text_add(r->c, item, raw, 3, kind != PNB__TITLE_DESCRIBES, err);
    else if (!r->c->opts->noisy && title[0])
        status = pnb__text_add(r->c, item, title, 3, false, err);
    /* The best name there is: keywords stand behind folders. */
    const char *last = item->n_texts > 0 ? item->texts[item->n_texts - 1].text : "";
    item->name = pnb__keep_text(r->c, title[0] ? title : last, strlen(title[0] ? title : last));
    item->more = record_of(r, d, kinds[kind], from, err);
    if (status == PNB_OK && (item->name == NULL || item->more == NULL))
        status = pnb__fail_nomem(err, 0);
    return status;
}

static pnb_status add_drawing(reading *r, size_t place, pnb_error *err)
{
    drawing *d = &r->drawings[place];
    const char *name = r->files.items[place].name;
    pnb__collected item = {.style = "clipart"};
    pnb_status status = PNB_OK;
    if (!d->is_read)
        return PNB_OK;
    if (!r->c->opts->sensitive && is_sensitive(r, d)) {
        r->c->stats->n_sensitive++;
        return PNB_OK;
    }
    item.key = pnb__keep_format(r->c, "clip-%05zu", place);
    item.file = pnb__keep_text(r->c, name, strlen(name));
    item.refused = d->facts.refused;
    item.png = pnb__keep_format(r->c, "%s/%.*s.png", r->png_root, (int)strlen(name) - 4, name);
    item.svg =
        d->facts.refused == NULL ? pnb__keep_format(r->c, "%s/%s", r->files.root, name) : NULL;
    if (!item.key || !item.file || !item.png || (!item.svg && !d->facts.refused))
        return pnb__fail_nomem(err, strlen(name));
    for (size_t i = 0; i < d->n_places; i++)
        PNB_TRY(add_folders(r, &item, r->files.items[d->places[i]].name, err));
    item.group = item.n_texts > 0 ? item.texts[0].text : "unsorted";
    item.subgroup = item.group;
    for (size_t i = item.n_texts; i-- > 0;) /* the first of its kind */
        *(item.texts[i].level == 0 ? &item.group : &item.subgroup) = item.texts[i].text;
    PNB_TRY(add_keywords(r, &item, d, err));
    PNB_TRY(add_title(r, &item, d, err));
    if (item.n_texts == 0) {
        r->c->stats->n_wordless++;
        goto done;
    }
    status = PNB_PUSH(r->c->items, r->c->n, err, item);
    if (status == PNB_OK)
        return PNB_OK;
done:
    pnb__collected_reset(&item);
    return status;
}

static pnb_status find_packages(const reading *r, const char *root, pnb_error *err)
{
    bool has_svg = pnb__path_is_dir(r->svg_root), has_png = pnb__path_is_dir(r->png_root);
    if (has_svg && has_png)
        return PNB_OK;
    if (!has_svg && !has_png)
        return pnb__fail(err, PNB_NOT_FOUND,
                         "%s has no folders svg and png: Open Clip Art is not there; run %s", root,
                         INSTALL);
    return pnb__fail(err, PNB_NOT_FOUND,
                     "%s has %s but no folder %s: one package of two is missing; run %s (or "
                     "apt-get install openclipart-%s)",
                     root, has_svg ? "svg" : "png", has_svg ? "png" : "svg", INSTALL,
                     has_svg ? "png" : "svg");
}

static void reset_reading(reading *r)
{
    for (size_t i = 0; r->drawings != NULL && i < r->files.n; i++) {
        pnb__svg_facts_reset(&r->drawings[i].facts);
        pnb__free(r->drawings[i].places);
    }
    pnb__free(r->drawings);
    pnb__collection_files_free(&r->files);
    pnb__free(r->svg_root);
}

pnb_status pnb__clipart_read(pnb__collection *c, pnb_error *err)
{
    const char *root = c->opts->clipart != NULL ? c->opts->clipart : DEFAULT_ROOT;
    reading r = {.c = c};
    size_t n_before = c->n;
    pnb_status status;
    PNB_TRY(pnb__svg_check(err));
    r.svg_root = pnb__path_join(root, "svg");
    r.png_root = pnb__keep_format(c, "%s/png", root);
    if (r.svg_root == NULL || r.png_root == NULL)
        PNB_TRY(pnb__fail_nomem(err, strlen(root)));
    PNB_TRY(find_packages(&r, root, err));
    PNB_TRY(pnb__collection_files_find(&r.files, r.svg_root, &c->stats->n_broken_links, err));
    PNB_TRY(PNB_ALLOC_ZERO(r.drawings, r.files.n + 1, err));
    PNB_TRY(gather_names(&r, err));
    PNB_TRY(compare_all(&r, err));
    for (size_t i = 0; i < r.files.n; i++)
        if (r.drawings[i].n_places > 0)
            PNB_TRY(add_drawing(&r, i, err));
    if (c->n == n_before)
        status = pnb__fail(err, PNB_FORMAT, "%s: not one drawing with a caption among %zu files%s",
                           r.svg_root, r.files.n,
                           r.files.n == 0 ? ": the package is not installed whole; run "
                                            "`tools/install-deps --data clipart`"
                                          : "");
done:
    reset_reading(&r);
    return status;
}
