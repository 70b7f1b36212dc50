/* A Postgres server of a test program's own; see tests/cli/common/postgres.sh. */
#ifndef TESTS_STORE_POSTGRES_SERVER_H
#define TESTS_STORE_POSTGRES_SERVER_H

#include "tests/store/fixture.h"

#include <sys/stat.h>
#include <sys/wait.h>

typedef struct server {
    char dir[64];
    char address[256]; /* by the socket: no password */
} server;

/* The script's exit status; its first line to `line`. */
static inline int server_do(const char *dir, const char *action, char *line, size_t size)
{
    char command[640];
    snprintf(command, sizeof command, "bash '%s/tests/cli/common/postgres.sh' %s %s/pg",
             PNB_SOURCE_DIR, action, dir);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    if (fgets(line, (int)size, f) != NULL)
        line[strcspn(line, "\n")] = '\0';
    while (fgetc(f) != EOF) { /* nobody writes into a pipe that is closed */
    }
    int status = pclose(f);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* Ends the program as skipped where there is no server to start. */
static inline void server_start(server *s)
{
    snprintf(s->dir, sizeof s->dir, "/tmp/pnb-test-XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    assert_int_equal(chmod(s->dir, 0711), 0);
    int status = server_do(s->dir, "start", s->address, sizeof s->address);
    if (status == 77) {
        printf("%s\n", s->address);
        rmdir(s->dir);
        exit(77);
    }
    assert_int_equal(status, 0);
}

static inline void server_stop(const server *s)
{
    char line[256];
    server_do(s->dir, "stop", line, sizeof line);
}

static inline void server_again(const server *s)
{
    char line[256];
    assert_int_equal(server_do(s->dir, "again", line, sizeof line), 0);
}

static inline void server_end(const server *s)
{
    server_stop(s);
    nftw(s->dir, fixture_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* A collection in a schema, and its folder below the scratch folder. */
static inline pnb_store *made_in(const server *pg, scratch *s, const char *name, bool join)
{
    const pnb_store_place place = {.address = pg->address, .schema = "test", .join = join};
    char path[512];
    pnb_error err = PNB_ERROR_INIT;
    snprintf(path, sizeof path, "%s", scratch_path(s, name));
    assert_ok(pnb_store_create_at(path, &place, NULL, &err), &err);
    return opened(path);
}

#endif
