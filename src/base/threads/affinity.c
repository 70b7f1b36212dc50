/* Affinity of threads.
 *
 * A process has none of its own: sched_setaffinity(0) is that of one thread, so all that
 * /proc/self/task lists are asked. One that ends meanwhile needs nothing, and one that starts
 * meanwhile has the set of its parent, which is asked too. */
#include "base/threads/affinity.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

bool pnb__affinity_get(cpu_set_t *out)
{
    return sched_getaffinity(0, sizeof *out, out) == 0;
}

cpu_set_t pnb__affinity_take_last(cpu_set_t *set, int n)
{
    cpu_set_t last;
    CPU_ZERO(&last);
    for (size_t i = CPU_SETSIZE; i-- > 0 && n > 0;)
        if (CPU_ISSET(i, set)) {
            CPU_CLR(i, set);
            CPU_SET(i, &last);
            n--;
        }
    return last;
}

static bool has_set(pid_t id, const cpu_set_t *set)
{
    cpu_set_t its;
    return sched_getaffinity(id, sizeof its, &its) == 0 ? CPU_EQUAL(&its, set) : errno == ESRCH;
}

static bool take_set(pid_t id, const cpu_set_t *set)
{
    return sched_setaffinity(id, sizeof *set, set) == 0 || errno == ESRCH;
}

static bool all_threads(bool (*ask)(pid_t, const cpu_set_t *), const cpu_set_t *set)
{
    DIR *tasks = opendir("/proc/self/task");
    bool is_true = tasks != NULL;
    for (struct dirent *task; is_true && (task = readdir(tasks)) != NULL;) {
        char *end;
        long id = strtol(task->d_name, &end, 10);
        if (*end == '\0')
            is_true = ask((pid_t)id, set);
    }
    if (tasks != NULL)
        closedir(tasks);
    return is_true;
}

bool pnb__affinity_is_shared(const cpu_set_t *set)
{
    return all_threads(has_set, set);
}

bool pnb__affinity_keep_process(const cpu_set_t *set)
{
    return all_threads(take_set, set);
}

bool pnb__affinity_leave(const cpu_set_t *taken)
{
    cpu_set_t before, both, others;
    if (!pnb__affinity_get(&before))
        return false;
    CPU_AND(&both, &before, taken);
    CPU_XOR(&others, &before, &both);
    if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0)
        return false;
    return sched_setaffinity(0, sizeof before, &before) == 0;
}
