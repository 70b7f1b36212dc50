/* Data sets in CLIP_benchmark's layout: ROOT/{train,test}/0.tar, 1.tar, ..., and nshards.txt that
 * says how many. The shards are read in the order of their numbers, as CLIP_benchmark reads them,
 * and a missing one is an error. */
#include "commands/embed/split_roots.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_SHARDS = 1000000 };

static bool is_split(const char *dir)
{
    return pnb__path_is_dir(dir) &&
           (pnb__path_has_file(dir, "nshards.txt") || pnb__path_has_file(dir, "0.tar"));
}

static pnb_status read_count(size_t *n, const char *dir, pnb_error *err)
{
    char *path = pnb__path_join(dir, "nshards.txt"), *text = NULL, *end = NULL;
    size_t size = 0;
    if (path == NULL)
        return pnb__fail_nomem(err, strlen(dir));
    pnb_status status = pnb__read_file(path, 64, &text, &size, err);
    unsigned long long count = status == PNB_OK ? strtoull(text, &end, 10) : 0;
    if (status == PNB_OK &&
        (end == text || end[strspn(end, " \t\r\n")] != '\0' || count < 1 || count > MAX_SHARDS))
        status = pnb__fail(err, PNB_FORMAT, "%s: \"%.20s\" is not a number of shards", path, text);
    *n = (size_t)count;
    pnb__free(text);
    pnb__free(path);
    return status;
}

/* The shards of a split, in order of number; without nshards.txt, or where the folder's name has a
 * meaning in a pattern, the folder itself. */
static pnb_status shards_of(pnb__app *app, char **out, const char *dir)
{
    size_t n = 0;
    if (!pnb__path_has_file(dir, "nshards.txt") || strpbrk(dir, "{}*?[:") != NULL) {
        return pnb__copy_text(out, dir, &app->err);
    }
    pnb_status status = read_count(&n, dir, &app->err);
    if (status != PNB_OK)
        return status;
    *out = n == 1 ? pnb__format("%s/0.tar", dir) : pnb__format("%s/{0..%zu}.tar", dir, n - 1);
    if (*out == NULL)
        return pnb__fail_nomem(&app->err, strlen(dir));
    pnb__say(app, "%s: %zu shard%s", dir, n, n == 1 ? "" : "s");
    return PNB_OK;
}

static pnb_status resolve(pnb__app *app, char **out, const char *word, const char *split)
{
    char *dir = pnb__path_is_dir(word) ? pnb__path_join(word, split) : pnb__strdup(word);
    char *train = pnb__path_join(word, "train"), *test = pnb__path_join(word, "test");
    pnb_status status = PNB_OK;
    *out = NULL;
    if (dir == NULL || train == NULL || test == NULL)
        status = pnb__fail_nomem(&app->err, strlen(word));
    else if (is_split(dir))
        status = shards_of(app, out, dir);
    else if (is_split(word))
        status = shards_of(app, out, word);
    else if (is_split(train) || is_split(test))
        status = pnb__fail(&app->err, PNB_NOT_FOUND, "%s: has no split \"%s\"; it has %s (--split)",
                           word, split, is_split(train) ? "train" : "test");
    else if ((*out = pnb__strdup(word)) == NULL)
        status = pnb__fail_nomem(&app->err, strlen(word));
    pnb__free(dir);
    pnb__free(train);
    pnb__free(test);
    return status;
}

pnb_status pnb__roots_resolve(pnb__app *app, pnb__text_list *out, const pnb__text_list *words,
                              const char *split)
{
    pnb_status status = PNB_OK;
    *out = (pnb__text_list){0};
    if (PNB_ALLOC_ZERO(out->items, PNB_MAX(words->n, (size_t)1), &app->err) != PNB_OK)
        return PNB_NOMEM;
    for (; out->n < words->n && status == PNB_OK; out->n++) {
        char *word = NULL;
        status = resolve(app, &word, words->items[out->n], split);
        out->items[out->n] = word;
    }
    if (status != PNB_OK)
        pnb__roots_free(out);
    return status;
}

void pnb__roots_free(pnb__text_list *words)
{
    for (size_t i = 0; i < words->n; i++)
        pnb__free((void *)(uintptr_t)words->items[i]);
    pnb__free(words->items);
    *words = (pnb__text_list){0};
}
