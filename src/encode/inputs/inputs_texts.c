/* Captions named by words: text files, standard input, jsonl, csv, data sets.
 *
 * All are held in memory: a million captions are about 100 MB. A line that is not UTF-8, longer
 * than any caption or no record is left out and remembered, so that one bad line does not end a
 * long job; a file that is no text at all (inputs_lines.h), or holds no record, is refused. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/grow.h"
#include "data/sources/dataset_internal.h"
#include "encode/inputs/inputs.h"
#include "encode/inputs/inputs_lines.h"
#include "io/byte_names.h"
#include "io/json/json.h"
#include "io/tables/csv.h"
#include "penumbra/hierarcaps.h"
#include "penumbra/tokenizer.h"

static pnb_status add_bad(pnb__text_inputs *c, char *sentence /* taken */, pnb_error *err);

static pnb_status add(pnb__text_inputs *c, const char *id, const char *text, const char *extra,
                      int level, pnb_error *err)
{
    if (strlen(text) > PNB_TOKENIZER_MAX_BYTES)
        return add_bad(c,
                       pnb__format("%s: a caption of %zu bytes; at most %d are read",
                                   id != NULL ? id : "a caption", strlen(text),
                                   PNB_TOKENIZER_MAX_BYTES),
                       err);
    pnb_status status = pnb__grow_one(&c->items, c->n, sizeof *c->items, err);
    if (status != PNB_OK)
        return status;
    size_t place = c->n + c->n_bad; /* a line that is left out keeps its number */
    pnb__text *item = &c->items[c->n++];
    *item = (pnb__text){id != NULL ? pnb__strdup(id) : NULL, pnb__strdup(text),
                        extra != NULL ? pnb__strdup(extra) : NULL, level, place};
    if (item->text == NULL || (id != NULL && item->id == NULL) ||
        (extra != NULL && item->extra == NULL))
        return pnb__fail_nomem(err, strlen(text) + 1);
    return PNB_OK;
}

static void drop_last(pnb__text_inputs *c)
{
    pnb__text *item = &c->items[--c->n];
    pnb__free(item->id);
    pnb__free(item->text);
    pnb__free(item->extra);
}

static pnb_status add_bad(pnb__text_inputs *c, char *sentence /* taken */, pnb_error *err)
{
    if (sentence == NULL)
        return pnb__fail_nomem(err, sizeof(err->text));
    pnb_status status = PNB_PUSH(c->bad, c->n_bad, err, sentence);
    if (status != PNB_OK)
        pnb__free(sentence);
    return status;
}

pnb_status pnb__text_inputs_add_text(pnb__text_inputs *c, const char *text, pnb_error *err)
{
    if (!pnb__utf8_valid(text, strlen(text)))
        return add_bad(c, pnb__format("caption given on the command line: not valid UTF-8"), err);
    return add(c, NULL, text, NULL, -1, err);
}

/* ---- lines ---- */

static pnb_status add_lines(pnb__text_inputs *c, FILE *in, const char *where, pnb_error *err)
{
    pnb__text_lines r = {.in = in, .where = where, .most = PNB_TOKENIZER_MAX_BYTES};
    size_t n_bad = c->n_bad;
    pnb_status status = PNB_OK;
    for (bool more, valid = true; status == PNB_OK;) {
        status = pnb__text_lines_next(&r, &more, &valid, err);
        if (status != PNB_OK || !more)
            break;
        if (r.too_long)
            status = add_bad(c,
                             pnb__format("%s line %zu: longer than the %d bytes that a caption may "
                                         "have",
                                         where, r.number, PNB_TOKENIZER_MAX_BYTES),
                             err);
        else if (!valid)
            status = add_bad(c, pnb__format("%s line %zu: not valid UTF-8", where, r.number), err);
        else
            status = add(c, NULL, r.line.data, NULL, -1, err);
    }
    while (status != PNB_OK && c->n_bad > n_bad) /* a refused file is told once, not by lines */
        pnb__free(c->bad[--c->n_bad]);
    pnb__text_lines_reset(&r);
    return status;
}

static pnb_status add_text_file(pnb__text_inputs *c, const char *path, pnb_error *err)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return pnb__fail_errno(err, "cannot open", path);
    pnb_status status = add_lines(c, file, path, err);
    fclose(file);
    return status;
}

/* ---- jsonl ---- */

/* The name of a record, a text or a whole number; *out NULL: it has none. */
static pnb_status record_id(const json_t *record, const char *where, char digits[24],
                            const char **out, pnb_error *err)
{
    const char *key = json_object_get(record, "id") != NULL ? "id" : "question_id";
    const json_t *id = json_object_get(record, key);
    *out = json_string_value(id);
    if (id == NULL || json_is_null(id) || *out != NULL)
        return PNB_OK;
    if (!json_is_integer(id))
        return pnb__fail(err, PNB_FORMAT, "%s: \"%s\" is neither a text nor a whole number", where,
                         key);
    snprintf(digits, 24, "%lld", (long long)json_integer_value(id));
    *out = digits;
    return PNB_OK;
}

/* A level, or -1 where it is unknown. */
static pnb_status read_level(const json_t *value, int otherwise, const char *where, int *out,
                             pnb_error *err)
{
    *out = pnb__json_small_int(value, otherwise);
    if (value == NULL || json_is_null(value) ||
        (json_is_integer(value) && json_integer_value(value) >= -1))
        return PNB_OK;
    return pnb__fail(err, PNB_FORMAT, "%s: a level is a whole number from 0", where);
}

/* {"class": ..., "label": ..., and what is known of its ambiguity} of a record, as far as it has
 * them; NULL: none. To be freed. */
static pnb_status class_of_record(const json_t *record, char **out, pnb_error *err)
{
    static const char *const fields[] = {"class", "label"};
    pnb__buf extra = {0};
    pnb__buf_putc(&extra, '{');
    for (size_t i = 0; i < PNB_COUNT(fields); i++) {
        const json_t *value = json_object_get(record, fields[i]);
        if (!json_is_string(value) && !json_is_integer(value))
            continue;
        pnb__buf_printf(&extra, "%s\"%s\":", extra.size > 1 ? "," : "", fields[i]);
        pnb__json_append_value(&extra, value);
    }
    pnb__append_known(&extra, record);
    bool has_any = extra.size > 1;
    pnb__buf_putc(&extra, '}');
    *out = NULL;
    pnb_status status = extra.failed ? pnb__fail_nomem(err, extra.size) : PNB_OK;
    if (status == PNB_OK && has_any)
        status = pnb__copy_text(out, extra.data, err);
    pnb__buf_reset(&extra);
    return status;
}

/* What the captions of one record share. */
typedef struct record_of_many {
    const char *id, *where, *extra; /* id and extra may be NULL */
    int level;
} record_of_many;

static pnb_status add_texts(pnb__text_inputs *c, const record_of_many *r, const json_t *many,
                            const json_t *levels, pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (size_t k = 0; status == PNB_OK && k < json_array_size(many); k++) {
        const char *text = json_string_value(json_array_get(many, k));
        char *id = pnb__format("%s#%zu", r->id != NULL ? r->id : r->where, k);
        int level = r->level;
        status = read_level(json_array_get(levels, k), r->level, r->where, &level, err);
        if (status == PNB_OK && (text == NULL || id == NULL))
            status = pnb__fail(err, PNB_FORMAT, "%s: captions[%zu] is not text", r->where, k);
        if (status == PNB_OK)
            status = add(c, id, text, r->extra, level, err);
        pnb__free(id);
    }
    return status;
}

/* One record: "text", or "caption", or every one of "captions" or of a question's "candidates" (ids
 * get "#k" then). */
static pnb_status add_record(pnb__text_inputs *c, json_t *record, const char *where, pnb_error *err)
{
    char digits[24], *extra = NULL;
    const char *id = NULL;
    const char *text = json_string_value(json_object_get(record, "text"));
    const json_t *many = json_object_get(record, "captions");
    int level = -1;
    pnb_status status;
    PNB_TRY(record_id(record, where, digits, &id, err));
    PNB_TRY(read_level(json_object_get(record, "level"), -1, where, &level, err));
    PNB_TRY(class_of_record(record, &extra, err));
    if (many == NULL)
        many = json_object_get(record, "candidates");
    if (text == NULL)
        text = json_string_value(json_object_get(record, "caption"));
    if (text != NULL)
        PNB_TRY(add(c, id, text, extra, level, err));
    else if (json_is_array(many) && json_array_size(many) > 0)
        PNB_TRY(add_texts(c, &(record_of_many){id, where, extra, level}, many,
                          json_object_get(record, "levels"), err));
    else
        PNB_TRY(
            pnb__fail(err, PNB_FORMAT, "%s: needs \"text\", \"caption\" or \"captions\"", where));
done:
    pnb__free(extra);
    return status;
}

/* A line, blank ones too; `why` is what is wrong with it alone. */
static pnb_status add_json_line(pnb__text_inputs *c, const pnb__text_lines *r, bool valid,
                                const char *where, pnb_error *why)
{
    json_t *record = NULL;
    pnb_status status = PNB_OK;
    if (r->too_long)
        return pnb__fail(why, PNB_LIMIT, "%s: longer than %zu bytes", where, PNB__JSON_MAX_BYTES);
    if (!valid)
        return pnb__fail(why, PNB_FORMAT, "%s: not valid UTF-8", where);
    if (strspn(r->line.data, " \t\r") == r->line.size)
        return PNB_OK;
    status = pnb__json_load_bytes(&record, r->line.data, r->line.size, where, why);
    if (status == PNB_OK)
        status = add_record(c, record, where, why);
    json_decref(record);
    return status;
}

/* A line that is no record is left out, with what it gave before that was seen, and named. */
static pnb_status leave_out(pnb__text_inputs *c, size_t n, const pnb_error *why, pnb_error *err)
{
    while (c->n > n)
        drop_last(c);
    return why->status == PNB_NOMEM ? pnb__fail(err, why->status, "%s", why->text)
                                    : add_bad(c, pnb__strdup(why->text), err);
}

static pnb_status add_jsonl(pnb__text_inputs *c, const char *path, pnb_error *err)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return pnb__fail_errno(err, "cannot open", path);
    pnb__text_lines r = {.in = file, .where = path, .most = PNB__JSON_MAX_BYTES};
    size_t n_before = c->n, n_bad = c->n_bad;
    pnb_status status = PNB_OK;
    for (bool more, valid = true; status == PNB_OK;) {
        pnb_error why = PNB_ERROR_INIT;
        size_t n = c->n;
        status = pnb__text_lines_next(&r, &more, &valid, err);
        if (status != PNB_OK || !more)
            break;
        char *where = pnb__format("%s line %zu", path, r.number);
        if (where == NULL)
            status = pnb__fail_nomem(err, 64);
        else if (add_json_line(c, &r, valid, where, &why) != PNB_OK)
            status = leave_out(c, n, &why, err);
        pnb__free(where);
    }
    if (status == PNB_OK && c->n == n_before && c->n_bad > n_bad)
        status = pnb__fail(err, PNB_FORMAT, "%s", c->bad[n_bad]); /* it is of another kind */
    while (status != PNB_OK && c->n_bad > n_bad) /* a refused file is told once, not by lines */
        pnb__free(c->bad[--c->n_bad]);
    pnb__text_lines_reset(&r);
    fclose(file);
    return status;
}

/* ---- csv ---- */

static pnb_status add_csv(pnb__text_inputs *c, const char *path, const char *caption_key,
                          pnb_error *err)
{
    pnb__csv csv = {0};
    size_t column = 0;
    bool more = false;
    pnb_status status;
    char separator = pnb__ends_with(path, ".tsv") ? '\t' : ',';
    PNB_TRY(pnb__csv_open(&csv, path, c->csv_separator != 0 ? c->csv_separator : separator, err));
    if (c->csv_separator == 0 &&
        strchr(csv.header[0], '\t') != NULL) { /* as open_clip writes them */
        pnb__csv_close(&csv);
        PNB_TRY(pnb__csv_open(&csv, path, '\t', err));
    }
    PNB_TRY(pnb__csv_column(&csv, caption_key, &column, err));
    for (;;) {
        PNB_TRY(pnb__csv_next(&csv, &more, err));
        if (!more)
            break;
        const char *text = csv.fields[column];
        if (pnb__utf8_valid(text, strlen(text)))
            PNB_TRY(add(c, NULL, text, NULL, -1, err));
        else
            PNB_TRY(add_bad(c, pnb__format("%s line %zu: not valid UTF-8", path, csv.line), err));
    }
done:
    pnb__csv_close(&csv);
    return status;
}

/* HierarCaps' csv: three columns, known by their place, the second with captions joined by "=>". A
 * table that has the column of captions is an ordinary one. */
static pnb_status is_hierarcaps(const char *path, const char *caption_key, bool *yes,
                                pnb_error *err)
{
    pnb__csv csv = {0};
    size_t column = 0;
    bool more = false;
    pnb_status status;
    *yes = false;
    PNB_TRY(pnb__csv_open(&csv, path, ',', err));
    if (csv.n_columns != 3 || pnb__csv_column(&csv, caption_key, &column, NULL) == PNB_OK)
        goto done;
    PNB_TRY(pnb__csv_next(&csv, &more, err));
    *yes = more && strstr(csv.fields[1], "=>") != NULL;
done:
    pnb__csv_close(&csv);
    return status;
}

/* Level l of row ID is the caption "ID#l", which knows its picture and where that came from. */
static pnb_status add_hierarcaps(pnb__text_inputs *c, const char *path, pnb_error *err)
{
    pnb_hierarcaps *h = NULL;
    pnb_status status = pnb_hierarcaps_load(&h, path, err);
    for (size_t i = 0; status == PNB_OK && i < h->n; i++) {
        pnb__buf extra = {0};
        pnb__buf_puts(&extra, "{\"image\":");
        pnb__json_append_string(&extra, h->id[i]);
        pnb__buf_puts(&extra, ",\"url\":");
        pnb__json_append_string(&extra, h->url[i]);
        pnb__buf_putc(&extra, '}');
        for (size_t l = 0; status == PNB_OK && l < h->n_levels; l++) {
            char *id = pnb__format("%s#%zu", h->id[i], l);
            status = id == NULL || extra.failed
                         ? pnb__fail_nomem(err, 64)
                         : add(c, id, h->text[i * h->n_levels + l], extra.data, (int)l, err);
            pnb__free(id);
        }
        pnb__buf_reset(&extra);
    }
    pnb_hierarcaps_free(h);
    return status;
}

/* ---- data sets ---- */

/* Captions of one sample, ids "KEY#k", each remembering its picture and what truth files call it.
 */
static pnb_status add_sample(pnb__text_inputs *c, const pnb_sample *s, const char *key,
                             pnb_error *err)
{
    json_t *record = NULL;
    pnb__buf extra = {0};
    pnb_status status = pnb__sample_record(&record, s, err);
    pnb__buf_puts(&extra, "{\"image\":");
    pnb__byte_name_append(&extra, key);
    pnb__carry_class(&extra, s);
    pnb__carry_fields(&extra, record, true);
    pnb__buf_putc(&extra, '}');
    for (size_t k = 0; status == PNB_OK && k < s->n_texts; k++) {
        char *id = pnb__format("%s#%zu", key, k);
        char *own = extra.failed ? NULL : pnb__extra_of_text(extra.data, record, k, s->n_texts);
        if (id == NULL || own == NULL)
            status = pnb__fail_nomem(err, 64);
        else
            status = add(c, id, s->texts[k], own, s->levels != NULL ? s->levels[k] : -1, err);
        pnb__free(id);
        pnb__free(own);
    }
    json_decref(record);
    pnb__buf_reset(&extra);
    return status;
}

static pnb_status add_dataset(pnb__text_inputs *c, const char *spec, const char *caption_key,
                              pnb_error *err)
{
    pnb_dataset *set = NULL;
    pnb_dataset_opts opts = pnb_dataset_opts_default();
    if (caption_key != NULL)
        opts.csv_caption_key = caption_key;
    pnb_status status = pnb_dataset_open(&set, spec, &opts, err);
    for (size_t i = 0; status == PNB_OK && i < pnb_dataset_size(set); i++) {
        pnb_sample sample = {0};
        pnb_error why = PNB_ERROR_INIT;
        pnb_status read = pnb__dataset_record(set, i, &sample, &why);
        if (read == PNB_OK)
            status = add_sample(c, &sample, pnb__sample_id(set, &sample), err);
        else if (read == PNB_NOMEM)
            status = pnb__fail(err, read, "%s", why.text);
        else
            status = add_bad(c, pnb__format("%s: %s", spec, why.text), err);
        pnb_sample_reset(&sample);
    }
    for (size_t i = 0; status == PNB_OK && i < pnb_dataset_n_warnings(set); i++)
        status = add_bad(c, pnb__strdup(pnb_dataset_warning(set, i)), err);
    pnb_dataset_free(set);
    return status;
}

pnb_status pnb__text_inputs_add(pnb__text_inputs *c, const char *source, const char *caption_key,
                                FILE *in, pnb_error *err)
{
    if (strcmp(source, "-") == 0 && in == NULL)
        return pnb__fail(err, PNB_ARG, "-: there is no standard input here; name files");
    if (strcmp(source, "-") == 0)
        return add_lines(c, in, "standard input", err);
    if (strstr(source, "://") != NULL)
        return pnb__fail(err, PNB_NOT_FOUND,
                         "%s: this is a URL, and nothing is downloaded here: fetch the file first "
                         "(curl -O) and give its path",
                         source);
    if (pnb__is_spec(source))
        return add_dataset(c, source, caption_key, err);
    if (pnb__ends_with(source, ".jsonl"))
        return add_jsonl(c, source, err);
    bool is_hierarchy = false;
    pnb_status status = PNB_OK;
    if (pnb__ends_with(source, ".csv") && c->csv_separator == 0)
        status = is_hierarcaps(source, caption_key, &is_hierarchy, err);
    if (status != PNB_OK || is_hierarchy)
        return status != PNB_OK ? status : add_hierarcaps(c, source, err);
    if (pnb__ends_with(source, ".csv") || pnb__ends_with(source, ".tsv"))
        return add_csv(c, source, caption_key, err);
    if (pnb__is_shard_name(source) || pnb__is_table_name(source) || pnb__path_is_dir(source) ||
        strstr(source, "::") != NULL || strchr(source, '{') != NULL)
        return add_dataset(c, source, caption_key, err);
    return add_text_file(c, source, err);
}

static void hash_texts(const void *user, pnb__sha256 *hash)
{
    const pnb__text_inputs *c = user;
    for (size_t i = 0; i < c->n; i++) {
        const char *id = c->items[i].id != NULL ? c->items[i].id : "";
        const char *extra = c->items[i].extra != NULL ? c->items[i].extra : "";
        pnb__sha256_update(hash, id, strlen(id) + 1);
        pnb__sha256_update(hash, c->items[i].text, strlen(c->items[i].text) + 1);
        pnb__sha256_update(hash, extra, strlen(extra) + 1);
        pnb__sha256_update(hash, &c->items[i].level, sizeof c->items[i].level);
        pnb__sha256_update(hash, &c->items[i].place, sizeof c->items[i].place);
    }
}

void pnb__text_inputs_reset(pnb__text_inputs *c)
{
    while (c->n > 0)
        drop_last(c);
    for (size_t i = 0; i < c->n_bad; i++)
        pnb__free(c->bad[i]);
    pnb__free(c->items);
    pnb__free(c->bad);
    *c = (pnb__text_inputs){0};
}

/* The level joins whatever else the caption carries: {"level":2,...}. */
static char *extra_with_level(const pnb__text *item)
{
    if (item->level < 0)
        return pnb__strdup(item->extra != NULL ? item->extra : "{}");
    if (item->extra == NULL)
        return pnb__format("{\"level\":%d}", item->level);
    return pnb__format("{\"level\":%d,%s", item->level, item->extra + 1);
}

static pnb_status label_text(const void *user, size_t i, pnb_embeddings *set, size_t row,
                             pnb_error *err)
{
    const pnb__text_inputs *c = user;
    const pnb__text *item = &c->items[i];
    char number[32];
    snprintf(number, sizeof number, "%zu", item->place);
    char *extra = extra_with_level(item);
    if (extra == NULL)
        return pnb__fail_nomem(err, 64);
    pnb_status status = pnb_embeddings_set_id(set, row, item->id != NULL ? item->id : number, err);
    if (status == PNB_OK)
        status = pnb_embeddings_set_text(set, row, item->text, err);
    if (status == PNB_OK && strcmp(extra, "{}") != 0)
        status = pnb_embeddings_set_extra(set, row, extra, err);
    pnb__free(extra);
    return status;
}

static const char *text_text(const void *user, size_t i)
{
    const pnb__text_inputs *c = user;
    return c->items[i].text;
}

static pnb_status text_content(const void *user, size_t i, char sha256[65], int64_t *time,
                               pnb_error *err)
{
    const pnb__text_inputs *c = user;
    pnb__sha256 hash;
    (void)err;
    pnb__sha256_init(&hash);
    pnb__sha256_update(&hash, c->items[i].text, strlen(c->items[i].text));
    pnb__sha256_hex(&hash, sha256);
    *time = PNB__NO_TIME;
    return PNB_OK;
}

pnb__embed_source pnb__text_inputs_source(const pnb__text_inputs *c)
{
    return (pnb__embed_source){.n = c->n,
                               .is_text = true,
                               .user = c,
                               .text = text_text,
                               .label = label_text,
                               .content = text_content,
                               .hash = hash_texts};
}
