/* Training AsymVLM's adapter (`adapter_vmf`, `adapter_psd`): the head, likelihoods of all images
 * under all texts, the symmetric cross entropy with every gradient, and the sigmoid loss over the
 * same matrix. */
#include "tests/golden/net.h"

#include <string.h>

#include "adapt/sphere_loss.h"

typedef struct parts {
    pnb__tensor *eta, *log_lik;
    pnb__directions texts;
} parts;

static parts build(golden_net *net, pnb__sphere_density density, pnb__tensor *eta)
{
    parts p = {.eta = eta, .texts = pnb__directions_of(eta)};
    pnb__tensor *images = pnb__l2_normalize(net_leaf(net, "z_image"), 1e-12);
    p.log_lik = pnb__sphere_log_lik(density, images, p.texts, NULL);
    return p;
}

static pnb_status run_softmax(golden_case *c, pnb__sphere_density density, double **eta_out,
                              pnb_error *err)
{
    static const int four[] = {0, 2, 4, 6, -1};
    golden_net net;
    int32_t rows[64];
    pnb_status status = net_init(&net, c, err);
    pnb__head head = net_head(&net, "text_adaptor.etta", four);
    parts p = build(&net, density, pnb__head_apply(&head, net_leaf(&net, "z_text")));
    size_t n = pnb__dim(p.eta, 0);
    pnb__tensor *matches = pnb__input(net.g, PNB__INT32, 1, &n);
    pnb__tensor *scale = net_scalar(&net, "param.text_adaptor.temperature");
    pnb__tensor *loss = pnb__symmetric_info_nce(p.log_lik, scale, matches);
    net_output(&net, "eta", p.eta);
    net_output(&net, "loss", loss);
    net_output(&net, "text.mu", p.texts.mu);
    net_output(&net, "text.uncertainty", pnb__apply(PNB__RECIP, p.texts.kappa));
    net_output(&net, "log_likelihood", p.log_lik);
    pnb__keep_grad(p.eta);
    PNB_TRY(status);
    PNB_TRY(net_plan(&net, loss));
    for (size_t i = 0; i < PNB_MIN(n, PNB_COUNT(rows)); i++)
        rows[i] = (int32_t)i;
    pnb__write_i32(matches, rows);
    PNB_TRY(net_finish(&net, ""));
    double *eta = pnb__alloc_array(pnb__n(p.eta), sizeof *eta);
    if (eta == NULL)
        PNB_TRY(pnb__fail_nomem(err, pnb__n(p.eta) * sizeof *eta));
    if (pnb__read_grad_f64(p.eta, eta))
        golden_give(c, "grad.eta", eta, pnb__n(p.eta));
    pnb__read_f64(p.eta, eta);
    *eta_out = eta;
done:
    net_reset(&net);
    return status;
}

/* The centre is the mean of the matrix: a constant that keeps the logits in range. */
static pnb_status run_sigmoid(golden_case *c, pnb__sphere_density density, const double *eta,
                              pnb_error *err)
{
    golden_net net;
    pnb_status status = net_init(&net, c, err);
    const pnb_array_view *view = golden_find(c, "z_text");
    size_t n = (size_t)view->shape[0], dim = (size_t)view->shape[1];
    double *room = pnb__alloc_array(n * PNB_MAX(n, dim), sizeof *room);
    double *centre = golden_f64(c, "siglip.center", NULL, err);
    pnb__tensor *leaf = pnb__input_with_grad(net.g, 2, (size_t[]){n, dim});
    parts p = build(&net, density, leaf);
    pnb__tensor *signs = pnb__input(net.g, PNB__REAL, 2, (size_t[]){n, n});
    pnb__tensor *middle = pnb__constant(net.g, centre != NULL ? centre[0] : 0);
    pnb__tensor *loss = pnb__pairwise_sigmoid(p.log_lik, net_scalar(&net, "siglip.temperature"),
                                              net_scalar(&net, "siglip.bias"), middle, signs);
    net_output(&net, "siglip.loss", loss);
    pnb__keep_grad(leaf);
    pnb__keep(p.log_lik);
    if (room == NULL)
        PNB_TRY(pnb__fail_nomem(err, n * dim * sizeof *room));
    PNB_TRY(status);
    PNB_TRY(net_plan(&net, loss));
    for (size_t i = 0; i < n * n; i++)
        room[i] = i / n == i % n ? 1 : -1;
    pnb__write_f64(signs, room);
    pnb__write_f64(leaf, eta);
    PNB_TRY(net_finish(&net, ""));
    if (pnb__read_grad_f64(leaf, room))
        golden_give(c, "grad.siglip.eta", room, n * dim);
    pnb__read_f64(p.log_lik, room);
    double mean = 0;
    for (size_t i = 0; i < n * n; i++)
        mean += room[i] / (double)(n * n);
    golden_give_scalar(c, "siglip.center", mean);
done:
    pnb__free(room);
    pnb__free(centre);
    net_reset(&net);
    return status;
}

pnb_status golden_case_asymvlm(golden_case *c, pnb_error *err)
{
    const char *name = json_string_value(golden_value(c, "distribution"));
    pnb__sphere_density density =
        name != NULL && strcmp(name, "psd") == 0 ? PNB__SPHERE_POWER_SPHERICAL : PNB__SPHERE_VMF;
    double *eta = NULL;
    pnb_status status = run_softmax(c, density, &eta, err);
    if (status == PNB_OK)
        status = run_sigmoid(c, density, eta, err);
    pnb__free(eta);
    return status;
}
