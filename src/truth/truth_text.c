/* Truth in text: Flickr's token files, VSE++'s lists, HierarCaps' table, class labels, and data
 * sets with captions.
 *
 *   tokens      1000092795.jpg#0, tab, caption
 *   precomp     X_ids.txt one picture id a line, X_caps.txt the captions in the same order, 5 (or
 *               1) a picture; id_mapping.json beside them may say the pictures' files
 *   hierarcaps  id, captions of falling generality joined with "=>", image url
 *   labels      id, tab, class: rows of both sets with one class match
 *   data sets   pictures with their captions, as CLIP_benchmark's tars hold them */
#include <stdlib.h>
#include <string.h>

#include "data/sources/dataset_internal.h"
#include "io/json/json.h"
#include "io/tables/csv.h"
#include "penumbra/dataset.h"
#include "truth/ground_truth.h"
#include "truth/id_resolver.h"

/* The whole file; its lines are cut in place. */
static pnb_status open_lines(pnb__line_reader *lines, char **data, const char *path, pnb_error *err)
{
    size_t size = 0;
    pnb_status status = pnb__read_file(path, PNB__MAX_TRUTH_BYTES, data, &size, err);
    if (status == PNB_OK)
        *lines = (pnb__line_reader){.at = *data, .end = *data + size, .path = path};
    return status;
}

/* ---- tokens ---- */

/* "1000092795.jpg#0": the picture is what stands before the last '#'. */
static pnb_status add_token(pnb__ground_truth *c, char *token, const char *text, const char **last,
                            pnb_error *err)
{
    char *hash = strrchr(token, '#');
    size_t n_id = strlen(token), n = 0, place = 0;
    if (hash == NULL || hash == token || hash[1] == '\0' ||
        hash[1 + strspn(hash + 1, "0123456789")] != '\0' || strlen(hash + 1) > 9)
        return pnb__fail(err, PNB_FORMAT, "'%.80s' is no picture#number", token);
    place = (size_t)strtoul(hash + 1, NULL, 10);
    pnb__text_ref ref = {
        .place = place, .id = pnb__ground_truth_intern(c, token, n_id), .level = -1};
    text = pnb__trimmed(text, strlen(text), &n);
    ref.text = pnb__ground_truth_intern(c, text, n);
    *hash = '\0';
    pnb_status status = PNB_OK;
    if (*last == NULL || strcmp(*last, token) != 0) {
        pnb__image p = {{pnb__ground_truth_intern(c, token, strlen(token)), 0, 0}, -1};
        status = pnb__ground_truth_image(c, p, err);
    }
    *last = token;
    ref.owner = c->n_images - 1;
    return status == PNB_OK ? pnb__ground_truth_text(c, ref, err) : status;
}

pnb_status pnb__read_truth_tokens(pnb__ground_truth *c, const pnb__truth_source *s, pnb_error *err)
{
    pnb__line_reader lines;
    char *data = NULL;
    const char *last = NULL;
    pnb_status status;
    PNB_TRY(open_lines(&lines, &data, s->path, err));
    for (char *line;;) {
        PNB_TRY(pnb__line_next(&lines, &line, err));
        if (line == NULL)
            break;
        if (line[0] == '\0')
            continue;
        char *tab = strchr(line, '\t');
        if (tab == NULL)
            PNB_TRY(pnb__fail(err, PNB_FORMAT, "%s line %zu: no tab behind picture#number", s->path,
                              lines.number));
        *tab = '\0';
        status = add_token(c, line, tab + 1, &last, err);
        if (status == PNB_FORMAT)
            pnb__error_prefix(err, "%s line %zu", s->path, lines.number);
        if (status != PNB_OK)
            goto done;
    }
done:
    pnb__free(data);
    return status;
}

/* ---- precomp ---- */

/* {"391895": "val2014/COCO_val2014_000000391895.jpg"}, if there. */
static pnb_status load_mapping(json_t **out, const char *ids_path, pnb_error *err)
{
    char *dir = pnb__path_dir(ids_path);
    char *path = dir == NULL ? NULL : pnb__path_join(dir, "id_mapping.json");
    pnb_status status = path == NULL ? pnb__fail_nomem(err, strlen(ids_path)) : PNB_OK;
    if (status == PNB_OK && pnb__path_is_file(path))
        status = pnb__json_load_file(out, path, PNB__MAX_TRUTH_BYTES, err);
    const char *key;
    json_t *file;
    json_object_foreach(*out, key, file)
    {
        if (status == PNB_OK && !json_is_string(file))
            status = pnb__fail(err, PNB_FORMAT, "%s: the file of \"%.80s\" is no text", path, key);
    }
    if (status == PNB_OK && *out != NULL && !json_is_object(*out))
        status = pnb__fail(err, PNB_FORMAT, "%s: an object of ids and files is wanted", path);
    pnb__free(dir);
    pnb__free(path);
    return status;
}

/* Ids of pictures; where each stands once for each of its captions, equal neighbours are one. */
static pnb_status read_ids(pnb__ground_truth *c, pnb__line_reader *lines, const json_t *mapping,
                           size_t *n_lines, pnb_error *err)
{
    pnb_status status;
    const char *last = "";
    for (char *line;;) {
        size_t n = 0;
        PNB_TRY(pnb__line_next(lines, &line, err));
        if (line == NULL)
            break;
        line = (char *)(uintptr_t)pnb__trimmed(line, strlen(line), &n);
        line[n] = '\0';
        if (n == 0)
            continue;
        ++*n_lines;
        if (strcmp(line, last) == 0)
            continue;
        last = line;
        const char *file = json_string_value(json_object_get(mapping, line));
        size_t file_text = file == NULL ? 0 : pnb__ground_truth_intern(c, file, strlen(file));
        pnb__image p = {{file_text, pnb__ground_truth_intern(c, line, n), 0}, -1};
        if (file_text == 0)
            p.name[0] = p.name[1];
        PNB_TRY(pnb__ground_truth_image(c, p, err));
    }
done:
    return status;
}

static pnb_status read_caps(pnb__ground_truth *c, pnb__line_reader *lines, pnb_error *err)
{
    pnb_status status;
    for (char *line;;) {
        size_t n = 0;
        PNB_TRY(pnb__line_next(lines, &line, err));
        if (line == NULL)
            break;
        const char *text = pnb__trimmed(line, strlen(line), &n);
        if (n == 0 && lines->at >= lines->end)
            break; /* an empty last line; others are captions too and keep their place */
        PNB_TRY(pnb__ground_truth_text(
            c, (pnb__text_ref){0, 0, 0, pnb__ground_truth_intern(c, text, n), -1}, err));
    }
done:
    return status;
}

pnb_status pnb__read_truth_precomp(pnb__ground_truth *c, const pnb__truth_source *s, pnb_error *err)
{
    pnb_status status = PNB_OK;
    size_t n_stem = strlen(s->path), n_ids = 0;
    char *caps_path = NULL, *ids = NULL, *caps = NULL;
    json_t *mapping = NULL;
    pnb__line_reader lines;
    if (!pnb__ends_with(s->path, "_ids.txt"))
        return pnb__fail(err, PNB_ARG, "%s: a file of this format is called X_ids.txt", s->path);
    caps_path = pnb__format("%.*s_caps.txt", (int)(n_stem - strlen("_ids.txt")), s->path);
    if (caps_path == NULL)
        return pnb__fail_nomem(err, n_stem);
    PNB_TRY(load_mapping(&mapping, s->path, err));
    PNB_TRY(open_lines(&lines, &ids, s->path, err));
    PNB_TRY(read_ids(c, &lines, mapping, &n_ids, err));
    PNB_TRY(open_lines(&lines, &caps, caps_path, err));
    PNB_TRY(read_caps(c, &lines, err));
    if (c->n_images == 0 || c->n_texts % c->n_images != 0 ||
        (n_ids != c->n_images && n_ids != c->n_texts))
        PNB_TRY(pnb__fail(err, PNB_FORMAT,
                          "%s has %zu ids of %zu pictures and %s %zu captions; each picture needs "
                          "the same number",
                          s->path, n_ids, c->n_images, caps_path, c->n_texts));
    for (size_t i = 0, per = c->n_texts / c->n_images; i < c->n_texts; i++) {
        c->text[i].owner = i / per;
        c->text[i].place = i % per;
    }
done:
    json_decref(mapping);
    pnb__free(caps_path);
    pnb__free(ids);
    pnb__free(caps);
    return status;
}

/* ---- HierarCaps ---- */

/* Splits at "=>" and adds each level's caption. */
static pnb_status add_levels(pnb__ground_truth *c, const char *texts, pnb_error *err)
{
    pnb_status status = PNB_OK;
    size_t level = 0;
    for (const char *at = texts; status == PNB_OK && at != NULL; level++) {
        const char *stop = strstr(at, "=>");
        size_t n = 0;
        const char *text = pnb__trimmed(at, stop != NULL ? (size_t)(stop - at) : strlen(at), &n);
        if (n == 0)
            return pnb__fail(err, PNB_FORMAT, "the caption of level %zu is empty", level);
        status = pnb__ground_truth_text(c,
                                        (pnb__text_ref){c->n_images - 1, level, 0,
                                                        pnb__ground_truth_intern(c, text, n),
                                                        (int)level},
                                        err);
        at = stop != NULL ? stop + 2 : NULL;
    }
    return status;
}

pnb_status pnb__read_truth_hierarcaps(pnb__ground_truth *c, const pnb__truth_source *s,
                                      pnb_error *err)
{
    pnb__csv csv = {0};
    bool more = false;
    pnb_status status;
    PNB_TRY(pnb__csv_open(&csv, s->path, ',', err));
    if (csv.n_columns < 2)
        PNB_TRY(pnb__fail(err, PNB_FORMAT, "%s: columns id, captions and image url are wanted",
                          s->path));
    for (;;) {
        size_t line = csv.line; /* where the row begins */
        PNB_TRY(pnb__csv_next(&csv, &more, err));
        if (!more)
            break;
        const char *id = csv.fields[0];
        const char *url = csv.n_columns > 2 ? pnb__path_base(csv.fields[2]) : "";
        if (strstr(csv.fields[1], "=>") == NULL)
            PNB_TRY(pnb__fail(err, PNB_FORMAT,
                              "%s line %zu: the second column has no levels joined with =>",
                              s->path, line));
        pnb__image p = {{pnb__ground_truth_intern(c, id, strlen(id)),
                         url[0] != '\0' ? pnb__ground_truth_intern(c, url, strlen(url)) : 0, 0},
                        -1};
        PNB_TRY(pnb__ground_truth_image(c, p, err));
        status = add_levels(c, csv.fields[1], err);
        if (status == PNB_FORMAT)
            pnb__error_prefix(err, "%s line %zu", s->path, line);
        if (status != PNB_OK)
            goto done;
    }
done:
    pnb__csv_close(&csv);
    return status;
}

/* ---- data sets ---- */

static pnb_status add_sample(pnb__ground_truth *c, const pnb_sample *sample, pnb_error *err)
{
    const char *key = sample->key != NULL ? sample->key : "";
    const char *base = pnb__path_base(key);
    const char *path = sample->image_path != NULL ? sample->image_path : "";
    pnb__image p = {{pnb__ground_truth_intern(c, key, strlen(key)),
                     pnb__ground_truth_intern(c, base, strlen(base)),
                     path[0] != '\0' ? pnb__ground_truth_intern(c, path, strlen(path)) : 0},
                    -1};
    pnb_status status = pnb__ground_truth_image(c, p, err);
    for (size_t k = 0; status == PNB_OK && k < sample->n_texts; k++) {
        size_t n = 0;
        const char *text = pnb__trimmed(sample->texts[k], strlen(sample->texts[k]), &n);
        status = pnb__ground_truth_text(
            c,
            (pnb__text_ref){c->n_images - 1, k, 0, pnb__ground_truth_intern(c, text, n),
                            sample->levels != NULL ? sample->levels[k] : -1},
            err);
    }
    return status;
}

pnb_status pnb__read_truth_dataset(pnb__ground_truth *c, const pnb__truth_source *s, pnb_error *err)
{
    pnb_dataset *set = NULL;
    pnb_status status = pnb_dataset_open(&set, s->path, NULL, err);
    for (size_t i = 0; status == PNB_OK && i < pnb_dataset_size(set); i++) {
        pnb_sample sample = {0};
        status = pnb__dataset_record(set, i, &sample, err);
        if (status == PNB_OK)
            status = add_sample(c, &sample, err);
        pnb_sample_reset(&sample);
    }
    pnb_dataset_free(set);
    return status;
}

/* ---- labels ---- */

typedef struct class_name {
    const char *name;
    size_t line;
} class_name;

static int compare_classes(const void *a, const void *b)
{
    return strcmp(((const class_name *)a)->name, ((const class_name *)b)->name);
}

typedef struct labelled_rows {
    const char *path;
    pnb__id_resolver images, texts;
    int64_t *image_label, *text_label;
    class_name *line; /* [n_lines] class of each line, then sorted and unique */
    const char **id;  /* [n_lines] */
    size_t n_lines, n_classes;
} labelled_rows;

static pnb_status split_lines(labelled_rows *r, pnb__line_reader *lines, size_t most,
                              pnb_error *err)
{
    pnb_status status = PNB_OK;
    PNB_TRY(PNB_ALLOC(r->line, most, err));
    PNB_TRY(PNB_ALLOC(r->id, most, err));
    for (char *line;;) {
        PNB_TRY(pnb__line_next(lines, &line, err));
        if (line == NULL)
            break;
        if (line[0] == '\0' || line[0] == '#')
            continue;
        char *tab = strchr(line, '\t');
        if (tab == NULL)
            return pnb__fail(err, PNB_FORMAT, "%s line %zu: no tab; id, tab, class is wanted",
                             r->path, lines->number);
        *tab++ = '\0';
        if (strchr(tab, '\t') != NULL || tab[0] == '\0')
            return pnb__fail(err, PNB_FORMAT,
                             "%s line %zu: %s; id, tab, class is wanted, and nothing else", r->path,
                             lines->number,
                             tab[0] == '\0' ? "the class is empty" : "there is a third column");
        r->id[r->n_lines] = line;
        r->line[r->n_lines++] = (class_name){tab, lines->number};
    }
done:
    return status;
}

static pnb_status label_line(labelled_rows *r, size_t i, const class_name *classes, pnb_error *err)
{
    int64_t image = -1, text = -1;
    const class_name *found =
        bsearch(&r->line[i], classes, r->n_classes, sizeof *classes, compare_classes);
    pnb_status status = pnb__id_resolver_find(&r->images, r->id[i], &image, err);
    if (status == PNB_OK)
        status = pnb__id_resolver_find(&r->texts, r->id[i], &text, err);
    if (status != PNB_OK)
        return status;
    if (image < 0 && text < 0)
        return pnb__fail(err, PNB_NOT_FOUND, "%s line %zu: '%.200s' is no picture and no caption",
                         r->path, r->line[i].line, r->id[i]);
    int64_t known =
        PNB_MAX(image >= 0 ? r->image_label[image] : -1, text >= 0 ? r->text_label[text] : -1);
    if (known >= 0 && known != found - classes)
        return pnb__fail(err, PNB_FORMAT,
                         "%s line %zu: '%.200s' is of the class '%.80s', and of '%.80s' on a line "
                         "before; a row has one class",
                         r->path, r->line[i].line, r->id[i], found->name, classes[known].name);
    if (image >= 0)
        r->image_label[image] = found - classes;
    if (text >= 0)
        r->text_label[text] = found - classes;
    return PNB_OK;
}

static pnb_status label_rows(labelled_rows *r, pnb_error *err)
{
    class_name *classes = NULL;
    pnb_status status = PNB_ALLOC(classes, PNB_MAX(r->n_lines, 1), err);
    if (status != PNB_OK)
        return status;
    if (r->n_lines > 0)
        memcpy(classes, r->line, r->n_lines * sizeof *classes);
    qsort(classes, r->n_lines, sizeof *classes, compare_classes);
    for (size_t i = 0; i < r->n_lines; i++)
        if (r->n_classes == 0 || strcmp(classes[r->n_classes - 1].name, classes[i].name) != 0)
            classes[r->n_classes++] = classes[i];
    /* a row without a class matches nothing: negative labels, each once */
    for (size_t i = 0; i < r->images.rows->n; i++)
        r->image_label[i] = -2 * (int64_t)i - 2;
    for (size_t i = 0; i < r->texts.rows->n; i++)
        r->text_label[i] = -2 * (int64_t)i - 3;
    for (size_t i = 0; status == PNB_OK && i < r->n_lines; i++)
        status = label_line(r, i, classes, err);
    pnb__free(classes);
    return status;
}

pnb_status pnb__read_truth_labels(pnb_truth **out, const char *path, const pnb_truth_rows *images,
                                  const pnb_truth_rows *texts, pnb_error *err)
{
    pnb_status status = PNB_OK;
    labelled_rows r = {.path = path};
    char *data = NULL;
    size_t most = 1;
    pnb__line_reader lines;
    PNB_TRY(pnb__id_resolver_init(&r.images, PNB__NAMES_IMAGES, images, err));
    PNB_TRY(pnb__id_resolver_init(&r.texts, PNB__NAMES_TEXTS, texts, err));
    PNB_TRY(open_lines(&lines, &data, path, err));
    for (const char *at = data; at < lines.end; at++)
        most += *at == '\n';
    PNB_TRY(split_lines(&r, &lines, most, err));
    PNB_TRY(PNB_ALLOC(r.image_label, PNB_MAX(images->n, 1), err));
    PNB_TRY(PNB_ALLOC(r.text_label, PNB_MAX(texts->n, 1), err));
    PNB_TRY(label_rows(&r, err));
    status = pnb_truth_create_labels(out, r.image_label, images->n, r.text_label, texts->n, err);
done:
    pnb__id_resolver_reset(&r.images);
    pnb__id_resolver_reset(&r.texts);
    pnb__free(r.image_label);
    pnb__free(r.text_label);
    pnb__free(r.line);
    pnb__free(r.id);
    pnb__free(data);
    return status;
}
