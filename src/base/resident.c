/* Memory of this process: VmRSS and VmHWM of /proc/self/status, in kB there (proc(5)).
 *
 * getrusage knows a peak too, but it passes through exec: what a large launcher had before would
 * count. */
#include "base/resident.h"

#include <stdio.h>
#include <string.h>

/* "VmHWM:     1234 kB" */
static void take_line(const char *line, const char *name, size_t *out)
{
    unsigned long kb = 0;
    size_t n = strlen(name);
    if (strncmp(line, name, n) == 0 && sscanf(line + n, " %lu kB", &kb) == 1)
        *out = (size_t)kb * 1024;
}

bool pnb__resident_bytes(pnb__resident *out)
{
    char line[256];
    FILE *f = fopen("/proc/self/status", "re");
    *out = (pnb__resident){0};
    if (f == NULL)
        return false;
    while (fgets(line, sizeof line, f) != NULL) {
        take_line(line, "VmRSS:", &out->now);
        take_line(line, "VmHWM:", &out->peak);
    }
    fclose(f);
    return out->now > 0 && out->peak > 0;
}
