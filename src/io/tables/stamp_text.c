/* Stamps' texts, by lines.
 *
 * What has no "=" behind a language's name, or nothing behind it, is passed over, as Tux Paint
 * does; so is a line that is not UTF-8, but for the English one. */
#include "io/tables/stamp_text.h"

#include <ctype.h>
#include <string.h>

#include "base/grow.h"

static const char ENDING[] = ".utf8=";

void pnb__stamp_text_free(pnb__stamp_text *text)
{
    pnb__free(text->lines);
    *text = (pnb__stamp_text){0};
}

const char *pnb__stamp_text_in(const pnb__stamp_text *text, const char *language)
{
    for (size_t i = 0; i < text->n; i++)
        if (!strcmp(text->lines[i].language, language))
            return text->lines[i].text;
    return NULL;
}

/* Cut to what stands between blanks, in place. */
static char *trim(char *line)
{
    size_t n;
    char *text = line + (pnb__trimmed(line, strlen(line), &n) - line);
    text[n] = '\0';
    return text;
}

static bool is_language(const char *name)
{
    size_t n = 0;
    while (isalnum((unsigned char)name[n]) || name[n] == '_' || name[n] == '@')
        n++;
    return n >= 2 && n <= 16 && name[n] == '\0';
}

static pnb_status add_line(pnb__stamp_text *out, char *line, pnb_error *err)
{
    char *name = trim(line), *ending = strstr(name, ENDING);
    if (ending == NULL)
        return PNB_OK;
    char *text = trim(ending + sizeof ENDING - 1);
    *ending = '\0';
    if (!is_language(name) || text[0] == '\0' || !pnb__utf8_valid(text, strlen(text)) ||
        pnb__stamp_text_in(out, name) != NULL)
        return PNB_OK;
    if (out->n == PNB__MAX_STAMP_LANGUAGES)
        return pnb__fail(err, PNB_LIMIT, "more than %d languages", PNB__MAX_STAMP_LANGUAGES);
    return PNB_PUSH(out->lines, out->n, err, (pnb__stamp_line){name, text});
}

pnb_status pnb__stamp_text_parse(pnb__stamp_text *out, char *text, size_t n, const char *path,
                                 pnb_error *err)
{
    pnb__line_reader lines = {.at = text, .end = text + n, .path = path};
    char *line = NULL;
    pnb_status status;
    *out = (pnb__stamp_text){0};
    PNB_TRY(pnb__line_next(&lines, &line, err));
    line = line != NULL ? trim(line) : NULL;
    if (line == NULL || line[0] == '\0' || strstr(line, ENDING) != NULL ||
        !pnb__utf8_valid(line, strlen(line)))
        PNB_TRY(pnb__fail(err, PNB_FORMAT, "%s: the first line is no sentence in English", path));
    PNB_TRY(PNB_PUSH(out->lines, out->n, err, (pnb__stamp_line){"en", line}));
    for (;;) {
        PNB_TRY(pnb__line_next(&lines, &line, err));
        if (line == NULL)
            break;
        PNB_TRY(add_line(out, line, err));
    }
done:
    if (status != PNB_OK)
        pnb__stamp_text_free(out);
    return status;
}
