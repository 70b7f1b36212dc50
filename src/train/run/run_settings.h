/* Options as a table: params.txt, the record in a checkpoint and the check on resuming. */
#ifndef PNB_TRAIN_RUN_SETTINGS_H
#define PNB_TRAIN_RUN_SETTINGS_H

#include "base/base.h"
#include "io/json/json.h"

typedef enum pnb__field_kind {
    PNB__FIELD_INT,
    PNB__FIELD_I64,
    PNB__FIELD_U64,
    PNB__FIELD_SIZE,
    PNB__FIELD_DOUBLE,
    PNB__FIELD_BOOL,
    PNB__FIELD_STRING,
    PNB__FIELD_ENUM
} pnb__field_kind;

/* Which numbers a real option may be beside finite ones. */
typedef enum pnb__field_also {
    PNB__ALSO_NONE,
    PNB__ALSO_NAN,     /* nothing given */
    PNB__ALSO_INFINITE /* no limit */
} pnb__field_also;

/* One option. `fixed`: it shapes the weights, so a resumed run must have it unchanged, otherwise it
 * could not end in the bits of an uninterrupted one. */
typedef struct pnb__field {
    const char *name;
    size_t offset; /* in the struct of options */
    const char *(*enum_name)(int value);
    pnb__field_kind kind;
    bool fixed;
    pnb__field_also also;
} pnb__field;

typedef struct pnb__settings {
    const pnb__field *fields;
    size_t n;
    const void *values; /* the struct that the offsets belong to */
} pnb__settings;

/* "name: value" lines, every option in the order of the tables. */
void pnb__settings_text(const pnb__settings *tables, size_t n_tables, pnb__buf *out);
/* The fixed options as a JSON object of strings; NULL when out of memory. */
json_t *pnb__settings_fixed(const pnb__settings *tables, size_t n_tables);
/* ARG when a setting of the checkpoint differs from this run's, naming option and both values. */
pnb_status pnb__settings_compare(const json_t *saved, const json_t *now, pnb_error *err);
/* ARG naming the first real option that is no number it may be. */
pnb_status pnb__settings_check_finite(const pnb__settings *table, pnb_error *err);

#endif
