/* Emoji as pictures of a mixed collection: words and glyphs are those of `data emoji`
 * (src/data/synth), the largest drawing the font has, group, subgroup, keywords and name as the
 * four levels. */
#include <string.h>

#include "base/grow.h"
#include "data/collections/collection.h"
#include "data/synth/emoji.h"

static pnb_status add_emoji(pnb__collection *c, const pnb__emoji *e, pnb_error *err)
{
    pnb__collected item = {.style = "emoji"};
    pnb_status status;
    item.key = pnb__keep_format(c, "emoji-%s", e->key);
    item.group = pnb__keep_text(c, e->group, strlen(e->group));
    item.subgroup = pnb__keep_text(c, e->subgroup, strlen(e->subgroup));
    item.name = pnb__keep_text(c, e->name, strlen(e->name));
    item.file = item.key;
    if (!item.key || !item.group || !item.subgroup || !item.name)
        return pnb__fail_nomem(err, 64);
    PNB_TRY(pnb__collected_take(&item, &e->image, c->opts->size, err));
    PNB_TRY(pnb__text_add(c, &item, e->group, 0, false, err));
    PNB_TRY(pnb__text_add(c, &item, e->subgroup, 1, false, err));
    for (int k = 0; k < e->n_words; k++)
        PNB_TRY(pnb__text_add(c, &item, e->words[k], 2, false, err));
    PNB_TRY(pnb__text_add(c, &item, e->name, 3, false, err));
    PNB_TRY(PNB_PUSH(c->items, c->n, err, item));
    return PNB_OK;
done:
    pnb__collected_reset(&item);
    return status;
}

pnb_status pnb__emoji_collect(pnb__collection *c, pnb_error *err)
{
    const pnb_emoji_opts *o = &c->opts->emoji;
    pnb__emoji_list list = {.sensitive = c->opts->sensitive};
    pnb_status status;
    PNB_TRY(pnb__emoji_read(&list, o->emoji_test != NULL ? o->emoji_test : PNB__EMOJI_LIST, false,
                            err));
    PNB_TRY(pnb__emoji_add_words(&list, o->cldr_common != NULL ? o->cldr_common : PNB__EMOJI_CLDR,
                                 err));
    PNB_TRY(pnb__emoji_render(&list, o->font != NULL ? o->font : PNB__EMOJI_FONT, err));
    c->stats->n_found += list.n;
    for (size_t i = 0; i < list.n; i++)
        PNB_TRY(add_emoji(c, &list.items[i], err));
done:
    pnb__emoji_free(&list);
    return status;
}
