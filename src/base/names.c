/* Names of choices: looking one up by its place, and its place by the name.
 *
 * Lists are short and asked once an option or a result, so walking the text beats a table. A place
 * is written as the bytes of an unsigned: C leaves an enum's type to the compiler, and the ABIs we
 * build for all take one of an int's size. */
#include "base/names.h"

#include <string.h>

_Static_assert(sizeof(pnb_status) == sizeof(unsigned), "an enum has the size of an int");

const char *pnb__name_at(const char *names, unsigned place, const char *otherwise)
{
    for (; *names != '\0' && place > 0; place--)
        names += strlen(names) + 1;
    return *names != '\0' ? names : otherwise;
}

pnb_status pnb__name_choose(void *out, const char *what, const char *names, const char *name,
                            pnb_error *err)
{
    char known[sizeof(err->text)] = "";
    size_t used = 0;
    for (unsigned place = 0; *names != '\0'; names += strlen(names) + 1, place++) {
        if (strcmp(name, names) == 0) {
            memcpy(out, &place, sizeof place);
            return PNB_OK;
        }
        snprintf(known + used, sizeof known - used, "%s%s", place > 0 ? ", " : "", names);
        used = strlen(known);
    }
    return pnb__fail(err, PNB_NOT_FOUND, "%s '%.100s' is unknown; known are %s", what, name, known);
}
