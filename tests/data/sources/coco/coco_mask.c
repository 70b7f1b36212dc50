/* COCO's masks in all three forms, pixel by pixel, and what is none of them. */
#include "data/sources/coco/coco_mask.h"
#include "tests/prob/support.h"

static json_t *parse(const char *text)
{
    json_t *list = NULL;
    char *in_brackets = pnb__format("[%s]", text);
    assert_ok(pnb__json_load_bytes(&list, in_brackets, strlen(in_brackets), text, err));
    json_t *value = json_incref(json_array_get(list, 0));
    json_decref(list);
    pnb__free(in_brackets);
    return value;
}

/* Rows of '.' and '#', joined. */
static void mask_is(const char *segmentation, int width, int height, const char *want)
{
    json_t *value = parse(segmentation);
    unsigned char *mask = malloc((size_t)width * (size_t)height);
    char *got = calloc((size_t)width * (size_t)height + 1, 1);
    assert_true(mask != NULL && got != NULL);
    assert_ok(pnb__coco_mask(value, width, height, mask, err));
    for (int i = 0; i < width * height; i++)
        got[i] = mask[i] ? '#' : '.';
    assert_string_equal(got, want);
    free(mask);
    free(got);
    json_decref(value);
}

static void polygons(void **state)
{
    (void)state;
    mask_is("[[1,1,4,1,4,3,1,3]]", 6, 4,
            "......"
            ".###.."
            ".###.."
            "......");
    mask_is("[[0,0,4,0,0,4]]", 4, 4,
            "###."
            "##.."
            "#..."
            "....");
    mask_is("[[0,0,2,0,2,2,0,2],[1,1,3,1,3,3,1,3]]", 4, 3,
            "##.." /* union, no hole */
            "###."
            ".##.");
    mask_is("[[-50,-50,1,-50,1,50,-50,50],[3.4,0,900,0,900,2,3.4,2]]", 5, 2,
            "#..##"
            "#..##");
    mask_is("[[0.2,0,4.2,4,4.2,0,0.2,4]]", 5, 4,
            "#...." /* crosses itself */
            "##.#."
            "##.#."
            "#....");
}

static void uncompressed_runs(void **state)
{
    (void)state;
    /* columns: 2 off, 3 on, 1 off -> first column ..#, second ##. */
    mask_is("{\"size\":[3,2],\"counts\":[2,3,1]}", 2, 3,
            ".#"
            ".#"
            "#.");
    mask_is("{\"size\":[2,2],\"counts\":[0,4]}", 2, 2, "####");
    mask_is("{\"size\":[2,2],\"counts\":[4]}", 2, 2, "....");
}

/* The text form, written after the format's description: groups of 5 bits, lowest first. */
static void compress(const uint32_t *runs, size_t n, char *out)
{
    for (size_t i = 0; i < n; i++) {
        int64_t x = (int64_t)runs[i] - (i > 2 ? (int64_t)runs[i - 2] : 0);
        bool more = true;
        while (more) {
            int code = (int)(x & 31);
            x >>= 5;
            more = code & 16 ? x != -1 : x != 0;
            *out++ = (char)((more ? code | 32 : code) + 48);
        }
    }
    *out = '\0';
}

static void compressed_runs(void **state)
{
    (void)state;
    uint32_t runs[64], back[64];
    char text[1024];
    size_t n = 0;
    pnb__rng rng;
    /* 307200 = 9*2^15 + 12*2^10: characters 0+32+48, 0+32+48, 12+32+48, 9+48 */
    assert_ok(pnb__coco_runs("PP\\9", back, &n, err));
    assert_true(n == 1 && back[0] == 307200);
    assert_ok(pnb__coco_runs("231O2", back, &n, err)); /* 2 3 1, then 3-1... : 3 + -1, 1 + 2 */
    assert_true(n == 5 && back[2] == 1 && back[3] == 2 && back[4] == 3);
    pnb__rng_init(&rng, 1, 2);
    for (int trial = 0; trial < 200; trial++) {
        for (size_t i = 0; i < 64; i++)
            runs[i] = (uint32_t)pnb__rng_below(&rng, (uint64_t)1 << (1 + trial % 31));
        compress(runs, 64, text);
        assert_ok(pnb__coco_runs(text, back, &n, err));
        assert_int_equal(n, 64);
        assert_memory_equal(runs, back, sizeof runs);
    }
    mask_is("{\"size\":[3,2],\"counts\":\"231\"}", 2, 3,
            ".#"
            ".#"
            "#.");
}

static void mask_refused(const char *segmentation, pnb_status status, const char *part)
{
    unsigned char mask[6];
    json_t *value = parse(segmentation);
    assert_fails(pnb__coco_mask(value, 2, 3, mask, err), status, part);
    json_decref(value);
}

static void bad_masks(void **state)
{
    (void)state;
    mask_refused("7", PNB_FORMAT, "neither polygons nor runs");
    mask_refused("[]", PNB_FORMAT, "list of polygons is empty");
    mask_refused("[[0,0,1,1]]", PNB_FORMAT, "4 numbers");
    mask_refused("[[0,0,1,1,2]]", PNB_FORMAT, "5 numbers");
    mask_refused("[7]", PNB_FORMAT, "0 numbers");
    mask_refused("[[0,0,1,\"a\",2,2]]", PNB_FORMAT, "coordinate 3");
    mask_refused("{\"counts\":[6]}", PNB_FORMAT, "no \"size\"");
    mask_refused("{\"size\":[3,2]}", PNB_FORMAT, "no \"counts\"");
    mask_refused("{\"size\":[2,3],\"counts\":[6]}", PNB_SHAPE, "3x2 pixels");
    mask_refused("{\"size\":[3,2],\"counts\":[5]}", PNB_FORMAT, "cover 5 pixels");
    mask_refused("{\"size\":[3,2],\"counts\":[5,2]}", PNB_FORMAT, "longer than");
    mask_refused("{\"size\":[3,2],\"counts\":[2,-3]}", PNB_FORMAT, "run 1");
    mask_refused("{\"size\":[3,2],\"counts\":[2.5]}", PNB_FORMAT, "run 0");
    mask_refused("{\"size\":[3,2],\"counts\":\"P\"}", PNB_FORMAT, "within a number");
    mask_refused("{\"size\":[3,2],\"counts\":\"2 1\"}", PNB_FORMAT, "' ' is no character");
    mask_refused("{\"size\":[3,2],\"counts\":\"PPPPPPPP0\"}", PNB_FORMAT, "too long");
    mask_refused("{\"size\":[3,2],\"counts\":\"O\"}", PNB_FORMAT, "run 0 has length -1");
}

/* A mask is drawn anew: what stood in it before is gone, also where the reader fails. */
static void drawn_anew(void **state)
{
    (void)state;
    unsigned char mask[4] = {7, 7, 7, 7};
    json_t *value = parse("[[0,0,1,0,1,1,0,1]]");
    assert_ok(pnb__coco_mask(value, 2, 2, mask, err));
    assert_memory_equal(mask, "\1\0\0\0", 4);
    json_decref(value);
    value = parse("[[0,0,1,0,1]]");
    memset(mask, 7, sizeof mask);
    assert_fails(pnb__coco_mask(value, 2, 2, mask, err), PNB_FORMAT, "5 numbers");
    assert_memory_equal(mask, "\0\0\0\0", 4);
    json_decref(value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(polygons),
                                       cmocka_unit_test(uncompressed_runs),
                                       cmocka_unit_test(compressed_runs),
                                       cmocka_unit_test(bad_masks), cmocka_unit_test(drawn_anew)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
