/* Files in the place of others are told by their first bytes; captions never are taken for one. */
#include "io/foreign.h"

#include "tests/io/scratch.h"

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
        {"PAR1\x15\x04", 6, "ends in .parquet"},
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

/* A length below 4 GB (headers end at 100 MB), then the brace. */
static void lengths_of_safetensors(void **state)
{
    (void)state;
    unsigned char bytes[10] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, '{', '}'};
    for (int i = 5; i < 9; i++) {
        unsigned char kept = bytes[i];
        assert_non_null(pnb__foreign(bytes, 10));
        bytes[i] = 1;
        assert_null(pnb__foreign(bytes, 10));
        bytes[i] = kept;
    }
    assert_null(pnb__foreign(bytes, 9));
}

/* Every row of the table by a word of its own; a byte less, or one that differs, is none of them.
 */
static void every_format(void **state)
{
    (void)state;
    static char tar[262];
    memcpy(tar + 257, "ustar", 5);
    static const struct {
        const char *bytes;
        size_t n;
        const char *says;
    } cases[] = {{"ARROW1", 6, "Arrow"},
                 {"\x28\xB5\x2F\xFD", 4, "zstd"},
                 {"\xFD"
                  "7zXZ",
                  5, "unxz"},
                 {"BZh", 3, "bunzip2"},
                 {tar, 262, "tar archive"},
                 {"SQLite format 3", 15, "SQLite"},
                 {"GIF8", 4, "GIF picture"},
                 {"RIFF", 4, "WebP picture"},
                 {"%PDF-", 5, "PDF"},
                 {"\xFE\xFF", 2, "UTF-16"},
                 {"PAR1", 4, "Parquet"},
                 {"\x93NUMPY", 6, "NumPy"}};
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        char other[262];
        const char *found = pnb__foreign(cases[i].bytes, cases[i].n);
        if (found == NULL || strstr(found, cases[i].says) == NULL)
            fail_msg("case %zu: %s", i, found != NULL ? found : "nothing");
        assert_null(pnb__foreign(cases[i].bytes, cases[i].n - 1));
        memcpy(other, cases[i].bytes, cases[i].n);
        other[cases[i].n - 1] ^= 1;
        found = pnb__foreign(other, cases[i].n);
        assert_true(found == NULL || strstr(found, cases[i].says) == NULL);
    }
}

/* A page behind white space and a byte-order mark, in any case; not one far behind other text. */
static void pages_are_told(void **state)
{
    (void)state;
    static const char *const pages[] = {"<!DOCTYPE html>", "\xEF\xBB\xBF\r\n\t <HTML lang=en>",
                                        "<!doctype HTML"};
    static const char *const others[] = {"see <html>", "<htm", "<!doctype", "<svg>", " "};
    for (size_t i = 0; i < PNB_COUNT(pages); i++)
        assert_non_null(strstr(pnb__stand_in(pages[i], strlen(pages[i])), "web page"));
    for (size_t i = 0; i < PNB_COUNT(others); i++)
        assert_null(pnb__stand_in(others[i], strlen(others[i])));
    pnb_error err = PNB_ERROR_INIT;
    assert_failed(pnb__refuse_stand_in("model.bin", pages[0], strlen(pages[0]), &err), &err,
                  PNB_FORMAT, "model.bin: this is a web page");
    assert_int_equal(pnb__refuse_stand_in("model.bin", "PK\3\4", 4, NULL), PNB_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_are_told),
        cmocka_unit_test(lengths_of_safetensors),
        cmocka_unit_test(every_format),
        cmocka_unit_test(pages_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
