/* Joins pictures, captions and samples by name or by place.
 *
 * `embed` names a caption KEY#k and writes its picture's KEY into the field "image"; a set made by
 * another tool has only its order. What was joined how is told to the user, because pairs joined
 * wrongly give figures that look right. */
#include "commands/common/rows/align.h"

#include <string.h>

#include "commands/common/rows/id_map.h"
#include "encode/inputs/inputs.h"
#include "io/byte_names.h"
#include "io/json/json.h"
#include "penumbra/truth.h"

static pnb_status allocate(pnb__aligned *p, size_t capacity, pnb_error *err)
{
    if (PNB_ALLOC(p->image, PNB_MAX(capacity, (size_t)1), err) != PNB_OK)
        return PNB_NOMEM;
    return PNB_ALLOC(p->text, PNB_MAX(capacity, (size_t)1), err);
}

void pnb__aligned_reset(pnb__aligned *p)
{
    pnb__free(p->image);
    pnb__free(p->text);
    *p = (pnb__aligned){0};
}

/* ---- by place ---- */

static pnb_status pair_rows(pnb__aligned *p, const pnb_embeddings *images,
                            const pnb_embeddings *texts, pnb_error *err)
{
    if (images->n != texts->n)
        return pnb__fail(
            err, PNB_SHAPE,
            "%zu pictures and %zu captions: row i belongs to row i only when there are "
            "as many; pair them by ids (--pair-by ids) or by a file of pairs (--pairs)",
            images->n, texts->n);
    pnb_status status = allocate(p, images->n, err);
    for (size_t i = 0; status == PNB_OK && i < images->n; i++)
        p->image[i] = p->text[i] = i;
    p->n = status == PNB_OK ? images->n : 0;
    return status;
}

/* ---- by name ---- */

/* The id of a caption's picture; *root keeps it alive. False when only its own id is left. */
static bool named_image(const pnb_embeddings *texts, size_t row, json_t **root, const char **id,
                        size_t *n)
{
    const char *extra = texts->extras != NULL ? texts->extras[row] : NULL;
    const char *own = texts->ids != NULL && texts->ids[row] != NULL ? texts->ids[row] : "";
    const char *hash = strrchr(own, '#');
    *root = NULL;
    if (extra != NULL && strstr(extra, "\"image\"") != NULL &&
        pnb__json_load_bytes(root, extra, strlen(extra), "row", NULL) == PNB_OK) {
        *id = json_string_value(json_object_get(*root, "image"));
        if (*id != NULL) {
            pnb__byte_name_restore((char *)(uintptr_t)*id); /* ours alone, and it only shrinks */
            *n = strlen(*id);
            return true;
        }
    }
    *id = own;
    *n = hash != NULL ? (size_t)(hash - own) : strlen(own);
    return hash != NULL;
}

static pnb_status pair_ids(pnb__aligned *p, const pnb_embeddings *images,
                           const pnb_embeddings *texts, pnb_error *err)
{
    pnb__id_map map = {0};
    unsigned char *used = NULL;
    pnb_status status = PNB_ALLOC_ZERO(used, images->n, err);
    if (status == PNB_OK && images->ids == NULL)
        status = pnb__fail(err, PNB_ARG, "the pictures have no ids to pair by");
    if (status == PNB_OK)
        status =
            pnb__id_map_init(&map, (const char *const *)images->ids, images->n, "picture id", err);
    if (status == PNB_OK)
        status = allocate(p, texts->n, err);
    for (size_t row = 0; status == PNB_OK && row < texts->n; row++) {
        json_t *root;
        const char *id;
        size_t n;
        named_image(texts, row, &root, &id, &n);
        size_t image = pnb__id_map_find(&map, id, n);
        json_decref(root);
        if (image == SIZE_MAX) {
            p->n_no_image++;
            continue;
        }
        used[image] = 1;
        p->image[p->n] = image;
        p->text[p->n++] = row;
    }
    for (size_t i = 0; status == PNB_OK && i < images->n; i++)
        p->n_no_text += used[i] == 0;
    if (status == PNB_OK && p->n == 0)
        status = pnb__fail(err, PNB_NOT_FOUND,
                           "no caption of %zu names one of the %zu pictures (the first picture is "
                           "'%.100s', the first caption '%.100s')",
                           texts->n, images->n, images->ids[0] != NULL ? images->ids[0] : "",
                           texts->ids != NULL && texts->ids[0] != NULL ? texts->ids[0] : "");
    pnb__id_map_reset(&map);
    pnb__free(used);
    return status;
}

static pnb_status pair_file(pnb__aligned *p, const pnb_embeddings *images,
                            const pnb_embeddings *texts, const char *file, pnb_error *err)
{
    const pnb_truth_rows image_rows = pnb_truth_rows_of(images),
                         text_rows = pnb_truth_rows_of(texts);
    const pnb_truth_read_opts as_pairs = {.format = PNB_TRUTH_PAIRS};
    pnb_truth *truth = NULL;
    pnb_status status = pnb_truth_read(&truth, file, &image_rows, &text_rows, &as_pairs, NULL, err);
    if (status == PNB_OK)
        status = allocate(p, truth->n_pairs, err);
    for (size_t image = 0; status == PNB_OK && image < truth->n_queries; image++)
        for (size_t at = truth->offset[image]; at < truth->offset[image + 1]; at++) {
            p->image[p->n] = image;
            p->text[p->n++] = truth->item[at];
        }
    pnb_truth_free(truth);
    return status;
}

pnb_status pnb__align(pnb__aligned *out, const pnb_embeddings *images, const pnb_embeddings *texts,
                      const char *file, const char *by, pnb_error *err)
{
    *out = (pnb__aligned){.by = by};
    if (file != NULL) {
        out->by = "file";
    } else if (strcmp(by, "auto") == 0) {
        json_t *root;
        const char *id;
        size_t n;
        out->by = named_image(texts, 0, &root, &id, &n) ? "ids" : "rows";
        json_decref(root);
    }
    pnb_status status = file != NULL                  ? pair_file(out, images, texts, file, err)
                        : strcmp(out->by, "ids") == 0 ? pair_ids(out, images, texts, err)
                                                      : pair_rows(out, images, texts, err);
    if (status != PNB_OK)
        pnb__aligned_reset(out);
    return status;
}

/* ---- samples ---- */

/* Rows that were named by their number only, as files without ids are. */
static bool is_unnamed(const pnb_embeddings *images)
{
    char number[24];
    for (size_t i = 0; images->ids != NULL && i < images->n; i++) {
        snprintf(number, sizeof number, "%zu", i);
        if (images->ids[i] != NULL && strcmp(images->ids[i], number) != 0)
            return false;
    }
    return true;
}

static void free_names(char **names, size_t n)
{
    for (size_t i = 0; names != NULL && i < n; i++)
        pnb__free(names[i]);
    pnb__free(names);
}

/* Ids of all samples; NULL for one whose record cannot be read. */
static pnb_status name_samples(pnb__pair_data *d, char ***out, pnb_error *err)
{
    size_t n = pnb_dataset_size(d->set);
    pnb_status status = PNB_OK;
    char **names = pnb__alloc_zero(n, sizeof *names);
    if (names == NULL)
        return pnb__fail_nomem(err, n * sizeof *names);
    for (size_t i = 0; status == PNB_OK && i < n; i++) {
        pnb_sample sample = {0};
        pnb_status read = pnb_dataset_get(d->set, i, &sample, NULL);
        d->n_unreadable += read != PNB_OK;
        if (read == PNB_OK)
            names[i] = pnb__strdup(pnb__sample_id(d->set, &sample));
        if (read == PNB_NOMEM || (read == PNB_OK && names[i] == NULL))
            status = pnb__fail_nomem(err, 64);
        pnb_sample_reset(&sample);
    }
    if (status == PNB_OK)
        *out = names;
    else
        free_names(names, n);
    return status;
}

/* The usual case: embedded as a whole and in order, so that place and name agree. It also serves
 * data sets whose ids are not unique. */
static bool agrees_by_place(const pnb_embeddings *images, char *const *names, size_t n)
{
    if (images->n != n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (names[i] == NULL || images->ids[i] == NULL || strcmp(names[i], images->ids[i]) != 0)
            return false;
    return true;
}

static pnb_status find_by_name(pnb__pair_data *d, const pnb_embeddings *images, char *const *names,
                               const char *spec, pnb_error *err)
{
    pnb__id_map map = {0};
    pnb_status status = pnb__id_map_init(&map, (const char *const *)names, pnb_dataset_size(d->set),
                                         "sample id", err);
    for (size_t i = 0; status == PNB_OK && i < images->n; i++) {
        const char *id = images->ids[i] != NULL ? images->ids[i] : "";
        d->sample[i] = pnb__id_map_find(&map, id, strlen(id));
        if (d->sample[i] == SIZE_MAX)
            status = pnb__fail(err, PNB_NOT_FOUND,
                               "row %zu of the pictures, '%.200s', is no sample of %s: is it "
                               "another data set?",
                               i, id, spec);
    }
    pnb__id_map_reset(&map);
    return status;
}

static pnb_status find_samples(pnb__pair_data *d, const pnb_embeddings *images, const char *spec,
                               pnb_error *err)
{
    size_t n = pnb_dataset_size(d->set);
    char **names = NULL;
    bool by_place = is_unnamed(images) && images->n == n;
    pnb_status status = PNB_OK;
    if (!by_place)
        status = name_samples(d, &names, err);
    if (status == PNB_OK && !by_place && images->ids == NULL)
        status = pnb__fail(err, PNB_SHAPE,
                           "%zu pictures without ids and %zu samples in %s: which is which?",
                           images->n, n, spec);
    if (status == PNB_OK && !by_place && !agrees_by_place(images, names, n))
        status = find_by_name(d, images, names, spec, err);
    else
        for (size_t i = 0; status == PNB_OK && i < images->n; i++)
            d->sample[i] = i;
    free_names(names, n);
    return status;
}

static pnb_status count_unembedded(pnb__pair_data *d, const pnb_embeddings *images, pnb_error *err)
{
    size_t n = pnb_dataset_size(d->set);
    pnb_status status = PNB_OK;
    size_t *row = pnb__alloc_zero(n, sizeof *row); /* + 1, 0: none */
    if (row == NULL)
        return pnb__fail_nomem(err, n * sizeof *row);
    for (size_t i = 0; status == PNB_OK && i < images->n; i++) {
        size_t *first = &row[d->sample[i]];
        if (*first != 0)
            status =
                pnb__fail(err, PNB_ARG,
                          "picture rows %zu and %zu, '%.200s', are both sample "
                          "%zu of the data set",
                          *first - 1, i, images->ids != NULL ? images->ids[i] : "", d->sample[i]);
        *first = i + 1;
    }
    for (size_t i = 0; i < n; i++)
        d->n_unembedded += row[i] == 0;
    pnb__free(row);
    return status;
}

pnb_status pnb__pair_data_open(pnb__pair_data *out, const char *spec, const pnb_dataset_opts *opts,
                               const pnb_embeddings *images, pnb_error *err)
{
    pnb_status status;
    *out = (pnb__pair_data){0};
    PNB_TRY(pnb_dataset_open(&out->set, spec, opts, err));
    PNB_TRY(PNB_ALLOC(out->sample, images->n, err));
    PNB_TRY(find_samples(out, images, spec, err));
    PNB_TRY(count_unembedded(out, images, err));
done:
    if (status != PNB_OK)
        pnb__pair_data_close(out);
    return status;
}

void pnb__pair_data_close(pnb__pair_data *d)
{
    pnb_dataset_free(d->set);
    pnb__free(d->sample);
    *d = (pnb__pair_data){0};
}
