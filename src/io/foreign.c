/* Tells files that came instead of others: what a clone without Git LFS leaves, the page that a
 * server sent for a file, a table or an archive where text is wanted. Only the first bytes are
 * looked at; formats are told by the magic numbers of their own specifications. */
#include "io/foreign.h"

#include <string.h>
#include <strings.h>

enum { LOOKED_AT = 64 << 10 };

typedef struct magic {
    const char *bytes;
    size_t n, at;
    const char *what;
} magic;

#define MAGIC(bytes, at, what)                                                                     \
    {                                                                                              \
        bytes, sizeof(bytes) - 1, at, what                                                         \
    }

static const magic magics[] = {
    MAGIC("PAR1", 0, "a Parquet table, which is read by a name that ends in .parquet"),
    MAGIC("ARROW1", 0, "an Arrow table, which is not read; write it as csv or jsonl first"),
    MAGIC("\x1F\x8B", 0, "gzip-compressed; unpack it first (gunzip)"),
    MAGIC("\x28\xB5\x2F\xFD", 0, "zstd-compressed; unpack it first (unzstd)"),
    MAGIC("\xFD"
          "7zXZ",
          0, "xz-compressed; unpack it first (unxz)"),
    MAGIC("BZh", 0, "bzip2-compressed; unpack it first (bunzip2)"),
    MAGIC("PK\x03\x04", 0, "a zip archive (or a PyTorch checkpoint)"),
    MAGIC("ustar", 257, "a tar archive; its name must end in .tar to be read as shards"),
    MAGIC("SQLite format 3", 0, "an SQLite database; write the column of captions as csv first"),
    MAGIC("\x89PNG", 0, "a PNG picture; pictures go to the option for pictures"),
    MAGIC("\xFF\xD8\xFF", 0, "a JPEG picture; pictures go to the option for pictures"),
    MAGIC("GIF8", 0, "a GIF picture; pictures go to the option for pictures"),
    MAGIC("RIFF", 0, "a WebP picture; pictures go to the option for pictures"),
    MAGIC("%PDF-", 0, "a PDF document"),
    MAGIC("\x93NUMPY", 0, "a NumPy array, not captions; embedding sets go to the option for sets"),
    MAGIC("\xFF\xFE", 0, "UTF-16 text; convert it (iconv -f UTF-16 -t UTF-8)"),
    MAGIC("\xFE\xFF", 0, "UTF-16 text; convert it (iconv -f UTF-16 -t UTF-8)"),
};

/* 8 bytes of length, then a JSON header; a text file has no zero bytes there. */
static bool is_safetensors(const unsigned char *bytes, size_t n)
{
    return n > 9 && bytes[8] == '{' && bytes[6] == 0 && bytes[7] == 0 && bytes[5] == 0;
}

static bool begins(const char *text, size_t n, const char *word)
{
    return n >= strlen(word) && strncasecmp(text, word, strlen(word)) == 0;
}

const char *pnb__stand_in(const void *bytes, size_t n)
{
    const char *text = bytes;
    if (begins(text, n, "version https://git-lfs.github.com/"))
        return "a Git LFS pointer, not the file itself; fetch it with 'git lfs pull' in its "
               "repository (git-lfs must be installed), or download the file by itself";
    n = PNB_MIN(n, (size_t)LOOKED_AT);
    while (n > 0 && (*text == ' ' || *text == '\n' || *text == '\r' || *text == '\t' ||
                     (unsigned char)*text == 0xEF || (unsigned char)*text == 0xBB ||
                     (unsigned char)*text == 0xBF)) {
        text++;
        n--;
    }
    if (begins(text, n, "<!doctype html") || begins(text, n, "<html"))
        return "a web page (HTML), not the file itself; a server sent an error, a log-in or a "
               "preview page instead: download the file again by its direct link";
    return NULL;
}

const char *pnb__foreign(const void *bytes, size_t n)
{
    for (size_t i = 0; i < PNB_COUNT(magics); i++)
        if (n >= magics[i].at + magics[i].n &&
            memcmp((const char *)bytes + magics[i].at, magics[i].bytes, magics[i].n) == 0)
            return magics[i].what;
    if (is_safetensors(bytes, n))
        return "a safetensors file, not captions; embedding sets go to the option for sets";
    return pnb__stand_in(bytes, n);
}

pnb_status pnb__refuse_stand_in(const char *where, const void *bytes, size_t n, pnb_error *err)
{
    const char *what = pnb__stand_in(bytes, n);
    return what == NULL ? PNB_OK : pnb__fail(err, PNB_FORMAT, "%s: this is %s", where, what);
}
