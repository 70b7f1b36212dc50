/* Stamps of tuxpaint-stamps-default: photos (PNG) and drawings (SVG, and PNG below a folder
 * `cartoon` or `symbols`), a sentence in English each with translations (src/io/tables/stamp_text).
 *
 * Levels 0 to 2 are the folders, 3 the sentence. With a language other than English there are the
 * sentences of that language alone: folders have no translation, and captions of two languages are
 * not mixed. NAME_mirror.png and .ogg belong to a stamp and are none themselves. */
#include <string.h>

#include "base/grow.h"
#include "data/collections/collection.h"
#include "data/collections/collection_files.h"
#include "io/json/json.h"
#include "io/svg/svg_facts.h"
#include "io/tables/stamp_text.h"

static const char DEFAULT_ROOT[] = "/usr/share/tuxpaint/stamps";

typedef struct reading {
    pnb__collection *c;
    pnb__collection_files files;
} reading;

static pnb_status add_folders(pnb__collection *c, pnb__collected *item, const char *name,
                              pnb_error *err)
{
    int level = 0;
    for (const char *end; (end = strchr(name, '/')) != NULL; name = end + 1) {
        size_t n = (size_t)(end - name);
        char *folder = pnb__arena_alloc(&c->arena, n + 1);
        if (folder == NULL)
            return pnb__fail_nomem(err, n);
        for (size_t i = 0; i < n; i++)
            folder[i] = name[i] == '_' ? ' ' : name[i];
        item->group = level == 0 ? folder : item->group;
        item->subgroup = level <= 1 ? folder : item->subgroup;
        if (strcmp(folder, "cartoon") != 0 && strspn(folder, "0123456789") == 0) {
            pnb_status status = pnb__text_add(c, item, folder, PNB_MIN(level, 2), false, err);
            if (status != PNB_OK)
                return status;
        }
        level++;
    }
    return PNB_OK;
}

static const char *record_of(pnb__collection *c, const pnb__stamp_text *text, pnb_error *err)
{
    pnb__buf b = {0};
    pnb__json_put(&b, ", \"sentence\": %s, \"language\": %s, \"translations\": {",
                  text->lines[0].text, c->opts->language);
    for (size_t i = 1; i < text->n; i++) {
        pnb__buf_puts(&b, i > 1 ? ", " : "");
        pnb__json_append_string(&b, text->lines[i].language);
        pnb__buf_puts(&b, ": ");
        pnb__json_append_string(&b, text->lines[i].text);
    }
    pnb__buf_puts(&b, "}");
    const char *kept = b.failed ? NULL : pnb__keep_text(c, b.data, b.size);
    if (kept == NULL)
        (void)pnb__fail_nomem(err, b.size);
    pnb__buf_reset(&b);
    return kept;
}

/* A file of the stamp with another ending, NULL where there is none. */
static const char *file_beside(reading *r, const char *name, const char *ending)
{
    const char *path =
        pnb__keep_format(r->c, "%s/%.*s%s", r->files.root, (int)strlen(name) - 4, name, ending);
    return path != NULL && pnb__path_is_file(path) ? path : NULL;
}

/* The drawing, where it can be drawn. */
static pnb_status take_svg(reading *r, pnb__collected *item, pnb_error *err)
{
    pnb__svg_facts facts = {0};
    pnb_error why = PNB_ERROR_INIT;
    char *bytes = NULL;
    size_t n = 0;
    pnb_status status = pnb__collection_read_file(item->svg, &bytes, &n, &why);
    if (status == PNB_OK)
        status = pnb__svg_read(&facts, bytes, n, &why);
    if (status == PNB_NOMEM || status == PNB_UNSUPPORTED)
        (void)pnb__fail(err, status, "%s", why.text);
    else if (item->png != NULL && (status != PNB_OK || facts.refused != NULL)) {
        item->svg = NULL;
        const char *reason = status != PNB_OK ? why.text : facts.refused; /* should the PNG fail */
        item->refused = pnb__keep_text(r->c, reason, strlen(reason));
        status = item->refused != NULL ? PNB_OK : pnb__fail_nomem(err, 0);
    } else if (status == PNB_OK && facts.refused != NULL)
        status = pnb__fail(err, PNB_FORMAT, "SVG: %s", facts.refused);
    else if (status != PNB_OK)
        (void)pnb__fail(err, status, "%s", why.text);
    pnb__svg_facts_reset(&facts);
    pnb__free(bytes);
    return status;
}

static pnb_status take_texts(reading *r, pnb__collected *item, const pnb__stamp_text *text,
                             pnb_error *err)
{
    const char *sentence = pnb__stamp_text_in(text, r->c->opts->language);
    pnb_status status = add_folders(r->c, item, item->file, err);
    if (status != PNB_OK || sentence == NULL)
        return status;
    if (strcmp(r->c->opts->language, "en") != 0)
        item->n_texts = 0;
    status = pnb__text_add(r->c, item, sentence, 3, false, err);
    item->name = pnb__keep_text(r->c, text->lines[0].text, strlen(text->lines[0].text));
    return status == PNB_OK && item->name == NULL ? pnb__fail_nomem(err, 0) : status;
}

/* Fills the item; *wanted is false where it is left out as asked. */
static pnb_status read_stamp(reading *r, size_t place, const pnb__stamp_text *text,
                             pnb__collected *item, bool *wanted, pnb_error *err)
{
    const char *name = r->files.items[place].name;
    const pnb_collection_opts *o = r->c->opts;
    pnb_status status = PNB_OK;
    item->file = pnb__keep_text(r->c, name, strlen(name));
    item->key = pnb__keep_format(r->c, "stamp-%05zu", place);
    if (item->file == NULL || item->key == NULL)
        return pnb__fail_nomem(err, strlen(name));
    item->png = file_beside(r, name, ".png");
    item->svg = file_beside(r, name, ".svg");
    if (item->png == NULL && item->svg == NULL)
        return pnb__fail(err, PNB_FORMAT, "a text without a picture");
    *wanted = o->sensitive ||
              !(pnb__is_sensitive_text(name) || pnb__is_sensitive_text(text->lines[0].text));
    r->c->stats->n_sensitive += !*wanted;
    if (*wanted && pnb__stamp_text_in(text, o->language) == NULL) {
        r->c->stats->n_wordless++;
        *wanted = false;
    }
    if (!*wanted)
        return PNB_OK;
    if (item->svg != NULL)
        PNB_TRY(take_svg(r, item, err));
    bool is_drawn =
        item->svg != NULL || strstr(name, "cartoon/") != NULL || pnb__starts_with(name, "symbols/");
    item->style = is_drawn ? "drawing" : "photo";
    item->group = item->subgroup = "unsorted";
    PNB_TRY(take_texts(r, item, text, err));
    item->more = record_of(r->c, text, err);
    status = item->more == NULL ? PNB_NOMEM : PNB_OK;
done:
    return status;
}

static pnb_status add_stamp(reading *r, size_t place, pnb_error *err)
{
    const char *name = r->files.items[place].name;
    char *path = pnb__path_join(r->files.root, name), *bytes = NULL;
    pnb__stamp_text text = {0};
    pnb__collected item = {0};
    pnb_error why = PNB_ERROR_INIT;
    bool wanted = false;
    size_t n = 0;
    pnb_status status = path != NULL ? pnb__collection_read_file(path, &bytes, &n, &why)
                                     : pnb__fail_nomem(&why, strlen(name));
    if (status == PNB_OK)
        status = pnb__stamp_text_parse(&text, bytes, n, name, &why);
    if (status == PNB_OK)
        status = read_stamp(r, place, &text, &item, &wanted, &why);
    if (status == PNB_OK && wanted)
        status = PNB_PUSH(r->c->items, r->c->n, &why, item);
    if (status != PNB_OK || !wanted)
        pnb__collected_reset(&item);
    pnb__stamp_text_free(&text);
    pnb__free(bytes);
    pnb__free(path);
    if (status == PNB_NOMEM || status == PNB_UNSUPPORTED)
        return pnb__fail(err, status, "%s", why.text);
    if (status != PNB_OK)
        pnb__collection_skip(r->c, name, why.text);
    return PNB_OK;
}

pnb_status pnb__stamps_read(pnb__collection *c, pnb_error *err)
{
    const char *root = c->opts->stamps != NULL ? c->opts->stamps : DEFAULT_ROOT;
    reading r = {.c = c};
    size_t n_before = c->n;
    pnb_status status;
    PNB_TRY(pnb__svg_check(err));
    if (!pnb__path_is_dir(root))
        PNB_TRY(pnb__fail(err, PNB_NOT_FOUND,
                          "%s does not exist: the stamps of Tux Paint are not there; run "
                          "`tools/install-deps --data stamps`",
                          root));
    PNB_TRY(pnb__collection_files_find(&r.files, root, &c->stats->n_broken_links, err));
    for (size_t i = 0; i < r.files.n; i++) {
        if (!pnb__ends_with(r.files.items[i].name, ".txt") || r.files.items[i].target != i)
            continue;
        c->stats->n_found++;
        PNB_TRY(add_stamp(&r, i, err));
    }
    if (c->n == n_before)
        status = pnb__fail(err, PNB_FORMAT,
                           "%s: not one picture with a sentence in '%s' among %zu files%s", root,
                           c->opts->language, r.files.n,
                           r.files.n == 0 ? ": the package is not installed whole; run "
                                            "`tools/install-deps --data stamps`"
                                          : "");
done:
    pnb__collection_files_free(&r.files);
    return status;
}
