/* One line of a file of questions: ids in both forms, answers as objects, what is refused and how.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "commands/eval/vqa/vqa_question.h"

#define LISTS "\"candidates\":[\"two\",\"a cat\"],\"answers\":[\"two\",{\"answer\":\"2\"}]"

static pnb_status parse(pnb__question *q, const char *line, pnb_error *err)
{
    *q = (pnb__question){0};
    return pnb__question_parse(q, line, strlen(line), 7, err);
}

static void reads_ids_and_answers(void **state)
{
    (void)state;
    pnb__question q;
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(parse(&q, "{\"question_id\":42,\"image_id\":\"p1\"," LISTS "}", &err), PNB_OK);
    assert_string_equal(q.id, "42");
    assert_string_equal(q.image, "p1");
    assert_null(q.type);
    assert_int_equal(q.q.n_candidates, 2);
    assert_string_equal(q.q.candidates[1], "a cat");
    assert_int_equal(q.q.n_answers, 2);
    assert_string_equal(q.q.answers[1], "2");
    pnb__question_reset(&q);
    /* without an id the line's number is it; "image" goes before "image_id" */
    assert_int_equal(
        parse(&q, "{\"image\":\"a\",\"image_id\":\"b\",\"answer_type\":\"number\"," LISTS "}",
              &err),
        PNB_OK);
    assert_string_equal(q.id, "7");
    assert_string_equal(q.image, "a");
    assert_string_equal(q.type, "number");
    pnb__question_reset(&q);
}

static void reads_units(void **state)
{
    (void)state;
    pnb__question q;
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(parse(&q, "{\"image\":\"a\",\"room\":3," LISTS "}", &err), PNB_OK);
    assert_int_equal(pnb__question_read_unit(&q, NULL, &err), PNB_OK);
    assert_string_equal(q.unit, "a");
    assert_int_equal(pnb__question_read_unit(&q, "room", &err), PNB_OK);
    assert_string_equal(q.unit, "3");
    assert_int_equal(pnb__question_read_unit(&q, "floor", &err), PNB_NOT_FOUND);
    assert_non_null(strstr(err.text, "--cluster floor"));
    pnb__question_reset(&q);
}

static void reads_scores(void **state)
{
    (void)state;
    pnb__question q;
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(parse(&q, "{\"scores\":[0.5,-1]," LISTS "}", &err), PNB_OK);
    assert_int_equal(pnb__question_read_scores(&q, &err), PNB_OK);
    assert_true(q.scores[0] == 0.5 && q.scores[1] == -1);
    assert_null(q.uncertainty);
    pnb__question_reset(&q);
    assert_int_equal(parse(&q, "{\"scores\":[0.5,-1],\"uncertainties\":[1]," LISTS "}", &err),
                     PNB_OK);
    assert_int_equal(pnb__question_read_scores(&q, &err), PNB_FORMAT);
    assert_non_null(strstr(err.text, "\"uncertainties\" is not a list of 2 numbers"));
    pnb__question_reset(&q);
}

static void refuses(void **state)
{
    (void)state;
    static const struct {
        const char *line, *says;
    } cases[] = {
        {"[1]", "not a JSON object"},
        {"{\"question_id\":-1," LISTS "}", "\"question_id\" is neither"},
        {"{\"question_id\":\"\"," LISTS "}", "\"question_id\" has 0 bytes"},
        {"{\"answer_type\":1," LISTS "}", "\"answer_type\" is no text"},
        {"{\"candidates\":[],\"answers\":[\"x\"]}", "\"candidates\" is not a list"},
        {"{\"candidates\":[\"x\"],\"answers\":[{\"text\":\"x\"}]}", "\"answers\"[0] is not a text"},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb__question q;
        pnb_error err = PNB_ERROR_INIT;
        assert_int_equal(parse(&q, cases[i].line, &err), PNB_FORMAT);
        assert_non_null(strstr(err.text, cases[i].says));
        pnb__question_reset(&q);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_ids_and_answers),
        cmocka_unit_test(reads_units),
        cmocka_unit_test(reads_scores),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
