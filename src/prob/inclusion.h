/* One dimension of the inclusion integral and of its test; see inclusion.c. */
#ifndef PNB_PROB_INCLUSION_H
#define PNB_PROB_INCLUSION_H

#include "penumbra/prob.h"

#define PNB__H_EXACT_LOG_WEIGHT 0.5
#define PNB__H_PUBLISHED_LOG_WEIGHT 1.0

double pnb__inclusion_exact_term(double delta, double l1, double l2);
double pnb__inclusion_published_term(double delta, double l1, double l2, double eps);
/* gain multiplies the distance term: 1 exact, e^eps published */
double pnb__inclusion_h_term(double delta, double l1, double l2, double log_weight, double gain);

#endif
