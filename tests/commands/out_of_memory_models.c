/* Out of memory in commands that train, change and question models. */
#include "tests/commands/failing.h"

static void each_command_survives(void **state)
{
    static const failing_case cases[] = {
        {"train --train-data shapes/train --val-data shapes/val --model model --batch-size 2 "
         "--max-steps 2 --workers 0 --logs logs --name run --tokenizer tok.json -q -t 1",
         "logs/run/checkpoints/latest/model.safetensors", "logs", true},
        {"train --train-data shapes/train --model model --batch-size 2 --max-steps 2 --epochs 4 "
         "--workers 0 "
         "--logs kept --name run --tokenizer tok.json --resume latest -q -t 1",
         "kept/run/checkpoints/latest/model.safetensors", NULL, false},
        {"embed -m kept/run/checkpoints/latest --texts captions.txt -o t.safetensors -q -t 1",
         "t.safetensors", NULL, false},
        {"convert model --to prolip --out new -q -t 1", "new/model.safetensors", "new", true},
        {"quantize --model model --out small --images shapes/val --texts captions.txt "
         "--min-cosine 0 --min-rank -1 --min-top1 0 -q -t 1",
         "small/model.safetensors", "small", true},
        {"classify -m model --images shapes/val --classnames circle,star --templates simple "
         "--predictions pred.jsonl --html c.html --json -t 1",
         "pred.jsonl", NULL, false},
        {"classify -m model --images shapes/val --labels labels.tsv --groups groups.tsv "
         "--classnames circle,star --templates simple --occlusion 0.1 --attack-steps 1 2 -t 1",
         NULL, NULL, false},
        {"explain -m model --text red-star,blue --images shapes/val --cell 1 --html e.html -t 1",
         "e.html", NULL, false},
        {"probe -m model --images shapes/val --texts captions.txt --shares 0 0.5 --limit 1 --html "
         "p.html -t 1",
         "p.html", NULL, false},
    };
    (void)state;
    long n_bad = 0;
    for (size_t i = 0; i < PNB_COUNT(cases); i++)
        n_bad += fail_each(&cases[i], 100, 80);
    assert_int_equal(n_bad, 0);
}

static int setup(void **state)
{
    static const char labels[] = "0000003\tcircle\n0000004\tstar\n";
    static const char groups[] = "0000003\tsouth\n0000004\tnorth\n";
    return failing_setup(state) == 0 &&
                   pnb__write_file("labels.tsv", labels, sizeof labels - 1, NULL) == PNB_OK &&
                   pnb__write_file("groups.tsv", groups, sizeof groups - 1, NULL) == PNB_OK &&
                   run("train --train-data shapes/train --model model --batch-size 2 --max-steps 2 "
                       "--epochs 4 --workers 0 --logs kept --name run --tokenizer tok.json -q -t 1",
                       -1) == 0
               ? 0
               : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_command_survives)};
    return cmocka_run_group_tests(tests, setup, failing_teardown);
}
