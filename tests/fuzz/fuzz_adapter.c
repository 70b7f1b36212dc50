/* Folders of adapters from strangers: config.json and the arrays beside it. What loads can be
 * applied to rows of its width, or says in words why not; and it can be saved and read again.
 *
 * The hash of the arrays in config.json keeps changed ones out, so every input is also read with
 * the hash that its arrays have. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "adapt/adapter.h"
#include "base/base.h"
#include "io/json/json.h"
#include "sets/provenance.h"
#include "tests/fuzz/folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {"config.json", "model.safetensors", "chain"};

static void require(bool condition)
{
    if (!condition)
        abort();
}

/* Two rows through every side that is adapted, where they are not too wide. */
static void apply(const pnb_adapter *a)
{
    pnb_adapter_facts facts;
    pnb_adapter_describe(a, &facts);
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        pnb_embeddings *set = NULL, *out = NULL;
        pnb_error err = PNB_ERROR_INIT;
        if (!facts.side[s].is_adapted || facts.side[s].dim > 64)
            continue;
        require(pnb_embeddings_create(&set, PNB_POINT, 2, facts.side[s].dim, NULL) == PNB_OK);
        set->mean[0] = set->mean[2 * set->dim - 1] = 1;
        pnb_status status = pnb_adapter_apply(&out, a, (pnb_adapter_side)s, set, &err);
        REQUIRE_TOLD(status, err);
        require(status != PNB_OK || pnb_embeddings_check_values(out, &err) == PNB_OK);
        pnb_embeddings_free(set);
        pnb_embeddings_free(out);
    }
}

/* The same with the right hash in config.json. */
static void read_mended(const folder *f, const pnb_ctx *ctx)
{
    static const char key[] = "\"arrays_sha256\": \"";
    char path[160], *config = NULL, hex[65], *at;
    size_t size = 0;
    pnb_safetensors *file = NULL;
    pnb_adapter *a = NULL;
    pnb_error err = PNB_ERROR_INIT;
    if (pnb__read_file(folder_path(f, "config.json", path), 1 << 20, &config, &size, NULL) ==
            PNB_OK &&
        pnb_safetensors_open(&file, folder_path(f, "model.safetensors", path), NULL) == PNB_OK) {
        require(pnb__adapter_hash(file, hex, NULL) == PNB_OK);
        at = memmem(config, size, key, strlen(key));
        if (at != NULL && (size_t)(at - config) + strlen(key) + 64 <= size)
            memcpy(at + strlen(key), hex, 64);
        pnb_status status = pnb__adapter_read(&a, ctx, config, size, file, "config.json", &err);
        REQUIRE_TOLD(status, err);
        if (status == PNB_OK)
            apply(a);
        pnb_adapter_free(a);
    }
    pnb_safetensors_free(file);
    pnb__free(config);
}

static void read_folder(const folder *f, const pnb_ctx *ctx)
{
    char dir[160], copy[200];
    pnb_adapter *a = NULL, *again = NULL;
    pnb_error err = PNB_ERROR_INIT;
    snprintf(dir, sizeof dir, "%s", f->dir);
    pnb_status status = pnb_adapter_load(&a, ctx, dir, &err);
    REQUIRE_TOLD(status, err);
    if (status != PNB_OK)
        return;
    apply(a);
    snprintf(copy, sizeof copy, "%s/copy", dir);
    require(pnb_adapter_save(a, copy, &err) == PNB_OK);
    require(pnb_adapter_load(&again, ctx, copy, &err) == PNB_OK);
    pnb_adapter_free(a);
    pnb_adapter_free(again);
    for (size_t i = 0; i < 2; i++) {
        char path[240];
        snprintf(path, sizeof path, "%s/%s", copy, names[i]);
        unlink(path);
    }
    rmdir(copy);
}

/* The links of a chain as metadata have them: what is read is written and read the same. */
static void read_chain(const char *text)
{
    pnb_adapter_links links = {0}, back = {0};
    pnb_embeddings_info info = {0};
    char words[PNB_PROVENANCE_BYTES];
    pnb_error err = PNB_ERROR_INIT;
    pnb_status status = pnb__adapter_links_parse(&links, text, "chain", &err);
    REQUIRE_TOLD(status, err);
    if (status != PNB_OK)
        return;
    pnb__buf again = {0};
    json_t *array = pnb__adapter_links_json(&links);
    pnb__json_append_value(&again, array);
    require(!again.failed && pnb__adapter_links_parse(&back, again.data, "again", &err) == PNB_OK);
    require(links.n == back.n);
    for (size_t i = 0; i < links.n; i++)
        require(strcmp(links.items[i].name, back.items[i].name) == 0 &&
                strcmp(links.items[i].sha256, back.items[i].sha256) == 0 &&
                links.items[i].leaves_images == back.items[i].leaves_images &&
                links.items[i].leaves_texts == back.items[i].leaves_texts);
    info.adapters = links;
    pnb_provenance_text(&info, words, sizeof words);
    require(strlen(words) < sizeof words - 1);
    require(pnb__provenance_check_mix(&info, &info, &err) == PNB_OK);
    json_decref(array);
    pnb__buf_reset(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pnb_ctx_opts opts = pnb_ctx_opts_default();
    pnb_ctx *ctx = NULL;
    folder f;
    char path[160], *text = NULL;
    size_t n = 0;
    opts.n_threads = 1;
    require(pnb_ctx_create(&ctx, &opts, NULL) == PNB_OK);
    if (folder_make(&f, names, PNB_COUNT(names), data, size)) {
        read_folder(&f, ctx);
        read_mended(&f, ctx);
        if (pnb__read_file(folder_path(&f, "chain", path), 1 << 20, &text, &n, NULL) == PNB_OK &&
            memchr(text, '\0', n) == NULL)
            read_chain(text);
        pnb__free(text);
        folder_remove(&f);
    }
    pnb_ctx_free(ctx);
    return 0;
}
