/* The smallest program on the library: create a context, ask what it resolved to, and see how an
 * error reads. Build it with the flags of `pkg-config --cflags --libs penumbra`. */
#include <penumbra/ctx.h>
#include <penumbra/error.h>
#include <stdio.h>

static void print_log(void *user, pnb_log_level level, const char *text)
{
    (void)user;
    fprintf(stderr, "log %d: %s\n", (int)level, text);
}

int main(void)
{
    printf("penumbra %s\n", pnb_version());

    pnb_ctx_opts opts = pnb_ctx_opts_default();
    opts.log = print_log;
    pnb_ctx *ctx = NULL;
    pnb_error err = PNB_ERROR_INIT;
    if (pnb_ctx_create(&ctx, &opts, &err) != PNB_OK) {
        fprintf(stderr, "%s: %s\n", pnb_status_name(err.status), err.text);
        return 1;
    }
    printf("threads %d\n", pnb_ctx_n_threads(ctx));
    pnb_ctx_free(ctx);

    /* The record says what was found and what was wanted; the status says which kind it is. */
    opts.n_threads = -1;
    pnb_ctx *refused = NULL;
    pnb_status status = pnb_ctx_create(&refused, &opts, &err);
    printf("%s (%s): %s\n", pnb_status_name(status), pnb_status_sentence(status), err.text);
    return status == PNB_ARG ? 0 : 1;
}
