# The column of kernels for NVIDIA GPUs, src/kernels/cuda, by nvcc where there is one. The driver and
# cuBLASLt are opened at run time, so a program built with it starts on every machine.
#   PNB_CUDA        AUTO: where nvcc, the static CUDA runtime and cuBLASLt's header are found; ON: or stop
#   PNB_CUDA_ARCH   compute capabilities to make code for; the last also as PTX, for what comes later
#   PNB_CUDA_LATER  AUTO leaves it out: the tree of `make test` on a machine without a device; `make build`
#                   and `make install` make the column there
# Sanitized trees and the tree of warnings leave it out: in the former the same files run on emulated
# threads (tests.cmake), in the latter nvcc reads them for its warnings, which takes a quarter of the time.
set(PNB_CUDA AUTO CACHE STRING "Kernels for NVIDIA GPUs: ON, OFF or AUTO")
set(PNB_CUDA_ARCH "80;90" CACHE STRING "Compute capabilities the kernels are built for")
set_property(CACHE PNB_CUDA PROPERTY STRINGS AUTO ON OFF)
option(PNB_CUDA_LATER "PNB_CUDA=AUTO leaves the kernels out of this tree" OFF)

set(PNB_CUDA_OBJECTS "")
set(PNB_CUDA_LIBS "") # for a static link
add_library(pnb_cuda INTERFACE)
file(GLOB cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/kernels/cuda/*.cu)
file(GLOB cuda_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/kernels/cuda/*.h
     ${PROJECT_SOURCE_DIR}/src/kernels/*.h ${PROJECT_SOURCE_DIR}/src/kernels/*.def
     ${PROJECT_SOURCE_DIR}/src/base/base.h ${PROJECT_SOURCE_DIR}/include/penumbra/ctx.h
     ${PROJECT_SOURCE_DIR}/include/penumbra/error.h)

# Sets PNB_NVCC, PNB_CUDART and PNB_CUBLAS_INCLUDE, and `found` to whether all of them are there.
function(pnb_find_cuda found)
    find_program(PNB_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin)
    get_filename_component(nvcc_path "${PNB_NVCC}" REALPATH)
    get_filename_component(toolkit "${nvcc_path}" DIRECTORY)
    get_filename_component(toolkit "${toolkit}" DIRECTORY)
    set(cuda_paths HINTS ${toolkit} PATH_SUFFIXES lib64 lib targets/${CMAKE_SYSTEM_PROCESSOR}-linux/lib)
    find_library(PNB_CUDART NAMES cudart_static ${cuda_paths})
    find_path(PNB_CUBLAS_INCLUDE cublasLt.h HINTS ${toolkit}/include
              PATH_SUFFIXES targets/${CMAKE_SYSTEM_PROCESSOR}-linux/include)
    if(PNB_NVCC AND PNB_CUDART AND PNB_CUBLAS_INCLUDE)
        set(${found} TRUE PARENT_SCOPE)
    else()
        set(${found} FALSE PARENT_SCOPE)
    endif()
endfunction()

# The objects of all kernels, by nvcc with these flags, as `objects`.
function(pnb_cuda_compile objects)
    set(flags -std=c++17 -Xcompiler=-fPIC,-Wall,-Wextra ${ARGN})
    if(PNB_WERROR)
        list(APPEND flags -Werror=all-warnings -Xcompiler=-Werror)
    endif()
    foreach(source IN LISTS cuda_sources)
        get_filename_component(name ${source} NAME_WE)
        set(object ${PROJECT_BINARY_DIR}/cuda/${name}.o)
        add_custom_command(OUTPUT ${object}
                           COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/cuda
                           COMMAND ${PNB_NVCC} ${flags} -D_GNU_SOURCE -I${PROJECT_SOURCE_DIR}/src
                                   -I${PROJECT_SOURCE_DIR}/include -I${PNB_CUBLAS_INCLUDE}
                                   -c ${source} -o ${object}
                           DEPENDS ${source} ${cuda_headers}
                           COMMENT "CUDA kernels ${name}" VERBATIM)
        list(APPEND made ${object})
    endforeach()
    set(${objects} ${made} PARENT_SCOPE)
endfunction()

set(PNB_CUDA_FOUND FALSE)
if(PNB_CUDA AND NOT (PNB_CUDA STREQUAL "AUTO"
                     AND (PNB_SANITIZE OR PNB_TSAN OR PNB_FUZZ OR PNB_CUDA_LATER)))
    pnb_find_cuda(PNB_CUDA_FOUND)
    if(NOT PNB_CUDA_FOUND AND NOT PNB_CUDA STREQUAL "AUTO")
        message(FATAL_ERROR "PNB_CUDA=ON, but one is missing: nvcc (${PNB_NVCC}), libcudart_static.a "
                            "(${PNB_CUDART}), cublasLt.h (${PNB_CUBLAS_INCLUDE})")
    endif()
endif()

list(GET PNB_CUDA_ARCH -1 last)
set(last_ptx -gencode=arch=compute_${last},code=compute_${last})
if(PNB_CUDA_FOUND AND PNB_CHECK_ONLY)
    pnb_cuda_compile(checked -Xcicc=-O0 -Xcompiler=-O0 ${last_ptx})
    add_custom_target(check_cuda ALL DEPENDS ${checked})
    set(PNB_CUDA_FOUND FALSE) # Clang reads what runs on emulated threads
elseif(PNB_CUDA_FOUND)
    set(codes "")
    foreach(arch IN LISTS PNB_CUDA_ARCH)
        list(APPEND codes -gencode=arch=compute_${arch},code=sm_${arch})
    endforeach()
    pnb_cuda_compile(PNB_CUDA_OBJECTS -O3 -Xcompiler=-O2 ${codes} ${last_ptx})
    add_custom_target(pnb_cuda_objects DEPENDS ${PNB_CUDA_OBJECTS}) # made once for all who link them
    target_link_libraries(pnb_cuda INTERFACE ${PNB_CUDART} stdc++ rt ${CMAKE_DL_LIBS})
    set(PNB_CUDA_LIBS " ${PNB_CUDART} -lstdc++ -lrt -ldl")
    message(STATUS "CUDA: ${PNB_NVCC}, for ${PNB_CUDA_ARCH}")
else()
    message(STATUS "CUDA left out (no nvcc, or a tree for tests): built without --device cuda")
endif()
