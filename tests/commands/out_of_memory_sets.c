/* Out of memory in commands that measure and filter embedding sets. */
#include "tests/commands/failing.h"

static void each_command_survives(void **state)
{
    static const failing_case cases[] = {
        {"filter --images i.safetensors --texts t.safetensors --pair-by ids --data shapes/train "
         "--top 0.5 --out "
         "kept --shard-size 2 -q -t 1",
         "kept/sizes.json", "kept", false},
        {"filter --images i.safetensors --texts t.safetensors --pair-by ids --top 0.5 --list "
         "kept.jsonl "
         "--dropped dropped.jsonl --preview f.html -q -t 1",
         "kept.jsonl", NULL, false},
        {"calibrate --images t.safetensors --texts t.safetensors --alphas 0.1 --bins 2 "
         "--out c.json --plot c.html -t 1",
         "c.json", NULL, false},
        {"eval compare --images i.safetensors j.safetensors --texts t.safetensors t.safetensors "
         "--truth shapes/train --bootstrap 5 --csv cmp.csv --markdown cmp.md -t 1",
         "cmp.md", NULL, false},
        {"eval retrieval --images t.safetensors --texts t.safetensors --class-key image "
         "--bootstrap 0 "
         "--json -t 1",
         NULL, NULL, false},
        {"eval suite --results suite.json --main shapes=rsum --csv suite.csv --json", "suite.csv",
         NULL, false},
        {"report --images i.safetensors --texts t.safetensors --truth shapes/train "
         "--out r.html -q -t 1",
         "r.html", NULL, false},
        {"traverse --images i.safetensors --texts t.safetensors -m model --json -t 1", NULL, NULL,
         false},
    };
    (void)state;
    long n_bad = 0;
    for (size_t i = 0; i < PNB_COUNT(cases); i++)
        n_bad += fail_each(&cases[i], 100, 80);
    assert_int_equal(n_bad, 0);
}

static int setup(void **state)
{
    static const char *const lines[] = {
        "embed -m model --images shapes/train -o i.safetensors -q -t 1",
        "embed -m model --images shapes/train --masked -o j.safetensors -q -t 1",
        "embed -m model --texts shapes/train -o t.safetensors -q -t 1",
        "eval retrieval --images t.safetensors --texts t.safetensors --class-key image --dataset "
        "shapes --bootstrap 0 --output suite.json -q -t 1",
    };
    if (failing_setup(state) != 0)
        return -1;
    for (size_t i = 0; i < PNB_COUNT(lines); i++)
        if (run(lines[i], -1) != 0) {
            print_message("%s: %s\n", lines[i], log_text);
            return -1;
        }
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_command_survives)};
    return cmocka_run_group_tests(tests, setup, failing_teardown);
}
