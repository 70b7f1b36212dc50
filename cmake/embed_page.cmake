# The page as arrays of a C file: cmake -DDIR=src/server/page -DOUT=page_files.c -P embed_page.cmake
set(text "/* Made from src/server/page by cmake/embed_page.cmake. */\n#include \"server/page/page_files.h\"\n")
foreach(kind html css js)
    file(READ ${DIR}/page.${kind} bytes HEX)
    string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
    string(APPEND text "\nconst char pnb__page_${kind}[] = {${bytes}0x00};\n")
endforeach()
file(WRITE ${OUT} "${text}")
