/* TensorBoard event files: a TFRecord of serialised Event messages each.
 *
 * Record (tensorflow/core/lib/io/record_writer.h):
 *   u64 length | u32 masked CRC32C of the length | bytes | u32 masked CRC32C of the bytes
 *   masked(c) = rotate_right(c, 15) + 0xa282ead8
 * Event (tensorflow/core/util/event.proto): 1 double wall_time, 2 int64 step, 3 string
 * file_version, 5 Summary, 7 SessionLog. Summary: 1 repeated Value {1 string tag, 2 float
 * simple_value}. SessionLog: 1 enum status, START = 1: the reader drops what earlier files of the
 * folder hold from this step on, which is what a resumed run wants. Numbers are little-endian. */
#include "train/run/tfevents.h"

#include <errno.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

/* Castagnoli's polynomial, reflected; bit by bit, since a line has a few hundred bytes. */
uint32_t pnb__crc32c(const void *data, size_t n)
{
    const unsigned char *p = data;
    uint32_t crc = 0xffffffffU;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (0x82f63b78U & (0U - (crc & 1U)));
    }
    return ~crc;
}

static void put_fixed(pnb__buf *b, uint64_t value, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++)
        pnb__buf_putc(b, (char)(value >> 8 * i & 0xff));
}

/* Protocol buffers' base-128 varint: 7 bits a byte, the lowest first, the top bit says "more". */
static void put_varint(pnb__buf *b, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        pnb__buf_putc(b, (char)((value & 0x7f) | 0x80));
    pnb__buf_putc(b, (char)value);
}

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

/* A field's key is its number and its wire type: (field << 3) | type. */
static void put_key(pnb__buf *b, unsigned field, enum wire wire)
{
    put_varint(b, field << 3 | (unsigned)wire);
}

/* Strings and messages inside messages alike: key, length, bytes. */
static void put_bytes(pnb__buf *b, unsigned field, const void *data, size_t n)
{
    put_key(b, field, WIRE_BYTES);
    put_varint(b, n);
    pnb__buf_append(b, data, n);
}

/* Rotated and moved away from itself, since a CRC of bytes that hold CRCs is weak (TFRecord). */
static uint32_t masked(const void *data, size_t n)
{
    uint32_t crc = pnb__crc32c(data, n);
    return (crc >> 15 | crc << 17) + 0xa282ead8U;
}

/* Writes one Event: wall time and step, then the bytes of `rest`, as a record. */
static pnb_status write_event(FILE *file, int64_t step, const pnb__buf *rest, pnb_error *err)
{
    struct timeval now;
    uint64_t bits;
    pnb__buf event = {0}, record = {0};
    gettimeofday(&now, NULL);
    double wall = (double)now.tv_sec + 1e-6 * (double)now.tv_usec;
    memcpy(&bits, &wall, sizeof bits);
    put_key(&event, 1, WIRE_64); /* a double is 8 bytes as they lie */
    put_fixed(&event, bits, 8);
    put_key(&event, 2, WIRE_VARINT);
    put_varint(&event, (uint64_t)step);
    pnb__buf_append(&event, rest->data, rest->size);
    put_fixed(&record, event.size, 8);
    if (!record.failed)
        put_fixed(&record, masked(record.data, 8), 4);
    if (!event.failed) {
        pnb__buf_append(&record, event.data, event.size);
        put_fixed(&record, masked(event.data, event.size), 4);
    }
    pnb_status status = PNB_OK;
    if (event.failed || record.failed || rest->failed)
        status = pnb__fail(err, PNB_NOMEM, "out of memory writing the event file");
    else if (fwrite(record.data, 1, record.size, file) != record.size || fflush(file) != 0)
        status = pnb__fail_errno(err, "writing", "the event file");
    pnb__buf_reset(&event);
    pnb__buf_reset(&record);
    return status;
}

/* The first record of a file names its version; without it TensorBoard reads nothing. */
static pnb_status write_start(FILE *file, int64_t first_step, pnb_error *err)
{
    static const char version[] = "brain.Event:2";
    static const char start[] = {8, 1}; /* SessionLog.status = START */
    pnb__buf rest = {0};
    put_bytes(&rest, 3, version, sizeof version - 1);
    pnb_status status = write_event(file, 0, &rest, err);
    rest.size = 0;
    put_bytes(&rest, 7, start, sizeof start);
    if (status == PNB_OK)
        status = write_event(file, first_step, &rest, err);
    pnb__buf_reset(&rest);
    return status;
}

/* The name TensorBoard looks for: "tfevents" in it; seconds, host, process and microseconds keep
 * two runs of one folder apart. */
pnb_status pnb__tfevents_open(FILE **out, const char *dir, int64_t first_step, pnb_error *err)
{
    char host[128] = "localhost";
    struct timeval now;
    gettimeofday(&now, NULL);
    *out = NULL;
    pnb_status status = pnb__make_dirs(dir, err);
    if (status != PNB_OK)
        return status;
    gethostname(host, sizeof host - 1);
    char *path = pnb__format("%s/events.out.tfevents.%lld.%s.%ld.%ld", dir, (long long)now.tv_sec,
                             host, (long)getpid(), (long)now.tv_usec);
    if (path == NULL)
        return pnb__fail_nomem(err, strlen(dir));
    *out = fopen(path, "wb");
    status =
        *out != NULL ? write_start(*out, first_step, err) : pnb__fail_errno(err, "opening", path);
    pnb__free(path);
    return status;
}

/* Event{wall_time, step, summary: [{tag, simple_value}, ...]}: all numbers of a step in one
 * record. */
pnb_status pnb__tfevents_scalars(FILE *file, int64_t step, const pnb__scalar *scalars, size_t n,
                                 pnb_error *err)
{
    pnb__buf rest = {0}, summary = {0}, value = {0};
    for (size_t i = 0; i < n; i++) {
        float x = (float)scalars[i].value;
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        value.size = 0;
        put_bytes(&value, 1, scalars[i].tag, strlen(scalars[i].tag));
        put_key(&value, 2, WIRE_32);
        put_fixed(&value, bits, 4);
        put_bytes(&summary, 1, value.data, value.size);
    }
    put_bytes(&rest, 5, summary.data, summary.size);
    rest.failed = rest.failed || summary.failed || value.failed;
    pnb_status status = write_event(file, step, &rest, err);
    pnb__buf_reset(&rest);
    pnb__buf_reset(&summary);
    pnb__buf_reset(&value);
    return status;
}
