/* Files in the place of others are told by their first bytes; captions never are taken for one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "io/foreign.h"
#include "io/json/json.h"
#include "penumbra/checkpoint.h"
#include "penumbra/image.h"
#include "penumbra/safetensors.h"
#include "penumbra/tokenizer.h"

#define POINTER "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n"
#define PAGE "\xEF\xBB\xBF \n<!DOCTYPE html>\n<html><body>Forbidden</body></html>"

static void formats_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        const char *says;
    } cases[] = {
        {"PAR1\x15\x04", 6, "pandas.read_parquet"},
        {"\x1F\x8B\x08", 3, "gzip"},
        {"PK\x03\x04", 4, "zip"},
        {"\x89PNG\r", 5, "PNG picture"},
        {"\xFF\xD8\xFF\xE0", 4, "JPEG picture"},
        {"\x08\0\0\0\0\0\0\0{}", 10, "safetensors"},
        {"\x93NUMPY\1", 7, "NumPy"},
        {"\xFF\xFE"
         "a",
         3, "UTF-16"},
        {POINTER, sizeof POINTER - 1, "git lfs pull"},
        {PAGE, sizeof PAGE - 1, "web page"},
        {"<HTML>", 6, "web page"},
        {"a photo", 7, NULL},
        {"", 0, NULL},
        {"P", 1, NULL},
        {"version https://example.org", 27, NULL},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        const char *found = pnb__foreign(cases[i].bytes, cases[i].n);
        if ((found == NULL) != (cases[i].says == NULL) ||
            (found != NULL && strstr(found, cases[i].says) == NULL))
            fail_msg("case %zu: %s", i, found != NULL ? found : "nothing");
    }
    assert_null(pnb__stand_in("PAR1", 4));
}

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

static void a_url_is_no_picture(void **state)
{
    (void)state;
    pnb_image image = {0};
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb_image_load(&image, "https://x.org/cat.jpg", NULL, &err), PNB_NOT_FOUND);
    assert_non_null(strstr(err.text, "this is a URL"));
    pnb_error_reset(&err);
    assert_int_equal(pnb_image_decode(&image, "a red star\n", 11, NULL, &err), PNB_FORMAT);
    assert_non_null(strstr(err.text, "this is text"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_are_told),
        cmocka_unit_test(stand_ins_are_told_by_every_reader),
        cmocka_unit_test(a_url_is_no_picture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
