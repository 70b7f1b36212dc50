/* penumbra filter: the pairs of a data set worth keeping.
 *
 * Options only: pairing and figures are in src/commands/filter/filter.c and pairs.c, the rules in
 * src/eval/curation/pair_filter.c, the outputs in src/commands/filter/filter_out.c and
 * filter_page.c. */
#include <math.h>
#include <string.h>

#include "commands/commands.h"
#include "commands/common/option_rows.h"
#include "commands/common/set_use.h"
#include "commands/filter/filter.h"
#include "program/result.h"

struct filter_args {
    const char *images, *texts, *pairs, *pair_by, *data, *csv_img_key, *csv_caption_key;
    const char *measure, *uncertainty, *calibration;
    double min_score, min_p_match, match_scale, match_bias, top;
    double max_image_u, max_text_u, certain_images, certain_texts;
    int64_t min_words, max_words, min_chars, max_chars;
    double min_ascii, min_script, max_repeated;
    const char *script, *match, *no_match, *blocked;
    pnb__text_list blocked_words;
    bool trust, needs_letter, ignore_case;
    const char *out, *uids, *within, *uid, *list, *dropped, *preview, *title;
    int64_t shard_size, examples;
};

#define AT(field) offsetof(struct filter_args, field)
static const pnb__option options[] = {
    PNB__IMAGES_TEXTS_ROWS(AT(images), AT(texts)),
    {.name = "pairs",
     .kind = PNB__OPT_FILE,
     .at = AT(pairs),
     .value = "FILE",
     .help = "Pairs: picture id, tab, caption id on each line"},
    {.name = "pair-by",
     .kind = PNB__OPT_CHOICE,
     .at = AT(pair_by),
     .value = "HOW",
     .choices = "auto|ids|rows",
     .help = "Who belongs to whom: captions name their picture (ids), or row i and row i; auto, "
             "the default, takes ids when the first caption names a picture"},
    {.name = "data",
     .kind = PNB__OPT_FILE,
     .at = AT(data),
     .value = "SOURCE",
     .help = "Data set the pictures came from: tar shards, csv, jsonl or a folder, as for "
             "--train-data; for --out and --uids"},
    {.name = "within",
     .kind = PNB__OPT_FILE,
     .at = AT(within),
     .value = "FILE.npy",
     .help = "DataComp subset file: only samples whose uid (see --uid) it holds"},
    {.name = "csv-img-key",
     .kind = PNB__OPT_TEXT,
     .at = AT(csv_img_key),
     .value = "COLUMN",
     .fallback = "filepath",
     .help = "Column of picture paths in a csv or tsv file"},
    PNB__CAPTION_KEY_ROW(AT(csv_caption_key)),

    PNB__MEASURE_ROW(AT(measure)),
    {.name = "top",
     .kind = PNB__OPT_REAL,
     .at = AT(top),
     .value = "SHARE",
     .group = "By similarity",
     .help = "Keep this share of all pairs, the best by score among those no other rule drops; 0.2 "
             "when no rule is given at all"},
    {.name = "min-score",
     .kind = PNB__OPT_REAL,
     .at = AT(min_score),
     .value = "X",
     .help = "Lowest score, larger is nearer as in search"},
    {.name = "min-p-match",
     .kind = PNB__OPT_REAL,
     .at = AT(min_p_match),
     .value = "P",
     .min = 0,
     .max = 1,
     .help = "Lowest probability that picture and caption match"},
    {.name = "calibration",
     .kind = PNB__OPT_FILE,
     .at = AT(calibration),
     .value = "FILE",
     .help = "Calibration by `penumbra calibrate` that gives the probability, for a gallery of its "
             "size; else it is s(a score + b)"},
    PNB__TRUST_ROW(AT(trust)),
    {.name = "match-scale",
     .kind = PNB__OPT_REAL,
     .at = AT(match_scale),
     .value = "A",
     .help = "a of s(a score + b); the model's by default"},
    {.name = "match-bias",
     .kind = PNB__OPT_REAL,
     .at = AT(match_bias),
     .value = "B",
     .help = "b of it; the model's by default"},

    {.name = "uncertainty",
     .kind = PNB__OPT_CHOICE,
     .at = AT(uncertainty),
     .value = "NAME",
     .fallback = "trace",
     .choices = "trace|mean_var|geo_std",
     .group = "By uncertainty",
     .help = "Scalar uncertainty of a Gaussian row"},
    {.name = "max-image-uncertainty",
     .kind = PNB__OPT_REAL,
     .at = AT(max_image_u),
     .value = "U",
     .help = "Highest uncertainty of a picture"},
    {.name = "max-text-uncertainty",
     .kind = PNB__OPT_REAL,
     .at = AT(max_text_u),
     .value = "U",
     .help = "Highest uncertainty of a caption"},
    {.name = "certain-images",
     .kind = PNB__OPT_REAL,
     .at = AT(certain_images),
     .value = "SHARE",
     .help = "Keep the pairs whose picture is among this share of the most certain"},
    {.name = "certain-texts",
     .kind = PNB__OPT_REAL,
     .at = AT(certain_texts),
     .value = "SHARE",
     .help = "Keep the pairs whose caption is among this share of the most certain"},

    {.name = "min-words",
     .kind = PNB__OPT_INT,
     .at = AT(min_words),
     .value = "N",
     .max = 1e6,
     .group = "By caption",
     .help = "Fewest words: runs of letters and digits, a Han or kana letter by itself"},
    {.name = "max-words",
     .kind = PNB__OPT_INT,
     .at = AT(max_words),
     .value = "N",
     .max = 1e6,
     .help = "Most words"},
    {.name = "min-chars",
     .kind = PNB__OPT_INT,
     .at = AT(min_chars),
     .value = "N",
     .max = 1e7,
     .help = "Fewest characters"},
    {.name = "max-chars",
     .kind = PNB__OPT_INT,
     .at = AT(max_chars),
     .value = "N",
     .max = 1e7,
     .help = "Most characters"},
    {.name = "min-ascii",
     .kind = PNB__OPT_REAL,
     .at = AT(min_ascii),
     .value = "SHARE",
     .help = "Lowest share of ASCII among the characters that are not space"},
    {.name = "script",
     .kind = PNB__OPT_CHOICE,
     .at = AT(script),
     .value = "NAME",
     .choices = "latin|greek|cyrillic|armenian|hebrew|arabic|devanagari|bengali|tamil|thai|"
                "georgian|hangul|kana|han",
     .help = "Alphabet of the language wanted"},
    {.name = "min-script",
     .kind = PNB__OPT_REAL,
     .at = AT(min_script),
     .value = "SHARE",
     .help = "Lowest share of --script among the letters; 0.5 with --script"},
    {.name = "max-repeated",
     .kind = PNB__OPT_REAL,
     .at = AT(max_repeated),
     .value = "SHARE",
     .help = "Highest share of words that stood in the caption before"},
    {.name = "needs-letter",
     .kind = PNB__OPT_FLAG,
     .at = AT(needs_letter),
     .help = "Drop captions of numbers and signs only"},
    {.name = "match",
     .kind = PNB__OPT_TEXT,
     .at = AT(match),
     .value = "REGEX",
     .help = "Keep captions in which this POSIX extended expression is found; at most 20000 "
             "places with its repetitions written out"},
    {.name = "no-match",
     .kind = PNB__OPT_TEXT,
     .at = AT(no_match),
     .value = "REGEX",
     .help = "Drop captions in which this one is found"},
    {.name = "ignore-case",
     .kind = PNB__OPT_FLAG,
     .at = AT(ignore_case),
     .help = "Expressions do not tell capitals apart"},
    {.name = "blocked",
     .kind = PNB__OPT_FILE,
     .at = AT(blocked),
     .value = "FILE",
     .help = "Drop captions with one of these words or phrases, one a line, whatever their case"},
    {.name = "blocked-words",
     .kind = PNB__OPT_LIST,
     .instead_of_file = "--blocked takes a file",
     .at = AT(blocked_words),
     .value = "WORD...",
     .help = "The same, named here"},

    {.name = "out",
     .letter = 'o',
     .kind = PNB__OPT_FILE,
     .writes = "/",
     .at = AT(out),
     .value = "DIR",
     .group = "What to write (nothing: only the counts)",
     .help = "New folder of tar shards with the samples kept, byte for byte; a sample is kept with "
             "one of its pairs"},
    {.name = "shard-size",
     .kind = PNB__OPT_INT,
     .at = AT(shard_size),
     .value = "N",
     .min = 1,
     .max = 1e9,
     .help = "Samples of a shard; 10000 by default"},
    {.name = "uids",
     .kind = PNB__OPT_FILE,
     .writes = ".npy",
     .at = AT(uids),
     .value = "FILE.npy",
     .help = "DataComp subset file: 128-bit uids of the samples kept, dtype u8,u8, ascending"},
    {.name = "uid",
     .kind = PNB__OPT_CHOICE,
     .at = AT(uid),
     .value = "FIELD",
     .choices = "auto|uid|md5|sha256|picture",
     .help =
         "What names a sample there: a field of its record, or the hash of its picture's bytes; "
         "auto, the default, takes the first that the first kept sample has"},
    {.name = "list",
     .kind = PNB__OPT_FILE,
     .writes = "*",
     .at = AT(list),
     .value = "FILE",
     .help = "Pairs kept: .jsonl with all figures, any other name ids of their pictures, one a "
             "line, each once"},
    {.name = "dropped",
     .kind = PNB__OPT_FILE,
     .writes = "*",
     .at = AT(dropped),
     .value = "FILE",
     .help = "Pairs dropped, .jsonl says why; else ids of the pictures of which no pair is kept"},
    {.name = "preview",
     .kind = PNB__OPT_FILE,
     .writes = "*",
     .at = AT(preview),
     .value = "FILE.html",
     .help = "Page with histograms and examples of what is kept and dropped"},
    {.name = "examples",
     .kind = PNB__OPT_INT,
     .at = AT(examples),
     .value = "N",
     .min = 0,
     .max = 1000,
     .help = "Pairs of each column of the page; 8 by default"},
    {.name = "title",
     .kind = PNB__OPT_TEXT,
     .at = AT(title),
     .value = "STR",
     .help = "Heading of the page"},
};
#undef AT

static size_t count_or(int64_t value, size_t otherwise)
{
    return value == PNB__INT_UNSET ? otherwise : (size_t)value;
}

/* Options that would do nothing, and files that would be written twice. */
static pnb_status check_use(pnb__app *app, const struct filter_args *a)
{
    const struct {
        bool is_idle;
        const char *text;
    } idle[] = {
        {a->pairs != NULL && a->pair_by != NULL, "--pairs or --pair-by, not both"},
        {a->shard_size != PNB__INT_UNSET && a->out == NULL, "--shard-size needs --out"},
        {a->uid != NULL && a->uids == NULL && a->within == NULL, "--uid needs --uids or --within"},
        {a->examples != PNB__INT_UNSET && a->preview == NULL, "--examples needs --preview"},
        {a->title != NULL && a->preview == NULL, "--title needs --preview"},
        {a->script == NULL && !isnan(a->min_script), "--min-script needs --script"},
        {a->ignore_case && a->match == NULL && a->no_match == NULL,
         "--ignore-case needs --match or --no-match"},
        {a->data == NULL && a->out != NULL, "--out needs --data: the samples to copy"},
        {a->calibration != NULL && !(isnan(a->match_scale) && isnan(a->match_bias)),
         "--calibration, or --match-scale and --match-bias, not both"},
    };
    for (size_t i = 0; i < sizeof idle / sizeof *idle; i++)
        if (idle[i].is_idle)
            return pnb__usage(app, "%s", idle[i].text);
    return PNB_OK;
}

static pnb_status fill_captions(pnb__app *app, const struct filter_args *a,
                                pnb_caption_rules_opts *o)
{
    o->min_words = count_or(a->min_words, 0);
    o->max_words = count_or(a->max_words, 0);
    o->min_chars = count_or(a->min_chars, 0);
    o->max_chars = count_or(a->max_chars, 0);
    o->min_ascii = isnan(a->min_ascii) ? 0 : a->min_ascii;
    o->max_repeated = isnan(a->max_repeated) ? 1 : a->max_repeated;
    o->needs_letter = a->needs_letter;
    o->match = a->match;
    o->no_match = a->no_match;
    o->ignore_case = a->ignore_case;
    if (a->script == NULL)
        return PNB_OK;
    o->min_script = isnan(a->min_script) ? 0.5 : a->min_script;
    return pnb_script_parse(&o->script, a->script, &app->err);
}

static pnb_status fill_opts(pnb__app *app, const struct filter_args *a, pnb__filter_opts *o)
{
    pnb_pair_filter_opts *limits = &o->limits;
    pnb_status status = pnb_measure_parse(&o->measure, a->measure, &app->err);
    if (status == PNB_OK)
        status = pnb_uncertainty_parse(&o->uncertainty, a->uncertainty, &app->err);
    if (status == PNB_OK)
        status = fill_captions(app, a, &limits->captions);
    limits->min_score = a->min_score;
    limits->min_p_match = a->min_p_match;
    limits->max_image_u = a->max_image_u;
    limits->max_text_u = a->max_text_u;
    limits->certain_images = a->certain_images;
    limits->certain_texts = a->certain_texts;
    limits->top = a->top;
    o->dataset = pnb_dataset_opts_default();
    o->dataset.allow_no_caption = true; /* every picture that has a row is to be found */
    o->dataset.csv_img_key = a->csv_img_key;
    o->dataset.csv_caption_key = a->csv_caption_key;
    return status;
}

/* Blocked words of the file and of the command line in one list; the words stay where they are. */
static pnb_status join_blocked(pnb__app *app, const struct filter_args *a, pnb__lines *lines,
                               const char ***out, pnb_caption_rules_opts *o)
{
    pnb_status status = a->blocked != NULL ? pnb__lines_load(lines, a->blocked, &app->err) : PNB_OK;
    size_t n = lines->n + a->blocked_words.n;
    if (status != PNB_OK || n == 0)
        return status;
    *out = pnb__alloc_array(n, sizeof **out);
    if (*out == NULL)
        return pnb__fail_nomem(&app->err, n * sizeof **out);
    for (size_t i = 0; i < n; i++)
        (*out)[i] = i < lines->n ? lines->line[i] : a->blocked_words.items[i - lines->n];
    o->blocked = *out;
    o->n_blocked = n;
    return PNB_OK;
}

static pnb_status run(pnb__app *app, const void *args)
{
    const struct filter_args *a = args;
    pnb__filter_opts o = {.images = a->images,
                          .texts = a->texts,
                          .pairs = a->pairs,
                          .pair_by = a->pair_by != NULL ? a->pair_by : "auto",
                          .data = a->data,
                          .limits = pnb_pair_filter_opts_default(),
                          .calibration = a->calibration,
                          .trust = a->trust,
                          .match_scale = a->match_scale,
                          .match_bias = a->match_bias,
                          .out_dir = a->out,
                          .shard_size = count_or(a->shard_size, pnb_copy_opts_default().shard_size),
                          .uids = a->uids,
                          .uid_field = a->uid != NULL ? a->uid : "auto",
                          .within = a->within,
                          .list = a->list,
                          .dropped = a->dropped,
                          .preview = a->preview,
                          .title = a->title != NULL ? a->title : "Filter preview",
                          .n_examples = count_or(a->examples, 8)};
    pnb__lines lines = {0};
    const char **blocked = NULL;
    pnb__result *r = pnb__result_create();
    pnb_status status = check_use(app, a);
    if (status == PNB_OK)
        status = fill_opts(app, a, &o);
    if (status == PNB_OK)
        status = join_blocked(app, a, &lines, &blocked, &o.limits.captions);
    if (status == PNB_OK && a->within == NULL && pnb_pair_filter_opts_is_off(&o.limits)) {
        o.limits.top = 0.2;
        pnb__say(app, "no rule was given: the best 20%% by %s are kept", a->measure);
    }
    if (status == PNB_OK)
        status = pnb__filter_run_all(app, &o, r);
    status = pnb__result_finish(r, app, status);
    pnb__free(blocked);
    pnb__lines_reset(&lines);
    return status;
}

const pnb__command pnb__cmd_filter = {
    .name = "filter",
    .summary = "keep the pairs of a data set that are worth it",
    .about =
        "Pairs of pictures and captions are kept by similarity, by the uncertainty of either "
        "side and by rules on captions; a pair stays when it fails no rule. What each rule "
        "drops is counted. The samples kept can be written as new shards, as a DataComp subset "
        "file or as a list, and shown on a page beside those dropped.",
    .examples =
        "penumbra filter --images i.safetensors --texts t.safetensors --data "
        "'shards/{000..099}.tar' "
        "--top 0.2 --out kept --preview kept.html\n"
        "penumbra filter --images i.safetensors --texts t.safetensors --min-words 3 --max-repeated "
        "0.5 --script latin --certain-texts 0.9 --list kept.jsonl --dropped dropped.jsonl",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .args_bytes = sizeof(struct filter_args),
    .run = run};
