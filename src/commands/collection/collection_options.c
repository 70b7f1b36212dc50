/* penumbra collection: embeddings that grow, with what is known of them.
 *
 * Options only; the jobs are in collection_rows.c, collection_add.c and collection_export.c. */
#include "commands/collection/collection.h"

#include "commands/commands.h"
#include "commands/common/option_rows.h"

#define COLLECTION_ROW(at)                                                                         \
    PNB__ROW_REST("collection", (at), "COLLECTION", "Folder of the collection", .required = true)

/* ---- create ---- */

#define AT(field) PNB__FIELD(pnb__collection_create_opts, field)
static const pnb__option create_options[] = {
    COLLECTION_ROW(AT(path)),
    PNB__ROW_FILE("model", AT(model), "DIR",
                  "Model directory whose embeddings it will hold: others are refused, and `add` "
                  "needs no --model; without it the first rows say so",
                  .letter = 'm'),
    PNB__ROW_TEXT("store", AT(place.address), "ADDRESS",
                  "Where what is known of the rows is kept: sqlite:PATH, or "
                  "postgresql://[user@]host[:port]/database; by default collection.db in the "
                  "folder. A password in it is used now and not kept",
                  .group = "Store"),
    PNB__ROW_TEXT("schema", AT(place.schema), "NAME",
                  "Postgres: the schema of the collection; by default penumbra_ and the folder's "
                  "name"),
    PNB__ROW_FLAG("join", AT(place.join),
                  "Postgres: the collection is there already, make a folder for it here"),
};
#undef AT

static const pnb__command cmd_create = {
    .name = "create",
    .summary = "make an empty collection",
    .about = "A collection is a folder: collection.db, an SQLite file with what is known of the "
             "rows, and shards/, ordinary embedding sets. All rows are of one model, one family "
             "and one modality. With --store postgresql://... Postgres keeps everything, the "
             "folder a note of where that is and copies of the shards: several machines may share "
             "one collection.",
    .examples = "penumbra collection create photos --model model\n"
                "penumbra collection create photos --store postgresql://db.example/pictures",
    PNB__RUNS(create_options, pnb__collection_create_opts, pnb__collection_create)};

/* ---- add and watch ---- */

#define AT(field) PNB__FIELD(pnb__collection_add_opts, field)
#define HOW_ROWS                                                                                   \
    PNB__ROW_LIST("tags", AT(tags), "TAG...", "Tags that the new rows get"),                       \
        PNB__ROW_FILE("model", AT(model), "DIR",                                                   \
                      "Model directory in place of the one that the collection was made for",      \
                      .group = "How", .letter = 'm'),                                              \
        PNB__MODEL_PARTS_ROWS(AT(parts.tokenizer), AT(parts.preprocess)),                          \
        PNB__ROW_INT("batch-size", AT(batch_size), "N", "Inputs encoded together",                 \
                     PNB__RANGE(1, 65536), .fallback = "8", .letter = 'b'),                        \
        PNB__ROW_INT("save-every", AT(save_every), "N",                                            \
                     "Rows that are added at once: what a run that is killed loses at most",       \
                     PNB__RANGE(1, 1e6), .fallback = "512"),                                       \
        PNB__ROW_REAL("wait", AT(wait_s), "SECONDS",                                               \
                      "Wait so long for another program that writes to the collection",            \
                      PNB__RANGE(0, 1e6), .fallback = "0"),                                        \
        PNB__EXIF_ROW(AT(exif))

static const pnb__option add_options[] = {
    COLLECTION_ROW(AT(path)),
    PNB__ROW_FILES("images", AT(images), "PATH...",
                   "Picture files, globs, folders, tar shards, csv or jsonl sets, or - for a list "
                   "of paths on standard input",
                   .group = "Inputs (one kind)"),
    PNB__ROW_FILES("texts", AT(texts), "FILE...",
                   "Captions: text files (one a line), .jsonl, .csv, tar shards, folders, or -"),
    PNB__ROW_FILE("set", AT(set), "SET", "Embedding set, no model needed"),
    PNB__TEXT_KEY_ROW(AT(dataset.csv_caption_key)),
    PNB__ROW_TEXT("csv-img-key", AT(dataset.csv_img_key), "COLUMN",
                  "Column of picture paths in a csv or tsv file", .fallback = "filepath"),
    HOW_ROWS,
};

static const pnb__option watch_options[] = {
    COLLECTION_ROW(AT(path)),
    PNB__ROW_FILES("images", AT(images), "DIR...", "Folders of pictures to follow",
                   .required = true),
    PNB__ROW_REAL("every", AT(every_s), "SECONDS", "Time between two looks",
                  PNB__RANGE(0.01, 86400), .fallback = "5"),
    PNB__ROW_INT("rounds", AT(n_rounds), "N", "End after so many looks; by default Ctrl-C ends it",
                 PNB__RANGE(1, 1e9)),
    PNB__ROW_FLAG("keep", AT(keep), "Keep rows whose file is gone"),
    HOW_ROWS,
};
#undef AT

static void add_defaults(void *args)
{
    *(pnb__collection_add_opts *)args =
        (pnb__collection_add_opts){.dataset = pnb_dataset_opts_default()};
}

static const pnb__command cmd_add = {
    .name = "add",
    .summary = "embed what is new and add it",
    .about =
        "An input is new when nothing with its content (the SHA-256 of its bytes) is in the "
        "collection; what is there is neither read twice nor embedded. Pictures are called by "
        "their paths, members of data sets by their keys, captions without an id by their hash: a "
        "new input under an id that is there takes the place of that row. Inputs that cannot be "
        "read are listed and left out, and the exit status is 3. A run that was killed is started "
        "again as it was: it goes on with what is missing.",
    .examples = "penumbra collection add photos --images pictures/ more/*.jpg\n"
                "penumbra collection add captions --texts captions.txt --model model --tags draft\n"
                "penumbra collection add photos --set images.safetensors",
    .defaults = add_defaults,
    PNB__RUNS(add_options, pnb__collection_add_opts, pnb__collection_add)};

static const pnb__command cmd_watch = {
    .name = "watch",
    .summary = "follow folders: add new pictures, take out those that are gone",
    .about = "Looks at the folders again and again, as `add` does; files that have not changed "
             "since the last look are not opened. Rows whose file below one of the folders is gone "
             "are removed.",
    .examples = "penumbra collection watch photos --images pictures/",
    .defaults = add_defaults,
    PNB__RUNS(watch_options, pnb__collection_add_opts, pnb__collection_watch)};

/* ---- remove, list, info, verify ---- */

#define AT(field) PNB__FIELD(pnb__collection_rows_opts, field)
#define FILTER_ROWS                                                                                \
    PNB__ROW_FILTER_ROWS(AT(filter.tags), AT(filter.since), AT(filter.until),                      \
                         AT(filter.min_uncertainty), AT(filter.max_uncertainty))

static const pnb__option remove_options[] = {
    PNB__ROW_REST("collection", AT(words), "COLLECTION [ID...]",
                  "Folder of the collection, and the ids of the rows that go", .required = true),
    FILTER_ROWS,
};

static const pnb__option list_options[] = {
    COLLECTION_ROW(AT(path)),
    PNB__ROW_INT("limit", AT(limit), "N", "Rows at most", PNB__RANGE(1, 1e9), .fallback = "100"),
    PNB__ROW_INT("after", AT(after), "NUMBER", "Rows that came behind row NUMBER",
                 PNB__RANGE(0, 9e18), .fallback = "0"),
    FILTER_ROWS,
};

static const pnb__option info_options[] = {COLLECTION_ROW(AT(path))};

static const pnb__option verify_options[] = {
    COLLECTION_ROW(AT(path)),
    PNB__ROW_FLAG("repair", AT(repair),
                  "Take out rows whose shard is gone or damaged: they can be added again"),
};
#undef AT

static const pnb__command cmd_remove = {
    .name = "remove",
    .summary = "remove rows, by their ids or by what they are",
    .about = "Removed rows are in no search that begins afterwards, and their numbers are never "
             "given again. Their room in a shard is free when all rows of the shard are gone.",
    .examples = "penumbra collection remove photos pictures/cat.jpg\n"
                "penumbra collection remove photos --tags draft --until 2023-12-31",
    PNB__RUNS(remove_options, pnb__collection_rows_opts, pnb__collection_remove)};

static const pnb__command cmd_list = {
    .name = "list",
    .summary = "list the rows",
    .examples = "penumbra collection list photos --tags sea --since 2024-05-01 --json",
    PNB__RUNS(list_options, pnb__collection_rows_opts, pnb__collection_list)};

static const pnb__command cmd_info = {
    .name = "info",
    .summary = "say what a collection holds",
    .examples = "penumbra collection info photos",
    PNB__RUNS(info_options, pnb__collection_rows_opts, pnb__collection_info)};

static const pnb__command cmd_verify = {
    .name = "verify",
    .summary = "read all of a collection and say what is damaged",
    .about =
        "Checks the database, every number of every shard, and that each row has its place. "
        "Problems are listed and the exit status is 1. Files that interrupted writers left are "
        "no problem: the next writer removes them.",
    .examples = "penumbra collection verify photos --repair",
    PNB__RUNS(verify_options, pnb__collection_rows_opts, pnb__collection_verify)};

/* ---- build ---- */

#define AT(field) PNB__FIELD(pnb__collection_build_opts, field)
static const pnb__option build_options[] = {
    COLLECTION_ROW(AT(path)),
    PNB__ROW_CHOICE("approx", AT(approx), "KIND", "hnsw|ivf", "A graph, or cells",
                    .fallback = "hnsw"),
    PNB__SETS_MEASURE_ROW(AT(measure)),
    PNB__ROW_REAL("recall", AT(recall), "SHARE",
                  "Share of the true hits to aim at; an index that is there stays, and it is told "
                  "where it has less",
                  PNB__RANGE(0.01, 1), .fallback = "0.99"),
};
#undef AT

static const pnb__command cmd_build = {
    .name = "build",
    .summary = "build indexes for `search --collection --approx hnsw` or ivf",
    .about =
        "A file is built beside each shard that has none yet. Shards do not change, so it stays "
        "right; rows that are added later are searched exactly until this is run again. Recall "
        "is measured on rows of a shard that are held out meanwhile, the least of all is told; "
        "queries of the other modality may find less.",
    .examples = "penumbra collection build photos --approx hnsw --recall 0.99",
    PNB__RUNS(build_options, pnb__collection_build_opts, pnb__collection_build)};

/* ---- export ---- */

#define AT(field) PNB__FIELD(pnb__collection_export_opts, field)
static const pnb__option export_options[] = {
    COLLECTION_ROW(AT(path)),
    PNB__ROW_CHOICE("to", AT(to), "FORMAT", "npy|faiss|qdrant|pgvector",
                    "What reads it: NumPy, FAISS (an IndexFlatIP), Qdrant, or Postgres with "
                    "pgvector",
                    .required = true),
    PNB__ROW_FILE("out", AT(out), "DIR", "Folder for the files", .letter = 'o', .required = true,
                  .writes = "/"),
    PNB__ROW_FILTER_ROWS(AT(filter.tags), AT(filter.since), AT(filter.until),
                         AT(filter.min_uncertainty), AT(filter.max_uncertainty)),
};
#undef AT

static const pnb__command cmd_export = {
    .name = "export",
    .summary = "write the rows as vectors for another index or database",
    .about = "Rows become vectors with one dimension more, [mean, -trace/2] for Gaussians, whose "
             "inner product with [mean of the query, 1] ranks as csd does; a line says how to "
             "query. What is known of each row goes along.",
    .examples = "penumbra collection export photos --to faiss --out photos.faiss",
    PNB__RUNS(export_options, pnb__collection_export_opts, pnb__collection_export)};

static const pnb__command *const subs[] = {&cmd_create, &cmd_add,    &cmd_remove, &cmd_list,
                                           &cmd_info,   &cmd_export, &cmd_verify, &cmd_watch,
                                           &cmd_build,  NULL};
const pnb__command pnb__cmd_collection = {.name = "collection",
                                          .summary =
                                              "keep embeddings that grow, with what is known "
                                              "of them",
                                          .subs = subs};
