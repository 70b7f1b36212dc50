/* Text to token ids: the vocabularies of released models, and training of new ones.
 *
 * Read: Hugging Face `tokenizer.json` (WordLevel, BPE, Unigram), SentencePiece `spiece.model`
 * (Unigram, BPE), CLIP's `bpe_simple_vocab_16e6.txt.gz`, `vocab.json` with `merges.txt`, and the
 * lists of words of PCME and its relatives (`coco_vocab.pkl`, or a word a line).
 * Written: `tokenizer.json`.
 * A tokenizer does not change once made, so any number of threads may use one. Any byte string can
 * be encoded: bytes that are not UTF-8 count as U+FFFD. */
#ifndef PENUMBRA_TOKENIZER_H
#define PENUMBRA_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "penumbra/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pnb_tokenizer pnb_tokenizer;

/* Bytes that a caption may have, as given and behind every step of the normaliser, so that neither
 * a caption nor a small file whose replacements grow takes minutes and gigabytes. Beyond it
 * encoding fails with LIMIT before the work is done. */
#define PNB_TOKENIZER_MAX_BYTES (1 << 20)

/* What happens to a caption before the tokenizer's own normaliser. Every mode but NONE begins with
 * open_clip's basic_clean: damage repaired as ftfy does it where it need not guess (control
 * characters, ligatures, width, curly quotes, line breaks, ANSI escapes, NFC, and UTF-8 that was
 * read as Latin-1), then HTML references undone twice. */
#define PNB_CLEAN_LIST(X)                                                                          \
    X(NONE, "none")                 /* as it is */                                                 \
    X(LOWER, "lower")               /* whitespace collapsed and stripped, lower case */            \
    X(WHITESPACE, "whitespace")     /* whitespace collapsed and stripped */                        \
    X(CANONICALIZE, "canonicalize") /* '_' to ' ', no ASCII punctuation, as lower: SigLIP, ProLIP  \
                                     */

typedef enum pnb_clean {
#define PNB_CLEAN_ENUM(name, text) PNB_CLEAN_##name,
    PNB_CLEAN_LIST(PNB_CLEAN_ENUM)
#undef PNB_CLEAN_ENUM
        PNB_N_CLEANS
} pnb_clean;

/* "none", "lower", "whitespace", "canonicalize"; NULL outside the list. */
const char *pnb_clean_name(pnb_clean clean);
/* false when the name is none of these. */
bool pnb_clean_from_name(const char *name, pnb_clean *out);

/* Cleans a caption; lower case is Python's str.lower (U+0130 to two code points, final sigma).
 * *out is terminated; free it with pnb_text_free.
 * Errors  NOMEM, ARG */
pnb_status pnb_clean_text(pnb_clean clean, const char *text, size_t n_bytes, char **out,
                          size_t *n_out, pnb_error *err);
void pnb_text_free(char *text);

/* Opens a file, or the first in a directory of: tokenizer.json; spiece.model, tokenizer.model,
 * sentencepiece.model, sentencepiece.bpe.model; vocab.json with merges.txt;
 * bpe_simple_vocab_16e6.txt.gz or .txt; vocab.pkl, coco_vocab.pkl, cub_vocab.pkl, vocab.txt.
 *
 * Lists of words (.pkl, .txt with a word a line) hold <pad> 0, <start>, <end>, <unk>: captions are
 * put in lower case, cut by the rules of NLTK's word_tokenize, unknown words become <unk>. A pickle
 * is read without running anything: a dict of word2idx, idx2word and idx, or an instance of a class
 * Vocabulary with them.
 *
 * Pad, eos and mask tokens come from special_tokens_map.json and tokenizer_config.json beside it,
 * then from the file's own padding and template sections, then from the usual names ([PAD], </s>,
 * [MASK], <|endoftext|> ...). What pads where no file says it is told by pnb_tokenizer_padding: the
 * end token for SentencePiece vocabularies whose texts end with </s>, as released SigLIP and ProLIP
 * models pad (T5 itself, whose files say so, pads with <pad>); for CLIP's byte pairs the end token,
 * as Hugging Face's CLIP does; [PAD], <pad>, else the end token otherwise. SentencePiece models end
 * captions with </s>. bpe_simple_vocab cleans with LOWER and pads with 0, as open_clip does.
 * Errors  NOT_FOUND, FORMAT (damaged; unknown token in a merge, id twice or out of range,
 *         a pad or end token of the files beside it that the vocabulary lacks),
 *         UNSUPPORTED (a normaliser, pre-tokenizer or model type not known here: named; padding or
 *         truncation on the left), LIMIT */
pnb_status pnb_tokenizer_load(pnb_tokenizer **out, const char *path, pnb_error *err);

/* The same from memory: the text of a tokenizer.json, nothing read from beside it. */
pnb_status pnb_tokenizer_parse(pnb_tokenizer **out, const char *json, size_t n_bytes,
                               pnb_error *err);

void pnb_tokenizer_free(pnb_tokenizer *tok); /* NULL is fine */

/* Writes tokenizer.json whole or not at all (`path` may be a directory). The file opens in the
 * `tokenizers` library. A loaded tokenizer.json is written back unchanged, but for a padding
 * section where the pad id came from a file beside it or the caller; other vocabularies are put
 * down as the tokenizer.json that gives the same ids for text without their special strings and
 * user-defined pieces; cleaning is not part of it.
 * Errors  IO, NOMEM, UNSUPPORTED (treat_whitespace_as_suffix of SentencePiece) */
pnb_status pnb_tokenizer_save(const pnb_tokenizer *tok, const char *path, pnb_error *err);

/* Cleaning in front of a loaded tokenizer (ProLIP's config: tokenizer_kwargs.clean). Call it before
 * the tokenizer is shared between threads. Tokenizers trained here carry theirs in the file. */
void pnb_tokenizer_set_clean(pnb_tokenizer *tok, pnb_clean clean);
pnb_clean pnb_tokenizer_clean(const pnb_tokenizer *tok);

/* Cleaning with or without the repairs (see pnb_clean; HTML references are undone in any case). On
 * by default; off gives what the reference gives where ftfy is not installed. Call it before the
 * tokenizer is shared between threads. */
void pnb_tokenizer_set_repair(pnb_tokenizer *tok, bool repair);

/* Padding for checkpoints whose loader pads otherwise than the file says (open_clip's CLIP: 0).
 * Call it before the tokenizer is shared between threads.
 * Errors  ARG (outside the vocabulary) */
pnb_status pnb_tokenizer_set_pad_id(pnb_tokenizer *tok, int pad_id, pnb_error *err);

/* What fills a row up, and who says so. */
typedef struct pnb_padding {
    int id;             /* as pnb_tokenizer_pad_id */
    bool assumed;       /* no file says it */
    const char *source; /* in words; of the tokenizer */
} pnb_padding;
pnb_padding pnb_tokenizer_padding(const pnb_tokenizer *tok);

typedef struct pnb_token_count {
    int n_tokens;    /* ids in the row that are not padding, special ones included */
    int n_total;     /* what the whole caption would have needed */
    bool truncated;  /* n_total > context_length */
    bool is_unknown; /* a list of words knows no word of the caption, or the caption has none: every
                      * such caption is encoded alike. false for vocabularies of pieces */
} pnb_token_count;

/* Encodes a caption into exactly `context_length` ids: special tokens as the file says, cut so
 * that the end token stays, padded on the right with the pad id. `count` may be NULL.
 * Errors  ARG (context_length < 1 or too short for the special tokens), NOMEM,
 *         LIMIT (PNB_TOKENIZER_MAX_BYTES) */
pnb_status pnb_tokenizer_encode(const pnb_tokenizer *tok, const char *text, size_t n_bytes,
                                int context_length, int32_t *ids, pnb_token_count *count,
                                pnb_error *err);

/* Encodes without cutting or padding; `add_special` adds the template's tokens. Free *ids with
 * pnb_tokenizer_ids_free.
 * Errors  NOMEM, LIMIT (PNB_TOKENIZER_MAX_BYTES) */
pnb_status pnb_tokenizer_encode_all(const pnb_tokenizer *tok, const char *text, size_t n_bytes,
                                    bool add_special, int32_t **ids, size_t *n_ids, pnb_error *err);
void pnb_tokenizer_ids_free(int32_t *ids);

/* Text of a row of ids; special tokens and padding are left out, and unknown tokens of a
 * SentencePiece model become " U+2047 " as it does. *out is terminated; free it with
 * pnb_text_free.
 * Errors  ARG (an id outside the vocabulary), NOMEM */
pnb_status pnb_tokenizer_decode(const pnb_tokenizer *tok, const int32_t *ids, size_t n_ids,
                                char **out, pnb_error *err);

/* One more than the largest id, added tokens included even where they leave gaps: the rows an
 * embedding table needs. */
int pnb_tokenizer_vocab_size(const pnb_tokenizer *tok);
/* -1 when the tokenizer has none. Tokenizers trained here: [PAD] 0, </s> 1, [MASK] 2, and for the
 * word kind [UNK] 3. Released ProLIP/SigLIP: pad = eos = 1, unk 2. */
int pnb_tokenizer_pad_id(const pnb_tokenizer *tok);
int pnb_tokenizer_eos_id(const pnb_tokenizer *tok);
int pnb_tokenizer_bos_id(const pnb_tokenizer *tok);
int pnb_tokenizer_mask_id(const pnb_tokenizer *tok);
int pnb_tokenizer_unk_id(const pnb_tokenizer *tok);

/* Piece of the vocabulary as the file spells it, NULL for an id that has none. */
const char *pnb_tokenizer_piece(const pnb_tokenizer *tok, int32_t id);
/* Id of a piece as the file spells it, -1 when there is none. */
int32_t pnb_tokenizer_find(const pnb_tokenizer *tok, const char *piece);
/* A special token of the file (pad, eos, mask, ...); [UNK] counts as ordinary text. */
bool pnb_tokenizer_is_special(const pnb_tokenizer *tok, int32_t id);
/* The token begins a word, so that whole words can be masked or deleted together. Models that mark
 * the end of words instead ("</w>", CLIP) cannot tell by one id: every token counts there. */
bool pnb_tokenizer_is_word_start(const pnb_tokenizer *tok, int32_t id);
/* Text mask: maskable[i] = 1 where ids[i] is text that masking may replace or delete, 0 at special
 * tokens and padding. Returns the number of ones. */
size_t pnb_tokenizer_text_mask(const pnb_tokenizer *tok, const int32_t *ids, size_t n_ids,
                               unsigned char *maskable);

typedef enum pnb_tokenizer_kind { PNB_TOKENIZER_WORD, PNB_TOKENIZER_BYTE_BPE } pnb_tokenizer_kind;

typedef struct pnb_tokenizer_opts {
    pnb_tokenizer_kind kind;
    int vocab_size; /* special tokens included; BPE stops early when no pair is left */
    int min_count;  /* words (WORD) or pairs (BPE) seen less often are left out */
    pnb_clean clean;
} pnb_tokenizer_opts;

/* WORD, 32000 entries, min_count 1, CANONICALIZE. */
pnb_tokenizer_opts pnb_tokenizer_opts_default(void);

/* Learns a tokenizer from captions. Order of words: by count, ties by bytes. Order of merges: by
 * count of the pair, ties by the bytes of its two parts. Same captions, same file; their order does
 * not matter. The clean mode is written as the file's normaliser, so that other readers of the file
 * get the same ids; lower case is then letter by letter, without Python's final sigma.
 * `opts` may be NULL.
 * Errors  ARG (vocab_size too small for the fixed tokens, no captions), NOMEM
 */
pnb_status pnb_tokenizer_train(pnb_tokenizer **out, const char *const *texts, size_t n_texts,
                               const pnb_tokenizer_opts *opts, pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
