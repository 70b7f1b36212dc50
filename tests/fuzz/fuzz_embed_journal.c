/* The journal of an embedding job, after a crash or a stranger: taking it up ends, and what it says
 * is done lies within what its parts hold. */
#include <stdint.h>
#include <stdlib.h>

#include "encode/job/embed_journal.h"
#include "tests/fuzz/folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {
    "o.safetensors.journal/parts.jsonl", "o.safetensors.journal/job",
    "o.safetensors.journal/part-00000.safetensors", "o.safetensors.journal/lock",
    "o.safetensors.journal/parts-1.jsonl"};

/* Inputs 2 and behind have changed since. */
static uint64_t stamp(void *user, size_t begin, size_t end)
{
    (void)user;
    (void)begin;
    return end <= 2 ? 7 : 8;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    folder f;
    char path[160];
    pnb__embed_journal j = {0};
    pnb_error err = PNB_ERROR_INIT;
    if (!folder_make(&f, names, PNB_COUNT(names), data, size))
        return 0;
    if (!pnb__path_is_file(folder_path(&f, names[1], path)))
        scratch_write(path, (const uint8_t *)"job", 3);
    const pnb__embed_job_key key = {.signature = "job", .n_inputs = 4, .batch = 1, .stamp = stamp};
    pnb_status status =
        pnb__embed_journal_open(&j, folder_path(&f, "o.safetensors", path), &key, &err);
    REQUIRE_TOLD(status, err);
    for (size_t i = 0; status == PNB_OK && i < j.n_parts; i++) {
        const pnb__embed_part *p = &j.parts[i];
        if (p->begin >= p->end || p->end > key.n_inputs || p->n_rows > p->end - p->begin ||
            (i > 0 && p->begin < j.parts[i - 1].end) || (p->path != NULL) != (p->n_rows > 0))
            abort();
        if (p->path != NULL && (!pnb__starts_with(p->path, j.dir) ||
                                !pnb__starts_with(pnb__path_base(p->path), "part-")))
            abort();
    }
    pnb__embed_journal_close(&j, false);
    folder_remove(&f);
    return 0;
}
