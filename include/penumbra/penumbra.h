/* Everything of the public interface; each header can be included by itself.
 *
 * In all of them: sizes are size_t, rows are row-major, strings are UTF-8 and end in 0. Functions
 * that can fail return pnb_status (error.h). What one call creates a function of the same topic
 * frees. Objects are not locked: several threads may use one object only where its header says so,
 * and different objects at any time. */
#ifndef PENUMBRA_PENUMBRA_H
#define PENUMBRA_PENUMBRA_H

#include "penumbra/adapt.h"        /* distributions from the embeddings of a frozen model */
#include "penumbra/ambiguous.h"    /* embeddings of known ambiguity */
#include "penumbra/attack.h"       /* the change of an input that does the most harm */
#include "penumbra/bootstrap.h"    /* intervals by resampling */
#include "penumbra/calibrate.h"    /* the probability that a pair matches; conformal lists */
#include "penumbra/checkpoint.h"   /* arrays of PyTorch and safetensors files, one file or shards */
#include "penumbra/class_scores.h" /* F1, worst groups, averages of suites */
#include "penumbra/classify.h"     /* zero-shot classes by prompts */
#include "penumbra/coco.h"         /* COCO 1K and 5K, CxC and ECCV Caption in one table */
#include "penumbra/collections.h"  /* data sets of real pictures */
#include "penumbra/corrupt.h"      /* copies of sets that were spoiled on purpose */
#include "penumbra/ctx.h"          /* threads, device, log hook */
#include "penumbra/dataset.h"      /* samples of folders, archives and tables; loading batches */
#include "penumbra/distributions.h"    /* densities of the distributions */
#include "penumbra/dtype.h"            /* element types of arrays */
#include "penumbra/duplicates.h"       /* near-duplicates of a set */
#include "penumbra/ece.h"              /* how good probabilities are */
#include "penumbra/embeddings.h"       /* embedding sets in memory and on disk */
#include "penumbra/encode.h"           /* pictures and texts to sets with an opened model */
#include "penumbra/error.h"            /* status codes and the error record */
#include "penumbra/figures.h"          /* all figures of a direction, with intervals and tests */
#include "penumbra/filter.h"           /* which pairs to keep */
#include "penumbra/hierarcaps.h"       /* files of caption hierarchies */
#include "penumbra/hierarchy.h"        /* uncertainty by level and length; shares of inclusion */
#include "penumbra/image.h"            /* decoding, resizing, preprocessing */
#include "penumbra/image_hierarchy.h"  /* hierarchies of pictures from segmentations */
#include "penumbra/inclusion_search.h" /* what includes a query, or lies inside it */
#include "penumbra/known_truth.h"      /* recovered against known concentrations */
#include "penumbra/loss.h"             /* the losses of training */
#include "penumbra/match_entropy.h"    /* of what a row matches: how ambiguous it is */
#include "penumbra/model.h"            /* models: loading, encoding, converting */
#include "penumbra/npy.h"              /* NumPy's files */
#include "penumbra/optim.h"            /* optimisers and schedules */
#include "penumbra/outliers.h"         /* rows that stand alone */
#include "penumbra/pca.h"              /* a flat view of Gaussians */
#include "penumbra/peers.h"            /* several processes that work on one job */
#include "penumbra/pmrp.h"             /* R-Precision of plausible matches */
#include "penumbra/prob.h"             /* measures and uncertainties */
#include "penumbra/provenance.h"       /* the chain of weights and adapters behind a set */
#include "penumbra/rank_agreement.h"   /* scores against what is known of rows, with intervals */
#include "penumbra/retrieval.h"        /* ranks, recalls, R-Precision, mAP@R */
#include "penumbra/rsum.h"             /* the sum of all recalls, with its interval */
#include "penumbra/safetensors.h"      /* arrays by name in safetensors files */
#include "penumbra/scaling.h"          /* temperature, Platt, isotonic */
#include "penumbra/search.h"           /* exact search by a measure */
#include "penumbra/selection.h"        /* which rows to label next */
#include "penumbra/selective.h"        /* answering only where uncertainty is low */
#include "penumbra/shift.h"            /* calibrations on other data than they were fitted on */
#include "penumbra/statistics.h"       /* correlations, AUROC, average precision */
#include "penumbra/store.h"            /* collections that grow, and searching them */
#include "penumbra/synth.h"            /* data sets made here */
#include "penumbra/tokenizer.h"        /* text to ids and back */
#include "penumbra/train.h"            /* training runs */
#include "penumbra/traversal.h"        /* the way from a picture to the root of all captions */
#include "penumbra/truth.h"            /* which rows belong together */
#include "penumbra/uncertainty_calibration.h" /* does accuracy fall as uncertainty rises */
#include "penumbra/view.h"                    /* rows of a set as the measures take them */
#include "penumbra/vqa.h"                     /* answers to visual questions */
#include "penumbra/watch.h"                   /* progress of a long call, and stopping it */

#endif
