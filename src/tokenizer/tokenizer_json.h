/* The parts of making a tokenizer that call each other across files. */
#ifndef PNB_TOKENIZER_TOKENIZER_JSON_H
#define PNB_TOKENIZER_TOKENIZER_JSON_H

#include "io/json/json.h"
#include "tokenizer/text.h"

/* Fills an all-zero tokenizer; what it has allocated is released with it, also after an error.
 * declared_pad: the id in the "padding" section, or -1. */
pnb_status pnb__tok_read(pnb_tokenizer *tok, const json_t *root, int *declared_pad, pnb_error *err);
/* tokenizer_steps.c */
pnb_status pnb__tok_read_normalizer(pnb_tokenizer *tok, const json_t *section, pnb_error *err);
pnb_status pnb__tok_read_splits(pnb_tokenizer *tok, const json_t *section, pnb_error *err);
/* special_tokens.c: fills pad_id ... mask_id and clears is_special of the unknown token. `dir` may
 * be NULL. */
pnb_status pnb__tok_find_special(pnb_tokenizer *tok, const char *dir, int declared_pad,
                                 pnb_error *err);

/* ---- tokenizer.c ---- The content of a tokenizer.json; `root` NULL counts as out of memory. `dir`
 * (may be NULL) holds the files beside it, `where` starts error texts. */
pnb_status pnb__tok_from_root(pnb_tokenizer **out, const json_t *root, const char *where,
                              const char *dir, pnb_error *err);
pnb_status pnb__tok_from_json(pnb_tokenizer **out, const char *json, size_t n_bytes,
                              const char *where, const char *dir, pnb_error *err);

/* ---- tokenizer_side.c ---- What tokenizer_config.json, special_tokens_map.json and
 * added_tokens.json say beside a file that is no tokenizer.json. */
typedef struct pnb__tok_side {
    json_t *added; /* array of added tokens as in tokenizer.json, NULL for none */
    char *bos, *eos;
    int add_bos, add_eos; /* -1: not said */
    bool add_prefix_space;
} pnb__tok_side;
/* `dir` NULL: nothing is beside it. */
pnb_status pnb__tok_read_side(pnb__tok_side *side, const char *dir, pnb_error *err);
void pnb__tok_side_reset(pnb__tok_side *side);

/* ---- tokenizer_spiece.c ---- */
pnb_status pnb__tok_from_spiece(pnb_tokenizer **out, const char *bytes, size_t n_bytes,
                                const char *where, const char *dir, pnb_error *err);

/* ---- tokenizer_clip.c ---- */
typedef struct pnb__clip_names {
    const char *start, *end;
} pnb__clip_names;
/* The text of bpe_simple_vocab_16e6.txt. */
pnb_status pnb__tok_from_merges(pnb_tokenizer **out, const char *text, size_t n,
                                const pnb__clip_names *names, const char *where, pnb_error *err);
/* tokenizer_files.c: the same from a file, packed or not. */
pnb_status pnb__tok_load_merges(pnb_tokenizer **out, const char *path, const pnb__clip_names *names,
                                pnb_error *err);
typedef struct pnb__tok_pair {
    const char *vocab, *merges; /* texts of vocab.json and merges.txt */
    size_t n_vocab, n_merges;
} pnb__tok_pair;
pnb_status pnb__tok_from_pair(pnb_tokenizer **out, const pnb__tok_pair *pair, const char *where,
                              const char *dir, pnb_error *err);

/* ---- vocabulary.c ---- A list of words with <pad>, <start>, <end> and <unk>, as a tokenizer that
 * cuts captions by NLTK's rules: a pickled vocabulary, or a word a line. `where` starts error
 * texts. Errors  FORMAT, UNSUPPORTED (a pickle of something else), LIMIT, NOMEM */
pnb_status pnb__tok_from_vocabulary_pickle(pnb_tokenizer **out, const char *bytes, size_t n,
                                           const char *where, pnb_error *err);
pnb_status pnb__tok_from_vocabulary_lines(pnb_tokenizer **out, const char *text, size_t n,
                                          const char *where, pnb_error *err);

/* ---- normalize.c ---- Takes all steps off again. */
void pnb__norms_reset(pnb_tokenizer *tok);

#endif
