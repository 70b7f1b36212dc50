/* A model folder and files to an embedding set:
 *     encode MODEL OUT.safetensors images PICTURE...      or      encode MODEL OUT.safetensors
 * texts FILE... A run that was stopped continues when the same words are given again. */
#include <penumbra/ctx.h>
#include <penumbra/encode.h>
#include <stdio.h>
#include <string.h>

static bool show(void *user, size_t done, size_t total)
{
    (void)user;
    fprintf(stderr, "\r%zu of %zu", done, total);
    return true; /* false would stop the job and keep what is done */
}

static void name_skipped(void *user, const char *what, const char *why)
{
    (void)user;
    fprintf(stderr, "skipped: %s: %s\n", what, why);
}

int main(int argc, char **argv)
{
    pnb_error err = PNB_ERROR_INIT;
    pnb_ctx *ctx = NULL;
    pnb_encoder *encoder = NULL;
    pnb_encode_result result = {0};
    printf("penumbra %s\n", pnb_version());
    if (argc < 5 || (strcmp(argv[3], "images") != 0 && strcmp(argv[3], "texts") != 0)) {
        fprintf(stderr, "usage: encode MODEL OUT.safetensors images|texts FILE...\n");
        return argc == 1 ? 0 : 2;
    }
    pnb_encode_side side = argv[3][0] == 'i' ? PNB_ENCODE_IMAGES : PNB_ENCODE_TEXTS;
    const pnb_encoder_opts parts = {.sides = (int)side};
    const pnb_encode_file file = {.out = argv[2], .save_every = 4096, .maker = "encode.c"};
    pnb_encode_opts opts = pnb_encode_opts_default();
    opts.watch.step = show;
    opts.skipped = name_skipped;

    pnb_status status = pnb_ctx_create(&ctx, NULL, &err);
    if (status == PNB_OK)
        status = pnb_encoder_open(&encoder, ctx, argv[1], &parts, &err);
    if (status == PNB_OK)
        status = pnb_encode_to_file(encoder, side, (const char *const *)(argv + 4),
                                    (size_t)argc - 4, &opts, &file, &result, &err);
    if (status == PNB_OK)
        printf("\n%zu rows of %zu numbers in %s, %zu inputs skipped\n", result.n_rows,
               pnb_encoder_model_info(encoder)->embed_dim, argv[2], result.n_skipped);
    else
        fprintf(stderr, "%s: %s\n", pnb_status_name(status), err.text);
    pnb_encoder_free(encoder);
    pnb_ctx_free(ctx);
    return status == PNB_OK ? 0 : 1;
}
