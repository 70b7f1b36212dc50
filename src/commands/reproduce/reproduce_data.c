/* The data of an experiment: a folder that somebody has, told by what lies in it, or a built-in
 * set.
 *
 * Pictures: the trainer and the encoder read them where they are; captions of the test, which pairs
 * are true and label vectors are written down in OUT/data where the folder has no file for them.
 * Sets: the layout of `data ambiguous`. */
#include <string.h>

#include "base/base.h"
#include "commands/reproduce/reproduce.h"
#include "encode/inputs/inputs.h"
#include "io/json/json.h"
#include "penumbra/ambiguous.h"

/* Share of the built-in set that is measured on; nothing is validated on. */
#define TEST_SHARE (1.0 / 6.0)
#define SETS_TEST_SHARE 0.25

/* ---- text that may fail once ---- */

/* *out, or NOMEM; for paths made one after the other. */
static pnb_status keep(char **out, char *made, pnb_error *err)
{
    *out = made;
    return made != NULL ? PNB_OK : pnb__fail_nomem(err, 256);
}

static pnb_status in_data(const pnb__reproduction *run, const char *name, char **out)
{
    char *dir = pnb__path_join(run->opts->out, "data");
    pnb_status status =
        dir != NULL ? pnb__make_dirs(dir, &run->app->err) : pnb__fail_nomem(&run->app->err, 256);
    if (status == PNB_OK)
        status = keep(out, pnb__path_join(dir, name), &run->app->err);
    pnb__free(dir);
    return status;
}

/* ---- what is written down of the test pictures ---- */

typedef struct lists {
    pnb__buf texts, truth, labels;
    char words[48][24]; /* places of the label vectors: what the pictures of `shapes` show */
    size_t n_words;
} lists;

/* Places of a sample's shapes in the label vector, which grows by those not seen before. */
static void label_words(lists *l, const json_t *shapes, unsigned char *has)
{
    static const char *const keys[] = {"form", "colour"};
    for (size_t i = 0; i < json_array_size(shapes); i++)
        for (size_t k = 0; k < PNB_COUNT(keys); k++) {
            const char *word =
                json_string_value(json_object_get(json_array_get(shapes, i), keys[k]));
            size_t at = 0;
            while (word != NULL && at < l->n_words && strcmp(l->words[at], word) != 0)
                at++;
            if (word == NULL || at == PNB_COUNT(l->words))
                continue;
            if (at == l->n_words)
                snprintf(l->words[l->n_words++], sizeof l->words[0], "%s", word);
            has[at] = 1;
        }
}

/* A line of the label vectors; none where the record has no shapes. Words stand in the order of
 * their appearance, so lines begin short and are filled up at the end. */
static pnb_status add_labels(lists *l, const char *id, const pnb_sample *s, pnb_error *err)
{
    unsigned char has[PNB_COUNT(l->words)] = {0};
    json_t *record = NULL;
    pnb_status status = PNB_OK;
    if (s->json == NULL)
        return PNB_OK;
    PNB_TRY(pnb__json_try_bytes(&record, s->json, strlen(s->json), err));
    const json_t *shapes = json_object_get(record, "shapes");
    if (json_array_size(shapes) > 0) {
        label_words(l, shapes, has);
        pnb__buf_printf(&l->labels, "%s", id);
        for (size_t k = 0; k < PNB_COUNT(l->words); k++)
            pnb__buf_printf(&l->labels, ",%d", has[k]);
        pnb__buf_putc(&l->labels, '\n');
    }
done:
    json_decref(record);
    return status;
}

/* Captions "ID#k" and their pairs; with classes a line each of who is of which. */
static pnb_status add_sample(lists *l, const pnb_dataset *set, size_t i, bool by_class,
                             pnb_error *err)
{
    pnb_sample s = {0};
    pnb_status status;
    PNB_TRY(pnb_dataset_get(set, i, &s, err));
    const char *id = pnb__sample_id(set, &s);
    if (by_class)
        pnb__buf_printf(&l->truth, "%s\t%lld\n", id, (long long)s.label);
    for (size_t k = 0; k < s.n_texts; k++) {
        char *name = pnb__format("%s#%zu", id, k);
        if (name == NULL)
            PNB_TRY(pnb__fail_nomem(err, strlen(id)));
        pnb__json_put(&l->texts, "{\"id\": %s, \"text\": %s", name, s.texts[k]);
        if (s.levels[k] >= 0)
            pnb__json_put(&l->texts, ", \"level\": %d", s.levels[k]);
        pnb__buf_puts(&l->texts, "}\n");
        if (by_class)
            pnb__buf_printf(&l->truth, "%s\t%lld\n", name, (long long)s.label);
        else
            pnb__buf_printf(&l->truth, "%s\t%s\n", id, name);
        pnb__free(name);
    }
    status = add_labels(l, id, &s, err);
done:
    pnb_sample_reset(&s);
    return status;
}

static pnb_status read_samples(const char *spec, bool by_class, lists *l, pnb_error *err)
{
    pnb_dataset *set = NULL;
    pnb_status status = pnb_dataset_open(&set, spec, NULL, err);
    for (size_t i = 0; status == PNB_OK && i < pnb_dataset_size(set); i++)
        status = add_sample(l, set, i, by_class, err);
    pnb_dataset_free(set);
    return status;
}

static pnb_status save_labels(pnb__reproduction *run, lists *l)
{
    pnb__buf text = {0};
    if (l->n_words == 0)
        return PNB_OK;
    pnb_status status = in_data(run, "labels.csv", &run->images.labels);
    pnb__buf_puts(&text, "id");
    for (size_t k = 0; k < PNB_COUNT(l->words); k++)
        pnb__buf_printf(&text, ",%s%zu", k < l->n_words ? l->words[k] : "none", k);
    pnb__buf_putc(&text, '\n');
    pnb__buf_append(&text, l->labels.data, l->labels.size);
    if (status == PNB_OK)
        return pnb__buf_write(&text, run->images.labels, &run->app->err);
    pnb__buf_reset(&text);
    return status;
}

/* Writes what the folder has no file for: captions and truth unless they are known, labels. */
static pnb_status list_test(pnb__reproduction *run)
{
    pnb__repro_images *p = &run->images;
    pnb_error *err = &run->app->err;
    lists l = {0};
    pnb_status status;
    PNB_TRY(read_samples(p->test, p->by_class, &l, err));
    if (p->texts == NULL) {
        PNB_TRY(in_data(run, "test.captions.jsonl", &p->texts));
        PNB_TRY(pnb__buf_write(&l.texts, p->texts, err));
    }
    if (p->truth == NULL) {
        PNB_TRY(in_data(run, p->by_class ? "test.labels" : "test.pairs", &p->truth));
        p->read.format = p->by_class ? PNB_TRUTH_LABELS : PNB_TRUTH_PAIRS;
        PNB_TRY(pnb__buf_write(&l.truth, p->truth, err));
    }
    if (p->labels == NULL)
        status = save_labels(run, &l);
done:
    pnb__buf_reset(&l.texts);
    pnb__buf_reset(&l.truth);
    pnb__buf_reset(&l.labels);
    return status;
}

/* ---- folders of pictures ---- */

/* The layout of `data shapes` and `data emoji`. */
static pnb_status take_made(pnb__reproduction *run, const char *root)
{
    pnb__repro_images *p = &run->images;
    pnb_error *err = &run->app->err;
    pnb_status status;
    PNB_TRY(keep(&p->train, pnb__path_join(root, "train"), err));
    PNB_TRY(keep(&p->test, pnb__path_join(root, "test"), err));
    PNB_TRY(keep(&p->texts, pnb__path_join(root, "test/captions.jsonl"), err));
    PNB_TRY(keep(&p->truth, pnb__path_join(root, "truth/test.pairs"), err));
    if (!pnb__path_has_file(root, "train/captions.jsonl") ||
        !pnb__path_has_file(root, "truth/train.pairs"))
        goto done;
    PNB_TRY(keep(&p->train_texts, pnb__path_join(root, "train/captions.jsonl"), err));
    PNB_TRY(keep(&p->train_truth, pnb__path_join(root, "truth/train.pairs"), err));
done:
    return status;
}

static const char *karpathy_in(const char *root)
{
    static const char *const names[] = {"dataset_coco.json", "dataset_flickr30k.json",
                                        "dataset_flickr8k.json"};
    for (size_t i = 0; i < PNB_COUNT(names); i++)
        if (pnb__path_has_file(root, names[i]))
            return names[i];
    return NULL;
}

static pnb_status take_karpathy(pnb__reproduction *run, const char *root, const char *name)
{
    pnb__repro_images *p = &run->images;
    pnb_error *err = &run->app->err;
    pnb_status status;
    const char *below = pnb__path_has_dir(root, "images") ? "/images" : "";
    PNB_TRY(keep(&p->train, pnb__format("%s/%s#images=%s%s", root, name, root, below), err));
    PNB_TRY(
        keep(&p->test, pnb__format("%s/%s#split=test,images=%s%s", root, name, root, below), err));
    PNB_TRY(keep(&p->truth, pnb__path_join(root, name), err));
    p->read.format = PNB_TRUTH_KARPATHY;
    p->read.split = "test";
    if (pnb__path_has_file(root, "annotations/instances_val2014.json"))
        status = keep(&p->labels, pnb__path_join(root, "annotations/instances_val2014.json"), err);
done:
    return status;
}

/* PCME's split of CUB Captions. */
static pnb_status take_cub(pnb__reproduction *run, const char *root)
{
    pnb__repro_images *p = &run->images;
    pnb_error *err = &run->app->err;
    bool omits = pnb__path_has_file(root, "seen_test_images.txt");
    pnb_status status;
    p->by_class = true;
    PNB_TRY(keep(&p->train,
                 pnb__format("%s/images#captions=%s/text_c10,classes=%s/trainvalclasses.txt%s%s%s",
                             root, root, root, omits ? ",omit=" : "", omits ? root : "",
                             omits ? "/seen_test_images.txt" : ""),
                 err));
    status = keep(
        &p->test,
        pnb__format("%s/images#captions=%s/text_c10,classes=%s/testclasses.txt", root, root, root),
        err);
done:
    return status;
}

static pnb_status take_plain(pnb__reproduction *run, const char *root)
{
    pnb_status status = keep(&run->images.train, pnb__path_join(root, "train"), &run->app->err);
    if (status == PNB_OK)
        status = keep(&run->images.test, pnb__path_join(root, "test"), &run->app->err);
    return status;
}

static pnb_status fail_layout(const pnb__reproduction *run, const char *wanted)
{
    return pnb__fail(&run->app->err, PNB_NOT_FOUND,
                     "--data %s: is none of the layouts that %s reads: %s", run->opts->data,
                     run->about->word, wanted);
}

/* Does the split open? An empty one does not, nor one whose shards cannot be read. */
static pnb_status check_split(const char *spec, pnb_error *err)
{
    pnb_dataset *set = NULL;
    pnb_status status = pnb_dataset_open(&set, spec, NULL, err);
    pnb_dataset_free(set);
    return status;
}

static pnb_status take_layout(pnb__reproduction *run)
{
    const char *root = run->opts->data;
    const char *karpathy = karpathy_in(root);
    if (karpathy != NULL)
        return take_karpathy(run, root, karpathy);
    if (pnb__path_has_dir(root, "text_c10") && pnb__path_has_dir(root, "images"))
        return take_cub(run, root);
    if (!pnb__path_has_dir(root, "train") || !pnb__path_has_dir(root, "test"))
        return fail_layout(
            run, "Karpathy's dataset_coco.json, dataset_flickr30k.json or dataset_flickr8k.json "
                 "with its pictures; images/ and text_c10/ of CUB Captions; train/ and test/ with "
                 "tar shards or with pictures and captions beside them");
    if (pnb__path_has_file(root, "truth/test.pairs") &&
        pnb__path_has_file(root, "test/captions.jsonl"))
        return take_made(run, root);
    return take_plain(run, root);
}

static pnb_status take_folder(pnb__reproduction *run)
{
    pnb_status status = take_layout(run);
    if (status == PNB_OK)
        status = check_split(run->images.train, &run->app->err);
    if (status == PNB_OK && !run->about->splits_train)
        status = check_split(run->images.test, &run->app->err);
    return status;
}

static pnb_status make_shapes(pnb__reproduction *run)
{
    pnb_shapes_opts o = pnb_shapes_opts_default();
    char *root = NULL;
    pnb_status status;
    o.n_scenes = run->opts->n_items;
    o.val_share = 0;
    o.test_share = TEST_SHARE;
    if (run->about->shapes != NULL)
        run->about->shapes(&o);
    PNB_TRY(in_data(run, "shapes", &root));
    pnb__say(run->app, "built-in pictures: %zu scenes of `data shapes` in %s", o.n_scenes, root);
    PNB_TRY(pnb_synth_shapes(run->app->ctx, &o, root, NULL, &run->app->err));
    PNB_TRY(take_made(run, root));
    status = keep(&run->data_words, pnb__format("built-in shapes, %zu scenes", o.n_scenes),
                  &run->app->err);
done:
    pnb__free(root);
    return status;
}

/* ---- sets ---- */

/* Measured and validated on are captions with the picture each was written for, where that is told;
 * what is learned from is every match. */
static pnb_status take_pair(pnb__reproduction *run, const char *root, const char *split,
                            bool is_learned, pnb__pair_paths *out)
{
    pnb_error *err = &run->app->err;
    char *paths[3] = {NULL, NULL, NULL};
    pnb_status status;
    PNB_TRY(keep(&paths[0], pnb__format("%s/%s/images.safetensors", root, split), err));
    PNB_TRY(keep(&paths[1], pnb__format("%s/%s/texts.safetensors", root, split), err));
    PNB_TRY(keep(&paths[2], pnb__format("%s/truth/%s.written.pairs", root, split), err));
    if (!pnb__path_is_file(paths[2]) || is_learned) {
        pnb__free(paths[2]);
        PNB_TRY(keep(&paths[2], pnb__format("%s/truth/%s.pairs", root, split), err));
    }
    for (size_t i = 0; i < PNB_COUNT(paths); i++)
        if (!pnb__path_is_file(paths[i])) {
            PNB_TRY(fail_layout(
                run, "{train,val,test}/images.safetensors and texts.safetensors with "
                     "truth/{train,val,test}.pairs, as `data ambiguous` writes them; val may be "
                     "absent"));
        }
    *out = (pnb__pair_paths){paths[0], paths[1], paths[2]};
    return PNB_OK;
done:
    for (size_t i = 0; i < PNB_COUNT(paths); i++)
        pnb__free(paths[i]);
    return status;
}

static pnb_status check_set(const char *path, pnb_error *err)
{
    const pnb_embeddings_load_opts opts = {.map = true};
    pnb_embeddings *set = NULL;
    pnb_status status = pnb_embeddings_load_with(&set, path, &opts, err);
    pnb_embeddings_free(set);
    return status;
}

static pnb_status take_sets(pnb__reproduction *run, const char *root)
{
    pnb_error *err = &run->app->err;
    pnb_status status;
    PNB_TRY(take_pair(run, root, "train", true, &run->train));
    PNB_TRY(take_pair(run, root, "test", false, &run->test));
    PNB_TRY(check_set(run->train.images, err));
    PNB_TRY(check_set(run->train.texts, err));
    PNB_TRY(check_set(run->test.images, err));
    PNB_TRY(check_set(run->test.texts, err));
    if (pnb__path_has_dir(root, "val"))
        PNB_TRY(take_pair(run, root, "val", false, &run->val));
    if (pnb__path_has_file(root, "test/known.safetensors"))
        status = keep(&run->known, pnb__path_join(root, "test/known.safetensors"), err);
done:
    return status;
}

static pnb_status make_sets(pnb__reproduction *run)
{
    pnb_ambiguous_opts o = pnb_ambiguous_opts_default();
    char *root = NULL;
    pnb_status status;
    o.n_images = run->opts->n_items;
    o.n_texts = PNB_MAX(o.n_images / 4, 20); /* of a level: as many captions as pictures */
    o.test_share = SETS_TEST_SHARE;
    o.length_spread = 0; /* unit rows, as methods take them */
    PNB_TRY(in_data(run, "ambiguous", &root));
    pnb__say(run->app, "built-in sets: %zu pictures of `data ambiguous` in %s", o.n_images, root);
    PNB_TRY(pnb_synth_ambiguous(run->app->ctx, &o, root, NULL, &run->app->err));
    PNB_TRY(take_sets(run, root));
    status = keep(&run->data_words,
                  pnb__format("built-in sets of known ambiguity, %zu pictures", o.n_images),
                  &run->app->err);
done:
    pnb__free(root);
    return status;
}

pnb_status pnb__reproduce_elsewhere(pnb__reproduction *run)
{
    const char *data = run->opts->data;
    char *root = NULL;
    pnb_status status = PNB_OK;
    if (data != NULL && pnb__path_has_dir(data, "elsewhere"))
        return take_pair(run, data, "elsewhere", true, &run->elsewhere);
    if (data != NULL)
        return PNB_OK;
    PNB_TRY(in_data(run, "ambiguous", &root));
    status = take_pair(run, root, "val", true, &run->elsewhere);
done:
    pnb__free(root);
    return status;
}

/* ---- either ---- */

pnb_status pnb__reproduce_find_data(pnb__reproduction *run)
{
    const char *root = run->opts->data;
    run->images.read = pnb_truth_read_opts_default();
    if (run->about->needs == PNB__REPRO_NOTHING)
        return keep(&run->data_words, pnb__strdup("no data, noise of a picture's size"),
                    &run->app->err);
    if (root == NULL)
        return PNB_OK;
    if (!pnb__path_is_dir(root))
        return pnb__fail(&run->app->err, PNB_NOT_FOUND, "--data %s: no such folder", root);
    pnb_status status = keep(&run->data_words, pnb__strdup(root), &run->app->err);
    if (status != PNB_OK)
        return status;
    status = run->about->needs == PNB__REPRO_SETS ? take_sets(run, root) : take_folder(run);
    if (status == PNB_OK && run->about->check != NULL)
        status = run->about->check(run);
    return status;
}

pnb_status pnb__reproduce_data(pnb__reproduction *run)
{
    bool has_sets = run->about->needs == PNB__REPRO_SETS;
    pnb_status status = PNB_OK;
    if (run->about->needs == PNB__REPRO_NOTHING)
        return PNB_OK;
    if (run->opts->data == NULL)
        PNB_TRY(has_sets ? make_sets(run) : make_shapes(run));
    if (run->about->prepare != NULL)
        PNB_TRY(run->about->prepare(run));
    if (!has_sets)
        status = list_test(run);
done:
    return status;
}

void pnb__pair_paths_reset(pnb__pair_paths *p)
{
    pnb__free((char *)(uintptr_t)p->images);
    pnb__free((char *)(uintptr_t)p->texts);
    pnb__free((char *)(uintptr_t)p->truth);
    *p = (pnb__pair_paths){NULL, NULL, NULL};
}

void pnb__reproduce_images_reset(pnb__repro_images *p)
{
    pnb__free(p->train);
    pnb__free(p->test);
    pnb__free(p->texts);
    pnb__free(p->truth);
    pnb__free(p->labels);
    pnb__free(p->train_texts);
    pnb__free(p->train_truth);
    *p = (pnb__repro_images){.train = NULL};
}

void pnb__reproduce_data_reset(pnb__reproduction *run)
{
    pnb__reproduce_images_reset(&run->images);
    pnb__pair_paths_reset(&run->train);
    pnb__pair_paths_reset(&run->val);
    pnb__pair_paths_reset(&run->test);
    pnb__pair_paths_reset(&run->elsewhere);
    pnb__free(run->known);
    pnb__free(run->data_words);
}
