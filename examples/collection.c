/* The rows of a collection that are nearest to one of its own, an embedding set added before:
 *     collection DIR ID [SET.safetensors] */
#include <penumbra/ctx.h>
#include <penumbra/store.h>
#include <stdio.h>

static pnb_status add(pnb_store *store, const char *path, pnb_error *err)
{
    pnb_embeddings *set = NULL;
    pnb_store_added added = {0};
    pnb_status status = pnb_embeddings_load(&set, path, err);
    const pnb_store_batch batch = {.set = set};
    if (status == PNB_OK)
        status = pnb_store_add(store, &batch, &added, err);
    if (status == PNB_OK)
        printf("%zu rows added, %zu were there\n", added.n_added, added.n_known);
    pnb_embeddings_free(set);
    return status;
}

static pnb_status show(pnb_store *store, const pnb_ctx *ctx, const char *id, pnb_error *err)
{
    pnb_store_rows row = {0}, near = {0};
    pnb_embeddings *query = NULL;
    pnb_store_hits hits = {0};
    pnb_store_search_opts opts = pnb_store_search_opts_default();
    opts.search.k = 5;
    pnb_status status = pnb_store_get_ids(store, &id, 1, &row, err);
    if (status == PNB_OK)
        status = pnb_store_set(store, &row, &query, err); /* an error where no row has the id */
    if (status == PNB_OK)
        status = pnb_store_search(store, ctx, query, &opts, &hits, err);
    if (status == PNB_OK)
        status = pnb_store_get(store, hits.number, hits.k, &near, err);
    for (size_t i = 0; status == PNB_OK && i < near.n; i++)
        printf("%7.4f  %s\n", hits.score[i], near.items[i].id);
    pnb_store_hits_reset(&hits);
    pnb_store_rows_reset(&near);
    pnb_store_rows_reset(&row);
    pnb_embeddings_free(query);
    return status;
}

int main(int argc, char **argv)
{
    pnb_error err = PNB_ERROR_INIT;
    pnb_ctx *ctx = NULL;
    pnb_store *store = NULL;
    printf("penumbra %s\n", pnb_version());
    if (argc < 3) {
        fprintf(stderr, "usage: collection DIR ID [SET.safetensors]\n");
        return argc == 1 ? 0 : 2;
    }
    pnb_status status = pnb_ctx_create(&ctx, NULL, &err);
    if (status == PNB_OK)
        status = pnb_store_open(&store, argv[1], &err);
    if (status == PNB_OK && argc > 3)
        status = add(store, argv[3], &err);
    if (status == PNB_OK)
        status = show(store, ctx, argv[2], &err);
    if (status != PNB_OK)
        fprintf(stderr, "%s: %s\n", pnb_status_name(status), err.text);
    pnb_store_close(store);
    pnb_ctx_free(ctx);
    return status == PNB_OK ? 0 : 1;
}
