/* Files in the place of others are told by every reader that could be given one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "penumbra/checkpoint.h"
#include "penumbra/image.h"
#include "penumbra/safetensors.h"
#include "penumbra/tokenizer.h"

#define POINTER "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n"
#define PAGE "\xEF\xBB\xBF \n<!DOCTYPE html>\n<html><body>Forbidden</body></html>"

static void stand_ins_are_told_by_every_reader(void **state)
{
    (void)state;
    static const char *const contents[] = {POINTER, PAGE};
    static const char *const says[] = {"Git LFS pointer", "web page"};
    static const char *const endings[] = {".safetensors", ".bin", ".json", ".model", ".jpg"};
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < PNB_COUNT(endings); k++) {
            char path[64];
            pnb_error err = PNB_ERROR_INIT;
            pnb_safetensors *st = NULL;
            pnb_checkpoint *c = NULL;
            pnb_tokenizer *t = NULL;
            pnb_image image = {0};
            pnb_status status = PNB_OK;
            snprintf(path, sizeof path, "/tmp/pnb-foreign-%d%s", (int)getpid(), endings[k]);
            assert_int_equal(pnb__write_file(path, contents[i], strlen(contents[i]), NULL), PNB_OK);
            if (k < 2)
                status = pnb_checkpoint_open(&c, path, &err);
            else if (k < 4)
                status = pnb_tokenizer_load(&t, path, &err);
            else
                status = pnb_image_load(&image, path, NULL, &err);
            assert_int_equal(status, PNB_FORMAT);
            assert_non_null(strstr(err.text, says[i]));
            if (k == 0) {
                pnb_error_reset(&err);
                assert_int_equal(pnb_safetensors_open(&st, path, &err), PNB_FORMAT);
                assert_non_null(strstr(err.text, says[i]));
            }
            unlink(path);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(stand_ins_are_told_by_every_reader)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
