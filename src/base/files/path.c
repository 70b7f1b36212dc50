/* Path names: joining, splitting, asking what is there, making directories.
 *
 * Paths are POSIX byte strings with '/' between parts; nothing here resolves links or "..". What
 * is inside files is file.c's business. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"

char *pnb__path_join(const char *dir, const char *name)
{
    if (name[0] == '/' || dir[0] == '\0')
        return pnb__strdup(name);
    const char *separator = pnb__ends_with(dir, "/") ? "" : "/";
    return pnb__format("%s%s%s", dir, separator, name);
}

const char *pnb__path_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

char *pnb__path_dir(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return pnb__strdup(".");
    while (slash > path && slash[-1] == '/')
        slash--;
    return slash == path ? pnb__strdup("/") : pnb__strndup(path, (size_t)(slash - path));
}

bool pnb__path_is_dir(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool pnb__path_is_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

/* False when the path is longer than any that can be opened. */
static bool join_into(char path[PATH_MAX], const char *dir, const char *name)
{
    bool is_whole = name[0] == '/' || dir[0] == '\0';
    int n = snprintf(path, PATH_MAX, "%s%s%s", is_whole ? "" : dir, is_whole ? "" : "/", name);
    return n >= 0 && n < PATH_MAX;
}

bool pnb__path_has_dir(const char *dir, const char *name)
{
    char path[PATH_MAX];
    return join_into(path, dir, name) && pnb__path_is_dir(path);
}

bool pnb__path_has_file(const char *dir, const char *name)
{
    char path[PATH_MAX];
    return join_into(path, dir, name) && pnb__path_is_file(path);
}

const char *pnb__path_special(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return NULL;
    return S_ISFIFO(info.st_mode)                           ? "a pipe"
           : S_ISSOCK(info.st_mode)                         ? "a socket"
           : S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode) ? "a device"
                                                            : NULL;
}

static pnb_status make_dir(const char *path, pnb_error *err)
{
    if (mkdir(path, 0777) == 0 || (errno == EEXIST && pnb__path_is_dir(path)))
        return PNB_OK;
    if (errno == EEXIST)
        return pnb__fail(err, PNB_EXISTS, "%s is not a directory; remove or rename it", path);
    return pnb__fail_errno(err, "cannot make directory", path);
}

pnb_status pnb__make_dirs(const char *path, pnb_error *err)
{
    if (path[0] == '\0')
        return pnb__fail(err, PNB_ARG, "the name of a directory to make is empty");
    char *parts = pnb__strdup(path);
    if (parts == NULL)
        return pnb__fail_nomem(err, strlen(path) + 1);
    pnb_status status = PNB_OK;
    for (char *slash = strchr(parts + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        PNB_TRY(make_dir(parts, err));
        *slash = '/';
    }
    PNB_TRY(make_dir(parts, err));
done:
    pnb__free(parts);
    return status;
}
