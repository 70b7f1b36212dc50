/* One line of a file of questions:
 *   {"question_id", "candidates": [text...], "answers": [text or {"answer": text}...],
 *    "scores": [...], "uncertainties": [...], "image" or "image_id", "answer_type"}
 * Ids may be texts or whole numbers; scores and uncertainties are read only where no embedding sets
 * give them. Texts are borrowed from the parsed line, which the question owns. */
#include "commands/eval/vqa/vqa_question.h"

#include <stdio.h>
#include <string.h>

void pnb__question_reset(pnb__question *q)
{
    json_decref(q->root);
    pnb__free(q->candidates);
    pnb__free(q->answers);
    pnb__free(q->scores);
    pnb__free(q->uncertainty);
    *q = (pnb__question){0};
}

/* An id as text, from a string or a whole number; empty where the field is absent. */
static pnb_status read_id(const json_t *root, const char *key, char out[PNB__MAX_QUESTION_ID],
                          pnb_error *err)
{
    const json_t *value = json_object_get(root, key);
    int n = 0;
    out[0] = '\0';
    if (value == NULL || json_is_null(value))
        return PNB_OK;
    if (json_is_string(value))
        n = snprintf(out, PNB__MAX_QUESTION_ID, "%s", json_string_value(value));
    else if (json_is_integer(value) && json_integer_value(value) >= 0)
        n = snprintf(out, PNB__MAX_QUESTION_ID, "%lld", (long long)json_integer_value(value));
    else
        return pnb__fail(err, PNB_FORMAT, "\"%s\" is neither a text nor a whole number from 0",
                         key);
    if (n == 0 || n >= PNB__MAX_QUESTION_ID)
        return pnb__fail(err, PNB_FORMAT, "\"%s\" has %d bytes; 1 to %d are read", key, n,
                         (int)PNB__MAX_QUESTION_ID - 1);
    return PNB_OK;
}

static pnb_status read_names(pnb__question *q, size_t number, pnb_error *err)
{
    const json_t *type = json_object_get(q->root, "answer_type");
    pnb_status status;
    PNB_TRY(read_id(q->root, "question_id", q->id, err));
    if (q->id[0] == '\0')
        snprintf(q->id, sizeof q->id, "%zu", number);
    PNB_TRY(read_id(q->root, "image", q->image, err));
    if (q->image[0] == '\0')
        PNB_TRY(read_id(q->root, "image_id", q->image, err));
    if (type != NULL && !json_is_null(type) && !json_is_string(type))
        return pnb__fail(err, PNB_FORMAT, "\"answer_type\" is no text");
    q->type = json_string_value(type);
done:
    return status;
}

/* A list of texts; people's answers may be objects with "answer". */
static pnb_status read_texts(const json_t *root, const char *key, const char ***out, size_t *n,
                             pnb_error *err)
{
    const json_t *list = json_object_get(root, key);
    *n = json_array_size(list);
    if (*n == 0)
        return pnb__fail(err, PNB_FORMAT, "\"%s\" is not a list with at least one text", key);
    if (PNB_ALLOC(*out, *n, err) != PNB_OK)
        return PNB_NOMEM;
    for (size_t i = 0; i < *n; i++) {
        const json_t *item = json_array_get(list, i);
        (*out)[i] =
            json_string_value(json_is_object(item) ? json_object_get(item, "answer") : item);
        if ((*out)[i] == NULL)
            return pnb__fail(err, PNB_FORMAT, "\"%s\"[%zu] is not a text", key, i);
    }
    return PNB_OK;
}

/* A list of as many numbers as there are candidates, or nothing. */
static pnb_status read_numbers(const json_t *root, const char *key, size_t n, double **out,
                               pnb_error *err)
{
    const json_t *list = json_object_get(root, key);
    if (list == NULL || json_is_null(list))
        return PNB_OK;
    if (json_array_size(list) != n)
        return pnb__fail(err, PNB_FORMAT, "\"%s\" is not a list of %zu numbers, one a candidate",
                         key, n);
    if (PNB_ALLOC(*out, n, err) != PNB_OK)
        return PNB_NOMEM;
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(list, i);
        if (!json_is_number(item))
            return pnb__fail(err, PNB_FORMAT, "\"%s\"[%zu] is not a number", key, i);
        (*out)[i] = json_number_value(item);
    }
    return PNB_OK;
}

pnb_status pnb__question_read_unit(pnb__question *q, const char *key, pnb_error *err)
{
    if (key == NULL) {
        memcpy(q->unit, q->image, sizeof q->unit);
        return PNB_OK;
    }
    pnb_status status = read_id(q->root, key, q->unit, err);
    if (status != PNB_OK)
        pnb__error_prefix(err, "--cluster");
    else if (q->unit[0] == '\0')
        status = pnb__fail(err, PNB_NOT_FOUND, "--cluster %s: the question has no such field", key);
    return status;
}

pnb_status pnb__question_parse(pnb__question *q, const char *line, size_t n, size_t number,
                               pnb_error *err)
{
    pnb_vqa_question *view = &q->q;
    pnb_status status;
    PNB_TRY(pnb__json_load_bytes(&q->root, line, n, "question", err));
    if (!json_is_object(q->root))
        return pnb__fail(err, PNB_FORMAT, "not a JSON object");
    PNB_TRY(read_names(q, number, err));
    PNB_TRY(read_texts(q->root, "candidates", &q->candidates, &view->n_candidates, err));
    PNB_TRY(read_texts(q->root, "answers", &q->answers, &view->n_answers, err));
    view->candidates = q->candidates;
    view->answers = q->answers;
done:
    return status;
}

pnb_status pnb__question_read_scores(pnb__question *q, pnb_error *err)
{
    size_t n = q->q.n_candidates;
    pnb_status status = read_numbers(q->root, "scores", n, &q->scores, err);
    if (status == PNB_OK)
        status = read_numbers(q->root, "uncertainties", n, &q->uncertainty, err);
    return status;
}
