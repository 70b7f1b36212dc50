/* Vectors of words from fastText's models (.bin of versions 11 and 12, little-endian).
 *
 *     magic, version                             i32
 *     dim ws epoch minCount neg wordNgrams loss model bucket minn maxn lrUpdateRate   12 x i32
 *     t                                          f64
 *     entries, words, labels                     3 x i32, words in front of labels
 *     tokens, pruned                             2 x i64, pruned -1: not
 *     ( word '\0' count:i64 type:i8 )*            an entry each
 *     is_quantized                               i8
 *     rows, columns, values                      2 x i64, f32: a row a word, then a row a bucket
 *     is_quantized, rows, columns, values        of the output layer, which is passed over
 * The vector of a word is the mean of its own row and of those of its n-grams of minn to maxn
 * characters, "<" and ">" put around it, whose row is their hash modulo bucket: what fastText
 * itself writes into the .vec beside it (there to five digits). Words that the dictionary lacks are
 * missing here too: <pad> or <unk> would get a vector by chance otherwise. */
#include "io/tables/fasttext_model.h"

#include <math.h>
#include <string.h>

#define MAGIC 793712314

enum { DIM, MODEL = 7, BUCKET, MIN_N, MAX_N, N_SETTINGS = 12 };
enum { SUPERVISED = 3 };

typedef struct model {
    const char *path;
    const unsigned char *at, *end; /* what is not read yet */
    int32_t settings[N_SETTINGS];
    int32_t n_entries, n_words;
    const unsigned char *matrix; /* (n_rows,dim) f32, of any alignment */
    int64_t n_rows;
    pnb_error *err;
} model;

/* Where a wanted word stands: its text in the file and its row; text NULL: nowhere. */
typedef struct place {
    const char *text;
    size_t n;
    int32_t row;
} place;

bool pnb__is_fasttext_model(const void *bytes, size_t n)
{
    int32_t magic = 0;
    if (n >= sizeof magic)
        memcpy(&magic, bytes, sizeof magic);
    return magic == MAGIC;
}

/* ---- bytes ---- */

static pnb_status cut(const model *m, const char *part)
{
    return pnb__fail(m->err, PNB_FORMAT, "%s: the fastText model ends in its %s; it is cut",
                     m->path, part);
}

static pnb_status take(model *m, void *out, size_t n, const char *part)
{
    if ((size_t)(m->end - m->at) < n)
        return cut(m, part);
    memcpy(out, m->at, n);
    m->at += n;
    return PNB_OK;
}

static pnb_status broken(const model *m, const char *what)
{
    return pnb__fail(m->err, PNB_FORMAT, "%s: this fastText model %s", m->path, what);
}

static pnb_status compressed(const model *m)
{
    return pnb__fail(
        m->err, PNB_UNSUPPORTED,
        "%s: a compressed fastText model (.ftz); use the .bin or .vec it was made from", m->path);
}

/* ---- the parts, in the file's order ---- */

static pnb_status read_settings(model *m, size_t dim)
{
    int32_t head[2] = {0, 0};
    double t = 0;
    pnb_status status;
    PNB_TRY(take(m, head, sizeof head, "settings"));
    PNB_TRY(take(m, m->settings, sizeof m->settings, "settings"));
    PNB_TRY(take(m, &t, sizeof t, "settings"));
    if (head[1] != 11 && head[1] != 12)
        return pnb__fail(
            m->err, PNB_UNSUPPORTED,
            "%s: a fastText model of version %d; 11 and 12 are read, and the .vec that "
            "is published beside it",
            m->path, head[1]);
    if (m->settings[DIM] < 1 || (size_t)m->settings[DIM] != dim)
        return pnb__fail(m->err, PNB_FORMAT,
                         "%s: the fastText model has vectors of %d, the words have %zu", m->path,
                         m->settings[DIM], dim);
    if (head[1] == 11 && m->settings[MODEL] == SUPERVISED)
        m->settings[MAX_N] = 0; /* as fastText reads them */
    if (m->settings[MAX_N] > 0 && m->settings[BUCKET] < 1)
        return broken(m, "has n-grams and no rows for them");
done:
    return status;
}

static void take_word(const pnb__spellings *s, pnb__wanted_words *w, place *places, place at)
{
    const pnb__spelling *it;
    size_t step = 0;
    while ((it = pnb__spellings_next(s, w, at.text, at.n, &step)) != NULL) {
        w->found[it->word] = (unsigned char)it->how;
        places[it->word] = at;
    }
}

static pnb_status read_entries(model *m, const pnb__spellings *s, pnb__wanted_words *w,
                               place *places)
{
    enum { BEHIND = 9 }; /* count and type */
    unsigned char rest[BEHIND];
    pnb_status status = PNB_OK;
    for (int32_t i = 0; i < m->n_entries && status == PNB_OK; i++) {
        const char *text = (const char *)m->at;
        const char *stop = memchr(text, '\0', (size_t)(m->end - m->at));
        if (stop == NULL)
            return cut(m, "dictionary");
        m->at += stop - text + 1;
        status = take(m, rest, BEHIND, "dictionary");
        if (i < m->n_words)
            take_word(s, w, places, (place){text, (size_t)(stop - text), i});
    }
    return status;
}

static pnb_status read_dictionary(model *m, const pnb__spellings *s, pnb__wanted_words *w,
                                  place *places)
{
    int32_t n[3] = {0, 0, 0};
    int64_t more[2] = {0, 0};
    pnb_status status;
    PNB_TRY(take(m, n, sizeof n, "dictionary"));
    PNB_TRY(take(m, more, sizeof more, "dictionary"));
    if (n[0] < 0 || n[1] < 0 || n[1] > n[0])
        return broken(m, "counts more words than entries");
    if (more[1] > 0)
        return compressed(m);
    if (more[1] == 0)
        m->settings[MAX_N] = 0; /* all n-grams were pruned */
    m->n_entries = n[0];
    m->n_words = n[1];
    status = read_entries(m, s, w, places);
done:
    return status;
}

/* The next matrix of floats is where the file goes on; it is stepped over. */
static pnb_status read_matrix(model *m, const char *part)
{
    unsigned char is_quantized = 0;
    int64_t shape[2] = {0, 0};
    pnb_status status;
    PNB_TRY(take(m, &is_quantized, 1, part));
    if (is_quantized != 0)
        return compressed(m);
    PNB_TRY(take(m, shape, sizeof shape, part));
    if (shape[0] < 0 || shape[1] != m->settings[DIM])
        return broken(m, "has a matrix of another width than its settings say");
    size_t row = (size_t)shape[1] * sizeof(float);
    if ((uint64_t)shape[0] > (size_t)(m->end - m->at) / row)
        return cut(m, part);
    m->matrix = m->at;
    m->n_rows = shape[0];
    m->at += (size_t)shape[0] * row;
done:
    return status;
}

/* The output layer is looked at for its length alone: a file that was cut there is not trusted. */
static pnb_status read_matrices(model *m)
{
    pnb_status status = read_matrix(m, "vectors");
    const unsigned char *matrix = m->matrix;
    const int64_t n_rows = m->n_rows;
    const int32_t *s = m->settings;
    if (status == PNB_OK && n_rows < (int64_t)m->n_words + (s[MAX_N] > 0 ? s[BUCKET] : 0))
        return broken(m, "has fewer rows than words and buckets");
    if (status == PNB_OK)
        status = read_matrix(m, "output layer");
    m->matrix = matrix;
    m->n_rows = n_rows;
    return status;
}

/* ---- vectors ---- */

static void add_row(const model *m, int64_t row, double *sum)
{
    const size_t dim = (size_t)m->settings[DIM];
    const unsigned char *at = m->matrix + (size_t)row * dim * sizeof(float);
    for (size_t d = 0; d < dim; d++) {
        float value;
        memcpy(&value, at + d * sizeof value, sizeof value);
        sum[d] += (double)value;
    }
}

/* FNV-1a, but that bytes from 128 on are sign-extended: released models were made so. */
static uint32_t hash_of(const char *s, size_t n)
{
    uint32_t h = 2166136261U;
    for (size_t i = 0; i < n; i++) {
        const int32_t byte = (signed char)s[i];
        h = (h ^ (uint32_t)byte) * 16777619U;
    }
    return h;
}

/* Bytes of a character behind its first. */
static bool is_inside(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

/* The n-grams of s, which are all but a lone first or last mark. */
static size_t add_ngrams(const model *m, const char *s, size_t n, double *sum)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        size_t end = i;
        for (int32_t length = 1; !is_inside(s[i]) && end < n && length <= m->settings[MAX_N];
             length++) {
            do
                end++;
            while (end < n && is_inside(s[end]));
            bool is_mark = length == 1 && (i == 0 || end == n);
            if (length < m->settings[MIN_N] || is_mark)
                continue;
            uint32_t bucket = hash_of(s + i, end - i) % (uint32_t)m->settings[BUCKET];
            add_row(m, (int64_t)m->n_words + bucket, sum);
            count++;
        }
    }
    return count;
}

static pnb_status write_vector(const model *m, place at, pnb__buf *marked, double *sum, float *row)
{
    const size_t dim = (size_t)m->settings[DIM];
    size_t count = 1;
    memset(sum, 0, dim * sizeof *sum);
    add_row(m, at.row, sum);
    marked->size = 0;
    pnb__buf_putc(marked, '<');
    pnb__buf_append(marked, at.text, at.n);
    pnb__buf_putc(marked, '>');
    if (marked->failed)
        return pnb__fail_nomem(m->err, at.n + 2);
    if (strcmp(at.text, "</s>") != 0) /* the end of a sentence has no parts */
        count += add_ngrams(m, marked->data, marked->size, sum);
    for (size_t d = 0; d < dim; d++) {
        row[d] = (float)(sum[d] / (double)count);
        if (!isfinite((double)row[d]))
            return pnb__fail(m->err, PNB_FORMAT, "%s: the vector of \"%.40s\" is not finite",
                             m->path, at.text);
    }
    return PNB_OK;
}

static pnb_status write_vectors(const model *m, const pnb__wanted_words *w, const place *places)
{
    pnb__buf marked = {0};
    double *sum = NULL;
    pnb_status status;
    PNB_TRY(PNB_ALLOC(sum, w->dim, m->err));
    for (size_t i = 0; i < w->n; i++)
        if (places[i].text != NULL)
            PNB_TRY(write_vector(m, places[i], &marked, sum, w->rows + i * w->dim));
done:
    pnb__buf_reset(&marked);
    pnb__free(sum);
    return status;
}

pnb_status pnb__fasttext_model_read(const char *path, const pnb__spellings *s,
                                    pnb__wanted_words *wanted, pnb_error *err)
{
    model m = {.path = path, .err = err};
    pnb__map map = {0};
    place *places = NULL;
    pnb_status status;
    PNB_TRY(pnb__map_open(&map, path, err));
    m.at = map.data;
    m.end = map.data + map.size;
    PNB_TRY(PNB_ALLOC_ZERO(places, wanted->n + 1, err));
    PNB_TRY(read_settings(&m, wanted->dim));
    PNB_TRY(read_dictionary(&m, s, wanted, places));
    PNB_TRY(read_matrices(&m));
    status = write_vectors(&m, wanted, places);
done:
    pnb__free(places);
    pnb__map_close(&map);
    return status;
}
