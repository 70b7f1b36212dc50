/* Word vectors into the embedding of a caption encoder (caption_encoder.py: init_weights).
 *
 * The reference leaves rows without a vector as nn.Embedding starts them, N(0,1), which is larger
 * than most published vectors; each row has a stream of its own here, so that it does not depend on
 * which others are found. */
#include "models/pcme/word_table.h"

#include "io/tables/word_vectors.h"

/* The purpose in the high bits of the generator's stream, the row below. */
static const uint64_t row_stream = (uint64_t)0x7774 << 48;

/* rows (V,C), row i of stream i: V C normals whose order is that of the vocabulary. */
static void draw_rows(float *rows, size_t n, size_t dim, uint64_t seed)
{
    for (size_t i = 0; i < n; i++) {
        pnb__rng rng;
        pnb__rng_init(&rng, seed, row_stream ^ i);
        for (size_t d = 0; d < dim; d++)
            rows[i * dim + d] = (float)pnb__rng_normal(&rng);
    }
}

/* How many rows are published vectors: a share that is low says that the file is of another
 * language or case than the vocabulary. */
static void count_found(const pnb__wanted_words *w, pnb__word_table_count *out)
{
    *out = (pnb__word_table_count){.n_words = w->n};
    for (size_t i = 0; i < w->n; i++) {
        out->n_exact += w->found[i] == PNB__WORD_EXACT;
        out->n_by_fallback += w->found[i] == PNB__WORD_BY_FALLBACK;
    }
}

static pnb_status write_rows(pnb__param *words, const pnb__kernels *k, const float *rows,
                             pnb_error *err)
{
    enum { BLOCK = 512 };
    double block[BLOCK];
    pnb_status status = PNB_OK;
    for (size_t at = 0; at < words->n && status == PNB_OK; at += BLOCK) {
        size_t n = PNB_MIN(words->n - at, (size_t)BLOCK);
        for (size_t i = 0; i < n; i++)
            block[i] = (double)rows[at + i];
        status = pnb__param_write(words, k, at, n, block, err);
    }
    return status;
}

/* What the vocabulary calls each row; an id without a word is looked for under no name. */
static void name_rows(const pnb_tokenizer *tok, const char **names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        names[i] = pnb_tokenizer_piece(tok, (int32_t)i);
        if (names[i] == NULL)
            names[i] = "";
    }
}

pnb_status pnb__word_table_read(pnb__param *words, const pnb__kernels *k, const pnb_tokenizer *tok,
                                const char *path, uint64_t seed, pnb__word_table_count *count,
                                pnb_error *err)
{
    size_t n = words->shape[0], dim = words->shape[1];
    const char **names = NULL;
    pnb__wanted_words w = {.n = n, .dim = dim};
    pnb_status status;
    if ((size_t)pnb_tokenizer_vocab_size(tok) != n)
        return pnb__fail(err, PNB_SHAPE,
                         "%s has %zu rows, the vocabulary %d words; they are of two models",
                         words->name, n, pnb_tokenizer_vocab_size(tok));
    PNB_TRY(PNB_ALLOC(names, n + 1, err));
    PNB_TRY(PNB_ALLOC(w.rows, n * dim, err));
    PNB_TRY(PNB_ALLOC_ZERO(w.found, n, err));
    name_rows(tok, names, n);
    draw_rows(w.rows, n, dim, seed);
    w.words = names;
    PNB_TRY(pnb__word_vectors_read(path, &w, err));
    PNB_TRY(write_rows(words, k, w.rows, err));
    count_found(&w, count);
done:
    pnb__free(names);
    pnb__free(w.rows);
    pnb__free(w.found);
    return status;
}
