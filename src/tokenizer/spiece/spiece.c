/* Reads spiece.model, the protocol buffer that SentencePiece writes:
 *
 *   ModelProto       1 pieces, 2 trainer_spec, 3 normalizer_spec
 *   SentencePiece    1 piece, 2 score (float), 3 type
 *   TrainerSpec      3 model_type, 24 treat_whitespace_as_suffix, 35 byte_fallback, 40..43 ids
 *   NormalizerSpec   2 precompiled_charsmap, 3..5 what happens to white space
 *
 * Fields that are not listed concern training and are passed over. Absent ones have the defaults of
 * sentencepiece_model.proto. Lengths come from a stranger: each is checked against what is left. */
#include <math.h>
#include <string.h>

#include "tokenizer/spiece/spiece.h"

#include "base/grow.h"

typedef struct field {
    uint32_t number, wire;
    uint64_t value;    /* wire 0, 1, 5 */
    const char *bytes; /* wire 2 */
    size_t n;
} field;

typedef struct reader {
    const char *at, *end;
} reader;

static bool read_varint(reader *r, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; shift < 70 && r->at < r->end; shift += 7) {
        unsigned char byte = (unsigned char)*r->at++;
        if (shift < 64)
            *out |= (uint64_t)(byte & 0x7F) << shift;
        if ((byte & 0x80) == 0)
            return true;
    }
    return false;
}

static bool read_fixed(reader *r, size_t n_bytes, uint64_t *out)
{
    if ((size_t)(r->end - r->at) < n_bytes)
        return false;
    *out = 0;
    for (size_t i = 0; i < n_bytes; i++)
        *out |= (uint64_t)(unsigned char)r->at[i] << (8 * i);
    r->at += n_bytes;
    return true;
}

/* The next field; false at the end and, with r->at then before r->end, at damage. */
static bool next_field(reader *r, field *f)
{
    const char *begin = r->at;
    uint64_t key, n = 0;
    bool fine = r->at < r->end && read_varint(r, &key) && key >> 3 > 0 && key >> 32 == 0;
    if (fine) {
        *f = (field){.number = (uint32_t)(key >> 3), .wire = (uint32_t)(key & 7)};
        switch (f->wire) {
        case 0:
            fine = read_varint(r, &f->value);
            break;
        case 1:
            fine = read_fixed(r, 8, &f->value);
            break;
        case 2:
            fine = read_varint(r, &n) && n <= (uint64_t)(r->end - r->at);
            f->bytes = r->at;
            f->n = (size_t)n;
            r->at += fine ? n : 0;
            break;
        case 5:
            fine = read_fixed(r, 4, &f->value);
            break;
        default:
            fine = false;
        }
    }
    if (!fine)
        r->at = begin;
    return fine;
}

static pnb_status damaged(const reader *r, const char *what, pnb_error *err)
{
    return r->at == r->end
               ? PNB_OK
               : pnb__fail(err, PNB_FORMAT,
                           "not a SentencePiece model, or cut short: bad field in %s", what);
}

static bool is_number(const field *f)
{
    return f->wire == 0;
}

/* ---- parts ---- */

static pnb_status check_piece(const pnb__spiece *p, int id, pnb_error *err)
{
    if (p->n == 0)
        return pnb__fail(err, PNB_FORMAT, "piece %d is empty", id);
    if (!pnb__utf8_valid(p->text, p->n) || memchr(p->text, 0, p->n) != NULL)
        return pnb__fail(err, PNB_FORMAT, "piece %d is not UTF-8 text", id);
    if (!(fabsf(p->score) < 1e30f))
        return pnb__fail(err, PNB_FORMAT, "piece %d has score %g", id, (double)p->score);
    if (p->type < PNB__PIECE_NORMAL || p->type > PNB__PIECE_BYTE)
        return pnb__fail(err, PNB_FORMAT, "piece %d has type %d: want 1..6", id, (int)p->type);
    return PNB_OK;
}

static pnb_status read_piece(pnb__spiece_file *f, const field *whole, pnb_error *err)
{
    reader r = {whole->bytes, whole->bytes + whole->n};
    pnb__spiece p = {.text = "", .type = PNB__PIECE_NORMAL};
    field part;
    while (next_field(&r, &part)) {
        if (part.number == 1 && part.wire == 2) {
            p.text = part.bytes;
            p.n = part.n;
        } else if (part.number == 2 && part.wire == 5) {
            uint32_t bits = (uint32_t)part.value;
            memcpy(&p.score, &bits, sizeof p.score);
        } else if (part.number == 3 && is_number(&part)) {
            p.type = part.value <= 6 ? (pnb__piece_type)part.value : (pnb__piece_type)0;
        }
    }
    pnb_status status = damaged(&r, "a piece", err);
    if (status == PNB_OK)
        status = check_piece(&p, f->n, err);
    if (status == PNB_OK && f->n >= PNB__MAX_VOCAB)
        status = pnb__fail(err, PNB_LIMIT, "more than %d pieces", PNB__MAX_VOCAB);
    return status == PNB_OK ? PNB_PUSH(f->pieces, f->n, err, p) : status;
}

static int id_of(uint64_t value)
{
    return value < PNB__MAX_VOCAB ? (int)value : -1; /* -1 is written as 2^64 - 1 */
}

static pnb_status read_trainer(pnb__spiece_file *f, const field *whole, pnb_error *err)
{
    reader r = {whole->bytes, whole->bytes + whole->n};
    field part;
    while (next_field(&r, &part)) {
        if (!is_number(&part))
            continue;
        switch (part.number) {
        case 3:
            if (part.value != PNB__SPIECE_UNIGRAM && part.value != PNB__SPIECE_BPE)
                return pnb__fail(err, PNB_UNSUPPORTED,
                                 "SentencePiece model type %llu: want 1 (unigram) or 2 (bpe)",
                                 (unsigned long long)part.value);
            f->model = (pnb__spiece_model)part.value;
            break;
        case 24:
            f->whitespace_is_suffix = part.value != 0;
            break;
        case 35:
            f->byte_fallback = part.value != 0;
            break;
        case 40:
            f->unk_id = id_of(part.value);
            break;
        case 41:
            f->bos_id = id_of(part.value);
            break;
        case 42:
            f->eos_id = id_of(part.value);
            break;
        case 43:
            f->pad_id = id_of(part.value);
            break;
        default:
            break;
        }
    }
    return damaged(&r, "trainer_spec", err);
}

static pnb_status read_normalizer(pnb__spiece_file *f, const field *whole, pnb_error *err)
{
    reader r = {whole->bytes, whole->bytes + whole->n};
    field part;
    while (next_field(&r, &part)) {
        if (part.number == 2 && part.wire == 2) {
            f->charsmap = part.bytes;
            f->n_charsmap = part.n;
        } else if (is_number(&part) && part.number == 3) {
            f->add_dummy_prefix = part.value != 0;
        } else if (is_number(&part) && part.number == 4) {
            f->remove_extra_whitespaces = part.value != 0;
        } else if (is_number(&part) && part.number == 5) {
            f->escape_whitespaces = part.value != 0;
        }
    }
    return damaged(&r, "normalizer_spec", err);
}

/* ---- the file ---- */

/* The types say which piece is the unknown one; the ids of trainer_spec must name control pieces.
 */
static pnb_status check_whole(pnb__spiece_file *f, pnb_error *err)
{
    int unk_id = -1;
    for (int id = 0; id < f->n; id++) {
        const pnb__spiece *p = &f->pieces[id];
        if (p->type == PNB__PIECE_UNKNOWN && unk_id >= 0)
            return pnb__fail(err, PNB_FORMAT, "pieces %d and %d are both the unknown one", unk_id,
                             id);
        if (p->type == PNB__PIECE_UNKNOWN)
            unk_id = id;
        if (p->type == PNB__PIECE_UNUSED && f->model == PNB__SPIECE_BPE)
            return pnb__fail(err, PNB_UNSUPPORTED, "a BPE model with unused pieces (%d)", id);
    }
    if (unk_id < 0)
        return pnb__fail(err, PNB_FORMAT, "not a SentencePiece model: %d pieces, no unknown piece",
                         f->n);
    f->unk_id = unk_id;
    int *named[] = {&f->bos_id, &f->eos_id, &f->pad_id};
    for (size_t i = 0; i < PNB_COUNT(named); i++)
        if (*named[i] >= f->n ||
            (*named[i] >= 0 && f->pieces[*named[i]].type != PNB__PIECE_CONTROL))
            *named[i] = -1;
    return PNB_OK;
}

pnb_status pnb__spiece_read(pnb__spiece_file *f, const char *bytes, size_t n, pnb_error *err)
{
    pnb_status status = PNB_OK;
    reader r = {bytes, bytes + n};
    field part;
    *f = (pnb__spiece_file){.model = PNB__SPIECE_UNIGRAM,
                            .add_dummy_prefix = true,
                            .remove_extra_whitespaces = true,
                            .escape_whitespaces = true,
                            .bos_id = 1,
                            .eos_id = 2,
                            .pad_id = -1};
    while (status == PNB_OK && next_field(&r, &part)) {
        if (part.wire != 2)
            continue;
        if (part.number == 1)
            status = read_piece(f, &part, err);
        else if (part.number == 2)
            status = read_trainer(f, &part, err);
        else if (part.number == 3)
            status = read_normalizer(f, &part, err);
    }
    if (status == PNB_OK)
        status = damaged(&r, "the file", err);
    if (status == PNB_OK)
        status = check_whole(f, err);
    if (status != PNB_OK)
        pnb__spiece_reset(f);
    return status;
}

void pnb__spiece_reset(pnb__spiece_file *f)
{
    pnb__free(f->pieces);
    *f = (pnb__spiece_file){0};
}
