/* A report whose captions have found something, without sets on disk: 200 captions of 100 pictures,
 * two of each, and the first hit of each caption with its score. */
#ifndef PNB_TESTS_FAKE_REPORT_H
#define PNB_TESTS_FAKE_REPORT_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "commands/report/report_answers.h"

enum { N_TEXTS = 200, N_IMAGES = 100 };

typedef struct fake {
    pnb__app app;
    pnb__report_opts opts;
    pnb__report report;
    pnb_embeddings images, texts;
    pnb_truth forward, backward;
    size_t forward_offset[N_IMAGES + 1], forward_item[N_TEXTS];
    size_t backward_offset[N_TEXTS + 1], backward_item[N_TEXTS];
    int64_t image_cluster[N_IMAGES], text_cluster[N_TEXTS], index[N_TEXTS];
    int level[N_TEXTS];
    double score[N_TEXTS];
    bool is_right[N_TEXTS];
} fake;

/* Deterministic, in [0,1). */
static inline double noise(size_t i)
{
    return fmod((double)((i * 7919 + 13) % 997) * 0.6180339887, 1.0);
}

/* Right more often the higher the score is, for scores from 0 to 1. */
static inline void fake_init(fake *f, size_t n_texts)
{
    memset(f, 0, sizeof *f);
    for (size_t t = 0; t < N_TEXTS; t++) {
        f->score[t] = noise(t);
        f->is_right[t] = noise(t + 500) < f->score[t];
        f->backward_item[t] = t / 2;
        f->backward_offset[t + 1] = t + 1;
        f->forward_item[t] = t;
        f->text_cluster[t] = (int64_t)(t / 2);
        f->level[t] = -1;
        f->index[t] = (int64_t)(f->is_right[t] ? t / 2 : (t / 2 + 1) % N_IMAGES);
    }
    for (size_t i = 0; i < N_IMAGES; i++) {
        f->forward_offset[i + 1] = 2 * (i + 1);
        f->image_cluster[i] = (int64_t)i;
    }
    f->images.n = N_IMAGES;
    f->texts.n = n_texts;
    f->forward = (pnb_truth){.n_queries = N_IMAGES,
                             .n_items = N_TEXTS,
                             .offset = f->forward_offset,
                             .item = f->forward_item};
    f->backward = (pnb_truth){.n_queries = N_TEXTS,
                              .n_items = N_IMAGES,
                              .offset = f->backward_offset,
                              .item = f->backward_item};
    pnb__retrieval *all = &f->report.all;
    all->images = &f->images;
    all->texts = &f->texts;
    all->truth = &f->forward;
    all->backward = &f->backward;
    all->image_cluster = f->image_cluster;
    all->text_cluster = f->text_cluster;
    all->text_level = f->level;
    f->report.app = &f->app;
    f->report.opts = &f->opts;
    f->report.found = (pnb__found){
        .run = all, .hits = {.n_queries = n_texts, .k = 1, .index = f->index, .score = f->score}};
}

#endif
