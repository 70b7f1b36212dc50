/* What is known of rows: a number in their further fields, or how many pictures a caption fits.
 *
 * A caption that is true of m pictures leaves open which of them was meant: log2 m bits. What a
 * field holds is its writer's matter: entropy in bits, or the dose of what was done to a picture.
 */
#include "commands/eval/uncertainty/known_rows.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "sets/set_rows.h"

enum { FIELD_SCORE = 4 };

pnb_status pnb__known_side_init(pnb__known_side *side, const pnb_embeddings *set, pnb_error *err)
{
    pnb_status status;
    *side = (pnb__known_side){.set = set};
    PNB_TRY(PNB_ALLOC(side->known, set->n, err));
    PNB_TRY(PNB_ALLOC(side->level, set->n, err));
    PNB_TRY(PNB_ALLOC(side->cluster, set->n, err));
    for (size_t i = 0; i < set->n; i++) {
        side->known[i] = (double)NAN;
        side->cluster[i] = (int64_t)i;
        PNB_TRY(pnb__row_level(&side->level[i], set, i, err));
    }
done:
    return status;
}

void pnb__known_side_reset(pnb__known_side *side)
{
    pnb__free(side->known);
    pnb__free(side->level);
    pnb__free(side->cluster);
    for (size_t s = 0; s < PNB__MAX_KNOWN_SCORES; s++)
        pnb__free(side->score[s]);
    *side = (pnb__known_side){0};
}

/* ---- a field ---- */

/* The value at "a.b.c", NULL where there is none; borrowed. */
static const json_t *value_at(const json_t *root, const char *field)
{
    while (root != NULL) {
        char key[96];
        size_t n = strcspn(field, ".");
        snprintf(key, sizeof key, "%.*s", (int)n, field);
        root = json_object_get(root, key);
        if (field[n] == '\0')
            break;
        field += n + 1;
    }
    return root;
}

/* NaN where the row has none. */
static pnb_status read_field(const pnb__known_side *side, size_t row, const char *field,
                             double *out, pnb_error *err)
{
    json_t *root = NULL;
    pnb_status status = pnb__set_extra(&root, side->set, row, err);
    if (status != PNB_OK)
        return status;
    const json_t *value = value_at(root, field);
    *out = json_is_number(value) ? json_number_value(value) : (double)NAN;
    if (!json_is_number(value) && value != NULL && !json_is_null(value))
        status = pnb__fail(err, PNB_FORMAT, "row %zu: \"%s\" is not a number", row, field);
    json_decref(root);
    return status;
}

/* What the first row has, so that a misspelt name is found. */
static pnb_status refuse_field(const pnb_embeddings *set, const char *field, pnb_error *err)
{
    json_t *root = NULL;
    pnb__buf has = {0};
    pnb_status status = pnb__set_extra(&root, set, 0, err);
    for (void *it = json_object_iter(root); it != NULL; it = json_object_iter_next(root, it)) {
        const json_t *value = json_object_iter_value(it);
        pnb__buf_printf(&has, "%s%s%s", has.size > 0 ? ", " : "", json_object_iter_key(it),
                        json_is_object(value) ? " {...}" : "");
    }
    if (status == PNB_OK)
        status = pnb__fail(
            err, PNB_NOT_FOUND,
            "no row has the field \"%s\"; the first row has %.300s. embed carries "
            "\"ambiguity\", \"entropy_bits\", \"expected_bits\" and \"dose\" of the records along",
            field, has.size > 0 ? has.data : "no further fields");
    pnb__buf_reset(&has);
    json_decref(root);
    return status;
}

pnb_status pnb__known_from_field(pnb__known_side *side, const char *path, const char *field,
                                 pnb_error *err)
{
    pnb_status status = PNB_OK;
    snprintf(side->from, sizeof side->from, "%s", field);
    for (size_t i = 0; i < side->set->n && status == PNB_OK; i++) {
        status = read_field(side, i, field, &side->known[i], err);
        side->n_missing += isnan(side->known[i]) ? 1 : 0;
    }
    if (status == PNB_OK && side->n_missing == side->set->n)
        status = refuse_field(side->set, field, err);
    if (status != PNB_OK)
        pnb__error_prefix(err, "%s", path);
    return status;
}

pnb_status pnb__known_field_control(pnb__known_side *side, const char *path, const char *field,
                                    pnb_error *err)
{
    size_t n_there = 0, missing = 0;
    double *score = NULL;
    pnb_status status;
    PNB_TRY(PNB_ALLOC(score, side->set->n, err));
    for (size_t i = 0; i < side->set->n; i++) {
        PNB_TRY(read_field(side, i, field, &score[i], err));
        if (isnan(score[i]))
            missing = i;
        else
            n_there++;
    }
    if (n_there == 0)
        PNB_TRY(refuse_field(side->set, field, err));
    if (n_there < side->set->n)
        PNB_TRY(pnb__fail(err, PNB_NOT_FOUND, "row %zu has no field \"%s\", which others have",
                          missing, field));
    side->score[FIELD_SCORE] = score;
    side->name[FIELD_SCORE] = field;
    score = NULL;
done:
    pnb__free(score);
    if (status != PNB_OK)
        pnb__error_prefix(err, "%s", path);
    return status;
}

/* ---- labels of people ---- */

pnb_status pnb__known_from_labels(pnb__known_side *side, const char *path, pnb_error *err)
{
    const pnb_truth_rows rows = pnb_truth_rows_of(side->set);
    pnb_status status = pnb_label_entropy_load(side->known, path, &rows, err);
    snprintf(side->from, sizeof side->from, "label entropy");
    for (size_t i = 0; status == PNB_OK && i < side->set->n; i++)
        side->n_missing += isnan(side->known[i]) ? 1 : 0;
    return status;
}

/* ---- the truth ---- */

void pnb__known_from_truth(pnb__known_side *side, const pnb_truth *backward)
{
    snprintf(side->from, sizeof side->from, "truth");
    for (size_t t = 0; t < side->set->n; t++) {
        size_t n = backward->offset[t + 1] - backward->offset[t];
        if (backward->n_outside != NULL)
            n += backward->n_outside[t];
        if (n > 0)
            side->known[t] = log2((double)n);
        else
            side->n_missing++;
    }
}
