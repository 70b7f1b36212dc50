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

pnb_status pnb__sample_record(json_t **out, const pnb_sample *sample, pnb_error *err)
{
    *out = NULL;
    return sample->json == NULL ? PNB_OK
                                : pnb__json_try_bytes(out, sample->json, strlen(sample->json), err);
}

void pnb__carry_fields(pnb__buf *extra, json_t *record, bool is_text)
{
    for (size_t i = 0; i < PNB__N_CARRIED; i++) {
        const json_t *value = json_object_get(record, pnb__carried_fields[i]);
        bool is_own_text = is_text && strcmp(pnb__carried_fields[i], "caption") == 0;
        if (is_own_text || (!json_is_string(value) && !json_is_integer(value)))
            continue;
        pnb__buf_printf(extra, ",\"%s\":", pnb__carried_fields[i]);
        pnb__json_append_value(extra, value);
    }
    carry_scores(extra, record);
    if (!is_text)
        pnb__append_known(extra, record);
}

/* What a list of a record, as long as its captions, gives the row of each. */
static const struct {
    const char *list, *field;
} listed[] = {{"caption_ids", "caption_id"}, {"noise", "noise"}};

char *pnb__extra_of_text(const char *extra, const json_t *record, size_t k, size_t n_texts)
{
    pnb__buf text = {0};
    pnb__buf_append(&text, extra, strlen(extra) - 1); /* without the brace that closes it */
    for (size_t i = 0; i < PNB_COUNT(listed); i++) {
        const json_t *list = json_object_get(record, listed[i].list),
                     *value = json_array_size(list) == n_texts ? json_array_get(list, k) : NULL;
        if (!json_is_string(value) && !json_is_integer(value))
            continue;
        pnb__buf_printf(&text, ",\"%s\":", listed[i].field);
        pnb__json_append_value(&text, value);
    }
    pnb__buf_putc(&text, '}');
    char *out = text.failed ? NULL : pnb__strdup(text.data);
    pnb__buf_reset(&text);
    return out;
}

/* What records say of how ambiguous a sample is: `data shapes` writes the first three, `data
 * corrupt` the next two; `noise` is `data clipart`'s mark of a caption that does not describe. */
static const char *const known_fields[] = {"ambiguity", "entropy_bits", "expected_bits",
                                           "dose",      "swapped",      "noise"};

void pnb__append_known(pnb__buf *extra, const json_t *record)
{
    for (size_t i = 0; i < PNB_COUNT(known_fields); i++) {
        const json_t *value = json_object_get(record, known_fields[i]);
        if (!json_is_number(value) && !json_is_object(value) && !json_is_boolean(value))
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
