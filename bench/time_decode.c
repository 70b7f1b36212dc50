/* Times decode + resize + crop + normalise of one picture on one thread, for bench/decode.py.
 *
 *   time_decode PICTURE N SIZE OUT
 *
 * Prints the seconds of N repetitions as JSON and writes the result, (3, SIZE, SIZE) in f32, to
 * OUT, so that it can be compared with the peer's. What is timed starts from the file's bytes. */
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "penumbra/image.h"

static pnb_status prepare(const pnb_preprocess *pp, const char *bytes, size_t n_bytes, float *chw,
                          pnb_error *err)
{
    pnb_image image;
    pnb_image_opts opts = pnb_image_opts_default();
    opts.native = true;
    pnb_status status = pnb_image_decode(&image, bytes, n_bytes, &opts, err);
    if (status == PNB_OK)
        status = pnb_preprocess_apply(pp, &image, chw, err);
    pnb_image_free(&image);
    return status;
}

static pnb_status measure(const char *path, int n, int size, const char *out, pnb_error *err)
{
    pnb_preprocess pp = pnb_preprocess_default();
    char *bytes = NULL;
    size_t n_bytes = 0, n_values = 3 * (size_t)size * (size_t)size;
    float *chw = pnb__alloc_array(n_values, sizeof *chw);
    pnb_status status = chw != NULL ? PNB_OK : pnb__fail_nomem(err, n_values * sizeof *chw);
    pp.width = pp.height = size;
    pp.resize_first = true;
    if (status == PNB_OK)
        status = pnb__read_file(path, (size_t)1 << 30, &bytes, &n_bytes, err);
    for (int i = 0; status == PNB_OK && i < 10; i++)
        status = prepare(&pp, bytes, n_bytes, chw, err);
    double start_s = pnb__now_s();
    for (int i = 0; status == PNB_OK && i < n; i++)
        status = prepare(&pp, bytes, n_bytes, chw, err);
    double seconds = pnb__now_s() - start_s;
    if (status == PNB_OK)
        status = pnb__write_file(out, chw, n_values * sizeof *chw, err);
    if (status == PNB_OK)
        printf("{\"seconds\": %.9f, \"n\": %d}\n", seconds, n);
    pnb__free(bytes);
    pnb__free(chw);
    return status;
}

int main(int argc, char **argv)
{
    pnb_error err = PNB_ERROR_INIT;
    int n = argc == 5 ? atoi(argv[2]) : 0, size = argc == 5 ? atoi(argv[3]) : 0;
    if (n < 1 || size < 1 || size > 4096) {
        fprintf(stderr, "usage: time_decode PICTURE N SIZE OUT\n");
        return 2;
    }
    if (measure(argv[1], n, size, argv[4], &err) != PNB_OK) {
        fprintf(stderr, "time_decode: %s\n", err.text);
        return 1;
    }
    return 0;
}
