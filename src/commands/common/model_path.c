/* hf-hub: and local-dir: in front of a model's name, as open_clip writes them, and shipped: for the
 * models that come with the program, a folder each below app->models.
 *
 * Hugging Face keeps a repository under <hub>/models--ORG--NAME: refs/<revision> holds a commit id,
 * snapshots/<commit id>/ the files. <hub> is HF_HUB_CACHE, else HF_HOME/hub, else
 * ~/.cache/huggingface/hub; the environment comes from the program's record. */
#include "commands/common/model_path.h"

#include <string.h>

enum { MAX_REF = 4096 };

/* Letters, digits, '-', '_', '.', without "..": nothing that could leave the cache. */
static bool is_plain(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool fine = (s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') ||
                    (s[i] >= '0' && s[i] <= '9') || s[i] == '-' || s[i] == '_' || s[i] == '.';
        if (!fine || (s[i] == '.' && i + 1 < n && s[i + 1] == '.'))
            return false;
    }
    return n > 0 && s[0] != '.';
}

static char *hub_folder(const pnb__hub *hub)
{
    if (hub->hub_cache != NULL && hub->hub_cache[0] != '\0')
        return pnb__strdup(hub->hub_cache);
    if (hub->hf_home != NULL && hub->hf_home[0] != '\0')
        return pnb__path_join(hub->hf_home, "hub");
    if (hub->cache_home != NULL && hub->cache_home[0] != '\0')
        return pnb__path_join(hub->cache_home, "huggingface/hub");
    return pnb__path_join(hub->home != NULL ? hub->home : ".", ".cache/huggingface/hub");
}

/* The commit that refs/<revision> names, or the revision itself when it is a snapshot's name. NULL:
 * no memory. */
static char *read_ref(const char *repo, const char *revision)
{
    char *path = pnb__format("%s/refs/%s", repo, revision), *text = NULL;
    size_t size = 0;
    pnb_status status = PNB_NOMEM;
    if (path != NULL)
        status = pnb__path_is_file(path) ? pnb__read_file(path, MAX_REF, &text, &size, NULL)
                                         : PNB_NOT_FOUND;
    pnb__free(path);
    if (status == PNB_NOMEM)
        return NULL;
    if (status != PNB_OK)
        return pnb__strdup(revision);
    text[strcspn(text, " \r\n")] = '\0';
    return text;
}

static pnb_status find_snapshot(const char *repo, const char *revision, char **path, pnb_error *err)
{
    char *commit = read_ref(repo, revision);
    *path = NULL;
    if (commit != NULL && is_plain(commit, strlen(commit)))
        *path = pnb__format("%s/snapshots/%s", repo, commit);
    if (commit == NULL || (*path == NULL && is_plain(commit, strlen(commit)))) {
        pnb__free(commit);
        return pnb__fail_nomem(err, strlen(repo));
    }
    bool found = *path != NULL && pnb__path_is_dir(*path);
    if (!found) {
        pnb__free(*path);
        *path = NULL;
    }
    pnb__free(commit);
    return found ? PNB_OK
                 : pnb__fail(err, PNB_NOT_FOUND,
                             "not in the local cache, and nothing is downloaded; wanted: "
                             "%s/refs/%s with a commit id, and beside it snapshots/<commit id>/ "
                             "with config.json or open_clip_config.json, the weights "
                             "(open_clip_model.safetensors, model.safetensors or a PyTorch file), "
                             "the tokenizer's files and preprocessor_config.json",
                             repo, revision);
}

static pnb_status hub_path(const pnb__app *app, const char *id, char **path, pnb_error *err)
{
    const char *slash = strchr(id, '/'), *at = strchr(id, '@');
    size_t n = at != NULL ? (size_t)(at - id) : strlen(id);
    size_t n_org = slash != NULL ? (size_t)(slash - id) : 0;
    const char *revision = at != NULL ? at + 1 : "main";
    if (slash == NULL || n_org >= n || !is_plain(id, n_org) ||
        !is_plain(slash + 1, n - n_org - 1) || !is_plain(revision, strlen(revision)))
        return pnb__fail(err, PNB_ARG,
                         "hf-hub:%s is not hf-hub:ORG/NAME or hf-hub:ORG/NAME@REVISION", id);
    char *hub = hub_folder(&app->hub);
    char *repo = hub == NULL ? NULL
                             : pnb__format("%s/models--%.*s--%.*s", hub, (int)n_org, id,
                                           (int)(n - n_org - 1), slash + 1);
    pnb_status status =
        repo == NULL ? pnb__fail_nomem(err, 0) : find_snapshot(repo, revision, path, err);
    if (status == PNB_NOT_FOUND)
        pnb__error_prefix(err, "hf-hub:%s", id);
    pnb__free(hub);
    pnb__free(repo);
    return status;
}

static pnb_status shipped_path(const pnb__app *app, const char *name, char **path, pnb_error *err)
{
    const char *models = app->models != NULL ? app->models : "";
    if (!is_plain(name, strlen(name)))
        return pnb__fail(err, PNB_ARG, "shipped:%s is not shipped:NAME, as shipped:tiny is", name);
    *path = pnb__path_join(models, name);
    if (*path == NULL)
        return pnb__fail_nomem(err, strlen(name));
    if (models[0] != '\0' && pnb__path_is_dir(*path))
        return PNB_OK;
    pnb__free(*path);
    *path = NULL;
    return pnb__fail(err, PNB_NOT_FOUND,
                     "shipped:%s: no model of this name came with the program (folder %s)", name,
                     models[0] != '\0' ? models : "share/penumbra/models, which was not found");
}

pnb_status pnb__model_path(const pnb__app *app, const char *name, char **path, pnb_error *err)
{
    static const char hub[] = "hf-hub:", local[] = "local-dir:", shipped[] = "shipped:";
    *path = NULL;
    if (pnb__starts_with(name, "https://") || pnb__starts_with(name, "http://"))
        return pnb__fail(err, PNB_ARG,
                         "%s: this is a URL, and nothing is downloaded here: fetch the whole "
                         "repository first (huggingface-cli download ORG/NAME, or git clone with "
                         "git-lfs) and give its folder, or hf-hub:ORG/NAME from the local cache",
                         name);
    if (pnb__starts_with(name, hub))
        return hub_path(app, name + strlen(hub), path, err);
    if (pnb__starts_with(name, shipped))
        return shipped_path(app, name + strlen(shipped), path, err);
    return pnb__copy_text(path, pnb__starts_with(name, local) ? name + strlen(local) : name, err);
}
