/* Pieces of a vocabulary: an array by id and a hash table by text.
 * Ids come from a file, so they may have gaps or repeat; both are checked while adding. The texts
 * lie in one block that the vocabulary owns. */
#include <string.h>

#include "base/map.h"
#include "tokenizer/text.h"

pnb_status pnb__vocab_init(pnb__vocab *v, int n_ids, size_t n_pieces, pnb_error *err)
{
    *v = (pnb__vocab){0};
    if (n_ids < 0 || n_ids > PNB__MAX_VOCAB)
        return pnb__fail(err, PNB_LIMIT, "vocabulary with ids up to %d: the limit is %d", n_ids - 1,
                         PNB__MAX_VOCAB);
    size_t n = (size_t)PNB_MAX(n_ids, 1);
    v->start = pnb__alloc_array(n, sizeof *v->start);
    v->length = pnb__alloc_zero(n, sizeof *v->length);
    if (v->start == NULL || v->length == NULL ||
        pnb__key_map_reserve(&v->ids, n_pieces, NULL) != PNB_OK) {
        pnb__vocab_reset(v);
        return pnb__fail_nomem(err, n * 16);
    }
    for (size_t i = 0; i < n; i++)
        v->start[i] = SIZE_MAX;
    v->n = n_ids;
    return PNB_OK;
}

int32_t pnb__vocab_find(const pnb__vocab *v, const char *piece, size_t n)
{
    size_t id, step = 0;
    uint64_t hash = pnb__hash_bytes(piece, n, 0);
    while ((id = pnb__key_map_next(&v->ids, hash, &step)) != PNB__NO_KEY &&
           (v->length[id] != n || memcmp(v->text.data + v->start[id], piece, n) != 0)) {
    }
    return id != PNB__NO_KEY ? (int32_t)id : -1;
}

pnb_status pnb__vocab_add(pnb__vocab *v, int64_t id, const char *piece, size_t n, pnb_error *err)
{
    if (id < 0 || id >= v->n || n > UINT32_MAX)
        return pnb__fail(err, PNB_FORMAT, "token \"%.40s\" has id %lld: want 0..%d", piece,
                         (long long)id, v->n - 1);
    if (v->start[id] != SIZE_MAX)
        return pnb__fail(err, PNB_FORMAT, "tokens \"%.40s\" and \"%.40s\" both have id %lld",
                         v->text.data + v->start[id], piece, (long long)id);
    int32_t known = pnb__vocab_find(v, piece, n);
    if (known >= 0)
        return pnb__fail(err, PNB_FORMAT, "token \"%.40s\" has two ids, %d and %lld", piece,
                         (int)known, (long long)id);
    size_t start = v->text.size;
    pnb__buf_append(&v->text, piece, n);
    pnb__buf_putc(&v->text, '\0');
    if (v->text.failed)
        return pnb__fail_nomem(err, n);
    v->start[id] = start;
    v->length[id] = (uint32_t)n;
    return pnb__key_map_add(&v->ids, pnb__hash_bytes(piece, n, 0), (size_t)id, err);
}

const char *pnb__vocab_piece(const pnb__vocab *v, int32_t id, size_t *n)
{
    if (id < 0 || id >= v->n || v->start[id] == SIZE_MAX)
        return NULL;
    if (n != NULL)
        *n = v->length[id];
    return v->text.data + v->start[id];
}

void pnb__vocab_reset(pnb__vocab *v)
{
    pnb__buf_reset(&v->text);
    pnb__free(v->start);
    pnb__free(v->length);
    pnb__key_map_reset(&v->ids);
    *v = (pnb__vocab){0};
}
