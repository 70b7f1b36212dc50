/* libFuzzer's own changes to pictures; three times of four the checksums of PNG are made right
 * after them. Linked into the fuzzer only, not where a corpus is replayed. */
#include "tests/fuzz/mend/png.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    size = LLVMFuzzerMutate(data, size, max_size);
    if (seed % 4 != 0)
        mend_png(data, size);
    return size;
}
