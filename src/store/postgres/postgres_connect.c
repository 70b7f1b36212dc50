/* The connection to Postgres: made, made again, and what its errors mean.
 *
 * A server goes away and comes back: outside of a transaction a statement that finds the connection
 * gone makes it anew and is tried once more; within one the transaction is lost, and the caller is
 * told. No message has the password: libpq's of an address that it cannot read quote parts of it,
 * so those are not passed on. */
#include <stdlib.h>
#include <string.h>

#include "store/postgres/postgres.h"

#define ADDRESS_FORM "postgresql://[user@]host[:port]/database"

/* ---- addresses ---- */

static const char *option(const PQconninfoOption *options, const char *keyword)
{
    for (; options->keyword != NULL; options++)
        if (strcmp(options->keyword, keyword) == 0)
            return options->val;
    return NULL;
}

/* An @ in a password ends it for libpq, and the rest of it would be told as the host. */
static bool has_rest_of_password(const PQconninfoOption *options)
{
    const char *host = option(options, "host"), *port = option(options, "port");
    return (host != NULL && strchr(host, '@') != NULL) ||
           (port != NULL && strspn(port, "0123456789,") != strlen(port));
}

/* What every connection begins with. */
static pnb_status parse(const char *address, PQconninfoOption **out, pnb_error *err)
{
    char *why = NULL;
    *out = NULL;
    pnb_status status = pnb__pq_open(err);
    if (status != PNB_OK)
        return status;
    *out = pnb__pq.PQconninfoParse(address, &why);
    pnb__pq.PQfreemem(why);
    if (*out != NULL && has_rest_of_password(*out)) {
        pnb__pq.PQconninfoFree(*out);
        *out = NULL;
    }
    return *out != NULL ? PNB_OK
                        : pnb__fail(err, PNB_ARG,
                                    "the address of the Postgres database cannot be read; wanted "
                                    "is " ADDRESS_FORM ", with what is no letter or digit in user "
                                    "and password written as %%40");
}

static bool is_secret(const char *keyword)
{
    return strcmp(keyword, "password") == 0 || strcmp(keyword, "sslpassword") == 0;
}

/* Options that a message or the folder's note may have, in libpq's other form: key='value'. The
 * kind stands before them, so that a note is told from a file. */
pnb_status pnb__pg_keep_address(const char *address, char **out, pnb_error *err)
{
    PQconninfoOption *options;
    pnb__buf text = {0};
    *out = NULL;
    pnb_status status = parse(address, &options, err);
    if (status != PNB_OK)
        return status;
    for (const PQconninfoOption *o = options; o->keyword != NULL; o++) {
        if (o->val == NULL || is_secret(o->keyword))
            continue;
        pnb__buf_printf(&text, "%s%s='", text.size > 0 ? " " : "", o->keyword);
        for (const char *p = o->val; *p != '\0'; p++) {
            if (*p == '\'' || *p == '\\')
                pnb__buf_putc(&text, '\\');
            pnb__buf_putc(&text, *p);
        }
        pnb__buf_putc(&text, '\'');
    }
    pnb__pq.PQconninfoFree(options);
    status = pnb__buf_check(&text, err);
    if (status == PNB_OK)
        status = pnb__copy_text(out, text.data != NULL ? text.data : "", err);
    pnb__buf_reset(&text);
    return status;
}

/* ---- errors ---- */

static bool is_class(const char *state, const char *class)
{
    return strncmp(state, class, strlen(class)) == 0;
}

/* One line of libpq's. */
static void one_line(const char *text, char out[300])
{
    snprintf(out, 300, "%s", text);
    out[strcspn(out, "\n")] = '\0';
}

static pnb_status fail_gone(const pnb__pg *s, pnb_error *err)
{
    char why[300];
    one_line(pnb__pq.PQerrorMessage(s->conn), why);
    bool wants_password = pnb__pq.PQconnectionNeedsPassword(s->conn) != 0;
    return pnb__fail(err, PNB_IO, "%s does not answer (%s); %s", s->where, why,
                     wants_password ? "a password is not kept with a collection: libpq takes it "
                                      "from PGPASSWORD or ~/.pgpass"
                                    : "nothing that it said it has is lost: try again when it is "
                                      "back");
}

pnb_status pnb__pg_fail(pnb__pg *s, PGresult *result, pnb_error *err)
{
    const char *state =
        result != NULL ? pnb__pq.PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
    const char *said =
        result != NULL ? pnb__pq.PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    pnb_status status;
    if (pnb__pq.PQstatus(s->conn) != CONNECTION_OK || state == NULL || is_class(state, "57P0"))
        status = fail_gone(s, err);
    else if (is_class(state, "42P06"))
        status = pnb__fail(err, PNB_EXISTS,
                           "%s is there already: --join makes a folder for the collection in it, "
                           "--schema names another one",
                           s->where);
    else if (is_class(state, "42P01") || is_class(state, "42703") || is_class(state, "3F"))
        status = pnb__fail(err, PNB_FORMAT, "%s holds no collection, or a damaged one (%s)",
                           s->where, said);
    else if (is_class(state, "40") || is_class(state, "55P03") || is_class(state, "23505"))
        status = pnb__fail(err, PNB_BUSY,
                           "%s: another program wrote to it meanwhile (%s); try "
                           "again",
                           s->where, said);
    else if (is_class(state, "53100"))
        status = pnb__fail(err, PNB_IO, "%s: no space is left on its disk (%s)", s->where, said);
    else
        status = pnb__fail(err, PNB_IO, "%s: %s", s->where, said != NULL ? said : state);
    pnb__pq.PQclear(result);
    return status;
}

/* ---- connecting ---- */

static void ignore_notice(void *user, const char *text)
{
    (void)user, (void)text;
}

enum { MOST_OPTIONS = 64 };

static pnb_status start(pnb__pg *s, const PQconninfoOption *options, pnb_error *err)
{
    const char *keys[MOST_OPTIONS + 6], *values[MOST_OPTIONS + 6],
        *own = option(options, "options");
    char *search = pnb__format("%s%s-c search_path=%s,public -c client_min_messages=warning",
                               own != NULL ? own : "", own != NULL ? " " : "", s->schema);
    size_t n = 0;
    if (search == NULL)
        return pnb__fail_nomem(err, 0);
    if (option(options, "connect_timeout") == NULL) {
        keys[n] = "connect_timeout";
        values[n++] = "10";
    }
    for (const PQconninfoOption *o = options; o->keyword != NULL && n < MOST_OPTIONS; o++) {
        if (o->val == NULL || strcmp(o->keyword, "options") == 0 ||
            strcmp(o->keyword, "client_encoding") == 0)
            continue;
        keys[n] = o->keyword;
        values[n++] = o->val;
    }
    const char *const ours[][2] = {{"options", search},
                                   {"client_encoding", "UTF8"},
                                   {"fallback_application_name", "penumbra"},
                                   {NULL, NULL}};
    for (size_t i = 0; i < PNB_COUNT(ours); i++, n++) {
        keys[n] = ours[i][0];
        values[n] = ours[i][1];
    }
    s->conn = pnb__pq.PQconnectdbParams(keys, values, 0);
    pnb__free(search);
    if (s->conn == NULL)
        return pnb__fail_nomem(err, 0);
    pnb__pq.PQsetNoticeProcessor(s->conn, ignore_notice, NULL);
    return pnb__pq.PQstatus(s->conn) == CONNECTION_OK ? PNB_OK : fail_gone(s, err);
}

static pnb_status name_place(pnb__pg *s, const PQconninfoOption *options, pnb_error *err)
{
    const char *host = option(options, "host"), *port = option(options, "port");
    const char *base = option(options, "dbname");
    s->where =
        pnb__format("schema %s of the Postgres database%s%s%s%s%s%s", s->schema,
                    base != NULL ? " " : "", base != NULL ? base : "", host != NULL ? " at " : "",
                    host != NULL ? host : "", port != NULL ? ":" : "", port != NULL ? port : "");
    return s->where != NULL ? PNB_OK : pnb__fail_nomem(err, 0);
}

pnb_status pnb__pg_connect(pnb__pg **out, const pnb__place *place, pnb_error *err)
{
    PQconninfoOption *options = NULL;
    pnb__pg *s = NULL;
    pnb_status status;
    PNB_TRY(parse(place->address, &options, err));
    PNB_TRY(PNB_ALLOC_ZERO(s, 1, err));
    PNB_TRY(pnb__copy_text(&s->schema, place->schema != NULL ? place->schema : "public", err));
    PNB_TRY(name_place(s, options, err));
    PNB_TRY(start(s, options, err));
    *out = s;
    s = NULL;
done:
    if (options != NULL)
        pnb__pq.PQconninfoFree(options);
    pnb__pg_close(s);
    return status;
}

void pnb__pg_close(void *self)
{
    pnb__pg *s = self;
    if (s == NULL)
        return;
    if (s->conn != NULL)
        pnb__pq.PQfinish(s->conn);
    pnb__buf_reset(&s->rows);
    pnb__buf_reset(&s->tags);
    pnb__buf_reset(&s->thumbnails);
    pnb__free(s->where);
    pnb__free(s->schema);
    pnb__free(s);
}

/* ---- statements ---- */

static bool is_success(const PGresult *result)
{
    ExecStatusType kind = pnb__pq.PQresultStatus(result);
    return kind == PGRES_TUPLES_OK || kind == PGRES_COMMAND_OK;
}

static pnb_status ask_for_lock(pnb__pg *s, pnb_error *err)
{
    const char *values[] = {s->schema};
    PGresult *result = pnb__pq.PQexecParams(
        s->conn, "SELECT pg_try_advisory_lock(hashtextextended('penumbra ' || $1, 0))", 1, NULL,
        values, NULL, NULL, 0);
    if (!is_success(result))
        return pnb__pg_fail(s, result, err);
    bool is_ours = strcmp(pnb__pq.PQgetvalue(result, 0, 0), "t") == 0;
    pnb__pq.PQclear(result);
    s->is_claimed = is_ours;
    return is_ours ? PNB_OK
                   : pnb__fail(err, PNB_BUSY,
                               "%s: another program is writing to it, and one writes at a time; "
                               "try again when it has ended",
                               s->where);
}

pnb_status pnb__pg_claim(void *self, pnb_error *err)
{
    return ask_for_lock(self, err);
}

/* The lock of the writer went with the connection that had it. */
static pnb_status connect_again(pnb__pg *s, pnb_error *err)
{
    bool was_claimed = s->is_claimed;
    pnb__pq.PQreset(s->conn);
    s->is_claimed = false;
    if (pnb__pq.PQstatus(s->conn) != CONNECTION_OK) {
        s->is_claimed = was_claimed;
        return fail_gone(s, err);
    }
    return was_claimed ? ask_for_lock(s, err) : PNB_OK;
}

/* A server that went away may be noticed by libpq alone, which then has no code of the server, or
 * have said so: 57P01 to 57P03. */
static bool is_lost(const pnb__pg *s, const PGresult *result)
{
    if (pnb__pq.PQstatus(s->conn) != CONNECTION_OK)
        return true;
    if (is_success(result))
        return false;
    const char *state = pnb__pq.PQresultErrorField(result, PG_DIAG_SQLSTATE);
    return state == NULL || is_class(state, "57P0");
}

pnb_status pnb__pg_query(pnb__pg *s, const char *sql, int n, const char *const *values,
                         PGresult **out, pnb_error *err)
{
    PGresult *result = NULL;
    if (out != NULL)
        *out = NULL;
    if (pnb__pq.PQstatus(s->conn) == CONNECTION_OK)
        result = pnb__pq.PQexecParams(s->conn, sql, n, NULL, values, NULL, NULL, 0);
    if (is_lost(s, result) && !s->is_writing) {
        pnb__pq.PQclear(result);
        pnb_status status = connect_again(s, err);
        if (status != PNB_OK)
            return status;
        result = pnb__pq.PQexecParams(s->conn, sql, n, NULL, values, NULL, NULL, 0);
    }
    if (!is_success(result))
        return pnb__pg_fail(s, result, err);
    if (out != NULL)
        *out = result;
    else
        pnb__pq.PQclear(result);
    return PNB_OK;
}

pnb_status pnb__pg_change(pnb__pg *s, const char *sql, int n, const int64_t *values,
                          size_t *n_changed, pnb_error *err)
{
    char text[4][24];
    const char *texts[4];
    PGresult *result = NULL;
    for (int i = 0; i < n; i++) {
        snprintf(text[i], sizeof text[i], "%lld", (long long)values[i]);
        texts[i] = text[i];
    }
    pnb_status status = pnb__pg_query(s, sql, n, texts, &result, err);
    if (status == PNB_OK && n_changed != NULL)
        *n_changed = (size_t)strtoull(pnb__pq.PQcmdTuples(result), NULL, 10);
    pnb__pq.PQclear(result);
    return status;
}
