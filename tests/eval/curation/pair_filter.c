/* Which pairs are kept: limits, shares and the best ones against a plain count, ties, and what is
 * refused. */
#include "penumbra/filter.h"
#include "tests/prob/support.h"

#define BIT(rule) ((uint32_t)1 << PNB_RULE_##rule)

enum { N = 8 };
static const double score[N] = {0.9, 0.1, 0.5, 0.7, 0.5, 0.3, 0.5, 0.8};
static const double image_u[N] = {1, 2, 3, 4, 5, 6, 7, 8};
static const double text_u[N] = {8, 8, 1, 1, 2, 2, 3, 3};
static const char *const texts[N] = {"a cat",       "a dog", "12", "a big dog",
                                     "dog dog dog", NULL,    "a",  "the end"};

static pnb_pair_figures figures(void)
{
    return (pnb_pair_figures){
        .n = N, .score = score, .image_u = image_u, .text_u = text_u, .texts = texts};
}

static pnb_pair_filter apply(const pnb_pair_filter_opts *opts)
{
    pnb_pair_figures p = figures();
    pnb_pair_filter f;
    assert_ok(pnb_pair_filter_apply(&p, opts, &f, err));
    return f;
}

static void assert_kept(const pnb_pair_filter *f, const char *wanted)
{
    char kept[N + 1] = {0};
    size_t n = 0;
    for (size_t i = 0; i < N; i++) {
        kept[i] = f->failed[i] == 0 ? 'x' : '.';
        n += f->failed[i] == 0;
    }
    assert_string_equal(kept, wanted);
    assert_int_equal(f->n_kept, n);
}

static void keeps_all_without_rules(void **state)
{
    (void)state;
    pnb_pair_filter_opts opts = pnb_pair_filter_opts_default();
    assert_true(pnb_pair_filter_opts_is_off(&opts));
    pnb_pair_filter f = apply(&opts);
    assert_kept(&f, "xxxxxxxx");
    assert_near(f.lowest_kept, 0.1, 0, 0);
    assert_true(isnan(f.image_u_cut) && isnan(f.text_u_cut));
    pnb_pair_filter_reset(&f);
    pnb_pair_filter_reset(NULL);
    opts.texts.needs_letter = true;
    assert_false(pnb_pair_filter_opts_is_off(&opts));
    opts = pnb_pair_filter_opts_default();
    opts.certain_texts = 1;
    assert_false(pnb_pair_filter_opts_is_off(&opts));
}

static void applies_limits(void **state)
{
    (void)state;
    pnb_pair_filter_opts opts = pnb_pair_filter_opts_default();
    opts.min_score = 0.5;
    pnb_pair_filter f = apply(&opts);
    assert_kept(&f, "x.xxx.xx");
    assert_int_equal(f.n_failed[PNB_RULE_MIN_SCORE], 2);
    assert_near(f.lowest_kept, 0.5, 0, 0);
    pnb_pair_filter_reset(&f);
    opts.max_image_u = 4;
    opts.max_text_u = 2;
    f = apply(&opts);
    assert_kept(&f, "..xx....");
    assert_int_equal(f.failed[1], BIT(MIN_SCORE) | BIT(MAX_TEXT_U));
    assert_int_equal(f.failed[6], BIT(MAX_IMAGE_U) | BIT(MAX_TEXT_U));
    assert_int_equal(f.n_failed[PNB_RULE_MAX_TEXT_U], 4);
    assert_int_equal(f.n_first[PNB_RULE_MIN_SCORE], 2);
    assert_int_equal(f.n_first[PNB_RULE_MAX_IMAGE_U], 3);
    assert_int_equal(f.n_first[PNB_RULE_MAX_TEXT_U], 1);
    assert_near(f.image_u_cut, 4, 0, 0);
    assert_near(f.text_u_cut, 2, 0, 0);
    pnb_pair_filter_reset(&f);
}

static void limits_probability(void **state)
{
    (void)state;
    double p[N];
    for (size_t i = 0; i < N; i++)
        p[i] = pnb_match_probability(score[i], 10, -5);
    pnb_pair_figures pairs = figures();
    pairs.p_match = p;
    pnb_pair_filter_opts opts = pnb_pair_filter_opts_default();
    opts.min_p_match = 0.5; /* s(10 x - 5) >= 1/2 from x = 0.5 on */
    pnb_pair_filter f;
    assert_ok(pnb_pair_filter_apply(&pairs, &opts, &f, err));
    assert_kept(&f, "x.xxx.xx");
    pnb_pair_filter_reset(&f);
}

/* Shares of certainty keep ties; the best share breaks them by place. */
static void keeps_shares(void **state)
{
    (void)state;
    pnb_pair_filter_opts opts = pnb_pair_filter_opts_default();
    opts.certain_images = 0.5;
    pnb_pair_filter f = apply(&opts);
    assert_kept(&f, "xxxx....");
    assert_near(f.image_u_cut, 4, 0, 0);
    pnb_pair_filter_reset(&f);
    opts = pnb_pair_filter_opts_default();
    opts.certain_texts = 0.3; /* place ceil(2.4) = 3: u = 2, and its equal */
    f = apply(&opts);
    assert_kept(&f, "..xxxx..");
    pnb_pair_filter_reset(&f);
    opts = pnb_pair_filter_opts_default();
    opts.top = 0.5; /* four: 0.9, 0.8, 0.7 and the first 0.5 */
    f = apply(&opts);
    assert_kept(&f, "x.xx...x");
    assert_near(f.lowest_kept, 0.5, 0, 0);
    pnb_pair_filter_reset(&f);
    opts.top = 1e-9; /* at least one */
    f = apply(&opts);
    assert_kept(&f, "x.......");
    pnb_pair_filter_reset(&f);
    opts.top = 1;
    f = apply(&opts);
    assert_kept(&f, "xxxxxxxx");
    pnb_pair_filter_reset(&f);
}

static void keeps_a_subset(void **state)
{
    (void)state;
    const unsigned char within[N] = {1, 0, 1, 1, 0, 1, 1, 0};
    pnb_pair_figures p = figures();
    pnb_pair_filter_opts opts = pnb_pair_filter_opts_default();
    pnb_pair_filter f;
    p.within = within;
    opts.top = 0.25; /* of all eight, among those inside */
    assert_ok(pnb_pair_filter_apply(&p, &opts, &f, err));
    assert_kept(&f, "x..x....");
    assert_int_equal(f.failed[7], BIT(WITHIN));
    assert_int_equal(f.n_first[PNB_RULE_WITHIN], 3);
    pnb_pair_filter_reset(&f);
}

/* The best share is of all pairs, chosen among those the other rules leave. */
static void chooses_the_best_last(void **state)
{
    (void)state;
    pnb_pair_filter_opts opts = pnb_pair_filter_opts_default();
    opts.texts.min_words = 2;
    opts.texts.max_repeated = 0.5;
    opts.top = 0.25;
    pnb_pair_filter f = apply(&opts);
    assert_kept(&f, "x......x");
    assert_int_equal(f.failed[2], BIT(MIN_WORDS));
    assert_int_equal(f.failed[4], BIT(REPEATED));
    assert_int_equal(f.failed[5], BIT(NO_TEXT));
    assert_int_equal(f.failed[3], BIT(TOP)); /* good, but third */
    assert_int_equal(f.n_first[PNB_RULE_TOP], 2);
    size_t n_dropped = 0;
    for (int rule = 0; rule < PNB_N_RULES; rule++)
        n_dropped += f.n_first[rule];
    assert_int_equal(n_dropped + f.n_kept, N);
    pnb_pair_filter_reset(&f);
}

static void tells_when_nothing_is_left(void **state)
{
    (void)state;
    pnb_pair_filter_opts opts = pnb_pair_filter_opts_default();
    opts.min_score = 2;
    opts.top = 0.5;
    pnb_pair_filter f = apply(&opts);
    assert_int_equal(f.n_kept, 0);
    assert_true(isnan(f.lowest_kept));
    pnb_pair_filter_reset(&f);
}

static void refuses_bad_input(void **state)
{
    (void)state;
    pnb_pair_figures p = figures();
    pnb_pair_filter_opts opts = pnb_pair_filter_opts_default();
    pnb_pair_filter f;
    double bad[N] = {0, 1, 2, NAN, 4, 5, 6, 7};
    p.n = 0;
    assert_fails(pnb_pair_filter_apply(&p, &opts, &f, err), PNB_ARG, "0 pairs");
    p = figures();
    p.score = bad;
    assert_fails(pnb_pair_filter_apply(&p, &opts, &f, err), PNB_NUMERIC, "score of pair 3");
    p = figures();
    p.text_u = bad;
    assert_fails(pnb_pair_filter_apply(&p, &opts, &f, err), PNB_NUMERIC, "caption's uncertainty");
    p = figures();
    opts.min_p_match = 0.5;
    assert_fails(pnb_pair_filter_apply(&p, &opts, &f, err), PNB_ARG, "min_p_match is set");
    opts = pnb_pair_filter_opts_default();
    static const double shares[] = {0, -1, 1.01, INFINITY};
    for (size_t i = 0; i < PNB_COUNT(shares); i++) {
        opts.top = shares[i];
        assert_fails(pnb_pair_filter_apply(&p, &opts, &f, err), PNB_ARG, "top is");
    }
    opts = pnb_pair_filter_opts_default();
    opts.certain_images = 20;
    assert_fails(pnb_pair_filter_apply(&p, &opts, &f, err), PNB_ARG, "certain_images is 20");
    opts = pnb_pair_filter_opts_default();
    opts.texts.match = "[";
    assert_fails(pnb_pair_filter_apply(&p, &opts, &f, err), PNB_ARG, "'['");
    static const char *const broken[N] = {"a", "\xFF", "c", "d", "e", "f", "g", "h"};
    opts.texts.match = "a";
    p.texts = broken;
    assert_fails(pnb_pair_filter_apply(&p, &opts, &f, err), PNB_FORMAT, "pair 1");
    assert_null(f.failed);
}

static void names_rules(void **state)
{
    (void)state;
    for (int rule = 0; rule < PNB_N_RULES; rule++) {
        assert_true(strlen(pnb_rule_name((pnb_rule)rule)) > 0);
        assert_string_not_equal(pnb_rule_name((pnb_rule)rule), "unknown");
        assert_true(strlen(pnb_rule_sentence((pnb_rule)rule)) > 0);
    }
    assert_string_equal(pnb_rule_name(PNB_N_RULES), "unknown");
    assert_string_equal(pnb_rule_sentence(PNB_N_RULES), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_all_without_rules),
        cmocka_unit_test(applies_limits),
        cmocka_unit_test(limits_probability),
        cmocka_unit_test(keeps_shares),
        cmocka_unit_test(keeps_a_subset),
        cmocka_unit_test(chooses_the_best_last),
        cmocka_unit_test(tells_when_nothing_is_left),
        cmocka_unit_test(refuses_bad_input),
        cmocka_unit_test(names_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
