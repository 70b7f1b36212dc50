# Compiler flags, the same for every target.
if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, or Debug" FORCE)
endif()

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# Lines and functions for profiles and traces; variables are a fifth of the compiler's time.
set(CMAKE_C_FLAGS_RELEASE "-O3 -g1 -DNDEBUG")
if(PNB_CHECK_ONLY)
    set(CMAKE_C_FLAGS_RELEASE "-O0") # nothing that is made here runs
elseif(PNB_SANITIZE OR PNB_TSAN)
    # Assertions on, code fast enough to run every test, line numbers but no variables (link time).
    set(CMAKE_C_FLAGS_RELEASE "-O1 -g1 -fno-omit-frame-pointer")
endif()

add_compile_definitions(_GNU_SOURCE)
add_compile_options(-fno-math-errno)

# a*b+c is not fused behind our back: base (random numbers), the reference kernels, losses and
# measures give the same bits on x86-64 and on aarch64, with GCC and with Clang. Only the fast
# kernels, whose results are compared with a tolerance, opt out (rooms.cmake).
add_compile_options(-ffp-contract=off)

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion
                    $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes> $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    # Cutting a long text to its buffer is what we use snprintf for.
    add_compile_options(-Wno-format-truncation -fno-semantic-interposition)
endif()
if(CMAKE_C_COMPILER_ID MATCHES "Clang")
    # "omp simd" loops are not vectorised at -O0 or under sanitizers, which is no mistake.
    add_compile_options(-Wno-pass-failed)
endif()
if(PNB_WERROR)
    add_compile_options(-Werror)
endif()

if(PNB_FAULTS)
    add_compile_definitions(PNB_FAULTS)
endif()
if(PNB_SANITIZE AND PNB_TSAN)
    message(FATAL_ERROR "PNB_SANITIZE and PNB_TSAN cannot be combined; choose one")
endif()
if(PNB_SANITIZE)
    set(sanitizers -fsanitize=address,undefined -fno-sanitize-recover=all)
    # Null pointers, addresses that overflow and objects that are too small are seen by AddressSanitizer too
    # once they are used; asked for everywhere they are a fifth of the compiler's time. Fuzzers, and rooms
    # that read bytes from outside (rooms.cmake), ask for them before that.
    set(PNB_POINTER_CHECKS null,pointer-overflow,object-size)
    if(NOT PNB_FUZZ)
        list(APPEND sanitizers -fno-sanitize=${PNB_POINTER_CHECKS})
    endif()
    # What UBSan's sentences are made of is most of a program's eight megabytes of variables, and the search
    # for leaks reads them at the end of each of thousands of starts. An instruction that no processor knows
    # needs none; ASan shows where it stands (cmake/asan_options.c).
    if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND NOT PNB_UBSAN_SENTENCES)
        list(APPEND sanitizers -fsanitize-undefined-trap-on-error)
    endif()
endif()
if(PNB_TSAN)
    if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
        message(FATAL_ERROR "PNB_TSAN needs Clang (CC=clang)")
    endif()
    set(sanitizers -fsanitize=thread)
endif()
if(PNB_FUZZ)
    if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
        message(FATAL_ERROR "PNB_FUZZ needs Clang (CC=clang): libFuzzer is part of it")
    endif()
    add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(sanitizers)
    add_compile_options(${sanitizers})
    add_link_options(${sanitizers})
    # Hundreds of test programs are linked: gold, which comes with binutils, takes a quarter of the time.
    find_program(PNB_GOLD ld.gold)
    mark_as_advanced(PNB_GOLD)
    if(PNB_GOLD AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
        add_link_options(-fuse-ld=gold)
    endif()
endif()
