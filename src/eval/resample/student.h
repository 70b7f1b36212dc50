/* Normal and Student distributions, as intervals and p-values need them. */
#ifndef PNB_EVAL_RESAMPLE_STUDENT_H
#define PNB_EVAL_RESAMPLE_STUDENT_H

double pnb__normal_cdf(double x);
double pnb__normal_quantile(double p); /* 0 < p < 1 */
/* df > 0 degrees of freedom. */
double pnb__student_cdf(double t, double df);
double pnb__student_quantile(double p, double df); /* 0 < p < 1 */

#endif
