/* Inside of a tokenizer: what tokenizer.json is turned into, and the stages of encoding.
 *
 *   text -> clean -> [added tokens cut out] -> normalise -> words (pretokenize) -> ids (model)
 *        -> template (special tokens) -> padded row */
#ifndef PNB_TOKENIZER_TEXT_H
#define PNB_TOKENIZER_TEXT_H

#include "base/base.h"
#include "base/map.h"
#include "penumbra/tokenizer.h"

#define PNB__MAX_VOCAB (1 << 22)
#define PNB__MAX_STEPS 16

/* ---- unicode.c ---- */
bool pnb__is_space(uint32_t c);        /* White_Space: \s of the Rust and Oniguruma engines */
bool pnb__is_python_space(uint32_t c); /* str.isspace: the same and U+001C..U+001F */
bool pnb__is_letter(uint32_t c);       /* \p{L} */
bool pnb__is_number(uint32_t c);       /* \p{N} */
bool pnb__is_word(uint32_t c);         /* \w of the Rust engine */
/* Next code point, U+FFFD for a byte that is not UTF-8; always moves by at least 1 when n > 0. */
size_t pnb__next_char(const char *s, size_t n, uint32_t *c);
void pnb__put_char(pnb__buf *b, uint32_t c);
/* Appends with each byte that is not UTF-8 replaced by U+FFFD. */
void pnb__put_valid(pnb__buf *b, const char *s, size_t n);
/* Python's str.lower; with `final_sigma` false Rust's char-wise to_lowercase. Input must be valid.
 */
void pnb__put_lower(pnb__buf *b, const char *s, size_t n, bool final_sigma);
/* GPT-2's printable stand-in for every byte: the letters of byte-level vocabularies. */
uint32_t pnb__byte_char(unsigned char byte);
int pnb__char_byte(uint32_t c); /* -1 when c stands for no byte */

/* ---- clean.c, repair.c ---- */
typedef struct pnb__cleaning {
    pnb_clean mode;
    bool repair;      /* repair.c first */
    bool regex_space; /* U+001C..U+001F are no space, as in OpenAI's tokenizer */
} pnb__cleaning;
/* Into `b`, which is overwritten: never NULL on success. */
pnb_status pnb__clean(const pnb__cleaning *how, const char *text, size_t n_bytes, pnb__buf *b,
                      pnb_error *err);
/* Replaces the buffer's text by what `stage` makes of it. */
void pnb__run_stage(pnb__buf *text, void (*stage)(pnb__buf *, const char *, size_t));
void pnb__repair(pnb__buf *text); /* valid UTF-8 in place */
/* UTF-8 of surrogates: pairs become their character, single ones U+FFFD. */
void pnb__put_joined_surrogates(pnb__buf *out, const char *s, size_t n);
uint32_t pnb__windows_1252(unsigned char byte); /* the byte itself where nothing is assigned */

/* ---- vocab.c ---- Pieces by id and ids by piece. */
typedef struct pnb__vocab {
    pnb__buf text; /* every piece, each terminated */
    size_t *start; /* by id; SIZE_MAX for an id without piece */
    uint32_t *length;
    int n; /* largest id + 1 */
    pnb__key_map ids;
} pnb__vocab;
/* Room for ids 0..n_ids-1 and n_pieces pieces. */
pnb_status pnb__vocab_init(pnb__vocab *v, int n_ids, size_t n_pieces, pnb_error *err);
/* FORMAT when the piece or the id is there already, or the id is out of range. */
pnb_status pnb__vocab_add(pnb__vocab *v, int64_t id, const char *piece, size_t n, pnb_error *err);
int32_t pnb__vocab_find(const pnb__vocab *v, const char *piece, size_t n); /* -1 if absent */
const char *pnb__vocab_piece(const pnb__vocab *v, int32_t id, size_t *n);  /* NULL if absent */
void pnb__vocab_reset(pnb__vocab *v);

/* ---- normalize.c ---- */
typedef enum pnb__norm_kind {
    PNB__NORM_LOWER,
    PNB__NORM_FORM, /* NFC, NFD, NFKC, NFKD */
    PNB__NORM_STRIP,
    PNB__NORM_STRIP_ACCENTS,
    PNB__NORM_REPLACE,
    PNB__NORM_PREPEND,
    PNB__NORM_CHARSMAP,
    PNB__NORM_SENTENCEPIECE
} pnb__norm_kind;

typedef struct pnb__trie pnb__trie;

/* A run of characters out of a set, at least min_run long; or, when literal is set, that string.
 * `from_start`, `to_end`: only the run that the text begins or ends with. */
typedef struct pnb__pattern {
    char *literal;
    bool from_start, to_end;
    unsigned char ascii[16]; /* bit per ASCII character */
    bool unicode_space;      /* \s beyond ASCII */
    size_t min_run, max_run;
} pnb__pattern;

typedef struct pnb__norm_step {
    pnb__norm_kind kind;
    bool compose, compatible;     /* FORM */
    bool strip_left, strip_right; /* STRIP */
    pnb__pattern pattern;         /* REPLACE */
    char *content;                /* REPLACE, PREPEND */
    uint32_t *trie;               /* CHARSMAP: double array, then the strings it points into */
    size_t n_trie;
    char *strings;
    size_t n_strings;
    /* SENTENCEPIECE: the charsmap above, then what spiece.model's normalizer_spec says */
    bool add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces, whitespace_is_suffix;
    const pnb__trie *symbols; /* user-defined pieces, which pass unchanged; borrowed */
} pnb__norm_step;

/* UNSUPPORTED for a regular expression outside: one character or class, then nothing, + or {n,}. */
pnb_status pnb__pattern_parse(pnb__pattern *p, const char *regex, pnb_error *err);
/* Runs all steps over valid text; the result replaces `out`. LIMIT when a step gives more than
 * PNB_TOKENIZER_MAX_BYTES. */
pnb_status pnb__normalize(const pnb__norm_step *steps, size_t n_steps, const char *text, size_t n,
                          pnb__buf *out, pnb_error *err);

/* ---- charsmap.c ---- SentencePiece's precompiled normaliser. */
pnb_status pnb__charsmap_parse(pnb__norm_step *step, const char *base64, size_t n, pnb_error *err);
/* The same from the bytes themselves, as they stand in spiece.model. */
pnb_status pnb__charsmap_set(pnb__norm_step *step, const char *blob, size_t n, pnb_error *err);
void pnb__charsmap_run(const pnb__norm_step *step, const char *text, size_t n, pnb__buf *out);
/* The whole of SentencePiece's Normalizer: charsmap, white space, the prefix, U+2581 for spaces. */
void pnb__charsmap_run_whole(const pnb__norm_step *step, const char *text, size_t n, pnb__buf *out);

/* ---- pretokenize.c ---- */
typedef enum pnb__split_kind {
    PNB__SPLIT_WHITESPACE,      /* \w+|[^\w\s]+ */
    PNB__SPLIT_WHITESPACE_ONLY, /* on \s, which is dropped */
    PNB__SPLIT_GPT2,            /* 's|'t|...| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
    PNB__SPLIT_CLIP,            /* 's|'t|...|\p{L}+|\p{N}|[^\s\p{L}\p{N}]+, the rest dropped */
    PNB__SPLIT_METASPACE,       /* ' ' to U+2581, cut in front of each */
    PNB__SPLIT_WORD_TOKENIZE,   /* NLTK's word_tokenize: word_tokenize.c */
    PNB__SPLIT_NONE             /* only the prefix */
} pnb__split_kind;

typedef enum pnb__prefix { PNB__PREFIX_NEVER, PNB__PREFIX_FIRST, PNB__PREFIX_ALWAYS } pnb__prefix;

typedef struct pnb__split_step {
    pnb__split_kind kind;
    pnb__prefix prefix;             /* a space (METASPACE: U+2581) in front of text that has none */
    bool splits;                    /* METASPACE: false keeps the text whole */
    const struct pnb__added *words; /* CLIP: strings of the expression itself, upper case or lower;
                                       borrowed */
    size_t n_words;
} pnb__split_step;

typedef pnb_status (*pnb__word_fn)(void *user, const char *word, size_t n, pnb_error *err);
/* Calls fn for each word; is_first: the text begins the caption. */
pnb_status pnb__pretokenize(const pnb__split_step *steps, size_t n_steps, const char *text,
                            size_t n, bool is_first, pnb__word_fn fn, void *user, pnb_error *err);

/* ---- word_tokenize.c ---- NLTK's word_tokenize of valid text; quotes come as `` and ''. In a
 * tokenizer.json it is the pre_tokenizer of this type, which is Penumbra's own: no other reader
 * knows it. Special tokens are not looked for in a text that is cut so, as the released readers of
 * such vocabularies do not. */
#define PNB__WORD_TOKENIZE "NltkWordTokenize"
pnb_status pnb__word_tokenize(const char *s, size_t n, pnb__word_fn fn, void *user, pnb_error *err);

/* ---- bpe.c ---- */
typedef struct pnb__merge {
    int32_t left, right, result, rank; /* left = -1: empty slot */
} pnb__merge;

typedef struct pnb__bpe {
    pnb__merge *slots;
    size_t n_slots;
    int32_t byte_ids[256], byte_end_ids[256]; /* byte level: plain, and with end_suffix */
    bool is_byte_level, fuse_unk, byte_fallback;
    char *end_suffix; /* "</w>" or NULL */
    int32_t unk_id;
    const pnb__trie *symbols; /* user-defined pieces, never cut or joined; borrowed, may be NULL */
} pnb__bpe;

/* Growing list of ids. All zero is empty. */
typedef struct pnb__ids {
    int32_t *at;
    size_t n, capacity;
} pnb__ids;
pnb_status pnb__ids_push(pnb__ids *ids, int32_t id, pnb_error *err);
pnb_status pnb__ids_reserve(pnb__ids *ids, size_t more, pnb_error *err);

pnb_status pnb__bpe_init(pnb__bpe *bpe, size_t n_merges, pnb_error *err);
/* FORMAT when the pair is there already. */
pnb_status pnb__bpe_add(pnb__bpe *bpe, int32_t left, int32_t right, int32_t result, int32_t rank,
                        pnb_error *err);
pnb_status pnb__bpe_encode(const pnb__bpe *bpe, const pnb__vocab *vocab, const char *word, size_t n,
                           pnb__ids *out, pnb_error *err);
void pnb__bpe_reset(pnb__bpe *bpe);

/* ---- trie.c ---- */
typedef struct pnb__edge {
    uint64_t key;   /* (node * 256 + byte) + 1; 0: empty slot */
    uint32_t child; /* node */
} pnb__edge;

struct pnb__trie {
    pnb__edge *edges;
    size_t n_edges;    /* slots, a power of 2 */
    int32_t *piece_at; /* id of the piece that ends at a node, or -1 */
    uint32_t n_nodes;
};

/* Room for pieces of n_bytes altogether. */
pnb_status pnb__trie_init(pnb__trie *t, size_t n_bytes, pnb_error *err);
void pnb__trie_add(pnb__trie *t, const char *piece, size_t n, int32_t id); /* n > 0 */
/* Node behind `node` (the root is 0) along a byte; 0 when there is none. */
uint32_t pnb__trie_step(const pnb__trie *t, uint32_t node, unsigned char byte);
/* Length of the longest piece at s, its id in *id; 0 for none. An all-zero trie holds none. */
size_t pnb__trie_longest(const pnb__trie *t, const char *s, size_t n, int32_t *id);
void pnb__trie_reset(pnb__trie *t);

/* ---- unigram.c ---- */
/* As numbered in spiece.model. */
typedef enum pnb__piece_type {
    PNB__PIECE_NORMAL = 1,
    PNB__PIECE_UNKNOWN,
    PNB__PIECE_CONTROL,
    PNB__PIECE_USER_DEFINED,
    PNB__PIECE_UNUSED,
    PNB__PIECE_BYTE
} pnb__piece_type;

typedef struct pnb__unigram {
    float *scores;        /* by id */
    unsigned char *types; /* by id, pnb__piece_type; NULL: all are normal (tokenizer.json) */
    int n;                /* ids of the model; added tokens lie behind */
    pnb__trie trie;
    float unk_score;       /* smallest score - 10 */
    float max_score;       /* largest score: what user-defined pieces get a byte */
    int32_t unk_id;        /* -1: none */
    int32_t byte_ids[256]; /* "<0x00>" ... for byte_fallback */
    bool byte_fallback;
} pnb__unigram;

/* Builds the trie over vocab pieces 0..n-1. */
pnb_status pnb__unigram_build(pnb__unigram *u, const pnb__vocab *vocab, pnb_error *err);
pnb_status pnb__unigram_encode(const pnb__unigram *u, const char *text, size_t n, pnb__ids *out,
                               pnb_error *err);
void pnb__unigram_reset(pnb__unigram *u);

/* ---- the whole ---- */
typedef enum pnb__model_kind {
    PNB__MODEL_WORD_LEVEL,
    PNB__MODEL_BPE,
    PNB__MODEL_UNIGRAM
} pnb__model_kind;

typedef enum pnb__decoder {
    PNB__DECODE_SPACES,
    PNB__DECODE_BYTES,
    PNB__DECODE_METASPACE,
    PNB__DECODE_SUFFIX
} pnb__decoder;

typedef struct pnb__added {
    int32_t id;
    char *content; /* as matched: normalised when `normalized` */
    size_t n;
    bool single_word, strip_left, strip_right, normalized, special;
    bool is_word;  /* found by the splitter, not cut out */
    bool in_model; /* a piece of the model as well */
} pnb__added;

/* U+2581 in front of decoded text, for spiece.model. */
typedef enum pnb__leading {
    PNB__LEADING_NO_SPIECE, /* not one: one space is taken off whole texts */
    PNB__LEADING_ONE,       /* of the first piece */
    PNB__LEADING_ALL,       /* of each piece until there is text */
    PNB__LEADING_KEEP
} pnb__leading;

struct pnb_tokenizer {
    char *json; /* the text it was read from: what saving writes */
    size_t n_json;
    pnb__cleaning clean;
    pnb__added *added;
    size_t n_added;
    unsigned char added_first[2][256]; /* [normalized][byte]: some added token begins with it */
    bool *is_special;                  /* by id */
    pnb__norm_step norms[PNB__MAX_STEPS];
    size_t n_norms;
    pnb__split_step splits[PNB__MAX_STEPS];
    size_t n_splits;
    pnb__model_kind model;
    pnb__vocab vocab;
    pnb__bpe bpe;
    pnb__unigram unigram;
    pnb__trie symbols; /* of spiece.model: user-defined pieces */
    pnb__decoder decoder;
    pnb__leading spiece_leading;
    pnb__ids prefix, suffix; /* of the template for one sequence */
    int pad_id, eos_id, bos_id, mask_id, unk_id;
    char pad_source[96]; /* who says pad_id */
    bool pad_assumed;    /* no file does */
    bool pad_in_text;    /* `json` does, so that saving need not add it */
};

/* ---- special_tokens.c ---- */
#define PNB__PAD_AS_SIGLIP "the end token, as released SigLIP and ProLIP models pad"
#define PNB__PAD_AS_CLIP "the end token, as Hugging Face's CLIP pads"
#define PNB__PAD_AS_OPEN_CLIP "0, as open_clip's own tokenizer pads"
bool pnb__tok_is_clip(const pnb_tokenizer *tok);   /* CLIP's kind of byte pairs, with word ends */
bool pnb__tok_is_siglip(const pnb_tokenizer *tok); /* SentencePiece, texts end with </s> */
/* A pad id that no file names, and by which rule. */
void pnb__tok_assume_pad(pnb_tokenizer *tok, int pad_id, const char *rule);

/* ---- encode.c ---- The stages up to words, for encoding and for training alike. Text that matches
 * an added token goes to added_fn instead (which may be NULL). */
typedef struct pnb__sink {
    pnb__word_fn word;
    pnb_status (*added)(void *user, const pnb__added *token, pnb_error *err);
    void *user;
} pnb__sink;
pnb_status pnb__tok_words(const pnb_tokenizer *tok, const char *text, size_t n,
                          const pnb__sink *sink, pnb_error *err);

#endif
