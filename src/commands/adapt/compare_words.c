/* A comparison in words: a sentence a method, made of its figures beside those of the two controls.
 *
 * Uncertainty tells something where S over n bins is told from none: -S sqrt(n - 1) > 1.645, its
 * normal 5% point; from there the order of -S R^2 decides, which has no interval. What is said of
 * retrieval is a difference where its p is below 0.05. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "commands/adapt/compare.h"
#include "program/result_end.h"
#include "report/plot.h"

enum { MOST_BYTES = 400 };

/* Of one row of the table. */
typedef struct figures {
    double r1, difference, p;
    double s, score; /* score: -S R^2; NaN: nothing was sorted by uncertainty */
    bool is_point;   /* captions are points: sorted by 1 - cosine to the first hit */
} figures;

static figures read_row(const json_t *row)
{
    figures f = {.r1 = pnb__json_real_at(row, "t2i_r1"),
                 .difference = pnb__json_real_at(row, "t2i_difference"),
                 .p = pnb__json_real_at(row, "p"),
                 .s = pnb__json_real_at(row, "spearman_s"),
                 .score = pnb__json_real_at(row, "minus_s_r2")};
    if (f.s == 0.0 && pnb__json_real_at(row, "r2") == 0.0)
        f.score = NAN; /* every row is as certain as the others */
    const char *family = json_string_value(json_object_get(row, "family"));
    f.is_point = family != NULL && strcmp(family, pnb_family_name(PNB_POINT)) == 0;
    return f;
}

static const json_t *find_row(const json_t *rows, const char *method)
{
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const char *name = json_string_value(json_object_get(json_array_get(rows, i), "method"));
        if (name != NULL && strcmp(name, method) == 0)
            return json_array_get(rows, i);
    }
    return NULL;
}

/* 0 where its rows are all as certain as the others: that is what is to be beaten. */
static double control_score(const json_t *rows, const char *name)
{
    const json_t *row = find_row(rows, name);
    return row != NULL ? pnb__json_real_at(row, "minus_s_r2") : 0.0;
}

static const char *verdict(const figures *f, double untrained, double length, double n_bins)
{
    const double normal_5_percent = 1.645;
    bool above_untrained = !(f->score <= untrained), above_length = !(f->score <= length);
    if (!(-f->s * sqrt(n_bins - 1) > normal_5_percent))
        return "does not tell which captions fail";
    if (above_untrained && above_length)
        return "tells which captions fail better than both controls";
    if (above_length)
        return "tells which captions fail better than the length of captions, not than an "
               "untrained head";
    if (above_untrained)
        return "tells which captions fail better than an untrained head, not than the length of "
               "captions";
    return "tells which captions fail no better than controls that learned nothing";
}

static void say_uncertainty(char *out, const figures *f, const json_t *rows, double n_bins)
{
    double untrained = control_score(rows, "untrained"), length = control_score(rows, "length");
    if (isnan(f->score)) {
        snprintf(out, MOST_BYTES, "it says nothing of uncertainty");
        return;
    }
    snprintf(out, MOST_BYTES, "%s %s (-S R\xC2\xB2 %.2f; untrained %.2f, length %.2f)",
             f->is_point ? "its captions are points: 1 - cosine to the first hit"
                         : "its uncertainty",
             verdict(f, untrained, length, n_bins), f->score, untrained, length);
}

static void say_retrieval(char *out, const figures *f)
{
    double now = 100 * f->r1, frozen = 100 * (f->r1 - f->difference);
    if (f->difference == 0.0)
        snprintf(out, MOST_BYTES, "R@1 stays at %.1f%%", now);
    else if (f->p < 0.05)
        snprintf(out, MOST_BYTES, "R@1 %s from %.1f%% to %.1f%% (p %.3f)",
                 f->difference > 0 ? "rises" : "falls", frozen, now, f->p);
    else if (isnan(f->p))
        snprintf(out, MOST_BYTES, "R@1 is %.1f%%, that of the frozen rows %.1f%%", now, frozen);
    else
        snprintf(out, MOST_BYTES,
                 "R@1 is %.1f%%, not to be told from the frozen rows' %.1f%% (p %.2f)", now, frozen,
                 f->p);
}

void pnb__compare_put_words(pnb__result *r)
{
    static const pnb__column columns[] = {{"method", "method"}, {"says", "in words"}};
    const json_t *rows = pnb__result_get(r, "methods");
    double n_bins = json_number_value(pnb__result_get(r, "n_bins"));
    pnb__result_table(r, "words", "what it says of captions that look for pictures", columns,
                      PNB_COUNT(columns));
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *kind = json_string_value(json_object_get(row, "kind"));
        char uncertainty[MOST_BYTES], retrieval[MOST_BYTES], sentence[2 * MOST_BYTES + 4];
        if (kind == NULL || strcmp(kind, "method") != 0)
            continue;
        const figures f = read_row(row);
        say_uncertainty(uncertainty, &f, rows, n_bins);
        say_retrieval(retrieval, &f);
        snprintf(sentence, sizeof sentence, "%s; %s.", uncertainty, retrieval);
        pnb__result_row(r, "%s", json_string_value(json_object_get(row, "method")));
        pnb__result_cell_text(r, sentence);
    }
}
