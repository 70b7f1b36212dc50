/* Golden family optimizers: runs the case's problem itself in double precision,
 *   loss = mean((X W^T + b - Y)^2) + mean(sin(Z normalise_rows(T)^T)),
 * for all its steps, and gives losses, rates, clipped gradients and values of every step; or gives
 * the learning rates of every schedule. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/golden/golden.h"
#include "train/optim/optim.h"

enum { W, B, T, N_PARAMS };
static const char *const names[N_PARAMS] = {"W", "b", "T"};

typedef struct problem {
    pnb__graph *graph;
    pnb__tensor *loss, *x, *y, *z;
    pnb__param params[N_PARAMS];
    pnb__optim *optim;
    pnb_schedule schedule;
    size_t n_steps;
    double *grads[N_PARAMS], *values[N_PARAMS], *losses, *rates;
} problem;

/* ---- hyperparameters ---- */

static const char *function_of(const golden_case *c)
{
    const json_t *reference = json_object_get(c->root, "reference");
    const char *function = json_string_value(json_object_get(reference, "function"));
    return function != NULL ? function : "";
}

static bool read_kind(const char *function, pnb_optim_kind *kind)
{
    static const struct {
        const char *name;
        pnb_optim_kind kind;
    } kinds[] = {{"AdamP", PNB_OPTIM_ADAMP},
                 {"AdamW", PNB_OPTIM_ADAMW},
                 {"Adam", PNB_OPTIM_ADAM},
                 {"SGDP", PNB_OPTIM_SGDP},
                 {"SGD", PNB_OPTIM_SGD}};
    for (size_t i = 0; i < PNB_COUNT(kinds); i++)
        if (pnb__starts_with(function, kinds[i].name)) {
            *kind = kinds[i].kind;
            return true;
        }
    return false;
}

static double list_number(const golden_case *c, const char *path, size_t i, double fallback)
{
    const json_t *item = json_array_get(golden_value(c, path), i);
    return json_is_number(item) ? json_number_value(item) : fallback;
}

/* torch's own defaults stand where the case is silent. */
static pnb_optim_opts read_opts(const golden_case *c, pnb_optim_kind kind)
{
    pnb_optim_opts o = pnb_optim_opts_default();
    o.kind = kind;
    o.lr = golden_number(c, "lr", 1e-3);
    o.beta1 = golden_number(c, "beta1", list_number(c, "betas", 0, 0.9));
    o.beta2 = golden_number(c, "beta2", list_number(c, "betas", 1, 0.999));
    o.eps = golden_number(c, "eps", 1e-8);
    o.momentum = golden_number(c, "momentum", 0);
    o.dampening = golden_number(c, "dampening", 0);
    o.nesterov = golden_flag(c, "nesterov", false);
    o.delta = golden_number(c, "delta", 0.1);
    o.wd_ratio = golden_number(c, "wd_ratio", 0.1);
    o.grad_clip_norm = golden_number(c, "grad_clip_norm", 0);
    o.weight_decay = 0;
    return o;
}

/* A number for all parameters, or {"b": 0, "W,T": 0.1}. */
static double read_decay(const golden_case *c, const char *name)
{
    const json_t *decay = golden_value(c, "weight_decay");
    if (!json_is_object(decay))
        return golden_number(c, "weight_decay", golden_number(c, "weight_decay_l2", 0));
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)decay, key, value)
    {
        for (const char *at = key; *at != '\0'; at += strcspn(at, ","), at += *at == ',')
            if (strcspn(at, ",") == strlen(name) && strncmp(at, name, strlen(name)) == 0)
                return json_number_value(value);
    }
    return 0;
}

static pnb_schedule read_schedule(const golden_case *c)
{
    const char *function = function_of(c);
    double base = golden_number(c, "lr", 1e-3);
    pnb_schedule s = {.kind = PNB_SCHEDULE_CONST, .base = base};
    s.warmup = (int64_t)golden_number(c, "warmup", 0);
    s.total = (int64_t)golden_number(c, "total", golden_number(c, "steps", 20));
    if (golden_value(c, "T_max") != NULL) {
        s.kind = PNB_SCHEDULE_TORCH_COSINE;
        s.total = (int64_t)golden_number(c, "T_max", 20);
        s.min_ratio = golden_number(c, "eta_min", 0) / base;
    } else if (strstr(function, "cooldown") != NULL) {
        s.kind = PNB_SCHEDULE_COOLDOWN;
        s.cooldown = (int64_t)golden_number(c, "cooldown_steps", golden_number(c, "cooldown", 0));
        s.cooldown_power = golden_number(c, "cooldown_power", 1);
        s.cooldown_end = golden_number(c, "cooldown_end_lr", 0);
    } else if (strstr(function, "cosine_lr") != NULL) {
        s.kind = PNB_SCHEDULE_COSINE;
    }
    return s;
}

/* ---- the problem ---- */

static pnb_status read_param(pnb__param *p, const golden_case *c, const char *name, pnb_error *err)
{
    char full[16];
    snprintf(full, sizeof full, "init.%s", name);
    const pnb_array_view *view = golden_find(c, full);
    if (view == NULL || view->n_dims > PNB__DIMS)
        return pnb__fail(err, PNB_NOT_FOUND, "the case has no usable %s", full);
    *p = (pnb__param){.name = name, .n_dims = view->n_dims, .trainable = true};
    for (int d = 0; d < view->n_dims; d++)
        p->shape[d] = (size_t)view->shape[d];
    p->data = golden_f64(c, full, &p->n, err);
    return p->data == NULL ? PNB_NOMEM : PNB_OK;
}

static pnb__tensor *data_input(pnb__graph *g, const golden_case *c, const char *name)
{
    const pnb_array_view *view = golden_find(c, name);
    if (view == NULL || view->n_dims != 2)
        return NULL;
    return pnb__input(g, PNB__REAL, 2, (size_t[]){(size_t)view->shape[0], (size_t)view->shape[1]});
}

static pnb_status write_data(const golden_case *c, pnb__tensor *t, const char *name, pnb_error *err)
{
    double *values = golden_f64(c, name, NULL, err);
    if (values == NULL)
        return PNB_NOT_FOUND;
    pnb__write_f64(t, values);
    pnb__free(values);
    return PNB_OK;
}

static pnb_status build_problem(problem *p, golden_case *c, pnb_error *err)
{
    pnb_status status = pnb__graph_create(&p->graph, c->ctx, PNB__F64, true, err);
    if (status != PNB_OK)
        return status;
    p->x = data_input(p->graph, c, "data.X");
    p->y = data_input(p->graph, c, "data.Y");
    p->z = data_input(p->graph, c, "data.Z");
    const pnb__linear_opts bias = {.bias = pnb__param_tensor(p->graph, &p->params[B]),
                                   .act = PNB__IDENTITY};
    pnb__tensor *fit = pnb__linear(p->x, pnb__param_tensor(p->graph, &p->params[W]), &bias);
    pnb__tensor *square = pnb__apply(PNB__SQUARE, pnb__sub(fit, p->y));
    const pnb__param *t = &p->params[T];
    const size_t rows[2] = {t->shape[0], t->n / t->shape[0]};
    pnb__tensor *flat = pnb__reshape(pnb__param_tensor(p->graph, &p->params[T]), 2, rows);
    pnb__tensor *angles = pnb__matmul(p->z, false, pnb__l2_normalize(flat, 1e-12), true);
    pnb__tensor *waves = pnb__mean(pnb__apply(PNB__SIN, angles), PNB__ALL_AXES);
    p->loss = pnb__add(pnb__mean(square, PNB__ALL_AXES), waves);
    if (p->loss == NULL)
        pnb__graph_plan(p->graph, NULL, err);
    if (p->loss == NULL)
        return pnb__fail(err, PNB_SHAPE, "the problem cannot be built from the case's shapes");
    status = pnb__graph_plan(p->graph, p->loss, err);
    if (status == PNB_OK)
        status = write_data(c, p->x, "data.X", err);
    if (status == PNB_OK)
        status = write_data(c, p->y, "data.Y", err);
    return status == PNB_OK ? write_data(c, p->z, "data.Z", err) : status;
}

static pnb_status make_optim(problem *p, golden_case *c, pnb_error *err)
{
    pnb_optim_kind kind;
    pnb__param *const params[N_PARAMS] = {&p->params[W], &p->params[B], &p->params[T]};
    if (!read_kind(function_of(c), &kind))
        return pnb__fail(err, PNB_UNSUPPORTED, "unknown optimiser \"%s\"", function_of(c));
    const pnb_optim_opts opts = read_opts(c, kind);
    pnb_status status =
        pnb__optim_create(&p->optim, c->ctx, PNB__F64, params, N_PARAMS, &opts, err);
    for (size_t i = 0; status == PNB_OK && i < N_PARAMS; i++)
        p->optim->slots[i].weight_decay = read_decay(c, names[i]);
    return status;
}

static pnb_status make_records(problem *p, pnb_error *err)
{
    p->losses = pnb__alloc_zero(p->n_steps + 1, sizeof(double));
    p->rates = pnb__alloc_zero(p->n_steps + 1, sizeof(double));
    bool ok = p->losses != NULL && p->rates != NULL;
    for (int i = 0; i < N_PARAMS; i++) {
        p->grads[i] = pnb__alloc_zero(p->n_steps * p->params[i].n + 1, sizeof(double));
        p->values[i] = pnb__alloc_zero(p->n_steps * p->params[i].n + 1, sizeof(double));
        ok = ok && p->grads[i] != NULL && p->values[i] != NULL;
    }
    return ok ? PNB_OK : pnb__fail(err, PNB_NOMEM, "out of memory for %zu steps", p->n_steps);
}

static pnb_status run_step(problem *p, size_t step, pnb_error *err)
{
    pnb_status status = pnb__graph_run(p->graph, err);
    if (status != PNB_OK)
        return status;
    double factor = pnb__optim_clip_factor(p->optim, pnb__optim_grad_norm(p->optim));
    for (int i = 0; i < N_PARAMS; i++) {
        size_t n = p->params[i].n;
        p->optim->kernels.mem_read(NULL, p->grads[i] + step * n, p->params[i].grad,
                                   n * sizeof(double), NULL);
        for (size_t j = 0; j < n; j++)
            p->grads[i][step * n + j] *= factor;
    }
    p->losses[step] = pnb__read_scalar(p->loss);
    p->rates[step] = pnb_schedule_lr(&p->schedule, (int64_t)step);
    pnb__optim_step(p->optim, p->rates[step], factor);
    for (int i = 0; i < N_PARAMS; i++) {
        size_t n = p->params[i].n;
        pnb__param_read(&p->params[i], &p->optim->kernels, 0, n, p->values[i] + step * n, NULL);
    }
    return PNB_OK;
}

static void give_records(golden_case *c, const problem *p)
{
    char name[32];
    golden_give(c, "loss", p->losses, p->n_steps);
    golden_give(c, "lr", p->rates, p->n_steps);
    for (int i = 0; i < N_PARAMS; i++) {
        snprintf(name, sizeof name, "grad.%s", names[i]);
        golden_give(c, name, p->grads[i], p->n_steps * p->params[i].n);
        snprintf(name, sizeof name, "value.%s", names[i]);
        golden_give(c, name, p->values[i], p->n_steps * p->params[i].n);
    }
}

static void free_problem(problem *p)
{
    pnb__graph_free(p->graph);
    pnb__optim_free(p->optim);
    for (int i = 0; i < N_PARAMS; i++) {
        pnb__free(p->params[i].data);
        pnb__free(p->grads[i]);
        pnb__free(p->values[i]);
    }
    pnb__free(p->losses);
    pnb__free(p->rates);
}

static pnb_status run_problem(golden_case *c, pnb_error *err)
{
    problem p = {0};
    pnb_status status = PNB_OK;
    for (int i = 0; i < N_PARAMS; i++)
        PNB_TRY(read_param(&p.params[i], c, names[i], err));
    p.n_steps = (size_t)golden_number(c, "steps", 20);
    p.schedule = read_schedule(c);
    PNB_TRY(build_problem(&p, c, err));
    PNB_TRY(make_optim(&p, c, err));
    PNB_TRY(make_records(&p, err));
    for (size_t step = 0; step < p.n_steps; step++)
        PNB_TRY(run_step(&p, step, err));
    give_records(c, &p);
done:
    free_problem(&p);
    return status;
}

/* ---- schedules ---- */

/* "... T_max=20 eta_min=3e-07" in the meaning of a tensor. */
static double meaning_number(const golden_case *c, const char *tensor, const char *key,
                             double fallback)
{
    const json_t *entry = json_object_get(json_object_get(c->root, "tensors"), tensor);
    const char *meaning = json_string_value(json_object_get(entry, "meaning"));
    const char *at = meaning == NULL ? NULL : strstr(meaning, key);
    return at == NULL || at[strlen(key)] != '=' ? fallback : strtod(at + strlen(key) + 1, NULL);
}

/* The cases do not say how long the cool-down is nor where it ends: both are read off the curve
 * (last step at the base rate, and the last rate), which leaves every other value to be checked. */
static void find_cooldown(const golden_case *c, const char *tensor, pnb_schedule *s)
{
    pnb_error err = PNB_ERROR_INIT;
    size_t n = 0;
    double *want = golden_f64(c, tensor, &n, &err);
    s->cooldown = (int64_t)golden_number(c, "cooldown_steps", -1);
    s->cooldown_end = golden_number(c, "cooldown_end_lr", NAN);
    if (want != NULL && n > 0 && s->cooldown < 0) {
        size_t start = n - 1;
        while (start > 0 && want[start] < s->base)
            start--;
        s->cooldown = (int64_t)(n - start);
    }
    if (want != NULL && n > 0 && isnan(s->cooldown_end)) {
        double left = pow(1 / (double)s->cooldown, s->cooldown_power);
        s->cooldown_end = (want[n - 1] - left * s->base) / (1 - left);
        if (fabs(s->cooldown_end) < 1e-12 * s->base)
            s->cooldown_end = 0;
    }
    pnb__free(want);
}

static pnb_status schedule_of(const golden_case *c, const char *tensor, pnb_schedule *s,
                              pnb_error *err)
{
    double base = golden_number(c, "base_lr", golden_number(c, "lr", 1e-3));
    *s = (pnb_schedule){.base = base,
                        .warmup = (int64_t)golden_number(c, "warmup", 0),
                        .total = (int64_t)golden_number(c, "total", 0),
                        .cooldown_power = 1};
    if (pnb__starts_with(tensor, "torch_cosine")) {
        s->kind = PNB_SCHEDULE_TORCH_COSINE;
        s->total = (int64_t)meaning_number(c, tensor, "T_max", (double)s->total);
        s->min_ratio = meaning_number(c, tensor, "eta_min", 0) / base;
    } else if (pnb__starts_with(tensor, "cooldown_p")) {
        s->kind = PNB_SCHEDULE_COOLDOWN;
        s->cooldown_power = strtod(tensor + strlen("cooldown_p"), NULL);
        find_cooldown(c, tensor, s);
    } else if (pnb__starts_with(tensor, "cosine")) {
        s->kind = PNB_SCHEDULE_COSINE;
    } else if (pnb__starts_with(tensor, "const")) {
        s->kind = PNB_SCHEDULE_CONST;
    } else {
        return pnb__fail(err, PNB_UNSUPPORTED, "unknown schedule \"%s\"", tensor);
    }
    return PNB_OK;
}

static pnb_status run_schedules(golden_case *c, pnb_error *err)
{
    const char *name;
    json_t *entry;
    pnb_status status = PNB_OK;
    json_object_foreach(json_object_get(c->root, "tensors"), name, entry)
    {
        const pnb_array_view *view = golden_find(c, name);
        pnb_schedule s;
        if (status == PNB_OK && view == NULL)
            status = pnb__fail(err, PNB_NOT_FOUND, "the case has no tensor %s", name);
        if (status == PNB_OK)
            status = schedule_of(c, name, &s, err);
        size_t n = status == PNB_OK ? pnb_array_size(view) : 0;
        double *rates = pnb__alloc_zero(n + 1, sizeof *rates);
        for (size_t i = 0; rates != NULL && i < n; i++)
            rates[i] = pnb_schedule_lr(&s, (int64_t)i);
        if (rates != NULL && status == PNB_OK)
            golden_give(c, name, rates, n);
        pnb__free(rates);
    }
    return status;
}

pnb_status golden_family_optimizers(golden_case *c, pnb_error *err)
{
    return golden_find(c, "init.W") != NULL ? run_problem(c, err) : run_schedules(c, err);
}
