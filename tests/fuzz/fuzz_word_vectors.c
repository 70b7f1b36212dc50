/* Any bytes as a file of word vectors of three numbers: what is read is finite, a word that is not
 * found keeps its row, and a refusal says why. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/tables/word_vectors.h"
#include "tests/fuzz/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const words[] = {"dog", "t-shirt", "u.s.", "and/or", "a", "\xC3\xA9"};
    enum { N = sizeof words / sizeof *words, D = 3 };
    float rows[N * D];
    unsigned char found[N];
    char path[64];
    pnb_error err = PNB_ERROR_INIT;
    pnb__wanted_words w = {words, N, D, rows, found};
    for (int i = 0; i < N * D; i++)
        rows[i] = 0.25F;
    snprintf(path, sizeof path, "/tmp/pnb-fuzz-vectors-%ld", (long)getpid());
    if (!scratch_write(path, data, size))
        return 0;
    if (pnb__word_vectors_read(path, &w, &err) != PNB_OK) {
        if (err.text[0] == '\0')
            abort();
    } else {
        for (int i = 0; i < N * D; i++)
            if (!isfinite((double)rows[i]) ||
                (found[i / D] == PNB__WORD_MISSING && rows[i] != 0.25F))
                abort();
    }
    unlink(path);
    return 0;
}
