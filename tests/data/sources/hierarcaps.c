/* Files of caption hierarchies: the format as distributed, and what is refused with its line. */
#include "penumbra/hierarcaps.h"
#include "tests/prob/support.h"
#include <unistd.h>

static char dir[] = "/tmp/pnb-hierarcaps-XXXXXX";
static char path[64];

static int set_up(void **state)
{
    (void)state;
    if (mkdtemp(dir) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/h.csv", dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    (void)unlink(path);
    return rmdir(dir);
}

static void write_text(const char *text)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
}

static void as_distributed(void **state)
{
    (void)state;
    pnb_hierarcaps *h = NULL;
    write_text("id,captions,image_url\n"
               "285,\"animal=>bear => brown bear=>a \"\"big\"\" bear, sitting\",http://x/285.jpg\n"
               "\n"
               "632,\"room=>bedroom=>bedroom with bookshelf=>a bed, a shelf\nand light\",\r\n");
    assert_ok(pnb_hierarcaps_load(&h, path, err));
    assert_int_equal(h->n, 2);
    assert_int_equal(h->n_levels, 4);
    assert_string_equal(h->id[0], "285");
    assert_string_equal(h->url[0], "http://x/285.jpg");
    assert_string_equal(h->url[1], "");
    assert_string_equal(h->text[1], "bear");
    assert_string_equal(h->text[3], "a \"big\" bear, sitting");
    assert_string_equal(h->text[7], "a bed, a shelf\nand light");
    pnb_hierarcaps_free(h);
}

static void any_names_and_more_columns(void **state)
{
    (void)state;
    pnb_hierarcaps *h = NULL;
    write_text("\xEF\xBB\xBF,text,url,split\n7,a=>b,u,val\n8,c=>d,u,val\n");
    assert_ok(pnb_hierarcaps_load(&h, path, err));
    assert_int_equal(h->n_levels, 2);
    assert_string_equal(h->text[3], "d");
    pnb_hierarcaps_free(h);
}

static void refuses_text(const char *text, pnb_status status, const char *part)
{
    pnb_hierarcaps *h = NULL;
    write_text(text);
    assert_fails(pnb_hierarcaps_load(&h, path, err), status, part);
    assert_null(h);
}

static void refuses(void **state)
{
    (void)state;
    pnb_hierarcaps *h = NULL;
    refuses_text("id,c,u\n1,a bear,x\n", PNB_FORMAT, "line 2: no \"=>\"");
    refuses_text("id,c,u\n1,a=>b=>c,x\n2,a=>b,x\n", PNB_FORMAT, "line 3: 2 levels");
    refuses_text("id,c,u\n1,a=>b,x\n2,a=>b=>c,x\n", PNB_FORMAT, "have 2");
    refuses_text("id,c,u\n1,a=> =>c,x\n", PNB_FORMAT, "level 1 is empty");
    refuses_text("id,c,u\n1,a=>\xFF,x\n", PNB_FORMAT, "not UTF-8");
    refuses_text("id,c\n1,a=>b\n", PNB_FORMAT, "2 columns");
    refuses_text("id,c,u\n1,a=>b,x\n1,c=>d,x\n", PNB_ARG, "'1' occurs twice");
    refuses_text("id,c,u\n", PNB_ARG, "no row");
    refuses_text("id,c,u\n1,a=>b\n", PNB_SHAPE, "2 fields");
    refuses_text("id,c,u\n1,\"a=>b,x\n", PNB_FORMAT, "never closed");
    (void)unlink(path);
    assert_fails(pnb_hierarcaps_load(&h, path, err), PNB_NOT_FOUND, "h.csv");
    write_text("");
}

#ifdef PNB_FAULTS
static void out_of_memory(void **state)
{
    (void)state;
    long n = 0;
    write_text("id,captions,image_url\n1,a=>b=>c,x\n2,d=>e=>f,y\n");
    for (;; n++) {
        pnb_error error = PNB_ERROR_INIT;
        pnb_hierarcaps *h = NULL;
        pnb__alloc_fail_after(n);
        pnb_status status = pnb_hierarcaps_load(&h, path, &error);
        pnb__alloc_fail_after(-1);
        if (status == PNB_OK) {
            pnb_hierarcaps_free(h);
            break;
        }
        assert_int_equal(status, PNB_NOMEM);
        assert_null(h);
        assert_true(n < 1000);
    }
    assert_true(n > 10);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_distributed),
        cmocka_unit_test(any_names_and_more_columns),
        cmocka_unit_test(refuses),
#ifdef PNB_FAULTS
        cmocka_unit_test(out_of_memory),
#endif
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
