/* penumbra filter: the pairs of a data set worth keeping.
 *
 * Options only: pairing and figures are in src/commands/filter/filter.c and common/align.c, the
 * rules in src/eval/curation/pair_filter.c, the outputs in src/commands/filter/filter_out.c and
 * filter_page.c. */
#include <math.h>
#include <string.h>

#include "commands/commands.h"
#include "commands/common/option_rows.h"
#include "commands/filter/filter.h"
#include "io/tables/text_lines.h"
#include "prob/choices.h"
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
    PNB__ROW_FILE("pairs", AT(pairs), "FILE", "Pairs: picture id, tab, caption id on each line"),
    PNB__ROW_CHOICE(
        "pair-by", AT(pair_by), "HOW", "auto|ids|rows",
        "Who belongs to whom: captions name their picture (ids), or row i and row i; auto, "
        "the default, takes ids when the first caption names a picture"),
    PNB__ROW_FILE("data", AT(data), "SOURCE",
                  "Data set the pictures came from: tar shards, csv, jsonl or a folder, as for "
                  "--train-data; for --out and --uids"),
    PNB__ROW_FILE("within", AT(within), "FILE.npy",
                  "DataComp subset file: only samples whose uid (see --uid) it holds"),
    PNB__ROW_TEXT("csv-img-key", AT(csv_img_key), "COLUMN",
                  "Column of picture paths in a csv or tsv file", .fallback = "filepath"),
    PNB__CAPTION_KEY_ROW(AT(csv_caption_key)),

    PNB__MEASURE_ROW(AT(measure)),
    PNB__ROW_REAL(
        "top", AT(top), "SHARE",
        "Keep this share of all pairs, the best by score among those no other rule drops; 0.2 "
        "when no rule is given at all",
        .group = "By similarity"),
    PNB__ROW_REAL("min-score", AT(min_score), "X", "Lowest score, larger is nearer as in search"),
    PNB__ROW_REAL("min-p-match", AT(min_p_match), "P",
                  "Lowest probability that picture and caption match", PNB__RANGE(0, 1)),
    PNB__ROW_FILE(
        "calibration", AT(calibration), "FILE",
        "Calibration by `penumbra calibrate` that gives the probability, for a gallery of its "
        "size; else it is s(a score + b)"),
    PNB__TRUST_ROW(AT(trust)),
    PNB__ROW_REAL("match-scale", AT(match_scale), "A",
                  "a of s(a score + b); the model's by default"),
    PNB__ROW_REAL("match-bias", AT(match_bias), "B", "b of it; the model's by default"),

    PNB__ROW_CHOICE(
        "uncertainty", AT(uncertainty), "NAME", PNB__CHOICES(PNB__VARIANCE_UNCERTAINTY_CHOICES),
        "Scalar uncertainty of a Gaussian row", .fallback = "trace", .group = "By uncertainty"),
    PNB__ROW_REAL("max-image-uncertainty", AT(max_image_u), "U",
                  "Highest uncertainty of a picture"),
    PNB__ROW_REAL("max-text-uncertainty", AT(max_text_u), "U", "Highest uncertainty of a caption"),
    PNB__ROW_REAL("certain-images", AT(certain_images), "SHARE",
                  "Keep the pairs whose picture is among this share of the most certain"),
    PNB__ROW_REAL("certain-texts", AT(certain_texts), "SHARE",
                  "Keep the pairs whose caption is among this share of the most certain"),

    PNB__ROW_INT("min-words", AT(min_words), "N",
                 "Fewest words: runs of letters and digits, a Han or kana letter by itself",
                 PNB__RANGE(0, 1e6), .group = "By caption"),
    PNB__ROW_INT("max-words", AT(max_words), "N", "Most words", PNB__RANGE(0, 1e6)),
    PNB__ROW_INT("min-chars", AT(min_chars), "N", "Fewest characters", PNB__RANGE(0, 1e7)),
    PNB__ROW_INT("max-chars", AT(max_chars), "N", "Most characters", PNB__RANGE(0, 1e7)),
    PNB__ROW_REAL("min-ascii", AT(min_ascii), "SHARE",
                  "Lowest share of ASCII among the characters that are not space"),
    PNB__ROW_CHOICE("script", AT(script), "NAME", PNB__CHOICES(PNB_SCRIPT_LIST(PNB__CHOICE_WORD)),
                    "Alphabet of the language wanted"),
    PNB__ROW_REAL("min-script", AT(min_script), "SHARE",
                  "Lowest share of --script among the letters; 0.5 with --script"),
    PNB__ROW_REAL("max-repeated", AT(max_repeated), "SHARE",
                  "Highest share of words that stood in the caption before"),
    PNB__ROW_FLAG("needs-letter", AT(needs_letter), "Drop captions of numbers and signs only"),
    PNB__ROW_TEXT("match", AT(match), "REGEX",
                  "Keep captions in which this POSIX extended expression is found; at most 20000 "
                  "places with its repetitions written out"),
    PNB__ROW_TEXT("no-match", AT(no_match), "REGEX", "Drop captions in which this one is found"),
    PNB__ROW_FLAG("ignore-case", AT(ignore_case), "Expressions do not tell capitals apart"),
    PNB__ROW_FILE(
        "blocked", AT(blocked), "FILE",
        "Drop captions with one of these words or phrases, one a line, whatever their case"),
    PNB__ROW_LIST("blocked-words", AT(blocked_words), "WORD...", "The same, named here",
                  .instead_of_file = "--blocked takes a file"),

    PNB__ROW_FILE(
        "out", AT(out), "DIR",
        "New folder of tar shards with the samples kept, byte for byte; a sample is kept with "
        "one of its pairs",
        .group = "What to write (nothing: only the counts)", .letter = 'o', .writes = "/"),
    PNB__ROW_INT("shard-size", AT(shard_size), "N", "Samples of a shard; 10000 by default",
                 PNB__RANGE(1, 1e9)),
    PNB__ROW_FILE("uids", AT(uids), "FILE.npy",
                  "DataComp subset file: 128-bit uids of the samples kept, dtype u8,u8, ascending",
                  .writes = ".npy"),
    PNB__ROW_CHOICE(
        "uid", AT(uid), "FIELD", "auto|uid|md5|sha256|picture",
        "What names a sample there: a field of its record, or the hash of its picture's bytes; "
        "auto, the default, takes the first that the first kept sample has"),
    PNB__ROW_FILE(
        "list", AT(list), "FILE",
        "Pairs kept: .jsonl with all figures, any other name ids of their pictures, one a "
        "line, each once",
        .writes = "*"),
    PNB__ROW_FILE(
        "dropped", AT(dropped), "FILE",
        "Pairs dropped, .jsonl says why; else ids of the pictures of which no pair is kept",
        .writes = "*"),
    PNB__ROW_FILE("preview", AT(preview), "FILE.html",
                  "Page with histograms and examples of what is kept and dropped", .writes = "*"),
    PNB__ROW_INT("examples", AT(examples), "N", "Pairs of each column of the page; 8 by default",
                 PNB__RANGE(0, 1000)),
    PNB__ROW_TEXT("title", AT(title), "STR", "Heading of the page"),
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
