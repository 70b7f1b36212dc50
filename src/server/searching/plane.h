/* A query and what was found for it on one flat picture. */
#ifndef PNB_SERVER_SEARCHING_PLANE_H
#define PNB_SERVER_SEARCHING_PLANE_H

#include "base/base.h"
#include "penumbra/embeddings.h"

/* Appends ,"plane":{"share":[..],"query":[x,y,xx,xy,yy],"hits":[[..],..]}: means, and covariances
 * that ellipses are drawn from, in the plane of largest spread; share of the whole spread that each
 * axis shows. Nothing is appended of fewer than two hits.
 * Errors  NUMERIC (rows that are not finite), NOMEM */
pnb_status pnb__plane_put(const pnb_embeddings *query, const pnb_embeddings *hits, pnb__buf *b,
                          pnb_error *err);

#endif
