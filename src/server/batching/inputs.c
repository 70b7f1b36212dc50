/* JSON to a list of captions and pictures; no picture is decoded here.
 *
 * Stock clients send pictures in three ways: in place of a string, under a key, and as part of a
 * chat. A string is a picture when it begins as a data URL of one; no caption does. */
#include "server/batching/inputs.h"

#include <string.h>

#include "base/grow.h"
#include "io/image/data_url.h"
#include "server/fields.h"

void pnb__inputs_reset(pnb__inputs *in)
{
    pnb__free(in->items);
    *in = (pnb__inputs){0};
}

static pnb_status add(pnb__inputs *in, const json_t *text, bool is_image, const char *field,
                      pnb_error *err)
{
    if (!json_is_string(text))
        return pnb__fail(err, PNB_FORMAT, "'%s' has %s where a string is wanted", field,
                         pnb__json_kind(text));
    if (in->n >= PNB__MAX_INPUTS)
        return pnb__fail(err, PNB_ARG, "'%s' has more than %d inputs", field, PNB__MAX_INPUTS);
    const pnb__input item = {is_image || pnb__is_image_url(json_string_value(text)),
                             json_string_value(text), json_string_length(text)};
    return PNB_PUSH(in->items, in->n, err, item);
}

pnb_status pnb__inputs_add_image(pnb__inputs *in, const json_t *value, const char *field,
                                 pnb_error *err)
{
    const json_t *url = json_is_object(value) ? json_object_get(value, "url") : value;
    return add(in, url, true, field, err);
}

/* {"text"}, {"image"}, or a part of a chat with its "type". */
static pnb_status read_part(pnb__inputs *in, const json_t *part, const char *field, pnb_error *err)
{
    const json_t *text = json_object_get(part, "text"), *image = json_object_get(part, "image");
    const json_t *url = json_object_get(part, "image_url");
    if ((text != NULL) + (image != NULL) + (url != NULL) != 1)
        return pnb__fail(err, PNB_FORMAT,
                         "an object in '%s' wants one of \"text\", \"image\", \"image_url\"",
                         field);
    if (text != NULL)
        return add(in, text, false, field, err);
    return pnb__inputs_add_image(in, image != NULL ? image : url, field, err);
}

static pnb_status read_one(pnb__inputs *in, const json_t *value, const char *field, pnb_error *err)
{
    if (json_is_object(value))
        return read_part(in, value, field, err);
    if (json_is_number(value) || json_is_array(value))
        return pnb__fail(err, PNB_FORMAT,
                         "'%s' has %s: ids of tokens are not taken, send the text itself", field,
                         pnb__json_kind(value));
    return add(in, value, false, field, err);
}

static pnb_status check_some(const pnb__inputs *in, const char *field, pnb_error *err)
{
    return in->n > 0 ? PNB_OK : pnb__fail(err, PNB_FORMAT, "'%s' holds nothing", field);
}

pnb_status pnb__inputs_read(pnb__inputs *in, const json_t *value, const char *field, pnb_error *err)
{
    const json_t *item;
    size_t i;
    pnb_status status = PNB_OK;
    if (!json_is_array(value))
        return read_one(in, value, field, err);
    json_array_foreach(value, i, item)
    {
        status = read_one(in, item, field, err);
        if (status != PNB_OK)
            return status;
    }
    return check_some(in, field, err);
}

pnb_status pnb__inputs_read_messages(pnb__inputs *in, const json_t *messages, pnb_error *err)
{
    const json_t *message;
    size_t i;
    pnb_status status = PNB_OK;
    json_array_foreach(messages, i, message)
    {
        const json_t *content = json_object_get(message, "content");
        if (content == NULL)
            status = pnb__fail(err, PNB_FORMAT, "message %zu has no \"content\"", i);
        else
            status = pnb__inputs_read(in, content, "messages", err);
        if (status != PNB_OK)
            return status;
    }
    return check_some(in, "messages", err);
}
