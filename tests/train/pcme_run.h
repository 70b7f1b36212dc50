/* A run of PCME that lasts a second: a narrow ResNet and a small GRU for an epoch of four steps. */
#ifndef PNB_TESTS_TRAIN_PCME_RUN_H
#define PNB_TESTS_TRAIN_PCME_RUN_H

#include "tests/train/results.h"

static const char pcme_config[] =
    "{\"model_type\": \"pcme\", \"embed_dim\": 8, \"init_logit_scale\": 1.6, \"init_logit_bias\": "
    "5,\n"
    " \"vision_cfg\": {\"base\": 4, \"layers\": [1, 1, 1, 1], \"bottleneck\": false,\n"
    "   \"image_size\": 32},\n"
    " \"text_cfg\": {\"word_dim\": 6, \"context_length\": 24}}\n";

static inline pnb_train_opts pcme_opts(const fixture *f, const char *name)
{
    pnb_train_opts o = pnb_train_opts_of(PNB_OBJECTIVE_PCME, false);
    ASSERT_OK(pnb__write_file(f->config, pcme_config, strlen(pcme_config), &err));
    o.train_data = f->train;
    o.model = f->config;
    o.tokenizer_vocab_size = 400;
    o.logs = f->logs;
    o.name = name;
    o.batch_size = 8;
    o.train_num_samples = 32;
    o.epochs = 1;
    o.warmup = 0;
    o.optim.weight_decay = 0; /* what has no gradient stays as it is */
    o.seed = 7;
    return o;
}

#endif
