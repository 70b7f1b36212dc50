# One library per room. A room sees headers of its own folder and of lower rows; cmake/check_layers
# enforces that, this file gives the link order.
#
# Rooms are static, but in GCC's sanitized tree shared: hundreds of test programs are linked in a
# fraction of the time, none of them again when a room changes, and a room that needs one above it is not
# linked (--no-undefined).
option(PNB_SHARED_ROOMS "Rooms are shared libraries of this tree" OFF)
set(room_kind STATIC)
if(PNB_SHARED_ROOMS OR (PNB_SANITIZE AND NOT PNB_FUZZ AND CMAKE_C_COMPILER_ID STREQUAL "GNU"))
    set(room_kind SHARED)
    list(APPEND CMAKE_INSTALL_RPATH ${CMAKE_BINARY_DIR})
    set(CMAKE_LINK_DEPENDS_NO_SHARED ON)
endif()

# Rows, lowest first; rooms of one row do not know each other.
set(PNB_ROWS "base" "kernels peers" "tensor" "io prob" "tokenizer sets nn" "index models" "data store" "truth train"
             "adapt eval" "encode report" "program" "server" "commands")

# Libraries from outside that a room may use, beside those of the rooms below it.
set(PNB_EXTERN_base OpenMP::OpenMP_C Threads::Threads m)
set(PNB_EXTERN_kernels pnb_blas pnb_cuda)
set(PNB_EXTERN_peers pnb_mpi)
set(PNB_EXTERN_io pnb_media)
set(PNB_EXTERN_data pnb_fonts)
set(PNB_EXTERN_index pnb_faiss)
set(PNB_EXTERN_store pnb_databases)
set(PNB_EXTERN_server pnb_http)

# Adds flags to the kernels of one instruction set; the table picks at run time what the CPU has.
function(pnb_kernel_flags)
    foreach(source IN LISTS ARGN)
        if(NOT source MATCHES "/kernels/cpu/")
            continue()
        endif()
        set(flags -ffp-contract=fast)
        if(source MATCHES "_avx2\\.c$")
            list(APPEND flags -mavx2 -mfma -mf16c)
        elseif(source MATCHES "_avx512(vnni)?\\.c$")
            list(APPEND flags -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512vl -mavx512dq
                 -mprfchw)
            if(source MATCHES "vnni")
                list(APPEND flags -mavx512vnni)
            endif()
        endif()
        set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${flags}")
    endforeach()
endfunction()

# Loops that are most of what the tests compute: optimised before the sanitizer's checks are put in,
# they take a third to a half of the time with the same checks.
function(pnb_optimise_tested)
    foreach(source IN LISTS ARGN)
        # The tiles of products_bf16 take six times as long to compile so, and are few of the tests' time.
        if(PNB_SANITIZE AND source MATCHES "/src/(kernels/|base/random/|base/sha256|data/synth/|io/image/)"
           AND NOT source MATCHES "/products_bf16\\.c$")
            set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -O2)
        endif()
        # GCC 12 puts frames that it keeps behind their return on 32 bytes, and vectors of 64 into them
        # (its bug 110027).
        if(PNB_SANITIZE AND CMAKE_C_COMPILER_ID STREQUAL "GNU" AND source MATCHES "_avx512(vnni)?\\.c$")
            set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS --param=asan-use-after-return=0)
        endif()
        # GCC's scopes of variables would still be marked in the functions that are left out (base/loop.h);
        # only the portable vectors have any there.
        if(PNB_SANITIZE AND source MATCHES "/kernels/cpu/f32_generic\\.c$")
            set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -fno-sanitize-address-use-after-scope)
        endif()
    endforeach()
endfunction()

# Leaves out of a room's `sources` what a missing library or processor forbids. A pattern that fits
# nothing is one that a moved file has left behind.
function(pnb_leave_out name room pattern)
    if(NOT name STREQUAL room)
        return()
    endif()
    set(kept ${sources})
    list(FILTER kept EXCLUDE REGEX "/src/${room}.*${pattern}")
    if(kept STREQUAL sources)
        message(FATAL_ERROR "no source of room ${room} fits ${pattern}")
    endif()
    set(sources ${kept} PARENT_SCOPE)
endfunction()

# pnb_room_<name>: a library, or an interface library while the folder holds no source.
function(pnb_add_room name lower_rooms)
    set(target pnb_room_${name})
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.c)
    if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
        pnb_leave_out(${name} kernels "_avx(2|512|512vnni)\\.c$")
    endif()
    if(NOT GIF_FOUND)
        pnb_leave_out(${name} io "/image/formats/gif\\.c$")
    endif()
    if(NOT TIFF_FOUND)
        pnb_leave_out(${name} io "/image/formats/tiff")
    endif()
    if(NOT HEIF_FOUND)
        pnb_leave_out(${name} io "/image/formats/heif\\.c$")
    endif()
    if(NOT RSVG_FOUND OR NOT XML_FOUND)
        pnb_leave_out(${name} io "/svg/svg_library\\.c$")
    endif()
    if(NOT SQLITE_FOUND)
        pnb_leave_out(${name} store "/sqlite/")
    endif()
    if(NOT POSTGRES_FOUND)
        pnb_leave_out(${name} store "/postgres/")
    endif()
    if(PNB_MPI_INCLUDE)
        pnb_leave_out(${name} peers "/mpi_none\\.c$")
    else()
        pnb_leave_out(${name} peers "/mpi\\.c$")
    endif()
    if(MICROHTTPD_FOUND)
        pnb_leave_out(${name} server "/sockets/listen_none\\.c$")
    else()
        pnb_leave_out(${name} server "/sockets/listen(_library)?\\.c$")
    endif()
    if(name STREQUAL server) # the page's own files, as arrays
        set(page ${PROJECT_SOURCE_DIR}/src/server/page)
        set(page_files ${PROJECT_BINARY_DIR}/generated/page_files.c)
        add_custom_command(OUTPUT ${page_files}
                           COMMAND ${CMAKE_COMMAND} -DDIR=${page} -DOUT=${page_files}
                                   -P ${PROJECT_SOURCE_DIR}/cmake/embed_page.cmake
                           DEPENDS ${page}/page.html ${page}/page.css ${page}/page.js
                                   ${PROJECT_SOURCE_DIR}/cmake/embed_page.cmake VERBATIM)
        list(APPEND sources ${page_files})
    endif()
    if(PNB_CUDA_FOUND)
        pnb_leave_out(${name} kernels "/cuda/none\\.c$")
        if(name STREQUAL kernels)
            list(APPEND sources ${PNB_CUDA_OBJECTS})
        endif()
    endif()
    if(FAISS_FOUND)
        pnb_leave_out(${name} index "/ann/faiss_none\\.c$")
        file(GLOB_RECURSE bridges CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*_bridge.cpp)
        list(APPEND sources ${bridges})
    endif()
    if(sources)
        pnb_kernel_flags(${sources})
        pnb_optimise_tested(${sources})
        add_library(${target} ${room_kind} ${sources})
        if(PNB_SANITIZE AND name MATCHES "^(io|tokenizer|truth)$")
            target_compile_options(${target} PRIVATE -fsanitize=${PNB_POINTER_CHECKS})
        endif()
        # Half of the compiler's time is in optimising, which pays in tests only where they wait for what a room
        # computes: in these, and in the files above. Fuzzers run for hours, and wait for all of it.
        if(PNB_SANITIZE AND NOT PNB_FUZZ AND NOT name MATCHES
           "^(base|kernels|prob|index|train|adapt|eval)$")
            target_compile_options(${target} PRIVATE -O0)
        endif()
        # They say what the rooms below have computed: a fifth less of code, and of the time to build them.
        if(NOT PNB_SANITIZE AND name MATCHES "^(commands|program|report)$")
            target_compile_options(${target} PRIVATE $<$<CONFIG:Release,RelWithDebInfo>:-Os>)
        endif()
        if(name STREQUAL kernels AND PNB_CUDA_OBJECTS)
            add_dependencies(${target} pnb_cuda_objects)
        endif()
        if(room_kind STREQUAL SHARED)
            target_link_options(${target} PRIVATE -Wl,--no-undefined)
            set_target_properties(${target} PROPERTIES DEFINE_SYMBOL "") # compiled as a static one is
        endif()
        set(scope PUBLIC)
    else()
        add_library(${target} INTERFACE)
        set(scope INTERFACE)
    endif()
    target_include_directories(${target} ${scope} ${PROJECT_SOURCE_DIR}/include
                               ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(${target} ${scope} ${lower_rooms} ${PNB_EXTERN_${name}})
endfunction()

# PNB_UP_TO_<room>: link list of the room, its row and everything below, highest first.
set(lower "")
foreach(row IN LISTS PNB_ROWS)
    string(REPLACE " " ";" rooms "${row}")
    set(row_targets "")
    foreach(room IN LISTS rooms)
        pnb_add_room(${room} "${lower}")
        list(APPEND row_targets pnb_room_${room})
    endforeach()
    list(PREPEND lower ${row_targets})
    foreach(room IN LISTS rooms)
        set(PNB_UP_TO_${room} ${lower})
    endforeach()
    list(APPEND PNB_ROOMS ${rooms})
endforeach()

# pnb_add_program(<target> <room> SOURCE...): a program that is linked with the room and what is below.
if(PNB_SANITIZE AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
    add_library(pnb_asan_options OBJECT ${PROJECT_SOURCE_DIR}/cmake/asan_options.c)
endif()
function(pnb_add_program target room)
    add_executable(${target} ${ARGN})
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(${target} PRIVATE ${PNB_UP_TO_${room}})
    if(TARGET pnb_asan_options)
        target_link_libraries(${target} PRIVATE pnb_asan_options)
    endif()
endfunction()

# The same as one file, whose addresses the linker settles: the tests start the program thousands of
# times, and of shared libraries of sanitized code each start would relocate half a million words.
function(pnb_add_whole_program target room)
    if(NOT room_kind STREQUAL SHARED)
        pnb_add_program(${target} ${room} ${ARGN})
        return()
    endif()
    add_executable(${target} ${ARGN})
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include
                               ${PROJECT_SOURCE_DIR}/src)
    set(libraries "")
    foreach(lib IN LISTS PNB_UP_TO_${room})
        get_target_property(kind ${lib} TYPE)
        if(NOT kind STREQUAL INTERFACE_LIBRARY)
            target_sources(${target} PRIVATE $<TARGET_OBJECTS:${lib}>)
        endif()
        string(REPLACE pnb_room_ "" name ${lib})
        list(APPEND libraries ${PNB_EXTERN_${name}})
    endforeach()
    target_link_libraries(${target} PRIVATE ${libraries})
    target_link_options(${target} PRIVATE -no-pie)
    if(TARGET pnb_asan_options)
        target_link_libraries(${target} PRIVATE pnb_asan_options)
    endif()
endfunction()

if(TARGET pnb_room_base)
    # a square root that might set errno is no vector's
    set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/base/random/rng_normal.c APPEND PROPERTY COMPILE_OPTIONS
                 -fno-math-errno)
    set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/base/ctx.c APPEND PROPERTY COMPILE_DEFINITIONS
                 PNB_VERSION="${PROJECT_VERSION}")
endif()

# The commit of the source, looked at in every build. It belongs to the program alone: a library that
# changed with every commit would have everything linked again.
set(commit_source ${PROJECT_BINARY_DIR}/generated/source_commit.c)
add_custom_target(pnb_source_commit
                  COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DOUT=${commit_source}
                          -P ${PROJECT_SOURCE_DIR}/cmake/source_commit.cmake
                  BYPRODUCTS ${commit_source} VERBATIM)
add_dependencies(pnb_room_program pnb_source_commit)
target_sources(pnb_room_program PRIVATE ${commit_source})
