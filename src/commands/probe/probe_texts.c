/* Captions of a probe: uncertainty by level and by length, and what happens as words go.
 *
 * Levels and lengths look at all captions, the curve at an even choice of them. A word that goes
 * leaves nothing or the unknown word: PCME erases its captions so (Figure 7), and the all-unknown
 * caption is what its Figure 5 calls the most generic. */
#include "commands/probe/probe_internal.h"

#include <string.h>

#include "base/base.h"
#include "report/figure_interval.h"

/* ---- levels and lengths ---- */

static pnb_status halves_of_levels(const double *u, const int *level, size_t n, size_t n_levels,
                                   double *half, pnb_error *err)
{
    double *own = pnb__alloc_array(n, sizeof *own);
    if (own == NULL)
        return pnb__fail_nomem(err, n * sizeof *own);
    for (size_t l = 0; l < n_levels; l++) {
        size_t n_own = 0;
        for (size_t i = 0; i < n; i++)
            if (level[i] == (int)l)
                own[n_own++] = u[i];
        half[l] = pnb__mean_half_width(own, n_own);
    }
    pnb__free(own);
    return PNB_OK;
}

static pnb_status halves_of_bins(const double *u, const size_t *length, size_t n,
                                 const pnb_length_bin *bins, size_t n_bins, double *half,
                                 pnb_error *err)
{
    double *own = pnb__alloc_array(n, sizeof *own);
    if (own == NULL)
        return pnb__fail_nomem(err, n * sizeof *own);
    for (size_t b = 0; b < n_bins; b++) {
        size_t n_own = 0;
        for (size_t i = 0; i < n; i++)
            if (length[i] >= bins[b].low && length[i] <= bins[b].high)
                own[n_own++] = u[i];
        half[b] = pnb__mean_half_width(own, n_own);
    }
    pnb__free(own);
    return PNB_OK;
}

static pnb_status probe_levels(pnb__probing *run, const double *u)
{
    pnb__probe *out = run->out;
    size_t n = run->texts.n;
    int *level = NULL, last = -1;
    pnb_status status = PNB_OK;
    PNB_TRY(PNB_ALLOC(level, n, &run->app->err));
    for (size_t i = 0; i < n; i++) {
        level[i] = run->texts.items[i].level;
        level[i] = level[i] < PNB__PROBE_LEVELS ? level[i] : -1;
        last = PNB_MAX(last, level[i]);
    }
    out->n_levels = last >= 0 ? (size_t)last + 1 : 0;
    if (last >= 0)
        PNB_TRY(pnb_mean_by_group(u, level, n, out->n_levels, out->level_mean, out->level_n,
                                  &run->app->err));
    PNB_TRY(halves_of_levels(u, level, n, out->n_levels, out->level_half, &run->app->err));
    if (last > 0 && out->level_n[0] > 0)
        status =
            pnb_share_group_above(u, level, n, 0, last, &out->first_above_last, &run->app->err);
done:
    pnb__free(level);
    return status;
}

static pnb_status count_lengths(const pnb__probing *run, size_t *words, size_t *tokens)
{
    int context = (int)run->encoder.info->text.context_length;
    int32_t *ids = NULL;
    pnb_status status = PNB_OK;
    PNB_TRY(PNB_ALLOC(ids, (size_t)context, &run->app->err));
    for (size_t i = 0; i < run->texts.n; i++) {
        const char *text = run->texts.items[i].text;
        pnb__word_list list;
        pnb_token_count count = {0};
        PNB_TRY(pnb__word_list_split(text, &list, &run->app->err));
        words[i] = list.n;
        pnb__word_list_reset(&list);
        PNB_TRY(pnb_tokenizer_encode(run->encoder.tokenizer, text, strlen(text), context, ids,
                                     &count, &run->app->err));
        tokens[i] = (size_t)count.n_total;
    }
done:
    pnb__free(ids);
    return status;
}

static pnb_status probe_lengths(pnb__probing *run, const double *u)
{
    pnb__probe *out = run->out;
    pnb_error *err = &run->app->err;
    size_t n = run->texts.n, n_bins = run->cmd->n_bins;
    size_t *words = NULL;
    size_t *tokens = NULL;
    pnb_status status = PNB_OK;
    PNB_TRY(PNB_ALLOC(words, n, err));
    PNB_TRY(PNB_ALLOC(tokens, n, err));
    PNB_TRY(count_lengths(run, words, tokens));
    PNB_TRY(pnb_length_bins(u, words, n, out->words, n_bins, &out->n_words, &out->words_rho, err));
    PNB_TRY(
        pnb_length_bins(u, tokens, n, out->tokens, n_bins, &out->n_tokens, &out->tokens_rho, err));
    PNB_TRY(halves_of_bins(u, words, n, out->words, out->n_words, out->words_half, err));
    PNB_TRY(halves_of_bins(u, tokens, n, out->tokens, out->n_tokens, out->tokens_half, err));
done:
    pnb__free(words);
    pnb__free(tokens);
    return status;
}

/* ---- dropped words ---- */

/* Whether the word is read as the unknown one and as nothing else. */
static pnb_status is_unknown(const pnb_tokenizer *tokenizer, const char *word, bool *out,
                             pnb_error *err)
{
    int32_t *ids = NULL;
    size_t n = 0;
    pnb_status status =
        pnb_tokenizer_encode_all(tokenizer, word, strlen(word), false, &ids, &n, err);
    *out = status == PNB_OK && n == 1 && ids[0] == pnb_tokenizer_unk_id(tokenizer);
    pnb_tokenizer_ids_free(ids);
    return status;
}

/* A list of words cuts "<unk>" at its brackets, as the reference does, and knows three unknown
 * words then: other brackets hold together. */
static pnb_status find_unknown(pnb__probing *run)
{
    const pnb_tokenizer *tokenizer = run->encoder.tokenizer;
    int id = pnb_tokenizer_unk_id(tokenizer);
    const char *const words[] = {id >= 0 ? pnb_tokenizer_piece(tokenizer, id) : NULL,
                                 "\xE2\x9F\xA8unk\xE2\x9F\xA9"};
    for (size_t i = 0; id >= 0 && i < PNB_COUNT(words) && run->unknown == NULL; i++) {
        bool fits = false;
        pnb_status status =
            words[i] != NULL ? is_unknown(tokenizer, words[i], &fits, &run->app->err) : PNB_OK;
        if (status != PNB_OK)
            return status;
        run->unknown = fits ? words[i] : NULL;
    }
    if (run->unknown != NULL)
        return PNB_OK;
    return pnb__fail(&run->app->err, PNB_UNSUPPORTED,
                     "the tokenizer of %s has no unknown word to put in the place of others; "
                     "--words drop takes them out",
                     run->encoder.name);
}

/* PCME's captions are read word by word and were trained with unknown ones. */
static pnb_status choose_erasure(pnb__probing *run)
{
    bool has_words = strcmp(run->encoder.info->family, "pcme") == 0;
    pnb__word_erasure usual = has_words ? PNB__WORDS_UNK : PNB__WORDS_DROP;
    run->out->erasure = run->cmd->words == PNB__WORDS_USUAL ? usual : run->cmd->words;
    return run->out->erasure == PNB__WORDS_UNK ? find_unknown(run) : PNB_OK;
}

/* Captions of the curve, evenly spaced, with `share` of their words gone (negative: as they are).
 */
static pnb_status embed_dropped(pnb__probing *run, double share, pnb_embeddings **out)
{
    size_t total = run->texts.n, n = PNB_MIN(total, run->cmd->limit);
    uint64_t seed = (uint64_t)run->app->common.seed;
    pnb__text_inputs dropped = {0};
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < n; i++) {
        size_t source = (size_t)((double)i * (double)total / (double)n);
        const char *text = run->texts.items[source].text;
        char *left = share < 0.0 ? pnb__strdup(text)
                                 : pnb__word_list_drop(text, share, run->unknown, seed, source);
        if (left == NULL)
            PNB_TRY(pnb__fail_nomem(&run->app->err, strlen(text)));
        status = pnb__text_inputs_add_text(&dropped, left, &run->app->err);
        pnb__free(left);
        if (status != PNB_OK)
            goto done;
    }
    if (pnb__is_interrupted(run->app))
        PNB_TRY(pnb__fail(&run->app->err, PNB_INTERRUPTED, "stopped on request"));
    status = pnb__embed_texts(run->app, &run->encoder, &dropped, out);
done:
    pnb__text_inputs_reset(&dropped);
    return status;
}

static pnb_status keep_texts(pnb__probing *run, const pnb_embeddings *original,
                             const pnb_embeddings *changed, const pnb_gaussians *from,
                             const pnb_gaussians *to)
{
    pnb__probe_example *const examples[] = {&run->out->most, &run->out->least};
    size_t row[2];
    pnb_status status = pnb__probe_find_examples(run, from, to, row);
    for (size_t k = 0; status == PNB_OK && k < 2; k++) {
        examples[k]->text = pnb__strdup(original->texts[row[k]]);
        examples[k]->changed_text = pnb__strdup(changed->texts[row[k]]);
        if (examples[k]->text == NULL || examples[k]->changed_text == NULL)
            status = pnb__fail_nomem(&run->app->err, 256);
    }
    return status;
}

static pnb_status make_dropped(pnb__probing *run, double share, pnb__probe_rows *out)
{
    *out = (pnb__probe_rows){0};
    pnb_status status = embed_dropped(run, share, &out->set);
    return status == PNB_OK ? pnb_view_init(&out->view, out->set, &run->app->err) : status;
}

static pnb_status probe_dropped(pnb__probing *run)
{
    pnb__probe_curve *curve = &run->out->texts;
    pnb__probe_rates *rates = &run->out->rates;
    size_t n = run->cmd->n_shares;
    pnb__probe_rows original = {0}, changed = {0};
    const pnb_gaussians *from = &original.view.rows, *to = &changed.view.rows;
    pnb_status status;
    PNB_TRY(make_dropped(run, -1.0, &original));
    curve->n = from->n;
    for (size_t s = 0; s <= n; s++) {
        PNB_TRY(make_dropped(run, s < n ? run->cmd->share[s] : 0.5, &changed));
        if (s < n)
            PNB_TRY(pnb__probe_add_point(run, from, to, s, curve));
        else
            PNB_TRY(pnb__probe_compare(run, &original, &changed, &rates->by_half));
        if (s == n && run->cmd->html != NULL && run->cmd->images.n == 0)
            PNB_TRY(keep_texts(run, original.set, changed.set, from, to));
        pnb__probe_rows_reset(&changed);
    }
    if (rates->by_half.n > 0)
        rates->half = rates->by_half.by_h;
done:
    pnb__probe_rows_reset(&original);
    pnb__probe_rows_reset(&changed);
    return status;
}

pnb_status pnb__probe_texts(pnb__probing *run)
{
    pnb_embeddings *set = NULL;
    pnb_view view = {0};
    double *u = NULL;
    pnb_status status;
    PNB_TRY(choose_erasure(run));
    PNB_TRY(pnb__embed_texts(run->app, &run->encoder, &run->texts, &set));
    PNB_TRY(pnb_view_init(&view, set, &run->app->err));
    PNB_TRY(pnb__probe_traces(&view.rows, &u, &run->app->err));
    PNB_TRY(probe_levels(run, u));
    PNB_TRY(probe_lengths(run, u));
    status = probe_dropped(run);
done:
    pnb__free(u);
    pnb_view_reset(&view);
    pnb_embeddings_free(set);
    return status;
}
