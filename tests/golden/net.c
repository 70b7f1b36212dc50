/* Graphs over golden cases: every tensor is a leaf with a gradient, whose value comes from the case
 * and whose gradient goes to it. */
#include "tests/golden/net.h"

#include <string.h>

pnb_status net_init(golden_net *net, golden_case *c, pnb_error *err)
{
    *net = (golden_net){.c = c, .err = err};
    return pnb__graph_create(&net->g, c->ctx, PNB__F64, true, err);
}

void net_reset(golden_net *net)
{
    pnb__graph_free(net->g);
}

static pnb__tensor *add_leaf(golden_net *net, const char *name, bool is_scalar)
{
    size_t shape[PNB__DIMS];
    for (int i = 0; i < net->n_leaves; i++)
        if (strcmp(net->leaves[i].name, name) == 0)
            return net->leaves[i].t;
    const pnb_array_view *view = golden_find(net->c, name);
    if (view == NULL || net->n_leaves == NET_MAX_LEAVES) {
        pnb__fail(net->err, PNB_NOT_FOUND, "the case has no tensor %s", name);
        return NULL;
    }
    for (int i = 0; i < view->n_dims; i++)
        shape[i] = (size_t)view->shape[i];
    pnb__tensor *t = pnb__input_with_grad(net->g, is_scalar ? 0 : view->n_dims, shape);
    pnb__keep_grad(t);
    snprintf(net->leaves[net->n_leaves].name, sizeof net->leaves[0].name, "%s", name);
    net->leaves[net->n_leaves++].t = t;
    return t;
}

pnb__tensor *net_leaf(golden_net *net, const char *name)
{
    return add_leaf(net, name, false);
}

pnb__tensor *net_scalar(golden_net *net, const char *name)
{
    return add_leaf(net, name, true);
}

pnb__head net_head(golden_net *net, const char *prefix, const int *at)
{
    pnb__head h = {0};
    char name[96];
    for (; *at >= 0; at++, h.n_layers++) {
        snprintf(name, sizeof name, "param.%s.%d.weight", prefix, *at);
        h.w[h.n_layers] = net_leaf(net, name);
        snprintf(name, sizeof name, "param.%s.%d.bias", prefix, *at);
        h.b[h.n_layers] = net_leaf(net, name);
    }
    return h;
}

void net_output(golden_net *net, const char *name, pnb__tensor *t)
{
    if (t == NULL || net->n_outputs == NET_MAX_OUTPUTS)
        return;
    pnb__keep(t);
    snprintf(net->outputs[net->n_outputs].name, sizeof net->outputs[0].name, "%s", name);
    net->outputs[net->n_outputs++].t = t;
}

pnb_status net_write(const golden_net *net)
{
    for (int i = 0; i < net->n_leaves; i++) {
        double *values = golden_f64(net->c, net->leaves[i].name, NULL, net->err);
        if (values == NULL)
            return net->err->status;
        pnb__write_f64(net->leaves[i].t, values);
        pnb__free(values);
    }
    return PNB_OK;
}

static pnb_status give_all(const golden_net *net, const char *prefix)
{
    char name[128];
    for (int i = 0; i < net->n_leaves + net->n_outputs; i++) {
        bool is_leaf = i < net->n_leaves;
        const pnb__tensor *t = is_leaf ? net->leaves[i].t : net->outputs[i - net->n_leaves].t;
        double *values = pnb__alloc_array(pnb__n(t) + 1, sizeof *values);
        if (values == NULL)
            return pnb__fail_nomem(net->err, pnb__n(t) * sizeof *values);
        if (is_leaf && pnb__read_grad_f64(t, values)) {
            const char *own = net->leaves[i].name;
            own += strncmp(own, "param.", 6) == 0 ? 6 : 0;
            snprintf(name, sizeof name, "grad.%s%s", prefix, own);
            golden_give(net->c, name, values, pnb__n(t));
        } else if (!is_leaf) {
            pnb__read_f64(t, values);
            golden_give(net->c, net->outputs[i - net->n_leaves].name, values, pnb__n(t));
        }
        pnb__free(values);
    }
    return PNB_OK;
}

pnb_status net_plan(golden_net *net, pnb__tensor *loss)
{
    return net->err->status == PNB_OK ? pnb__graph_plan(net->g, loss, net->err) : net->err->status;
}

pnb_status net_give(golden_net *net, const char *prefix)
{
    pnb_status status = pnb__graph_run(net->g, net->err);
    return status == PNB_OK ? give_all(net, prefix) : status;
}

pnb_status net_finish(golden_net *net, const char *prefix)
{
    pnb_status status = net_write(net);
    return status == PNB_OK ? net_give(net, prefix) : status;
}

pnb_status net_run(golden_net *net, pnb__tensor *loss, const char *prefix)
{
    pnb_status status = net_plan(net, loss);
    return status == PNB_OK ? net_finish(net, prefix) : status;
}
