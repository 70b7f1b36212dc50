/* Image-caption data sets on disk, augmentation, and the loader that turns them into batches.
 *
 * A data set is opened from the string a user gives to --train-data; samples are then reached by
 * index. Tar shards are scanned once for byte positions and read through a file map. The loader
 * decodes, augments and tokenises on its own threads and can be stopped and continued at any batch
 * with the same bits, whatever the number of its workers. Forms of data sets: docs/data.md.
 *
 *     pnb_dataset_open(&ds, "shards/{00000..00009}.tar", NULL, &err);
 *     pnb_loader_create(&loader, ds, &opts, &err);
 *     while (pnb_loader_next(loader, &batch, &err) == PNB_OK && batch != NULL)
 *         ... train on batch->pixels and batch->tokens
 *     pnb_loader_free(loader);
 *     pnb_dataset_free(ds); */
#ifndef PENUMBRA_DATASET_H
#define PENUMBRA_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "penumbra/ctx.h"
#include "penumbra/error.h"
#include "penumbra/image.h"
#include "penumbra/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- data sets ---------------------------------------------------------------------------- */

/* X(name, text, has): the one list behind the enum, the words of --dataset-type and the names in a
 * run's settings. What is stored is the word, never the number, so a kind may be added anywhere
 * but before AUTO, which is what a zeroed struct means. What has CAPTIONS can be trained on. */
#define PNB_DATASET_LIST(X)                                                                        \
    X(AUTO, "auto", TEXTS)           /* told by the name, as are all below but synthetic */        \
    X(TAR, "webdataset", TEXTS)      /* webdataset shards, *.tar */                                \
    X(CSV, "csv", TEXTS)             /* *.csv, *.tsv: columns of picture paths and captions */     \
    X(DIR, "dir", TEXTS)             /* pictures in and below it; x.txt, x.json beside x.png */    \
    X(JSONL, "jsonl", TEXTS)         /* {'image' or 'filepath', 'caption(s)', ...} a line */       \
    X(KARPATHY, "karpathy", TEXTS)   /* his json of COCO or Flickr and a folder of pictures */     \
    X(SYNTHETIC, "synthetic", TEXTS) /* random pixels and one caption: measures throughput */      \
    X(BINARY, "binary", CLASSES)     /* CIFAR's and STL-10's, MNIST's idx files, also as .gz */    \
    X(PARQUET, "parquet", TEXTS)     /* a table of pictures' bytes or paths, or of urls alone */

typedef enum pnb_dataset_kind {
#define PNB_DATASET_ENUM(name, text, has) PNB_DATASET_##name,
    PNB_DATASET_LIST(PNB_DATASET_ENUM)
#undef PNB_DATASET_ENUM
        PNB_N_DATASET_KINDS /* how many there are */
} pnb_dataset_kind;

/* How a source is read; fields that open_clip has as options are named as there. */
typedef struct pnb_dataset_opts {
    pnb_dataset_kind kind;       /* AUTO */
    char csv_separator;          /* 0: TAB if the header line has one, else a comma */
    const char *csv_img_key;     /* NULL: "filepath" */
    const char *csv_caption_key; /* NULL: "title" */
    const char *csv_label_key;   /* column of the class; NULL: "label" or "class" if there is one */
    const char *image_key;       /* tar suffixes, ';' between; NULL: "jpg;png;jpeg;webp;0.jpg",
                                  * then every other ending of a picture */
    const char *text_key;        /* the same for captions: "json" records, others text; NULL:
                                  * "json;txt" */
    const char *negatives_key; /* field of a record, or column of a table, that holds captions which
                                * do not fit the picture; NULL: none are read */
    size_t n_synthetic;        /* samples of SYNTHETIC; 0: 1024 */
    bool allow_no_caption;     /* keep pictures that have no caption (embedding, not training) */
    bool class_texts;          /* folder without sidecars: the folder's name is the caption */
} pnb_dataset_opts;

/* AUTO, the defaults above, samples without a caption are dropped. */
pnb_dataset_opts pnb_dataset_opts_default(void);

/* Read-only after opening: any number of threads may share it. */
typedef struct pnb_dataset pnb_dataset;

/* Opens a data set.
 *   spec = SOURCE [ "::" SOURCE ]...
 * A source is a path with brace globs "{00000..00012}" or "{a,b}" and the wildcards * ? [ ]. A
 * "#KEY=VALUE,..." behind a source says more: "split=train+restval,images=DIR" of a Karpathy json,
 * "captions=DIR,classes=FILE,omit=FILE" of a folder of pictures (docs/data.md). A
 * folder that holds *.tar files is read as those shards in name order, unless the kind is DIR; one
 * without these that holds *.parquet tables as those.
 * Shards may be packed (*.tar.gz, *.tgz, *.tar.zst, *.tzst): each is unpacked once, into a file
 * without a name beside it. A tar that ends early keeps the samples before the damage, one of
 * several of which nothing can be read is left out; both are reported by pnb_dataset_n_warnings,
 * and so is a whole one of several without a sample, and what sizes.json or __len__ beside shards
 * say otherwise. A source between "::" that gives none is refused. For SYNTHETIC the spec is not
 * read and may be NULL. opts NULL: the defaults. On failure *out is NULL. Memory  O(samples) for
 * names and positions; pictures and records stay on disk Errors NOT_FOUND (a source, or no sample
 * at all), FORMAT (a table without its columns, a tar whose first header is none), UNSUPPORTED
 * ("pipe:"), ARG (a file whose kind cannot be told, braces), IO, LIMIT, NOMEM */
pnb_status pnb_dataset_open(pnb_dataset **out, const char *spec, const pnb_dataset_opts *opts,
                            pnb_error *err);
void pnb_dataset_free(pnb_dataset *ds); /* NULL is fine */

size_t pnb_dataset_size(const pnb_dataset *ds); /* samples, 1 or more */
/* The sources between "::" in the spec, in order: part i has the samples from
 * pnb_dataset_part_first(ds, i) on, up to the next one's; of i = n_parts all. */
size_t pnb_dataset_n_parts(const pnb_dataset *ds);
size_t pnb_dataset_part_first(const pnb_dataset *ds, size_t i);
/* Of its first source; AUTO no more. */
pnb_dataset_kind pnb_dataset_get_kind(const pnb_dataset *ds);

/* What opening left out or found damaged, one sentence each. */
size_t pnb_dataset_n_warnings(const pnb_dataset *ds);
const char *pnb_dataset_warning(const pnb_dataset *ds, size_t i); /* "" past the end */

/* What it passed over that no sample lacks: columns of a table that nothing asks for. */
size_t pnb_dataset_n_notes(const pnb_dataset *ds);
const char *pnb_dataset_note(const pnb_dataset *ds, size_t i); /* "" past the end */

/* Shards left out because nothing of them could be read, or cut short by damage; each is named by a
 * warning. One that is all there is fails opening instead. */
size_t pnb_dataset_n_damaged(const pnb_dataset *ds);

/* One sample. Everything is owned by the sample (or by the data set's file map) and valid until
 * pnb_sample_reset; start from `pnb_sample s = {0};`. */
typedef struct pnb_sample {
    const char *key;        /* basename in the tar, or path below the folder or as in the table */
    const char *image_path; /* file of the picture; NULL when it lies in a tar */
    const unsigned char *image_bytes; /* encoded bytes; NULL when image_path is set, and of a row of
                                       * a table without pictures */
    size_t n_image_bytes;
    size_t n_texts;                      /* 0 only with allow_no_caption */
    const char *const *texts;            /* UTF-8, checked */
    const int *levels;                   /* per caption, -1 unknown */
    size_t n_negatives;                  /* with negatives_key: a text, or a list of them */
    const char *const *negatives;        /* UTF-8, checked */
    const char *name, *group, *subgroup; /* NULL when the sample has none */
    int64_t label;                       /* number of its class, -1 unknown */
    const char *class_name;              /* its name, NULL when only the number is known */
    const char *json;                    /* the whole record as text, NULL when there is none */
    void *memory;                        /* internal */
} pnb_sample;

/* Reads the record of sample i (no picture is decoded).
 * Errors  ARG (i out of range), FORMAT (bad JSON, invalid UTF-8, no caption: names source and
 *         sample), NOT_FOUND (a file has vanished), IO, LIMIT, NOMEM */
pnb_status pnb_dataset_get(const pnb_dataset *ds, size_t i, pnb_sample *out, pnb_error *err);
void pnb_sample_reset(pnb_sample *s); /* an all-zero one is fine */

/* Classes of the set, by number: from classnames.txt beside shards or one folder up, from the files
 * that come with a binary, else the sorted names of class folders or of a table's label column. 0
 * when the set does not say. */
size_t pnb_dataset_n_classes(const pnb_dataset *ds);
const char *pnb_dataset_class_name(const pnb_dataset *ds, size_t i); /* "" past the end */

/* Where a split ("train", "test") of a classification set lies: from the folder it was unpacked
 * into to a source for pnb_dataset_open. Knows CLIP_benchmark's and class folders
 * (root/test/...), CIFAR-10/100, STL-10 and MNIST binaries; anything else comes back as it is.
 * Free *out with pnb_dataset_path_free.
 * Errors  NOT_FOUND (a set with other splits only: the text lists them), IO, NOMEM */
pnb_status pnb_dataset_split(char **out, const char *root, const char *split, pnb_error *err);
void pnb_dataset_path_free(char *path); /* NULL is fine */

/* Decodes the picture of sample i to RGB. Free with pnb_image_free. Safe from several threads.
 * Errors  ARG (i out of range), FORMAT (corrupt), NOT_FOUND (the file has vanished), LIMIT, IO,
 *         NOMEM */
pnb_status pnb_dataset_image(const pnb_dataset *ds, size_t i, pnb_image *out, pnb_error *err);

/* The same with the options of pnb_image_decode (NULL: its defaults), which pictures of SYNTHETIC
 * do not look at. */
pnb_status pnb_dataset_image_as(const pnb_dataset *ds, size_t i, const pnb_image_opts *opts,
                                pnb_image *out, pnb_error *err);

/* ---- augmentation ------------------------------------------------------------------------- */

enum { PNB_MAX_CROP_SCALES = 8 };

/* What is done to training pictures. Every number is drawn from (seed, epoch, sample index), so it
 * does not depend on workers. On 8 bits, as open_clip's pipeline of PIL: the crop is cut out and
 * resized by the antialiased filter, zoom, shift and rotation are one map about the centre, then
 * flip, gain, jitter in a random order, grey. Then the normalisation of preprocessing, then
 * erasing. docs/numerics-training.md#augmentation
 * Source  torchvision and timm as open_clip calls them; ProLIP's recipe in pnb_augment_published */
typedef struct pnb_augment {
    bool enabled;         /* false: preprocess only, as in evaluation */
    bool crop;            /* random resized crop: area share and aspect ratio below */
    double crop_scale[2]; /* 0 < low <= high <= 1; published (0.8, 1) */
    double crop_ratio[2]; /* width to height; published (3/4, 4/3) */
    /* Where there are any, crops are multi-scale ones instead (Wang et al. 2016, TSN): each side is
     * one of these shares of the picture's shorter side, the two at most one place apart in the
     * list, at one of 13 places. 0 < share <= 1 */
    double crop_scales[PNB_MAX_CROP_SCALES];
    size_t n_crop_scales; /* 0: random resized crops */
    double zoom[2];    /* size factor of the content, uniform in log, 0.05 .. 20; (1, 1) is none */
    double shift;      /* +- share of the width and of the height, 0 .. 1 */
    double rotate;     /* +- radians, 0 .. 7 */
    double flip;       /* probability of a left-right flip */
    double gain;       /* +- share per colour channel, 0 .. 1 */
    double jitter[4];  /* brightness, contrast, saturation, hue; +- 0 .. 1, hue 0 .. 0.5 */
    double jitter_p;   /* probability of the four above */
    double grey_p;     /* probability of losing all colour */
    int interpolation; /* filter of crop and scaling: pnb_filter + 1; 0: the preprocess's */
    double erase_p;    /* probability that boxes are erased, after normalisation */
    int erase_count;   /* at most so many boxes */
    bool erase_const;  /* they become 0, the mean colour (PCME); else normal noise */
    const char *const *no_flip_groups; /* samples of these groups are never flipped; may be NULL */
    size_t n_no_flip_groups;           /* how many they are; the names are borrowed */
} pnb_augment;

/* Not enabled, and all ranges such that nothing would change. */
pnb_augment pnb_augment_none(void);
/* Published recipe: crop (0.8, 1), jitter (0.32, 0.32, 0.32, 0.08) with 0.8, grey with 0.2. */
pnb_augment pnb_augment_published(void);
/* Small runs: zoom 0.85-1.25, shift 12.5%, rotation 0.2, flip 0.5 except in "Symbols", "Flags" and
 * "shapes", gain 15%. */
pnb_augment pnb_augment_small(void);
/* Keeps the values, never flips. */
void pnb_augment_no_flip(pnb_augment *a);

/* Augments one picture: out[c][y][x] = (value/255 - mean[c]) / std[c] at pp's size. With `enabled`
 * false this is pnb_preprocess_apply. `group` may be NULL.
 * Shape   out (3, pp->height, pp->width)
 * Errors  ARG (a range upside down, a probability outside 0..1, an empty picture), and those of
 *         preprocess */
pnb_status pnb_augment_apply(const pnb_augment *a, const pnb_preprocess *pp, const pnb_image *image,
                             const char *group, const uint64_t seed_epoch_sample[3], float *out,
                             pnb_error *err);

/* ---- loader ------------------------------------------------------------------------------- */

/* X(name, text): the one list behind the enum and the words of --captions. Where a picture has a
 * single caption all of them choose it; where none of its captions has a level, LEVEL is ANY, and
 * where a level is absent ALL_LEVELS takes the nearest that is there. */
#define PNB_TEXT_LIST(X)                                                                           \
    X(LEVEL, "level")           /* a level uniformly among those present, then a caption of it */  \
    X(ANY, "any")               /* any caption uniformly */                                        \
    X(FIRST, "first")           /* the first one, always */                                        \
    X(ALL_LEVELS, "all_levels") /* one caption of each level 0..3: four texts a picture */

typedef enum pnb_text_choice {
#define PNB_TEXT_ENUM(name, text) PNB_TEXT_##name,
    PNB_TEXT_LIST(PNB_TEXT_ENUM)
#undef PNB_TEXT_ENUM
        PNB_N_TEXT_CHOICES /* how many there are */
} pnb_text_choice;

/* What batches are made of. Pointers are borrowed as long as the loader lives. */
typedef struct pnb_loader_opts {
    size_t batch_size; /* pictures, 1 to 2^24 */
    uint64_t seed;     /* of order, captions and augmentation */
    bool shuffle;      /* false: every epoch in the order of the data set */
    bool drop_last;    /* leave out the short batch at the end of an epoch */
    bool resample;     /* draw the samples of an epoch with replacement, instead of a permutation;
                        * an epoch has at least one batch then, however small the data set */
    /* with resample: a sample of part i is drawn factors[i] times as often as one of factor 1; each
     * 0 to 10^9, one above 0; borrowed */
    const double *factors;
    size_t n_factors;   /* 0: all alike; else pnb_dataset_n_parts */
    size_t n_negatives; /* hard negatives of a sample in a batch, 0 to 64; needs negatives_key. A
                         * sample without any is one that cannot be read; one with fewer gives them
                         * more than once */
    bool by_class;      /* one sample of batch_size different classes in each batch, of every class
                         * where that is their number; each class goes through its samples before it
                         * begins anew; shuffled, not resampled */
    size_t n_epochs;    /* 0: without end */
    int n_workers; /* threads that prepare batches, to 256; 0: prepare in pnb_loader_next itself */
    bool pin_workers; /* workers keep to the last n_workers of the processors that the caller may
                       * use, all other threads of the process to the rest, and to all of them again
                       * when the loader is freed. One such loader at a time */
    int n_prefetch;   /* batches prepared ahead, 1 to 1024 */
    int64_t
        max_image_pixels; /* of one picture; all that is decoded at once: 4 bytes times as many */
    size_t cache_bytes;   /* decoded pictures are kept while they fit; 0: no cache */
    pnb_preprocess preprocess; /* size and normalisation of the pictures */
    pnb_augment augment;
    const pnb_tokenizer *tokenizer; /* NULL: no tokens; must outlive the loader */
    int context_length;             /* tokens of a text, 1 to 65,536 */
    pnb_text_choice texts;          /* LEVEL */
    int level;                      /* with LEVEL: only this level where a sample has it; -1: all */
    double template_share;          /* probability that a caption goes into one of `templates` */
    const char *const *templates;   /* "a picture of {}" or "{c}"; must outlive the loader */
    size_t n_templates;             /* 0: captions stay as they are */
    /* Several processes read one order: of every `round` batches rank r takes those numbered
     * floor(r round / n_ranks) to floor((r + 1) round / n_ranks) - 1. Together they are the batches
     * of one process that reads alone, bit by bit and each exactly once, whatever the number of
     * ranks. */
    size_t rank, n_ranks; /* n_ranks 0 or 1: alone */
    size_t round;         /* batches of one step of all ranks, n_ranks or more; 0: n_ranks */
} pnb_loader_opts;

/* Batch 128, seed 0, shuffled, drop_last, endless, 1 worker, 4 ahead, 512 MiB of cache, no
 * augmentation, no tokenizer, context 64, LEVEL, no templates. */
pnb_loader_opts pnb_loader_opts_default(void);

/* A batch belongs to the loader and is valid until the next call of pnb_loader_next or _free. */
typedef struct pnb_batch {
    uint64_t epoch, index; /* index of the batch within its epoch */
    size_t n;              /* pictures */
    size_t n_texts;        /* n, or 4 n with ALL_LEVELS: text row t belongs to picture t / 4 */
    int width, height, context_length; /* of the arrays below */
    const float *pixels;               /* (n, 3, height, width), normalised */
    const int32_t *tokens;             /* (n_texts, context_length); NULL without a tokenizer */
    const int32_t *levels;             /* (n_texts), -1 unknown */
    const int64_t *samples;            /* (n) index in the data set */
    const int32_t *picks;              /* (n_texts) which of its sample's captions a text is */
    const int32_t *negatives;          /* (n n_negatives, context_length): those of a sample lie
                                        * together; NULL without them or without a tokenizer */
    const char *const *texts;          /* (n_texts) the captions as they were tokenised */
    size_t n_truncated;                /* captions longer than the context */
    size_t n_replaced;                 /* samples that could not be read; see pnb_loader_skipped */
} pnb_batch;

/* The next batch to come: all that is needed to continue. Batches of all ranks are counted, and a
 * position is the beginning of a round: the same on every rank, and right for any number
 * of them. */
typedef struct pnb_loader_position {
    uint64_t epoch, batch;
} pnb_loader_position;

typedef struct pnb_loader pnb_loader;

/* How many classes have a sample: the largest batch with by_class.
 * Errors  ARG (a sample without a class, named), those of pnb_dataset_get, NOMEM */
pnb_status pnb_loader_count_classes(const pnb_dataset *ds, size_t *out, pnb_error *err);

/* Starts the workers, which block all signals. `ds` must outlive the loader. opts NULL: the
 * defaults. Free with pnb_loader_free; on failure *out is NULL.
 * Memory  n_prefetch + 1 batches and the cache
 * Errors  ARG (an option outside its range, a rank beyond n_ranks, a template without a place
 *         for the caption; by_class of samples without a class; pin_workers without workers, with
 *         as many as there are processors, or where threads of the process keep to different ones,
 *         as beside another loader that has it), SHAPE (fewer samples than a batch with drop_last,
 *         fewer classes than a batch has), NOT_FOUND (empty),
 *         LIMIT (2^32 samples), UNSUPPORTED (pin_workers, where threads cannot be kept), NOMEM */
pnb_status pnb_loader_create(pnb_loader **out, const pnb_dataset *ds, const pnb_loader_opts *opts,
                             pnb_error *err);
void pnb_loader_free(pnb_loader *loader); /* stops and joins the workers; NULL is fine */

/* Batches of an epoch, a short one at its end included where drop_last is false. */
size_t pnb_loader_batches_per_epoch(const pnb_loader *loader);

/* Hands out the next batch; *out is NULL with status OK once n_epochs are done. One consumer
 * thread. A sample that cannot be read is replaced by another one drawn from (seed, epoch, place).
 * Order   f(seed, epoch), resampled or not: the same for any number of workers, interrupted or not
 * Errors  those of reading a sample (after 64 replacements that failed too), NOMEM */
pnb_status pnb_loader_next(pnb_loader *loader, const pnb_batch **out, pnb_error *err);

/* Of the batch that pnb_loader_next would hand out; of several ranks that of the round that is not
 * handed out whole. */
pnb_loader_position pnb_loader_get_position(const pnb_loader *loader);
/* Continues as if `position.batch` batches of `position.epoch` had been handed out.
 * Errors  ARG (batch beyond the end of an epoch) */
pnb_status pnb_loader_set_position(pnb_loader *loader, pnb_loader_position position,
                                   pnb_error *err);

/* Samples that could not be read in the batches handed out so far, each once, in order. */
size_t pnb_loader_n_skipped(const pnb_loader *loader);
/* Index of the i-th one and why, -1 past the end; the text lives as long as the loader. `why` may
 * be NULL. */
int64_t pnb_loader_skipped(const pnb_loader *loader, size_t i, const char **why);

#ifdef __cplusplus
}
#endif
#endif
