/* Which kinds of database this build has, and the note in a folder that says which one it is of.
 *
 * A build without any has all functions of store.h: those that make or open a collection end here,
 * and say what is missing. The note is JSON: kind, address, schema. A folder without one has its
 * SQLite file in it. */
#include "store/catalog.h"

#include <string.h>

#include "io/json/json.h"

typedef struct known_kind {
    const char *kind, *name, *package;
    const char *also;                /* how else its addresses begin */
    const pnb__catalog_calls *calls; /* NULL: not in this build */
} known_kind;

static const known_kind kinds[] = {
#ifdef PNB_HAVE_SQLITE
    {"sqlite", "SQLite", "libsqlite3-dev", NULL, &pnb__catalog_sqlite},
#else
    {"sqlite", "SQLite", "libsqlite3-dev", NULL, NULL},
#endif
#ifdef PNB_HAVE_POSTGRES
    {"postgresql", "Postgres", "libpq-dev", "postgres", &pnb__catalog_postgres},
#else
    {"postgresql", "Postgres", "libpq-dev", "postgres", NULL},
#endif
};

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
#if defined(PNB_HAVE_SQLITE) && defined(PNB_HAVE_POSTGRES)
    return "SQLite, Postgres";
#elif defined(PNB_HAVE_SQLITE)
    return "SQLite";
#elif defined(PNB_HAVE_POSTGRES)
    return "Postgres";
#else
    return "";
#endif
}

/* ---- kinds ---- */

static bool begins_with_kind(const char *address, const char *kind)
{
    size_t n = kind != NULL ? strlen(kind) : 0;
    return n > 0 && strncmp(address, kind, n) == 0 && (address[n] == ':' || address[n] == '\0');
}

static const known_kind *find_kind(const char *address)
{
    for (size_t i = 0; i < PNB_COUNT(kinds); i++)
        if (begins_with_kind(address, kinds[i].kind) || begins_with_kind(address, kinds[i].also))
            return &kinds[i];
    return NULL;
}

static pnb_status use_kind(pnb__place *place, const known_kind *kind, pnb_error *err)
{
    place->calls = kind->calls;
    if (kind->calls != NULL)
        return PNB_OK;
    return pnb__fail(err, PNB_UNSUPPORTED,
                     "this collection needs %s, and this program was built without it: run "
                     "`tools/install-deps` (the package is %s) and build it again",
                     kind->name, kind->package);
}

static pnb_status copy_parts(pnb__place *out, const char *dir, const char *address,
                             const char *schema, pnb_error *err)
{
    pnb_status status;
    PNB_TRY(pnb__copy_text(&out->dir, dir, err));
    if (address != NULL)
        PNB_TRY(pnb__copy_text(&out->address, address, err));
    status = schema != NULL ? pnb__copy_text(&out->schema, schema, err) : PNB_OK;
done:
    return status;
}

/* ---- places ---- */

void pnb__place_reset(pnb__place *place)
{
    pnb__free(place->dir);
    pnb__free(place->address);
    pnb__free(place->schema);
    *place = (pnb__place){0};
}

/* The folder's name as the name of a schema: small letters, digits and _, 63 at most. */
static pnb_status schema_of_folder(const char *dir, char **out, pnb_error *err)
{
    size_t end = strlen(dir);
    while (end > 1 && dir[end - 1] == '/')
        end--;
    char *whole = pnb__strndup(dir, end);
    *out = whole != NULL ? pnb__format("%s%.50s", "penumbra_", pnb__path_base(whole)) : NULL;
    pnb__free(whole);
    if (*out == NULL)
        return pnb__fail_nomem(err, end);
    for (char *p = *out; *p != '\0'; p++) {
        *p = *p >= 'A' && *p <= 'Z' ? (char)(*p - 'A' + 'a') : *p;
        bool is_kept = (*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9');
        *p = is_kept ? *p : '_';
    }
    return PNB_OK;
}

static pnb_status check_schema(const char *schema, pnb_error *err)
{
    const char *letters = "abcdefghijklmnopqrstuvwxyz_0123456789";
    size_t n = strlen(schema);
    if (n > 0 && n <= 63 && strspn(schema, letters) == n && !(schema[0] >= '0' && schema[0] <= '9'))
        return PNB_OK;
    return pnb__fail(err, PNB_ARG,
                     "\"%.80s\" is no name of a schema here: wanted are 1 to 63 small letters, "
                     "digits and _, no digit first",
                     schema);
}

static pnb_status init_said(pnb__place *out, const char *dir, const pnb_store_place *said,
                            pnb_error *err)
{
    const known_kind *kind = find_kind(said->address);
    char *schema = NULL;
    pnb_status status;
    if (kind == NULL) /* it may hold a password: only its first word is told */
        return pnb__fail(err, PNB_ARG,
                         "\"%.*s...\" is no address of a store; wanted is sqlite:PATH or "
                         "postgresql://[user@]host[:port]/database",
                         (int)strcspn(said->address, ":/@ "), said->address);
    PNB_TRY(use_kind(out, kind, err));
    if (said->schema != NULL)
        PNB_TRY(check_schema(said->schema, err));
    else
        PNB_TRY(schema_of_folder(dir, &schema, err));
    status = copy_parts(out, dir, said->address, said->schema != NULL ? said->schema : schema, err);
done:
    pnb__free(schema);
    return status;
}

pnb_status pnb__place_init(pnb__place *out, const char *dir, const pnb_store_place *said,
                           pnb_error *err)
{
    pnb_status status;
    *out = (pnb__place){0};
    if (said != NULL && said->address != NULL)
        PNB_TRY(init_said(out, dir, said, err));
    else {
        PNB_TRY(use_kind(out, &kinds[0], err));
        PNB_TRY(copy_parts(out, dir, NULL, NULL, err));
    }
    if (out->address != NULL && strcmp(out->calls->kind, kinds[0].kind) == 0) {
        char *path = NULL;
        PNB_TRY(out->calls->keep_address(out->address, &path, err));
        pnb__free(out->address);
        out->address = path;
    }
done:
    if (status != PNB_OK)
        pnb__place_reset(out);
    return status;
}

static pnb_status read_note(pnb__place *out, const char *dir, const char *path, pnb_error *err)
{
    json_t *root = NULL;
    pnb_status status;
    PNB_TRY(pnb__json_load_file(&root, path, 1 << 16, err));
    pnb__jobj o = pnb__json_object(root, path, err);
    const char *kind = pnb__json_get_string(&o, "kind", "", err);
    const char *address = pnb__json_get_string(&o, "address", NULL, err);
    const char *schema = pnb__json_get_string(&o, "schema", NULL, err);
    PNB_TRY(o.status);
    const known_kind *known = find_kind(kind);
    if (known == NULL || address == NULL)
        PNB_TRY(pnb__fail(err, PNB_FORMAT,
                          "%s: kind \"%.40s\" %s; it is the note of where a "
                          "collection is",
                          path, kind, known == NULL ? "is not known" : "needs an address"));
    if (schema != NULL)
        PNB_TRY(check_schema(schema, err));
    PNB_TRY(use_kind(out, known, err));
    status = copy_parts(out, dir, address, schema, err);
done:
    json_decref(root);
    return status;
}

pnb_status pnb__place_read(pnb__place *out, const char *dir, pnb_error *err)
{
    pnb_status status;
    char *path = NULL;
    *out = (pnb__place){0};
    if (!pnb__path_has_file(dir, PNB__PLACE_FILE))
        return pnb__place_init(out, dir, NULL, err);
    path = pnb__path_join(dir, PNB__PLACE_FILE);
    status = path != NULL ? read_note(out, dir, path, err) : pnb__fail_nomem(err, strlen(dir));
    if (status != PNB_OK)
        pnb__place_reset(out);
    pnb__free(path);
    return status;
}

pnb_status pnb__place_write(const pnb__place *place, pnb_error *err)
{
    char *path = NULL, *address = NULL;
    json_t *o = NULL;
    pnb_status status = PNB_OK;
    if (place->address == NULL)
        return PNB_OK;
    PNB_TRY(place->calls->keep_address(place->address, &address, err));
    path = pnb__path_join(place->dir, PNB__PLACE_FILE);
    o = json_object();
    bool ok = path != NULL && o != NULL &&
              json_object_set_new(o, "kind", json_string(place->calls->kind)) == 0 &&
              json_object_set_new(o, "address", json_string(address)) == 0 &&
              (place->schema == NULL ||
               json_object_set_new(o, "schema", json_string(place->schema)) == 0);
    if (!ok)
        PNB_TRY(pnb__fail_nomem(err, 0));
    status = pnb__json_save_file(o, path, err);
done:
    json_decref(o);
    pnb__free(path);
    pnb__free(address);
    return status;
}
