/* Pictures named by words: files, folders, globs, lists on standard input, data sets.
 *
 * Sources are kept in the order given and numbered through; a picture is read only when asked for,
 * so a list of a million costs its names. How a data set finds its pictures is data's business. */
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "base/grow.h"
#include "data/sources/dataset_internal.h"
#include "data/sources/stamp.h"
#include "encode/inputs/inputs.h"
#include "io/byte_names.h"
#include "io/json/json.h"

/* One file, or a whole data set. */
typedef struct source {
    char *path;       /* of the file; the data set's spec otherwise */
    pnb_dataset *set; /* NULL for a file */
    size_t first, n;  /* numbers first .. first + n - 1 */
} source;

struct pnb__image_inputs {
    pnb_dataset_opts opts; /* of data sets; while they are opened */
    source *sources;
    size_t n_sources, n;
};

static pnb_status add_source(pnb__image_inputs *p, const char *path, pnb_dataset *set,
                             pnb_error *err)
{
    char *copy = pnb__strdup(path);
    if (copy == NULL)
        return pnb__fail_nomem(err, strlen(path) + 1);
    size_t n = set != NULL ? pnb_dataset_size(set) : 1;
    pnb_status status = PNB_PUSH(p->sources, p->n_sources, err, (source){copy, set, p->n, n});
    if (status != PNB_OK) {
        pnb__free(copy);
        return status;
    }
    p->n += n;
    return PNB_OK;
}

static bool is_table_or_tar(const char *path)
{
    static const char *const endings[] = {".csv",       ".tsv",       ".jsonl",
                                          "_batch.bin", "/train.bin", "/test.bin",
                                          "_X.bin",     "idx3-ubyte", "idx3-ubyte.gz"};
    for (size_t i = 0; i < PNB_COUNT(endings); i++)
        if (pnb__ends_with(path, endings[i]))
            return true;
    return pnb__is_shard_name(path) || pnb__is_table_name(path);
}

/* Lines none of which names a picture are captions, as a rule: told once and not line by line. */
static pnb_status check_lines(const pnb_dataset *set, pnb_error *err)
{
    pnb_error first = PNB_ERROR_INIT;
    size_t n = pnb_dataset_size(set);
    for (size_t i = 0; i < n; i++) {
        pnb_sample sample = {0};
        pnb_error why = PNB_ERROR_INIT;
        pnb_status status = pnb__dataset_record(set, i, &sample, &why);
        pnb_sample_reset(&sample);
        if (status == PNB_NOMEM)
            return pnb__fail(err, status, "%s", why.text);
        if (status == PNB_OK || strstr(why.text, "no picture") == NULL)
            return PNB_OK;
        if (i == 0)
            first = why;
    }
    return n == 0 ? PNB_OK
                  : pnb__fail(err, PNB_FORMAT,
                              "%s; nor has any other of the %zu lines one: captions go to the "
                              "option for texts",
                              first.text, n);
}

static pnb_status add_dataset(pnb__image_inputs *p, const char *spec, pnb_error *err)
{
    pnb_dataset *set = NULL;
    pnb_status status = pnb_dataset_open(&set, spec, &p->opts, err);
    if (status == PNB_OK && pnb__ends_with(spec, ".jsonl"))
        status = check_lines(set, err);
    if (status == PNB_OK)
        status = add_source(p, spec, set, err);
    if (status != PNB_OK)
        pnb_dataset_free(set);
    return status;
}

static pnb_status add_plain(pnb__image_inputs *p, const char *path, pnb_error *err)
{
    if (pnb__path_is_dir(path) || is_table_or_tar(path) || pnb__is_spec(path) ||
        strstr(path, "::") != NULL || strchr(path, '{') != NULL)
        return add_dataset(p, path, err);
    return add_source(p, path, NULL, err);
}

static pnb_status add_glob(pnb__image_inputs *p, const char *pattern, pnb_error *err)
{
    glob_t found = {0};
    int code = glob(pattern, 0, NULL, &found);
    pnb_status status = PNB_OK;
    if (code == GLOB_NOMATCH)
        status = pnb__fail(err, PNB_NOT_FOUND, "%s: no file matches", pattern);
    else if (code != 0)
        status = pnb__fail(err, PNB_IO, "%s: the folders cannot be read", pattern);
    for (size_t i = 0; status == PNB_OK && i < found.gl_pathc; i++)
        status = add_plain(p, found.gl_pathv[i], err);
    globfree(&found);
    return status;
}

static pnb_status add_list(pnb__image_inputs *p, FILE *in, pnb_error *err)
{
    char *line = NULL;
    size_t capacity = 0;
    bool is_first = true;
    pnb_status status = PNB_OK;
    if (in == NULL)
        return pnb__fail(err, PNB_ARG, "-: there is no standard input here; name files");
    for (ssize_t n; status == PNB_OK && (n = getline(&line, &capacity, in)) >= 0;) {
        while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r'))
            line[--n] = '\0';
        bool has_mark = is_first && pnb__starts_with(line, "\xEF\xBB\xBF");
        is_first = false;
        if (n > (has_mark ? 3 : 0))
            status = add_source(p, line + (has_mark ? 3 : 0), NULL, err);
    }
    if (status == PNB_OK && !feof(in)) /* getline ends so for want of memory too */
        status = pnb__fail(err, PNB_IO, "cannot read the list on standard input");
    free(line);
    return status;
}

static pnb_status add_word(pnb__image_inputs *p, const char *word, FILE *in, pnb_error *err)
{
    if (strcmp(word, "-") == 0)
        return add_list(p, in, err);
    if (!pnb__path_is_file(word) && !pnb__path_is_dir(word) && strstr(word, "::") == NULL &&
        strchr(word, '{') == NULL && strpbrk(word, "*?[") != NULL)
        return add_glob(p, word, err);
    if (strstr(word, "://") != NULL && strstr(word, "::") == NULL &&
        !pnb__starts_with(word, "pipe:"))
        return pnb__fail(err, PNB_NOT_FOUND,
                         "%s: this is a URL, and nothing is downloaded here: fetch the file first "
                         "(curl -O, or img2dataset for a list of them) and give its path",
                         word);
    if (!pnb__path_is_file(word) && strpbrk(word, "{:") == NULL && !pnb__path_is_dir(word) &&
        !pnb__is_spec(word))
        return pnb__fail(err, PNB_NOT_FOUND, "%s: no such file or folder", word);
    return add_plain(p, word, err);
}

pnb_status pnb__image_inputs_open(pnb__image_inputs **out, const char *const *words, size_t n_words,
                                  FILE *in, pnb_error *err)
{
    const pnb_dataset_opts opts = pnb_dataset_opts_default();
    return pnb__image_inputs_open_with(out, words, n_words, in, &opts, err);
}

pnb_status pnb__image_inputs_open_with(pnb__image_inputs **out, const char *const *words,
                                       size_t n_words, FILE *in, const pnb_dataset_opts *opts,
                                       pnb_error *err)
{
    pnb__image_inputs *p = pnb__alloc_zero(1, sizeof *p);
    if (p == NULL)
        return pnb__fail_nomem(err, sizeof *p);
    pnb_status status = PNB_OK;
    p->opts = *opts;
    p->opts.allow_no_caption = true;
    for (size_t i = 0; status == PNB_OK && i < n_words; i++)
        status = add_word(p, words[i], in, err);
    if (status == PNB_OK && p->n == 0)
        status = pnb__fail(err, PNB_NOT_FOUND, "no pictures were given");
    if (status != PNB_OK) {
        pnb__image_inputs_free(p);
        return status;
    }
    *out = p;
    return PNB_OK;
}

pnb_status pnb__image_inputs_open_set(pnb__image_inputs **out, const char *spec,
                                      const pnb_dataset_opts *opts, pnb_error *err)
{
    pnb_dataset *set = NULL;
    pnb__image_inputs *p = pnb__alloc_zero(1, sizeof *p);
    if (p == NULL)
        return pnb__fail_nomem(err, sizeof *p);
    pnb_status status = pnb_dataset_open(&set, spec, opts, err);
    if (status == PNB_OK)
        status = add_source(p, spec, set, err);
    if (status == PNB_OK) {
        *out = p;
        return PNB_OK;
    }
    pnb_dataset_free(set);
    pnb__image_inputs_free(p);
    return status;
}

const pnb_dataset *pnb__image_inputs_set(const pnb__image_inputs *p)
{
    return p->n_sources == 1 ? p->sources[0].set : NULL;
}

void pnb__image_inputs_free(pnb__image_inputs *p)
{
    if (p == NULL)
        return;
    for (size_t i = 0; i < p->n_sources; i++) {
        pnb__free(p->sources[i].path);
        pnb_dataset_free(p->sources[i].set);
    }
    pnb__free(p->sources);
    pnb__free(p);
}

void pnb__image_inputs_report(const pnb__image_inputs *p,
                              void (*skipped)(void *user, const char *what, const char *why),
                              void *user)
{
    for (size_t i = 0; i < p->n_sources; i++)
        for (size_t k = 0;
             p->sources[i].set != NULL && k < pnb_dataset_n_warnings(p->sources[i].set); k++)
            skipped(user, "samples", pnb_dataset_warning(p->sources[i].set, k));
}

size_t pnb__image_inputs_count(const pnb__image_inputs *p)
{
    return p->n;
}

static void hash_sources(const void *user, pnb__sha256 *hash)
{
    const pnb__image_inputs *p = user;
    for (size_t i = 0; i < p->n_sources; i++) {
        const source *s = &p->sources[i];
        pnb__sha256_update(hash, s->path, strlen(s->path) + 1);
        pnb__sha256_update(hash, &s->n, sizeof s->n);
    }
}

/* Source that holds picture i: the last one whose first number is not above i. */
static const source *find_source(const pnb__image_inputs *p, size_t i)
{
    size_t low = 0, high = p->n_sources;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (p->sources[middle].first <= i)
            low = middle;
        else
            high = middle;
    }
    return &p->sources[low];
}

static uint64_t stamp_image(const void *user, size_t i)
{
    const pnb__image_inputs *p = user;
    const source *s = find_source(p, i);
    return s->set != NULL ? pnb__dataset_stamp(s->set, i - s->first) : pnb__file_stamp(s->path);
}

pnb_status pnb__image_inputs_load(const pnb__image_inputs *p, size_t i, const pnb_image_opts *opts,
                                  pnb_image *out, pnb_error *err)
{
    const source *s = find_source(p, i);
    if (s->set != NULL)
        return pnb_dataset_image_as(s->set, i - s->first, opts, out, err);
    return pnb_image_load(out, s->path, opts, err);
}

pnb_status pnb__image_inputs_name(const pnb__image_inputs *p, size_t i, char *text, size_t size,
                                  pnb_error *err)
{
    const source *s = find_source(p, i);
    pnb_sample sample = {0};
    pnb_status status = PNB_OK;
    if (s->set != NULL)
        status = pnb_dataset_get(s->set, i - s->first, &sample, NULL);
    if (status == PNB_NOMEM)
        return pnb__fail_nomem(err, size);
    const char *file = sample.image_path; /* of a folder's picture the path says both */
    if (s->set == NULL)
        snprintf(text, size, "%s", s->path);
    else if (status == PNB_OK && file != NULL && strncmp(file, s->path, strlen(s->path)) == 0)
        snprintf(text, size, "%s", file);
    else if (status == PNB_OK)
        snprintf(text, size, "%s: %s", s->path, file != NULL ? file : sample.key);
    else
        snprintf(text, size, "%s: sample %zu", s->path, i - s->first);
    pnb_sample_reset(&sample);
    return PNB_OK;
}

const char *pnb__sample_id(const pnb_dataset *set, const pnb_sample *sample)
{
    const char *slash = strrchr(sample->key, '/');
    return pnb_dataset_get_kind(set) == PNB_DATASET_TAR && slash != NULL ? slash + 1 : sample->key;
}

/* The column of captions, which no record has. */
static void carry_text(pnb__buf *extra, const source *s, size_t index, const pnb_sample *sample)
{
    uint32_t from = s->set->entries[index].source;
    if (s->set->sources[from].kind != PNB_DATASET_CSV || sample->n_texts == 0)
        return;
    pnb__buf_puts(extra, ",\"caption\":");
    pnb__json_append_string(extra, sample->texts[0]);
}

/* {"source": spec, "index": i [, "group", "subgroup", "name", "class", "label", and the fields of
 * pnb__carried_fields]}: enough to show
 * the row again and to know its class. */
static pnb_status label_sample(const source *s, size_t index, pnb_embeddings *set, size_t row,
                               pnb_error *err)
{
    pnb_sample sample = {0};
    json_t *record = NULL;
    pnb__buf extra = {0};
    pnb_status status;
    PNB_TRY(pnb__dataset_record(s->set, index, &sample, err));
    PNB_TRY(pnb_embeddings_set_id(set, row, pnb__sample_id(s->set, &sample), err));
    if (sample.image_path != NULL)
        PNB_TRY(pnb_embeddings_set_path(set, row, sample.image_path, err));
    const char *const names[] = {"group", "subgroup", "name"};
    const char *const values[] = {sample.group, sample.subgroup, sample.name};
    pnb__buf_puts(&extra, "{\"source\":");
    pnb__byte_name_append(&extra, s->path);
    pnb__buf_printf(&extra, ",\"index\":%zu", index);
    for (size_t k = 0; k < PNB_COUNT(names); k++)
        if (values[k] != NULL) {
            pnb__buf_printf(&extra, ",\"%s\":", names[k]);
            pnb__byte_name_append(&extra, values[k]);
        }
    pnb__carry_class(&extra, &sample);
    PNB_TRY(pnb__sample_record(&record, &sample, err));
    pnb__carry_fields(&extra, record, false);
    carry_text(&extra, s, index, &sample);
    pnb__buf_putc(&extra, '}');
    status = extra.failed ? pnb__fail_nomem(err, extra.size)
                          : pnb_embeddings_set_extra(set, row, extra.data, err);
done:
    json_decref(record);
    pnb__buf_reset(&extra);
    pnb_sample_reset(&sample);
    return status;
}

static pnb_status label_image(const void *user, size_t i, pnb_embeddings *set, size_t row,
                              pnb_error *err)
{
    const pnb__image_inputs *p = user;
    const source *s = find_source(p, i);
    if (s->set != NULL)
        return label_sample(s, i - s->first, set, row, err);
    pnb_status status = pnb_embeddings_set_id(set, row, s->path, err);
    return status == PNB_OK ? pnb_embeddings_set_path(set, row, s->path, err) : status;
}

static pnb_status load_image(const void *user, size_t i, const pnb_image_opts *opts, pnb_image *out,
                             pnb_error *err)
{
    return pnb__image_inputs_load(user, i, opts, out, err);
}

static pnb_status hash_file(const char *path, pnb__sha256 *hash, int64_t *time, pnb_error *err)
{
    pnb__map map = {0};
    struct stat info;
    pnb_status status = pnb__map_open(&map, path, err);
    if (status != PNB_OK)
        return status;
    pnb__sha256_update(hash, map.data, map.size);
    pnb__map_close(&map);
    *time = stat(path, &info) == 0 ? (int64_t)info.st_mtime : PNB__NO_TIME;
    return PNB_OK;
}

/* Pictures of data sets that have no encoded bytes are told by their pixels. */
static pnb_status hash_pixels(const pnb_dataset *set, size_t i, pnb__sha256 *hash, pnb_error *err)
{
    pnb_image image = {0};
    pnb_status status = pnb_dataset_image(set, i, &image, err);
    if (status == PNB_OK) {
        const int sizes[] = {image.width, image.height, image.channels};
        pnb__sha256_update(hash, sizes, sizeof sizes);
        pnb__sha256_update(hash, image.pixels,
                           (size_t)image.width * (size_t)image.height * (size_t)image.channels);
    }
    pnb_image_free(&image);
    return status;
}

static pnb_status hash_sample(const source *s, size_t i, pnb__sha256 *hash, int64_t *time,
                              pnb_error *err)
{
    pnb_sample sample = {0};
    pnb_status status = pnb_dataset_get(s->set, i, &sample, err);
    if (status == PNB_OK && sample.image_path != NULL)
        status = hash_file(sample.image_path, hash, time, err);
    else if (status == PNB_OK && sample.image_bytes != NULL)
        pnb__sha256_update(hash, sample.image_bytes, sample.n_image_bytes);
    else if (status == PNB_OK)
        status = hash_pixels(s->set, i, hash, err);
    pnb_sample_reset(&sample);
    return status;
}

static pnb_status image_content(const void *user, size_t i, char sha256[65], int64_t *time,
                                pnb_error *err)
{
    const pnb__image_inputs *p = user;
    const source *s = find_source(p, i);
    pnb__sha256 hash;
    *time = PNB__NO_TIME;
    pnb__sha256_init(&hash);
    pnb_status status = s->set != NULL ? hash_sample(s, i - s->first, &hash, time, err)
                                       : hash_file(s->path, &hash, time, err);
    pnb__sha256_hex(&hash, sha256);
    return status;
}

static pnb_status name_image(const void *user, size_t i, char *text, size_t size, pnb_error *err)
{
    return pnb__image_inputs_name(user, i, text, size, err);
}

pnb__embed_source pnb__image_inputs_source(const pnb__image_inputs *p)
{
    return (pnb__embed_source){.n = p->n,
                               .user = p,
                               .image = load_image,
                               .label = label_image,
                               .name = name_image,
                               .content = image_content,
                               .hash = hash_sources,
                               .stamp = stamp_image};
}

/* ---- a row's picture again ---- */

static pnb_status open_source(pnb__row_source *r, const char *spec, pnb_error *err)
{
    if (r->spec != NULL && strcmp(r->spec, spec) == 0)
        return PNB_OK;
    pnb__row_source_reset(r);
    pnb_dataset_opts opts = pnb_dataset_opts_default();
    opts.allow_no_caption = true;
    pnb_status status = pnb_dataset_open(&r->dataset, spec, &opts, err);
    if (status == PNB_OK && (r->spec = pnb__strdup(spec)) == NULL)
        status = pnb__fail_nomem(err, strlen(spec) + 1);
    return status;
}

/* The data set that a row names in its extra fields, open in r, and the row's place in it. */
static pnb_status find_sample(pnb__row_source *r, const pnb_embeddings *set, size_t row,
                              size_t *index, pnb_error *err)
{
    const char *extra = set->extras != NULL ? set->extras[row] : NULL;
    json_t *root = NULL;
    pnb_status status =
        extra == NULL ? PNB_OK : pnb__json_load_bytes(&root, extra, strlen(extra), "row", err);
    const char *said = json_string_value(json_object_get(root, "source"));
    char *spec = said != NULL ? pnb__strdup(said) : NULL;
    json_int_t place = json_integer_value(json_object_get(root, "index"));
    *index = (size_t)place;
    if (spec != NULL)
        pnb__byte_name_restore(spec);
    if (status == PNB_OK && (said == NULL || place < 0))
        status = pnb__fail(err, PNB_NOT_FOUND, "row %zu does not say where its picture is", row);
    else if (status == PNB_OK)
        status = spec != NULL ? open_source(r, spec, err) : pnb__fail_nomem(err, strlen(said));
    pnb__free(spec);
    json_decref(root);
    return status;
}

bool pnb__row_title(pnb__row_source *r, const pnb_embeddings *set, size_t row, char *text,
                    size_t size)
{
    pnb_sample sample = {0};
    size_t index = 0, best = 0;
    if (find_sample(r, set, row, &index, NULL) != PNB_OK ||
        pnb_dataset_get(r->dataset, index, &sample, NULL) != PNB_OK)
        return false;
    for (size_t i = 1; i < sample.n_texts; i++)
        best = sample.levels[i] > sample.levels[best] ? i : best;
    const char *name = sample.name != NULL         ? sample.name
                       : sample.n_texts > 0        ? sample.texts[best]
                       : sample.class_name != NULL ? sample.class_name
                                                   : "";
    snprintf(text, size, "%s", name);
    pnb_sample_reset(&sample);
    return text[0] != '\0';
}

pnb_status pnb__row_image(pnb__row_source *r, const pnb_embeddings *set, size_t row, pnb_image *out,
                          pnb_error *err)
{
    const char *path = set->paths != NULL ? set->paths[row] : NULL;
    size_t index = 0;
    pnb_status status;
    *out = (pnb_image){0};
    if (path != NULL)
        status = pnb_image_load(out, path, NULL, NULL);
    else if ((status = find_sample(r, set, row, &index, NULL)) == PNB_OK)
        status = pnb_dataset_image(r->dataset, index, out, NULL);
    return status == PNB_NOMEM ? pnb__fail_nomem(err, 0) : PNB_OK;
}

void pnb__row_source_reset(pnb__row_source *r)
{
    pnb_dataset_free(r->dataset);
    pnb__free(r->spec);
    *r = (pnb__row_source){0};
}
