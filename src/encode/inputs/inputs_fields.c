/* What img2dataset and webdataset records say of a sample beside its picture and captions, and the
 * class it is of.
 *
 * It is carried along to the row's names, so that a hit leads back to where the picture came from,
 * that rows of one class know each other (`eval --class-key class`), and that an uncertainty can be
 * held against what is known (`eval uncertainty --entropy`). */
#include <string.h>

#include "encode/inputs/inputs.h"
#include "io/byte_names.h"
#include "io/json/json.h"

const char *const pnb__carried_fields[PNB__N_CARRIED] = {"url", "caption", "uid", "key"};

/* DataComp's clip_b32_similarity_score and its like, aesthetic_score of others. */
static void carry_scores(pnb__buf *extra, json_t *record)
{
    const char *key;
    json_t *value;
    json_object_foreach(record, key, value)
    {
        if (!json_is_number(value) ||
            (!pnb__ends_with(key, "score") && !pnb__ends_with(key, "similarity")))
            continue;
        pnb__buf_putc(extra, ',');
        pnb__json_append_string(extra, key);
        pnb__buf_putc(extra, ':');
        pnb__json_append_value(extra, value);
    }
}

pnb_status pnb__carry_fields(pnb__buf *extra, const pnb_sample *sample, bool is_text,
                             pnb_error *err)
{
    json_t *root = NULL;
    if (sample->json == NULL)
        return PNB_OK;
    pnb_status status = pnb__json_try_bytes(&root, sample->json, strlen(sample->json), err);
    for (size_t i = 0; i < PNB__N_CARRIED; i++) {
        const json_t *value = json_object_get(root, pnb__carried_fields[i]);
        bool is_own_text = is_text && strcmp(pnb__carried_fields[i], "caption") == 0;
        if (is_own_text || (!json_is_string(value) && !json_is_integer(value)))
            continue;
        pnb__buf_printf(extra, ",\"%s\":", pnb__carried_fields[i]);
        pnb__json_append_value(extra, value);
    }
    carry_scores(extra, root);
    if (!is_text)
        pnb__append_known(extra, root);
    json_decref(root);
    return status;
}

pnb_status pnb__caption_ids(json_t **out, const pnb_sample *sample, pnb_error *err)
{
    json_t *record = NULL;
    *out = NULL;
    if (sample->json == NULL || strstr(sample->json, "\"caption_ids\"") == NULL)
        return PNB_OK;
    pnb_status status = pnb__json_try_bytes(&record, sample->json, strlen(sample->json), err);
    json_t *ids = json_object_get(record, "caption_ids");
    if (json_is_array(ids) && json_array_size(ids) == sample->n_texts)
        *out = json_incref(ids);
    json_decref(record);
    return status;
}

char *pnb__extra_with_caption_id(const char *extra, const json_t *id)
{
    pnb__buf text = {0};
    if (!json_is_string(id) && !json_is_integer(id))
        return pnb__strdup(extra);
    pnb__buf_append(&text, extra, strlen(extra) - 1); /* without the brace that closes it */
    pnb__buf_puts(&text, ",\"caption_id\":");
    pnb__json_append_value(&text, id);
    pnb__buf_putc(&text, '}');
    char *out = text.failed ? NULL : pnb__strdup(text.data);
    pnb__buf_reset(&text);
    return out;
}

/* What records say of how ambiguous a sample is: `data shapes` writes the first three, `data
 * corrupt` the others. */
static const char *const known_fields[] = {"ambiguity", "entropy_bits", "expected_bits", "dose",
                                           "swapped"};

void pnb__append_known(pnb__buf *extra, const json_t *record)
{
    for (size_t i = 0; i < PNB_COUNT(known_fields); i++) {
        const json_t *value = json_object_get(record, known_fields[i]);
        if (!json_is_number(value) && !json_is_object(value))
            continue;
        pnb__buf_printf(extra, "%s\"%s\":", extra->size > 1 ? "," : "", known_fields[i]);
        pnb__json_append_value(extra, value);
    }
}

void pnb__carry_class(pnb__buf *extra, const pnb_sample *sample)
{
    if (sample->class_name != NULL) {
        pnb__buf_puts(extra, ",\"class\":");
        pnb__byte_name_append(extra, sample->class_name); /* it may be named by its folder */
    }
    if (sample->label >= 0)
        pnb__buf_printf(extra, ",\"label\":%lld", (long long)sample->label);
}
