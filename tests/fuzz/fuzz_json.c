/* Any bytes as JSON: what parses must survive being written and parsed again. */
#include <stdint.h>
#include <stdlib.h>

#include "io/json/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use_getters(json_t *value)
{
    static const char *const allowed[] = {"layers", "width", "eps", "name"};
    float mean[3];
    pnb_error err = PNB_ERROR_INIT;
    pnb__jobj o = pnb__json_object(value, "fuzz", &err);
    pnb__json_get_int_in(&o, "layers", 12, 1, 1000, &err);
    pnb__json_get_double(&o, "eps", 1e-5, &err);
    pnb__json_get_bool(&o, "proj", false, &err);
    pnb__json_get_string(&o, "name", "", &err);
    pnb__json_get_floats(&o, "mean", mean, 3, &err);
    pnb__json_check_keys(&o, allowed, PNB_COUNT(allowed), &err);
    if (o.status != err.status)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *value = NULL, *again = NULL;
    pnb__buf text = {0};
    if (pnb__json_load_bytes(&value, (const char *)data, size, "fuzz", NULL) != PNB_OK)
        return 0;
    use_getters(value);
    pnb__json_append_value(&text, value);
    if (!text.failed &&
        (pnb__json_load_bytes(&again, text.data, text.size, "again", NULL) != PNB_OK ||
         !json_equal(value, again)))
        abort();
    json_decref(value);
    json_decref(again);
    pnb__buf_reset(&text);
    return 0;
}
