# Writes OUT, the source of pnb__source_commit (src/program/source_commit.h), with the commit of the tree
# SOURCE: "-changed" behind it where files differ from the commit, NULL where there is no git or no
# repository. A file that would stay the same is left alone, so nothing is built again.
cmake_minimum_required(VERSION 3.18)
find_program(git git)
set(commit "")
if(git AND EXISTS ${SOURCE}/.git)
    execute_process(COMMAND ${git} -C ${SOURCE} describe --always --abbrev=40 --exclude=*
                            --dirty=-changed
                    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
set(value NULL)
if(commit)
    set(value "\"${commit}\"")
endif()
file(CONFIGURE OUTPUT ${OUT} @ONLY CONTENT
"/* Written by the build: the commit that the program was built from. */
#include \"program/source_commit.h\"

#include <stddef.h>

const char *pnb__source_commit(void)
{
    return @value@;
}
")
