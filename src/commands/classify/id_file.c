/* Lines of id, tab, text about the rows of a set: classes, groups.
 *
 * Rows are found in a sorted list of their names. What would lose a line is refused: an id that no
 * row has or several have, and a second line of one. */
#include "commands/classify/id_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/order.h"

enum { MOST_BYTES = 1 << 30 };

const char *pnb__row_name(const pnb_embeddings *set, size_t row)
{
    return set->ids != NULL && set->ids[row] != NULL ? set->ids[row] : "?";
}

typedef struct id_file {
    const char *path, *what;
    const pnb__named *ids; /* sorted */
    size_t n;
    char **value;
} id_file;

/* The name alone: pnb__by_name also looks at the place. */
static int compare_names(const void *a, const void *b)
{
    return strcmp(((const pnb__named *)a)->name, ((const pnb__named *)b)->name);
}

static pnb_status take_line(const id_file *f, char *line, size_t number, pnb_error *err)
{
    char *tab = strchr(line, '\t');
    if (tab == NULL || tab[1] == '\0')
        return pnb__fail(err, PNB_FORMAT, "%s: line %zu is not id, tab, %s", f->path, number,
                         f->what);
    *tab = '\0';
    const pnb__named key = {line, 0};
    const pnb__named *found = bsearch(&key, f->ids, f->n, sizeof key, compare_names);
    if (found == NULL)
        return pnb__fail(err, PNB_NOT_FOUND, "%s: line %zu: no picture has the id \"%s\"", f->path,
                         number, line);
    if ((found > f->ids && strcmp(found[-1].name, line) == 0) ||
        (found + 1 < f->ids + f->n && strcmp(found[1].name, line) == 0))
        return pnb__fail(err, PNB_ARG, "%s: line %zu: several pictures have the id \"%s\"", f->path,
                         number, line);
    if (f->value[found->place] != NULL)
        return pnb__fail(err, PNB_ARG, "%s: line %zu: \"%s\" has a %s already", f->path, number,
                         line, f->what);
    return pnb__copy_text(&f->value[found->place], tab + 1, err);
}

pnb_status pnb__id_file_read(const pnb_embeddings *set, const char *path, const char *what,
                             char **value, pnb_error *err)
{
    char *text = NULL;
    size_t size = 0;
    pnb__named *ids = NULL;
    pnb_status status = PNB_OK;
    PNB_TRY(PNB_ALLOC(ids, set->n, err));
    for (size_t i = 0; i < set->n; i++)
        ids[i] = (pnb__named){pnb__row_name(set, i), i};
    qsort(ids, set->n, sizeof *ids, pnb__by_name);
    PNB_TRY(pnb__read_file(path, MOST_BYTES, &text, &size, err));
    const id_file file = {path, what, ids, set->n, value};
    pnb__line_reader lines = {.at = text, .end = text + size, .path = path};
    for (char *line;;) {
        PNB_TRY(pnb__line_next(&lines, &line, err));
        if (line == NULL)
            break;
        if (line[0] != '\0' && line[0] != '#')
            PNB_TRY(take_line(&file, line, lines.number, err));
    }
done:
    pnb__free(text);
    pnb__free(ids);
    return status;
}
