/* penumbra data ambiguous: embedding sets of a tree of concepts, with everything about them known.
 *
 * A split is a sample of its own of one tree. Its pictures are shared out by systematic sampling
 * along the leaves, so that every concept has its share of them but for one, and put into a drawn
 * order. Each level has the same number of captions, shared evenly by its concepts that have a
 * picture: general captions are neither rare, as where each concept had the same number, nor all
 * there is. What a caption fits is every picture below its concept. Rows are made
 * and written in blocks; ambiguous_tree.c has the concepts, ambiguous_rows.c the rows, and
 * synth_write.c makes the folder appear whole. */
#include <math.h>
#include <string.h>

#include "base/grow.h"
#include "data/synth/ambiguous.h"
#include "data/synth/synth_write.h"
#include "io/json/json.h"
#include "sets/embeddings.h"
#include "sets/set_writer.h"

enum { N_SPLITS = 3, BLOCK_ROWS = 1024 };
static const char *const split_names[N_SPLITS] = {"train", "val", "test"};
#define ORDER_STREAM (((uint64_t)1 << 62) + ((uint64_t)3 << 60))
#define WRITTEN_STREAM (((uint64_t)1 << 62) + ((uint64_t)7 << 59))

typedef struct split {
    const pnb_ctx *ctx;
    const pnb__ambiguous_tree *tree;
    const pnb__ambiguous_voice *voice;
    int which;
    size_t first, n;    /* its pictures */
    uint32_t *end;      /* [n_leaves + 1] how many pictures lie below the leaves before each */
    uint32_t *rank;     /* [n] place of picture k in the order of leaves */
    uint32_t *at;       /* [n] and back */
    size_t n_texts;     /* its captions */
    size_t *concept;    /* [n_texts] of each, by level */
    uint32_t *number;   /* [n_texts] among those of its concept */
    const char *sha256; /* stands for the weights of the model that there is not */
    const pnb__synth_out *out;
} split;

/* ---- which picture lies where ---- */

/* Ranks of the pictures below a concept: *n of them from the number that comes back. */
static size_t ranks_below(const split *s, size_t concept, size_t *n)
{
    size_t n_leaves, leaf = pnb__ambiguous_leaves(s->tree, concept, &n_leaves);
    *n = s->end[leaf + n_leaves] - s->end[leaf];
    return s->end[leaf];
}

static size_t n_below(const split *s, size_t concept)
{
    size_t n;
    (void)ranks_below(s, concept, &n);
    return n;
}

/* The leaf of a rank: the last that begins at or before it. */
static size_t leaf_of(const split *s, size_t rank)
{
    size_t low = 0, high = s->tree->n_leaves;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (s->end[middle] <= rank)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Points (k + u)/n fall into the leaves' shares, laid one behind the other. */
static void share_out(split *s, pnb__rng *rng)
{
    const pnb__ambiguous_tree *tree = s->tree;
    const double *mass = tree->mass + (tree->n - tree->n_leaves);
    double below = 0, u = pnb__rng_uniform(rng);
    s->end[0] = 0;
    for (size_t leaf = 0; leaf < tree->n_leaves; leaf++) {
        below += mass[leaf];
        double end = PNB_MIN(fmax(ceil((double)s->n * below - u), 0.0), (double)s->n);
        s->end[leaf + 1] = leaf + 1 < tree->n_leaves ? (uint32_t)end : (uint32_t)s->n;
    }
}

static pnb_status place_images(split *s, pnb_error *err)
{
    pnb_status status = PNB_OK;
    pnb__rng rng;
    PNB_TRY(PNB_ALLOC(s->end, s->tree->n_leaves + 1, err));
    PNB_TRY(PNB_ALLOC(s->rank, s->n, err));
    PNB_TRY(PNB_ALLOC(s->at, s->n, err));
    pnb__rng_init(&rng, s->tree->opts->seed, ORDER_STREAM + (uint64_t)s->which);
    share_out(s, &rng);
    for (size_t k = 0; k < s->n; k++)
        s->rank[k] = (uint32_t)k;
    pnb__rng_shuffle(&rng, s->rank, s->n);
    for (size_t k = 0; k < s->n; k++)
        s->at[s->rank[k]] = (uint32_t)k;
done:
    return status;
}

/* The captions of a level: an equal number of each concept with a picture, one at least, and one
 * more of the first ones where it does not come out even. */
static pnb_status add_texts(split *s, size_t level, pnb_error *err)
{
    const pnb__ambiguous_tree *tree = s->tree;
    pnb_status status = PNB_OK;
    size_t n_concepts = 0, i = 0;
    for (size_t c = tree->start[level]; c < tree->start[level + 1]; c++)
        n_concepts += n_below(s, c) > 0;
    for (size_t c = tree->start[level]; c < tree->start[level + 1]; c++) {
        if (n_below(s, c) == 0)
            continue;
        size_t n = tree->opts->n_texts / n_concepts + (i++ < tree->opts->n_texts % n_concepts);
        for (uint32_t k = 0; k < PNB_MAX(n, (size_t)1); k++) {
            size_t row = s->n_texts;
            PNB_TRY(PNB_PUSH(s->number, row, err, k));
            PNB_TRY(PNB_PUSH(s->concept, s->n_texts, err, c));
        }
    }
done:
    return status;
}

static pnb_status plan_split(split *s, pnb_error *err)
{
    pnb_status status = place_images(s, err);
    for (size_t l = 0; l < s->tree->opts->n_levels && status == PNB_OK; l++)
        status = add_texts(s, l, err);
    return status;
}

/* ---- rows ---- */

/* A block of rows that is being filled: row i of it is row first + i of the set. */
typedef struct block {
    const split *s;
    pnb_embeddings *to;
    size_t first;
    double *scratch; /* (threads, width) */
    size_t width;
} block;

/* Samples of a leaf in other splits have other numbers. */
static void image_range(void *user, size_t begin, size_t end, int thread)
{
    const block *b = user;
    const split *s = b->s;
    size_t leaves = s->tree->n - s->tree->n_leaves;
    for (size_t i = begin; i < end; i++) {
        size_t rank = s->rank[b->first + i], leaf = leaf_of(s, rank);
        pnb__ambiguous_image_row(s->tree, leaves + leaf, s->first + (rank - s->end[leaf]),
                                 b->scratch + (size_t)thread * b->width,
                                 b->to->mean + i * b->to->dim);
    }
}

/* Number of the caption among those of its concept in all splits: none has more than a level. */
static size_t wording(const split *s, size_t row)
{
    return (size_t)s->which * (s->tree->opts->n_texts + 1) + s->number[row];
}

static void text_range(void *user, size_t begin, size_t end, int thread)
{
    const block *b = user;
    for (size_t i = begin; i < end; i++) {
        size_t row = b->first + i;
        pnb__ambiguous_text_row(b->s->voice, b->s->concept[row], wording(b->s, row),
                                b -> scratch + (size_t)thread * b -> width,
                                b -> to -> mean + i * b -> to -> dim);
    }
}

static void known_range(void *user, size_t begin, size_t end, int thread)
{
    const block *b = user;
    const pnb_embeddings *from = b->s->tree->set;
    (void)thread;
    for (size_t i = begin; i < end; i++) {
        size_t c = b->s->concept[b->first + i];
        for (int a = 0; a < PNB__N_EMBEDDING_ARRAYS; a++) {
            float *to = *pnb__embedding_field(b->to, a);
            size_t n = to == NULL ? 0 : pnb__embedding_count(b->to, a) / b->to->n;
            if (n > 0)
                memcpy(to + i * n, pnb__embedding_values(from, a) + c * n, n * sizeof *to);
        }
    }
}

static pnb_status write_rows(const split *s, const pnb_embeddings *names, const char *file,
                             pnb__range_fn fill, pnb_error *err)
{
    pnb__set_writer writer = {0};
    size_t width = s->tree->opts->dim + s->voice->dim, n = PNB_MIN(names->n, (size_t)BLOCK_ROWS);
    block b = {.s = s, .width = width};
    char *path = pnb__format("%s/%s/%s.safetensors", s->out->temp, split_names[s->which], file);
    pnb_status status = path != NULL ? PNB_OK : pnb__fail_nomem(err, strlen(s->out->temp));
    if (status != PNB_OK)
        return status;
    PNB_TRY(
        PNB_ALLOC_ROWS(b.scratch, (size_t)(s->ctx != NULL ? s->ctx->n_threads : 1), width, err));
    PNB_TRY(pnb__set_writer_open(&writer, names, path, err));
    for (; b.first < names->n; b.first += n) {
        n = PNB_MIN(n, names->n - b.first);
        pnb_embeddings_free(b.to);
        PNB_TRY(pnb_embeddings_create(&b.to, names->family, n, names->dim, err));
        pnb__parallel_for(s->ctx, n, 16, fill, &b);
        PNB_TRY(pnb__set_writer_append(&writer, b.to, err));
    }
    status = pnb__set_writer_commit(&writer, err);
done:
    pnb__set_writer_abort(&writer);
    pnb_embeddings_free(b.to);
    pnb__free(b.scratch);
    pnb__free(path);
    return status;
}

/* ---- names ---- */

static pnb_status start_set(pnb_embeddings **out, const split *s, pnb_family family, size_t n,
                            size_t dim, const char *modality, pnb_error *err)
{
    pnb_status status = pnb__embeddings_create_bare(out, family, n, dim, err);
    if (status != PNB_OK)
        return status;
    pnb_embeddings_info *info = &(*out)->info;
    snprintf(info->modality, sizeof info->modality, "%s", modality);
    snprintf(info->model, sizeof info->model, "ambiguous");
    snprintf(info->weights_sha256, sizeof info->weights_sha256, "%s", s->sha256);
    info->seed = s->tree->opts->seed;
    return PNB_OK;
}

static void image_id(const split *s, size_t k, char id[32])
{
    snprintf(id, 32, "i%07zu", s->first + k);
}

static void text_id(const split *s, size_t row, char id[64])
{
    snprintf(id, 64, "c%zu-%zu", s->concept[row], wording(s, row));
}

static pnb_status write_images(const split *s, pnb_error *err)
{
    const pnb__ambiguous_tree *tree = s->tree;
    pnb_embeddings *set = NULL;
    size_t leaves = tree->n - tree->n_leaves;
    pnb_status status = PNB_OK;
    PNB_TRY(start_set(&set, s, PNB_POINT, s->n, tree->opts->dim, "image", err));
    for (size_t k = 0; k < s->n; k++) {
        char id[32], name[PNB__AMBIGUOUS_NAME], extra[PNB__AMBIGUOUS_NAME + 24];
        image_id(s, k, id);
        pnb__ambiguous_name(tree, leaves + leaf_of(s, s->rank[k]), name);
        snprintf(extra, sizeof extra, "{\"concept\": \"%s\"}", name);
        PNB_TRY(pnb_embeddings_set_id(set, k, id, err));
        PNB_TRY(pnb_embeddings_set_extra(set, k, extra, err));
    }
    status = write_rows(s, set, "images", image_range, err);
done:
    pnb_embeddings_free(set);
    return status;
}

static pnb_status name_text(const split *s, pnb_embeddings *set, size_t row, pnb_error *err)
{
    size_t concept = s->concept[row];
    char id[64], text[PNB__AMBIGUOUS_TEXT], name[PNB__AMBIGUOUS_NAME], extra[160];
    pnb_status status = PNB_OK;
    text_id(s, row, id);
    pnb__ambiguous_text(s->tree, concept, wording(s, row), text);
    pnb__ambiguous_name(s->tree, concept, name);
    snprintf(extra, sizeof extra, "{\"level\": %d, \"concept\": \"%s\", \"n_images\": %zu}",
             pnb__ambiguous_level(s->tree, concept), name, n_below(s, concept));
    PNB_TRY(pnb_embeddings_set_id(set, row, id, err));
    PNB_TRY(pnb_embeddings_set_text(set, row, text, err));
    PNB_TRY(pnb_embeddings_set_extra(set, row, extra, err));
done:
    return status;
}

/* The points, and with the same names what they stand for. */
static pnb_status write_texts(const split *s, bool is_known, pnb_error *err)
{
    const pnb_ambiguous_opts *o = s->tree->opts;
    pnb_embeddings *set = NULL;
    pnb_status status = PNB_OK;
    PNB_TRY(start_set(&set, s, is_known ? o->family : PNB_POINT, s->n_texts,
                      is_known ? o->dim : s->voice->dim, "text", err));
    for (size_t row = 0; row < set->n; row++)
        PNB_TRY(name_text(s, set, row, err));
    status =
        write_rows(s, set, is_known ? "known" : "texts", is_known ? known_range : text_range, err);
done:
    pnb_embeddings_free(set);
    return status;
}

/* ---- truth ---- */

static void write_pair(const split *s, size_t rank, size_t row, FILE *file)
{
    char text[64], image[32];
    text_id(s, row, text);
    image_id(s, s->at[rank], image);
    fprintf(file, "%s\t%s\n", image, text);
}

static void write_all(const split *s, size_t row, FILE *file)
{
    size_t n, first = ranks_below(s, s->concept[row], &n);
    for (size_t rank = first; rank < first + n; rank++)
        write_pair(s, rank, row, file);
}

/* The caption with the one picture that it was written for, drawn among those it fits: the truth of
 * sets that know one match only, by which a general caption is hard to place. */
static void write_written(const split *s, size_t row, FILE *file)
{
    size_t n, first = ranks_below(s, s->concept[row], &n);
    pnb__rng rng;
    pnb__rng_init(&rng, s->tree->opts->seed, WRITTEN_STREAM + s->concept[row]);
    rng.counter = 4 * (uint64_t)wording(s, row);
    write_pair(s, first + pnb__rng_below(&rng, n), row, file);
}

static pnb_status write_truth(const split *s, bool is_written, pnb_error *err)
{
    pnb__out_file file = {0};
    char name[32];
    snprintf(name, sizeof name, "%s%s", split_names[s->which], is_written ? ".written" : "");
    pnb_status status = pnb__truth_open(&file, s->out, name, err);
    if (status != PNB_OK)
        return status;
    for (size_t row = 0; row < s->n_texts; row++)
        (is_written ? write_written : write_all)(s, row, file.file);
    return pnb__out_commit(&file, err);
}

/* ---- the whole ---- */

/* Sums; shares of them are taken when all splits are made. */
static void count_split(const split *s, pnb_synth_stats *stats)
{
    size_t *const n_images[N_SPLITS] = {&stats->n_train, &stats->n_val, &stats->n_test};
    *n_images[s->which] = s->n;
    for (size_t row = 0; row < s->n_texts; row++) {
        int level = pnb__ambiguous_level(s->tree, s->concept[row]);
        stats->n_texts[level]++;
        stats->images_per_text[level] += (double)n_below(s, s->concept[row]);
    }
}

static pnb_status make_split(split *s, pnb_synth_stats *stats, pnb_error *err)
{
    pnb_status status = PNB_OK;
    char *dir = pnb__path_join(s->out->temp, split_names[s->which]);
    if (dir == NULL)
        return pnb__fail_nomem(err, strlen(s->out->temp));
    PNB_TRY(pnb__make_dirs(dir, err));
    PNB_TRY(plan_split(s, err));
    count_split(s, stats);
    PNB_TRY(write_images(s, err));
    PNB_TRY(write_texts(s, false, err));
    PNB_TRY(write_texts(s, true, err));
    PNB_TRY(write_truth(s, false, err));
    PNB_TRY(write_truth(s, true, err));
done:
    pnb__free(dir);
    pnb__free(s->end);
    pnb__free(s->rank);
    pnb__free(s->at);
    pnb__free(s->concept);
    pnb__free(s->number);
    return status;
}

/* A split without pictures has no files. */
static pnb_status make_splits(const pnb_ctx *ctx, const pnb__ambiguous_voice *voice,
                              const char *sha256, const pnb__synth_out *out, pnb_synth_stats *stats,
                              pnb_error *err)
{
    const pnb_ambiguous_opts *o = voice->tree->opts;
    size_t n_val = (size_t)(o->val_share * (double)o->n_images + 0.5);
    size_t n_test = (size_t)(o->test_share * (double)o->n_images + 0.5);
    n_test = PNB_MIN(n_test, o->n_images - PNB_MIN(n_val, o->n_images));
    const size_t n[N_SPLITS] = {o->n_images - n_val - n_test, n_val, n_test};
    split s = {.ctx = ctx, .tree = voice->tree, .voice = voice, .sha256 = sha256, .out = out};
    for (int which = 0; which < N_SPLITS; which++) {
        split one = s;
        one.which = which;
        one.n = n[which];
        pnb_status status = one.n > 0 ? make_split(&one, stats, err) : PNB_OK;
        if (status != PNB_OK)
            return status;
        s.first += one.n;
    }
    for (size_t l = 0; l < o->n_levels; l++) {
        stats->texts_per_image[l] = stats->images_per_text[l] / (double)o->n_images;
        stats->images_per_text[l] /= (double)PNB_MAX(stats->n_texts[l], (size_t)1);
    }
    return PNB_OK;
}

static char *options_json(const pnb_ambiguous_opts *o)
{
    pnb__buf b = {0};
    pnb__buf_printf(&b, "{\"kind\": \"ambiguous\", \"version\": 2, \"seed\": \"%llu\"",
                    (unsigned long long)o->seed);
    pnb__json_put(&b, ", \"family\": %s", pnb_family_name(o->family));
    const char *const counts[] = {"n_images", "dim",        "text_dim", "n_levels",
                                  "n_roots",  "n_branches", "n_texts"};
    const size_t n[] = {o->n_images, o->dim,        o->text_dim, o->n_levels,
                        o->n_roots,  o->n_branches, o->n_texts};
    const char *const keys[] = {"cosine_general", "cosine_specific", "spread",        "wording",
                                "hint",           "length",          "length_spread", "val_share",
                                "test_share"};
    const double values[] = {o->cosine_general, o->cosine_specific, o->spread,        o->wording,
                             o->hint,           o->length,          o->length_spread, o->val_share,
                             o->test_share};
    for (size_t i = 0; i < PNB_COUNT(counts); i++)
        pnb__json_put(&b, ", %s: %zu", counts[i], n[i]);
    for (size_t i = 0; i < PNB_COUNT(keys); i++)
        pnb__json_put(&b, ", %s: %f", keys[i], values[i]);
    pnb__buf_putc(&b, '}');
    if (!b.failed)
        return b.data;
    pnb__buf_reset(&b);
    return NULL;
}

static pnb_status make_set(const pnb_ctx *ctx, const pnb_ambiguous_opts *opts,
                           const pnb__synth_out *out, pnb_synth_stats *stats, pnb_error *err)
{
    pnb__ambiguous_tree tree = {0};
    pnb__ambiguous_voice voice = {0};
    pnb_status status = PNB_OK;
    pnb__sha256 hash;
    char hex[65];
    pnb__sha256_init(&hash);
    pnb__sha256_update(&hash, out->options, strlen(out->options));
    pnb__sha256_hex(&hash, hex);
    PNB_TRY(pnb__ambiguous_tree_make(&tree, opts, err));
    PNB_TRY(pnb__ambiguous_voice_make(&voice, &tree, err));
    status = make_splits(ctx, &voice, hex, out, stats, err);
done:
    pnb__ambiguous_voice_reset(&voice);
    pnb__ambiguous_tree_reset(&tree);
    return status;
}

pnb_status pnb_synth_ambiguous(const pnb_ctx *ctx, const pnb_ambiguous_opts *opts, const char *dir,
                               pnb_synth_stats *stats, pnb_error *err)
{
    pnb_ambiguous_opts o = opts != NULL ? *opts : pnb_ambiguous_opts_default();
    pnb_synth_stats local = {0};
    pnb__synth_out out = {0};
    pnb_status status = pnb__ambiguous_check(&o, err);
    if (status != PNB_OK)
        return status;
    char *options = options_json(&o);
    if (options == NULL)
        return pnb__fail_nomem(err, 512);
    PNB_TRY(pnb__synth_begin(&out, dir, options, &local, err));
    if (!local.reused) {
        PNB_TRY(make_set(ctx, &o, &out, &local, err));
        PNB_TRY(pnb__synth_commit(&out, &local, err));
    }
    if (stats != NULL)
        *stats = local;
done:
    pnb__synth_abort(&out);
    pnb__free(options);
    return status;
}
