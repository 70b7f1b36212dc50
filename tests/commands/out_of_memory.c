/* Out of memory in commands that make models, data and embedding sets, and search them. */
#include "tests/commands/failing.h"

static void each_command_survives(void **state)
{
    static const failing_case cases[] = {
        {"tokenizer train --captions shapes/train/captions.jsonl --vocab-size 300 --out tok.json "
         "-q -t 1",
         "tok.json", NULL, false},
        {"tokenizer encode --tokenizer tok.json --json -t 1 --text red-star", NULL, NULL, false},
        {"info model --json", NULL, NULL, false},
        {"check model -t 1 --json", NULL, NULL, false},
        {"embed -m model --images shapes/val -o i.safetensors -q -t 1", "i.safetensors", NULL,
         false},
        {"embed -m model --texts captions.txt -o t.safetensors -q -t 1", "t.safetensors", NULL,
         false},
        {"search --index t.safetensors --queries i.safetensors --json -t 1", NULL, NULL, false},
        {"eval retrieval --images i.safetensors --texts i.safetensors --bootstrap 0 --json -t 1",
         NULL, NULL, false},
        {"adapt train --method whitened --texts t.safetensors --out adapted -q -t 1",
         "adapted/config.json", "adapted", true},
        {"adapt train --method conformity --texts t.safetensors --out adapter -q -t 1", NULL, NULL,
         false},
        {"adapt apply --adapter adapter --texts t.safetensors -o a.safetensors -q -t 1",
         "a.safetensors", NULL, false},
        {"embed -m model --texts captions.txt --activations -o p.safetensors -q -t 1",
         "p.safetensors", NULL, false},
        {"embed -m model --images shapes/val --activations -o j.safetensors -q -t 1", NULL, NULL,
         false},
        {"embed -m model --texts captions.txt --ttda 2 -o s.safetensors -q -t 1", "s.safetensors",
         NULL, false},
        {"adapt train --method bayesvlm --images j.safetensors --texts p.safetensors --model model "
         "--out bayes -q -t 1",
         NULL, NULL, false},
        {"info adapter --json", NULL, NULL, false},
        {"adapt methods --json", NULL, NULL, false},
        {"curate duplicates --set i.safetensors --json -t 1", NULL, NULL, false},
        {"curate outliers --set i.safetensors -k 1 --json -t 1", NULL, NULL, false},
        {"search --inclusion contains --index t.safetensors --queries i.safetensors --json -t 1",
         NULL, NULL, false},
        {"data shapes --out made --n 3 --size 16 --shard-size 2 --val-share 0.3 --test-share 0 -q "
         "-t 1",
         "made/train/sizes.json", "made", false},
        {"init --out fresh -t 1 " SMALL_MODEL, "fresh/model.safetensors", "fresh", true},
    };
    (void)state;
    long n_bad = 0;
    for (size_t i = 0; i < PNB_COUNT(cases); i++)
        n_bad += fail_each(&cases[i], 250, 80);
    assert_int_equal(n_bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_command_survives)};
    return cmocka_run_group_tests(tests, failing_setup, failing_teardown);
}
