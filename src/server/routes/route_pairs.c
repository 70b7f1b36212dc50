/* POST /v1/similarity and /v1/inclusion: every input of one list against every one of another.
 *
 * Similarity gives scores, larger is nearer, and p(match) where the model's scale says it.
 * Inclusion gives H(a in b): positive where a lies in b, where b is the more general of the two. */
#include "penumbra/prob.h"
#include "server/routes.h"
#include "server/searching/lists.h"

#define INPUTS_SCHEMA                                                                              \
    "{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"object\"},{\"type\":\"array\",\"items\":"       \
    "{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"object\"}]}}]}"
#define PAIR_FIELDS                                                                                \
    PNB__VALUE("a", ANY, "Captions or pictures, as input of /v1/embeddings", .required = true,     \
               .schema = INPUTS_SCHEMA),                                                           \
        PNB__VALUE("b", ANY, "What they are compared with", .required = true,                      \
                   .schema = INPUTS_SCHEMA),                                                       \
        PNB__VALUE("model", TEXT, "Name of the model, which must be the one that is served")

enum { MAX_PAIRS = 1 << 20 };

static const pnb__field similarity_fields[] = {
    PAIR_FIELDS, PNB__VALUE("measure", TEXT, "Name of a measure; by default what the model suits")};
static const pnb__field inclusion_fields[] = {PAIR_FIELDS};

/* (A,B) numbers as rows. */
static void put_matrix(pnb__buf *b, const double *x, size_t n_a, size_t n_b)
{
    pnb__buf_putc(b, '[');
    for (size_t i = 0; i < n_a; i++) {
        pnb__buf_puts(b, i > 0 ? ",[" : "[");
        for (size_t k = 0; k < n_b; k++) {
            pnb__buf_puts(b, k > 0 ? "," : "");
            pnb__json_append_double(b, x[i * n_b + k]);
        }
        pnb__buf_putc(b, ']');
    }
    pnb__buf_putc(b, ']');
}

static pnb_status read_both(const json_t *body, pnb__inputs in[2], pnb_error *err)
{
    pnb_status status = pnb__inputs_read(&in[0], pnb__field_of(body, "a"), "a", err);
    if (status == PNB_OK)
        status = pnb__inputs_read(&in[1], pnb__field_of(body, "b"), "b", err);
    if (status == PNB_OK && in[0].n * in[1].n > MAX_PAIRS)
        status = pnb__fail(err, PNB_ARG, "%zu pairs; at most %d are compared at once",
                           in[0].n * in[1].n, MAX_PAIRS);
    return status;
}

/* The matrix under its key, and probabilities where `c` has them. */
static void put_scores(const pnb__served *s, const pnb__compared *c, double *x, const char *key,
                       pnb__buf *b)
{
    size_t n_a = c->a.rows.n, n_b = c->b.rows.n;
    pnb__json_put(b, "{\"object\":\"list\",\"model\":%s,\"measure\":%s", s->server->name,
                  pnb_measure_name(c->measure));
    pnb__buf_printf(b, ",\"%s\":", key);
    put_matrix(b, x, n_a, n_b);
    for (size_t i = 0; i < n_a * n_b && c->has_probability; i++)
        x[i] = pnb_match_probability(x[i], c->scale, c->bias);
    if (c->has_probability) {
        pnb__buf_puts(b, ",\"p_match\":");
        put_matrix(b, x, n_a, n_b);
    }
    pnb__buf_puts(b, "}\n");
}

static pnb_status compare(pnb__served *s, const pnb__http_request *q, const json_t *body,
                          const char *measure, const char *key, pnb__http_reply *r, pnb_error *err)
{
    pnb__inputs in[2] = {0};
    pnb_embeddings *set[2] = {NULL, NULL};
    pnb__compared c = {0};
    double *x = NULL;
    pnb_status status;
    PNB_TRY(pnb__server_check_model(s, body, err));
    PNB_TRY(read_both(body, in, err));
    PNB_TRY(pnb__server_encode_lists(s, q, in, 2, set, err));
    PNB_TRY(pnb__compared_init(&c, set[0], set[1], measure, err));
    PNB_TRY(PNB_ALLOC_ROWS(x, in[0].n, in[1].n, err));
    PNB_TRY(pnb_measure_block(c.measure, &c.a.rows, &c.b.rows, &c.opts, x, err));
    for (size_t i = 0; i < in[0].n * in[1].n; i++)
        x[i] = pnb_measure_score(c.measure, x[i]);
    put_scores(s, &c, x, key, &r->body);
done:
    pnb__free(x);
    pnb__compared_reset(&c);
    for (size_t i = 0; i < 2; i++) {
        pnb_embeddings_free(set[i]);
        pnb__inputs_reset(&in[i]);
    }
    return status;
}

static pnb_status run_similarity(pnb__served *s, const pnb__http_request *q, const json_t *body,
                                 pnb__http_reply *r, pnb_error *err)
{
    return compare(s, q, body, pnb__field_text(body, "measure", NULL), "scores", r, err);
}

static pnb_status run_inclusion(pnb__served *s, const pnb__http_request *q, const json_t *body,
                                pnb__http_reply *r, pnb_error *err)
{
    return compare(s, q, body, pnb_measure_name(PNB_MEASURE_INCLUSION), "h", r, err);
}

#define MATRIX "{\"type\":\"array\",\"items\":{\"type\":\"array\"}}"

const pnb__route pnb__route_similarity = {
    .method = "POST",
    .path = "/v1/similarity",
    .summary = "Scores, and where they are known probabilities of a match, of all pairs of two "
               "lists",
    PNB__FIELDS(similarity_fields),
    .answer = "{\"type\":\"object\",\"required\":[\"object\",\"model\",\"measure\",\"scores\"],"
              "\"properties\":{\"measure\":{\"type\":\"string\"},\"scores\":" MATRIX
              ",\"p_match\":" MATRIX "}}",
    .run = run_similarity};

const pnb__route pnb__route_inclusion = {
    .method = "POST",
    .path = "/v1/inclusion",
    .summary = "H(a in b) of all pairs of two lists: positive where a lies in b",
    PNB__FIELDS(inclusion_fields),
    .answer = "{\"type\":\"object\",\"required\":[\"object\",\"model\",\"measure\",\"h\"],"
              "\"properties\":{\"measure\":{\"type\":\"string\"},\"h\":" MATRIX "}}",
    .run = run_inclusion};
