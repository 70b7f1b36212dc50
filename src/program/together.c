/* Processes of one launcher in one command (penumbra/peers.h).
 *
 * They must be one program: the same version and the same build (build_id.h). */
#define _GNU_SOURCE 1
#include "program/together.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "io/tables/text_lines.h"
#include "peers/peers.h"
#include "program/build_id.h"
#include "program/source_commit.h"

/* The command's --rank-timeout, as it was read; long enough for a cluster to start all of them
 * where it has none, or its words could not be read. */
static double wait_of(const pnb__command *command, const void *args)
{
    enum { WAIT_S = 300 };
    for (size_t i = 0; i < command->n_options; i++) {
        const pnb__option *row = &command->options[i];
        if (strcmp(row->name, "rank-timeout") != 0)
            continue;
        int64_t seconds = *(const int64_t *)pnb__option_field(row, args);
        return seconds > 0 ? (double)seconds : WAIT_S;
    }
    return WAIT_S;
}

static pnb_status compare_programs(pnb__app *app, const pnb__command *command)
{
    pnb__buf text = {0};
    const char *commit = pnb__source_commit();
    pnb__buf_printf(&text, "command: %s\nversion: %s\ncommit: %s\nbuild: ", command->name,
                    pnb_version(), commit != NULL ? commit : "unknown");
    pnb_status status = pnb__build_id(&text, &app->err);
    pnb__buf_printf(&text, "\n");
    if (status == PNB_OK)
        status = pnb__buf_check(&text, &app->err);
    if (status == PNB_OK)
        status = pnb__peers_compare(app->ranks, "program", text.data, &app->err);
    pnb__buf_reset(&text);
    return status;
}

/* Only rank 0 has something to say where all goes well. */
static pnb_status fall_silent(pnb__app *app)
{
    if (pnb_peers_rank(app->ranks) == 0)
        return PNB_OK;
    app->common.quiet = app->is_silent = true;
    app->nowhere = fopen("/dev/null", "w");
    if (app->nowhere == NULL)
        return pnb__fail_errno(&app->err, "opening", "/dev/null");
    app->out = app->nowhere;
    return PNB_OK;
}

pnb_status pnb__together_open(pnb__app *app, const pnb__program *program,
                              const pnb__command *command, const void *args)
{
    if (!command->joins) { /* outputs.c wants to know; variables that say nothing are no mistake
                              here */
        if (pnb_launch_read(&app->launch, program->environment, NULL) != PNB_OK)
            app->launch = (pnb_launch){.n_ranks = 1};
        return PNB_OK;
    }
    pnb_status status = pnb_launch_read(&app->launch, program->environment, &app->err);
    if (status == PNB_OK)
        status = pnb_peers_open(&app->ranks, &app->launch, wait_of(command, args), app->interrupted,
                                &app->err);
    app->is_lost = status == PNB_NOT_FOUND;
    if (status == PNB_OK)
        status = fall_silent(app);
    if (status == PNB_OK && app->ranks != NULL)
        status = compare_programs(app, command);
    return status;
}

/* The text is the trainer's own (train/ranks/agree.c), which compares for whoever has no program.
 */
pnb_status pnb__together_agree_device(pnb__app *app, pnb_device device)
{
    char text[80];
    snprintf(text, sizeof text, "kind of device (--device): %s\n", pnb_device_name(device));
    return pnb__peers_compare(app->ranks, "option", text, &app->err);
}

void pnb__together_fail(pnb__app *app, pnb_status status)
{
    if (status != PNB_OK && !app->is_agreed)
        pnb_peers_fail(app->ranks, status, &app->err);
}

bool pnb__together_speaks(const pnb__app *app)
{
    if (app->ranks == NULL && app->launch.n_ranks > 1)
        return app->launch.rank == (app->is_lost ? 1 : 0); /* rank 0 that is not there is silent */
    return pnb_peers_is_speaker(app->ranks);
}

bool pnb__together_writes(const pnb__app *app)
{
    return pnb_peers_rank(app->ranks) == 0;
}

pnb_status pnb__together_share_input(pnb__app *app)
{
    pnb_status status = PNB_OK;
    if (app->ranks == NULL || app->told != NULL)
        return PNB_OK;
    if (pnb_peers_rank(app->ranks) == 0 && app->in != NULL)
        status = pnb__stream_read(app->in, "standard input", &app->input, &app->err);
    if (status == PNB_OK)
        status = pnb__peers_share(app->ranks, &app->input, &app->err);
    if (status != PNB_OK)
        return status;
    app->told = app->input.size > 0 ? fmemopen(app->input.data, app->input.size, "r")
                                    : fopen("/dev/null", "r"); /* which takes no empty memory */
    if (app->told == NULL)
        return pnb__fail_errno(&app->err, "opening", "standard input");
    app->in = app->told;
    return PNB_OK;
}

void pnb__together_close(pnb__app *app)
{
    if (app->told != NULL)
        fclose(app->told);
    app->told = NULL;
    pnb__buf_reset(&app->input);
    pnb_peers_close(app->ranks);
    app->ranks = NULL;
    if (app->nowhere != NULL)
        fclose(app->nowhere);
    app->nowhere = NULL;
}

/* A launcher that binds gives its child fewer processors than it has itself. */
bool pnb__together_is_crowded(const pnb__app *app)
{
    cpu_set_t ours, parents;
    if (app->ranks == NULL || app->launch.n_local < 2)
        return false;
    bool is_bound = sched_getaffinity(0, sizeof ours, &ours) == 0 &&
                    sched_getaffinity(getppid(), sizeof parents, &parents) == 0 &&
                    !CPU_EQUAL(&ours, &parents);
    return !is_bound;
}

int pnb__together_threads(const pnb__app *app)
{
    if (!pnb__together_is_crowded(app))
        return 0;
    return PNB_MAX(pnb__n_processors() / (int)app->launch.n_local, 1);
}
