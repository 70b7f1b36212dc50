/* The first byte chooses which of the lists that people write the rest is: class names, templates,
 * labels, ids, captions, questions, weights of prompts or what people called pictures. Reading
 * ends; what was read is text and lies in bounds. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands/classify/class_inputs.h"
#include "commands/classify/classify.h"
#include "commands/eval/vqa/eval_vqa.h"
#include "encode/inputs/inputs.h"
#include "io/tables/text_lines.h"
#include "penumbra/truth.h"
#include "tests/fuzz/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void read_names(const char *path)
{
    pnb__texts names = {0};
    pnb__name_index index = {0};
    bool is_shared;
    if (pnb__classnames_read(&names, path, "pets", NULL) == PNB_OK &&
        pnb__name_index_make(&index, &names, NULL) == PNB_OK)
        for (size_t i = 0; i < names.n; i++)
            require(pnb__name_find(&index, names.items[i], &is_shared) <= i);
    pnb__name_index_reset(&index);
    pnb__texts_reset(&names);
}

static void read_templates(const char *path)
{
    static char *items[] = {"cat", "a {} dog"};
    const pnb__texts names = {.items = items, .n = 2};
    pnb__class_prompts p = {0};
    if (pnb__class_prompts_make(&p, &names, path, "pets", NULL) == PNB_OK)
        require(p.offset[0] == 0 && p.offset[1] > 0 && p.offset[1] < p.offset[2] &&
                p.offset[2] == p.prompts.n);
    pnb__class_prompts_reset(&p);
}

static void read_labels(const char *path)
{
    static char *items[] = {"cat", "big_dog", "cat"};
    static const char *const ids[] = {"a.jpg", "7", "7"};
    const pnb__texts classes = {.items = items, .n = 3};
    pnb__class_source s = {0};
    if (pnb_embeddings_create(&s.set, PNB_POINT, 3, 1, NULL) != PNB_OK)
        return;
    for (size_t i = 0; i < 3; i++)
        (void)pnb_embeddings_set_id(s.set, i, ids[i], NULL);
    if (pnb__class_source_label(&s, &classes, path, NULL) == PNB_OK)
        for (size_t i = 0; i < 3; i++)
            require(s.label[i] >= -1 && s.label[i] < 3);
    pnb__class_source_reset(&s);
}

static void read_ids(const char *path)
{
    pnb__lines lines = {0};
    if (pnb__lines_load(&lines, path, NULL) == PNB_OK)
        for (size_t i = 0; i < lines.n; i++)
            require(lines.line[i][0] != '\0' && strchr(lines.line[i], '\n') == NULL);
    pnb__lines_reset(&lines);
}

static void read_texts(const char *path)
{
    pnb__text_inputs c = {0};
    (void)pnb__text_inputs_add(&c, path, "title", NULL, NULL);
    for (size_t i = 0; i < c.n; i++)
        require(c.items[i].text == NULL ||
                pnb__utf8_valid(c.items[i].text, strlen(c.items[i].text)));
    pnb__text_inputs_reset(&c);
}

static void read_questions(const char *path)
{
    pnb__app app = {.log = fopen("/dev/null", "w")}; /* warnings are part of what is tried */
    require(app.log != NULL);
    const pnb__vqa_opts opts = {
        .questions = path, .confidence_of = "candidate", .n_bins = 10, .n_resamples = 2};
    pnb__result *r = pnb__result_create();
    if (pnb__vqa_run(&app, &opts, r) != PNB_OK)
        require(app.err.status != PNB_OK && app.err.text[0] != '\0');
    pnb__result_free(r);
    fclose(app.log);
}

static void read_weights(const char *path)
{
    static char *items[] = {"cat", "dog"};
    static const char *const prompts[] = {"a cat", "a dog", "the dog"};
    size_t offset[] = {0, 1, 3};
    double weight[3];
    const pnb__classify_opts opts = {.load_weights = path};
    pnb__app app = {0};
    pnb__classify run = {
        .opts = &opts, .classes = {.items = items, .n = 2}, .offset = offset, .weight = weight};
    if (pnb_embeddings_create(&run.prompts, PNB_POINT, 3, 1, NULL) != PNB_OK)
        return;
    for (size_t i = 0; i < 3; i++)
        (void)pnb_embeddings_set_id(run.prompts, i, prompts[i], NULL);
    if (pnb__classify_load_weights(&app, &run) == PNB_OK) {
        require(fabs(weight[0] - 1) < 1e-5 && fabs(weight[1] + weight[2] - 1) < 1e-5);
        require(weight[1] >= 0 && weight[2] >= 0 && run.method[0] != '\0');
    } else {
        require(app.err.status != PNB_OK && app.err.text[0] != '\0');
    }
    pnb_embeddings_free(run.prompts);
}

static void read_counts(const char *path)
{
    static const char *const ids[] = {"a.jpg", "b", "7"};
    const pnb_truth_rows images = {.n = 3, .ids = ids};
    pnb_error err = PNB_ERROR_INIT;
    double bits[3];
    size_t n_known = 0;
    if (pnb_label_entropy_load(bits, path, &images, &err) != PNB_OK) {
        require(err.status != PNB_OK && err.text[0] != '\0');
        return;
    }
    for (size_t i = 0; i < 3; i++) {
        require(isnan(bits[i]) || (bits[i] >= 0 && bits[i] < 16.001)); /* log2 of most labels */
        n_known += isnan(bits[i]) ? 0 : 1;
    }
    require(n_known > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct {
        const char *ending;
        void (*read)(const char *path);
    } kinds[] = {{"txt", read_names},       {"json", read_names},   {"txt", read_templates},
                 {"json", read_templates},  {"tsv", read_labels},   {"txt", read_ids},
                 {"txt", read_texts},       {"jsonl", read_texts},  {"csv", read_texts},
                 {"jsonl", read_questions}, {"json", read_weights}, {"csv", read_counts},
                 {"tsv", read_counts},      {"npy", read_counts}};
    char dir[] = "/tmp/penumbra_fuzz_XXXXXX", path[64];
    if (size == 0 || mkdtemp(dir) == NULL)
        return 0;
    size_t kind = data[0] % PNB_COUNT(kinds);
    snprintf(path, sizeof path, "%s/list.%s", dir, kinds[kind].ending);
    if (scratch_write(path, data + 1, size - 1))
        kinds[kind].read(path);
    unlink(path);
    rmdir(dir);
    return 0;
}
