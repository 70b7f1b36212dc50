/* Changed pictures: what was asked for, read from words, and what was found, as tables.
 *
 * The changing itself is in changed_images.c. A column that a run has nothing for is left out of
 * both tables. */
#include "commands/classify/changed_tables.h"

#include <math.h>

#include "base/base.h"

/* ---- options ---- */

static pnb_status read_shares(pnb__app *app, pnb__changed_opts *o)
{
    for (size_t i = 0; i < o->share_words.n; i++) {
        const char *word = o->share_words.items[i];
        if (!pnb__read_real(word, &o->share[i]) || !(o->share[i] >= 0 && o->share[i] <= 1))
            return pnb__usage(app, "--occlusion %s: a number from 0 to 1 is wanted", word);
        if (i > 0 && !(o->share[i] > o->share[i - 1]))
            return pnb__usage(app, "--occlusion %s: shares must ascend", word);
    }
    o->n_shares = o->share_words.n;
    return PNB_OK;
}

static pnb_status read_steps(pnb__app *app, pnb__changed_opts *o)
{
    for (size_t i = 0; i < o->step_words.n; i++) {
        const char *word = o->step_words.items[i];
        int64_t steps = 0;
        if (!pnb__read_int(word, &steps) || steps < 1 || steps > 100000)
            return pnb__usage(app, "--attack-steps %s: a whole number from 1 is wanted", word);
        o->steps[i] = (size_t)steps;
        if (i > 0 && o->steps[i] <= o->steps[i - 1])
            return pnb__usage(app, "--attack-steps %s: numbers must ascend", word);
    }
    o->n_steps = o->step_words.n;
    return PNB_OK;
}

pnb_status pnb__changed_opts_read(pnb__app *app, pnb__changed_opts *o)
{
    if (o->share_words.n > PNB__MAX_CHANGES || o->step_words.n > PNB__MAX_CHANGES)
        return pnb__usage(app, "--occlusion and --attack-steps take at most %d values",
                          PNB__MAX_CHANGES);
    if (o->step_words.n == 0 && (!isnan(o->eps) || !isnan(o->step)))
        return pnb__usage(app, "--attack-eps and --attack-step need --attack-steps");
    if (o->step_words.n == 0 && o->share_words.n == 0 && o->limit > 0)
        return pnb__usage(app, "--changed-limit needs --occlusion or --attack-steps");
    pnb_status status = read_shares(app, o);
    return status == PNB_OK ? read_steps(app, o) : status;
}

/* ---- tables ---- */

/* Columns that a run has not are left out: no uncertainty of points, no second accuracy of runs
 * that decide by means, no control of occlusion. */
typedef struct shape {
    bool has_plain, has_u, is_attack;
} shape;

enum {
    AT,
    ACC,
    ACC_LOW,
    ACC_HIGH,
    PLAIN,
    PLAIN_LOW,
    PLAIN_HIGH,
    U,
    U_LOW,
    U_HIGH,
    LOSS,
    CHANGE,
    CONTROL_ACC,
    CONTROL_PLAIN,
    CONTROL_U,
    CONTROL_LOSS,
    N_COLUMNS
};

static bool is_shown(const shape *s, int column)
{
    switch (column) {
    case PLAIN:
    case PLAIN_LOW:
    case PLAIN_HIGH:
        return s->has_plain;
    case U:
    case U_LOW:
    case U_HIGH:
        return s->has_u;
    case CHANGE:
    case CONTROL_ACC:
    case CONTROL_LOSS:
        return s->is_attack;
    case CONTROL_PLAIN:
        return s->is_attack && s->has_plain;
    case CONTROL_U:
        return s->is_attack && s->has_u;
    default:
        return true;
    }
}

static void begin(const shape *s, const char *key, const char *heading, pnb__result *r)
{
    const pnb__column all[N_COLUMNS] = {
        [AT] = {s->is_attack ? "steps" : "share", s->is_attack ? "steps" : "share gone"},
        [ACC] = {"acc1", "top-1 accuracy"},
        [ACC_LOW] = {"acc1_low", "95% from"},
        [ACC_HIGH] = {"acc1_high", "to"},
        [PLAIN] = {"acc1_means", "by means alone"},
        [PLAIN_LOW] = {"acc1_means_low", NULL},
        [PLAIN_HIGH] = {"acc1_means_high", NULL},
        [U] = {"uncertainty", "uncertainty"},
        [U_LOW] = {"uncertainty_low", NULL},
        [U_HIGH] = {"uncertainty_high", NULL},
        [LOSS] = {"nll", "-log p(label)"},
        [CHANGE] = {"change", "change (of 255)"},
        [CONTROL_ACC] = {"noise_acc1", "noise: top-1"},
        [CONTROL_PLAIN] = {"noise_acc1_means", NULL},
        [CONTROL_U] = {"noise_uncertainty", "noise: uncertainty"},
        [CONTROL_LOSS] = {"noise_nll", NULL}};
    pnb__column shown[N_COLUMNS];
    size_t n = 0;
    for (int c = 0; c < N_COLUMNS; c++)
        if (is_shown(s, c))
            shown[n++] = all[c];
    pnb__result_table(r, key, heading, shown, n);
}

static void put_point(const shape *s, const pnb__changed_point *p, const pnb__changed_point *noise,
                      pnb__result *r)
{
    const double none = (double)NAN;
    const double values[N_COLUMNS] = {[AT] = p->at,
                                      [ACC] = p->acc1.value,
                                      [ACC_LOW] = p->acc1.low,
                                      [ACC_HIGH] = p->acc1.high,
                                      [PLAIN] = p->plain.value,
                                      [PLAIN_LOW] = p->plain.low,
                                      [PLAIN_HIGH] = p->plain.high,
                                      [U] = p->u,
                                      [U_LOW] = p->u - p->u_half,
                                      [U_HIGH] = p->u + p->u_half,
                                      [LOSS] = p->loss,
                                      [CHANGE] = p->change,
                                      [CONTROL_ACC] = noise != NULL ? noise->acc1.value : none,
                                      [CONTROL_PLAIN] = noise != NULL ? noise->plain.value : none,
                                      [CONTROL_U] = noise != NULL ? noise->u : none,
                                      [CONTROL_LOSS] = noise != NULL ? noise->loss : none};
    for (int c = 0; c < N_COLUMNS; c++) {
        if (!is_shown(s, c))
            continue;
        if (c == AT && s->is_attack)
            pnb__result_cell_int(r, (int64_t)p->at);
        else
            pnb__result_cell_real(r, values[c],
                                  c == AT                                                 ? 3
                                  : c == CHANGE                                           ? 2
                                  : c == U || c == U_LOW || c == U_HIGH || c == CONTROL_U ? 6
                                                                                          : 4);
    }
}

void pnb__changed_put(const pnb__changed *changed, const pnb__changed_opts *o, pnb__result *r)
{
    shape s = {changed->has_plain, changed->has_u, false};
    if (changed->n_images == 0)
        return;
    pnb__result_int(r, "n_changed", "pictures that were changed", (int64_t)changed->n_images);
    if (o->n_shares > 0)
        begin(&s, "occlusion", "middle of the pictures erased", r);
    for (size_t i = 0; i < o->n_shares; i++)
        put_point(&s, &changed->occlusion[i], NULL, r);
    if (o->n_steps == 0)
        return;
    pnb__result_real(r, "attack_eps", "attack: no pixel moves further (of 255)",
                     isnan(o->eps) ? 8.0 : o->eps, 3);
    pnb__result_real(r, "attack_step", "  a step", isnan(o->step) ? 2.0 : o->step, 3);
    s.is_attack = true;
    begin(&s, "attack", "projected gradient descent, and noise of the same size", r);
    for (size_t i = 0; i <= o->n_steps; i++)
        put_point(&s, &changed->attack[i], &changed->control[i], r);
}
