/* Everything of the public interface. See the single headers for words. */
#ifndef PENUMBRA_PENUMBRA_H
#define PENUMBRA_PENUMBRA_H

#include "penumbra/calibrate.h"
#include "penumbra/chains.h"
#include "penumbra/checkpoint.h"
#include "penumbra/classify.h"
#include "penumbra/ctx.h"
#include "penumbra/curate.h"
#include "penumbra/dataset.h"
#include "penumbra/dtype.h"
#include "penumbra/embeddings.h"
#include "penumbra/error.h"
#include "penumbra/eval.h"
#include "penumbra/families.h"
#include "penumbra/hierarchy.h"
#include "penumbra/image.h"
#include "penumbra/loss.h"
#include "penumbra/metrics.h"
#include "penumbra/model.h"
#include "penumbra/npy.h"
#include "penumbra/optim.h"
#include "penumbra/prob.h"
#include "penumbra/safetensors.h"
#include "penumbra/search.h"
#include "penumbra/synth.h"
#include "penumbra/tokenizer.h"
#include "penumbra/train.h"
#include "penumbra/truth.h"
#include "penumbra/view.h"

#endif
