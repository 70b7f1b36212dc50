/* Which kinds of store this build has.
 *
 * A build without SQLite has all functions of store.h: those that make or open a collection end
 * here, and say what is missing. */
#include "store/catalog.h"

void pnb__catalog_state_reset(pnb__catalog_state *state)
{
    for (size_t i = 0; i < state->n_shards; i++)
        pnb__free(state->shards[i].file);
    pnb__free(state->shards);
    pnb__free(state->removed);
    *state = (pnb__catalog_state){0};
}

const char *pnb_store_kinds(void)
{
#ifdef PNB_HAVE_SQLITE
    return "SQLite";
#else
    return "";
#endif
}

pnb_status pnb__catalog_kind(const pnb__catalog_calls **out, pnb_error *err)
{
#ifdef PNB_HAVE_SQLITE
    (void)err;
    *out = &pnb__catalog_sqlite;
    return PNB_OK;
#else
    *out = NULL;
    return pnb__fail(err, PNB_UNSUPPORTED,
                     "collections need SQLite, and this program was built without it: run "
                     "`tools/install-deps` (the package is libsqlite3-dev) and build it again");
#endif
}
