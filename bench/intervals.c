/* How often intervals hold the truth and tests reject a true null, by simulation.
 *
 *   intervals [WORLDS [RESAMPLES]]          2000 worlds, 1000 resamples
 *
 * A row is a kind of world (pictures, captions a picture, threshold of being right) and a column a
 * figure: coverage of the 95% interval in percent, rejections of two equal models at p < 0.05 below
 * it. Then the debiased calibration error for forecasters of known error. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/eval/resample/clustered_world.h"
#include "tests/eval/resample/forecaster.h"

static const struct {
    const char *name;
    size_t at;
} COLUMNS[] = {{"R@1", 0},
               {"R@5", 1},
               {"R@10", 2},
               {"mAP@R", WORLD_RECALLS + PNB_FIGURE_MAP_AT_R},
               {"meanrank", WORLD_RECALLS + PNB_FIGURE_MEAN_RANK},
               {"Spearman", WORLD_RECALLS + PNB_FIGURE_QUERY_SPEARMAN},
               {"AUROC", WORLD_RECALLS + PNB_FIGURE_AUROC},
               {"AURC", WORLD_RECALLS + PNB_FIGURE_AURC},
               {"AUGRC", WORLD_RECALLS + PNB_FIGURE_AUGRC},
               {"NLPD", WORLD_RECALLS + PNB_FIGURE_NLPD},
               {"RSUM", WORLD_RSUM}};

static const world_opts WORLDS[] = {{100, 1, 0.6, 0.0},  {100, 5, 0.6, 0.0}, {100, 0, 0.6, 0.0},
                                    {100, 10, 0.6, 0.0}, {50, 5, 0.6, 0.0},  {500, 5, 0.6, 0.0},
                                    {100, 5, 0.6, 1.2},  {500, 5, 0.6, 2.0}, {500, 1, 0.6, 1.5},
                                    {100, 5, 0.9, -1.0}, {1000, 5, 0.3, 0.5}};

static pnb_status try_world(const world_opts *o, size_t n_worlds, const pnb_bootstrap_opts *boot,
                            bool with_clusters, pnb_error *err)
{
    double truth[WORLD_N];
    world_counts c = {.n = 0};
    pnb_status status = world_truth(o, 100, truth, err);
    for (size_t r = 0; r < n_worlds && status == PNB_OK; r++)
        status = world_try(o, r, with_clusters, boot, truth, &c, err);
    if (status != PNB_OK)
        return status;
    printf("%5zu %4zu %4.1f %5.2f %5s |", o->images, o->texts, o->rho, truth[0],
           with_clusters ? "yes" : "no");
    for (size_t i = 0; i < PNB_COUNT(COLUMNS); i++)
        printf(" %8.1f", 100.0 * c.covered[COLUMNS[i].at] / (double)c.n);
    printf("\n%27s |", "rejected");
    for (size_t i = 0; i < PNB_COUNT(COLUMNS); i++)
        printf(" %8.1f", 100.0 * c.rejected[COLUMNS[i].at] / (double)c.n);
    printf("\n");
    fflush(stdout);
    return PNB_OK;
}

static pnb_status try_forecasters(size_t n_worlds, const pnb_bootstrap_opts *boot, pnb_error *err)
{
    static const size_t N[] = {200, 1000, 5000}, TEXTS[] = {1, 5};
    pnb_status status = PNB_OK;
    printf("\ncalibration error: forecaster, queries, captions a picture | truth, mean plug-in, "
           "mean debiased, share of exact 0, coverage\n");
    for (size_t f = 0; f < N_FORECASTERS; f++)
        for (size_t i = 0; i < PNB_COUNT(N); i++)
            for (size_t k = 0; k < PNB_COUNT(TEXTS) && status == PNB_OK; k++) {
                const forecaster_case c = {(forecaster)f, N[i], TEXTS[k]};
                forecaster_counts counts = {0};
                size_t n = N[i] == 5000 ? n_worlds / 4 : n_worlds;
                for (size_t r = 0; r < n && status == PNB_OK; r++)
                    status = forecaster_try(&c, r, boot, &counts, err);
                printf("%-14s %5zu %2zu | %.4f %.4f %.4f %5.2f %6.1f\n", FORECASTER_NAMES[f], N[i],
                       TEXTS[k], forecaster_error((forecaster)f), counts.plug_in / counts.n,
                       counts.estimate / counts.n, counts.zero / counts.n,
                       100.0 * counts.covered / counts.n);
                fflush(stdout);
            }
    return status;
}

int main(int argc, char **argv)
{
    size_t n_worlds = argc > 1 ? (size_t)atol(argv[1]) : 2000;
    pnb_bootstrap_opts boot = pnb_bootstrap_opts_default();
    pnb_error err = PNB_ERROR_INIT;
    pnb_status status = PNB_OK;
    boot.n_resamples = argc > 2 ? (size_t)atol(argv[2]) : 1000;
    printf("%zu worlds, %zu resamples\npictures captions rho R@1 clusters |", n_worlds,
           boot.n_resamples);
    for (size_t i = 0; i < PNB_COUNT(COLUMNS); i++)
        printf(" %8s", COLUMNS[i].name);
    printf("\n");
    for (size_t i = 0; i < PNB_COUNT(WORLDS) && status == PNB_OK; i++)
        status = try_world(&WORLDS[i], n_worlds, &boot, true, &err);
    if (status == PNB_OK)
        status = try_world(&WORLDS[1], n_worlds, &boot, false, &err);
    if (status == PNB_OK)
        status = try_forecasters(n_worlds, &boot, &err);
    if (status != PNB_OK)
        fprintf(stderr, "intervals: %s\n", err.text);
    return status == PNB_OK ? 0 : 1;
}
