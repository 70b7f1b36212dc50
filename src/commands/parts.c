/* The libraries that a build may lack, for --version --verbose.
 *
 * Those of pictures are not among them: io/image/formats.c names them by what they read. */
#include "commands/commands.h"
#include "server/listen.h"

const pnb__part pnb__parts[] = {
    {"libmicrohttpd", pnb__listen_version, "HTTP, `penumbra serve`", "libmicrohttpd-dev"},
    {0},
};
