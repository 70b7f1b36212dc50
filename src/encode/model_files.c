/* What goes along when a model folder is written anew: every file that a tokenizer or the
 * preprocessing of pictures is read from, under the names that open_clip and Hugging Face use.
 * Configuration and weights are the models room's business. */
#include "encode/model_files.h"

#include <string.h>

#include "base/base.h"

enum { MOST_BYTES = 256 << 20 };

static const char preprocessor[] = "preprocessor_config.json";
static const char *const names[] = {"tokenizer.json",
                                    "tokenizer_config.json",
                                    "special_tokens_map.json",
                                    "added_tokens.json",
                                    "vocab.json",
                                    "merges.txt",
                                    "spiece.model",
                                    "tokenizer.model",
                                    "bpe_simple_vocab_16e6.txt.gz",
                                    "vocab.pkl",
                                    "coco_vocab.pkl",
                                    "cub_vocab.pkl",
                                    "vocab.txt",
                                    preprocessor};

static pnb_status copy(const char *from, const char *to, size_t *n, pnb_error *err)
{
    char *data = NULL;
    size_t size = 0;
    if (!pnb__path_is_file(from))
        return PNB_OK;
    pnb_status status = pnb__read_file(from, MOST_BYTES, &data, &size, err);
    if (status == PNB_OK)
        status = pnb__write_file(to, data, size, err);
    *n += status == PNB_OK;
    pnb__free(data);
    return status;
}

pnb_status pnb__model_files_copy(const char *from, const char *to, bool with_preprocess, size_t *n,
                                 pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (size_t i = 0; status == PNB_OK && i < PNB_COUNT(names); i++) {
        if (!with_preprocess && names[i] == preprocessor)
            continue;
        char *source = pnb__path_join(from, names[i]), *target = pnb__path_join(to, names[i]);
        status = source == NULL || target == NULL ? pnb__fail_nomem(err, 0)
                                                  : copy(source, target, n, err);
        pnb__free(source);
        pnb__free(target);
    }
    return status;
}

pnb_status pnb__model_files_add_preprocess(const char *dir, const pnb_preprocess *pp,
                                           pnb_error *err)
{
    char *path = pnb__path_join(dir, preprocessor);
    if (path == NULL)
        return pnb__fail_nomem(err, strlen(dir));
    pnb_status status = pnb__path_is_file(path) ? PNB_OK : pnb_preprocess_save(pp, path, err);
    pnb__free(path);
    return status;
}
