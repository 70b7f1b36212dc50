/* A context and an empty folder for the tests of a file: `setup` and `teardown` of their group. */
#ifndef PNB_TESTS_MODELS_SCRATCH_H
#define PNB_TESTS_MODELS_SCRATCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "penumbra/ctx.h"

static pnb_ctx *ctx;
static char temp_dir[64];

static inline int setup(void **state)
{
    (void)state;
    strcpy(temp_dir, "/tmp/pnb-models-XXXXXX");
    return mkdtemp(temp_dir) != NULL && pnb_ctx_create(&ctx, NULL, NULL) == PNB_OK ? 0 : -1;
}

static inline int teardown(void **state)
{
    (void)state;
    char command[128];
    pnb_ctx_free(ctx);
    snprintf(command, sizeof command, "rm -rf '%s'", temp_dir);
    return system(command);
}

/* A path in the folder; free with pnb__free. */
static inline char *temp_path(const char *name)
{
    char *path = pnb__path_join(temp_dir, name);
    assert_non_null(path);
    return path;
}

#endif
