/* Inside of .npy files: writing to a file that is committed together with others. */
#ifndef PNB_IO_TABLES_NPY_H
#define PNB_IO_TABLES_NPY_H

#include "base/base.h"
#include "penumbra/npy.h"

/* Header and values to an open output. Errors  as pnb_npy_save */
pnb_status pnb__npy_write(pnb__out_file *f, const pnb_array_view *a, pnb_error *err);

#endif
