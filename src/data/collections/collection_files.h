/* The files of a collection, found below its root. Internal. */
#ifndef PNB_DATA_COLLECTIONS_COLLECTION_FILES_H
#define PNB_DATA_COLLECTIONS_COLLECTION_FILES_H

#include "base/base.h"

typedef struct pnb__collection_file {
    char *name;    /* below the root, "animals/cat_01.svg" */
    size_t target; /* a link to another file of the list: its place; its own place otherwise */
} pnb__collection_file;

typedef struct pnb__collection_files {
    char *root;                  /* without links */
    pnb__collection_file *items; /* sorted by name */
    size_t n;
} pnb__collection_files;

/* Every regular file and link to one, at most 16 folders deep and 100,000 of them. A link that
 * leads out of the root or nowhere is left out and counted.
 * Errors  NOT_FOUND, LIMIT, IO, NOMEM */
pnb_status pnb__collection_files_find(pnb__collection_files *files, const char *root,
                                      size_t *n_broken, pnb_error *err);
/* The place of a name, SIZE_MAX where there is none. */
size_t pnb__collection_files_place(const pnb__collection_files *files, const char *name);
void pnb__collection_files_free(pnb__collection_files *files);

/* A file within the limit of what is read here (64 MiB). */
pnb_status pnb__collection_read_file(const char *path, char **data, size_t *n, pnb_error *err);

#endif
