/* The uid of a sample: in this order, unless one is named, the field "uid" of its record (32
 * hexadecimal digits, as DataComp's), "md5", the first half of "sha256" (img2dataset writes that
 * one), and the first half of the SHA-256 of the picture's encoded bytes.
 *
 * The first picture asked for decides which it is; another one without it is an error, so that one
 * file never mixes kinds of names. Files of uids are the matter of src/eval/curation/uid_file.c. */
#include <string.h>

#include "commands/filter/filter.h"
#include "io/json/json.h"
#include "sets/set_rows.h"

#define MAX_IMAGE_BYTES ((size_t)1 << 30)

static const char *const uid_fields[] = {"uid", "md5", "sha256", "picture"};

enum { FIELD_IMAGE = 3, N_FIELDS = 4 };

/* The encoded bytes of a picture, hashed. */
static pnb_status hash_image(const pnb__filter_run *run, size_t row, char hex[65], pnb_error *err)
{
    pnb_sample s = {0};
    pnb__sha256 hash;
    char *bytes = NULL;
    size_t n = 0;
    pnb_status status;
    pnb__sha256_init(&hash);
    PNB_TRY(pnb_dataset_get(run->data.set, run->data.sample[row], &s, err));
    if (s.image_path != NULL)
        PNB_TRY(pnb__read_file(s.image_path, MAX_IMAGE_BYTES, &bytes, &n, err));
    pnb__sha256_update(&hash, bytes != NULL ? (void *)bytes : (const void *)s.image_bytes,
                       bytes != NULL ? n : s.n_image_bytes);
    pnb__sha256_hex(&hash, hex);
done:
    pnb__free(bytes);
    pnb_sample_reset(&s);
    return status;
}

/* Reads a uid from a JSON record. False: there is none. */
static bool uid_of_record(const char *json, const char *field, pnb_uid *out)
{
    json_t *root = NULL;
    bool found = false;
    if (json != NULL && pnb__json_load_bytes(&root, json, strlen(json), "record", NULL) == PNB_OK) {
        const char *text = json_string_value(json_object_get(root, field));
        found = text != NULL && pnb_uid_parse(out, text);
    }
    json_decref(root);
    return found;
}

/* The uid of a picture by one field; *found tells whether there is one. */
static pnb_status find_uid(const pnb__filter_run *run, size_t row, int field, pnb_uid *out,
                           bool *found, pnb_error *err)
{
    const char *extra = run->images->extras != NULL ? run->images->extras[row] : NULL;
    pnb_sample s = {0};
    char hex[65];
    pnb_status status = PNB_OK;
    *found = false;
    if (field == FIELD_IMAGE) {
        if (run->data.set == NULL)
            return PNB_OK;
        status = hash_image(run, row, hex, err);
        *found = status == PNB_OK && pnb_uid_parse(out, hex);
        return status;
    }
    *found = uid_of_record(extra, uid_fields[field], out);
    if (!*found && field == 0 && pnb_uid_parse(out, pnb__set_id(run->images, row)))
        *found = strlen(pnb__set_id(run->images, row)) == 32;
    if (!*found && run->data.set != NULL) {
        status = pnb_dataset_get(run->data.set, run->data.sample[row], &s, err);
        *found = status == PNB_OK && uid_of_record(s.json, uid_fields[field], out);
        pnb_sample_reset(&s);
    }
    return status;
}

/* The first field that the first kept picture has, N_FIELDS when it has none. */
static pnb_status choose_field(const pnb__filter_run *run, const unsigned char *keep, int *field,
                               pnb_error *err)
{
    size_t row = 0;
    pnb_uid uid;
    bool found = false;
    pnb_status status = PNB_OK;
    while (!keep[row])
        row++;
    for (*field = 0; *field < N_FIELDS; ++*field) {
        status = find_uid(run, row, *field, &uid, &found, err);
        if (status != PNB_OK || found)
            return status;
    }
    return status;
}

/* Of *n pictures; each process reads its share of them. */
static pnb_status collect_uids(const pnb__filter_run *run, const unsigned char *keep, int field,
                               pnb_uid *uids, size_t *n, pnb_error *err)
{
    size_t share[2];
    pnb_status status = PNB_OK;
    for (size_t row = 0; row < run->images->n; row++)
        *n += keep[row] != 0;
    pnb__filter_share(run, *n, share);
    for (size_t row = 0, at = 0; status == PNB_OK && row < run->images->n; row++) {
        bool found = true;
        if (!keep[row] || at++ < share[0] || at > share[1])
            continue;
        if (field < N_FIELDS)
            status = find_uid(run, row, field, &uids[at - 1], &found, err);
        if (status == PNB_OK && (!found || field == N_FIELDS))
            status = pnb__fail(err, PNB_NOT_FOUND,
                               "picture '%.200s' has no %s of 32 hexadecimal digits; with --data, "
                               "--uid picture names samples by the hash of their pictures",
                               pnb__set_id(run->images, row),
                               field < N_FIELDS ? uid_fields[field] : "uid, md5 or sha256");
    }
    return status == PNB_OK ? pnb__filter_merge(run, uids, *n, sizeof *uids, err) : status;
}

pnb_status pnb__filter_uids(const pnb__filter_run *run, const unsigned char *wanted, pnb_uid *uids,
                            size_t *n, const char **name, pnb_error *err)
{
    int field = 0;
    pnb_status status = PNB_OK;
    if (strcmp(run->opts->uid_field, "auto") == 0)
        status = choose_field(run, wanted, &field, err);
    else
        while (field < N_FIELDS && strcmp(run->opts->uid_field, uid_fields[field]) != 0)
            field++;
    *n = 0;
    if (status == PNB_OK)
        status = collect_uids(run, wanted, field, uids, n, err);
    if (status == PNB_OK)
        *name = uid_fields[field];
    return status;
}
