/* The text of --version.
 *
 * Parts that a build may lack say themselves what they are made with and
 * what they lack; a new one is a row here. */
#include "program/version.h"

#include "penumbra/ctx.h"
#include "penumbra/image.h"
#include "penumbra/store.h"

typedef struct part {
    const char *name;
    const char *(*has)(void);
    const char *(*lacks)(void); /* "": nothing */
} part;

static const part parts[] = {{"pictures", pnb_image_formats, pnb_image_formats_missing},
                             {"collections", pnb_store_kinds, pnb_store_kinds_missing}};

static void show_part(FILE *out, const part *p)
{
    const char *has = p->has(), *lacks = p->lacks();
    fprintf(out, "%s: %s\n", p->name, has[0] != '\0' ? has : "none");
    if (lacks[0] != '\0')
        fprintf(out, "%s missing: %s\n", p->name, lacks);
}

void pnb__show_version(FILE *out, const char *name, bool is_verbose)
{
    const char *missing = pnb_image_formats_missing();
    fprintf(out, "%s %s (pictures: %s%s%s)\n", name, pnb_version(), pnb_image_formats(),
            missing[0] != '\0' ? "; not read: " : "", missing);
    for (size_t i = 0; is_verbose && i < sizeof parts / sizeof *parts; i++)
        show_part(out, &parts[i]);
}
