/* special_tokens_map.json, tokenizer_config.json and added_tokens.json from strangers: what is read
 * is a list of tokens with ids within the vocabulary's limit. */
#include <stdint.h>
#include <stdlib.h>

#include "tests/fuzz/folder.h"
#include "tokenizer/tokenizer_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {"special_tokens_map.json", "tokenizer_config.json",
                                    "added_tokens.json"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    folder f;
    pnb__tok_side side;
    pnb_error err = PNB_ERROR_INIT;
    if (!folder_make(&f, names, PNB_COUNT(names), data, size))
        return 0;
    pnb_status status = pnb__tok_read_side(&side, f.dir, &err);
    REQUIRE_TOLD(status, err);
    if (status == PNB_OK && !json_is_complete(side.added))
        abort();
    for (size_t i = 0; status == PNB_OK && i < json_array_size(side.added); i++)
        if (!json_is_integer(json_object_get(json_array_get(side.added, i), "id")))
            abort();
    pnb__tok_side_reset(&side);
    folder_remove(&f);
    return 0;
}
