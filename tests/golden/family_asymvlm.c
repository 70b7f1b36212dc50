/* Golden family asymvlm: the log normalisers of the von Mises-Fisher and the power spherical
 * density. Cases of the trained adapter (`adapter_...`, `eval_...`) are told apart by their tensors
 * and refused. */
#include "golden.h"
#include "penumbra/families.h"

typedef double (*norm_fn)(size_t dim, double kappa);

/* Name of the tensor, what computes it. The released code's own forms are the approximation and the
 * exact power spherical one, so they have no function of their own. */
static const struct {
    const char *name;
    norm_fn compute;
} norms[] = {
    {"vmf_exact", pnb_vmf_log_norm},
    {"vmf_exact_dkappa", pnb_vmf_log_norm_slope},
    {"vmf_approx", pnb_vmf_log_norm_approx},
    {"vmf_approx_dkappa", pnb_vmf_log_norm_approx_slope},
    {"ps_exact", pnb_power_spherical_log_norm},
    {"ps_exact_dkappa", pnb_power_spherical_log_norm_slope},
    {"ps_code", pnb_power_spherical_log_norm},
    {"vmf_approx_f32", pnb_vmf_log_norm_approx},
    {"ps_code_f32", pnb_power_spherical_log_norm},
};

static pnb_status run_lognorm(golden_case *c, pnb_error *err)
{
    size_t n_dims = 0, n_kappas = 0;
    int32_t *dim = golden_i32(c, "d", &n_dims, err);
    double *kappa = golden_f64(c, "kappa", &n_kappas, err);
    double *out = pnb__alloc_array(n_dims * n_kappas + 1, sizeof *out);
    pnb_status status = PNB_OK;
    if (dim == NULL || kappa == NULL || out == NULL)
        PNB_TRY(err->status != PNB_OK ? err->status : pnb__fail_nomem(err, n_dims * n_kappas));
    for (size_t f = 0; f < PNB_COUNT(norms); f++) {
        for (size_t i = 0; i < n_dims; i++)
            for (size_t j = 0; j < n_kappas; j++)
                out[i * n_kappas + j] = norms[f].compute((size_t)dim[i], kappa[j]);
        golden_give(c, norms[f].name, out, n_dims * n_kappas);
    }
done:
    pnb__free(dim);
    pnb__free(kappa);
    pnb__free(out);
    return status;
}

pnb_status golden_family_asymvlm(golden_case *c, pnb_error *err)
{
    if (golden_find(c, "kappa") != NULL && golden_find(c, "d") != NULL)
        return run_lognorm(c, err);
    return pnb__fail(
        err, PNB_UNSUPPORTED,
        "this case trains or evaluates AsymVLM's adapter, which is not built in; cases "
        "with tensors d and kappa (log normalisers) are supported");
}
