/* A frozen teacher: embedding sets of the training pictures and captions, and the row of each.
 *
 * Rows are found by their ids, as `embed` names them: a picture by its sample's key, without the
 * shard; caption k of it by "KEY#k", by the key where the set has one caption a picture, or by what
 * it says. A
 * sample without both would train on nothing or on another's row, so all must be there. What the
 * teacher saw is the picture as it lies there and the bare caption: augmentation and templates are
 * ours. */
#include <math.h>
#include <string.h>

#include "base/grow.h"
#include "base/map.h"
#include "penumbra/embeddings.h"
#include "train/contrastive/contrastive.h"

/* CLIP's logit scale, which most models reach. */
#define USUAL_SCALE 100.0

/* A row of each picture, and of each caption, found once: a step looks up numbers. */
struct pnb__teacher {
    pnb_embeddings *set[2]; /* of pictures, of captions */
    int32_t *image_row;     /* [samples] */
    size_t *first;          /* [samples + 1] of each sample's captions in text_row */
    int32_t *text_row;
    double scale; /* of logits */
};

/* By the weights: which of the two losses is the command line's to say. */
bool pnb__teacher_is_asked(const pnb_train_opts *o)
{
    return o->loss.weight[PNB_LOSS_DISTILL] > 0 || o->loss.weight[PNB_LOSS_DISTILL_KL] > 0;
}

/* Sets without a weight would be read for nothing, a weight without sets would be 0. */
pnb_status pnb__teacher_check(const pnb_train_opts *o, pnb_error *err)
{
    bool has_sets = o->distill_images != NULL && o->distill_texts != NULL;
    bool has_any = o->distill_images != NULL || o->distill_texts != NULL;
    if (pnb__teacher_is_asked(o) != has_any || has_any != has_sets)
        return pnb__fail(err, PNB_ARG,
                         "distillation takes --distill-images, --distill-texts and a weight above "
                         "0 together");
    if (!has_sets)
        return isnan(o->distill_scale)
                   ? PNB_OK
                   : pnb__fail(err, PNB_ARG, "--distill-scale is of a teacher, and none is given");
    if (!isnan(o->distill_scale) && !(o->distill_scale > 0))
        return pnb__fail(err, PNB_ARG, "distill-scale is %g, it must be above 0", o->distill_scale);
    return PNB_OK;
}

/* ---- rows by id ---- */

/* As embed writes sets, or as other programs do. */
static pnb_status load(pnb_embeddings **out, const char *path, pnb_error *err)
{
    pnb_status status = pnb__ends_with(path, ".npy") ? pnb_embeddings_load_npy(out, path, err)
                                                     : pnb_embeddings_load(out, path, err);
    if (status == PNB_OK && (*out)->ids == NULL)
        status = pnb__fail(err, PNB_ARG, "%s: rows without ids belong to no sample", path);
    if (status != PNB_OK)
        pnb__error_prefix(err, "teacher");
    return status;
}

/* Rows by their ids or captions, NULL: there are none. Of equal ones the first: later ones are
 * never looked at. */
static pnb_status index_rows(char *const *names, size_t n, pnb__key_map *map, pnb_error *err)
{
    pnb_status status = names != NULL ? pnb__key_map_reserve(map, n, err) : PNB_OK;
    for (size_t i = 0; names != NULL && i < n && status == PNB_OK; i++)
        if (names[i] != NULL)
            status = pnb__key_map_add(map, pnb__hash_bytes(names[i], strlen(names[i]), 0), i, err);
    return status;
}

/* Names are compared: a hash alone may be another row's. -1: there is no such row. */
static int32_t find_row(char *const *names, const pnb__key_map *map, const char *name)
{
    size_t place, step = 0;
    uint64_t hash = pnb__hash_bytes(name, strlen(name), 0);
    while ((place = pnb__key_map_next(map, hash, &step)) != PNB__NO_KEY)
        if (strcmp(names[place], name) == 0)
            return (int32_t)place;
    return -1;
}

/* As pnb__sample_id of encode names a row: what embed wrote is looked for under the same name,
 * shards left out, so that a set that was packed anew keeps its teacher. */
static const char *id_of(const pnb_dataset *set, const pnb_sample *s)
{
    const char *slash = strrchr(s->key, '/');
    return pnb_dataset_get_kind(set) == PNB_DATASET_TAR && slash != NULL ? slash + 1 : s->key;
}

/* Whose a row is. */
typedef struct owner {
    uint64_t key; /* a hash of the source and the sample's whole key */
    bool is_taken;
} owner;

/* While rows are looked for, and what was not found. */
typedef struct search {
    pnb__key_map map[2], texts; /* by ids; of texts by the captions themselves */
    owner *owner[2];            /* of each row */
    size_t part;                /* the source that is read */
    size_t n_texts;             /* captions seen */
    size_t n_absent, n_shared;  /* rows that are not there; that two things are called */
    char first_absent[160], first_shared[160]; /* their ids */
} search;

/* One name is enough to see what is wrong with all. */
static void note_absent(search *in, const char *id)
{
    if (in->n_absent++ == 0)
        snprintf(in->first_absent, sizeof in->first_absent, "%s", id);
}

/* Sources and shards that number their samples anew have the same ids for other pictures: each
 * would be taught by the first one's rows. */
static void claim(search *in, int side, int32_t row, uint64_t key, const char *id)
{
    owner *o = row >= 0 ? &in->owner[side][row] : NULL;
    if (o != NULL && o->is_taken && o->key != key && in->n_shared++ == 0)
        snprintf(in->first_shared, sizeof in->first_shared, "%s", id);
    if (o != NULL)
        *o = (owner){key, true};
}

/* The row of an id, unless the set says that it was made from another caption. */
static int32_t find_made_from(const pnb_embeddings *set, const search *in, const char *id,
                              const char *text)
{
    int32_t row = find_row(set->ids, &in->map[1], id);
    const char *made_from = row >= 0 && set->texts != NULL ? set->texts[row] : NULL;
    return made_from != NULL && strcmp(made_from, text) != 0 ? -1 : row;
}

/* "KEY#k", else "KEY", else, of tables whose captions are numbered, the caption itself: equal ones
 * have equal rows. */
static int32_t find_text(const pnb__teacher *t, search *in, const char *id, size_t k,
                         const char *text)
{
    const pnb_embeddings *set = t->set[1];
    char name[512];
    snprintf(name, sizeof name, "%s#%zu", id, k);
    int32_t row = find_made_from(set, in, name, text);
    if (row < 0)
        row = find_made_from(set, in, id, text);
    if (row >= 0)
        claim(in, 1, row, in->n_texts, id); /* a caption is no other one, whatever its sample */
    else
        row = find_row(set->texts, &in->texts, text);
    if (row < 0)
        note_absent(in, name);
    return row;
}

/* An unreadable sample is never drawn: it needs no row. */
static pnb_status find_sample(pnb__teacher *t, search *in, const pnb_dataset *set, size_t i,
                              pnb_error *err)
{
    pnb_sample s = {0};
    pnb_status status = PNB_OK;
    t->first[i] = in->n_texts;
    t->image_row[i] = -1;
    pnb_error why = PNB_ERROR_INIT;
    pnb_status read = pnb_dataset_get(set, i, &s, &why);
    if (read == PNB_NOMEM)
        status = pnb__fail(err, read, "%s", why.text);
    if (read == PNB_OK) {
        const char *id = id_of(set, &s);
        while (i >= pnb_dataset_part_first(set, in->part + 1))
            in->part++;
        t->image_row[i] = find_row(t->set[0]->ids, &in->map[0], id);
        if (t->image_row[i] < 0)
            note_absent(in, id);
        /* a table may name a picture again, for another caption */
        claim(in, 0, t->image_row[i], pnb__hash_bytes(s.key, strlen(s.key), in->part), id);
        for (size_t k = 0; k < s.n_texts && status == PNB_OK; k++)
            status = PNB_PUSH(t->text_row, in->n_texts, err, find_text(t, in, id, k, s.texts[k]));
    }
    pnb_sample_reset(&s);
    return status;
}

/* All before the first step: a row that is missing would else end the run in its middle. */
static pnb_status find_rows(pnb__teacher *t, const pnb_dataset *set, pnb_error *err)
{
    search in = {.n_texts = 0};
    size_t n = pnb_dataset_size(set);
    pnb_status status;
    for (int side = 0; side < 2; side++)
        PNB_TRY(PNB_ALLOC_ZERO(in.owner[side], t->set[side]->n, err));
    for (int side = 0; side < 2; side++)
        PNB_TRY(index_rows(t->set[side]->ids, t->set[side]->n, &in.map[side], err));
    PNB_TRY(index_rows(t->set[1]->texts, t->set[1]->n, &in.texts, err));
    PNB_TRY(PNB_ALLOC(t->image_row, n, err));
    PNB_TRY(PNB_ALLOC(t->first, n + 1, err));
    for (size_t i = 0; i < n; i++)
        PNB_TRY(find_sample(t, &in, set, i, err));
    t->first[n] = in.n_texts;
    if (in.n_absent > 0)
        status = pnb__fail(err, PNB_NOT_FOUND,
                           "the teacher's sets lack %zu of the rows of %zu pictures and %zu "
                           "captions, '%s' first: embed the training data as they are, or leave "
                           "the others out of them",
                           in.n_absent, n, in.n_texts, in.first_absent);
    else if (in.n_shared > 0)
        status = pnb__fail(err, PNB_ARG,
                           "%zu pictures and captions of the training data have the id of another "
                           "one, '%s' first, and a teacher's row belongs to one: give samples of "
                           "all sources and shards keys of their own, and embed them anew",
                           in.n_shared, in.first_shared);
done:
    pnb__free(in.owner[0]);
    pnb__free(in.owner[1]);
    pnb__key_map_reset(&in.map[0]);
    pnb__key_map_reset(&in.map[1]);
    pnb__key_map_reset(&in.texts);
    return status;
}

/* ---- opening ---- */

/* Cosines are of unit rows; a Gaussian stays where it is. */
static void normalise(pnb_embeddings *set)
{
    for (size_t i = 0; i < set->n; i++) {
        float *row = set->mean + i * set->dim;
        double sum = 0;
        for (size_t d = 0; d < set->dim; d++)
            sum += (double)row[d] * (double)row[d];
        double factor = sum > 0 ? 1 / sqrt(sum) : 0;
        for (size_t d = 0; d < set->dim; d++)
            row[d] = (float)((double)row[d] * factor);
    }
}

/* The divergence is of Gaussians over the same space. */
static pnb_status check_family(const pnb__contrastive *c, const pnb_embeddings *set,
                               const char *path, pnb_error *err)
{
    if (!(c->opts->loss.weight[PNB_LOSS_DISTILL_KL] > 0))
        return PNB_OK;
    if (set->log_var == NULL || set->dim != c->info->embed_dim)
        return pnb__fail(err, PNB_ARG,
                         "--distill-loss kl: %s holds %s embeddings of width %zu; Gaussians of the "
                         "model's width, %zu, are compared; --distill-loss contrastive takes any",
                         path, pnb_family_name(set->family), set->dim, c->info->embed_dim);
    return PNB_OK;
}

/* Rows of the divergence stay as long as they are: it compares places. */
pnb_status pnb__teacher_open(pnb__contrastive *c, pnb_error *err)
{
    const pnb_train_opts *o = c->opts;
    pnb_status status;
    if (!pnb__teacher_is_asked(o))
        return PNB_OK;
    pnb__teacher *t = NULL;
    PNB_TRY(PNB_ALLOC_ZERO(t, 1, err));
    c->teacher = t;
    PNB_TRY(load(&t->set[0], o->distill_images, err));
    PNB_TRY(load(&t->set[1], o->distill_texts, err));
    PNB_TRY(pnb_embeddings_check_mix(t->set[0], t->set[1], err));
    PNB_TRY(check_family(c, t->set[0], o->distill_images, err));
    PNB_TRY(check_family(c, t->set[1], o->distill_texts, err));
    PNB_TRY(find_rows(t, c->train, err));
    /* logits of a teacher are those it was trained with: a softer or harder softmax says other
     * things */
    double own = t->set[0]->info.logit_scale;
    t->scale = !isnan(o->distill_scale)   ? o->distill_scale
               : isfinite(own) && own > 0 ? own
                                          : USUAL_SCALE;
    if (o->loss.weight[PNB_LOSS_DISTILL] > 0 && !(o->loss.weight[PNB_LOSS_DISTILL_KL] > 0)) {
        normalise(t->set[0]);
        normalise(t->set[1]);
    }
done:
    return status;
}

void pnb__teacher_free(pnb__teacher *t)
{
    if (t == NULL)
        return;
    pnb_embeddings_free(t->set[0]);
    pnb_embeddings_free(t->set[1]);
    pnb__free(t->image_row);
    pnb__free(t->first);
    pnb__free(t->text_row);
    pnb__free(t);
}

/* ---- a step ---- */

/* Of both sides, which have been checked to agree. */
size_t pnb__teacher_dim(const pnb__teacher *t)
{
    return t->set[0]->dim;
}

/* c. */
double pnb__teacher_scale(const pnb__teacher *t)
{
    return t->scale;
}

/* Opening looked for all, but what could not be read then, or has other captions since, may come.
 */
int32_t pnb__teacher_row(const pnb__teacher *t, int side, int64_t sample, int32_t pick)
{
    if (side == 0)
        return t->image_row[sample];
    size_t at = t->first[sample] + (size_t)pick;
    return at < t->first[sample + 1] ? t->text_row[at] : -1;
}

/* Borrowed from the set. */
const float *pnb__teacher_part(const pnb__teacher *t, int side, bool log_var, int32_t row)
{
    const pnb_embeddings *set = t->set[side];
    return (log_var ? set->log_var : set->mean) + (size_t)row * set->dim;
}

/* Two copies of a set need not be the same, and ranks that learn from others are no ranks. All rows
 * of most sets; of larger ones so many as half a second has time for. */
uint64_t pnb__teacher_mark(const pnb__teacher *t)
{
    enum { LOOKS = 1 << 16 };
    uint64_t mark = 0;
    for (int side = 0; side < 2; side++) {
        const pnb_embeddings *set = t->set[side];
        size_t n = PNB_MIN(set->n, (size_t)LOOKS);
        mark += set->n;
        for (size_t k = 0; k < n; k++) {
            int32_t row = (int32_t)(k * set->n / n);
            for (int log_var = 0; log_var < 2; log_var++)
                if (!log_var || set->log_var != NULL)
                    mark = pnb__hash_bytes(pnb__teacher_part(t, side, log_var, row),
                                           set->dim * sizeof(float), mark);
        }
    }
    return mark;
}
