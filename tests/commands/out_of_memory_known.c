/* Out of memory in commands about what is known: sets of real pictures, spoiled copies, and figures
 * against noise, another part of the data and known entropy. */
#include "tests/commands/failing.h"

#include "tests/data/collections/tree.h"

enum { FIRST = 60, SPREAD = 60 };

static void survive(const failing_case *cases, size_t n)
{
    long n_bad = 0;
    for (size_t i = 0; i < n; i++)
        n_bad += fail_each(&cases[i], FIRST, SPREAD);
    assert_int_equal(n_bad, 0);
}

static void each_command_survives(void **state)
{
    static const failing_case cases[] = {
        {"data corrupt --data shapes/train --change mix --swap 0.9 --out spoiled --shard-size 2 -q "
         "-t 1",
         "spoiled/train/sizes.json", "spoiled", false},
        {"eval noise --images i.safetensors --texts t.safetensors --bootstrap 5 --json -t 1", NULL,
         NULL, false},
        {"eval shift --calibration c.json --images i.safetensors --texts t.safetensors --truth "
         "known/train --refit 20 --splits 2 --bootstrap 5 --json -t 1",
         NULL, NULL, false},
        {"eval uncertainty --images i.safetensors --texts t.safetensors --entropy dose "
         "--truth known/train --bootstrap 5 --json -t 1",
         NULL, NULL, false},
        {"report --images many.safetensors --texts hidden.safetensors --bootstrap 5 --examples 1 "
         "--out r.html -q -t 1",
         "r.html", NULL, false},
    };
    (void)state;
    survive(cases, PNB_COUNT(cases));
}

static void collections_survive(void **state)
{
    static const failing_case cases[] = {
        {"data clipart --clipart clip --out drawings --size 32 --shard-size 3 -q -t 1",
         "drawings/truth/train.pairs", "drawings", false},
        {"data stamps --stamps stamps --out stamped --size 32 -q -t 1", "stamped/truth/train.pairs",
         "stamped", false},
    };
    (void)state;
    need_svg();
    survive(cases, PNB_COUNT(cases));
}

/* The font of the whole run is not ours to make: without it nothing is tried. */
#define FONT "/usr/share/fonts/truetype/noto/NotoColorEmoji.ttf"
static void mixed_survives(void **state)
{
    static const failing_case mixed = {"data mixed --clipart clip --stamps stamps --font " FONT
                                       " --emoji-test list.txt "
                                       "--cldr cldr --hold-out none --out mixed --size 32 -q -t 1",
                                       "mixed/truth/train.pairs", "mixed", false};
    (void)state;
    need_svg();
    if (access(FONT, R_OK) != 0) {
        print_message("skipped: needs fonts-noto-color-emoji\n");
        skip();
    }
    survive(&mixed, 1);
}

static void make_packages(void)
{
    static const char *const what[] = {"cat", "dog", "frog", "apple", "cake", "pear"};
    for (int i = 0; i < 6; i++) {
        char name[64], title[64];
        snprintf(name, sizeof name, "animals/%s", what[i]);
        snprintf(title, sizeof title, "A %s", what[i]);
        put_clip("clip", name, title, "Ann Miller", "animal", i);
        snprintf(name, sizeof name, "birds/bird%d.png", i);
        put_stamp_png("stamps", name, i);
        snprintf(name, sizeof name, "birds/bird%d.txt", i);
        snprintf(title, sizeof title, "Bird number %d.\nde.utf8=Vogel.\n", i);
        put_text("stamps", name, title);
    }
    put_text(".", "list.txt",
             "# group: Food\n# subgroup: fruit\n1F34E ; fully-qualified # x E0.6 red apple\n");
    put_text(".", "cldr/annotations/en.xml",
             "<annotation cp=\"\xF0\x9F\x8D\x8E\">fruit</annotation>\n");
    put_text(".", "cldr/annotationsDerived/en.xml", "");
}

static int setup(void **state)
{
    static const char *const lines[] = {
        "data shapes --out more --n 40 --size 16 --val-share 0 --test-share 0 -q -t 1",
        "data corrupt --data more/train --change erase --swap 0.3 --out known -q -t 1",
        "embed -m model --images known/train -o i.safetensors -q -t 1",
        "embed -m model --texts known/train -o t.safetensors -q -t 1",
        "data shapes --out many --n 100 --size 16 --val-share 0 --test-share 0 -q -t 1",
        "embed -m model --images many/train -o many.safetensors -q -t 1",
        "embed -m model --images many/train --masked -o hidden.safetensors -q -t 1",
        "calibrate --images i.safetensors --texts t.safetensors --truth known/train "
        "--alphas 0.1 --bins 2 --out c.json -q -t 1",
    };
    if (failing_setup(state) != 0)
        return -1;
    make_packages();
    for (size_t i = 0; i < PNB_COUNT(lines); i++)
        if (run(lines[i], -1) != 0) {
            print_message("%s: %s\n", lines[i], log_text);
            return -1;
        }
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_command_survives),
                                       cmocka_unit_test(collections_survive),
                                       cmocka_unit_test(mixed_survives)};
    return cmocka_run_group_tests(tests, setup, failing_teardown);
}
