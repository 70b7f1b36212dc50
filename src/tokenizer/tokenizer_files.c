/* Finds and opens a tokenizer: one file, or the first of the usual ones in a folder.
 *
 *   tokenizer.json                           Hugging Face
 *   spiece.model, tokenizer.model, ...       SentencePiece
 *   vocab.json + merges.txt                  Hugging Face's BPE before tokenizer.json
 *   bpe_simple_vocab_16e6.txt(.gz)           CLIP's BPE as OpenAI and open_clip ship it
 *   vocab.pkl, vocab.txt                     words of PCME and its relatives
 *   pcme_coco.pth, model.pth, ...            the same, beside the weights that they belong to
 *
 * A single file is told by its name and, where that says nothing, by its first bytes. */
#include <string.h>

#include "io/foreign.h"
#include "io/gzip.h"
#include "penumbra/checkpoint.h"
#include "tokenizer/tokenizer_json.h"

#define MAX_BYTES PNB__JSON_MAX_BYTES

static const char *const sentencepiece_names[] = {
    "spiece.model", "tokenizer.model", "sentencepiece.model", "sentencepiece.bpe.model", NULL};
static const char *const merge_names[] = {"bpe_simple_vocab_16e6.txt.gz",
                                          "bpe_simple_vocab_16e6.txt", NULL};
static const char *const word_names[] = {"vocab.pkl", "coco_vocab.pkl", "cub_vocab.pkl",
                                         "vocab.txt", NULL};
static const pnb__clip_names open_clip_names = {"<start_of_text>", "<end_of_text>"};

/* Replaces the bytes of a gzip file by what is packed in it. */
static pnb_status unpack(char **bytes, size_t *n, pnb_error *err)
{
    unsigned char *unpacked;
    size_t n_unpacked;
    if (!pnb__is_gzip(*bytes, *n))
        return PNB_OK;
    pnb_status status = pnb__gunzip(*bytes, *n, MAX_BYTES, &unpacked, &n_unpacked, err);
    if (status != PNB_OK)
        return status;
    pnb__free(*bytes);
    *bytes = (char *)unpacked;
    *n = n_unpacked;
    return PNB_OK;
}

/* ---- one file ---- */

typedef enum content {
    CONTENT_JSON,
    CONTENT_SPIECE,
    CONTENT_MERGES,
    CONTENT_PICKLE,
    CONTENT_WORDS,
    CONTENT_UNKNOWN
} content;

/* A list of words has one in its first line, merges have a header or two pieces. */
static bool is_word_list(const char *bytes, size_t n)
{
    const char *stop = n > 0 ? memchr(bytes, '\n', n) : NULL;
    size_t length = stop != NULL ? (size_t)(stop - bytes) : n;
    return length > 0 && memchr(bytes, ' ', length) == NULL && bytes[0] != '#';
}

static content tell(const char *file, const char *bytes, size_t n)
{
    if (pnb__ends_with(file, ".json"))
        return CONTENT_JSON;
    if (pnb__ends_with(file, ".model"))
        return CONTENT_SPIECE;
    if (pnb__ends_with(file, ".pkl") || pnb__ends_with(file, ".pickle"))
        return CONTENT_PICKLE;
    if (pnb__ends_with(file, ".txt") || pnb__ends_with(file, ".txt.gz"))
        return is_word_list(bytes, n) ? CONTENT_WORDS : CONTENT_MERGES;
    size_t begin = 0;
    while (begin < n && strchr(" \t\r\n", bytes[begin]) != NULL && bytes[begin] != '\0')
        begin++;
    if (begin < n && bytes[begin] == '{')
        return CONTENT_JSON;
    const char *stop = n > 0 ? memchr(bytes, '\n', n) : NULL;
    if (stop != NULL && memmem(bytes, (size_t)(stop - bytes), "#version", 8) != NULL)
        return CONTENT_MERGES;
    return n > 1 && bytes[0] == '\n' ? CONTENT_SPIECE : CONTENT_UNKNOWN; /* field 1, length */
}

static pnb_status read_unpacked(const char *file, char **bytes, size_t *n, pnb_error *err)
{
    pnb_status status = pnb__read_file(file, MAX_BYTES, bytes, n, err);
    if (status != PNB_OK)
        return status;
    status = pnb__refuse_stand_in(file, *bytes, *n, err);
    if (status != PNB_OK)
        return status;
    status = unpack(bytes, n, err);
    if (status != PNB_OK)
        pnb__error_prefix(err, "%s", file);
    return status;
}

pnb_status pnb__tok_load_merges(pnb_tokenizer **out, const char *path, const pnb__clip_names *names,
                                pnb_error *err)
{
    char *bytes = NULL;
    size_t n;
    *out = NULL;
    pnb_status status = read_unpacked(path, &bytes, &n, err);
    if (status == PNB_OK)
        status = pnb__tok_from_merges(out, bytes, n, names, path, err);
    pnb__free(bytes);
    return status;
}

static pnb_status open_one(pnb_tokenizer **out, const char *file, const char *dir, pnb_error *err)
{
    char *bytes = NULL;
    size_t n;
    pnb_status status;
    PNB_TRY(read_unpacked(file, &bytes, &n, err));
    if (n == 0)
        PNB_TRY(pnb__fail(err, PNB_FORMAT, "%s is empty, it holds no tokenizer", file));
    switch (tell(file, bytes, n)) {
    case CONTENT_JSON:
        status = pnb__tok_from_json(out, bytes, n, file, dir, err);
        break;
    case CONTENT_SPIECE:
        status = pnb__tok_from_spiece(out, bytes, n, file, dir, err);
        break;
    case CONTENT_MERGES:
        status = pnb__tok_from_merges(out, bytes, n, &open_clip_names, file, err);
        break;
    case CONTENT_PICKLE:
        status = pnb__tok_from_vocabulary_pickle(out, bytes, n, file, err);
        break;
    case CONTENT_WORDS:
        status = pnb__tok_from_vocabulary_lines(out, bytes, n, file, err);
        break;
    case CONTENT_UNKNOWN:
        status = pnb__fail(err, PNB_FORMAT,
                           "%s: no tokenizer: want tokenizer.json, a SentencePiece .model, "
                           "bpe_simple_vocab_16e6.txt.gz, vocab.json with merges.txt, or a "
                           "vocabulary of words (.pkl, .txt)",
                           file);
        break;
    }
done:
    pnb__free(bytes);
    return status;
}

static pnb_status open_pair(pnb_tokenizer **out, const char *dir, pnb_error *err)
{
    pnb_status status = PNB_OK;
    char *vocab_bytes = NULL, *merge_bytes = NULL;
    char *vocab = pnb__path_join(dir, "vocab.json"), *merges = pnb__path_join(dir, "merges.txt");
    pnb__tok_pair pair = {0};
    if (vocab == NULL || merges == NULL) {
        status = pnb__fail_nomem(err, strlen(dir));
        goto done;
    }
    PNB_TRY(pnb__read_file(vocab, MAX_BYTES, &vocab_bytes, &pair.n_vocab, err));
    PNB_TRY(pnb__read_file(merges, MAX_BYTES, &merge_bytes, &pair.n_merges, err));
    pair.vocab = vocab_bytes;
    pair.merges = merge_bytes;
    status = pnb__tok_from_pair(out, &pair, vocab, dir, err);
done:
    pnb__free(vocab_bytes);
    pnb__free(merge_bytes);
    pnb__free(vocab);
    pnb__free(merges);
    return status;
}

/* ---- a folder ---- */

static const char *first_held(const char *dir, const char *const *names)
{
    for (; *names != NULL; names++)
        if (pnb__path_has_file(dir, *names))
            return *names;
    return NULL;
}

/* The words that PCME's code saves in the file of the weights. NOT_FOUND: there is no such file, or
 * none in it. */
static pnb_status open_weights(pnb_tokenizer **out, const char *dir, pnb_error *err)
{
    char path[4096];
    pnb_checkpoint *weights = NULL;
    pnb_status status = pnb_checkpoint_locate(path, sizeof path, dir, NULL);
    if (status != PNB_OK || pnb__ends_with(path, ".safetensors") || pnb__ends_with(path, ".json"))
        return PNB_NOT_FOUND;
    status = pnb_checkpoint_open(&weights, path, NULL);
    const char *words = status == PNB_OK ? pnb_checkpoint_metadata(weights, "word2idx") : NULL;
    status = words == NULL ? PNB_NOT_FOUND
                           : pnb__tok_from_vocabulary_lines(out, words, strlen(words), path, err);
    pnb_checkpoint_free(weights);
    return status;
}

static pnb_status open_dir(pnb_tokenizer **out, const char *dir, pnb_error *err)
{
    const char *name = pnb__path_has_file(dir, "tokenizer.json")
                           ? "tokenizer.json"
                           : first_held(dir, sentencepiece_names);
    if (name == NULL &&
        (pnb__path_has_file(dir, "vocab.json") || pnb__path_has_file(dir, "merges.txt")))
        return open_pair(out, dir, err);
    if (name == NULL)
        name = first_held(dir, merge_names);
    if (name == NULL)
        name = first_held(dir, word_names);
    if (name == NULL) {
        pnb_status status = open_weights(out, dir, err);
        if (status != PNB_NOT_FOUND)
            return status;
    }
    if (name == NULL)
        return pnb__fail(err, PNB_NOT_FOUND,
                         "%s/tokenizer.json: not there, nor spiece.model, tokenizer.model, "
                         "vocab.json with merges.txt, bpe_simple_vocab_16e6.txt.gz, vocab.pkl or "
                         "vocab.txt",
                         dir);
    char *file = pnb__path_join(dir, name);
    if (file == NULL)
        return pnb__fail_nomem(err, strlen(dir) + strlen(name));
    pnb_status status = open_one(out, file, dir, err);
    pnb__free(file);
    return status;
}

pnb_status pnb_tokenizer_load(pnb_tokenizer **out, const char *path, pnb_error *err)
{
    *out = NULL;
    if (pnb__path_is_dir(path))
        return open_dir(out, path, err);
    char *dir = pnb__path_dir(path);
    if (dir == NULL)
        return pnb__fail_nomem(err, strlen(path));
    const char *name = pnb__path_base(path);
    bool is_half = (strcmp(name, "vocab.json") == 0 || strcmp(name, "merges.txt") == 0) &&
                   pnb__path_has_file(dir, "vocab.json") && pnb__path_has_file(dir, "merges.txt");
    pnb_status status = is_half ? open_pair(out, dir, err) : open_one(out, path, dir, err);
    pnb__free(dir);
    return status;
}
