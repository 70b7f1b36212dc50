/* Data sets as people keep them: tables, lines of records, files beside pictures. What opens has
 * samples that can each be asked for, and their captions are UTF-8. */
#include <stdint.h>
#include <stdlib.h>

#include "base/base.h"
#include "penumbra/dataset.h"
#include "tests/fuzz/folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {"t.csv",    "t.tsv",   "t.jsonl", "t.json",
                                    "d/a.json", "d/a.txt", "d/a.png"};

/* 1 x 1, grey. */
static const uint8_t png[] = {
    0x89, 'P',  'N',  'G',  13,  10,  26,  10,   0,    0,    0,    13,  'I',  'H',  'D',  'R',  0,
    0,    0,    1,    0,    0,   0,   1,   8,    0,    0,    0,    0,   0x3A, 0x7E, 0x9B, 0x55, 0,
    0,    0,    10,   'I',  'D', 'A', 'T', 0x78, 0x9C, 0x63, 0x60, 0,   0,    0,    2,    0,    1,
    0x48, 0xAF, 0xA4, 0x71, 0,   0,   0,   0,    'I',  'E',  'N',  'D', 0xAE, 0x42, 0x60, 0x82};

static void read_all(const char *path)
{
    pnb_dataset *ds = NULL;
    pnb_error err = PNB_ERROR_INIT;
    pnb_dataset_opts opts = pnb_dataset_opts_default();
    opts.allow_no_caption = true;
    pnb_status status = pnb_dataset_open(&ds, path, &opts, &err);
    REQUIRE_TOLD(status, err);
    for (size_t i = 0; status == PNB_OK && i < pnb_dataset_size(ds) && i < 16; i++) {
        pnb_sample s = {0};
        pnb_error why = PNB_ERROR_INIT;
        pnb_status got = pnb_dataset_get(ds, i, &s, &why);
        REQUIRE_TOLD(got, why);
        for (size_t j = 0; got == PNB_OK && j < s.n_texts; j++)
            if (!pnb__utf8_valid(s.texts[j], strlen(s.texts[j])))
                abort();
        pnb_sample_reset(&s);
    }
    pnb_dataset_free(ds);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    folder f;
    char path[160];
    if (!folder_make(&f, names, PNB_COUNT(names), data, size))
        return 0;
    if (!pnb__path_is_file(folder_path(&f, "d/a.png", path)))
        scratch_write(path, png, sizeof png);
    for (size_t i = 0; i < 4; i++)
        if (pnb__path_is_file(folder_path(&f, names[i], path)))
            read_all(path);
    read_all(folder_path(&f, "d", path));
    folder_remove(&f);
    return 0;
}
