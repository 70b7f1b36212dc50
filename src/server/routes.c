/* The table of routes, in the order of the list in routes.h.
 *
 * Finding one is a walk through all of them: there are few, and no request is so small that it
 * would be seen. */
#include "server/routes.h"

#include <string.h>

pnb_status pnb__server_check_model(const pnb__served *s, const json_t *body, pnb_error *err)
{
    const char *name = pnb__field_text(body, "model", s->server->name);
    if (strcmp(name, s->server->name) == 0)
        return PNB_OK;
    return pnb__fail(err, PNB_NOT_FOUND, "the model '%.80s' is not served here; '%s' is", name,
                     s->server->name);
}

/* Length of the part of a path that begins at `at`. */
static size_t part_at(const char *at)
{
    return strcspn(at, "/");
}

bool pnb__route_takes(const pnb__route *route, const char *path)
{
    const char *wanted = route->path;
    for (;;) {
        size_t n = part_at(path), n_wanted = part_at(wanted);
        bool is_any = wanted[0] == '{' && n > 0;
        if (!is_any && (n != n_wanted || memcmp(path, wanted, n) != 0))
            return false;
        path += n;
        wanted += n_wanted;
        if (*path != *wanted)
            return false;
        if (*path == '\0')
            return true;
        path++;
        wanted++;
    }
}

bool pnb__route_word(const pnb__route *route, const char *path, const char *word, char *out,
                     size_t size)
{
    const char *wanted = route->path;
    size_t n_word = strlen(word);
    while (*wanted != '\0') {
        size_t n = part_at(path), n_wanted = part_at(wanted);
        if (n_wanted == n_word + 2 && wanted[0] == '{' && memcmp(wanted + 1, word, n_word) == 0) {
            snprintf(out, size, "%.*s", (int)PNB_MIN(n, size), path);
            return n < size;
        }
        path += n + (path[n] == '/');
        wanted += n_wanted + (wanted[n_wanted] == '/');
    }
    return false;
}

#define PNB__ROUTE_ADDRESS(name) &pnb__route_##name,
const pnb__route *const pnb__routes[] = {PNB__ROUTE_LIST(PNB__ROUTE_ADDRESS)};
#undef PNB__ROUTE_ADDRESS
const size_t pnb__n_routes = sizeof pnb__routes / sizeof *pnb__routes;
