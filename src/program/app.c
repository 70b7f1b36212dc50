/* What every command has at hand: the options all of them take, and how to speak to the person who
 * waits. Results go to `out`, every other word to `log`, so that a pipe receives data only. The
 * streams, the terminal's abilities and the interrupt flag come from main; nothing is global. */
#include "program/app.h"

#include <stdarg.h>
#include <string.h>

#include "base/base.h"

#define AT(field) PNB__FIELD(pnb__common, field)

const pnb__option pnb__common_options[] = {
    PNB__ROW_FLAG("help", AT(help), "Show this text and exit", .group = "Common options",
                  .letter = 'h'),
    PNB__ROW_FLAG("json", AT(json), "Print the result as one JSON object"),
    PNB__ROW_FLAG("quiet", AT(quiet), "No progress and no notes; warnings and errors stay",
                  .letter = 'q'),
    PNB__ROW_INT("seed", AT(seed), "N", "Number behind every random choice", PNB__RANGE(0, 9e15),
                 .fallback = "0"),
    PNB__ROW_INT("threads", AT(threads), "N",
                 "Threads to compute with; 0 is every core this process may use",
                 PNB__RANGE(0, 4096), .fallback = "0", .letter = 't'),
    PNB__ROW_TEXT(
        "device", AT(device), "NAME",
        "What computes: cpu is the fastest code of this processor, ref the plain C oracle, "
        "cuda or cuda:1 an NVIDIA GPU (networks, and searches by inner products)",
        .fallback = "cpu"),
    PNB__ROW_FLAG("batch-invariant", AT(batch_invariant),
                  "Embeddings with the same bits in batches of every size (always so with AVX2)"),
    PNB__ROW_INT(
        "max-image-pixels", AT(max_image_pixels), "N",
        "Refuse pictures of more pixels, from the header; all threads together decode no more "
        "than 4 bytes times N at once, others wait. The default is where Pillow refuses",
        PNB__RANGE(1, 1 << 28), .fallback = "178956970"),
};
const size_t pnb__n_common_options = PNB_COUNT(pnb__common_options);

bool pnb__is_typed(const pnb__app *app, const char *option)
{
    const pnb__opt_set *own = app->own;
    for (size_t i = 0; own != NULL && own->typed != NULL && i < own->n; i++)
        if (own->typed[i] && strcmp(own->rows[i].name, option) == 0)
            return true;
    return false;
}

pnb_status pnb__usage(pnb__app *app, const char *fmt, ...)
{
    char text[sizeof app->err.text];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    app->usage = true;
    return pnb__fail(&app->err, PNB_ARG, "%s", text);
}

static void log_line(const pnb__app *app, const char *tag, const char *tint, const char *text)
{
    /* A progress bar may stand on the line: return to its start and clear it first. */
    fprintf(app->log, "%s%s%s%s%s\n", app->is_tty ? "\r\033[K" : "", app->colour ? tint : "", tag,
            app->colour && tint[0] != '\0' ? "\033[0m" : "", text);
}

void pnb__say(const pnb__app *app, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    if (app->common.quiet)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    log_line(app, "", "", text);
}

void pnb__warn(const pnb__app *app, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    if (app->is_silent)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    log_line(app, "warning: ", "\033[33m", text);
}

/* A reason often begins with the file that `what` ends with: it is said once. */
static const char *without_name(const char *what, const char *why)
{
    for (const char *name = what; name != NULL; name = strstr(name, ": ")) {
        name += name == what ? 0 : 2;
        size_t n = strlen(name);
        if (n > 0 && strncmp(why, name, n) == 0 && strncmp(why + n, ": ", 2) == 0)
            return why + n + 2;
    }
    return why;
}

void pnb__skipped(pnb__app *app, const char *what, const char *why)
{
    app->n_skipped++;
    if (app->is_silent)
        return;
    why = without_name(what, why);
    fprintf(app->log, "%sskipped: %s: %s\n", app->is_tty ? "\r\033[K" : "", what, why);
}

void pnb__expect_hangup(pnb__app *app)
{
    if (app->hangup != NULL)
        app->hangup->is_expected = 1;
}

bool pnb__take_hangup(pnb__app *app)
{
    if (app->hangup == NULL || app->hangup->came == 0)
        return false;
    app->hangup->came = 0;
    return true;
}

const atomic_uint *pnb__expect_lost_pages(pnb__app *app)
{
    if (app->lost == NULL)
        return NULL;
    atomic_store(&app->lost->is_expected, 1);
    atomic_store(&app->lost->is_told, 0);
    return &app->lost->n;
}

bool pnb__is_interrupted(void *user)
{
    const pnb__app *app = user;
    return app->interrupted != NULL && *app->interrupted != 0;
}
