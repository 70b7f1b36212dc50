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
#include "program/result_end.h"

struct filter_args {
    pnb__filter_opts job;
    const char *blocked;
    pnb__text_list blocked_words;
    int64_t rank_timeout;
};

#define AT(field) PNB__FIELD(struct filter_args, field)
static const pnb__option options[] = {
    PNB__IMAGES_TEXTS_ROWS(AT(job.images), AT(job.texts)),
    PNB__ROW_FILE("pairs", AT(job.pairs), "FILE",
                  "Pairs: picture id, tab, caption id on each line"),
    PNB__ROW_CHOICE(
        "pair-by", AT(job.pair_by), "HOW", "auto|ids|rows",
        "Who belongs to whom: captions name their picture (ids), or row i and row i; auto, "
        "the default, takes ids when the first caption names a picture"),
    PNB__ROW_FILE("data", AT(job.data), "SOURCE",
                  "Data set the pictures came from: tar shards, csv, jsonl or a folder, as for "
                  "--train-data; for --out and --uids"),
    PNB__ROW_FILE("within", AT(job.within), "FILE.npy",
                  "DataComp subset file: only samples whose uid (see --uid) it holds"),
    PNB__ROW_TEXT("csv-img-key", AT(job.dataset.csv_img_key), "COLUMN",
                  "Column of picture paths in a csv or tsv file", .fallback = "filepath"),
    PNB__TEXT_KEY_ROW(AT(job.dataset.csv_caption_key)),

    PNB__MEASURE_ROW(AT(job.measure)),
    PNB__MATCH_ROWS(AT(job.match.n_samples), AT(job.match.a), AT(job.match.b)),
    PNB__ROW_REAL(
        "top", AT(job.limits.top), "SHARE",
        "Keep this share of all pairs, the best by score among those no other rule drops; 0.2 "
        "when no rule is given at all",
        .group = "By similarity"),
    PNB__ROW_REAL("min-score", AT(job.limits.min_score), "X",
                  "Lowest score, larger is nearer as in search"),
    PNB__ROW_REAL("min-p-match", AT(job.limits.min_p_match), "P",
                  "Lowest probability that picture and caption match", PNB__RANGE(0, 1)),
    PNB__ROW_FILE(
        "calibration", AT(job.calibration), "FILE",
        "Calibration by `penumbra calibrate` that gives the probability, for a gallery of its "
        "size; else it is s(a score + b)"),
    PNB__TRUST_ROW(AT(job.trust)),
    PNB__ROW_REAL("match-scale", AT(job.match_scale), "A",
                  "a of s(a score + b); the model's by default"),
    PNB__ROW_REAL("match-bias", AT(job.match_bias), "B", "b of it; the model's by default"),

    PNB__ROW_CHOICE("uncertainty", AT(job.uncertainty), "NAME",
                    PNB__CHOICES(PNB__VARIANCE_UNCERTAINTY_CHOICES),
                    "Scalar uncertainty of a Gaussian row", .names = PNB__UNCERTAINTY_NAMES,
                    .fallback = "trace", .group = "By uncertainty"),
    PNB__ROW_REAL("max-image-uncertainty", AT(job.limits.max_image_u), "U",
                  "Highest uncertainty of a picture"),
    PNB__ROW_REAL("max-text-uncertainty", AT(job.limits.max_text_u), "U",
                  "Highest uncertainty of a caption"),
    PNB__ROW_REAL("certain-images", AT(job.limits.certain_images), "SHARE",
                  "Keep the pairs whose picture is among this share of the most certain"),
    PNB__ROW_REAL("certain-texts", AT(job.limits.certain_texts), "SHARE",
                  "Keep the pairs whose caption is among this share of the most certain"),

    PNB__ROW_INT("min-words", AT(job.limits.texts.min_words), "N",
                 "Fewest words: runs of letters and digits, a Han or kana letter by itself",
                 PNB__RANGE(0, 1e6), .group = "By caption"),
    PNB__ROW_INT("max-words", AT(job.limits.texts.max_words), "N", "Most words",
                 PNB__RANGE(0, 1e6)),
    PNB__ROW_INT("min-chars", AT(job.limits.texts.min_chars), "N", "Fewest characters",
                 PNB__RANGE(0, 1e7)),
    PNB__ROW_INT("max-chars", AT(job.limits.texts.max_chars), "N", "Most characters",
                 PNB__RANGE(0, 1e7)),
    PNB__ROW_REAL("min-ascii", AT(job.limits.texts.min_ascii), "SHARE",
                  "Lowest share of ASCII among the characters that are not space"),
    PNB__ROW_CHOICE("script", AT(job.limits.texts.script), "NAME",
                    PNB__CHOICES(PNB_SCRIPT_LIST(PNB__CHOICE_WORD)),
                    "Alphabet of the language wanted"),
    PNB__ROW_REAL("min-script", AT(job.limits.texts.min_script), "SHARE",
                  "Lowest share of --script among the letters; 0.5 with --script"),
    PNB__ROW_REAL("max-repeated", AT(job.limits.texts.max_repeated), "SHARE",
                  "Highest share of words that stood in the caption before"),
    PNB__ROW_FLAG("needs-letter", AT(job.limits.texts.needs_letter),
                  "Drop captions of numbers and signs only"),
    PNB__ROW_TEXT("match", AT(job.limits.texts.match), "REGEX",
                  "Keep captions in which this POSIX extended expression is found; at most 20000 "
                  "places with its repetitions written out"),
    PNB__ROW_TEXT("no-match", AT(job.limits.texts.no_match), "REGEX",
                  "Drop captions in which this one is found"),
    PNB__ROW_FLAG("ignore-case", AT(job.limits.texts.ignore_case),
                  "Expressions do not tell capitals apart"),
    PNB__ROW_FILE(
        "blocked", AT(blocked), "FILE",
        "Drop captions with one of these words or phrases, one a line, whatever their case"),
    PNB__ROW_LIST("blocked-words", AT(blocked_words), "WORD...", "The same, named here",
                  .instead_of_file = "--blocked takes a file"),

    PNB__ROW_FILE(
        "out", AT(job.out_dir), "DIR",
        "New folder of tar shards with the samples kept, byte for byte; a sample is kept with "
        "one of its pairs",
        .group = "What to write (nothing: only the counts)", .letter = 'o', .writes = "/"),
    PNB__ROW_INT("shard-size", AT(job.shard_size), "N", "Samples of a shard; 10000 by default",
                 PNB__RANGE(1, 1e9)),
    PNB__ROW_FILE("uids", AT(job.uids), "FILE.npy",
                  "DataComp subset file: 128-bit uids of the samples kept, dtype u8,u8, ascending",
                  .writes = ".npy"),
    PNB__ROW_CHOICE(
        "uid", AT(job.uid_field), "FIELD", "auto|uid|md5|sha256|picture",
        "What names a sample there: a field of its record, or the hash of its picture's bytes; "
        "auto, the default, takes the first that the first kept sample has"),
    PNB__ROW_FILE(
        "list", AT(job.list), "FILE",
        "Pairs kept: .jsonl with all figures, any other name ids of their pictures, one a "
        "line, each once",
        .writes = "*"),
    PNB__ROW_FILE(
        "dropped", AT(job.dropped), "FILE",
        "Pairs dropped, .jsonl says why; else ids of the pictures of which no pair is kept",
        .writes = "*"),
    PNB__ROW_FILE("preview", AT(job.preview), "FILE.html",
                  "Page with histograms and examples of what is kept and dropped", .writes = "*"),
    PNB__ROW_INT("examples", AT(job.n_examples), "N",
                 "Pairs of each column of the page; 8 by default", PNB__RANGE(0, 1000)),
    PNB__ROW_TEXT("title", AT(job.title), "STR", "Heading of the page"),
    PNB__RANK_TIMEOUT_ROW(AT(rank_timeout)),
};
#undef AT

#define NO_SCRIPT PNB_N_SCRIPTS /* --script was not given */
#define NO_EXAMPLES SIZE_MAX    /* nor --examples */

/* Options that would do nothing, and files that would be written twice. */
static pnb_status check_use(pnb__app *app, const pnb__filter_opts *o)
{
    const pnb_text_rules_opts *texts = &o->limits.texts;
    const struct {
        bool is_idle;
        const char *text;
    } idle[] = {
        {o->pairs != NULL && o->pair_by != NULL, "--pairs or --pair-by, not both"},
        {o->shard_size > 0 && o->out_dir == NULL, "--shard-size needs --out"},
        {o->uid_field != NULL && o->uids == NULL && o->within == NULL,
         "--uid needs --uids or --within"},
        {o->n_examples != NO_EXAMPLES && o->preview == NULL, "--examples needs --preview"},
        {o->title != NULL && o->preview == NULL, "--title needs --preview"},
        {texts->script == NO_SCRIPT && !isnan(texts->min_script), "--min-script needs --script"},
        {texts->ignore_case && texts->match == NULL && texts->no_match == NULL,
         "--ignore-case needs --match or --no-match"},
        {o->data == NULL && o->out_dir != NULL, "--out needs --data: the samples to copy"},
        {o->calibration != NULL && !(isnan(o->match_scale) && isnan(o->match_bias)),
         "--calibration, or --match-scale and --match-bias, not both"},
    };
    for (size_t i = 0; i < sizeof idle / sizeof *idle; i++)
        if (idle[i].is_idle)
            return pnb__usage(app, "%s", idle[i].text);
    return PNB_OK;
}

/* What is given nowhere, after check_use. */
static void fill_rest(pnb__app *app, pnb__filter_opts *o)
{
    pnb_text_rules_opts *texts = &o->limits.texts;
    if (o->pair_by == NULL)
        o->pair_by = "auto";
    if (o->uid_field == NULL)
        o->uid_field = "auto";
    if (o->title == NULL)
        o->title = "Filter preview";
    if (o->shard_size == 0)
        o->shard_size = pnb_copy_opts_default().shard_size;
    if (o->n_examples == NO_EXAMPLES)
        o->n_examples = 8;
    if (isnan(texts->min_script))
        texts->min_script = texts->script != NO_SCRIPT ? 0.5 : 0;
    if (texts->script == NO_SCRIPT)
        texts->script = pnb_text_rules_opts_default().script;
    if (o->within == NULL && pnb_pair_filter_opts_is_off(&o->limits)) {
        o->limits.top = 0.2;
        pnb__say(app, "no rule was given: the best 20%% by %s are kept",
                 pnb_measure_name(o->measure));
    }
}

/* Blocked words of the file and of the command line in one list; the words stay where they are. */
static pnb_status join_blocked(pnb__app *app, const struct filter_args *a, pnb__lines *lines,
                               const char ***out, pnb_text_rules_opts *o)
{
    pnb_status status = a->blocked != NULL ? pnb__lines_load(lines, a->blocked, &app->err) : PNB_OK;
    size_t n = lines->n + a->blocked_words.n;
    if (status != PNB_OK || n == 0)
        return status;
    if (PNB_ALLOC(*out, n, &app->err) != PNB_OK)
        return PNB_NOMEM;
    for (size_t i = 0; i < n; i++)
        (*out)[i] = i < lines->n ? lines->line[i] : a->blocked_words.items[i - lines->n];
    o->blocked = *out;
    o->n_blocked = n;
    return PNB_OK;
}

static void defaults(void *args)
{
    struct filter_args *a = args;
    *a = (struct filter_args){.job = {.limits = pnb_pair_filter_opts_default(),
                                      .dataset = pnb_dataset_opts_default(),
                                      .match = {.a = NAN, .b = NAN},
                                      .match_scale = NAN,
                                      .match_bias = NAN,
                                      .n_examples = NO_EXAMPLES}};
    a->job.dataset.allow_no_caption = true; /* every picture that has a row is to be found */
    a->job.limits.texts.script = NO_SCRIPT;
    a->job.limits.texts.min_script = NAN;
}

static pnb_status run(pnb__app *app, void *args, pnb__result *r)
{
    struct filter_args *a = args;
    pnb__lines lines = {0};
    const char **blocked = NULL;
    pnb_status status;
    pnb_peers_set_timeout(app->ranks, (double)a->rank_timeout);
    PNB_TRY(check_use(app, &a->job));
    PNB_TRY(join_blocked(app, a, &lines, &blocked, &a->job.limits.texts));
    fill_rest(app, &a->job);
    status = pnb__filter_run_all(app, &a->job, r);
done:
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
        "file or as a list, and shown on a page beside those dropped.\n\n"
        "Under mpirun, srun or torchrun each process scores its share of the pairs and reads its "
        "share of the pictures that name samples; rank 0 writes what one process would.",
    .examples =
        "penumbra filter --images i.safetensors --texts t.safetensors --data "
        "'shards/{000..099}.tar' "
        "--top 0.2 --out kept --preview kept.html\n"
        "penumbra filter --images i.safetensors --texts t.safetensors --min-words 3 --max-repeated "
        "0.5 --script latin --certain-texts 0.9 --list kept.jsonl --dropped dropped.jsonl",
    .joins = true,
    .defaults = defaults,
    PNB__RUNS(options, struct filter_args, run)};
