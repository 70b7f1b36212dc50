/* Whole commands on a model of a family that the library does not have (tests/models/toy_family.h),
 * whose towers end in other distributions than ProLIP's: they ask the tower what it ends in. */
#include <sys/stat.h>
#include <unistd.h>

#include "commands/commands.h"
#include "io/json/json.h"
#include "program/frame.h"
#include "tests/models/toy_folder.h"

enum { MAX_ARGS = 40, N_IMAGES = 3 };

static pnb_ctx *ctx;
static char folder[64], log_text[1 << 14];

static int set_up(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/pnb-families-XXXXXX");
    if (mkdtemp(folder) == NULL || chdir(folder) != 0 || mkdir("pictures", 0700) != 0 ||
        pnb_ctx_create(&ctx, NULL, NULL) != PNB_OK)
        return -1;
    for (size_t i = 0; i < N_IMAGES; i++) {
        pnb_image image = {0};
        char path[64];
        draw_toy_image(&image, i);
        snprintf(path, sizeof path, "pictures/%zu.png", i);
        assert_ok(pnb_image_save_png(&image, path, err));
        pnb_image_free(&image);
    }
    FILE *f = fopen("captions.txt", "w");
    assert_non_null(f);
    for (size_t i = 0; i < PNB_COUNT(toy_texts); i++)
        fprintf(f, "%s\n", toy_texts[i]);
    return fclose(f);
}

static int tear_down(void **state)
{
    (void)state;
    char command[128];
    pnb_ctx_free(ctx);
    snprintf(command, sizeof command, "cd / && rm -rf '%s'", folder);
    return chdir("/") != 0 || system(command) != 0;
}

/* Runs "a b c" without the program's name; what it printed is left in *out (free). */
static int run(const char *line, char **out)
{
#define ADDRESS(name) &pnb__cmd_##name,
    static const pnb__command *const commands[] = {PNB__COMMANDS(ADDRESS) NULL};
#undef ADDRESS
    char words[1024], *argv[MAX_ARGS + 1] = {(char[]){"penumbra"}};
    size_t n_out = 0;
    int argc = 1;
    snprintf(words, sizeof words, "%s", line);
    for (char *word = strtok(words, " "); word != NULL && argc < MAX_ARGS; word = strtok(NULL, " "))
        argv[argc++] = word;
    memset(log_text, 0, sizeof log_text);
    FILE *to = open_memstream(out, &n_out), *in = fopen("/dev/null", "r");
    FILE *log = fmemopen(log_text, sizeof log_text - 1, "w");
    assert_true(to != NULL && in != NULL && log != NULL);
    const pnb__program program = {
        .name = "penumbra", .summary = "", .commands = commands, .in = in, .out = to, .log = log};
    int status = pnb__program_run(&program, argc, argv);
    fclose(to);
    fclose(in);
    fclose(log);
    return status;
}

/* The result of a command that must go well. */
static json_t *result_of(const char *line)
{
    char *text = NULL;
    json_t *root = NULL;
    int status = run(line, &text);
    if (status != 0)
        fail_msg("%s: %d: %s", line, status, log_text);
    assert_ok(pnb__json_load_bytes(&root, text, strlen(text), line, err));
    free(text);
    return root;
}

static void must_run(const char *line)
{
    json_decref(result_of(line));
}

static void must_fail(const char *line, const char *why)
{
    char *text = NULL;
    int status = run(line, &text);
    if (status != 1 || strstr(log_text, why) == NULL)
        fail_msg("%s: %d: '%s' does not say '%s'", line, status, log_text, why);
    free(text);
}

static const char *word_at(const json_t *root, const char *section, const char *key)
{
    const json_t *o = section != NULL ? json_object_get(root, section) : root;
    const char *word = json_string_value(json_object_get(o, key));
    return word != NULL ? word : "";
}

/* Pictures are points and captions von Mises-Fisher, as in AsymVLM. */
static void points_and_the_sphere(void **state)
{
    (void)state;
    make_toy_folder(ctx, "asym", "point", "vmf");
    json_t *r = result_of("info asym --json");
    assert_string_equal(word_at(r, NULL, "family"), "toy");
    assert_true(json_is_true(json_object_get(r, "probabilistic")));
    assert_string_equal(word_at(r, "vision", "distributions"), "point");
    assert_string_equal(word_at(r, "text", "distributions"), "vmf");
    assert_null(json_object_get(r, "text_uncertainty_source"));
    json_decref(r);
    r = result_of("check asym --json");
    assert_int_equal(json_integer_value(json_object_get(r, "n_errors")), 0);
    assert_string_equal(word_at(r, "text", "key_names"), "toy");
    json_decref(r);
    must_run("embed -m asym --images pictures -o i.safetensors -q --json");
    must_run("embed -m asym --texts captions.txt -o t.safetensors -q --json");
    r = result_of("info t.safetensors --json");
    assert_string_equal(word_at(r, NULL, "family"), "vmf");
    assert_string_equal(word_at(r, NULL, "uncertainty"), "inv_kappa");
    json_decref(r);
    r = result_of("search --index i.safetensors -m asym --query-text ring --json");
    assert_string_equal(word_at(r, NULL, "measure"), "vmf");
    json_decref(r);
    r = result_of("search --index t.safetensors -m asym --query-image pictures/0.png --json");
    assert_string_equal(word_at(r, NULL, "measure"), "vmf");
    json_decref(r);
    must_run("eval retrieval --images i.safetensors --texts i.safetensors --bootstrap 0 --json");
    r = result_of(
        "classify -m asym --images pictures --classnames star,ring --templates none --json");
    assert_string_equal(word_at(r, NULL, "measure"), "vmf");
    json_decref(r);
    must_run("bench encode -m asym --tower text --batch 2 --seconds 0 --repeats 1 --json");
    must_run("bench encode -m asym --tower image --batch 2 --seconds 0 --repeats 1 --json");
}

/* What compares variances says what the model has instead. */
static void uncertainty_is_asked_for(void **state)
{
    (void)state;
    make_toy_folder(ctx, "sphere", "point", "power_spherical");
    must_run("probe -m sphere --texts captions.txt --shares 0.1 0.3 --json");
    must_fail("probe -m sphere --images pictures", "sphere gives points without uncertainty");
    json_t *r = result_of("explain -m sphere --text ring --json");
    const json_t *item = json_object_get(r, "item_0");
    assert_true(json_number_value(json_object_get(item, "inv_kappa")) > 0);
    json_decref(r);
    must_fail("explain -m sphere --images pictures", "without uncertainty for pictures");
    must_fail("embed -m sphere --images pictures --masked -o x.safetensors", "no patches");
}

/* Two towers of generalised Gaussians are compared by their moments. */
static void generalised_gaussians(void **state)
{
    (void)state;
    make_toy_folder(ctx, "gg", "gen_gaussian", "gen_gaussian");
    json_t *r = result_of("check gg --json");
    assert_int_equal(json_integer_value(json_object_get(r, "n_errors")), 0);
    json_decref(r);
    must_run("probe -m gg --texts captions.txt --images pictures --shares 0.1 0.3 --json");
    must_run("explain -m gg --text ring --json");
    must_run("explain -m gg --images pictures --json");
    must_fail("explain -m gg --images pictures --remove drop", "no patches");
    must_run("embed -m gg --images pictures -o g.safetensors -q --json");
    r = result_of("search --index g.safetensors -m gg --query-text ring --json");
    assert_string_equal(word_at(r, NULL, "measure"), "csd");
    json_decref(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(points_and_the_sphere),
                                       cmocka_unit_test(uncertainty_is_asked_for),
                                       cmocka_unit_test(generalised_gaussians)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
