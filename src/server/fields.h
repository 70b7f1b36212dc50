/* Bodies of requests: one table of fields a route checks what came and describes itself. */
#ifndef PNB_SERVER_FIELDS_H
#define PNB_SERVER_FIELDS_H

#include "io/json/json.h"

typedef enum pnb__value_kind {
    PNB__VALUE_TEXT,
    PNB__VALUE_INT,
    PNB__VALUE_REAL,
    PNB__VALUE_FLAG,
    PNB__VALUE_LIST, /* an array; the route looks at what is in it */
    PNB__VALUE_ANY   /* the route looks at all of it */
} pnb__value_kind;

typedef struct pnb__field {
    const char *name;
    pnb__value_kind kind;
    const char *about;   /* one sentence */
    double min, max;     /* closed range of a number; both 0: none */
    const char *choices; /* "float|base64" of a text; NULL: any */
    const char *schema;  /* of LIST and ANY: a JSON schema; NULL: anything */
    bool required;
} pnb__field;

/* A row: name, kind, the sentence, and then any further fields by name. */
#define PNB__VALUE(word, of_kind, ...)                                                             \
    {                                                                                              \
        .name = word, .kind = PNB__VALUE_##of_kind, .about = __VA_ARGS__                           \
    }

/* Parses the body and checks it: an object, every required field there, every value of its kind,
 * nothing that the table does not know. null counts as absent. *out is given back by json_decref.
 * Errors  FORMAT, LIMIT (depth), NOMEM: the text names the field, what was found and wanted */
pnb_status pnb__fields_read(json_t **out, const pnb__field *fields, size_t n, const char *body,
                            size_t n_body, pnb_error *err);

/* A field of a checked body that is there and not null, else NULL. */
const json_t *pnb__field_of(const json_t *body, const char *name);
/* Values of checked bodies, `fallback` where the field is absent. */
double pnb__field_real(const json_t *body, const char *name, double fallback);
size_t pnb__field_size(const json_t *body, const char *name, size_t fallback);
bool pnb__field_flag(const json_t *body, const char *name, bool fallback);
const char *pnb__field_text(const json_t *body, const char *name, const char *fallback);
/* What a value is, for messages: "a string", "an object", ... */
const char *pnb__json_kind(const json_t *value);

/* Appends the JSON schema of such a body. */
void pnb__fields_schema(const pnb__field *fields, size_t n, pnb__buf *b);

#endif
