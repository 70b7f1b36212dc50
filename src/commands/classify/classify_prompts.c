/* Class names, their prompts and what the prompts' weights make of them.
 *
 * Three ways to the classes: names and templates (embedded here), a set of prompts whose rows say
 * their class, or a classifier saved before. Filtering and BPRW give weights to prompts; the
 * arithmetic is eval's. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "commands/classify/classify.h"
#include "commands/common/encode_use.h"
#include "commands/common/set_use.h"
#include "io/json/json.h"
#include "penumbra/view.h"
#include "sets/settle.h"

/* ---- names and texts ---- */

bool pnb__classify_wants_texts(const pnb__classify *run)
{
    const pnb__classify_opts *o = run->opts;
    return (o->load_clfs.n == 0 && o->prompts == NULL) ||
           (o->has_none && o->none == PNB_NONE_DUMMY && o->none_set == NULL);
}

static pnb_status copy_words(pnb__texts *out, const pnb__texts *in, pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < in->n && status == PNB_OK; i++)
        status = pnb__texts_add(out, in->items[i], strlen(in->items[i]), err);
    return status;
}

/* Reads --classnames, else takes the pictures' own names. */
static pnb_status find_names(pnb__app *app, pnb__classify *run)
{
    const pnb__texts *own = &run->images.source.classes;
    pnb__name_index names = {0};
    size_t first = 0, second = 0;
    pnb_status status;
    if (run->opts->classnames != NULL)
        status = pnb__classnames_read(&run->classes, run->opts->classnames, run->opts->dataset,
                                      &app->err);
    else if (own->n > 0)
        status = copy_words(&run->classes, own, &app->err);
    else
        status = pnb__fail(&app->err, PNB_ARG,
                           "%s does not name its classes; give --classnames FILE or a,b,c",
                           run->opts->images);
    if (status == PNB_OK)
        status = pnb__name_index_make(&names, &run->classes, &app->err);
    if (status == PNB_OK && pnb__classnames_repeated(&names, &first, &second))
        pnb__warn(app,
                  "classes %zu and %zu are both called \"%s\": they get the same prompts, and the "
                  "first wins every tie",
                  first, second, run->classes.items[first]);
    pnb__name_index_reset(&names);
    return status;
}

/* Templates that lie with the data, as CLIP_benchmark has them; NULL when there are none. */
static pnb_status templates_beside(const char *images, char **out, pnb_error *err)
{
    static const char name[] = "zeroshot_classification_templates.txt";
    static const char above[] = "../zeroshot_classification_templates.txt";
    char *dir = pnb__path_is_dir(images) ? pnb__strdup(images) : pnb__path_dir(images);
    const char *found = NULL;
    if (dir != NULL)
        found = pnb__path_has_file(dir, name)    ? name
                : pnb__path_has_file(dir, above) ? above
                                                 : NULL;
    *out = found != NULL ? pnb__path_join(dir, found) : NULL;
    bool no_memory = dir == NULL || (found != NULL && *out == NULL);
    pnb__free(dir);
    return no_memory ? pnb__fail_nomem(err, strlen(images)) : PNB_OK;
}

pnb_status pnb__classify_names(pnb__app *app, pnb__classify *run)
{
    const pnb__classify_opts *o = run->opts;
    if (o->load_clfs.n > 0 || o->prompts != NULL)
        return PNB_OK;
    char *beside = NULL;
    pnb_status status = find_names(app, run);
    if (status == PNB_OK && o->templates == NULL)
        status = templates_beside(o->images, &beside, &app->err);
    const char *spec = o->templates != NULL ? o->templates : beside != NULL ? beside : "openai";
    if (status == PNB_OK)
        status = pnb__class_prompts_make(&run->texts, &run->classes, spec, o->dataset, &app->err);
    pnb__free(beside);
    return status;
}

/* ---- prompts as rows ---- */

/* {"class":name,"label":c}, with "template" where there are templates. */
static pnb_status label_row(pnb_embeddings *set, size_t row, const char *name, size_t c,
                            const char *template, pnb_error *err)
{
    pnb__buf extra = {0};
    pnb__json_put(&extra, "{\"class\":%s,\"label\":%zu", name, c);
    if (template != NULL)
        pnb__json_put(&extra, ",\"template\":%s", template);
    pnb__buf_putc(&extra, '}');
    pnb_status status = extra.failed ? pnb__fail_nomem(err, extra.size)
                                     : pnb_embeddings_set_extra(set, row, extra.data, err);
    pnb__buf_reset(&extra);
    return status;
}

static pnb_status embed_texts(pnb__app *app, pnb__classify *run, pnb_encoder *encoder)
{
    const pnb__class_prompts *t = &run->texts;
    pnb__text_inputs texts = {0};
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < t->prompts.n; i++)
        PNB_TRY(pnb__text_inputs_add_text(&texts, t->prompts.items[i], &app->err));
    if (texts.n_bad > 0)
        PNB_TRY(pnb__fail(&app->err, PNB_FORMAT, "a prompt is not valid UTF-8"));
    const pnb__embed_source source = pnb__text_inputs_source(&texts);
    PNB_TRY(pnb__embed_all(app, encoder, &source, "prompts", false, &run->prompts));
    PNB_TRY(PNB_ALLOC(run->offset, t->n_classes + 1, &app->err));
    memcpy(run->offset, t->offset, (t->n_classes + 1) * sizeof *run->offset);
    for (size_t c = 0; c < t->n_classes; c++)
        for (size_t i = t->offset[c]; i < t->offset[c + 1]; i++)
            PNB_TRY(label_row(run->prompts, i, run->classes.items[c], c,
                              t->templates.n > 0 ? t->templates.items[i - t->offset[c]] : NULL,
                              &app->err));
done:
    pnb__text_inputs_reset(&texts);
    return status;
}

/* ---- a set of prompts ---- */

/* Class of every row, its names into run->classes by number. */
static pnb_status read_pnb__labelleds(pnb__classify *run, const pnb_embeddings *set,
                                      pnb__labelled *rows, pnb_error *err)
{
    pnb_status status = PNB_OK;
    char *name = NULL;
    for (size_t i = 0; i < set->n; i++) {
        rows[i].place = i;
        PNB_TRY(pnb__row_class(set, i, &rows[i].label, &name, err));
        if (name == NULL || rows[i].label < 0)
            PNB_TRY(pnb__fail(err, PNB_FORMAT,
                              "%s: row %zu does not say its \"class\" and \"label\"; sets of "
                              "prompts are made with --save-prompts",
                              run->opts->prompts, i));
        pnb__free(name);
        name = NULL;
    }
    qsort(rows, set->n, sizeof *rows, pnb__by_label);
    for (size_t i = 0; i < set->n; i++) {
        size_t c = run->classes.n;
        if (i > 0 && rows[i].label == rows[i - 1].label)
            continue;
        if (rows[i].label != (int64_t)c)
            PNB_TRY(
                pnb__fail(err, PNB_FORMAT, "%s: class %zu has no prompt", run->opts->prompts, c));
        PNB_TRY(pnb__row_class(set, rows[i].place, &rows[i].label, &name, err));
        PNB_TRY(pnb__texts_add(&run->classes, name, strlen(name), err));
        pnb__free(name);
        name = NULL;
        run->offset[c] = i;
    }
    run->offset[run->classes.n] = set->n;
done:
    pnb__free(name);
    return status;
}

/* "template" of a prompt's row; NULL without. Free with pnb__free. */
static pnb_status row_template(const pnb_embeddings *set, size_t row, char **out, pnb_error *err)
{
    const char *extra = set->extras != NULL ? set->extras[row] : NULL;
    json_t *root = NULL;
    *out = NULL;
    if (extra != NULL && pnb__json_try_bytes(&root, extra, strlen(extra), err) != PNB_OK)
        return PNB_NOMEM;
    const char *text = json_string_value(json_object_get(root, "template"));
    *out = text != NULL ? pnb__strdup(text) : NULL;
    pnb_status status = text != NULL && *out == NULL ? pnb__fail_nomem(err, strlen(text)) : PNB_OK;
    json_decref(root);
    return status;
}

/* The templates of the rows, where prompt j of every class has the same one; else none. */
static pnb_status recall_templates(pnb__classify *run, pnb_error *err)
{
    const pnb_embeddings *set = run->prompts;
    pnb__texts *templates = &run->texts.templates;
    size_t n = run->offset[1];
    bool fits = set->n == n * run->classes.n;
    char *text = NULL;
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < set->n && fits; i++) {
        fits = run->offset[i / n] == i / n * n;
        PNB_TRY(row_template(set, i, &text, err));
        fits = fits && text != NULL;
        if (fits && i < n)
            PNB_TRY(pnb__texts_add(templates, text, strlen(text), err));
        else if (fits)
            fits = strcmp(templates->items[i % n], text) == 0;
        pnb__free(text);
        text = NULL;
    }
    if (!fits)
        pnb__texts_reset(templates);
done:
    pnb__free(text);
    return status;
}

static pnb_status load_prompts(pnb__app *app, pnb__classify *run)
{
    pnb_error *err = &app->err;
    pnb_embeddings *set = NULL;
    pnb__labelled *rows = NULL;
    size_t *order = NULL;
    pnb_status status;
    PNB_TRY(pnb__set_load(&set, run->opts->prompts, app));
    PNB_TRY(PNB_ALLOC(rows, set->n, err));
    PNB_TRY(PNB_ALLOC(order, set->n, err));
    PNB_TRY(PNB_ALLOC(run->offset, set->n + 1, err));
    PNB_TRY(read_pnb__labelleds(run, set, rows, err));
    for (size_t i = 0; i < set->n; i++)
        order[i] = rows[i].place;
    PNB_TRY(pnb_embeddings_select(&run->prompts, set, order, set->n, err));
    status = recall_templates(run, err);
done:
    pnb_embeddings_free(set);
    pnb__free(rows);
    pnb__free(order);
    return status;
}

/* ---- a classifier as a set ---- */

/* Numbers of the classifier into a set of the prompts' family; a generalised Gaussian's class is
 * the Gaussian of its moments. */
static void copy_numbers(const pnb_classifier *made, pnb_embeddings *set)
{
    for (size_t i = 0; i < made->n_classes * made->dim; i++) {
        set->mean[i] = (float)made->mean[i];
        if (set->log_var != NULL)
            set->log_var[i] = (float)log(made->var[i]);
    }
    for (size_t c = 0; set->kappa != NULL && c < made->n_classes; c++)
        set->kappa[c] = (float)made->kappa[c];
}

/* run->clf, of the family and with the record of the rows it was made from. */
static pnb_status to_set(pnb__classify *run, const pnb_classifier *made, const pnb_embeddings *from,
                         pnb_error *err)
{
    pnb_family family = from->family == PNB_GEN_GAUSSIAN ? PNB_GAUSSIAN_DIAG : from->family;
    pnb_embeddings *set = NULL;
    pnb_status status;
    PNB_TRY(pnb_embeddings_create(&set, family, made->n_classes, made->dim, err));
    set->info = from->info;
    copy_numbers(made, set);
    for (size_t c = 0; c < made->n_classes; c++) {
        PNB_TRY(pnb_embeddings_set_id(set, c, run->classes.items[c], err));
        PNB_TRY(label_row(set, c, run->classes.items[c], c, NULL, err));
    }
    run->clf = set;
    set = NULL;
done:
    pnb_embeddings_free(set);
    return status;
}

/* ---- saved classifiers ---- */

static pnb_status name_classes(pnb__classify *run, const pnb_embeddings *clf, pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (size_t c = 0; status == PNB_OK && c < clf->n; c++) {
        char *own = NULL;
        int64_t label;
        status = pnb__row_class(clf, c, &label, &own, err);
        const char *name = own != NULL ? own : pnb__row_name(clf, c);
        if (status == PNB_OK)
            status = pnb__texts_add(&run->classes, name, strlen(name), err);
        pnb__free(own);
    }
    return status;
}

/* Several classifiers are averaged class by class as prompts are: CLIP_benchmark's --load_clfs, but
 * to unit length. */
static pnb_status average(pnb__classify *run, pnb_embeddings *const *clf, size_t n, pnb_error *err)
{
    pnb_embeddings *all = NULL, *sorted = NULL;
    size_t n_classes = clf[0]->n, *order = NULL, *offset = NULL;
    pnb_classifier made = {0};
    pnb_view view = {0};
    pnb_status status;
    PNB_TRY(pnb_embeddings_concat(&all, (const pnb_embeddings *const *)clf, n, err));
    PNB_TRY(PNB_ALLOC(order, all->n, err));
    PNB_TRY(PNB_ALLOC(offset, n_classes + 1, err));
    for (size_t i = 0; i < all->n; i++)
        order[i] = i % n * n_classes + i / n;
    for (size_t c = 0; c <= n_classes; c++)
        offset[c] = c * n;
    PNB_TRY(pnb_embeddings_select(&sorted, all, order, all->n, err));
    PNB_TRY(pnb_view_init(&view, sorted, err));
    const pnb_prompts rows = {.n_classes = n_classes,
                              .dim = view.rows.dim,
                              .offset = offset,
                              .mean = view.rows.mean,
                              .log_var = view.rows.log_var,
                              .kappa = view.rows.kappa};
    PNB_TRY(pnb_classifier_build(&made, &rows, NULL, NULL, err));
    status = to_set(run, &made, sorted, err);
done:
    pnb_classifier_reset(&made);
    pnb_view_reset(&view);
    pnb_embeddings_free(all);
    pnb_embeddings_free(sorted);
    pnb__free(order);
    pnb__free(offset);
    return status;
}

/* Classifier i has the classes of the first one, in its order. */
static pnb_status check_same(const pnb__classify *run, const pnb_embeddings *first,
                             const pnb_embeddings *other, const char *path, pnb_error *err)
{
    pnb_status status = pnb_embeddings_check_mix(first, other, err);
    if (status != PNB_OK || first->n != other->n)
        return status != PNB_OK ? status
                                : pnb__fail(err, PNB_ARG, "%s: has %zu classes, the first one %zu",
                                            path, other->n, first->n);
    for (size_t c = 0; c < other->n && status == PNB_OK; c++) {
        if (strcmp(pnb__row_name(other, c), pnb__row_name(first, c)) != 0)
            status = pnb__fail(err, PNB_ARG, "%s: class %zu is \"%s\", in the first one \"%s\"",
                               path, c, pnb__row_name(other, c), run->classes.items[c]);
    }
    return status;
}

static pnb_status load_classifiers(pnb__app *app, pnb__classify *run)
{
    pnb_error *err = &app->err;
    const pnb__text_list *paths = &run->opts->load_clfs;
    pnb_embeddings **clf = NULL;
    pnb_status status = PNB_OK;
    PNB_TRY(PNB_ALLOC_ZERO(clf, paths->n, err));
    for (size_t i = 0; i < paths->n; i++) {
        PNB_TRY(pnb__set_load(&clf[i], paths->items[i], app));
        if (i == 0)
            PNB_TRY(name_classes(run, clf[0], err));
        else
            PNB_TRY(check_same(run, clf[0], clf[i], paths->items[i], err));
    }
    if (paths->n > 1) {
        status = average(run, clf, paths->n, err);
    } else {
        run->clf = clf[0];
        clf[0] = NULL;
    }
done:
    for (size_t i = 0; clf != NULL && i < paths->n; i++)
        pnb_embeddings_free(clf[i]);
    pnb__free(clf);
    return status;
}

pnb_status pnb__classify_prompts(pnb__app *app, pnb__classify *run, pnb_encoder *encoder)
{
    pnb_status status;
    if (run->opts->load_clfs.n > 0)
        return load_classifiers(app, run);
    PNB_TRY(run->opts->prompts != NULL ? load_prompts(app, run) : embed_texts(app, run, encoder));
    PNB_TRY(pnb__row_uncertainty(run->prompts, PNB_UNCERTAINTY_TRACE, &run->prompt_u, &app->err));
done:
    return status;
}

/* ---- weights ---- */

static pnb_bprw_opts bprw_opts(const pnb__app *app, const pnb__classify_opts *o)
{
    bool few = o->bprw_images != NULL;
    pnb_bprw_opts b = few ? pnb_bprw_opts_few_shot() : pnb_bprw_opts_default();
    b.em.scale_twice = b.em.one_step_old = o->bprw_released;
    b.em.alpha = isnan(o->bprw_alpha) ? b.em.alpha : o->bprw_alpha;
    b.em.eps = isnan(o->bprw_eps) ? b.em.eps : o->bprw_eps;
    b.seed = (uint64_t)app->common.seed;
    if (few)
        b.n_images = o->shots;
    else if (o->n_bprw_images > 0)
        b.n_images = o->n_bprw_images;
    if (o->bprw_samples > 0)
        b.n_samples = o->bprw_samples;
    return b;
}

static pnb_status reweigh(pnb__app *app, pnb__classify *run, const pnb_prompts *prompts,
                          pnb_encoder *encoder)
{
    const pnb__classify_opts *o = run->opts;
    const pnb_bprw_opts b = bprw_opts(app, o);
    pnb__class_source *shots = &run->shots;
    const pnb_embeddings *set = run->images.source.set;
    pnb_view view = {0};
    pnb_status status;
    if (shots->what != NULL) {
        PNB_TRY(pnb__class_source_embed(shots, app, encoder));
        PNB_TRY(pnb__class_source_label(shots, &run->classes, o->bprw_labels, &app->err));
        PNB_TRY(pnb_embeddings_check_mix(run->prompts, shots->set, &app->err));
        set = shots->set;
    }
    PNB_TRY(pnb_view_init(&view, set, &app->err));
    PNB_TRY(pnb_bprw(app->ctx, prompts, &view.rows, shots->label, &b, run->weight, &run->bprw,
                     &app->err));
    if (run->bprw.n_without == prompts->n_classes)
        pnb__warn(app, "%s: no picture of any class; all prompts keep equal weights",
                  o->bprw_images);
done:
    pnb_view_reset(&view);
    return status;
}

/* run->weight with where they come from and how they are used. */
static pnb_status weigh(pnb__app *app, pnb__classify *run, const pnb_prompts *prompts,
                        pnb_encoder *encoder)
{
    const pnb__classify_opts *o = run->opts;
    if (o->load_weights != NULL)
        return pnb__classify_load_weights(app, run);
    snprintf(run->method, sizeof run->method, "%s",
             o->bprw                                ? "bprw"
             : o->filter == PNB_FILTER_PROMPTS_NONE ? "equal"
                                                    : pnb_prompt_filter_name(o->filter));
    if (!o->bprw)
        return pnb_prompts_filter(o->filter, o->filter_value, run->offset, run->classes.n,
                                  run->prompt_u, run->weight, &app->err);
    run->making.normalise = !o->bprw_released;
    run->making.variance = PNB_CLASS_VARIANCE_SQUARED;
    return reweigh(app, run, prompts, encoder);
}

/* ---- the classifier ---- */

pnb_status pnb__classify_build(pnb__app *app, pnb__classify *run, pnb_encoder *encoder)
{
    const pnb__classify_opts *o = run->opts;
    pnb_classifier made = {0};
    pnb_view view = {0};
    pnb_status status;
    if (run->clf != NULL)
        return PNB_OK;
    run->making = pnb_classifier_opts_default();
    PNB_TRY(pnb_view_init(&view, run->prompts, &app->err));
    const pnb_prompts prompts = {.n_classes = run->classes.n,
                                 .dim = view.rows.dim,
                                 .offset = run->offset,
                                 .mean = view.rows.mean,
                                 .log_var = view.rows.log_var,
                                 .kappa = view.rows.kappa};
    PNB_TRY(PNB_ALLOC(run->weight, run->prompts->n, &app->err));
    PNB_TRY(weigh(app, run, &prompts, encoder));
    if (o->has_variance)
        run->making.variance = o->variance;
    PNB_TRY(pnb_classifier_build(&made, &prompts, run->weight, &run->making, &app->err));
    PNB_TRY(to_set(run, &made, run->prompts, &app->err));
    if (o->n_listed > 0)
        status = pnb__sorted(&run->by_certainty, run->prompt_u, run->prompts->n,
                             "uncertainty of prompt", &app->err);
done:
    pnb_view_reset(&view);
    pnb_classifier_reset(&made);
    return status;
}
