/* Truth files of the field: which pictures and captions of two embedding sets belong together.
 *
 * A file speaks of pictures and captions by file names, COCO ids, sentence ids, or in an order; the
 * rows of a set have ids, paths, texts and further fields. This header joins the two. What each
 * format looks like and how names are matched: docs/formats.md#truth. A truth is read only once it
 * is made: any number of threads may use one. Files are checked as if a stranger had written them,
 * and errors name line or entry.
 *
 *     pnb_truth_rows images = pnb_truth_rows_of(&image_set), texts = pnb_truth_rows_of(&text_set);
 *     if (pnb_truth_read(&truth, "dataset_coco.json", &images, &texts, NULL, NULL, &err) == PNB_OK)
 *         ... rank by it (retrieval.h)
 *     pnb_truth_free(truth); */
#ifndef PENUMBRA_TRUTH_H
#define PENUMBRA_TRUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "penumbra/ctx.h"
#include "penumbra/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pnb_embeddings;

/* ---- which items match which query ---- */

/* Many to many, in compressed rows: the positives of query q are item[offset[q]] ..
 * item[offset[q+1]-1]; a query may have none. */
typedef struct pnb_truth {
    size_t n_queries, n_items; /* rows of the two sides */
    size_t *offset;            /* [n_queries + 1] into item */
    size_t *item;              /* positives of each query, ascending, each once */
    size_t n_pairs;            /* offset[n_queries] */
    size_t n_duplicates;       /* pairs that were given more than once and were collapsed */
    /* Positives that a list names but the other side lacks, by query and by item: nobody can find
     * them, but R counts them, as ECCV Caption's code does. NULL: none. Owned */
    size_t *n_outside, *n_outside_items;
} pnb_truth;

/* Query i matches item i and nothing else, as in a file of pairs encoded in order. Free each truth
 * with pnb_truth_free; on failure *out is NULL, here and below.
 * Errors  ARG (n = 0), NOMEM */
pnb_status pnb_truth_create_aligned(pnb_truth **out, size_t n, pnb_error *err);
/* From index pairs [n_pairs][2] = (query, item), in any order; a pair that stands twice counts
 * once.
 * Errors  ARG (no pairs, index out of range: the text names the pair), NOMEM */
pnb_status pnb_truth_create_pairs(pnb_truth **out, size_t n_queries, size_t n_items,
                                  const int64_t *pairs, size_t n_pairs, pnb_error *err);
/* Rows with equal labels match, as pictures and captions of one class. Memory O(pairs): a class of
 * n queries and m items is n m of them.
 * Errors  ARG (no query has a match), NOMEM */
pnb_status pnb_truth_create_labels(pnb_truth **out, const int64_t *query_label, size_t n_queries,
                                   const int64_t *item_label, size_t n_items, pnb_error *err);

/* Names of the two sides for pnb_truth_load; ids may be NULL (then the file holds indices). */
typedef struct pnb_truth_names {
    const char *const *query_ids; /* [n_queries], or NULL */
    size_t n_queries;             /* rows of the asking side */
    const char *const *item_ids;  /* [n_items], or NULL */
    size_t n_items;               /* rows of the side that is searched */
} pnb_truth_names;

/* Reads a pairs file: one pair a line, query and item separated by a tab, empty lines and lines
 * starting with '#' skipped; a third column is refused. The columns are ids when the first pair
 * consists of known ids, otherwise row numbers from 0; one file does not mix the two.
 * Errors  IO, NOT_FOUND (an unknown id: names line and id), FORMAT (a line without tab, a mixed
 *         file), ARG (no pairs, duplicate ids in a set, index out of range), NOMEM */
pnb_status pnb_truth_load(pnb_truth **out, const char *path, const pnb_truth_names *names,
                          pnb_error *err);
/* The same pairs with queries and items exchanged: captions ask for pictures.
 * Errors  ARG (no pairs), NOMEM */
pnb_status pnb_truth_transpose(pnb_truth **out, const pnb_truth *truth, pnb_error *err);
/* Labels of what the pairs connect, into query_cluster[n_queries] and item_cluster[n_items]: rows
 * of one label reach each other over pairs, as a picture and its captions, or all of a class.
 * Labels count from 0, a row without a pair has one of its own. *n_clusters: labels with a pair.
 * Errors  NOMEM */
pnb_status pnb_truth_clusters(const pnb_truth *truth, int64_t *query_cluster, int64_t *item_cluster,
                              size_t *n_clusters, pnb_error *err);
void pnb_truth_free(pnb_truth *truth); /* NULL is fine */

/* ---- files of the field ---- */

/* X(name, text, sentence): what can be read. AUTO goes by the name of the file and, for JSON and
 * folders, by what is in it; a plain text file is taken for PAIRS. */
#define PNB_TRUTH_FORMAT_LIST(X)                                                                   \
    X(AUTO, "auto", "told from the file")                                                          \
    X(PAIRS, "pairs", "picture, tab, caption on each line, ids or row numbers")                    \
    X(LABELS, "labels", "id, tab, class on each line; rows of one class match")                    \
    X(COCO, "coco", "COCO captions_*.json")                                                        \
    X(KARPATHY, "karpathy", "dataset_*.json of Karpathy's splits (COCO, Flickr30k, Flickr8k)")     \
    X(TOKENS, "tokens", "Flickr30k and Flickr8k .token: picture#number, tab, caption")             \
    X(PRECOMP, "precomp", "VSE++ and PCME++ X_ids.txt with X_caps.txt")                            \
    X(FOLDERS, "folders", "CUB and Flowers: a folder of text files for each class")                \
    X(ID_LISTS, "id_lists", "ECCV Caption and CxC: {\"id\": [ids]}")                               \
    X(HIERARCAPS, "hierarcaps", "HierarCaps csv, levels joined with =>")                           \
    X(DATASET, "dataset", "CLIP_benchmark tars, or another data set of pictures with captions")

typedef enum pnb_truth_format {
#define PNB_TRUTH_ENUM(name, text, sentence) PNB_TRUTH_##name,
    PNB_TRUTH_FORMAT_LIST(PNB_TRUTH_ENUM)
#undef PNB_TRUTH_ENUM
        PNB_N_TRUTH_FORMATS /* how many there are */
} pnb_truth_format;

const char *pnb_truth_format_name(pnb_truth_format format); /* "unknown" outside the list */

/* The rows of one side, by all that they are called; [n] each. Arrays and entries may be NULL: a
 * row is found by its id, by the file it was made of or, a caption, by its text. */
typedef struct pnb_truth_rows {
    size_t n;
    const char *const *ids, *const *paths, *const *texts;
    const char *const *extras; /* JSON objects with further fields, such as "cocoid" */
} pnb_truth_rows;
/* Borrows the names of a set, which must outlive them. */
pnb_truth_rows pnb_truth_rows_of(const struct pnb_embeddings *set);

typedef struct pnb_truth_read_opts {
    pnb_truth_format format; /* AUTO */
    const char *split; /* karpathy: "test", "val", "train", "restval", "all"; NULL is "test" where
                        * the file has it, else all. folders: a file of class names, or its stem
                        * ("test" for testclasses.txt); NULL: all classes. Others: must be NULL */
    bool by_class;     /* folders: a caption matches every picture of its class, not only its own */
    bool texts_ask;    /* id_lists: the keys are captions, as they are without this in a file whose
                        * name holds text_to_image */
} pnb_truth_read_opts;
pnb_truth_read_opts pnb_truth_read_opts_default(void); /* auto, no split */

/* How the file and the sets fitted: whether it was the truth of these very rows. */
typedef struct pnb_truth_report {
    pnb_truth_format format;                /* the one it was read as; AUTO no more */
    size_t n_images, n_texts;               /* pictures and captions the file speaks of */
    size_t n_absent_images, n_absent_texts; /* of those, in no row */
    bool images_by_order, texts_by_order;   /* rows without names were taken in the file's order */
    uint8_t *image_named, *text_named;      /* [rows] 1: the file speaks of the row */
    int *text_level;                        /* [rows] level of a caption, -1 unknown */
    int64_t *image_row; /* [n_images] row of each picture in the file's order, -1: in none. NULL
                         * where the format has no pictures of its own (pairs, labels) */
    bool has_coco_ids;  /* karpathy: its pictures are COCO's */
} pnb_truth_report;
void pnb_truth_report_reset(pnb_truth_report *report); /* frees; NULL is fine */

/* Truth with pictures as queries and captions as items. opts NULL: the defaults. `report` may be
 * NULL; it need not be initialised, is all zero on failure and freed with pnb_truth_report_reset.
 * What the file names but no row has is counted, not refused: annotation files cover more than what
 * is evaluated. In `pairs` and `labels`, written for the very sets, it is an error. Absent items of
 * id lists stay in the R of the row that asks for them (pnb_truth.n_outside).
 * Errors  IO, NOT_FOUND (file; in pairs and labels an unknown id), FORMAT, LIMIT,
 *         ARG (no pair is left; a name that fits two rows; a split that does not exist, or of a
 *         format that has none), NOMEM */
pnb_status pnb_truth_read(pnb_truth **out, const char *path, const pnb_truth_rows *images,
                          const pnb_truth_rows *texts, const pnb_truth_read_opts *opts,
                          pnb_truth_report *report, pnb_error *err);

/* ---- label vectors, for plausible matches (pnb_pmrp_compute) ---- */
typedef struct pnb_label_matrix {
    size_t n;        /* pictures */
    size_t n_labels; /* places of a vector, at most 65,536 */
    uint8_t *label;  /* [n][n_labels], 0 or 1 */
} pnb_label_matrix;
void pnb_label_matrix_reset(pnb_label_matrix *labels); /* frees; NULL is fine */

/* A vector for every picture row, from one of
 *   COCO instances_*.json   a place for each category, 1 where the picture has an annotation of it
 *   x.npy                   (rows, labels) of 0 and 1 in any number type, in row order
 *   x.csv, x.tsv            id, then a column of 0 or 1 for each label; a header row
 * Pictures of the file that are in no row are passed over. Free with pnb_label_matrix_reset.
 * Errors  IO, NOT_FOUND (the file, labels of a row), FORMAT (a label that is not 0 or 1, an id that
 *         stands twice, no labels at all), SHAPE (an npy with other rows), LIMIT, NOMEM
 * Source  PCME section 4.1.1: categories of COCO's instances */
pnb_status pnb_label_matrix_load(pnb_label_matrix *out, const char *path,
                                 const pnb_truth_rows *images, pnb_error *err);

/* ---- what several people called a picture ---- */

/* Entropy of the answers in bits, -sum p log2 p with p = counts / their sum, NaN where the file
 * does not name the picture. The file has counts or probabilities, a place for each label: x.npy
 * (rows, labels) in any number type, in row order x.csv, x.tsv  id, then a column for each label; a
 * header row Shape   bits (images->n), the caller's Errors  IO, NOT_FOUND (the file; it names no
 * row), FORMAT (a value below 0, a row of zeros, an id that stands twice, fewer than 2 labels),
 * SHAPE (an npy with other rows), LIMIT, NOMEM Source  the form of CIFAR-10H, Peterson et al. 2019
 */
pnb_status pnb_label_entropy_load(double *bits, const char *path, const pnb_truth_rows *images,
                                  pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
