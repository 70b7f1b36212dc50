/* Vocabularies of word-level captioning and retrieval models (VSE++, PVSE, PCME): a list of words
 * that begins with <pad> <start> <end> <unk>, put down as the tokenizer.json that says the same.
 *
 *   pickled   {"word2idx": {word: id}, "idx2word": {id: word}, "idx": n}, as a dict (the released
 *             coco_vocab.pkl) or as the state of an instance of a class Vocabulary
 *   text      a word a line; the line is the id. A file without any of the four gets them in front
 * A caption becomes <start> words <end>: NLTK's word_tokenize of it in lower case, each word's id
 * or that of <unk>; rows are filled up with 0, so <pad> must be 0 (datasets/_transforms.py and
 * _dataloader.py of naver-ai/pcme). */
#include <string.h>

#include "io/weights/pickle.h"
#include "tokenizer/tokenizer_json.h"

#define CLASS_NAME "Vocabulary"
enum { PAD, START, END, UNK, N_SPECIAL };
static const char *const special[N_SPECIAL] = {"<pad>", "<start>", "<end>", "<unk>"};

/* Puts word and id into the dict; each word once, as JSON can hold it. */
static pnb_status add_word(json_t *vocab, const char *word, size_t n, int64_t id, pnb_error *err)
{
    char shown[44];
    snprintf(shown, sizeof shown, "%.*s", (int)PNB_MIN(n, (size_t)40), word);
    if (n == 0 || memchr(word, '\0', n) != NULL || !pnb__utf8_valid(word, n))
        return pnb__fail(err, PNB_FORMAT, "word %lld is empty or no UTF-8 text", (long long)id);
    if (json_object_getn(vocab, word, n) != NULL)
        return pnb__fail(err, PNB_FORMAT, "the word \"%s\" stands twice, the second time as %lld",
                         shown, (long long)id);
    return json_object_setn_new(vocab, word, n, json_integer(id)) == 0 ? PNB_OK
                                                                       : pnb__fail_nomem(err, n);
}

/* ---- the tokenizer.json ---- */

static json_t *special_token(int id, const char *content)
{
    return json_pack("{s:i, s:s, s:b, s:b, s:b, s:b, s:b}", "id", id, "content", content,
                     "single_word", 0, "lstrip", 0, "rstrip", 0, "normalized", 0, "special", 1);
}

static json_t *in_template(const char *name)
{
    return json_pack("{s:{s:s, s:i}}", "SpecialToken", "id", name, "type_id", 0);
}

static json_t *template_token(const char *name, int id)
{
    return json_pack("{s:s, s:[i], s:[s]}", "id", name, "ids", id, "tokens", name);
}

/* `vocab` is taken over. */
static json_t *make_root(json_t *vocab, const int id[N_SPECIAL])
{
    json_t *added = json_array();
    for (int i = 0; i < N_SPECIAL; i++)
        json_array_append_new(added, special_token(id[i], special[i]));
    json_t *padding = json_pack("{s:s, s:s, s:n, s:i, s:i, s:s}", "strategy", "BatchLongest",
                                "direction", "Right", "pad_to_multiple_of", "pad_id", 0,
                                "pad_type_id", 0, "pad_token", special[PAD]);
    json_t *post =
        json_pack("{s:s, s:[o, {s:{s:s, s:i}}, o], s:[], s:{s:o, s:o}}", "type",
                  "TemplateProcessing", "single", in_template(special[START]), "Sequence", "id",
                  "A", "type_id", 0, in_template(special[END]), "pair", "special_tokens",
                  special[START], template_token(special[START], id[START]), special[END],
                  template_token(special[END], id[END]));
    return json_pack("{s:s, s:n, s:o, s:o, s:{s:s}, s:{s:s}, s:o, s:n, s:{s:s, s:s, s:o}}",
                     "version", "1.0", "truncation", "padding", padding, "added_tokens", added,
                     "normalizer", "type", "Lowercase", "pre_tokenizer", "type", PNB__WORD_TOKENIZE,
                     "post_processor", post, "decoder", "model", "type", "WordLevel", "unk_token",
                     special[UNK], "vocab", vocab);
}

static pnb_status find_special(const json_t *vocab, int id[N_SPECIAL], pnb_error *err)
{
    for (int i = 0; i < N_SPECIAL; i++) {
        const json_t *value = json_object_get(vocab, special[i]);
        if (value == NULL)
            return pnb__fail(err, PNB_FORMAT,
                             "the vocabulary has no %s; <pad>, <start>, <end> and <unk> are needed",
                             special[i]);
        id[i] = (int)json_integer_value(value);
    }
    if (id[PAD] != 0)
        return pnb__fail(err, PNB_FORMAT,
                         "<pad> is word %d; captions are filled up with 0, so it must be 0",
                         id[PAD]);
    return PNB_OK;
}

/* `vocab` is taken over. */
static pnb_status finish(pnb_tokenizer **out, json_t *vocab, const char *where, pnb_error *err)
{
    int id[N_SPECIAL];
    pnb_status status = find_special(vocab, id, err);
    if (status != PNB_OK) {
        pnb__error_prefix(err, "%s", where);
        json_decref(vocab);
        return status;
    }
    json_t *root = make_root(vocab, id);
    status = pnb__tok_from_root(out, root, where, NULL, err);
    json_decref(root);
    return status;
}

/* ---- pickled ---- */

/* The dict of the file, or the state of its instance. */
static const pnb__pk_value *state_of(const pnb__pk_value *root)
{
    if (root->kind == PNB__PK_OBJECT && root->u.list.n == 1)
        root = root->u.list.items[0];
    return root->kind == PNB__PK_DICT ? root : NULL;
}

/* Every id from 0 on must be there once: it is a row of the embedding. */
static pnb_status read_words(const pnb__pk_value *words, json_t *vocab, pnb_error *err)
{
    size_t n = words->u.list.n / 2;
    unsigned char *seen = n <= PNB__MAX_VOCAB ? pnb__alloc_zero(n + 1, 1) : NULL;
    pnb_status status = PNB_OK;
    if (seen == NULL)
        return n > PNB__MAX_VOCAB ? pnb__fail(err, PNB_LIMIT, "a vocabulary of %zu words", n)
                                  : pnb__fail_nomem(err, n);
    for (size_t i = 0; i < n && status == PNB_OK; i++) {
        const pnb__pk_value *word = words->u.list.items[2 * i],
                            *id = words->u.list.items[2 * i + 1];
        if (word->kind != PNB__PK_STR || id->kind != PNB__PK_INT)
            status = pnb__fail(err, PNB_FORMAT, "word2idx: entry %zu is not a word and its id", i);
        else if (id->u.integer < 0 || (size_t)id->u.integer >= n || seen[id->u.integer])
            status = pnb__fail(err, PNB_FORMAT,
                               "word2idx: \"%.*s\" has id %lld; %zu words have the ids 0 to %zu, "
                               "each once",
                               (int)PNB_MIN(word->u.text.n, (size_t)40), word->u.text.data,
                               (long long)id->u.integer, n, n - 1);
        else {
            seen[id->u.integer] = 1;
            status = add_word(vocab, word->u.text.data, word->u.text.n, id->u.integer, err);
        }
    }
    pnb__free(seen);
    return status;
}

/* idx2word says the same the other way round; models are trained by word2idx. */
static pnb_status check_back(const pnb__pk_value *words, const json_t *vocab, pnb_error *err)
{
    for (uint32_t i = 0; words != NULL && i + 1 < words->u.list.n; i += 2) {
        const pnb__pk_value *id = words->u.list.items[i], *word = words->u.list.items[i + 1];
        bool is_pair = id->kind == PNB__PK_INT && word->kind == PNB__PK_STR;
        const json_t *known =
            is_pair ? json_object_getn(vocab, word->u.text.data, word->u.text.n) : NULL;
        if (known == NULL || json_integer_value(known) != id->u.integer)
            return pnb__fail(err, PNB_FORMAT,
                             "idx2word and word2idx do not agree on entry %u: one of them is of "
                             "another vocabulary",
                             i / 2);
    }
    return PNB_OK;
}

static pnb_status read_state(const pnb__pk_value *root, json_t *vocab, pnb_error *err)
{
    const pnb__pk_value *state = state_of(root);
    const pnb__pk_value *words = pnb__pk_get(state, "word2idx");
    const pnb__pk_value *back = pnb__pk_get(state, "idx2word");
    const pnb__pk_value *count = pnb__pk_get(state, "idx");
    if (words == NULL || words->kind != PNB__PK_DICT)
        return pnb__fail(
            err, PNB_FORMAT,
            "a pickle without \"word2idx\": want a dict of word2idx, idx2word and idx, "
            "or an instance of a class " CLASS_NAME " that has them");
    if (back != NULL && back->kind != PNB__PK_DICT)
        return pnb__fail(err, PNB_FORMAT, "idx2word is no dict");
    pnb_status status = read_words(words, vocab, err);
    if (status == PNB_OK)
        status = check_back(back, vocab, err);
    if (status == PNB_OK && count != NULL &&
        (count->kind != PNB__PK_INT || count->u.integer != words->u.list.n / 2))
        status =
            pnb__fail(err, PNB_FORMAT, "idx is not the number of words, %u", words->u.list.n / 2);
    return status;
}

pnb_status pnb__tok_from_vocabulary_pickle(pnb_tokenizer **out, const char *bytes, size_t n,
                                           const char *where, pnb_error *err)
{
    pnb__arena arena;
    pnb__pk_budget budget = pnb__pk_budget_for(n);
    pnb__pk_result result;
    json_t *vocab = json_object();
    pnb__arena_init(&arena, (size_t)64 << 10);
    const pnb__pk_source source = {
        (const unsigned char *)bytes, n, where, &arena, &budget, CLASS_NAME};
    *out = NULL;
    pnb_status status =
        vocab != NULL ? pnb__pickle_load(&source, &result, err) : pnb__fail_nomem(err, n);
    if (status == PNB_OK) {
        status = read_state(result.root, vocab, err);
        if (status != PNB_OK)
            pnb__error_prefix(err, "%s", where);
    }
    pnb__arena_free(&arena);
    if (status == PNB_OK)
        return finish(out, vocab, where, err);
    json_decref(vocab);
    return status;
}

/* ---- text ---- */

/* The line at *at without its end; false behind the last one. */
static bool next_line(const char **at, const char *end, const char **line, size_t *n)
{
    if (*at == end)
        return false;
    const char *stop = memchr(*at, '\n', (size_t)(end - *at));
    *line = *at;
    *n = (size_t)((stop != NULL ? stop : end) - *at);
    *at = stop != NULL ? stop + 1 : end;
    *n -= *n > 0 && (*line)[*n - 1] == '\r';
    return true;
}

static bool has_line(const char *text, size_t n, const char *wanted)
{
    const char *at = text, *line;
    size_t length;
    while (next_line(&at, text + n, &line, &length))
        if (length == strlen(wanted) && memcmp(line, wanted, length) == 0)
            return true;
    return false;
}

static pnb_status read_lines(const char *text, size_t n, json_t *vocab, pnb_error *err)
{
    const char *at = text, *line;
    size_t length, number = 1;
    int64_t id = 0;
    bool has_any = false;
    pnb_status status = PNB_OK;
    if (has_line(text, n, "[UNK]") || has_line(text, n, "[CLS]"))
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "a WordPiece vocabulary (BERT's), which is not read; a list of words has "
                         "<pad>, <start>, <end> and <unk>");
    for (int i = 0; i < N_SPECIAL; i++)
        has_any |= has_line(text, n, special[i]);
    for (int i = 0; i < N_SPECIAL && !has_any && status == PNB_OK; i++)
        status = add_word(vocab, special[i], strlen(special[i]), id++, err);
    for (; status == PNB_OK && next_line(&at, text + n, &line, &length); number++) {
        if (length == 0 && at == text + n)
            break; /* the file ends in an empty line */
        if (memchr(line, ' ', length) != NULL || memchr(line, '\t', length) != NULL)
            return pnb__fail(err, PNB_FORMAT,
                             "line %zu has a space; want a word a line, whose id is its line",
                             number);
        status = add_word(vocab, line, length, id++, err);
        if (status != PNB_OK)
            pnb__error_prefix(err, "line %zu", number);
    }
    return status;
}

pnb_status pnb__tok_from_vocabulary_lines(pnb_tokenizer **out, const char *text, size_t n,
                                          const char *where, pnb_error *err)
{
    json_t *vocab = json_object();
    bool has_mark = n >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0;
    *out = NULL;
    pnb_status status =
        vocab != NULL ? read_lines(text + (has_mark ? 3 : 0), n - (has_mark ? 3 : 0), vocab, err)
                      : pnb__fail_nomem(err, n);
    if (status == PNB_OK)
        return finish(out, vocab, where, err);
    pnb__error_prefix(err, "%s", where);
    json_decref(vocab);
    return status;
}
