# A tree that is read for its warnings alone: Clang says what it has to say of each source
# (check_warnings.sh); nothing is optimised, written or linked. Sources with instructions of one processor
# are made into LLVM's code in memory besides, since only then is it seen that a function may not use
# them: that takes ten times as long.
if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "PNB_CHECK_ONLY needs Clang (CC=clang)")
endif()
set(CMAKE_C_COMPILE_OBJECT "<CMAKE_C_COMPILER> <DEFINES> <INCLUDES> -fsyntax-only <FLAGS> -c <SOURCE>")
set(CMAKE_CXX_COMPILE_OBJECT "<CMAKE_CXX_COMPILER> <DEFINES> <INCLUDES> -fsyntax-only <FLAGS> -c <SOURCE>")
file(GLOB_RECURSE own CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.c)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${own}) # one may become such a source
foreach(source IN LISTS own)
    file(STRINGS ${source} of_one_processor REGEX "immintrin|simd_avx|base/wide|__attribute__..target")
    if(of_one_processor)
        set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS "-Xclang;-emit-llvm-only")
    endif()
endforeach()

# Benches and examples too, which other trees leave out.
file(GLOB examples CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.c)
add_library(check_examples OBJECT ${examples})
target_include_directories(check_examples PRIVATE ${PROJECT_SOURCE_DIR}/include)

# The targets are there for their commands alone, which stand in compile_commands.json.
get_property(targets DIRECTORY PROPERTY BUILDSYSTEM_TARGETS)
foreach(target IN LISTS targets)
    get_target_property(kind ${target} TYPE)
    if(kind MATCHES "LIBRARY|EXECUTABLE" AND NOT kind STREQUAL "INTERFACE_LIBRARY")
        set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
    endif()
endforeach()
add_custom_target(check_warnings ALL
                  COMMAND ${CMAKE_CURRENT_LIST_DIR}/check_warnings.sh ${PROJECT_BINARY_DIR} VERBATIM)
if(TARGET pnb_source_commit)
    add_custom_target(pnb_page_files DEPENDS ${PROJECT_BINARY_DIR}/generated/page_files.c)
    add_dependencies(check_warnings pnb_source_commit pnb_page_files)
endif()
