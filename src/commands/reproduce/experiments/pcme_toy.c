/* PCME's toy (section 4.4 and Figure 5): nine classes in two dimensions, so that what the model
 * says of each item can be drawn. The paper prints a drawing and no figures; ours are areas of
 * ellipses and what lies inside one.
 *
 * With D = 2 the attention branch is left out: LayerNorm of two numbers has two values only. Means
 * are on the unit circle. A batch has one picture of each class, so that the other pairs of a batch
 * are not of one class. The generic caption is made of unknown words alone. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "commands/common/encode_use.h"
#include "commands/reproduce/pcme_models.h"
#include "encode/encoder.h"
#include "report/html.h"

enum { N_CLASSES = 9, MOST_DRAWN = 250, COLOUR_GENERIC = 4, N_LEVELS = 4 };

#define SHARE_ITEM 0.5
#define SHARE_GENERIC 0.99
#define PI 3.14159265358979323846

static const pnb__figure figures[] = {{"r_precision", "R-P by class", 100, 1},
                                      {"r1", "R@1 by class", 100, 1},
                                      {"area", "area of 50% ellipse", 1, 4},
                                      {"inside", "means inside generic's 99%", 100, 1}};
static const pnb__repro_row rows[] = {{"images", "pictures"},
                                      {"texts", "captions"},
                                      {"generic", "caption of unknown words"},
                                      {"level_0", "captions of level 0, the most general"},
                                      {"level_1", "captions of level 1"},
                                      {"level_2", "captions of level 2"},
                                      {"level_3", "captions of level 3, which say everything"}};
static const pnb__paper_line lines[] = {
    {"generic", "Figure 5, CUB Captions: drawn", {NAN, NAN, NAN, NAN}, false, {0}}};
static const pnb__repro_claim claims[] = {
    {"generic", "texts", "area", "the generic caption is wider than the others"},
    {"level_0", "level_3", "area", "general captions are wider than exact ones"},
};
static const char *const stages[] = {"toy", NULL};
static const char *const differs[] = {
    "The paper: nine classes of CUB Captions; it prints the drawing, and no figures. On the "
    "built-in shapes: single shapes of three forms and three colours.",
    "The attention branch is left out: of two numbers LayerNorm makes two values only. a = 2, b = "
    "1 "
    "and log \xCF\x83 -2 at the start: with 5, 5 and -3 nothing was learned on the built-in "
    "shapes.",
    "The generic caption is made of unknown words alone, as many as captions have; the paper's is "
    "\"this bird has <unk> ... <unk>\".",
    NULL};

static void scenes(pnb_shapes_opts *opts)
{
    opts->grey_p = 0.3; /* blurring takes most of the time that scenes take */
    opts->seed = 1;
}

static pnb_status prepare(pnb__reproduction *run)
{
    return pnb__reproduce_subset(run, N_CLASSES);
}

/* ---- the generic caption ---- */

static size_t count_words(const char *text)
{
    size_t n = 0;
    for (const char *c = text; *c != '\0'; c++)
        n += *c != ' ' && (c == text || c[-1] == ' ');
    return n;
}

/* As many unknown words as the captions have on average. */
static pnb_status generic_text(const pnb_embeddings *texts, pnb__buf *out, pnb_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < texts->n; i++)
        n += texts->texts != NULL && texts->texts[i] != NULL ? count_words(texts->texts[i]) : 4;
    n = PNB_MAX((n + texts->n / 2) / texts->n, (size_t)1);
    for (size_t i = 0; i < n; i++)
        pnb__buf_puts(out, i == 0 ? "<unk>" : " <unk>");
    return pnb__buf_check(out, err);
}

static pnb_status embed_generic(pnb__reproduction *run, const char *model,
                                const pnb_embeddings *texts, pnb_embeddings **out)
{
    const pnb_encoder_opts parts = {.sides = PNB_ENCODE_TEXTS};
    pnb_encoder encoder = {0};
    pnb__buf text = {0};
    pnb_status status;
    PNB_TRY(generic_text(texts, &text, &run->app->err));
    PNB_TRY(pnb__encoder_open_named(&encoder, run->app, model, &parts));
    status =
        pnb_encode_texts(&encoder, (const char *const[]){text.data}, 1, NULL, out, &run->app->err);
done:
    pnb__encoder_reset(&encoder);
    pnb__buf_reset(&text);
    return status;
}

/* ---- figures ---- */

/* pi r^2 s_1 s_2 of the contour that holds half: r^2 = -2 log(1 - share). */
static double area_of(const pnb_embeddings *set, size_t i)
{
    const float *lv = set->log_var + 2 * i;
    return PI * -2.0 * log(1.0 - SHARE_ITEM) * exp(0.5 * ((double)lv[0] + (double)lv[1]));
}

/* Whether a mean lies inside the generic caption's ellipse. */
static bool is_inside(const pnb_embeddings *set, size_t i, const pnb_embeddings *generic)
{
    double distance = 0.0;
    for (size_t d = 0; d < 2; d++) {
        double delta = (double)set->mean[2 * i + d] - (double)generic->mean[d];
        distance += delta * delta * exp(-(double)generic->log_var[d]);
    }
    return distance <= -2.0 * log(1.0 - SHARE_GENERIC);
}

/* Means over the rows of a level, -1: of all. */
static void put_set(const pnb__reproduction *run, json_t *found, const char *row,
                    const pnb_embeddings *set, const int *level, int wanted,
                    const pnb_embeddings *generic)
{
    double area = 0.0, inside = 0.0;
    size_t n = 0;
    for (size_t i = 0; i < set->n; i++) {
        if (wanted >= 0 && level[i] != wanted)
            continue;
        n++;
        area += area_of(set, i);
        inside += is_inside(set, i, generic);
    }
    if (n == 0)
        return;
    pnb__reproduce_put(run, found, row, "area", area / (double)n);
    pnb__reproduce_put(run, found, row, "inside", inside / (double)n);
}

static void put_direction(const pnb__reproduction *run, json_t *found, const char *row,
                          const pnb_direction *d)
{
    pnb__reproduce_put(run, found, row, "r_precision", d->r_precision);
    pnb__reproduce_put(run, found, row, "r1", d->recall[0]);
}

/* ---- what is drawn ---- */

/* A row as [class, x, y, variance of x, variance of y]: the class is the folder in its id. */
static json_t *ellipse(const pnb_embeddings *set, size_t i)
{
    const char *id = set->ids != NULL && set->ids[i] != NULL ? set->ids[i] : "";
    json_t *out = json_array();
    json_array_append_new(out, json_stringn(id, strcspn(id, "/")));
    for (size_t d = 0; d < 2; d++)
        json_array_append_new(out, json_real((double)set->mean[2 * i + d]));
    for (size_t d = 0; d < 2; d++)
        json_array_append_new(out, json_real(exp((double)set->log_var[2 * i + d])));
    return out;
}

static json_t *ellipses(const pnb_embeddings *set)
{
    size_t stride = set->n / MOST_DRAWN + 1;
    json_t *out = json_array();
    for (size_t i = 0; i < set->n; i += stride)
        json_array_append_new(out, ellipse(set, i));
    return out;
}

static pnb_status measure(pnb__reproduction *run, size_t stage, uint64_t seed, json_t *found)
{
    pnb__retrieval sets = {0};
    pnb_embeddings *generic = NULL;
    pnb_search_opts search;
    pnb_retrieval of;
    char *model = NULL;
    pnb_status status;
    PNB_TRY(pnb__pcme_model(run, stages[stage], PNB__PCME_TOY, seed, &sets, &model));
    PNB_TRY(embed_generic(run, model, sets.texts, &generic));
    PNB_TRY(pnb__pcme_rank(run, &sets, PNB_MEASURE_MATCH_PROB, seed, &search, &of));
    put_direction(run, found, "images", &of.forward);
    put_direction(run, found, "texts", &of.backward);
    put_set(run, found, "images", sets.images, NULL, -1, generic);
    put_set(run, found, "texts", sets.texts, NULL, -1, generic);
    for (int level = 0; level < N_LEVELS; level++)
        put_set(run, found, rows[3 + level].key, sets.texts, sets.text_level, level, generic);
    pnb__reproduce_put(run, found, "generic", "area", area_of(generic, 0));
    json_object_set_new(found, "images", ellipses(sets.images));
    json_object_set_new(found, "texts", ellipses(sets.texts));
    json_object_set_new(found, "generic", ellipse(generic, 0));
done:
    pnb_embeddings_free(generic);
    pnb__retrieval_reset(&sets);
    pnb__free(model);
    return status;
}

/* ---- the drawing ---- */

/* Colours of classes leave the generic caption's out. */
static int colour_of(size_t place)
{
    int colour = (int)(place % (PNB__N_COLOURS - 1));
    return colour >= COLOUR_GENERIC ? colour + 1 : colour;
}

/* Places of the classes in the order in which they appear; `names` holds as many as it can. */
static size_t class_place(const char *name, const char **names, size_t *n)
{
    for (size_t i = 0; i < *n; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    if (*n < N_CLASSES)
        names[(*n)++] = name;
    return *n - 1;
}

static double number_at(const json_t *row, size_t i)
{
    return json_number_value(json_array_get(row, i));
}

static void cover(pnb__chart *chart, const json_t *row)
{
    for (size_t d = 0; d < 2; d++) {
        double r = 1.2 * sqrt(number_at(row, 3 + d)), at = number_at(row, 1 + d);
        pnb__axis_cover(d == 0 ? &chart->x : &chart->y, (double[]){at - r, at + r}, 2);
    }
}

static void draw_row(pnb__chart *chart, int colour, const json_t *row, double share)
{
    const double mean[2] = {number_at(row, 1), number_at(row, 2)};
    const double cov[3] = {number_at(row, 3), 0.0, number_at(row, 4)};
    pnb__chart_gaussian(chart, colour, mean, cov, share);
}

static void draw_side(const json_t *found, const char *key, const char *title, pnb__buf *out)
{
    const json_t *items = json_object_get(found, key), *generic = json_object_get(found, "generic");
    const char *names[N_CLASSES];
    size_t n = 0;
    pnb__chart chart = {.title = title, .width = 460, .height = 500, .equal_units = true};
    for (size_t i = 0; i < json_array_size(items); i++) {
        cover(&chart, json_array_get(items, i));
        (void)class_place(json_string_value(json_array_get(json_array_get(items, i), 0)), names,
                          &n);
    }
    for (size_t i = 0; i < n; i++)
        chart.legend[chart.n_legend++] = (pnb__legend_entry){names[i], colour_of(i), PNB__MARK_DOT};
    chart.legend[chart.n_legend++] =
        (pnb__legend_entry){"unknown words, 99%", COLOUR_GENERIC, PNB__MARK_RING};
    pnb__chart_begin(&chart, out);
    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *row = json_array_get(items, i);
        size_t at = class_place(json_string_value(json_array_get(row, 0)), names, &n);
        draw_row(&chart, colour_of(at), row, SHARE_ITEM);
    }
    draw_row(&chart, COLOUR_GENERIC, generic, SHARE_GENERIC);
    pnb__chart_end(&chart);
}

/* The first seed's: a mean of drawings is none. */
static void draw(const pnb__reproduction *run, pnb__page *page)
{
    const json_t *found = run->found[0];
    pnb__page_section(page, "Nine classes in two dimensions",
                      "Of the first seed. Each ellipse holds half of an item's distribution, the "
                      "red one 99% of that of the caption of unknown words. Means lie on the unit "
                      "circle; one unit is as long on both axes.");
    pnb__buf *out = pnb__page_block(page);
    pnb__buf_puts(out, "<div class=\"row\">\n");
    draw_side(found, "images", "Pictures", out);
    draw_side(found, "texts", "Captions", out);
    pnb__buf_puts(out, "</div>\n");
}

const pnb__experiment pnb__experiment_pcme_toy = {.word = "pcme-toy",
                                                  .paper = "PCME (Chun et al. 2021), Figure 5",
                                                  .needs = PNB__REPRO_IMAGES,
                                                  PNB__EXPERIMENT_TABLES,
                                                  .step_s = 0.03,
                                                  .stage_s = 5,
                                                  .shapes = scenes,
                                                  .splits_train = true,
                                                  .prepare = prepare,
                                                  .measure = measure,
                                                  .draw = draw};
