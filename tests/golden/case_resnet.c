/* The convolutional image encoder of family pcme. */
#include "tests/golden/golden.h"

pnb_status golden_case_resnet(golden_case *c, pnb_error *err)
{
    (void)c;
    return pnb__fail(err, PNB_UNSUPPORTED, "there is no convolutional encoder yet");
}
