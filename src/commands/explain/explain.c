/* Leave-one-out attribution of uncertainty.
 *
 * removed(i) = trace(without i) - trace(with all): how much uncertainty a word or patch takes away.
 * No gradient and no sampling, so the same input gives the same numbers. Words are encoded in one
 * batched call; a patch that is dropped needs a plan of its own list of patches, one after another,
 * a patch that is filled goes through batches. H says whether the whole lies in what is left. */
#include "commands/explain/explain.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "commands/common/encode_use.h"
#include "encode/encoder.h"
#include "models/model.h"
#include "penumbra/adapt.h"
#include "penumbra/hierarchy.h"
#include "penumbra/search.h"
#include "penumbra/view.h"
#include "sets/settle.h"

void pnb__explained_reset(pnb__explained *e)
{
    for (size_t i = 0; e->word != NULL && i < e->n; i++)
        pnb__free(e->word[i]);
    pnb__free(e->word);
    pnb__free(e->what);
    pnb__free(e->without);
    pnb__free(e->removed);
    pnb__free(e->h);
    pnb__free(e->kl);
    pnb_image_free(&e->image);
    *e = (pnb__explained){0};
}

static pnb_status alloc_parts(pnb__explained *e, size_t n, pnb_error *err)
{
    e->n = n;
    if (PNB_ALLOC(e->without, n, err) != PNB_OK || PNB_ALLOC(e->removed, n, err) != PNB_OK ||
        PNB_ALLOC(e->h, n, err) != PNB_OK || PNB_ALLOC(e->kl, n, err) != PNB_OK)
        return PNB_NOMEM;
    return PNB_OK;
}

/* The whole in what is left, pair by pair: by H and by the difference of divergences. */
static pnb_status compare_inclusion(const pnb_embeddings *set, const pnb_rows *rows,
                                    pnb__explained *e, pnb_error *err)
{
    const pnb_rows left = pnb_rows_slice(rows, 1, e->n);
    pnb_embeddings *whole = NULL;
    pnb_view view = {0};
    pnb_inclusion_contest all;
    size_t *row = NULL;
    pnb_status status = PNB_OK;
    PNB_TRY(PNB_ALLOC_ZERO(row, e->n, err)); /* row 0, again and again */
    PNB_TRY(pnb_embeddings_select(&whole, set, row, e->n, err));
    PNB_TRY(pnb_view_init(&view, whole, err));
    status = pnb_inclusion_against_kl(&view.rows, &left, NULL, false, e->h, e->kl, &all, err);
done:
    pnb_view_reset(&view);
    pnb_embeddings_free(whole);
    pnb__free(row);
    return status;
}

/* Row 0 of the set is the whole, row 1 + i what is left without part i. */
static pnb_status compare_rows(const pnb_embeddings *set, pnb__explained *e, pnb_error *err)
{
    pnb_view view = {0};
    double *u = NULL;
    pnb_status status;
    e->kind = pnb__own_uncertainty(set);
    PNB_TRY(pnb_view_init(&view, set, err));
    PNB_TRY(pnb__row_uncertainty(set, PNB__UNCERTAINTY_AUTO, &u, err));
    e->trace = u[0];
    for (size_t i = 0; i < e->n; i++) {
        e->without[i] = u[1 + i];
        e->removed[i] = u[1 + i] - u[0];
        e->h[i] = e->kl[i] = NAN;
    }
    if (view.rows.log_var != NULL)
        status = compare_inclusion(set, &view.rows, e, err);
done:
    pnb_view_reset(&view);
    pnb__free(u);
    return status;
}

/* ---- captions ---- */

static pnb_status add_text(pnb__text_inputs *texts, char *text, pnb_error *err)
{
    if (text == NULL)
        return pnb__fail_nomem(err, 64);
    pnb_status status = pnb__text_inputs_add_text(texts, text, err);
    pnb__free(text);
    return status;
}

/* The whole caption as it was typed, then one copy without each word. */
static pnb_status leave_words_out(const char *text, const pnb__word_list *words,
                                  pnb__text_inputs *out, pnb_error *err)
{
    bool *keep = NULL;
    pnb_status status = PNB_OK;
    PNB_TRY(PNB_ALLOC(keep, words->n, err));
    for (size_t i = 0; i < words->n; i++)
        keep[i] = true;
    PNB_TRY(pnb__text_inputs_add_text(out, text, err));
    for (size_t i = 0; i < words->n; i++) {
        keep[i] = false;
        PNB_TRY(add_text(out, pnb__word_list_join(words, keep), err));
        keep[i] = true;
    }
    if (out->n_bad > 0)
        status = pnb__fail(err, PNB_FORMAT, "%s", out->bad[0]);
done:
    pnb__free(keep);
    return status;
}

static pnb_status copy_words(const pnb__word_list *words, pnb__explained *out, pnb_error *err)
{
    out->word = pnb__alloc_zero(words->n, sizeof *out->word);
    for (size_t i = 0; out->word != NULL && i < words->n; i++) {
        out->word[i] = pnb__strndup(words->start[i], words->length[i]);
        if (out->word[i] == NULL)
            return pnb__fail_nomem(err, words->length[i]);
    }
    return out->word != NULL ? PNB_OK : pnb__fail_nomem(err, words->n * sizeof *out->word);
}

pnb_status pnb__explain_text(pnb__app *app, pnb_encoder *encoder, const char *text,
                             pnb__explained *out)
{
    pnb__word_list words = {0};
    pnb__text_inputs texts = {0};
    pnb_embeddings *set = NULL;
    pnb_status status;
    *out = (pnb__explained){0};
    PNB_TRY(pnb__need_uncertainty(encoder, PNB_ENCODE_TEXTS, &app->err));
    PNB_TRY(pnb__word_list_split(text, &words, &app->err));
    if (words.n == 0)
        PNB_TRY(pnb__fail(&app->err, PNB_FORMAT, "the caption \"%.40s\" has no words", text));
    PNB_TRY(alloc_parts(out, words.n, &app->err));
    PNB_TRY(copy_words(&words, out, &app->err));
    PNB_TRY(pnb__copy_text(&out->what, text, &app->err));
    PNB_TRY(leave_words_out(text, &words, &texts, &app->err));
    PNB_TRY(pnb__embed_texts(app, encoder, &texts, &set));
    status = compare_rows(set, out, &app->err);
done:
    pnb__word_list_reset(&words);
    pnb__text_inputs_reset(&texts);
    pnb_embeddings_free(set);
    return status;
}

/* ---- pictures ---- */

/* Patches of a picture and the cells they form; the last row and column of cells may be smaller. */
typedef struct grid {
    int patch, columns, rows, cell, cell_columns,
        cell_rows; /* in pixels; patches; patches; cells */
} grid;

/* A convolution has no patches: an eighth of the shorter side stands for one. */
enum { CONVOLUTION_PATCHES = 8 };

static pnb_status make_grid(grid *g, const pnb_encoder *encoder, int cell, pnb_error *err)
{
    const pnb_tower_info *v = &encoder->info->vision;
    size_t shorter = PNB_MIN(v->image_width, v->image_height);
    size_t patch = v->n_patches > 0 ? v->patch : PNB_MAX(shorter / CONVOLUTION_PATCHES, (size_t)1);
    *g = (grid){.patch = (int)patch,
                .columns = (int)(v->image_width / patch),
                .rows = (int)(v->image_height / patch),
                .cell = cell};
    if (cell < 1 || (cell >= g->columns && cell >= g->rows))
        return pnb__fail(err, PNB_ARG,
                         "a cell of %d patches leaves nothing of %d by %d; take 1 to %d", cell,
                         g->columns, g->rows, PNB_MAX(PNB_MAX(g->columns, g->rows) - 1, 1));
    g->cell_columns = (g->columns + cell - 1) / cell;
    g->cell_rows = (g->rows + cell - 1) / cell;
    return PNB_OK;
}

/* Only a transformer can leave a patch unseen; what was not asked for is then filled. */
static pnb_status choose_removal(const pnb_encoder *encoder, pnb__patch_removal asked,
                                 pnb__patch_removal *out, pnb_error *err)
{
    bool has_patches = encoder->info->vision.n_patches > 0;
    pnb__patch_removal usual = has_patches ? PNB__PATCH_DROP : PNB__PATCH_GREY;
    *out = asked == PNB__PATCH_USUAL ? usual : asked;
    if (*out == PNB__PATCH_DROP && !has_patches)
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "%s sees no patches that could be hidden from it; --remove grey fills "
                         "eighths of the picture",
                         encoder->name);
    return PNB_OK;
}

/* Patches outside cell i, ascending. */
static size_t kept_patches(const grid *g, size_t i, int32_t *kept)
{
    int column = (int)i % g->cell_columns, row = (int)i / g->cell_columns;
    size_t n = 0;
    for (int y = 0; y < g->rows; y++)
        for (int x = 0; x < g->columns; x++)
            if (y / g->cell != row || x / g->cell != column)
                kept[n++] = y * g->columns + x;
    return n;
}

static pnb_status encode_dropped(pnb__app *app, pnb_encoder *encoder, const pnb_image *pixels,
                                 const grid *g, size_t n_cells, pnb_embeddings **out_set)
{
    const pnb_preprocess *pp = &encoder->preprocess;
    pnb_embeddings *set = NULL;
    float *chw = NULL;
    int32_t *kept = NULL;
    pnb_status status = PNB_OK;
    PNB_TRY(PNB_ALLOC(chw, 3 * (size_t)pp->width * (size_t)pp->height, &app->err));
    PNB_TRY(PNB_ALLOC(kept, (size_t)g->columns * (size_t)g->rows, &app->err));
    PNB_TRY(pnb_image_to_chw(pixels, pp->mean, pp->std, chw, &app->err));
    PNB_TRY(pnb__encoder_make_set(encoder, PNB_ENCODE_IMAGES, n_cells + 1, &set, &app->err));
    for (size_t i = 0; i <= n_cells; i++) {
        pnb_encode_out out = pnb__encode_rows(set, i);
        out.skip_normalize = pnb__encoder_keeps_lengths(encoder, PNB_ENCODE_IMAGES);
        if (pnb__is_interrupted(app))
            PNB_TRY(pnb__fail(&app->err, PNB_INTERRUPTED, "stopped on request"));
        if (i == 0) {
            PNB_TRY(pnb_model_encode_image(encoder->model, chw, 1, &out, &app->err));
            continue;
        }
        size_t n_kept = kept_patches(g, i - 1, kept);
        PNB_TRY(pnb_model_encode_image_kept(encoder->model, chw, 1, kept, n_kept, &out, &app->err));
    }
    if (pnb__encoder_adapts(encoder, PNB_ENCODE_IMAGES)) {
        status = pnb_adapter_apply(out_set, encoder->adapter, PNB_ADAPTER_IMAGES, set, &app->err);
        goto done;
    }
    *out_set = set;
    set = NULL;
done:
    pnb_embeddings_free(set);
    pnb__free(chw);
    pnb__free(kept);
    return status;
}

typedef struct grey_job {
    const pnb_image *pixels;
    const grid *g;
    unsigned char rgb[3];
} grey_job;

/* pnb__make_fn: row 0 the picture, row 1 + i with cell i filled */
static void make_grey(const void *user, size_t row, pnb_image *out)
{
    const grey_job *job = user;
    const grid *g = job->g;
    memcpy(out->pixels, job->pixels->pixels,
           3 * (size_t)job->pixels->width * (size_t)job->pixels->height);
    if (row == 0)
        return;
    int side = g->cell * g->patch;
    int x = (int)(row - 1) % g->cell_columns * side, y = (int)(row - 1) / g->cell_columns * side;
    const int box[4] = {x, y, x + side, y + side};
    pnb__erase_rect(out, box, job->rgb);
}

pnb_status pnb__explain_image(pnb__app *app, pnb_encoder *encoder, const pnb_image *pixels,
                              const pnb__explain_cmd *cmd, pnb__explained *out)
{
    grid g;
    grey_job job = {.pixels = pixels, .g = &g};
    const pnb_encode_opts opts = pnb__encode_opts(app);
    pnb_embeddings *set = NULL;
    pnb__patch_removal removal = cmd->removal;
    size_t n = 0;
    pnb_status status;
    *out = (pnb__explained){.is_image = true};
    PNB_TRY(pnb__need_uncertainty(encoder, PNB_ENCODE_IMAGES, &app->err));
    PNB_TRY(choose_removal(encoder, cmd->removal, &removal, &app->err));
    PNB_TRY(make_grid(&g, encoder, cmd->cell, &app->err));
    n = (size_t)g.cell_columns * (size_t)g.cell_rows;
    out->columns = g.cell_columns;
    out->rows = g.cell_rows;
    PNB_TRY(alloc_parts(out, n, &app->err));
    PNB_TRY(pnb__copy_pixels(pixels, &out->image, &app->err));
    pnb__fill_colour(&encoder->preprocess, job.rgb);
    PNB_TRY(removal == PNB__PATCH_DROP
                ? encode_dropped(app, encoder, pixels, &g, n, &set)
                : pnb__encode_made(encoder, n + 1, make_grey, &job, &opts, &set, &app->err));
    status = compare_rows(set, out, &app->err);
done:
    pnb_embeddings_free(set);
    return status;
}

/* ---- all inputs ---- */

typedef struct explain_run {
    pnb_encoder encoder;
    pnb__image_inputs *images;
    pnb__pixel_set pixels;
    pnb__explained *items;
    size_t n;
} explain_run;

static pnb_status open_inputs(pnb__app *app, const pnb__explain_cmd *cmd, explain_run *run)
{
    const pnb_encoder_opts parts = {.sides = (cmd->texts.n > 0 ? PNB_ENCODE_TEXTS : 0) |
                                             (cmd->images.n > 0 ? PNB_ENCODE_IMAGES : 0),
                                    .tokenizer = cmd->tokenizer,
                                    .preprocess = cmd->preprocess};
    pnb_status status;
    PNB_TRY(pnb__encoder_open_named(&run->encoder, app, cmd->model, &parts));
    PNB_TRY(pnb__need_uncertainty(&run->encoder, parts.sides, &app->err));
    if (cmd->images.n > 0) {
        PNB_TRY(pnb__image_inputs_open(&run->images, cmd->images.items, cmd->images.n, app->in,
                                       &app->err));
        const pnb_encode_opts opts = {
            .exif = cmd->exif, .skipped = pnb__encode_skipped, .skipped_user = app};
        PNB_TRY(
            pnb__pixels_load(&run->encoder, run->images, SIZE_MAX, &opts, &run->pixels, &app->err));
    }
    run->items = pnb__alloc_zero(cmd->texts.n + run->pixels.n, sizeof *run->items);
    if (run->items == NULL)
        status = pnb__fail_nomem(&app->err, (cmd->texts.n + run->pixels.n) * sizeof *run->items);
done:
    return status;
}

static pnb_status explain_all(pnb__app *app, const pnb__explain_cmd *cmd, explain_run *run)
{
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < cmd->texts.n; i++)
        PNB_TRY(pnb__explain_text(app, &run->encoder, cmd->texts.items[i], &run->items[run->n++]));
    for (size_t i = 0; i < run->pixels.n; i++) {
        pnb__explained *e = &run->items[run->n++];
        PNB_TRY(pnb__explain_image(app, &run->encoder, &run->pixels.items[i], cmd, e));
        PNB_TRY(pnb__copy_text(&e->what, run->pixels.names[i], &app->err));
    }
done:
    return status;
}

static void put_item(const pnb__explained *e, size_t number, pnb__result *r)
{
    static const pnb__column words[] = {{"word", "word"},
                                        {"removed", "removes"},
                                        {"without", "without it"},
                                        {"h", "H"},
                                        {"kl_difference", "KL diff."}};
    static const pnb__column cells[] = {{"row", "row"},
                                        {"column", "column"},
                                        {"removed", "removes"},
                                        {"without", "without it"},
                                        {"h", "H"},
                                        {"kl_difference", "KL diff."}};
    char key[32], label[48];
    snprintf(key, sizeof key, "item_%zu", number);
    pnb__result_begin(r, key, e->what);
    pnb__result_text(r, "what", NULL, e->what);
    pnb__result_text(r, "kind", NULL, e->is_image ? "image" : "text");
    const char *kind = pnb_uncertainty_name(e->kind);
    snprintf(label, sizeof label, "uncertainty (%s)", kind);
    pnb__result_real(r, kind, label, e->trace, 6);
    pnb__result_table(r, "parts", NULL, e->is_image ? cells : words, e->is_image ? 6 : 5);
    for (size_t i = 0; i < e->n; i++) {
        if (e->is_image) {
            pnb__result_row(r, "%zu %zu", i / (size_t)e->columns, i % (size_t)e->columns);
        } else {
            pnb__result_cell_text(r, e->word[i]);
        }
        pnb__result_row(r, "%.7f %.7f %.4f %.4f", e->removed[i], e->without[i], e->h[i], e->kl[i]);
    }
    pnb__result_end(r);
}

pnb_status pnb__explain_run(pnb__app *app, const pnb__explain_cmd *cmd, pnb__result *r)
{
    explain_run run = {0};
    pnb_status status;
    PNB_TRY(open_inputs(app, cmd, &run));
    PNB_TRY(explain_all(app, cmd, &run));
    pnb__result_text(r, "model", NULL, run.encoder.name);
    pnb__patch_removal removal = cmd->removal;
    PNB_TRY(choose_removal(&run.encoder, cmd->removal, &removal, &app->err));
    pnb__result_text(r, "removal", NULL, removal == PNB__PATCH_DROP ? "drop" : "grey");
    pnb__result_int(r, "n_items", NULL, (int64_t)run.n);
    for (size_t i = 0; i < run.n; i++)
        put_item(&run.items[i], i, r);
    if (cmd->html != NULL) {
        PNB_TRY(pnb__explain_page(run.items, run.n, run.encoder.name, cmd->html, &app->err));
        pnb__say(app, "wrote %s", cmd->html);
    }
done:
    for (size_t i = 0; i < run.n; i++)
        pnb__explained_reset(&run.items[i]);
    pnb__free(run.items);
    pnb__pixels_reset(&run.pixels);
    pnb__image_inputs_free(run.images);
    pnb__encoder_reset(&run.encoder);
    return status;
}
