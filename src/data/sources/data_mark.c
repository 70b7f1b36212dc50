/* Marks of whole data sets, for ranks and for runs that go on.
 *
 * Nothing of a mark depends on where files lie or when they were written: names are those below a
 * folder, in a shard or a table. All samples count with names, captions and sizes; of pictures,
 * which are nearly all of the bytes, 256 are read, since another picture that has the length of the
 * one before to the byte is rare, and a set of such would show in these. Binary sets have pictures
 * of one length: they are small and are read whole. Samples are independent, so threads take them
 * in parts, and rows are added in their order. */
#include "data/sources/data_mark.h"

#include <string.h>
#include <sys/stat.h>

#include "data/sources/dataset_internal.h"

enum {
    BLOCK = 1 << 16, /* samples at a time */
    LOOKS = 256,
    PART = 16,              /* samples that are worth a thread */
    MOST_IMAGE = 256 << 20, /* bytes of a picture that is read */
    PARQUET_END = 1 << 16   /* where a table says how long each of its columns is */
};

/* What one sample adds. */
typedef struct row {
    uint64_t name, texts, size, image;
    bool is_nomem;
} row;

typedef struct job {
    const pnb_dataset *ds;
    row *rows;
    size_t first;   /* sample of rows[0], of a block */
    size_t n_looks; /* rows of pictures that are read, spread over all samples */
} job;

static uint64_t add(uint64_t value, uint64_t seed)
{
    return pnb__hash_bytes(&value, sizeof value, seed);
}

/* With its end, so that "ab", "c" is not "a", "bc"; NULL is no text at all. */
static uint64_t add_text(const char *text, uint64_t seed)
{
    return text != NULL ? pnb__hash_bytes(text, strlen(text) + 1, seed) : add(0, seed);
}

static uint64_t add_span(const pnb__source *source, const pnb__span *span, uint64_t seed)
{
    if (!span->is_set)
        return add(0, seed);
    return pnb__hash_bytes(source->map.data + span->offset, span->size, add(span->size, seed));
}

/* A table may name its pictures by where they lie on this machine. */
static uint64_t hash_name(const char *key, int64_t label, const char *class_name)
{
    const char *name = key != NULL && key[0] == '/' ? pnb__path_base(key) : key;
    return add_text(class_name, add((uint64_t)label, add_text(name, 0)));
}

static uint64_t hash_texts(const pnb_sample *s)
{
    uint64_t hash = add(s->n_negatives, s->n_texts);
    for (size_t i = 0; i < s->n_texts; i++)
        hash = add_text(s->texts[i], add((uint64_t)s->levels[i], hash));
    for (size_t i = 0; i < s->n_negatives; i++)
        hash = add_text(s->negatives[i], hash);
    return add_text(s->group, hash); /* no_flip_groups go by it */
}

static uint64_t size_of_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 ? (uint64_t)info.st_size : UINT64_MAX;
}

/* Members of a shard as they are: taking records apart would cost more than all else. */
static void mark_member(const pnb_dataset *ds, const pnb__entry *e, row *out)
{
    const pnb__source *source = &ds->sources[e->source];
    out->name = hash_name(ds->texts.data + e->key, e->label, NULL);
    out->texts = add_span(source, &e->txt, add_span(source, &e->json, 0));
    out->size = e->image.size;
}

static void mark_row(const pnb_dataset *ds, size_t i, row *out)
{
    const pnb__entry *e = &ds->entries[i];
    const pnb__source *source = &ds->sources[e->source];
    pnb_sample s = {0};
    *out = (row){0};
    if (source->kind == PNB_DATASET_TAR) {
        mark_member(ds, e, out);
        return;
    }
    pnb_status status = pnb__dataset_record(ds, i, &s, NULL);
    out->is_nomem = status == PNB_NOMEM;
    out->name = status == PNB_OK ? hash_name(s.key, s.label, s.class_name) : 0;
    out->texts = status == PNB_OK ? hash_texts(&s) : add((uint64_t)status, 0);
    if (status == PNB_OK && s.image_path != NULL)
        out->size = size_of_file(s.image_path);
    if (source->kind == PNB_DATASET_BINARY)
        out->image = add_span(source, &e->image, 0);
    pnb_sample_reset(&s);
}

/* Bytes of one picture. */
static void look_at(const pnb_dataset *ds, size_t i, row *out)
{
    pnb_sample s = {0};
    char *file = NULL;
    size_t n = 0;
    pnb_status status = pnb_dataset_get(ds, i, &s, NULL);
    if (status == PNB_OK && s.image_path != NULL)
        status = pnb__read_file(s.image_path, MOST_IMAGE, &file, &n, NULL);
    *out = (row){.image = add((uint64_t)status, 0), .is_nomem = status == PNB_NOMEM};
    if (status == PNB_OK && file != NULL)
        out->image = pnb__hash_bytes(file, n, 0);
    else if (status == PNB_OK && s.image_bytes != NULL)
        out->image = pnb__hash_bytes(s.image_bytes, s.n_image_bytes, 0);
    pnb__free(file);
    pnb_sample_reset(&s);
}

static void mark_range(void *user, size_t begin, size_t end, int thread)
{
    const job *j = user;
    (void)thread;
    for (size_t k = begin; k < end; k++)
        mark_row(j->ds, j->first + k, &j->rows[k]);
}

static void look_range(void *user, size_t begin, size_t end, int thread)
{
    const job *j = user;
    (void)thread;
    for (size_t k = begin; k < end; k++)
        look_at(j->ds, k * j->ds->n_entries / j->n_looks, &j->rows[k]);
}

/* In the order of samples, which decides what a step sees. */
static pnb_status add_rows(const row *rows, size_t n, pnb__data_mark *m, pnb_error *err)
{
    for (size_t k = 0; k < n; k++) {
        if (rows[k].is_nomem)
            return pnb__fail_nomem(err, 0);
        m->names = add(rows[k].name, m->names);
        m->texts = add(rows[k].texts, m->texts);
        m->sizes = add(rows[k].size, m->sizes);
        m->images = add(rows[k].image, m->images);
    }
    return PNB_OK;
}

/* How long the pages of a table are stands at its end. */
static void add_tables(const pnb_dataset *ds, pnb__data_mark *m)
{
    for (size_t i = 0; i < ds->n_sources; i++) {
        const pnb__map *map = &ds->sources[i].map;
        size_t n = PNB_MIN(map->size, (size_t)PARQUET_END);
        if (ds->sources[i].kind == PNB_DATASET_PARQUET)
            m->sizes = pnb__hash_bytes(map->data + (map->size - n), n, add(map->size, m->sizes));
    }
}

pnb_status pnb__dataset_mark(const pnb_ctx *ctx, const pnb_dataset *ds, pnb__data_mark *out,
                             pnb_error *err)
{
    pnb__data_mark m = {0};
    size_t n = ds->n_entries;
    job j = {.ds = ds, .n_looks = PNB_MIN(n, (size_t)LOOKS)};
    *out = m;
    if (ds->entries == NULL) /* a synthetic one is what its options say */
        return PNB_OK;
    pnb_status status = PNB_ALLOC(j.rows, PNB_MIN(n, (size_t)BLOCK) + 1, err);
    for (j.first = 0; j.first < n && status == PNB_OK; j.first += BLOCK) {
        size_t n_rows = PNB_MIN(n - j.first, (size_t)BLOCK);
        pnb__parallel_for(ctx, n_rows, PART, mark_range, &j);
        status = add_rows(j.rows, n_rows, &m, err);
    }
    if (status == PNB_OK) {
        pnb__data_mark looked = {0};
        pnb__parallel_for(ctx, j.n_looks, 1, look_range, &j);
        status = add_rows(j.rows, j.n_looks, &looked, err);
        m.images = add(looked.images, m.images);
        add_tables(ds, &m);
    }
    if (status == PNB_OK)
        *out = m;
    pnb__free(j.rows);
    return status;
}
