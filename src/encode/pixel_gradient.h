/* How the pixels of pictures move the loss of a classification: the gradient an attack follows. */
#ifndef PNB_ENCODE_PIXEL_GRADIENT_H
#define PNB_ENCODE_PIXEL_GRADIENT_H

#include "encode/encoder.h"
#include "penumbra/prob.h"

/* loss_i = -log softmax_k(scale s_ik)[label_i],  s_ik = mu_i . mean_k - tr(var_k)/2: the score of
 * csd but for what a picture adds to every class alike; of points, and by means alone, the cosine.
 */
typedef struct pnb__pixel_classes {
    const pnb_gaussians *rows; /* (K,D) unit means; log_var NULL: points */
    bool means_alone;          /* variances are not looked at */
    double scale;
} pnb__pixel_classes;

typedef struct pnb__pixel_gradient pnb__pixel_gradient;

/* Plans the image tower for n_batch pictures with a way back to its pixels. Weights are read and
 * stay as they are; normalisation is by running moments. `encoder` must outlive it. Free with
 * pnb__pixel_gradient_free.
 * Errors  UNSUPPORTED (an adapter beside the model, weights in fewer bits, embeddings on the sphere
 *         or several a picture), SHAPE (classes of another width), NOMEM */
pnb_status pnb__pixel_gradient_open(pnb__pixel_gradient **out, const pnb_encoder *encoder,
                                    const pnb__pixel_classes *classes, size_t n_batch,
                                    pnb_error *err);
void pnb__pixel_gradient_free(pnb__pixel_gradient *p);

/* Of up to n_batch pictures with pixels in [0,1], before mean and standard deviation.
 * Shape   pixels (n,3,H,W), label (n) in [0,K) -> loss (n), gradient (n,3,H,W); loss may be NULL
 * Errors  ARG (n of 0 or above n_batch), NUMERIC */
pnb_status pnb__pixel_gradient_run(pnb__pixel_gradient *p, const float *pixels,
                                   const int32_t *label, size_t n, double *loss, float *gradient,
                                   pnb_error *err);

#endif
