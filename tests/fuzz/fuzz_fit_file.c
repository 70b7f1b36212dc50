/* Any JSON as a calibration of a set and as a scaling of scores: what is read can be applied, and
 * gives probabilities that rise with the score. */
#include <math.h>
#include <stdlib.h>

#include "eval/calibration/fit_file.h"
#include "penumbra/calibrate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void use_match(const pnb_match_probability_fit *fit)
{
    double last = 0.0, cutoff;
    for (double score = -3.0; score <= 3.0; score += 0.125) {
        double p = pnb_match_probability_fit_apply(fit, score, 0);
        require(p >= last - 1e-12 && p <= 1.0 + 1e-12);
        last = p;
    }
    for (int k = 0; k < PNB_N_CONFORMALS; k++)
        require(pnb_conformal_cutoff(&fit->conformal, (pnb_conformal_kind)k, 0.3, &cutoff, NULL) ==
                    PNB_OK &&
                !isnan(cutoff));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *root = NULL;
    pnb_match_probability_fit fit;
    pnb_scaling scaling;
    pnb_error err = PNB_ERROR_INIT;
    if (pnb__json_load_bytes(&root, (const char *)data, size, "fit.json", &err) != PNB_OK)
        return 0;
    if (pnb__match_probability_fit_read(&fit, root, "fit.json", &err) == PNB_OK)
        use_match(&fit);
    else
        require(err.status != PNB_OK && fit.conformal.n == 0);
    pnb_match_probability_fit_reset(&fit);
    if (pnb__scaling_read(&scaling, root, "fit.json", NULL) == PNB_OK)
        require((scaling.has_temperature && scaling.temperature.t > 0.0) ||
                (scaling.has_platt && scaling.platt.a > 0.0));
    json_decref(root);
    return 0;
}
