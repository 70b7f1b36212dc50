/* Ends of commands: their results printed or saved, with the sets whose origin is unknown.
 *
 * Which sets these are only the program knows: loading noted them, and a result that rests on them
 * says so once, however it leaves. */
#include "program/result_end.h"

#include "program/app.h"

static void put_unknown(pnb__result *r, const pnb__app *app)
{
    pnb__buf names = {0};
    if (app->n_unknown_sets == 0 || pnb__result_get(r, "unknown_provenance") != NULL)
        return;
    for (size_t i = 0; i < app->n_unknown_sets; i++)
        pnb__buf_printf(&names, "%s%s", i > 0 ? ", " : "", app->unknown_sets[i]);
    pnb__result_words(r, "unknown_provenance", app->unknown_sets, app->n_unknown_sets);
    pnb__result_heading(r, "unknown model or modality; that they may be compared is your word");
    pnb__result_note(r, names.failed ? NULL : names.data);
    pnb__buf_reset(&names);
}

pnb_status pnb__result_finish(pnb__result *r, struct pnb__app *app, pnb_status status)
{
    put_unknown(r, app);
    if (status == PNB_OK && !pnb__result_is_empty(r))
        status = pnb__result_print(r, app->out, app->common.json, &app->err);
    pnb__result_free(r);
    return status;
}

pnb_status pnb__result_save(pnb__result *r, struct pnb__app *app, const char *path)
{
    pnb_error *err = &app->err;
    pnb__out_file out;
    put_unknown(r, app);
    pnb_status status = pnb__out_open(&out, path, err);
    if (status != PNB_OK)
        return status;
    status = pnb__result_print(r, out.file, true, err);
    if (status == PNB_OK)
        return pnb__out_commit(&out, err);
    pnb__out_abort(&out);
    return status;
}
