/* How many processors this process may use.
 *
 * Affinity says on which processors threads may run, a control group's quota how much time on them
 * all together: a container of half a core sees all cores of its host, and threads beyond the quota
 * only make each other wait. Quotas of all groups up to the root hold; version 2 of the interface
 * has "QUOTA PERIOD" or "max PERIOD" in cpu.max, version 1 two files, with -1 for no quota. */
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

/* The first line of root + group + name, without the end of the line; false where there is none. */
static bool read_line(const char *root, const char *group, const char *name, char *line, int size)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s%s/%s", root, group, name);
    FILE *file = length > 0 && (size_t)length < sizeof path ? fopen(path, "re") : NULL;
    if (file == NULL)
        return false;
    bool is_read = fgets(line, size, file) != NULL;
    fclose(file);
    return is_read;
}

static int whole_processors(const char *quota, const char *period)
{
    char *end;
    double us = strtod(quota, &end);
    if (end == quota || us <= 0) /* "max", -1 */
        return INT_MAX;
    double of = strtod(period, &end);
    if (end == period || of <= 0 || us / of > 1e6)
        return INT_MAX;
    int whole = (int)(us / of);
    return PNB_MAX(1, whole + (whole * of < us));
}

static int quota_of_group(const char *root, const char *group, bool is_v2)
{
    char quota[64], period[64];
    if (is_v2) {
        if (!read_line(root, group, "cpu.max", quota, sizeof quota))
            return INT_MAX;
        const char *space = strchr(quota, ' ');
        return space == NULL ? INT_MAX : whole_processors(quota, space);
    }
    if (!read_line(root, group, "cpu.cfs_quota_us", quota, sizeof quota) ||
        !read_line(root, group, "cpu.cfs_period_us", period, sizeof period))
        return INT_MAX;
    return whole_processors(quota, period);
}

/* Of the group and those it lies in; inside a container the mounted root is its own group. */
static int quota_up(const char *root, char *group, bool is_v2)
{
    int least = INT_MAX;
    for (;;) {
        int own = quota_of_group(root, group, is_v2);
        least = PNB_MIN(least, own);
        char *slash = strrchr(group, '/');
        if (slash == NULL)
            return least;
        *slash = 0;
    }
}

static bool has_controller(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, length) == 0 && (at[length] == 0 || at[length] == ','))
            return true;
    }
    return false;
}

/* Lines are ID:CONTROLLERS:PATH, with no controllers in the line of version 2. */
int pnb__cgroup_processors(const char *groups, const char *root)
{
    FILE *file = fopen(groups, "re");
    char line[PATH_MAX], v1_root[PATH_MAX];
    int least = INT_MAX;
    if (file == NULL)
        return INT_MAX;
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':');
        char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (group == NULL)
            continue;
        *group++ = 0;
        controllers++;
        int own = INT_MAX;
        if (*controllers == 0)
            own = quota_up(root, group, true);
        else if (has_controller(controllers, "cpu") &&
                 (size_t)snprintf(v1_root, sizeof v1_root, "%s/cpu", root) < sizeof v1_root)
            own = quota_up(v1_root, group, false);
        least = PNB_MIN(least, own);
    }
    fclose(file);
    return least;
}

static int allowed_processors(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN); /* more than a cpu_set_t holds */
    return online > 0 ? (int)PNB_MIN(online, (long)INT_MAX) : 1;
}

int pnb__n_processors(void)
{
    int quota = pnb__cgroup_processors("/proc/self/cgroup", "/sys/fs/cgroup");
    return PNB_MAX(1, PNB_MIN(allowed_processors(), quota));
}
