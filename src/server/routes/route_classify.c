/* POST /v1/classify: the class of each input among labels that the request brings.
 *
 * A class is the embedding of its prompts, put together as `penumbra classify` does, and
 * probabilities are among the classes. With min_probability an input whose best class stays below
 * is answered with "none". */
#include <math.h>
#include <string.h>

#include "base/grow.h"
#include "penumbra/classify.h"
#include "prob/measure.h"
#include "server/routes.h"
#include "server/searching/lists.h"

enum { MAX_LABELS = 10000 };

static const pnb__field fields[] = {
    PNB__VALUE("input", ANY, "Pictures or captions, as input of /v1/embeddings", .required = true),
    PNB__VALUE("labels", LIST, "Names of the classes", .required = true,
               .schema = "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}"),
    PNB__VALUE("templates", LIST,
               "Prompts of a class, {} or {c} stands for its name; by default the name alone",
               .schema = "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}"),
    PNB__VALUE("k", INT, "Classes that are listed for each input; 5 by default", .min = 1,
               .max = MAX_LABELS),
    PNB__VALUE("min_probability", REAL, "An input whose best class has less is answered with none",
               .min = 0, .max = 1),
    PNB__VALUE("model", TEXT, "Name of the model, which must be the one that is served"),
};

/* ---- prompts ---- */

static char *fill(pnb__arena *arena, const char *template, const char *name)
{
    const char *at = strstr(template, "{}"), *named = strstr(template, "{c}");
    size_t n_mark = 2;
    if (at == NULL || (named != NULL && named < at)) {
        at = named;
        n_mark = 3;
    }
    if (at == NULL)
        return NULL;
    size_t n = strlen(template) + strlen(name) + 1;
    char *text = pnb__arena_alloc(arena, n);
    if (text != NULL)
        snprintf(text, n, "%.*s%s%s", (int)(at - template), template, name, at + n_mark);
    return text;
}

static pnb_status add_prompt(pnb__arena *arena, const json_t *label, const json_t *template,
                             pnb__inputs *prompts, pnb_error *err)
{
    const char *name = json_string_value(label), *form = json_string_value(template);
    if (name == NULL || form == NULL)
        return pnb__fail(err, PNB_FORMAT, "'labels' and 'templates' are arrays of strings");
    if (strstr(form, "{}") == NULL && strstr(form, "{c}") == NULL)
        return pnb__fail(err, PNB_FORMAT, "the template '%.80s' has no {} for the name", form);
    char *text = fill(arena, form, name);
    if (text == NULL)
        return pnb__fail_nomem(err, strlen(form) + strlen(name));
    const pnb__input item = {false, text, strlen(text)};
    return PNB_PUSH(prompts->items, prompts->n, err, item);
}

/* All templates of the first class, then those of the second... */
static pnb_status make_prompts(const json_t *body, pnb__arena *arena, pnb__inputs *prompts,
                               size_t *n_each, pnb_error *err)
{
    const json_t *labels = pnb__field_of(body, "labels"), *given = pnb__field_of(body, "templates");
    const json_t *label, *template;
    json_t *bare = json_pack("[s]", "{}");
    const json_t *templates = given != NULL ? given : bare;
    size_t i, k;
    pnb_status status = PNB_OK;
    *n_each = json_array_size(templates);
    if (bare == NULL)
        PNB_TRY(pnb__fail_nomem(err, 1));
    if (json_array_size(labels) == 0 || *n_each == 0 ||
        json_array_size(labels) > MAX_LABELS / *n_each)
        PNB_TRY(pnb__fail(err, PNB_ARG, "%zu labels by %zu templates; wanted are 1 to %d prompts",
                          json_array_size(labels), *n_each, MAX_LABELS));
    json_array_foreach(labels, i, label) json_array_foreach(templates, k, template)
        PNB_TRY(add_prompt(arena, label, template, prompts, err));
done:
    json_decref(bare);
    return status;
}

/* ---- classes ---- */

/* Classes of several prompts each, in f32. */
typedef struct classes {
    pnb_rows rows;
    float *values; /* behind the rows */
} classes;

static void copy_classes(const pnb_classifier *from, classes *c)
{
    size_t n = from->n_classes * from->dim;
    float *mean = c->values, *log_var = c->values + n, *kappa = c->values + 2 * n;
    for (size_t i = 0; i < n; i++) {
        mean[i] = (float)from->mean[i];
        log_var[i] = (float)log(from->var[i]);
    }
    for (size_t i = 0; i < from->n_classes && from->kappa != NULL; i++)
        kappa[i] = (float)from->kappa[i];
    c->rows.n = from->n_classes;
    c->rows.mean = mean;
    c->rows.log_var = c->rows.log_var != NULL ? log_var : NULL;
    c->rows.kappa = from->kappa != NULL ? kappa : NULL;
}

/* Of one prompt each class is that prompt. */
static pnb_status make_classes(const pnb_rows *prompts, size_t n_each, classes *c, pnb_error *err)
{
    pnb_classifier made = {0};
    size_t *offset = NULL, n = prompts->n / n_each;
    pnb_status status = PNB_OK;
    c->rows = *prompts;
    if (n_each == 1)
        return PNB_OK;
    PNB_TRY(PNB_ALLOC(offset, n + 1, err));
    for (size_t i = 0; i <= n; i++)
        offset[i] = i * n_each;
    const pnb_prompts of = {n,    prompts->dim,  offset, prompts->mean, prompts->log_var,
                            NULL, prompts->kappa};
    PNB_TRY(pnb_classifier_build(&made, &of, NULL, NULL, err));
    PNB_TRY(PNB_ALLOC_ROWS(c->values, n, 2 * prompts->dim + 1, err));
    copy_classes(&made, c);
done:
    pnb__free(offset);
    pnb_classifier_reset(&made);
    return status;
}

/* The model's scale belongs to the similarity it was trained on; other scores are in nats. */
static double scale_of(const pnb__compared *c)
{
    if (!pnb__measure_has_logits(c->measure))
        return 1;
    return isfinite(c->scale) && c->scale > 0 ? c->scale : 100;
}

/* ---- the reply ---- */

static void put_reply(const pnb__served *s, const json_t *labels, const pnb_predictions *p,
                      double min_probability, pnb__buf *b)
{
    pnb__json_put(b, "{\"object\":\"list\",\"model\":%s,\"data\":[", s->server->name);
    for (size_t i = 0; i < p->n; i++) {
        size_t first = i * p->k;
        bool is_some = !(p->probability[first] < min_probability);
        const char *best = json_string_value(json_array_get(labels, (size_t)p->top[first]));
        pnb__buf_puts(b, i > 0 ? "," : "");
        pnb__json_put(b, "{\"index\":%zu,\"answer\":%s,\"label\":", i, is_some ? "found" : "none");
        if (is_some)
            pnb__json_append_string(b, best);
        else
            pnb__buf_puts(b, "null");
        pnb__buf_puts(b, ",\"classes\":[");
        for (size_t k = first; k < first + p->k; k++) {
            size_t c = (size_t)p->top[k];
            pnb__buf_puts(b, k > first ? "," : "");
            pnb__json_put(b, "{\"label\":%s,\"index\":%zu,\"probability\":%f,\"score\":%f}",
                          json_string_value(json_array_get(labels, c)), c, p->probability[k],
                          p->score[k]);
        }
        pnb__buf_puts(b, "]}");
    }
    pnb__buf_puts(b, "]}\n");
}

static pnb_status classify(pnb__served *s, const json_t *body, pnb_embeddings *const set[2],
                           size_t n_each, pnb__buf *b, pnb_error *err)
{
    pnb__compared c = {0};
    classes k = {0};
    pnb_predictions p = {0};
    pnb_status status;
    PNB_TRY(pnb__compared_init(&c, set[0], set[1], NULL, err));
    PNB_TRY(make_classes(&c.b.rows, n_each, &k, err));
    const pnb_classify_job job = {.images = &c.a.rows,
                                  .classes = &k.rows,
                                  .measure = c.measure,
                                  .opts = &c.opts,
                                  .scale = scale_of(&c),
                                  .k = PNB_MIN(pnb__field_size(body, "k", 5), k.rows.n)};
    PNB_TRY(pnb_classify(s->server->ctx, &job, &p, err));
    put_reply(s, pnb__field_of(body, "labels"), &p, pnb__field_real(body, "min_probability", 0), b);
done:
    pnb_predictions_reset(&p);
    pnb__free(k.values);
    pnb__compared_reset(&c);
    return status;
}

static pnb_status run(pnb__served *s, const pnb__http_request *q, const json_t *body,
                      pnb__http_reply *r, pnb_error *err)
{
    pnb__inputs in[2] = {0};
    pnb_embeddings *set[2] = {NULL, NULL};
    pnb__arena arena;
    size_t n_each = 1;
    pnb_status status;
    pnb__arena_init(&arena, 4096);
    PNB_TRY(pnb__server_check_model(s, body, err));
    PNB_TRY(pnb__inputs_read(&in[0], pnb__field_of(body, "input"), "input", err));
    PNB_TRY(make_prompts(body, &arena, &in[1], &n_each, err));
    PNB_TRY(pnb__server_encode_lists(s, q, in, 2, set, err));
    status = classify(s, body, set, n_each, &r->body, err);
done:
    for (size_t i = 0; i < 2; i++) {
        pnb_embeddings_free(set[i]);
        pnb__inputs_reset(&in[i]);
    }
    pnb__arena_free(&arena);
    return status;
}

const pnb__route pnb__route_classify = {
    .method = "POST",
    .path = "/v1/classify",
    .summary = "The class of each input among labels of the request",
    PNB__FIELDS(fields),
    .answer = "{\"type\":\"object\",\"required\":[\"object\",\"model\",\"data\"],\"properties\":"
              "{\"data\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":"
              "[\"index\",\"answer\",\"label\",\"classes\"]}}}}",
    .run = run};
