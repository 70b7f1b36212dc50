/* The frame around every command: picks it from the command line, fills its options, makes the
 * context, runs it, prints what went wrong and chooses the exit status.
 *
 * What a command sees of all this is its pnb__app (app.c); help and manual pages are manual*.c. */
#include "program/frame.h"

#include <assert.h>
#include <string.h>

#include "base/base.h"
#include "io/json/json.h"
#include "penumbra/image.h"
#include "program/manual.h"
#include "program/outputs.h"
#include "program/result_end.h"
#include "program/settings.h"
#include "program/together.h"

enum { N_SETS = 2 }; /* of options: the command's, and those of every command */

static void on_log(void *user, pnb_log_level level, const char *text)
{
    const pnb__app *app = user;
    if (level == PNB_LOG_WARN)
        pnb__warn(app, "%s", text);
    else if (level == PNB_LOG_INFO)
        pnb__say(app, "%s", text);
}

static pnb_status make_ctx(pnb__app *app)
{
    pnb_ctx_opts opts = pnb_ctx_opts_default();
    opts.n_threads = (int)app->common.threads;
    if (opts.n_threads == 0)
        opts.n_threads = pnb__together_threads(app);
    opts.batch_invariant = app->common.batch_invariant;
    opts.log = on_log;
    opts.log_user = app;
    pnb_status status =
        pnb_device_parse(&opts.device, &opts.device_index, app->common.device, &app->err);
    if (status != PNB_OK) {
        app->usage = true;
        pnb__error_prefix(&app->err, "--device");
        return status;
    }
    status = pnb__together_agree_device(app, opts.device);
    if (status != PNB_OK)
        return status;
    if (app->cpu != NULL && app->cpu[0] != '\0')
        status = pnb_isa_parse(&opts.isa, app->cpu, &app->err);
    if (status != PNB_OK) {
        pnb__error_prefix(&app->err, "PENUMBRA_CPU");
        return status;
    }
    status = pnb_ctx_create(&app->ctx, &opts, &app->err);
    if (status != PNB_OK && opts.isa != PNB_ISA_AUTO && opts.device != PNB_DEVICE_CUDA)
        pnb__error_prefix(&app->err, "PENUMBRA_CPU=%s", app->cpu);
    return status;
}

/* Prints the error, if any, and tells the exit status. */
static int finish(pnb__app *app, const char *full_name, pnb_status status)
{
    if (status == PNB_OK && (fflush(app->out) != 0 || ferror(app->out)))
        status = pnb__fail_errno(&app->err, "cannot write", "standard output");
    if (status == PNB_OK) {
        if (app->n_skipped > 0)
            pnb__say(app, "%zu input%s skipped", app->n_skipped, app->n_skipped == 1 ? "" : "s");
        /* a launcher kills all where one ends with something: rank 0 alone has a say in that */
        return app->n_skipped > 0 && !app->is_silent ? PNB__EXIT_SKIPPED : PNB__EXIT_DONE;
    }
    pnb__together_fail(app, status);
    const char *text = app->err.text[0] != '\0' ? app->err.text : pnb_status_sentence(status);
    if (pnb__together_speaks(app))
        fprintf(app->log, "%s%s: %s%s%s%s\n", app->is_tty ? "\r\033[K" : "", full_name,
                app->colour ? "\033[31m" : "",
                status == PNB_INTERRUPTED ? "interrupted: " : "error: ",
                app->colour ? "\033[0m" : "", text);
    if (app->usage && pnb__together_speaks(app))
        fprintf(app->log, "Try '%s --help'.\n", full_name);
    fflush(app->log);
    if (status == PNB_INTERRUPTED)
        return PNB__EXIT_INTERRUPTED;
    return app->usage ? PNB__EXIT_USAGE : PNB__EXIT_FAILED;
}

static bool asks_for_help(int n, char *const *words)
{
    for (int i = 0; i < n && strcmp(words[i], "--") != 0; i++)
        if (strcmp(words[i], "--help") == 0 || strcmp(words[i], "-h") == 0)
            return true;
    return false;
}

/* Those of the command in front of those set beforehand, allocated. */
static pnb_status join_presets(const pnb__preset *own, size_t n_own, const pnb__settings *before,
                               pnb__preset **out, pnb_error *err)
{
    pnb_status status = PNB_ALLOC(*out, n_own + before->n + 1, err);
    if (status != PNB_OK)
        return status;
    if (n_own > 0)
        memcpy(*out, own, n_own * sizeof *own);
    if (before->n > 0)
        memcpy(*out + n_own, before->items, before->n * sizeof *own);
    return PNB_OK;
}

/* Reads the words; twice where the command has defaults, which the first reading may choose. */
static pnb_status read_words(pnb__app *app, const pnb__command *command,
                             const pnb__opt_set sets[N_SETS], const pnb__settings *before, int n,
                             char *const *words)
{
    pnb_status status = PNB_OK;
    for (int times = command->defaults != NULL ? 2 : 1; times > 0 && status == PNB_OK; times--) {
        pnb__preset *presets = NULL;
        size_t n_own = 0;
        bool may_choose = command->presets != NULL && times == 1; /* by the first reading */
        const pnb__preset *own = may_choose ? command->presets(sets[0].args, &n_own) : NULL;
        pnb__options_free(sets, N_SETS);
        if (command->defaults != NULL)
            command->defaults(sets[0].args);
        status = join_presets(own, n_own, before, &presets, &app->err);
        if (status == PNB_OK)
            status = pnb__options_parse_over(sets, N_SETS, presets, n_own + before->n, n, words,
                                             &app->err);
        pnb__free(presets);
    }
    if (status == PNB_ARG)
        app->usage = true;
    return status;
}

/* The words are read before, since they say how long to wait, but what is wrong with them is said
 * behind: all ranks have the same words, and one speaks. */
static pnb_status meet(pnb__app *app, const pnb__program *program, const pnb__command *command,
                       const void *args, pnb_status read)
{
    const pnb_error of_words = app->err;
    bool usage = app->usage;
    app->err = (pnb_error)PNB_ERROR_INIT;
    app->usage = false;
    pnb_status status = pnb__together_open(app, program, command, args);
    if (status == PNB_ARG)
        app->usage = true;
    if (status != PNB_OK || read == PNB_OK)
        return status;
    app->err = of_words;
    app->usage = usage;
    return read;
}

static pnb_status run_with(pnb__app *app, const pnb__command *command, void *args)
{
    app->common.quiet = app->common.quiet || app->is_silent;
    pnb_status status = make_ctx(app);
    if (status != PNB_OK)
        return status;
    pnb__result *r = pnb__result_create();
    if (r == NULL)
        return pnb__fail_nomem(&app->err, 1);
    status = command->run(app, args, r);
    return pnb__result_finish(r, app, status);
}

static int run_command(const pnb__program *program, const pnb__command *command, pnb__app *app,
                       const char *full_name, int n, char *const *words)
{
    assert(command != NULL);
    void *args = pnb__alloc_zero(1, PNB_MAX(command->args_bytes, (size_t)1));
    bool *typed = pnb__alloc_zero(command->n_options + 1, sizeof *typed);
    if (args == NULL || typed == NULL) {
        pnb__free(args);
        pnb__free(typed);
        return finish(app, full_name, pnb__fail_nomem(&app->err, command->args_bytes));
    }
    const pnb__opt_set sets[N_SETS] = {
        {command->options, command->n_options, args, command->defaults != NULL, typed},
        {pnb__common_options, pnb__n_common_options, &app->common, false, NULL}};
    app->own = &sets[0];
    pnb__settings before;
    memset(&before, 0, sizeof before);
    pnb_status read =
        pnb__settings_read(program, full_name + strlen(program->name) + 1, &before, &app->err);
    if (read == PNB_ARG)
        app->usage = true;
    if (read == PNB_OK)
        read = read_words(app, command, sets, &before, n, words);
    pnb_status status = meet(app, program, command, args, read);
    if (status == PNB_OK)
        status = pnb__outputs_check(app, sets, N_SETS);
    if (status == PNB_OK)
        status = run_with(app, command, args);
    int exit_status = finish(app, full_name, status);
    pnb__together_close(app);
    for (size_t i = 0; i < app->n_unknown_sets; i++)
        pnb__free(app->unknown_sets[i]);
    pnb__free(app->unknown_sets);
    pnb_ctx_free(app->ctx);
    pnb__options_free(sets, N_SETS);
    pnb__settings_free(&before);
    app->own = NULL;
    pnb__free(typed);
    pnb__free(args);
    return exit_status;
}

static const pnb__command *find_command(const pnb__command *const *list, const char *name)
{
    for (; *list != NULL; list++)
        if (strcmp((*list)->name, name) == 0)
            return *list;
    return NULL;
}

/* A command under a word of an older release, with a line that says the new one; or NULL. */
static const pnb__command *find_retired(const pnb__program *program, const pnb__app *app,
                                        const char *name)
{
    const pnb__retired *r = program->retired;
    for (; r != NULL && r->command != NULL; r++)
        if (strcmp(r->command->name, name) == 0) {
            pnb__warn(app, "`%s %s` is now `%s %s`; the old word will go in the next release",
                      program->name, name, program->name, r->now);
            return r->command;
        }
    return NULL;
}

static int fail_no_command(pnb__app *app, const char *full_name, const pnb__command *const *list,
                           const char *word)
{
    const char *names[64];
    size_t n = 0;
    for (; n < PNB_COUNT(names) && list[n] != NULL; n++)
        names[n] = list[n]->name;
    const char *near = word == NULL ? NULL : pnb__nearest_name(word, names, n);
    if (word == NULL)
        pnb__usage(app, "a command is missing");
    else if (near != NULL)
        pnb__usage(app, "unknown command '%s'; did you mean '%s'?", word, near);
    else
        pnb__usage(app, "unknown command '%s'", word);
    return finish(app, full_name, PNB_ARG);
}

/* `manual COMMAND`, `manual --roff [COMMAND]`. */
static int run_manual(const pnb__program *program, pnb__app *app, int n, char *const *words)
{
    bool is_roff = n > 0 && strcmp(words[0], "--roff") == 0;
    const char *name = n > is_roff ? words[is_roff] : NULL;
    const pnb__command *c = name != NULL ? find_command(program->commands, name) : NULL;
    if (n > is_roff + 1 || (c == NULL && (name != NULL || !is_roff)))
        return finish(app, program->name, pnb__usage(app, "manual: name one command"));
    if (is_roff)
        pnb__manual_roff(app->out, program, c);
    else
        pnb__manual_page(app->out, program, c);
    return finish(app, program->name, PNB_OK);
}

/* One line; with the parts that can be left out of a build each on a line of its own. */
static void print_version(const pnb__program *program, const pnb__app *app, bool is_verbose)
{
    const char *missing = pnb_image_formats_missing();
    fprintf(app->out, "%s %s (pictures: %s%s%s)\n", program->name, pnb_version(),
            pnb_image_formats(), missing[0] != '\0' ? "; not read: " : "", missing);
    const pnb__part *part = is_verbose ? program->parts : NULL;
    for (; part != NULL && part->library != NULL; part++) {
        const char *version = part->version();
        if (version != NULL)
            fprintf(app->out, "%s: %s%s%s\n", part->gives, part->library,
                    version[0] != '\0' ? " " : "", version);
        else
            fprintf(app->out, "%s: missing; install %s (tools/install-deps) and build again\n",
                    part->gives, part->package);
    }
}

/* Prints what `--help`, `--version`, `help`, `manual` and `completion` ask for; -1: none of them.
 */
static int run_builtin(const pnb__program *program, pnb__app *app, int argc, char **argv)
{
    const char *word = argv[1];
    if (strcmp(word, "--version") == 0) {
        bool is_verbose = argc == 3 && strcmp(argv[2], "--verbose") == 0;
        if (argc > 2 && !is_verbose)
            return finish(app, program->name,
                          pnb__usage(app, "--version: nothing but --verbose may follow"));
        print_version(program, app, is_verbose);
    } else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 ||
               (strcmp(word, "help") == 0 && argc == 2)) {
        pnb__manual_program(app->out, program);
    } else if (strcmp(word, "completion") == 0) {
        if (argc != 3 || !pnb__manual_completion(app->out, program, argv[2]))
            return finish(app, program->name,
                          pnb__usage(app, "completion: bash, zsh or fish is wanted"));
    } else if (strcmp(word, "manual") == 0) {
        return run_manual(program, app, argc - 2, argv + 2);
    } else {
        return -1;
    }
    return finish(app, program->name, PNB_OK);
}

int pnb__program_run(const pnb__program *program, int argc, char **argv)
{
    pnb__app app = {.in = program->in,
                    .out = program->out,
                    .log = program->log,
                    .is_tty = program->is_tty,
                    .colour = program->colour,
                    .hub = program->hub,
                    .models = program->models,
                    .cpu = program->cpu,
                    .interrupted = program->interrupted,
                    .hangup = program->hangup,
                    .lost = program->lost};
    char full_name[128];
    int at = 1;
    snprintf(full_name, sizeof full_name, "%s", program->name);
    if (argc < 2)
        return fail_no_command(&app, full_name, program->commands, NULL);
    int exit_status = run_builtin(program, &app, argc, argv);
    if (exit_status >= 0)
        return exit_status;
    bool help = strcmp(argv[1], "help") == 0; /* `help train` is `train --help` */
    at += help;
    const pnb__command *const *list = program->commands;
    const pnb__command *command = NULL;
    while (list != NULL) {
        const char *word = at < argc ? argv[at] : NULL;
        const pnb__command *next = word == NULL ? NULL : find_command(list, word);
        if (next == NULL && word != NULL && command == NULL)
            next = find_retired(program, &app, word);
        if (next == NULL && command != NULL && (help || asks_for_help(argc - at, argv + at)))
            break;
        if (next == NULL)
            return fail_no_command(&app, full_name, list, word);
        size_t length = strlen(full_name);
        snprintf(full_name + length, sizeof full_name - length, " %s", next->name);
        command = next;
        list = command->subs;
        at++;
    }
    if (help || asks_for_help(argc - at, argv + at)) {
        pnb__manual_help(app.out, full_name, command);
        return finish(&app, full_name, PNB_OK);
    }
    return run_command(program, command, &app, full_name, argc - at, argv + at);
}
