/* Emoji and keywords that the `emoji` set leaves out unless asked for: a demonstration should not
 * teach, or show to whoever runs it, an insult or a word that sorts people by faith or descent.
 * Short on purpose, and listed in docs/data.md#emoji: whole subgroups of religious symbols and
 * buildings, single emoji by their first code point, and keywords that hold one of the words. */
#include <ctype.h>
#include <string.h>

#include "data/synth/emoji.h"

static const char *const subgroups[] = {"religion", "place religious"};

static const uint32_t first_points[] = {
    0x1f595, /* middle finger */
    0x1f92c, /* face with symbols on mouth: swearing */
    0x1f4a9, /* pile of poo */
    0x1f9d5, /* woman with headscarf */
    0x1f473, /* person wearing turban */
    0x1f4ff, /* prayer beads */
};

static const char *const words[] = {
    "jew",      "jewish", "christian", "muslim", "islam",    "hindu",  "hinduism", "buddhist",
    "buddhism", "tao",    "taoist",    "sikh",   "religion", "turban", "hijab",    "headscarf",
    "mantilla", "tichel", "swearing",  "poo",    "poop",     "dung",   "gypsy",    "eskimo",
};

bool pnb__emoji_is_sensitive(const pnb__emoji *e)
{
    for (size_t i = 0; i < PNB_COUNT(subgroups); i++)
        if (e->subgroup != NULL && strcmp(e->subgroup, subgroups[i]) == 0)
            return true;
    for (size_t i = 0; i < PNB_COUNT(first_points); i++)
        if (e->n_points > 0 && e->points[0] == first_points[i])
            return true;
    return false;
}

static bool is_listed(const char *word, size_t n)
{
    for (size_t i = 0; i < PNB_COUNT(words); i++) {
        size_t k = 0;
        while (k < n && words[i][k] == tolower((unsigned char)word[k]))
            k++;
        if (k == n && words[i][k] == '\0')
            return true;
    }
    return false;
}

bool pnb__emoji_is_sensitive_word(const char *text, size_t n)
{
    for (size_t at = 0; at < n;) {
        size_t end = at;
        while (end < n && isalpha((unsigned char)text[end]))
            end++;
        if (end > at && is_listed(text + at, end - at))
            return true;
        at = end + 1;
    }
    return false;
}
