/* The small JSON files that Hugging Face puts beside a vocabulary. A tokenizer.json repeats what
 * they say; spiece.model and vocab.json need them for tokens added later, whose ids may leave gaps
 * behind the vocabulary, and for the choice of start and end tokens. */
#include <stdlib.h>
#include <string.h>

#include "tokenizer/tokenizer_json.h"

#define MAX_SIDE_BYTES ((size_t)16 << 20)

static pnb_status load(json_t **out, const char *dir, const char *name, pnb_error *err)
{
    *out = NULL;
    char *path = pnb__path_join(dir, name);
    if (path == NULL)
        return pnb__fail_nomem(err, strlen(dir) + strlen(name));
    pnb_status status = PNB_OK;
    if (pnb__path_is_file(path))
        status = pnb__json_load_file(out, path, MAX_SIDE_BYTES, err);
    pnb__free(path);
    return status;
}

/* "x" or {"content": "x"}; what was found first stays. */
static pnb_status take_name(char **name, const json_t *root, const char *key, pnb_error *err)
{
    const json_t *value = json_object_get(root, key);
    if (json_is_object(value))
        value = json_object_get(value, "content");
    if (*name != NULL || !json_is_string(value))
        return PNB_OK;
    return pnb__copy_text(name, json_string_value(value), err);
}

static int flag_at(const json_t *root, const char *key)
{
    const json_t *value = json_object_get(root, key);
    return json_is_boolean(value) ? json_is_true(value) : -1;
}

static bool is_listed(const json_t *added, json_int_t id)
{
    const json_t *entry;
    size_t i;
    json_array_foreach((json_t *)(uintptr_t)added, i,
                       entry) if (json_integer_value(json_object_get(entry, "id")) ==
                                  id) return true;
    return false;
}

/* {"32000": {"content": ..., "special": ...}, ...} */
static pnb_status take_decoder(json_t *added, const json_t *decoder, pnb_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)decoder, key, value)
    {
        char *end;
        long long id = strtoll(key, &end, 10);
        if (*key == '\0' || *end != '\0' || id < 0 || id >= PNB__MAX_VOCAB ||
            !json_is_string(json_object_get(value, "content")))
            return pnb__fail(
                err, PNB_FORMAT,
                "tokenizer_config.json: added_tokens_decoder \"%.40s\": want an id and "
                "a content",
                key);
        json_t *entry = json_copy(value);
        bool failed = json_object_set_new(entry, "id", json_integer(id)) != 0;
        if (json_array_append_new(added, entry) != 0 || failed)
            return pnb__fail_nomem(err, 64);
    }
    return PNB_OK;
}

/* {"<token>": 32000, ...}, the older form. */
static pnb_status take_list(json_t *added, const json_t *list, pnb_error *err)
{
    const char *content;
    json_t *id;
    size_t n_before = json_array_size(added);
    json_object_foreach((json_t *)(uintptr_t)list, content, id)
    {
        if (!json_is_integer(id))
            return pnb__fail(err, PNB_FORMAT, "added_tokens.json: \"%.40s\" has no id", content);
        if (n_before > 0 && is_listed(added, json_integer_value(id)))
            continue;
        if (json_array_append_new(added, json_pack("{s:I, s:s, s:b, s:b}", "id",
                                                   json_integer_value(id), "content", content,
                                                   "normalized", 0, "special", 0)) != 0)
            return pnb__fail_nomem(err, strlen(content));
    }
    return PNB_OK;
}

pnb_status pnb__tok_read_side(pnb__tok_side *side, const char *dir, pnb_error *err)
{
    pnb_status status = PNB_OK;
    json_t *config = NULL, *map = NULL, *list = NULL;
    *side = (pnb__tok_side){.add_bos = -1, .add_eos = -1, .added = json_array()};
    if (dir == NULL)
        return PNB_OK;
    PNB_TRY(load(&map, dir, "special_tokens_map.json", err));
    PNB_TRY(load(&config, dir, "tokenizer_config.json", err));
    PNB_TRY(load(&list, dir, "added_tokens.json", err));
    PNB_TRY(take_name(&side->bos, map, "bos_token", err));
    PNB_TRY(take_name(&side->eos, map, "eos_token", err));
    PNB_TRY(take_name(&side->bos, config, "bos_token", err));
    PNB_TRY(take_name(&side->eos, config, "eos_token", err));
    side->add_bos = flag_at(config, "add_bos_token");
    side->add_eos = flag_at(config, "add_eos_token");
    side->add_prefix_space = flag_at(config, "add_prefix_space") > 0;
    PNB_TRY(take_decoder(side->added, json_object_get(config, "added_tokens_decoder"), err));
    PNB_TRY(take_list(side->added, list, err));
done:
    json_decref(map);
    json_decref(config);
    json_decref(list);
    if (status != PNB_OK)
        pnb__tok_side_reset(side);
    return status;
}

void pnb__tok_side_reset(pnb__tok_side *side)
{
    json_decref(side->added);
    pnb__free(side->bos);
    pnb__free(side->eos);
    *side = (pnb__tok_side){0};
}
