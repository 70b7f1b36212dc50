/* The counts of a made set, and the table of its captions by level.
 *
 * data_options.c and data_ambiguous_options.c make the sets; the numbers are the library's. */
#include "commands/data/data_stats.h"
#include "program/app.h"

pnb_status pnb__data_check_shares(pnb__app *app, double val_share, double test_share)
{
    if (val_share + test_share < 1.0)
        return PNB_OK;
    return pnb__usage(app, "--val-share and --test-share leave nothing to train on");
}

void pnb__data_put_stats(const char *dir, const pnb_synth_stats *stats, int n_levels,
                         pnb__result *r)
{
    static const pnb__column columns[] = {{"level", "level"},
                                          {"texts", "captions"},
                                          {"texts_per_image", "a picture"},
                                          {"images_per_text", "pictures a caption fits"}};
    pnb__result_text(r, "dir", "folder", dir);
    pnb__result_flag(r, "reused", "was there already", stats->reused);
    pnb__result_int(r, "n_train", "train pictures", (int64_t)stats->n_train);
    pnb__result_int(r, "n_val", "val pictures", (int64_t)stats->n_val);
    pnb__result_int(r, "n_test", "test pictures", (int64_t)stats->n_test);
    pnb__result_int(r, "n_words", stats->n_words > 0 ? "distinct words" : NULL,
                    (int64_t)stats->n_words);
    pnb__result_int(r, "n_ambiguous", stats->n_ambiguous > 0 ? "ambiguous pictures" : NULL,
                    (int64_t)stats->n_ambiguous);
    pnb__result_table(r, "levels", "captions by level (0 most general)", columns, 4);
    for (int level = 0; level < n_levels; level++) {
        pnb__result_row(r, "%d %zu %.2f %.1f", level, stats->n_texts[level],
                        stats->texts_per_image[level], stats->images_per_text[level]);
    }
}
