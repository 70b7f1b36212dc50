/* Single rows of a Parquet column. Pictures lie some tens or a thousand to a page, and whoever
 * reads them in order would unpack each page as often: pages stay until others need their room.
 *
 * A page in use is counted and never goes. Threads that miss the same page at once each unpack it,
 * and all but the first use theirs alone: nobody waits for a page that somebody else unpacks. */
#include "io/tables/parquet/parquet_rows.h"

#include <pthread.h>

enum { N_KEPT = 8 };

typedef struct kept_page {
    const pnb__parquet_place *place; /* NULL: free */
    pnb__parquet_page page;
    size_t n_users, last_use;
} kept_page;

struct pnb__parquet_kept {
    pthread_mutex_t lock;
    kept_page pages[N_KEPT];
    size_t most_bytes, n_bytes, n_uses, n_opened;
};

pnb_status pnb__parquet_kept_create(pnb__parquet_kept **out, size_t most_bytes, pnb_error *err)
{
    pnb__parquet_kept *k = NULL;
    if (PNB_ALLOC_ZERO(k, 1, err) != PNB_OK)
        return PNB_NOMEM;
    k->most_bytes = most_bytes;
    pthread_mutex_init(&k->lock, NULL);
    *out = k;
    return PNB_OK;
}

void pnb__parquet_kept_free(pnb__parquet_kept *k)
{
    if (k == NULL)
        return;
    for (size_t i = 0; i < N_KEPT; i++)
        pnb__parquet_page_close(&k->pages[i].page);
    pthread_mutex_destroy(&k->lock);
    pnb__free(k);
}

size_t pnb__parquet_kept_opened(pnb__parquet_kept *k)
{
    pthread_mutex_lock(&k->lock);
    size_t n = k->n_opened;
    pthread_mutex_unlock(&k->lock);
    return n;
}

/* ---- under the lock ---- */

static kept_page *find_page(pnb__parquet_kept *k, const pnb__parquet_place *place)
{
    for (size_t i = 0; i < N_KEPT; i++)
        if (k->pages[i].place == place)
            return &k->pages[i];
    return NULL;
}

/* Of those that nobody uses, the one that was used longest ago. */
static kept_page *oldest_page(pnb__parquet_kept *k)
{
    kept_page *oldest = NULL;
    for (size_t i = 0; i < N_KEPT; i++) {
        kept_page *p = &k->pages[i];
        if (p->place != NULL && p->n_users == 0 &&
            (oldest == NULL || p->last_use < oldest->last_use))
            oldest = p;
    }
    return oldest;
}

/* NULL: all pages are in use, or too large beside this one. */
static kept_page *make_place(pnb__parquet_kept *k, size_t n_bytes)
{
    kept_page *free_page = find_page(k, NULL), *oldest;
    while ((free_page == NULL || (k->n_bytes > 0 && k->n_bytes + n_bytes > k->most_bytes)) &&
           (oldest = oldest_page(k)) != NULL) {
        k->n_bytes -= oldest->page.n_own;
        pnb__parquet_page_close(&oldest->page);
        *oldest = (kept_page){0};
        free_page = oldest;
    }
    return k->n_bytes == 0 || k->n_bytes + n_bytes <= k->most_bytes ? free_page : NULL;
}

static kept_page *use(pnb__parquet_kept *k, kept_page *p)
{
    p->n_users++;
    p->last_use = ++k->n_uses;
    return p;
}

/* ---- the page of a row ---- */

static kept_page *take_kept(pnb__parquet_kept *k, const pnb__parquet_place *place)
{
    pthread_mutex_lock(&k->lock);
    kept_page *p = find_page(k, place);
    if (p != NULL)
        (void)use(k, p);
    k->n_opened += p == NULL;
    pthread_mutex_unlock(&k->lock);
    return p;
}

/* Keeps a page where there is room, which is *page's owner then. */
static kept_page *keep(pnb__parquet_kept *k, const pnb__parquet_place *place,
                       pnb__parquet_page *page)
{
    pthread_mutex_lock(&k->lock);
    kept_page *p = find_page(k, place) == NULL ? make_place(k, page->n_own) : NULL;
    if (p != NULL) {
        *p = (kept_page){.place = place, .page = *page};
        k->n_bytes += page->n_own;
        *page = (pnb__parquet_page){0};
        (void)use(k, p);
    }
    pthread_mutex_unlock(&k->lock);
    return p;
}

static void put_back(pnb__parquet_kept *k, kept_page *p)
{
    pthread_mutex_lock(&k->lock);
    p->n_users--;
    pthread_mutex_unlock(&k->lock);
}

/* ---- rows ---- */

pnb_status pnb__parquet_rows_open(pnb__parquet_rows *out, const pnb__parquet *p, size_t leaf,
                                  pnb__parquet_kept *kept, pnb_error *err)
{
    *out = (pnb__parquet_rows){.table = p, .leaf = leaf, .kept = kept};
    return pnb__parquet_places(p, leaf, &out->places, &out->n_places, err);
}

void pnb__parquet_rows_close(pnb__parquet_rows *r)
{
    pnb__free(r->places);
    *r = (pnb__parquet_rows){0};
}

static const pnb__parquet_place *find_place(const pnb__parquet_rows *r, size_t row)
{
    size_t low = 0, high = r->n_places;
    if (high == 0 || row < r->places[0].first_row)
        return NULL;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (r->places[middle].first_row <= row)
            low = middle;
        else
            high = middle;
    }
    return row - r->places[low].first_row < r->places[low].n_rows ? &r->places[low] : NULL;
}

pnb_status pnb__parquet_row(const pnb__parquet_rows *r, size_t row, pnb__buf *out, bool *found,
                            pnb_error *err)
{
    const pnb__parquet_place *place = find_place(r, row);
    pnb__parquet_page own = {0};
    *found = false;
    if (place == NULL)
        return PNB_OK;
    kept_page *kept = take_kept(r->kept, place);
    if (kept == NULL) {
        pnb_status status = pnb__parquet_page_open(&own, r->table, r->leaf, place, err);
        if (status != PNB_OK)
            return status;
        kept = keep(r->kept, place, &own);
    }
    const pnb__parquet_page *page = kept != NULL ? &kept->page : &own;
    const pnb__parquet_cell cell = page->cell[row - place->first_row];
    *found = cell.bytes != NULL;
    if (*found)
        pnb__buf_append(out, cell.bytes, cell.n);
    if (kept != NULL)
        put_back(r->kept, kept);
    pnb__parquet_page_close(&own);
    return pnb__buf_check(out, err);
}
