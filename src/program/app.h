/* What every command shares: common options, output streams, errors, exit codes, Ctrl-C. */
#ifndef PNB_PROGRAM_APP_H
#define PNB_PROGRAM_APP_H

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/base.h"
#include "penumbra/ctx.h"
#include "penumbra/error.h"
#include "penumbra/peers.h"
#include "program/options.h"

/* Exit statuses of the program. */
enum {
    PNB__EXIT_DONE = 0,
    PNB__EXIT_FAILED = 1,
    PNB__EXIT_USAGE = 2,
    PNB__EXIT_SKIPPED = 3, /* finished, but some inputs were skipped and listed */
    PNB__EXIT_INTERRUPTED = 130
};

/* SIGHUP between main's handler and a command that has a use for it: to all others it is Ctrl-C. */
typedef struct pnb__hangup {
    volatile sig_atomic_t is_expected, came;
} pnb__hangup;

/* Pages of mapped files that were gone when they were read, because somebody cut a file short,
 * between main's handler and a command that goes on with zeros there: all others end. `n` only
 * grows. Atomic, since the handler runs in whichever thread was reading. */
typedef struct pnb__lost_pages {
    atomic_int is_expected, is_told;
    atomic_uint n;
} pnb__lost_pages;

/* Options every command takes. */
typedef struct pnb__common {
    bool help, json, quiet, batch_invariant;
    int64_t max_image_pixels;
    int64_t seed, threads;
    const char *device;
} pnb__common;

extern const pnb__option pnb__common_options[];
extern const size_t pnb__n_common_options;

/* Where Hugging Face's cache may be: values of the environment, any of them NULL. */
typedef struct pnb__hub {
    const char *hub_cache, *hf_home, *cache_home,
        *home; /* HF_HUB_CACHE HF_HOME XDG_CACHE_HOME HOME */
} pnb__hub;

typedef struct pnb__app {
    pnb__common common;
    FILE *in;
    FILE *out;                                /* results */
    FILE *log;                                /* everything else */
    bool is_tty;                              /* `log` is a terminal: the progress bar may move */
    bool colour;                              /* escape codes are welcome on `log` */
    bool usage;                               /* the error is a wrong command line: exit 2 */
    size_t n_skipped;                         /* inputs left out: exit 3 */
    const volatile sig_atomic_t *interrupted; /* set by the signal handler; may be NULL */
    pnb__hangup *hangup;                      /* the same */
    pnb__lost_pages *lost;                    /* the same */
    pnb__hub hub;
    const char *models; /* of the program */
    const char *cpu;    /* of the program */
    pnb_ctx *ctx;
    pnb_launch launch;
    pnb_peers *ranks;        /* processes that run the command together; NULL: this one */
    bool is_agreed;          /* all of them know how it ended */
    bool is_silent;          /* another one speaks */
    bool is_lost;            /* rank 0 was not found */
    const pnb__opt_set *own; /* the command's options, and which of them were typed */
    FILE *nowhere;           /* `out` of a silent one */
    FILE *told;              /* `in` of all, where rank 0 told the others what it read */
    pnb__buf input;          /* what `told` reads */
    pnb_error err;
    /* Weights and precision of the embeddings that came first; and whether others were named */
    char first_weights[65], first_precision[16];
    bool has_mixed_precision;
    char **unknown_sets; /* embedding sets in use whose model or modality is unknown */
    size_t n_unknown_sets;
} pnb__app;

/* A word of an older release that goes on working, not shown in help. */
typedef struct pnb__retired {
    const pnb__command *command;
    const char *now; /* what to type instead, as a message says it */
    const char *as;  /* the command that the word's section of a config file speaks for; or NULL */
} pnb__retired;

/* A library that the program can be built without. */
typedef struct pnb__part {
    const char *library;
    const char *(*version)(void); /* NULL where it is missing, "" where nobody tells it */
    const char *gives, *package;  /* what is not there without it, and what to install */
} pnb__part;

/* What the process hands to the program; nothing below reads environment or globals. */
typedef struct pnb__program {
    const char *name; /* "penumbra" */
    const char *summary;
    const pnb__command *const *commands; /* NULL-terminated */
    const pnb__retired *retired;         /* ends with a NULL command; NULL: none */
    const pnb__part *parts;              /* ends with a NULL library; NULL: none */
    FILE *in, *out, *log;
    bool is_tty, colour;
    pnb__hub hub;
    const char *models; /* folder of the models that come with the program; NULL: not known */
    const char *const *environment; /* "NAME=value", NULL-terminated; NULL: no options from it */
    const char *cpu; /* PENUMBRA_CPU: a word of pnb_isa, the most that is used; NULL: all */
    const volatile sig_atomic_t *interrupted;
    pnb__hangup *hangup;
    pnb__lost_pages *lost;
} pnb__program;

/* Records a wrong use of the command line (exit 2). Returns ARG. */
pnb_status pnb__usage(pnb__app *app, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Whether an option of the command stood on its command line, as a word of its own: no recipe,
 * config file or environment counts. */
bool pnb__is_typed(const pnb__app *app, const char *option);

/* One line to the log, unless --quiet. Warnings appear in any case. */
void pnb__say(const pnb__app *app, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void pnb__warn(const pnb__app *app, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Names an input that was left out and counts it; the command goes on and exits with 3. */
void pnb__skipped(pnb__app *app, const char *what, const char *why);

/* For the library's cancel callbacks: true after Ctrl-C. `user` is the pnb__app. */
bool pnb__is_interrupted(void *user);
/* From now on a SIGHUP does not end the command; whether one came since the last call. */
void pnb__expect_hangup(pnb__app *app);
bool pnb__take_hangup(pnb__app *app);
/* From now on lost pages do not end the command, which looks for itself; NULL: nobody counts them.
 */
const atomic_uint *pnb__expect_lost_pages(pnb__app *app);

#endif
