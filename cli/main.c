/* The program: streams, terminal and Ctrl-C of the process, handed to src/program/frame.c.
 *
 * The only file that reads the environment (NO_COLOR, TERM, where Hugging Face's cache is, and what
 * settings.h makes options of) and, with lost_pages.c, holds a global. */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "commands/commands.h"
#include "lost_pages.h"
#include "program/frame.h"

/* What the handlers of these signals may touch. */
static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

static pnb__hangup hangup;

/* A closed terminal stops a job as cleanly as Ctrl-C, unless the command has another use for it. */
static void on_hangup(int number)
{
    if (hangup.is_expected) {
        hangup.came = 1;
        return;
    }
    interrupted = 1;
    signal(number, SIG_DFL);
}

static void listen_to_signals(void)
{
    /* A second Ctrl-C ends the process at once: the handler is taken back after the first. */
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND}, before;
    const struct sigaction hung_up = {.sa_handler = on_hangup};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    /* What nohup started goes on without a terminal. */
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &hung_up, NULL);
    /* A file at the limit of `ulimit -f` is an error with a reason (EFBIG), not the end. */
    signal(SIGXFSZ, SIG_IGN);
}

#ifdef PNB_FAULTS
/* PNB_DISK_FAULT=N[:ERRNO]: the process is killed at its N-th step on the disk, or that step
 * fails with the number given. Steps are those of pnb__disk_step_fails. */
static void plant_fault(void)
{
    const char *text = getenv("PNB_DISK_FAULT");
    char *end = NULL;
    long n = text != NULL ? strtol(text, &end, 10) : -1;
    pnb__disk_fault_at(n, end != NULL && *end == ':' ? (int)strtol(end + 1, NULL, 10) : 0);
}
#else
static void plant_fault(void)
{
}
#endif

/* share/penumbra/models beside the folder of the program, wherever it was installed or built; else
 * where it was to be installed. */
static const char *find_models(void)
{
    static char path[PATH_MAX + sizeof PNB_MODELS];
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
    for (int up = 0; up < 2 && n > 0; up++)
        while (n > 0 && path[--n] != '/')
            continue;
    if (n > 0) {
        snprintf(path + n, sizeof path - (size_t)n, "/share/penumbra/models");
        if (access(path, F_OK) == 0)
            return path;
    }
    return PNB_MODELS;
}

int main(int argc, char **argv)
{
#define PNB__COMMAND_ADDRESS(name) &pnb__cmd_##name,
    static const pnb__command *const commands[] = {PNB__COMMANDS(PNB__COMMAND_ADDRESS) NULL};
#undef PNB__COMMAND_ADDRESS
    const char *no_colour = getenv("NO_COLOR"), *terminal = getenv("TERM");
    pnb__program program = {.name = "penumbra",
                            .summary = "pictures and captions as distributions",
                            .commands = commands,
                            .retired = pnb__retired_commands,
                            .parts = pnb__parts,
                            .in = stdin,
                            .out = stdout,
                            .log = stderr,
                            .is_tty = isatty(STDERR_FILENO) != 0 && terminal != NULL,
                            .hub = {.hub_cache = getenv("HF_HUB_CACHE"),
                                    .hf_home = getenv("HF_HOME"),
                                    .cache_home = getenv("XDG_CACHE_HOME"),
                                    .home = getenv("HOME")},
                            .models = find_models(),
                            .cpu = getenv("PENUMBRA_CPU"),
                            .environment = (const char *const *)environ};
    program.colour = program.is_tty && (no_colour == NULL || no_colour[0] == '\0');
    listen_to_signals();
    program.interrupted = &interrupted;
    program.hangup = &hangup;
    program.lost = pnb__watch_lost_pages();
    plant_fault();
    return pnb__program_run(&program, argc, argv);
}
