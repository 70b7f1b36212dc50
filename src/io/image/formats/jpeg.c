/* JPEG by libjpeg-turbo with the settings Pillow uses: accurate integer IDCT, fancy upsampling, no
 * scaling. Grey stays grey, YCbCr becomes RGB, CMYK and YCCK become CMYK with Adobe's inversion
 * undone (Pillow always assumes it). As in Pillow a file that ends early is an error, while
 * recoverable damage inside the data is decoded as libjpeg sees fit.
 *
 * libjpeg reports errors by a callback that must not return: it jumps back to decode_jumped. */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

#include "io/image/formats/codec.h"

#define MAX_SCANS                                                                                  \
    500 /* a small file with very many scans of a large picture would run for hours                \
         */
#define ROWS_AT_ONCE 16

typedef struct jpeg_job {
    struct jpeg_decompress_struct cinfo;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    jmp_buf jump;
    pnb_status status;
    char message[JMSG_LENGTH_MAX];
    const unsigned char *bytes;
    size_t n_bytes;
    const pnb_image_opts *opts;
    pnb_image image;
    pnb_error error;
} jpeg_job;

static _Noreturn void fail_job(jpeg_job *job, pnb_status status)
{
    job->status = status;
    longjmp(job->jump, 1);
}

static _Noreturn void on_error(j_common_ptr cinfo)
{
    jpeg_job *job = cinfo->client_data;
    cinfo->err->format_message(cinfo, job->message);
    bool is_memory = cinfo->err->msg_code == JERR_OUT_OF_MEMORY;
    fail_job(job, is_memory ? PNB_NOMEM : PNB_FORMAT);
}

static void on_message(j_common_ptr cinfo, int level)
{
    (void)cinfo, (void)level; /* warnings: damage that libjpeg decodes around */
}

static void source_none(j_decompress_ptr cinfo)
{
    (void)cinfo;
}

static boolean source_fill(j_decompress_ptr cinfo)
{
    jpeg_job *job = cinfo->client_data;
    snprintf(job->message, sizeof job->message, "the data ends after %zu bytes: truncated",
             job->n_bytes);
    fail_job(job, PNB_FORMAT);
}

static void source_skip(j_decompress_ptr cinfo, long n)
{
    if (n <= 0)
        return;
    if ((unsigned long)n > cinfo->src->bytes_in_buffer)
        (void)source_fill(cinfo);
    cinfo->src->next_input_byte += n;
    cinfo->src->bytes_in_buffer -= (size_t)n;
}

static void on_progress(j_common_ptr cinfo)
{
    jpeg_job *job = cinfo->client_data;
    if (job->cinfo.input_scan_number > MAX_SCANS) {
        snprintf(job->message, sizeof job->message, "more than %d scans", MAX_SCANS);
        fail_job(job, PNB_LIMIT);
    }
}

static void start_job(jpeg_job *job)
{
    struct jpeg_decompress_struct *c = &job->cinfo;
    c->err = jpeg_std_error(&job->errors);
    job->errors.error_exit = on_error;
    job->errors.emit_message = on_message;
    c->client_data = job;
    jpeg_create_decompress(c);
    job->source = (struct jpeg_source_mgr){.next_input_byte = job->bytes,
                                           .bytes_in_buffer = job->n_bytes,
                                           .init_source = source_none,
                                           .fill_input_buffer = source_fill,
                                           .skip_input_data = source_skip,
                                           .resync_to_restart = jpeg_resync_to_restart,
                                           .term_source = source_none};
    c->src = &job->source;
    job->progress.progress_monitor = on_progress;
    c->progress = &job->progress;
}

/* Every 8x8 block of a component costs at least one bit of Huffman data (arithmetic coding can do
 * with less, an eighth is granted), so a large claim over few bytes is refused before memory is
 * taken for it. */
static void check_claim(jpeg_job *job)
{
    const struct jpeg_decompress_struct *c = &job->cinfo;
    if (pnb__image_check_size(c->image_width, c->image_height, job->opts, &job->error) != PNB_OK)
        fail_job(job, job->error.status);
    int64_t pixels = (int64_t)c->image_width * (int64_t)c->image_height;
    int64_t pixels_per_byte = c->arith_code ? 8 * 8 * 64 : 8 * 64;
    if (pixels / pixels_per_byte > (int64_t)job->n_bytes) {
        snprintf(job->message, sizeof job->message,
                 "the header claims %ux%u pixels but only %zu bytes follow", c->image_width,
                 c->image_height, job->n_bytes);
        fail_job(job, PNB_FORMAT);
    }
    /* with several scans libjpeg keeps all coefficients, 16 bits each */
    int64_t each = jpeg_has_multiple_scans(&job->cinfo) ? 3 : 1;
    if (pnb__image_admit(c->image_width, c->image_height, c->num_components * each, job->opts,
                         &job->error) != PNB_OK)
        fail_job(job, job->error.status);
}

static void create_image(jpeg_job *job)
{
    struct jpeg_decompress_struct *c = &job->cinfo;
    int channels = c->num_components;
    if (channels == 1)
        c->out_color_space = JCS_GRAYSCALE;
    else if (channels == 3)
        c->out_color_space = JCS_RGB;
    else if (channels == 4)
        c->out_color_space = JCS_CMYK;
    else {
        snprintf(job->message, sizeof job->message, "%d colour components: want 1, 3 or 4",
                 channels);
        fail_job(job, PNB_UNSUPPORTED);
    }
    c->dct_method = JDCT_ISLOW;
    c->do_fancy_upsampling = TRUE;
    if (pnb_image_create(&job->image, (int)c->image_width, (int)c->image_height, channels,
                         &job->error) != PNB_OK)
        fail_job(job, job->error.status);
    if (channels == 4)
        job->image.mode = PNB_IMAGE_CMYK;
}

static void read_rows(jpeg_job *job)
{
    struct jpeg_decompress_struct *c = &job->cinfo;
    size_t row_bytes = (size_t)job->image.width * (size_t)job->image.channels;
    JSAMPROW rows[ROWS_AT_ONCE];
    jpeg_start_decompress(c);
    while (c->output_scanline < c->output_height) {
        JDIMENSION left = c->output_height - c->output_scanline;
        JDIMENSION n = PNB_MIN(left, ROWS_AT_ONCE);
        for (JDIMENSION i = 0; i < n; i++)
            rows[i] = job->image.pixels + (size_t)(c->output_scanline + i) * row_bytes;
        jpeg_read_scanlines(c, rows, n);
    }
    jpeg_finish_decompress(c);
    if (job->image.mode == PNB_IMAGE_CMYK)
        for (size_t i = 0; i < row_bytes * (size_t)job->image.height; i++)
            job->image.pixels[i] = (unsigned char)(255 - job->image.pixels[i]);
}

static int find_orientation(const struct jpeg_decompress_struct *c)
{
    for (jpeg_saved_marker_ptr m = c->marker_list; m != NULL; m = m->next)
        if (m->marker == JPEG_APP0 + 1 && m->data_length > 6 && memcmp(m->data, "Exif\0", 6) == 0)
            return pnb__exif_orientation(m->data + 6, m->data_length - 6);
    return 1;
}

/* All that may jump. Nothing here is read after the jump except what lies in *job. */
static void decode_jumped(jpeg_job *job, int *orientation)
{
    start_job(job);
    if (job->opts->exif)
        jpeg_save_markers(&job->cinfo, JPEG_APP0 + 1, 0xFFFF);
    jpeg_read_header(&job->cinfo, TRUE);
    check_claim(job);
    *orientation = find_orientation(&job->cinfo);
    create_image(job);
    read_rows(job);
}

pnb_status pnb__jpeg_decode(pnb_image *out, const unsigned char *bytes, size_t n_bytes,
                            const pnb_image_opts *opts, int *orientation, pnb_error *err)
{
    *out = (pnb_image){0};
    jpeg_job *job = pnb__alloc_zero(1, sizeof *job);
    if (job == NULL)
        return pnb__fail_nomem(err, sizeof *job);
    job->bytes = bytes;
    job->n_bytes = n_bytes;
    job->opts = opts;
    if (setjmp(job->jump) == 0)
        decode_jumped(job, orientation);
    jpeg_destroy_decompress(&job->cinfo);
    pnb_status status = job->status;
    if (status == PNB_OK)
        *out = job->image;
    else
        pnb_image_free(&job->image);
    if (status != PNB_OK)
        pnb__fail(err, status, "JPEG: %s%s",
                  status == PNB_NOMEM && !job->error.text[0] ? "out of memory: " : "",
                  job->error.text[0] ? job->error.text : job->message);
    pnb__free(job);
    return status;
}
