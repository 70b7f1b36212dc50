# A tree that is compiled for its warnings alone: Clang reads each source and makes LLVM's code of it in
# memory, so that it says all that it says in a whole build; nothing is optimised, written or linked.
# Empty files stand for objects, libraries and programs, so that the next build looks at what changed.
if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "PNB_CHECK_ONLY needs Clang (CC=clang)")
endif()
set(CMAKE_C_COMPILE_OBJECT
    "<CMAKE_C_COMPILER> <DEFINES> <INCLUDES> <FLAGS> -Xclang -emit-llvm-only -o <OBJECT> -c <SOURCE>"
    "touch <OBJECT>")
set(CMAKE_CXX_COMPILE_OBJECT
    "<CMAKE_CXX_COMPILER> <DEFINES> <INCLUDES> <FLAGS> -Xclang -emit-llvm-only -o <OBJECT> -c <SOURCE>"
    "touch <OBJECT>")
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
