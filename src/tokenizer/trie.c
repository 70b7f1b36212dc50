/* A set of pieces as a trie over bytes: edges in one hash table, open addressing.
 * Used to find every piece that begins at a place of a text (Unigram) and the longest symbol there
 * (SentencePiece's user-defined ones). */
#include "tokenizer/text.h"

pnb_status pnb__trie_init(pnb__trie *t, size_t n_bytes, pnb_error *err)
{
    size_t n_nodes = n_bytes + 1;
    *t = (pnb__trie){0};
    t->n_edges = 16;
    while (t->n_edges < 2 * n_nodes)
        t->n_edges *= 2;
    t->edges = pnb__alloc_zero(t->n_edges, sizeof *t->edges);
    t->piece_at = pnb__alloc_array(n_nodes, sizeof *t->piece_at);
    if (t->edges == NULL || t->piece_at == NULL) {
        pnb__trie_reset(t);
        return pnb__fail_nomem(err, n_nodes * 2 * sizeof *t->edges);
    }
    t->n_nodes = 1;
    t->piece_at[0] = -1;
    return PNB_OK;
}

void pnb__trie_reset(pnb__trie *t)
{
    pnb__free(t->edges);
    pnb__free(t->piece_at);
    *t = (pnb__trie){0};
}

static pnb__edge *find_edge(const pnb__trie *t, uint32_t node, unsigned char byte)
{
    uint64_t key = ((uint64_t)node << 8 | byte) + 1;
    size_t at = (size_t)(key * 0x9E3779B97F4A7C15u >> 20) & (t->n_edges - 1);
    while (t->edges[at].key != 0 && t->edges[at].key != key)
        at = (at + 1) & (t->n_edges - 1);
    return &t->edges[at];
}

void pnb__trie_add(pnb__trie *t, const char *piece, size_t n, int32_t id)
{
    uint32_t node = 0;
    for (size_t i = 0; i < n; i++) {
        pnb__edge *e = find_edge(t, node, (unsigned char)piece[i]);
        if (e->key == 0) {
            e->key = ((uint64_t)node << 8 | (unsigned char)piece[i]) + 1;
            e->child = t->n_nodes++;
            t->piece_at[e->child] = -1;
        }
        node = e->child;
    }
    t->piece_at[node] = id;
}

uint32_t pnb__trie_step(const pnb__trie *t, uint32_t node, unsigned char byte)
{
    const pnb__edge *e = find_edge(t, node, byte);
    return e->key != 0 ? e->child : 0;
}

size_t pnb__trie_longest(const pnb__trie *t, const char *s, size_t n, int32_t *id)
{
    size_t best = 0;
    uint32_t node = 0;
    for (size_t i = 0; i < n && t->n_nodes > 1; i++) {
        node = pnb__trie_step(t, node, (unsigned char)s[i]);
        if (node == 0)
            break;
        if (t->piece_at[node] >= 0) {
            *id = t->piece_at[node];
            best = i + 1;
        }
    }
    return best;
}
