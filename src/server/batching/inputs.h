/* What a request asks to be embedded: captions and pictures, in every form that clients send. */
#ifndef PNB_SERVER_BATCHING_INPUTS_H
#define PNB_SERVER_BATCHING_INPUTS_H

#include "io/json/json.h"

/* A caption, or a picture as base64 or data URL; the text is the request's. */
typedef struct pnb__input {
    bool is_image;
    const char *text;
    size_t n_bytes;
} pnb__input;

/* All zero is an empty list; release with pnb__inputs_reset, after a failure too. */
typedef struct pnb__inputs {
    pnb__input *items;
    size_t n;
} pnb__inputs;

enum { PNB__MAX_INPUTS = 2048 }; /* of a request, as OpenAI has it */

/* One or, in an array, several of
 *   "a caption"    "data:image/png;base64,..."    {"text": ...}    {"image": data URL or base64}
 *   {"type": "text", "text": ...}    {"type": "image_url", "image_url": {"url": data URL}}
 * `field` is for messages.
 * Errors  FORMAT, ARG (something else, nothing, more than PNB__MAX_INPUTS: the text names the
 *         place), NOMEM */
pnb_status pnb__inputs_read(pnb__inputs *in, const json_t *value, const char *field,
                            pnb_error *err);
/* The parts of all messages of a chat, each an input: [{"role": ..., "content": "..." or [...]}].
 */
pnb_status pnb__inputs_read_messages(pnb__inputs *in, const json_t *messages, pnb_error *err);
/* A picture under a key of its own, whatever its form. */
pnb_status pnb__inputs_add_image(pnb__inputs *in, const json_t *value, const char *field,
                                 pnb_error *err);
void pnb__inputs_reset(pnb__inputs *in);

#endif
