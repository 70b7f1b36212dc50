/* Making a collection, so that it is there whole or not at all.
 *
 * A database that is a file is built beside its place and renamed to it when all is in it; a note
 * of where another database is comes last. What a program that was killed leaves, folders without
 * rows and the file that was being built, is in nobody's way: whoever makes the collection then
 * takes it over. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/store_internal.h"

#define DATABASE "collection.db"
#define BUILT ".new" /* ending of a database that is being built */

bool pnb_store_is_at(const char *path)
{
    return pnb__path_has_file(path, PNB__PLACE_FILE) || pnb__path_has_file(path, DATABASE);
}

/* ---- what is in the way ---- */

static bool is_dir_with(const char *path, bool (*may_be)(const char *name))
{
    DIR *dir = opendir(path);
    bool is_so = dir != NULL;
    if (dir == NULL)
        return false;
    for (const struct dirent *e; is_so && (e = readdir(dir)) != NULL;)
        is_so = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || may_be(e->d_name);
    closedir(dir);
    return is_so;
}

static bool is_nothing(const char *name)
{
    (void)name;
    return false;
}

/* What making a collection leaves when it is cut short. */
static bool is_left_over(const char *name)
{
    return strcmp(name, PNB__SHARDS) == 0 || strcmp(name, PNB__WRITER_LOCK) == 0 ||
           strncmp(name, DATABASE BUILT, strlen(DATABASE BUILT)) == 0;
}

static pnb_status check_free(const char *path, const char *shards, pnb_error *err)
{
    struct stat info;
    bool has_shards = lstat(shards, &info) == 0;
    if (lstat(path, &info) != 0 ||
        (is_dir_with(path, is_left_over) && (!has_shards || is_dir_with(shards, is_nothing))))
        return PNB_OK;
    return pnb__fail(err, PNB_EXISTS,
                     "%s is there already; a collection is made in a folder of its own", path);
}

/* ---- the database ---- */

/* Of a database that is a file: where it comes to lie, and where it is built. */
typedef struct built_file {
    char *path, *temp; /* NULL: it is no file */
} built_file;

static void remove_built(const built_file *f)
{
    static const char *const endings[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; f->temp != NULL && i < PNB_COUNT(endings); i++) {
        char *path = pnb__format("%s%s", f->temp, endings[i]);
        if (path != NULL)
            (void)unlink(path);
        pnb__free(path);
    }
}

static pnb_status check_no_database(const built_file *f, pnb_error *err)
{
    struct stat info;
    if (lstat(f->path, &info) != 0)
        return PNB_OK;
    return pnb__fail(
        err, PNB_EXISTS,
        "%s is there already; a collection has a database of its own (where making one was "
        "cut off no folder names it, and it can be removed)",
        f->path);
}

static pnb_status find_built(const pnb__place *place, built_file *f, pnb_error *err)
{
    if (place->calls->get_set != NULL) /* it keeps embeddings, so it is no file of ours */
        return PNB_OK;
    f->path =
        place->address != NULL ? pnb__strdup(place->address) : pnb__path_join(place->dir, DATABASE);
    f->temp = f->path != NULL ? pnb__format("%s" BUILT, f->path) : NULL;
    if (f->temp == NULL)
        return pnb__fail_nomem(err, strlen(place->dir));
    pnb_status status = check_no_database(f, err);
    if (status == PNB_OK)
        remove_built(f);
    return status;
}

static void reset_built(built_file *f)
{
    pnb__free(f->path);
    pnb__free(f->temp);
}

static pnb_status put_model(const pnb__place *at, const pnb_store_model *model, pnb_error *err)
{
    pnb__place place = {.calls = at->calls};
    pnb_store *store = NULL;
    char *text = NULL;
    pnb_status status;
    if (model == NULL || (model->dir == NULL && model->info == NULL))
        return PNB_OK;
    PNB_TRY(pnb__copy_text(&place.dir, at->dir, err));
    if (at->address != NULL)
        PNB_TRY(pnb__copy_text(&place.address, at->address, err));
    if (at->schema != NULL)
        PNB_TRY(pnb__copy_text(&place.schema, at->schema, err));
    PNB_TRY(pnb__store_model_text(model, &text, err));
    PNB_TRY(pnb__store_open_place(&store, &place, err));
    PNB_TRY(pnb_store_begin(store, 0, err));
    PNB_TRY(store->calls->begin(store->writer, err));
    PNB_TRY(store->calls->put_fact(store->writer, "model", text, err));
    status = store->calls->commit(store->writer, err);
done:
    pnb_store_close(store);
    pnb__place_reset(&place);
    pnb__free(text);
    return status;
}

/* A database that cannot be joined because another one is there is nobody's fault but the name's.
 */
static pnb_status join(const pnb__place *place, pnb_error *err)
{
    void *connection = NULL;
    pnb_status status = place->calls->open(&connection, place, err);
    if (status == PNB_OK)
        place->calls->close(connection);
    return status;
}

static pnb_status create_and_fill(const pnb__place *place, const pnb_store_model *model,
                                  pnb_error *err)
{
    pnb_status status = place->calls->create(place, err);
    return status == PNB_OK ? put_model(place, model, err) : status;
}

/* Built where nobody looks for it; all that SQLite kept beside it is in it when it is closed. */
static pnb_status build_file(const pnb__place *place, const built_file *f,
                             const pnb_store_model *model, pnb_error *err)
{
    pnb__place temp = *place;
    temp.address = f->temp;
    pnb_status status = create_and_fill(&temp, model, err);
    if (status == PNB_OK)
        status = check_no_database(f, err); /* again: somebody else may have been faster */
    if (status == PNB_OK && (pnb__disk_step_fails() || rename(f->temp, f->path) != 0))
        status = pnb__fail_errno(err, "cannot write", f->path);
    if (status != PNB_OK)
        remove_built(f);
    return status;
}

/* ---- all of it ---- */

/* What was made for nothing goes: folders that are empty. */
static void remove_made(const char *path, const char *shards)
{
    char *lock = pnb__path_join(path, PNB__WRITER_LOCK);
    if (lock != NULL)
        (void)unlink(lock);
    pnb__free(lock);
    (void)rmdir(shards);
    (void)rmdir(path);
}

static pnb_status make(const pnb__place *place, bool joins, const pnb_store_model *model,
                       const char *shards, pnb_error *err)
{
    built_file file = {0};
    pnb_status status;
    PNB_TRY(check_free(place->dir, shards, err));
    PNB_TRY(find_built(place, &file, err));
    PNB_TRY(pnb__make_dirs(shards, err));
    status = joins               ? join(place, err)
             : file.temp != NULL ? build_file(place, &file, model, err)
                                 : create_and_fill(place, model, err);
    if (status == PNB_OK) {
        status = pnb__place_write(place, err);
        if (status != PNB_OK && file.path != NULL)
            (void)unlink(file.path);
    }
    if (status != PNB_OK)
        remove_made(place->dir, shards);
done:
    reset_built(&file);
    return status;
}

pnb_status pnb_store_create(const char *path, const pnb_store_model *model, pnb_error *err)
{
    return pnb_store_create_at(path, NULL, model, err);
}

pnb_status pnb_store_create_at(const char *path, const pnb_store_place *said,
                               const pnb_store_model *model, pnb_error *err)
{
    pnb__place place = {0};
    char *shards = NULL;
    bool joins = said != NULL && said->join;
    pnb_status status;
    PNB_TRY(pnb__place_init(&place, path, said, err));
    if (joins && place.calls->get_set == NULL)
        PNB_TRY(pnb__fail(err, PNB_ARG,
                          "%s has one folder a collection: its shards are nowhere "
                          "else",
                          place.calls->name));
    if (joins && model != NULL)
        PNB_TRY(pnb__fail(err, PNB_ARG, "a collection that is there already has its model"));
    shards = pnb__path_join(path, PNB__SHARDS);
    status = shards != NULL ? make(&place, joins, model, shards, err)
                            : pnb__fail_nomem(err, strlen(path) + sizeof PNB__SHARDS);
done:
    pnb__free(shards);
    pnb__place_reset(&place);
    return status;
}
