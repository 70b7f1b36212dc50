/* penumbra serve: embeddings and search over HTTP.
 *
 * Options only: what it does is in serve.c, the routes are in src/server. */
#include "commands/commands.h"
#include "commands/common/option_rows.h"
#include "commands/serve/serve.h"

#define AT(field) PNB__FIELD(pnb__serve_opts, field)
static const pnb__option options[] = {
    PNB__MODEL_ROW(AT(model)),
    PNB__ROW_TEXT("alias", AT(alias), "NAME",
                  "Name of the model in requests and replies; by default that of its folder"),
    PNB__MODEL_PARTS_ROWS(AT(parts.tokenizer), AT(parts.preprocess)),
    PNB__ROW_INT("max-batch", AT(max_batch), "N", "Inputs of all requests encoded together at most",
                 PNB__RANGE(1, 4096), .fallback = "32"),
    PNB__ROW_REAL("batch-wait", AT(batch_wait_ms), "MS",
                  "Longest that an input waits for those of requests that are being prepared; a "
                  "request that comes alone waits for nobody",
                  PNB__RANGE(0, 10000), .fallback = "5"),
    PNB__ROW_FILES("collection", AT(collections), "DIR...",
                   "Collections to search in (penumbra collection), each under the name of its "
                   "folder; what is added and removed while the server runs counts at once",
                   .group = "What is searched"),
    PNB__ROW_FILE("collection-root", AT(root), "DIR",
                  "Folder whose collections are searched too, made where there is none, and in "
                  "which requests may make new ones (POST /v1/collections); by default they may "
                  "not"),
    PNB__ROW_FILE("images", AT(images), "SET", "Embedding set of pictures to search in"),
    PNB__ROW_FILE("texts", AT(texts), "SET", "Embedding set of captions to search in"),
    PNB__ROW_FILE("calibration", AT(calibration), "FILE",
                  "Calibration of p(match) in place of SET.calibration.json beside each set; none: "
                  "the model's own a and b"),
    PNB__ROW_CHOICE(
        "approx", AT(approx), "KIND", "int8|bf16|hnsw|ivf",
        "Search by candidates that are scored as they are: a copy in one or two bytes a "
        "number, a graph or cells of FAISS, built where there is none yet; replies say "
        "whether they may differ. By default every row is looked at"),
    PNB__ROW_REAL("recall", AT(recall), "SHARE",
                  "hnsw and ivf: share of the true hits to aim at where they are built",
                  PNB__RANGE(0.01, 1), .fallback = "0.99"),
    PNB__ROW_REAL("vague-above", AT(vague_above), "U",
                  "A query of more uncertainty is called too vague; by default what 99 of 100 rows "
                  "of its kind stay below, where rows of that kind are served",
                  PNB__RANGE(0, 1e30)),
    PNB__ROW_TEXT("host", AT(host), "HOST", "Name or address to listen at", .fallback = "127.0.0.1",
                  .group = "Who may ask"),
    PNB__ROW_INT("port", AT(port), "N", "Port to listen at; 0 is any free one, which is printed",
                 PNB__RANGE(0, 65535), .fallback = "8080"),
    PNB__ROW_FILE("api-key-file", AT(api_key_file), "FILE",
                  "Keys, one a line; a request needs one of them as `Authorization: Bearer KEY`"),
    PNB__ROW_FLAG("without-key", AT(without_key),
                  "Let other machines ask without a key, where --host is not this machine's alone"),
    PNB__ROW_LIST("allow-origin", AT(origins), "URL...",
                  "Sites whose pages may ask from a browser (https://example.org), * for all; by "
                  "default none"),
    PNB__ROW_REAL("rate", AT(rate), "N",
                  "Requests a second of one address, more are answered with 429; 0 is any number",
                  PNB__RANGE(0, 1e6), .fallback = "0"),
    PNB__ROW_INT("max-body", AT(max_body_mb), "MB", "Largest body of a request",
                 PNB__RANGE(1, 4095), .fallback = "32", .group = "Limits"),
    PNB__ROW_INT("max-queue", AT(max_queue), "N",
                 "Requests that wait, beside those being worked on; more are answered with 429",
                 PNB__RANGE(1, 1e6), .fallback = "256"),
    PNB__ROW_INT("max-connections", AT(max_connections), "N", "Connections at once",
                 PNB__RANGE(1, 1e5), .fallback = "2000"),
    PNB__ROW_REAL(
        "timeout", AT(timeout_s), "SECONDS",
        "Time for a whole request to arrive, for its reply to be taken, and for answering "
        "what was asked when the server ends",
        PNB__RANGE(0.1, 86400), .fallback = "30"),
};

const pnb__command pnb__cmd_serve = {
    .name = "serve",
    .summary = "answer requests over HTTP",
    .about =
        "Embeddings as OpenAI's clients ask for them (POST /v1/embeddings), /v1/search, "
        "/v1/classify, "
        "/v1/similarity, /v1/inclusion, clip-retrieval's /knn-service, /health, /v1/models "
        "and /metrics for Prometheus. GET /openapi.json describes every route; docs/serve.md "
        "shows them.\n\n"
        "Listens on this machine alone. Elsewhere it listens with --api-key-file only, or when "
        "told "
        "by --without-key. It speaks plain HTTP: nginx or the like in front of it speaks TLS.\n\n"
        "GET / is a page to search with. SIGHUP opens the model and what is searched anew; no "
        "request is "
        "dropped, and where that fails the old one goes on.\n\n"
        "The address is printed as the first line of standard output. Ctrl-C or SIGTERM ends it: "
        "no connection is taken any more, what was asked is answered, the exit status is 0.",
    .examples = "penumbra serve --model model\n"
                "penumbra serve -m model --images images.safetensors --texts texts.safetensors\n"
                "penumbra serve -m model --collection photos\n"
                "penumbra serve -m model --collection photos --approx hnsw --recall 0.99\n"
                "penumbra serve -m model --collection-root collections\n"
                "penumbra serve -m model --port 0 --threads 2\n"
                "penumbra serve -m model --host 0.0.0.0 --api-key-file keys.txt --rate 20",
    PNB__RUNS(options, pnb__serve_opts, pnb__serve_run)};
