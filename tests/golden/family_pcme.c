/* Golden family pcme: the parts of PCME (Chun et al. 2021), each case in a file of its own. Which
 * part a case is about shows in a tensor that no other has. */
#include "tests/golden/golden.h"

static const struct {
    const char *sign; /* the tensor that tells */
    golden_family_fn run;
} parts[] = {
    {"param.conv1.weight", golden_case_resnet}, {"param.rnn.weight_ih_l0", golden_case_pcme_text},
    {"features", golden_case_pcme_image},       {"i2t_pos_loss", golden_case_pcme_loss},
    {"elk_dist", golden_case_pcme_distances},
};

pnb_status golden_family_pcme(golden_case *c, pnb_error *err)
{
    for (size_t i = 0; i < PNB_COUNT(parts); i++)
        if (golden_find(c, parts[i].sign) != NULL)
            return parts[i].run(c, err);
    return pnb__fail(err, PNB_UNSUPPORTED, "no part of PCME has tensors of these names");
}
