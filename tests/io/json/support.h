/* JSON from texts of a test. */
#ifndef TESTS_IO_JSON_SUPPORT_H
#define TESTS_IO_JSON_SUPPORT_H

#include "io/json/json.h"
#include "tests/io/scratch.h"

static inline pnb_status load(json_t **out, const char *text, pnb_error *err)
{
    return pnb__json_load_bytes(out, text, strlen(text), "conf.json", err);
}

static inline json_t *parse_one(const char *text)
{
    json_t *value = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(load(&value, text, &err), &err);
    return value;
}

#endif
