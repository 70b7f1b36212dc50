/* emoji-test.txt and CLDR's annotations from strangers: what is read ends, and names and keywords
 * are text. */
#include <stdint.h>
#include <stdlib.h>

#include "data/synth/emoji.h"
#include "tests/fuzz/folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {"list/emoji-test.txt", "annotations/en.xml",
                                    "annotationsDerived/en.xml"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    folder f;
    char path[160];
    pnb__emoji_list list = {0};
    pnb_error err = PNB_ERROR_INIT;
    if (!folder_make(&f, names, PNB_COUNT(names), data, size))
        return 0;
    pnb_status status = pnb__emoji_read(&list, folder_path(&f, names[0], path), true, &err);
    if (status == PNB_OK)
        status = pnb__emoji_add_words(&list, f.dir, &err);
    REQUIRE_TOLD(status, err);
    for (size_t i = 0; status == PNB_OK && i < list.n; i++)
        if (strlen(list.items[i].name) > size)
            abort();
    pnb__emoji_free(&list);
    folder_remove(&f);
    return 0;
}
