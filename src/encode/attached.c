/* A model with an adapter beside it: the folder of the model with the folder `adapter` in it.
 *
 * What the towers end in goes through the adapter before anyone sees it, and the chain of the rows
 * says so; weights, tokenizer and preprocessing are the base model's, and so is its name, so that
 * rows embedded before with the base model and put through the adapter later are of the same chain.
 * Weight files are linked where the file system can, else copied: nothing changes them. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adapt/adapter.h"
#include "base/base.h"
#include "encode/encoder.h"
#include "sets/provenance.h"

static const char folder[] = "adapter";

/* ---- does the adapter belong to the model ---- */

static pnb_status check_side(const pnb_encoder *e, const pnb_adapter_facts *facts,
                             pnb_adapter_side side, pnb_error *err)
{
    const pnb_embeddings_info *origin = facts->side[side].origin;
    pnb_embeddings_info own = {.model = ""};
    char made[PNB_PROVENANCE_BYTES], has[PNB_PROVENANCE_BYTES];
    if (!facts->side[side].is_adapted)
        return PNB_OK;
    snprintf(own.model, sizeof own.model, "%s", e->name);
    snprintf(own.weights_sha256, sizeof own.weights_sha256, "%s", e->weights_sha256);
    pnb_provenance_text(origin, made, sizeof made);
    pnb_provenance_text(&own, has, sizeof has);
    if (pnb__chains_differ(pnb__chain_of(origin), pnb__chain_of(&own)))
        return pnb__fail(err, PNB_ARG,
                         "the adapter %s was learned from %s embeddings of %.200s, the model is "
                         "%.120s",
                         facts->link->name, pnb__adapter_side_word(side), made, has);
    if (facts->side[side].dim != e->info->embed_dim)
        return pnb__fail(err, PNB_SHAPE,
                         "the adapter %s takes %s embeddings of width %zu, the model makes %zu",
                         facts->link->name, pnb__adapter_side_word(side), facts->side[side].dim,
                         e->info->embed_dim);
    return PNB_OK;
}

/* The name that sets of the base model have, which hashes alone would not tell people. */
static void take_name(pnb_encoder *e, const pnb_adapter_facts *facts)
{
    for (int side = 0; side < PNB_N_ADAPTER_SIDES; side++)
        if (facts->side[side].is_adapted && facts->side[side].origin->model[0] != '\0')
            snprintf(e->name, sizeof e->name, "%s", facts->side[side].origin->model);
}

static pnb_status check_adapter(pnb_encoder *e, const pnb_adapter *adapter, pnb_error *err)
{
    pnb_adapter_facts facts;
    pnb_adapter_describe(adapter, &facts);
    pnb_status status = check_side(e, &facts, PNB_ADAPTER_IMAGES, err);
    if (status == PNB_OK)
        status = check_side(e, &facts, PNB_ADAPTER_TEXTS, err);
    if (status == PNB_OK)
        take_name(e, &facts);
    return status;
}

pnb_status pnb__encoder_open_adapter(pnb_encoder *e, const pnb_ctx *ctx, pnb_error *err)
{
    char *dir;
    if (!pnb__path_has_dir(e->dir, folder))
        return PNB_OK;
    dir = pnb__path_join(e->dir, folder);
    if (dir == NULL)
        return pnb__fail_nomem(err, strlen(e->dir));
    pnb_status status = pnb_adapter_load(&e->adapter, ctx, dir, err);
    if (status == PNB_OK) {
        status = check_adapter(e, e->adapter, err);
        if (status != PNB_OK)
            pnb__error_prefix(err, "%s", dir);
    }
    pnb__free(dir);
    return status;
}

/* ---- attaching ---- */

/* The same bytes under another name. */
static pnb_status copy_bytes(const char *from, const char *to, pnb_error *err)
{
    pnb__map map = {0};
    pnb_status status = pnb__map_open(&map, from, err);
    if (status == PNB_OK)
        status = pnb__write_file(to, map.size > 0 ? (const void *)map.data : "", map.size, err);
    pnb__map_close(&map);
    return status;
}

static bool is_weights(const char *name)
{
    return pnb__ends_with(name, ".safetensors") || pnb__ends_with(name, ".bin") ||
           pnb__ends_with(name, ".pt");
}

/* Behind links, as the folders of Hugging Face's cache hold them. */
static pnb_status take_file(const char *from, const char *to, pnb_error *err)
{
    char *real = realpath(from, NULL);
    if (real == NULL)
        return pnb__fail_errno(err, "cannot read", from);
    bool is_linked = is_weights(from) && link(real, to) == 0;
    pnb_status status = is_linked ? PNB_OK : copy_bytes(real, to, err);
    free(real);
    return status;
}

/* Every regular file of a folder; folders in it are not the model's. */
static pnb_status take_files(const char *from, const char *to, pnb_error *err)
{
    pnb_status status = PNB_OK;
    DIR *d = opendir(from);
    if (d == NULL)
        return pnb__fail_errno(err, "cannot read", from);
    for (struct dirent *entry; status == PNB_OK && (entry = readdir(d)) != NULL;) {
        char *source = pnb__path_join(from, entry->d_name);
        char *target = pnb__path_join(to, entry->d_name);
        if (source == NULL || target == NULL)
            status = pnb__fail_nomem(err, strlen(from));
        else if (pnb__path_is_file(source))
            status = take_file(source, target, err);
        pnb__free(source);
        pnb__free(target);
    }
    closedir(d);
    return status;
}

static void remove_files(const char *dir)
{
    DIR *d = opendir(dir);
    for (struct dirent *entry; d != NULL && (entry = readdir(d)) != NULL;) {
        char *path = pnb__path_join(dir, entry->d_name);
        if (path != NULL && pnb__path_is_file(path))
            (void)remove(path);
        pnb__free(path);
    }
    if (d != NULL)
        closedir(d);
    (void)rmdir(dir);
}

static pnb_status check_target(const char *out, pnb_error *err)
{
    struct stat info;
    if (lstat(out, &info) != 0)
        return errno == ENOENT ? PNB_OK : pnb__fail_errno(err, "cannot look at", out);
    return pnb__fail(err, PNB_EXISTS, "%s exists: name another folder or remove it", out);
}

/* Both belong together, by the checks that opening makes. */
static pnb_status check_both(const pnb_ctx *ctx, const char *model, const char *adapter_dir,
                             pnb_error *err)
{
    const pnb_encoder_opts weights_alone = {0};
    pnb_encoder e;
    pnb_adapter *adapter = NULL;
    pnb_status status = pnb__encoder_init(&e, ctx, model, &weights_alone, err);
    if (status == PNB_OK)
        status = pnb__encoder_need_plain(&e, "attaching another", err);
    if (status == PNB_OK)
        status = pnb_adapter_load(&adapter, ctx, adapter_dir, err);
    if (status == PNB_OK) {
        status = check_adapter(&e, adapter, err);
        if (status != PNB_OK)
            pnb__error_prefix(err, "%s and %s", model, adapter_dir);
    }
    pnb_adapter_free(adapter);
    pnb__encoder_reset(&e);
    return status;
}

pnb_status pnb_encoder_attach(const pnb_ctx *ctx, const char *model, const char *adapter,
                              const char *out, pnb_error *err)
{
    char *temp = NULL, *beside = NULL;
    pnb_status status;
    PNB_TRY(check_target(out, err));
    PNB_TRY(check_both(ctx, model, adapter, err));
    temp = pnb__format("%s.partial", out);
    beside = pnb__format("%s.partial/%s", out, folder);
    if (temp == NULL || beside == NULL)
        PNB_TRY(pnb__fail_nomem(err, strlen(out)));
    remove_files(beside); /* of a run that was killed */
    remove_files(temp);
    PNB_TRY(pnb__make_dirs(beside, err));
    PNB_TRY(take_files(model, temp, err));
    PNB_TRY(take_files(adapter, beside, err));
    if (rename(temp, out) != 0)
        status = pnb__fail_errno(err, "cannot move the finished model to", out);
done:
    if (status != PNB_OK && beside != NULL && temp != NULL) {
        remove_files(beside);
        remove_files(temp);
    }
    pnb__free(temp);
    pnb__free(beside);
    return status;
}
