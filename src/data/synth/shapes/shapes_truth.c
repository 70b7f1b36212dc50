/* Which captions of a `shapes` set are true of which scenes: every caption is decided against every
 * scene by its query, never by its text.
 *
 * Truth is found through lists of the scenes that hold a given (form, colour[, size]): a caption is
 * tried on the shortest list of its objects only, so the time grows with matches and not with
 * captions times scenes. */
#include <string.h>

#include "data/synth/shapes/shapes_set.h"

/* Scenes that hold a shape of one kind: combos without size first, then with size. */
enum { N_PAIRS = PNB__N_FORMS * PNB__N_COLOURS, N_LISTS = N_PAIRS + PNB__N_COMBOS };

typedef struct truth_job {
    pnb__shapes_set *set;
    uint32_t *lists; /* scene indices of all lists, one after the other */
    size_t list_start[N_LISTS + 1];
} truth_job;

/* The lists a shape belongs to. */
static void lists_of(const pnb__shape *shape, size_t lists[2])
{
    size_t pair = (size_t)shape->form * PNB__N_COLOURS + (size_t)shape->colour;
    lists[0] = pair;
    lists[1] = N_PAIRS + pair * PNB__N_SIZES + (size_t)shape->size;
}

static void visit_lists(truth_job *job, size_t *sizes, bool fill)
{
    const pnb__shapes_set *s = job->set;
    for (size_t i = 0; i < s->n; i++) {
        size_t seen[2 * PNB__MAX_SHAPES], n_seen = 0;
        for (int k = 0; k < s->scenes[i].n_shapes; k++) {
            size_t lists[2];
            lists_of(&s->scenes[i].shapes[k], lists);
            for (int j = 0; j < 2; j++) {
                bool is_seen = false;
                for (size_t m = 0; m < n_seen; m++)
                    is_seen |= seen[m] == lists[j];
                if (is_seen)
                    continue;
                seen[n_seen++] = lists[j];
                if (fill)
                    job->lists[job->list_start[lists[j]] + sizes[lists[j]]] = (uint32_t)i;
                sizes[lists[j]]++;
            }
        }
    }
}

static pnb_status build_lists(truth_job *job, pnb_error *err)
{
    size_t sizes[N_LISTS] = {0};
    visit_lists(job, sizes, false);
    for (size_t l = 0; l < N_LISTS; l++)
        job->list_start[l + 1] = job->list_start[l] + sizes[l];
    job->lists = pnb__alloc_array(job->list_start[N_LISTS], sizeof *job->lists);
    if (!job->lists)
        return pnb__fail_nomem(err, job->list_start[N_LISTS] * sizeof *job->lists);
    memset(sizes, 0, sizeof sizes);
    visit_lists(job, sizes, true);
    return PNB_OK;
}

/* The scenes worth trying for a query: the shortest list of an object, or all (NULL). */
static const uint32_t *candidates(const truth_job *job, const pnb__shape_query *q, size_t *n)
{
    const uint32_t *best = NULL;
    *n = job->set->n;
    for (int k = 0; k < q->n_objects; k++) {
        const pnb__object *o = &q->objects[k];
        if (o->form == PNB__ANY || o->colour == PNB__ANY)
            continue;
        size_t l = (size_t)o->form * PNB__N_COLOURS + o->colour;
        if (o->size != PNB__ANY)
            l = N_PAIRS + l * PNB__N_SIZES + o->size;
        size_t length = job->list_start[l + 1] - job->list_start[l];
        if (!best || length < *n) {
            best = job->lists + job->list_start[l];
            *n = length;
        }
    }
    return best;
}

/* Counts the scenes of caption c, and stores them when `out` is given. */
static size_t match_text(const truth_job *job, size_t c, uint32_t *out)
{
    const pnb__shapes_set *s = job->set;
    pnb__shape_query q;
    size_t n_tries, n_matches = 0;
    pnb__query_unpack(s->texts[c], &q);
    const uint32_t *tries = candidates(job, &q, &n_tries);
    for (size_t i = 0; i < n_tries; i++) {
        uint32_t scene = tries ? tries[i] : (uint32_t)i;
        if (!pnb__query_matches(&q, &s->scenes[scene], s->opts))
            continue;
        if (out)
            out[n_matches] = scene;
        n_matches++;
    }
    return n_matches;
}

static void count_range(void *user, size_t begin, size_t end, int thread)
{
    const truth_job *job = user;
    (void)thread;
    for (size_t c = begin; c < end; c++)
        job->set->match_start[c + 1] = match_text(job, c, NULL);
}

static void match_range(void *user, size_t begin, size_t end, int thread)
{
    const truth_job *job = user;
    const pnb__shapes_set *s = job->set;
    (void)thread;
    for (size_t c = begin; c < end; c++)
        match_text(job, c, s->matches + s->match_start[c]);
}

/* Two passes, so that all matches lie in one array: the first counts, the second stores. */
static pnb_status match_all(truth_job *job, pnb_error *err)
{
    pnb__shapes_set *s = job->set;
    s->match_start = pnb__alloc_zero(s->n_texts + 1, sizeof *s->match_start);
    if (!s->match_start)
        return pnb__fail_nomem(err, s->n_texts * sizeof *s->match_start);
    pnb__parallel_for(s->ctx, s->n_texts, 16, count_range, job);
    for (size_t c = 0; c < s->n_texts; c++)
        s->match_start[c + 1] += s->match_start[c];
    s->matches = pnb__alloc_array(s->match_start[s->n_texts], sizeof *s->matches);
    if (!s->matches)
        return pnb__fail_nomem(err, s->match_start[s->n_texts] * sizeof *s->matches);
    pnb__parallel_for(s->ctx, s->n_texts, 16, match_range, job);
    return PNB_OK;
}

pnb_status pnb__shapes_find_truth(pnb__shapes_set *set, pnb_error *err)
{
    truth_job job = {.set = set};
    pnb_status status = build_lists(&job, err);
    if (status == PNB_OK)
        status = match_all(&job, err);
    pnb__free(job.lists);
    return status;
}
