# Everything CTest runs. Names: <room>_<topic>, fuzz_<topic>, cli_<name>, meta_<name>.
pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)

# ASan's options are in cmake/asan_options.c, so that a program started by hand has them too. UBSan's are of
# trees with PNB_UBSAN_SENTENCES.
set(PNB_TEST_ENVIRONMENT "UBSAN_OPTIONS=print_stacktrace=1")

if(PNB_TSAN)
    # allocator_may_return_null: absurd sizes give NULL as from malloc, which is what is tested.
    # PNB_NO_FILE_LIMIT: the runtime cannot start under `ulimit -f 1`, so scripts leave that out.
    list(APPEND PNB_TEST_ENVIRONMENT
         TSAN_OPTIONS=ignore_noninstrumented_modules=1:allocator_may_return_null=1
         PNB_NO_FILE_LIMIT=1)
endif()

# tests/seconds.txt: what a test of more than a second takes. The longest begin first, so that none runs
# alone at the end; `tools/test-seconds` writes it.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/seconds.txt)
file(STRINGS ${PROJECT_SOURCE_DIR}/tests/seconds.txt test_seconds REGEX "^[a-z]")
foreach(line IN LISTS test_seconds)
    string(REGEX MATCH "^([^ ]+) +([0-9.]+)$" line "${line}")
    set(PNB_SECONDS_${CMAKE_MATCH_1} ${CMAKE_MATCH_2})
endforeach()

function(pnb_register_test name)
    add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
    # the longest take two minutes alone; a machine that does other work, or stands still, is no fault
    set_tests_properties(${name} PROPERTIES TIMEOUT 900 ENVIRONMENT "${PNB_TEST_ENVIRONMENT}")
    if(DEFINED PNB_SECONDS_${name})
        set_tests_properties(${name} PROPERTIES COST ${PNB_SECONDS_${name}})
    endif()
endfunction()

# The kernels of src/kernels/cuda as the last table of the tests of kernels: on threads of the host, in C++,
# where the column is not built; else, if asked, on this machine's device.
option(PNB_TEST_ON_DEVICE "Tests of kernels run on a CUDA device, and on nothing else" OFF)
if(PNB_TEST_ON_DEVICE AND NOT PNB_CUDA_FOUND)
    message(FATAL_ERROR "PNB_TEST_ON_DEVICE needs the column of CUDA (PNB_CUDA=ON says what is missing)")
endif()
if(NOT PNB_CUDA_FOUND AND CMAKE_CXX_COMPILER_LOADED)
    set(emulated ${cuda_sources})
    list(FILTER emulated EXCLUDE REGEX "/(device|products)\\.cu$")
    set_source_files_properties(${emulated} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS
        "-xc++;-include;${PROJECT_SOURCE_DIR}/tests/kernels/cuda/emulate.h;-Wno-conversion;-Wno-sign-conversion")
    add_library(pnb_cuda_emulated OBJECT ${emulated} ${PROJECT_SOURCE_DIR}/tests/kernels/cuda/emulate.cpp)
    target_include_directories(pnb_cuda_emulated PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src
                               ${PROJECT_SOURCE_DIR}/include)
    set_target_properties(pnb_cuda_emulated PROPERTIES CXX_STANDARD 17)
    if(PNB_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU") # a stack of the sanitizer's own for each fiber
        # (-O2 takes the compiler longer than it saves)
        target_compile_options(pnb_cuda_emulated PRIVATE --param=asan-use-after-return=0)
    endif()
endif()
# A program of tests/kernels gets that table.
function(pnb_add_cuda_table target)
    if(TARGET pnb_cuda_emulated)
        target_link_libraries(${target} PRIVATE pnb_cuda_emulated)
        target_compile_definitions(${target} PRIVATE PNB_TEST_CUDA)
        set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
    elseif(PNB_TEST_ON_DEVICE)
        target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests/kernels/cuda/on_device.c)
        set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS
            "-include;${PROJECT_SOURCE_DIR}/tests/kernels/cuda/on_device.h")
        target_include_directories(${target} PRIVATE ${PNB_CUBLAS_INCLUDE})
    endif()
endfunction()

# tests/<room>/.../<topic>.c: one program each, linked with its row and everything below.
foreach(room IN LISTS PNB_ROOMS)
    if(room STREQUAL store AND NOT SQLITE_FOUND)
        message(STATUS "tests of collections (store_*) are left out: there is no SQLite")
        continue()
    endif()
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${room}/*.c)
    if(NOT POSTGRES_FOUND)
        list(FILTER sources EXCLUDE REGEX "/store/postgres/")
    endif()
    list(FILTER sources EXCLUDE REGEX "/kernels/cuda/on_device\\.c$")
    foreach(source IN LISTS sources)
        get_filename_component(topic ${source} NAME_WE)
        # These replace malloc for the whole process: with GCC's sanitizer, or none, because the
        # others bring a malloc that can not be.
        if(room STREQUAL commands AND topic MATCHES "^out_of_memory"
           AND (PNB_TSAN OR NOT CMAKE_C_COMPILER_ID STREQUAL "GNU"))
            continue()
        endif()
        set(target test_${room}_${topic})
        pnb_add_program(${target} ${room} ${source})
        target_link_libraries(${target} PRIVATE PkgConfig::CMOCKA ${CMAKE_DL_LIBS})
        # Compiling a test takes longer than running what it computes itself, but where that is a kernel's oracle.
        if(PNB_SANITIZE AND NOT room STREQUAL kernels)
            target_compile_options(${target} PRIVATE -O0)
        endif()
        if(room STREQUAL kernels OR (topic STREQUAL halves AND TARGET pnb_cuda_emulated))
            pnb_add_cuda_table(${target} ${source})
        endif()
        target_compile_definitions(${target} PRIVATE PNB_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
        set_target_properties(${target} PROPERTIES
                              RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/${room})
        pnb_register_test(${room}_${topic} $<TARGET_FILE:${target}>)
        set_tests_properties(${room}_${topic} PROPERTIES SKIP_RETURN_CODE 77)
    endforeach()
endforeach()

# tests/fuzz/fuzz_<topic>.c: its corpus as an ordinary test, and with PNB_FUZZ a libFuzzer program,
# which changes its inputs by tests/fuzz/mutate/<topic>.c where there is one.
file(GLOB fuzz_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/fuzz_*.c)
foreach(source IN LISTS fuzz_sources)
    get_filename_component(name ${source} NAME_WE)
    string(REGEX REPLACE "^fuzz_" "" topic ${name})
    pnb_add_program(replay_${topic} commands ${source} ${PROJECT_SOURCE_DIR}/tests/fuzz/replay/replay.c)
    pnb_register_test(fuzz_${topic} $<TARGET_FILE:replay_${topic}>
                      ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${topic})
    if(PNB_FUZZ)
        pnb_add_program(${name} commands ${source})
        if(EXISTS ${PROJECT_SOURCE_DIR}/tests/fuzz/mutate/${topic}.c)
            target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/fuzz/mutate/${topic}.c)
        endif()
        target_link_options(${name} PRIVATE -fsanitize=fuzzer)
        set_target_properties(${name} PROPERTIES
                              RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
    endif()
endforeach()

# tests/golden/<family>/<case>: a test of the golden runner, for each family that the runner has a
# handler for. Cases of other families are read by the tests of their room.
if(TARGET golden)
    file(GLOB_RECURSE cases CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/golden/case.json)
    foreach(case IN LISTS cases)
        get_filename_component(dir ${case} DIRECTORY)
        get_filename_component(family ${dir}/.. ABSOLUTE)
        get_filename_component(family ${family} NAME)
        if(NOT EXISTS ${PROJECT_SOURCE_DIR}/tests/golden/family_${family}.c)
            continue()
        endif()
        file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR}/tests/golden ${dir})
        string(REPLACE "/" "_" name ${name})
        pnb_register_test(golden_${name} $<TARGET_FILE:golden> ${dir})
        if(family STREQUAL prolip_model) # precision fp32-tiles, on tiles of plain C
            pnb_register_test(golden_tiles_${name} $<TARGET_FILE:golden> --tiles ${dir})
        endif()
    endforeach()
endif()

# tests/browser: the page of `penumbra serve` in a browser, which tests/cli/serve_page.sh starts. The
# pictures that it takes stay in tests/browser of the build.
pkg_check_modules(CURL IMPORTED_TARGET libcurl)
if(CURL_FOUND AND MICROHTTPD_FOUND)
    pnb_add_program(browser_page io ${PROJECT_SOURCE_DIR}/tests/browser/page.c
                    ${PROJECT_SOURCE_DIR}/tests/browser/driver.c)
    target_link_libraries(browser_page PRIVATE PkgConfig::CURL)
    set_target_properties(browser_page PROPERTIES
                          RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/browser)
else()
    message(STATUS "libcurl or libmicrohttpd missing: the test of the page (cli_serve_page) is left "
                   "out")
endif()

# tests/cli/<name>.sh: PENUMBRA is the program, PNB_SOURCE_DIR the sources; exit 77 is a skip.
file(GLOB cli_scripts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/cli/*.sh)
if(TARGET penumbra)
    foreach(script IN LISTS cli_scripts)
        get_filename_component(name ${script} NAME_WE)
        pnb_register_test(cli_${name} bash ${script})
        set_property(TEST cli_${name} APPEND PROPERTY ENVIRONMENT
                     PENUMBRA=$<TARGET_FILE:penumbra> PNB_SOURCE_DIR=${PROJECT_SOURCE_DIR})
        set_tests_properties(cli_${name} PROPERTIES SKIP_RETURN_CODE 77)
        if(name STREQUAL serve_page AND TARGET browser_page)
            set_property(TEST cli_${name} APPEND PROPERTY ENVIRONMENT
                         PNB_BROWSER_TEST=$<TARGET_FILE:browser_page>
                         PNB_SHOTS=${CMAKE_BINARY_DIR}/tests/browser)
        endif()
    endforeach()
endif()

if(PNB_META_TESTS AND EXISTS ${PROJECT_SOURCE_DIR}/cmake/meta_tests.cmake)
    include(meta_tests)
endif()
