/* What collections leave out unless asked for, by a word in the path, the title or a keyword: the
 * words of emoji_sensitive.c (faiths, descents, insults), nakedness and what is sold by it, signs
 * of hatred, drugs, and means of killing oneself or others in the hand. Short on purpose, and
 * listed in docs/data.md#clipart. */
#include <string.h>

#include "data/collections/collection.h"
#include "data/synth/emoji.h"

static const char *const words[] = {
    "christianity", "jesus",     "creation", "crucifix",  "nude",     "naked",     "stripper",
    "sexy",         "erotic",    "sex",      "pantyhose", "lingerie", "bikini",    "nazi",
    "swastika",     "hitler",    "hanukkah", "dreidel",   "cannabis", "marijuana", "drugs",
    "suicide",      "hanging",   "weapons",  "weapon",    "gun",      "pistol",    "rifle",
    "blood",        "cigarette", "dead",
};

static bool is_listed(const char *word, size_t n)
{
    for (size_t i = 0; i < PNB_COUNT(words); i++) {
        size_t k = 0;
        while (k < n && words[i][k] != '\0' && words[i][k] == (word[k] | 0x20))
            k++;
        if (k == n && words[i][k] == '\0')
            return true;
    }
    return false;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool pnb__is_sensitive_text(const char *text)
{
    if (text == NULL)
        return false;
    if (pnb__emoji_is_sensitive_word(text, strlen(text)))
        return true;
    for (size_t at = 0; text[at];) {
        size_t n = 0;
        while (is_letter(text[at + n]))
            n++;
        if (n > 0 && is_listed(text + at, n))
            return true;
        at += n + (text[at + n] != '\0');
    }
    return false;
}
