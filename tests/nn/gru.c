/* A GRU layer: both directions, whole and at the last word, against each other and against what the
 * last word alone gives; gradients by differences. */
#include "nn/gru.h"

#include "tests/nn/params.h"

enum { B = 4, T = 5, C = 3, H = 2 };
static const int32_t lengths[B] = {3, 5, 1, 4};
static const int32_t last_rows[B] = {2, T + 4, 2 * T, 3 * T + 3};

static pnb__gru_direction direction(void)
{
    pnb__gru_direction d = {PARAM(3 * H, C), PARAM(3 * H, H), PARAM(3 * H), PARAM(3 * H)};
    return d;
}

static pnb__gru_layer layer_of(bool both)
{
    pnb__gru_layer layer = {.ahead = direction()};
    if (both)
        layer.back = direction();
    return layer;
}

static pnb__sequences sequences_of(bool with_lengths)
{
    static const int32_t ends[B] = {T - 1, 2 * T - 1, 3 * T - 1, 4 * T - 1};
    pnb__sequences s = {.x = IN(B, T, C)};
    s.lengths = with_lengths ? int_in(lengths, SHAPE(B)) : NULL;
    s.last_rows = int_in(with_lengths ? last_rows : ends, SHAPE(B));
    return s;
}

/* What is read at the last word is the whole output there: ahead exactly, back as the released
 * PCME reads it, which is after one step. */
static void test_read_last_is_the_whole_at_the_last_word(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        bool both = kind & 1, with_lengths = kind & 2;
        size_t width = both ? 2 * H : H;
        begin_graph(PNB__F64, false);
        pnb__gru_layer layer = layer_of(both);
        pnb__sequences s = sequences_of(with_lengths);
        pnb__tensor *whole = pnb__gru_apply(g, &layer, &s);
        pnb__tensor *last = pnb__gru_read_last(g, &layer, &s);
        expect_shape(whole, SHAPE(B, T, width));
        expect_shape(last, SHAPE(B, width));
        pnb__tensor *rows = pnb__reshape(whole, 2, (size_t[]){(size_t)B * T, width});
        pnb__tensor *both_ways[2] = {pnb__gather(rows, s.last_rows), last};
        const double *v = computed(pnb__concat(both_ways, 2, 0));
        for (size_t i = 0; i < B * width; i++)
            expect_near(v[B * width + i], v[i], i);
        end_graph();
        n_params = 0;
    }
}

/* One word back from 0: h = (1 - z) n, in which W_hh has no part. */
static void test_backward_has_seen_the_last_word_alone(void **state)
{
    (void)state;
    begin_graph(PNB__F64, false);
    pnb__gru_layer layer = layer_of(true);
    pnb__sequences s = sequences_of(true);
    pnb__tensor *last = pnb__gru_read_last(g, &layer, &s);
    const double *w = values_of(layer.back.w_ih), *b = values_of(layer.back.b_ih);
    const double *u = values_of(layer.back.b_hh), *v = computed(last);
    for (size_t r = 0; r < B; r++)
        for (size_t i = 0; i < H; i++) {
            const double *x = numbers(s.x) + (size_t)last_rows[r] * C;
            double gate[3];
            for (size_t k = 0; k < 3; k++) {
                gate[k] = b[k * H + i];
                for (size_t c = 0; c < C; c++)
                    gate[k] += w[(k * H + i) * C + c] * x[c];
            }
            double reset = 1 / (1 + exp(-gate[0] - u[i])), z = 1 / (1 + exp(-gate[1] - u[H + i]));
            double n = tanh(gate[2] + reset * u[2 * H + i]);
            expect_near(v[r * 2 * H + H + i], (1 - z) * n, i);
        }
    end_graph();
    n_params = 0;
}

/* The whole backward direction does begin at the last word. */
static void test_whole_backward_ends_at_the_first_word(void **state)
{
    (void)state;
    begin_graph(PNB__F64, false);
    pnb__gru_layer layer = layer_of(true);
    pnb__gru_layer back_alone = {.ahead = layer.back};
    pnb__sequences s = {.x = IN(1, T, C)};
    pnb__sequences turned = {.x = IN(1, T, C)};
    for (size_t i = 0; i < T * C; i++)
        numbers(turned.x)[i] = numbers(s.x)[(T - 1 - i / C) * C + i % C];
    pnb__tensor *both[2] = {pnb__gru_apply(g, &layer, &s), pnb__gru_apply(g, &back_alone, &turned)};
    for (int i = 0; i < 2; i++)
        both[i] = pnb__reshape(both[i], 1, (size_t[]){pnb__n(both[i])});
    const double *v = computed(pnb__concat(both, 2, 0)), *there = v + (size_t)T * 2 * H;
    for (size_t t = 0; t < T; t++)
        for (size_t i = 0; i < H; i++)
            expect_near(v[t * 2 * H + H + i], there[(T - 1 - t) * H + i], i);
    end_graph();
    n_params = 0;
}

static void test_gradients(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        begin_graph(PNB__F64, true);
        pnb__gru_layer layer = layer_of(true);
        pnb__sequences s = sequences_of(kind & 1);
        check_gradients(kind & 2 ? pnb__gru_apply(g, &layer, &s)
                                 : pnb__gru_read_last(g, &layer, &s));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_last_is_the_whole_at_the_last_word),
        cmocka_unit_test(test_backward_has_seen_the_last_word_alone),
        cmocka_unit_test(test_whole_backward_ends_at_the_first_word),
        cmocka_unit_test(test_gradients),
    };
    return cmocka_run_group_tests(tests, open_ctx, close_ctx);
}
