/* The exact index of a context whose kernels run on a device. */
#ifndef PNB_INDEX_DEVICE_INDEX_H
#define PNB_INDEX_DEVICE_INDEX_H

#include "index/index_kind.h"

/* All that the exact kind does, with its scores but for their last bits. */
extern const pnb__index_calls pnb__index_device;

#endif
