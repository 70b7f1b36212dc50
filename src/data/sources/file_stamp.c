/* Stamps of files, for jobs that are continued later.
 *
 * Name, size, time of writing and time of change (which copying a time stamp does not fake), inode.
 */
#include "data/sources/file_stamp.h"

#include <string.h>
#include <sys/stat.h>

#include "base/base.h"

uint64_t pnb__file_stamp(const char *path)
{
    struct stat info;
    int64_t values[6] = {-1, 0, 0, 0, 0, 0}; /* not there: a stamp of its own */
    if (stat(path, &info) == 0) {
        values[0] = (int64_t)info.st_size;
        values[1] = (int64_t)info.st_mtim.tv_sec;
        values[2] = (int64_t)info.st_mtim.tv_nsec;
        values[3] = (int64_t)info.st_ctim.tv_sec;
        values[4] = (int64_t)info.st_ctim.tv_nsec;
        values[5] = (int64_t)info.st_ino;
    }
    return pnb__hash_bytes(values, sizeof values, pnb__hash_bytes(path, strlen(path), 0));
}
