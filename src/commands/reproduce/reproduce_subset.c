/* A few classes of the pictures, for experiments that look at single items: files of their own in
 * OUT/data/classes/{train,test}/CLASS, five pictures of six to learn from.
 *
 * A class is one coloured form of the built-in scenes that show nothing else, else the class or the
 * subgroup that a sample's record names. The first classes in the order of the data are taken. */
#include <string.h>

#include "base/base.h"
#include "commands/reproduce/reproduce.h"
#include "io/json/json.h"

enum { MAX_CLASSES = 16, TEST_EVERY = 6, NAME_BYTES = 64, MAX_IMAGE_BYTES = 1 << 28 };

typedef struct subset {
    char name[MAX_CLASSES][NAME_BYTES];
    size_t count[MAX_CLASSES];
    size_t n, wanted;
    char *root;
} subset;

/* ---- which class ---- */

static bool is_among(const char *word, const char *const *list)
{
    for (; word != NULL && *list != NULL; list++)
        if (strcmp(word, *list) == 0)
            return true;
    return false;
}

/* "red_circle" of a scene with one shape of three forms and colours; "" of other scenes; false
 * where the record is not of scenes. */
static bool scene_class(const json_t *record, char *out)
{
    static const char *const forms[] = {"circle", "star", "bar", NULL};
    static const char *const colours[] = {"red", "blue", "yellow", NULL};
    const json_t *shapes = json_object_get(record, "shapes");
    if (!json_is_array(shapes))
        return false;
    const json_t *one = json_array_size(shapes) == 1 ? json_array_get(shapes, 0) : NULL;
    const char *form = json_string_value(json_object_get(one, "form"));
    const char *colour = json_string_value(json_object_get(one, "colour"));
    out[0] = '\0';
    if (is_among(form, forms) && is_among(colour, colours))
        snprintf(out, NAME_BYTES, "%s_%s", colour, form);
    return true;
}

/* The class as the name of a folder; "": none. */
static pnb_status class_of(const pnb_sample *s, char out[NAME_BYTES], pnb_error *err)
{
    json_t *record = NULL;
    pnb_status status =
        s->json != NULL ? pnb__json_try_bytes(&record, s->json, strlen(s->json), err) : PNB_OK;
    const char *name = s->class_name != NULL ? s->class_name : s->subgroup;
    if (status == PNB_OK && !scene_class(record, out))
        snprintf(out, NAME_BYTES, "%s", name != NULL ? name : "");
    json_decref(record);
    for (char *c = out; *c != '\0'; c++)
        *c = *c == '/' || *c == ' ' ? '_' : *c;
    return status;
}

/* Its place among those that are taken, SIZE_MAX: not taken. */
static size_t place_of(subset *sub, const char *name)
{
    for (size_t i = 0; i < sub->n; i++)
        if (strcmp(sub->name[i], name) == 0)
            return i;
    if (name[0] == '\0' || sub->n == sub->wanted)
        return SIZE_MAX;
    snprintf(sub->name[sub->n], NAME_BYTES, "%s", name);
    return sub->n++;
}

/* ---- files ---- */

static pnb_status write_image(const pnb_sample *s, const char *stem, pnb_error *err)
{
    const bool is_png = s->image_path != NULL ? pnb__ends_with(s->image_path, ".png")
                                              : s->n_image_bytes > 0 && s->image_bytes[0] == 0x89;
    char *bytes = NULL, *path = pnb__format("%s.%s", stem, is_png ? "png" : "jpg");
    size_t n = s->n_image_bytes;
    pnb_status status = path != NULL ? PNB_OK : pnb__fail_nomem(err, strlen(stem));
    if (status == PNB_OK && s->image_path != NULL)
        status = pnb__read_file(s->image_path, MAX_IMAGE_BYTES, &bytes, &n, err);
    if (status == PNB_OK)
        status =
            pnb__write_file(path, s->image_path != NULL ? (void *)bytes : s->image_bytes, n, err);
    pnb__free(bytes);
    pnb__free(path);
    return status;
}

static pnb_status write_texts(const pnb_sample *s, const char *stem, pnb_error *err)
{
    pnb__buf text = {0};
    char *path = pnb__format("%s.json", stem);
    bool has_levels = true;
    if (path == NULL)
        return pnb__fail_nomem(err, strlen(stem));
    for (size_t k = 0; k < s->n_texts; k++) {
        pnb__json_put(&text, k == 0 ? "{\"captions\": [%s" : ", %s", s->texts[k]);
        has_levels = has_levels && s->levels[k] >= 0;
    }
    pnb__buf_puts(&text, "]");
    for (size_t k = 0; k < s->n_texts && has_levels; k++)
        pnb__buf_printf(&text, "%s%d", k == 0 ? ", \"levels\": [" : ", ", s->levels[k]);
    pnb__buf_puts(&text, has_levels ? "]}\n" : "}\n");
    pnb_status status = pnb__buf_write(&text, path, err);
    pnb__free(path);
    return status;
}

static pnb_status write_sample(subset *sub, const pnb_sample *s, size_t i, size_t class_place,
                               pnb_error *err)
{
    bool is_test = ++sub->count[class_place] % TEST_EVERY == 0;
    char *dir =
        pnb__format("%s/%s/%s", sub->root, is_test ? "test" : "train", sub->name[class_place]);
    char *stem = dir != NULL ? pnb__format("%s/%07zu", dir, i) : NULL;
    pnb_status status =
        stem != NULL ? pnb__make_dirs(dir, err) : pnb__fail_nomem(err, strlen(sub->root));
    if (status == PNB_OK)
        status = write_image(s, stem, err);
    if (status == PNB_OK)
        status = write_texts(s, stem, err);
    pnb__free(dir);
    pnb__free(stem);
    return status;
}

static pnb_status take_sample(subset *sub, const pnb_dataset *set, size_t i, pnb_error *err)
{
    pnb_sample s = {0};
    char name[NAME_BYTES] = "";
    pnb_status status;
    PNB_TRY(pnb_dataset_get(set, i, &s, err));
    PNB_TRY(class_of(&s, name, err));
    size_t at = place_of(sub, name);
    if (at != SIZE_MAX)
        status = write_sample(sub, &s, i, at, err);
done:
    pnb_sample_reset(&s);
    return status;
}

/* Every class needs a picture on both sides. */
static pnb_status check_classes(const pnb__reproduction *run, const subset *sub)
{
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < sub->n; i++)
        least = PNB_MIN(least, sub->count[i]);
    if (sub->n == sub->wanted && least >= TEST_EVERY)
        return PNB_OK;
    return pnb__fail(
        &run->app->err, PNB_ARG,
        "%s: %zu classes with %d pictures each are wanted, and there are %zu, of which "
        "the smallest has %zu; %s",
        run->data_words, sub->wanted, TEST_EVERY, sub->n, sub->n > 0 ? least : 0,
        run->opts->data == NULL ? "give a larger --n"
                                : "pictures in folders of their classes have them");
}

/* ---- the whole ---- */

static pnb_status use(pnb__reproduction *run, const subset *sub)
{
    pnb__repro_images *p = &run->images;
    char *train = pnb__path_join(sub->root, "train"), *test = pnb__path_join(sub->root, "test");
    char *words = pnb__format("%s, %zu classes of it", run->data_words, sub->n);
    if (train == NULL || test == NULL || words == NULL) {
        pnb__free(train);
        pnb__free(test);
        pnb__free(words);
        return pnb__fail_nomem(&run->app->err, 256);
    }
    pnb__reproduce_images_reset(p);
    pnb__free(run->data_words);
    run->data_words = words;
    *p = (pnb__repro_images){
        .train = train, .test = test, .by_class = true, .read = pnb_truth_read_opts_default()};
    return PNB_OK;
}

pnb_status pnb__reproduce_subset(pnb__reproduction *run, size_t n_classes)
{
    subset sub = {.wanted = PNB_MIN(n_classes, (size_t)MAX_CLASSES)};
    pnb_error *err = &run->app->err;
    pnb_dataset *set = NULL;
    pnb_status status = PNB_OK;
    sub.root = pnb__format("%s/data/classes", run->opts->out);
    if (sub.root == NULL)
        return pnb__fail_nomem(err, 256);
    PNB_TRY(pnb_dataset_open(&set, run->images.train, NULL, err));
    for (size_t i = 0; i < pnb_dataset_size(set); i++)
        PNB_TRY(take_sample(&sub, set, i, err));
    PNB_TRY(check_classes(run, &sub));
    status = use(run, &sub);
done:
    pnb_dataset_free(set);
    pnb__free(sub.root);
    return status;
}
