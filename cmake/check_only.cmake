# A tree that is compiled for its warnings alone: Clang reads each source and says what it has to say;
# nothing is optimised, written or linked. Sources with instructions of one processor are made into
# LLVM's code in memory besides, since only then is it seen that a function may not use them: that takes
# ten times as long. Empty files stand for objects, libraries and programs, so that the next build looks
# at what changed.
if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "PNB_CHECK_ONLY needs Clang (CC=clang)")
endif()
set(CMAKE_C_COMPILE_OBJECT
    "<CMAKE_C_COMPILER> <DEFINES> <INCLUDES> -fsyntax-only <FLAGS> -c <SOURCE>"
    "touch <OBJECT>")
set(CMAKE_CXX_COMPILE_OBJECT
    "<CMAKE_CXX_COMPILER> <DEFINES> <INCLUDES> -fsyntax-only <FLAGS> -c <SOURCE>"
    "touch <OBJECT>")
file(GLOB_RECURSE own CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.c)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${own}) # one may become such a source
foreach(source IN LISTS own)
    file(STRINGS ${source} of_one_processor REGEX "immintrin|simd_avx|base/wide|__attribute__..target")
    if(of_one_processor)
        set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS "-Xclang;-emit-llvm-only")
    endif()
endforeach()
# what stands above the bridge to FAISS is linked as C++
foreach(language C CXX)
    set(CMAKE_${language}_CREATE_STATIC_LIBRARY "touch <TARGET>")
    set(CMAKE_${language}_CREATE_SHARED_LIBRARY "touch <TARGET>")
    set(CMAKE_${language}_LINK_EXECUTABLE "touch <TARGET>")
endforeach()

# Benches and examples too, which other trees leave out.
add_custom_target(check_benches ALL)
add_dependencies(check_benches bench_programs)
file(GLOB examples CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.c)
add_library(check_examples OBJECT ${examples})
target_include_directories(check_examples PRIVATE ${PROJECT_SOURCE_DIR}/include)
