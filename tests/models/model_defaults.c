/* What is assumed of a folder that does not say it, by family and layout; the cleaning that
 * configurations ask for in each of their forms; where a missing tokenizer is to be had. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "models/model_defaults.h"

#define CASES PNB_SOURCE_DIR "/tests/golden/prolip_model/"

static pnb_ctx *ctx;
static char folder[64];

static int setup(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/pnb-beside-XXXXXX");
    return mkdtemp(folder) != NULL && pnb_ctx_create(&ctx, NULL, NULL) == PNB_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    pnb_ctx_free(ctx);
    return rmdir(folder);
}

static void preprocessing_is_assumed_by_family(void **state)
{
    (void)state;
    static const struct {
        const char *model, *want; /* the beginning of the description, and its mean */
        bool half;
    } cases[] = {
        {"base", "bicubic shortest floor resize_to=0 fill=0 order=rgb,resize", false},
        {"hf_first_eos", "bicubic shortest floor resize_to=0 fill=0 order=rgb,resize", false},
        {"open_clip_average", "bicubic shortest resize_to=0 fill=0 order=resize,rgb", false},
        {"openai_state_dict", "bicubic shortest resize_to=0 fill=0 order=resize,rgb", false},
        {"open_clip_siglip", "bicubic squash resize_to=0 fill=0 order=resize,rgb", true},
        {"pcmepp_two_paths", "bicubic shortest floor resize_to=0 fill=0 order=rgb,resize", false},
        {"siglip_tanh", "bicubic squash floor resize_to=0 fill=0 order=rgb,resize", true},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        char dir[512], found[512], want[256];
        pnb_model *model = NULL;
        snprintf(dir, sizeof dir, CASES "%s", cases[i].model);
        assert_int_equal(pnb_model_load(&model, ctx, dir, NULL), PNB_OK);
        const pnb_tower_info *v = &pnb_model_get_info(model)->vision;
        pnb_preprocess pp = pnb__assumed_preprocess(model);
        pnb_preprocess_describe(&pp, found, sizeof found);
        snprintf(want, sizeof want, "%zux%zu %s mean=%s", v->image_width, v->image_height,
                 cases[i].want, cases[i].half ? "0.5,0.5,0.5 std=0.5" : "0.48145467,");
        if (strncmp(found, want, strlen(want)) != 0)
            fail_msg("%s: %s, want %s", cases[i].model, found, want);
        pnb_model_free(model);
    }
}

static pnb_tokenizer *tokenizer(void)
{
    static const char *const texts[] = {"a red star", "a blue ring"};
    pnb_tokenizer *t = NULL;
    pnb_tokenizer_opts opts = pnb_tokenizer_opts_default();
    assert_int_equal(pnb_tokenizer_train(&t, texts, 2, &opts, NULL), PNB_OK);
    pnb_tokenizer_set_clean(t, PNB_CLEAN_LOWER);
    return t;
}

/* NULL for NULL. */
static json_t *json_of(const char *text)
{
    json_t *root = NULL;
    if (text != NULL)
        assert_int_equal(pnb__json_load_bytes(&root, text, strlen(text), "x", NULL), PNB_OK);
    return root;
}

static pnb_status clean_of(const char *config, const char *dir, pnb_clean *clean, pnb_error *err)
{
    json_t *root = json_of(config);
    pnb_tokenizer *t = tokenizer();
    bool found;
    pnb_status status = pnb__apply_clean(t, root, dir, &found, err);
    *clean = pnb_tokenizer_clean(t);
    pnb_tokenizer_free(t);
    json_decref(root);
    return status;
}

#define ASKS(name) "{\"text_cfg\":{\"tokenizer_kwargs\":{\"clean\":\"" name "\"}}}"

static void cleaning_is_read_in_every_form(void **state)
{
    (void)state;
    pnb_clean clean;
    pnb_error err = PNB_ERROR_INIT;
    char path[128];
    assert_int_equal(clean_of(ASKS("whitespace"), NULL, &clean, NULL), PNB_OK);
    assert_int_equal(clean, PNB_CLEAN_WHITESPACE);
    assert_int_equal(clean_of("{\"model_cfg\":" ASKS("canonicalize") "}", NULL, &clean, NULL),
                     PNB_OK);
    assert_int_equal(clean, PNB_CLEAN_CANONICALIZE);
    assert_int_equal(clean_of("{\"model_type\":\"siglip\"}", folder, &clean, NULL), PNB_OK);
    assert_int_equal(clean, PNB_CLEAN_LOWER); /* nobody asks: the tokenizer's own */
    assert_int_equal(clean_of(ASKS("spotless"), NULL, &clean, &err), PNB_FORMAT);
    assert_non_null(strstr(err.text, "\"spotless\" is not one of none, lower"));
    snprintf(path, sizeof path, "%s/tokenizer_config.json", folder);
    static const char class[] = "{\"tokenizer_class\": \"SiglipTokenizer\"}";
    assert_int_equal(pnb__write_file(path, class, strlen(class), NULL), PNB_OK);
    assert_int_equal(clean_of(NULL, folder, &clean, NULL), PNB_OK);
    assert_int_equal(clean, PNB_CLEAN_CANONICALIZE);
    assert_int_equal(clean_of(ASKS("none"), folder, &clean, NULL), PNB_OK);
    assert_int_equal(clean, PNB_CLEAN_NONE); /* the configuration has the last word */
    assert_int_equal(clean_of(NULL, NULL, &clean, NULL), PNB_OK);
    assert_int_equal(clean, PNB_CLEAN_LOWER);
    unlink(path);
}

/* ---- padding ---- */

#define SPECIAL(id, name) "{\"id\":" id ",\"content\":\"" name "\",\"special\":true}"
#define END(id, name)                                                                              \
    "{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"A\"}},{"                 \
    "\"SpecialToken\":{\"id\":\"" name "\"}}],\"special_tokens\":{\"" name "\":{\"ids\":[" id      \
    "]}}}"
#define SIGLIP_TOKENIZER(padding)                                                                  \
    "{\"padding\":" padding ",\"added_tokens\":[" SPECIAL("0", "<pad>") "," SPECIAL(               \
        "1",                                                                                       \
        "</s>") "],\"post_processor\":" END("1",                                                   \
                                            "</s>") ",\"model\":{\"type\":\"Unigram\","            \
                                                    "\"unk_id\":2,\"vocab\":[[\"<pad>\",0],[\"</"  \
                                                    "s>\",0],[\"<unk>\",0],[\"a\",-1],[\"[PAD]\"," \
                                                    "-2]]}}"
#define GEMMA_TOKENIZER                                                                            \
    "{\"padding\":null,\"added_tokens\":[" SPECIAL("0", "<pad>") "," SPECIAL(                      \
        "1", "<eos>") "],"                                                                         \
                      "\"post_processor\":" END(                                                   \
                          "1", "<eos>") ",\"model\":{\"type\":\"BPE\",\"merges\":[],"              \
                                        "\"vocab\":{\"<pad>\":0,\"<eos>\":1,\"</s>\":2,\"a\":3}}}"
#define CLIP_TOKENIZER                                                                             \
    "{\"padding\":null,\"added_tokens\":[" SPECIAL(                                                \
        "3",                                                                                       \
        "<|endoftext|>") "],"                                                                      \
                         "\"pre_tokenizer\":{\"type\":\"ByteLevel\"},\"post_processor\":" END(     \
                             "3", "<|endoftext|>") ","                                             \
                                                   "\"model\":{\"type\":\"BPE\",\"end_of_word_"    \
                                                   "suffix\":\"</w>\",\"merges\":[],"              \
                                                   "\"vocab\":{\"!\":0,\"a\":1,\"a</"              \
                                                   "w>\":2,\"<|endoftext|>\":3}}}"
#define WORDS_TOKENIZER                                                                            \
    "{\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"[UNK]\",\"vocab\":{\"[PAD]\":2,\"[UNK]\":" \
    "0,"                                                                                           \
    "\"</s>\":1}}}"

static void put(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (text == NULL)
        unlink(path);
    else
        assert_int_equal(pnb__write_file(path, text, strlen(text), NULL), PNB_OK);
}

static void what_pads_is_what_the_files_say(void **state)
{
    (void)state;
    static const char prolip[] = "{\"text_cfg\":{\"context_length\":64}}";
    static const char open_clip[] = "{\"model_cfg\":{\"text_cfg\":{}}}";
    static const char hf_clip[] = "{\"model_type\":\"clip\"}";
    static const char hf_siglip[] = "{\"model_type\":\"siglip\"}";
    static const char pad[] = "{\"pad_token\":\"<pad>\"}", *none = NULL;
    static const char listed[] = "{\"added_tokens_decoder\":{},\"pad_token\":\"</s>\"}";
    const struct {
        const char *tokenizer, *config, *map, *class; /* NULL: no such file */
        int id;
        bool assumed;
        const char *source;
    } cases[] = {
        {SIGLIP_TOKENIZER("null"), prolip, none, none, 1, true, "ProLIP"},
        {SIGLIP_TOKENIZER("null"), hf_siglip, none, none, 1, true, "SigLIP"},
        {SIGLIP_TOKENIZER("null"), none, none, none, 1, true, "SigLIP"},
        {SIGLIP_TOKENIZER("{\"pad_id\":0}"), prolip, none, none, 0, false, "tokenizer.json"},
        {SIGLIP_TOKENIZER("{\"pad_token\":\"<pad>\"}"), prolip, none, none, 0, false, "padding of"},
        {SIGLIP_TOKENIZER("{\"pad_id\":1,\"pad_token\":\"</s>\"}"), prolip, pad, none, 0, false,
         "special_tokens_map.json"},
        {SIGLIP_TOKENIZER("null"), prolip, none, pad, 0, false, "tokenizer_config.json"},
        {SIGLIP_TOKENIZER("null"), prolip, none, "{\"pad_token\":null}", 1, true, "ProLIP"},
        {SIGLIP_TOKENIZER("null"), prolip, none,
         "{\"pad_token\":{\"content\":\"[PAD]\"},\"padding_side\":\"right\"}", 4, false, "config"},
        /* Hugging Face's loader reads the map only where the configuration lists no tokens */
        {SIGLIP_TOKENIZER("null"), prolip, pad, listed, 1, false, "tokenizer_config.json"},
        {SIGLIP_TOKENIZER("null"), prolip, pad, "{\"pad_token\":\"</s>\"}", 0, false, "map"},
        {GEMMA_TOKENIZER, hf_siglip, none, none, 0, true, "usual name"}, /* SigLIP 2 */
        {CLIP_TOKENIZER, prolip, none, none, 0, true, "open_clip"},
        {CLIP_TOKENIZER, open_clip, none, none, 0, true, "open_clip"},
        {CLIP_TOKENIZER, hf_clip, none, none, 3, true, "Hugging Face"},
        {CLIP_TOKENIZER, none, none, none, 3, true, "Hugging Face"},
        {CLIP_TOKENIZER, prolip, "{\"pad_token\":\"<|endoftext|>\"}", none, 3, false, "map"},
        {CLIP_TOKENIZER, hf_clip, none, "{\"pad_token\":\"!\"}", 0, false, "tokenizer_config.json"},
        {WORDS_TOKENIZER, prolip, none, none, 2, true, "usual name"},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb_tokenizer *t = NULL, *saved = NULL;
        bool clean_assumed;
        int32_t ids[6];
        json_t *config = json_of(cases[i].config);
        put("tokenizer.json", cases[i].tokenizer);
        put("special_tokens_map.json", cases[i].map);
        put("tokenizer_config.json", cases[i].class);
        pnb_error err = PNB_ERROR_INIT;
        if (pnb_tokenizer_load(&t, folder, &err) != PNB_OK)
            fail_msg("case %zu: %s", i, err.text);
        assert_int_equal(pnb__tokenizer_configure(t, config, folder, &clean_assumed, NULL), PNB_OK);
        pnb_padding found = pnb_tokenizer_padding(t);
        if (found.id != cases[i].id || found.assumed != cases[i].assumed ||
            strstr(found.source, cases[i].source) == NULL)
            fail_msg("case %zu: %d, %s, assumed %d", i, found.id, found.source, found.assumed);
        assert_int_equal(pnb_tokenizer_encode(t, "a", 1, 6, ids, NULL, NULL), PNB_OK);
        for (int k = 2; k < 6; k++)
            assert_int_equal(ids[k], cases[i].id);
        /* written alone, the same configuration pads the same */
        put("special_tokens_map.json", NULL);
        put("tokenizer_config.json", NULL);
        assert_int_equal(pnb_tokenizer_save(t, folder, NULL), PNB_OK);
        assert_int_equal(pnb_tokenizer_load(&saved, folder, NULL), PNB_OK);
        assert_int_equal(pnb__tokenizer_configure(saved, config, NULL, &clean_assumed, NULL),
                         PNB_OK);
        if (pnb_tokenizer_pad_id(saved) != cases[i].id)
            fail_msg("case %zu: saved with %d", i, pnb_tokenizer_pad_id(saved));
        pnb_tokenizer_free(saved);
        pnb_tokenizer_free(t);
        json_decref(config);
    }
    put("tokenizer.json", NULL);
}

/* Files of a CLIP model beside ProLIP's H/14: followed, and told where padding is attended to. */
static void padding_unlike_open_clips_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *tokenizer, *config, *class;
        bool differs;
    } cases[] = {
        {CLIP_TOKENIZER, "{\"text_cfg\":{\"no_causal_mask\":true}}",
         "{\"pad_token\":\"<|endoftext|>\"}", true},
        {CLIP_TOKENIZER, "{\"text_cfg\":{\"no_causal_mask\":true}}", "{\"pad_token\":\"!\"}",
         false},
        {CLIP_TOKENIZER, "{\"text_cfg\":{\"no_causal_mask\":true}}", NULL, false},
        {CLIP_TOKENIZER, "{\"text_cfg\":{\"no_causal_mask\":true,\"hf_tokenizer_name\":\"x\"}}",
         "{\"pad_token\":\"<|endoftext|>\"}", false},
        {CLIP_TOKENIZER, "{\"text_cfg\":{}}", "{\"pad_token\":\"<|endoftext|>\"}", false},
        {SIGLIP_TOKENIZER("null"), "{\"text_cfg\":{\"no_causal_mask\":true}}", NULL, false},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb_tokenizer *t = NULL;
        bool clean_assumed;
        json_t *config = json_of(cases[i].config);
        put("tokenizer.json", cases[i].tokenizer);
        put("tokenizer_config.json", cases[i].class);
        assert_int_equal(pnb_tokenizer_load(&t, folder, NULL), PNB_OK);
        assert_int_equal(pnb__tokenizer_configure(t, config, folder, &clean_assumed, NULL), PNB_OK);
        if (pnb__pad_unlike_open_clip(t, config) != cases[i].differs)
            fail_msg("case %zu", i);
        pnb_tokenizer_free(t);
        json_decref(config);
    }
    put("tokenizer.json", NULL);
    put("tokenizer_config.json", NULL);
}

static void words_about_padding_are_followed_or_refused(void **state)
{
    (void)state;
    static const struct {
        const char *tokenizer, *name, *file;
        pnb_status status;
        const char *why;
    } cases[] = {
        {SIGLIP_TOKENIZER("null"), "tokenizer_config.json", "{\"pad_token\":\"<nix>\"}", PNB_FORMAT,
         "tokenizer_config.json: pad_token \"<nix>\" is not in the vocabulary"},
        {SIGLIP_TOKENIZER("null"), "special_tokens_map.json", "{\"pad_token\":1}", PNB_FORMAT,
         "special_tokens_map.json: \"pad_token\" is neither text"},
        {SIGLIP_TOKENIZER("null"), "tokenizer_config.json", "{\"eos_token\":\"<end>\"}", PNB_FORMAT,
         "eos_token \"<end>\" is not in the vocabulary"},
        {SIGLIP_TOKENIZER("null"), "tokenizer_config.json", "{\"mask_token\":{}}", PNB_FORMAT,
         "\"mask_token\" is neither text"},
        {SIGLIP_TOKENIZER("null"), "tokenizer_config.json", "{\"padding_side\":\"left\"}",
         PNB_UNSUPPORTED, "padding_side \"left\""},
        {SIGLIP_TOKENIZER("null"), "tokenizer_config.json", "{\"truncation_side\":7}", PNB_FORMAT,
         "\"truncation_side\" is neither"},
        {SIGLIP_TOKENIZER("null"), "tokenizer_config.json", "[]", PNB_FORMAT, "not a JSON object"},
        {SIGLIP_TOKENIZER("{\"pad_id\":0,\"pad_token\":\"</s>\"}"), "tokenizer_config.json", "{}",
         PNB_FORMAT, "pad_id is 0, but pad_token \"</s>\" has id 1"},
        {SIGLIP_TOKENIZER("[]"), "tokenizer_config.json", "{}", PNB_FORMAT, "\"padding\""},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb_tokenizer *t = NULL;
        pnb_error err = PNB_ERROR_INIT;
        put("tokenizer.json", cases[i].tokenizer);
        put(cases[i].name, cases[i].file);
        assert_int_equal(pnb_tokenizer_load(&t, folder, &err), cases[i].status);
        if (strstr(err.text, cases[i].why) == NULL)
            fail_msg("case %zu: %s", i, err.text);
        put(cases[i].name, NULL);
    }
    put("tokenizer.json", NULL);
}

/* Where the configuration names open_clip's HFTokenizer, its default; SigLIP's own otherwise. */
static void unsaid_cleaning_is_the_references(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        pnb_clean clean;
        bool assumed;
    } cases[] = {
        {"{\"text_cfg\":{\"hf_tokenizer_name\":\"x/y\"}}", PNB_CLEAN_WHITESPACE, false},
        {"{\"text_cfg\":{\"hf_tokenizer_name\":\"x/"
         "y\",\"tokenizer_kwargs\":{\"clean\":\"lower\"}}}",
         PNB_CLEAN_LOWER, false},
        {"{\"model_type\":\"siglip\"}", PNB_CLEAN_CANONICALIZE, true},
        {"{\"model_type\":\"clip\"}", PNB_CLEAN_NONE, false},
        {"{\"text_cfg\":{}}", PNB_CLEAN_NONE, false},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb_tokenizer *t = NULL;
        bool assumed;
        json_t *config = json_of(cases[i].config);
        static const char text[] = SIGLIP_TOKENIZER("null");
        assert_int_equal(pnb_tokenizer_parse(&t, text, strlen(text), NULL), PNB_OK);
        assert_int_equal(pnb__tokenizer_configure(t, config, NULL, &assumed, NULL), PNB_OK);
        assert_int_equal(pnb_tokenizer_clean(t), cases[i].clean);
        assert_int_equal(assumed, cases[i].assumed);
        pnb_tokenizer_free(t);
        json_decref(config);
    }
}

static void a_missing_tokenizer_is_placed(void **state)
{
    (void)state;
    static const char *const want[][2] = {{"base", "timm/ViT-B-16-SigLIP"},
                                          {"hf_first_eos", "openai/clip-vit-base-patch32"},
                                          {"siglip_tanh", "spiece.model"}};
    for (size_t i = 0; i < PNB_COUNT(want); i++) {
        char dir[512], text[256];
        pnb_model *model = NULL;
        snprintf(dir, sizeof dir, CASES "%s", want[i][0]);
        assert_int_equal(pnb_model_load(&model, ctx, dir, NULL), PNB_OK);
        pnb__tokenizer_source(model, text, sizeof text);
        if (strstr(text, want[i][1]) == NULL)
            fail_msg("%s: %s, want %s", want[i][0], text, want[i][1]);
        pnb_model_free(model);
    }
}

/* pool_type "eos" alone follows the tokenizer; other places keep what the configuration says. */
static void end_token_is_the_tokenizers(void **state)
{
    (void)state;
    static const char *const texts[] = {"a red star"};
    static const struct {
        const char *pool;
        int64_t want;
    } cases[] = {{"eos", 1}, {"argmax", 7}};
    pnb_tokenizer *t = NULL;
    assert_int_equal(pnb_tokenizer_train(&t, texts, 1, NULL, NULL), PNB_OK);
    assert_int_equal(pnb_tokenizer_eos_id(t), 1);
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        json_t *config =
            json_pack("{s:{s:s,s:i}}", "text_cfg", "pool_type", cases[i].pool, "eos_id", 7);
        assert_int_equal(pnb__config_follow_end(config, t, NULL), PNB_OK);
        assert_int_equal(
            json_integer_value(json_object_get(json_object_get(config, "text_cfg"), "eos_id")),
            cases[i].want);
        json_decref(config);
    }
    pnb_tokenizer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(preprocessing_is_assumed_by_family),
        cmocka_unit_test(end_token_is_the_tokenizers),
        cmocka_unit_test(cleaning_is_read_in_every_form),
        cmocka_unit_test(what_pads_is_what_the_files_say),
        cmocka_unit_test(padding_unlike_open_clips_is_told),
        cmocka_unit_test(words_about_padding_are_followed_or_refused),
        cmocka_unit_test(unsaid_cleaning_is_the_references),
        cmocka_unit_test(a_missing_tokenizer_is_placed),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
