/* JPEG writing by libjpeg-turbo: baseline, 4:2:0, the library's own tables at a quality, no
 * metadata. Its length alone says how much is in a picture, the plainest score that a learned
 * uncertainty has to be better than; its bytes are thumbnails.
 *
 * libjpeg reports errors by a callback that must not return: it jumps back to write_jpeg. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include <jerror.h>

#include "io/image/formats/codec.h"

typedef struct write_job {
    struct jpeg_compress_struct cinfo;
    struct jpeg_error_mgr errors;
    jmp_buf jump;
    char message[JMSG_LENGTH_MAX];
    bool is_memory;
    unsigned char *bytes; /* libjpeg's, of malloc */
    unsigned long n_bytes;
} write_job;

static _Noreturn void on_error(j_common_ptr cinfo)
{
    write_job *job = cinfo->client_data;
    cinfo->err->format_message(cinfo, job->message);
    job->is_memory = cinfo->err->msg_code == JERR_OUT_OF_MEMORY;
    longjmp(job->jump, 1);
}

static void on_message(j_common_ptr cinfo, int level)
{
    (void)cinfo, (void)level;
}

static void write_rows(write_job *job, const pnb_image *image, int quality)
{
    struct jpeg_compress_struct *c = &job->cinfo;
    size_t row_bytes = (size_t)image->width * 3;
    jpeg_create_compress(c);
    jpeg_mem_dest(c, &job->bytes, &job->n_bytes);
    c->image_width = (JDIMENSION)image->width;
    c->image_height = (JDIMENSION)image->height;
    c->input_components = 3;
    c->in_color_space = JCS_RGB;
    jpeg_set_defaults(c);
    jpeg_set_quality(c, quality, TRUE);
    jpeg_start_compress(c, TRUE);
    while (c->next_scanline < c->image_height) {
        JSAMPROW row = image->pixels + c->next_scanline * row_bytes;
        jpeg_write_scanlines(c, &row, 1);
    }
    jpeg_finish_compress(c);
}

/* The bytes appended to `out` (NULL: counted only). */
static pnb_status write_jpeg(const pnb_image *image, int quality, pnb__buf *out, size_t *n_bytes,
                             pnb_error *err)
{
    if (image->pixels == NULL || image->mode != PNB_IMAGE_PLAIN || image->channels != 3 ||
        image->width > JPEG_MAX_DIMENSION || image->height > JPEG_MAX_DIMENSION)
        return pnb__fail(err, PNB_ARG, "JPEG: the picture is empty, not RGB or wider than %ld",
                         (long)JPEG_MAX_DIMENSION);
    write_job *job = pnb__alloc_zero(1, sizeof *job);
    if (job == NULL)
        return pnb__fail_nomem(err, sizeof *job);
    pnb_status status = PNB_OK;
    job->cinfo.err = jpeg_std_error(&job->errors);
    job->errors.error_exit = on_error;
    job->errors.emit_message = on_message;
    job->cinfo.client_data = job;
    if (setjmp(job->jump) == 0) {
        write_rows(job, image, quality);
        *n_bytes = job->n_bytes;
        if (out != NULL)
            pnb__buf_append(out, job->bytes, job->n_bytes);
    } else {
        status = pnb__fail(err, job->is_memory ? PNB_NOMEM : PNB_ARG, "JPEG: %s%s",
                           job->is_memory ? "out of memory: " : "", job->message);
    }
    jpeg_destroy_compress(&job->cinfo);
    free(job->bytes);
    pnb__free(job);
    return status;
}

pnb_status pnb__jpeg_size(const pnb_image *image, int quality, size_t *n_bytes, pnb_error *err)
{
    return write_jpeg(image, quality, NULL, n_bytes, err);
}

pnb_status pnb__jpeg_encode(const pnb_image *image, int quality, pnb__buf *out, pnb_error *err)
{
    size_t n_bytes;
    pnb_status status = write_jpeg(image, quality, out, &n_bytes, err);
    return status == PNB_OK ? pnb__buf_check(out, err) : status;
}
