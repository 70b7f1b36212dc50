/* Configuration text: built-in names, files, merging. */
#ifndef PNB_MODELS_CONFIG_BUILTIN_H
#define PNB_MODELS_CONFIG_BUILTIN_H

#include "io/json/json.h"
#include "penumbra/model.h"

/* Loads a built-in name, a path or JSON text that starts with '{'. */
pnb_status pnb__config_json_load(json_t **out, const char *config, pnb_error *err);
/* Sorted keys, indented by 2, allocated; NULL when out of memory. */
char *pnb__config_json_dump(const json_t *root);

#endif
