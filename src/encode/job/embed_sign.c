/* Everything that decides a row of an embedding job, hashed: the program, the weights, what lies
 * beside them, the options, the device and its instructions, the list of inputs. Contents of
 * pictures are not in it; the journal keeps a stamp of them with each part. */
#include "encode/job/embed_sign.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "models/model.h"

enum { MAX_NAMES = 256, MAX_FILE_BYTES = 64 << 20 };

static void add_text(pnb__sha256 *hash, const char *text)
{
    pnb__sha256_update(hash, text != NULL ? text : "", (text != NULL ? strlen(text) : 0) + 1);
}

/* Numbers go in as text: a struct has bytes between its fields. */
static void add_numbers(pnb__sha256 *hash, const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char text[40];
        snprintf(text, sizeof text, "%a", values[i]);
        add_text(hash, text);
    }
}

static pnb_status add_file(pnb__sha256 *hash, const char *path, pnb_error *err)
{
    char *data = NULL;
    size_t size = 0;
    pnb_error why = PNB_ERROR_INIT;
    pnb_status status = pnb__read_file(path, MAX_FILE_BYTES, &data, &size, &why);
    if (status == PNB_NOMEM)
        return pnb__fail(err, status, "%s", why.text);
    add_text(hash, pnb__path_base(path));
    pnb__sha256_update(hash, data != NULL ? data : "", size);
    pnb__free(data);
    return PNB_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Configuration, tokenizer and preprocessing of a folder: what is small and is read with a model.
 */
static bool is_part(const char *name)
{
    return name[0] != '.' && (pnb__ends_with(name, ".json") || pnb__ends_with(name, ".txt") ||
                              pnb__ends_with(name, ".model"));
}

static pnb_status add_dir(pnb__sha256 *hash, const char *dir, pnb_error *err)
{
    char *names[MAX_NAMES];
    size_t n = 0;
    pnb_status status = PNB_OK;
    DIR *d = opendir(dir);
    for (const struct dirent *e; d != NULL && n < MAX_NAMES && (e = readdir(d)) != NULL;)
        if (is_part(e->d_name) && (names[n] = pnb__path_join(dir, e->d_name)) != NULL)
            n++;
    if (d != NULL)
        closedir(d);
    qsort(names, n, sizeof *names, compare_names);
    for (size_t i = 0; i < n; i++) {
        if (status == PNB_OK && pnb__path_is_file(names[i]))
            status = add_file(hash, names[i], err);
        pnb__free(names[i]);
    }
    return status;
}

/* The parts a model was opened with. */
static pnb_status add_parts(pnb__sha256 *hash, const pnb__embed_signed *job, pnb_error *err)
{
    const pnb_encoder *e = job->encoder;
    const char *const paths[] = {e->dir, e->parts[0], e->parts[1]};
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < PNB_COUNT(paths) && status == PNB_OK; i++)
        if (paths[i] != NULL)
            status = pnb__path_is_dir(paths[i]) ? add_dir(hash, paths[i], err)
                                                : add_file(hash, paths[i], err);
    return status;
}

static void add_options(pnb__sha256 *hash, const pnb__embed_signed *job)
{
    const pnb_encode_opts *o = job->opts;
    const pnb_ctx *ctx = pnb__model_ctx(job->encoder->model);
    const double values[] = {(double)o->batch_size, o->exif, o->raw, (double)o->ttda, o->masked,
                             o->masked ? o->mask_keep : 0, o->masked ? o->mask_drop : 0,
                             (double)job->info->seed, ctx->device, ctx->isa, ctx->batch_invariant,
                             /* with wider instructions products are sums in one fixed order */
                             ctx->isa < PNB_ISA_AVX2 ? ctx->n_threads : 0};
    add_numbers(hash, values, PNB_COUNT(values));
}

pnb_status pnb__embed_sign(const pnb__embed_signed *job, char text[PNB__EMBED_SIGNATURE_BYTES],
                           pnb_error *err)
{
    pnb__sha256 hash;
    char hex[65];
    pnb__sha256_init(&hash);
    add_text(&hash, pnb_version());
    add_text(&hash, job->maker);
    add_text(&hash, job->info->weights_sha256);
    for (size_t i = 0; i < job->info->adapters.n; i++)
        add_text(&hash, job->info->adapters.items[i].sha256);
    add_text(&hash, job->info->preprocess);
    add_text(&hash, job->info->precision);
    pnb_status status = add_parts(&hash, job, err);
    if (status != PNB_OK)
        return status;
    add_options(&hash, job);
    if (job->source->hash != NULL)
        job->source->hash(job->source->user, &hash);
    pnb__sha256_hex(&hash, hex);
    snprintf(text, PNB__EMBED_SIGNATURE_BYTES, "penumbra embed 3 %s %zu\n", hex, job->source->n);
    return PNB_OK;
}
