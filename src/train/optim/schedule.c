/* Learning rates by step, as open_clip's scheduler.py and torch's CosineAnnealingLR (closed form)
 * give them; formulas in include/penumbra/optim.h. A rate depends on the step alone, so a resumed
 * run needs no state here. */
#include "base/names.h"
#include "penumbra/optim.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846

PNB_DEFINE_NAME(pnb_schedule_name, pnb_schedule_kind, PNB_NAMES(PNB_SCHEDULE_LIST), NULL)

/* min + (base - min) (1 + cos(pi share)) / 2: base at share 0, min at share 1. open_clip's min is
 * 0, which leaves the last steps of a short run without effect. */
static double cosine(const pnb_schedule *s, double share)
{
    double min = s->min_ratio * s->base;
    return min + (s->base - min) * 0.5 * (1 + cos(PI * share));
}

/* const-cooldown: base, then (1 - (t - start) / cooldown)^power (base - end) + end over the last
 * `cooldown` steps. */
static double cooldown(const pnb_schedule *s, int64_t step)
{
    int64_t start = s->total - s->cooldown;
    if (step < start || s->cooldown <= 0)
        return s->base;
    double left = 1 - (double)(step - start) / (double)s->cooldown;
    return pow(left > 0 ? left : 0, s->cooldown_power) * (s->base - s->cooldown_end) +
           s->cooldown_end;
}

/* multistep: base gamma^n behind n milestones, as torch's MultiStepLR. */
static double multistep(const pnb_schedule *s, int64_t step)
{
    double rate = s->base;
    for (size_t i = 0; i < PNB_MAX_MILESTONES && s->milestones[i] > 0; i++)
        if (step >= s->milestones[i])
            rate *= s->gamma;
    return rate;
}

/* Rate of step t = 0, 1, ...: warm-up base (t + 1) / warmup, so that even the first step learns;
 * then the schedule over what is left. torch's cosine knows no warm-up and no end: past T it
 * rises. */
static double course(const pnb_schedule *s, int64_t step)
{
    if (s->kind == PNB_SCHEDULE_TORCH_COSINE)
        return cosine(s, s->total > 0 ? (double)step / (double)s->total : 0);
    if (step < s->warmup)
        return s->base * (double)(step + 1) / (double)s->warmup;
    switch (s->kind) {
    case PNB_SCHEDULE_COOLDOWN:
        return cooldown(s, step);
    case PNB_SCHEDULE_MULTISTEP:
        return multistep(s, step);
    case PNB_SCHEDULE_COSINE: {
        int64_t span = s->total - s->warmup;
        /* a run that is all warm-up ends at the least rate */
        double share = span > 0 ? (double)(step - s->warmup) / (double)span : 1;
        return cosine(s, share < 1 ? share : 1);
    }
    default:
        return s->base;
    }
}

/* Two phases are two courses, as two trainings one behind the other would be: PCME's cosine begins
 * anew where all weights are trained. Milestones are those of the one run that PCME++ has, whose
 * trunk joins in later. */
double pnb_schedule_lr(const pnb_schedule *s, int64_t step)
{
    pnb_schedule part = *s;
    if (s->restart <= 0 || s->kind == PNB_SCHEDULE_MULTISTEP)
        return course(s, step);
    part.total = step < s->restart ? s->restart : s->total - s->restart;
    return course(&part, step < s->restart ? step : step - s->restart);
}
