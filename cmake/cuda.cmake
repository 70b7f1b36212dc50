# The column of kernels for NVIDIA GPUs, src/kernels/cuda, by nvcc where there is one. The driver and
# cuBLASLt are opened at run time, so a program built with it starts on every machine.
#   PNB_CUDA        AUTO: where nvcc, the static CUDA runtime and cuBLASLt's header are found; ON: or stop
#   PNB_CUDA_ARCH   compute capabilities to make code for; the last also as PTX, for what comes later
# Sanitized trees and the tree of warnings leave it out: there the same files run on emulated threads
# (tests.cmake).
set(PNB_CUDA AUTO CACHE STRING "Kernels for NVIDIA GPUs: ON, OFF or AUTO")
set(PNB_CUDA_ARCH "80;90" CACHE STRING "Compute capabilities the kernels are built for")
set_property(CACHE PNB_CUDA PROPERTY STRINGS AUTO ON OFF)

set(PNB_CUDA_OBJECTS "")
set(PNB_CUDA_LIBS "") # for a static link
add_library(pnb_cuda INTERFACE)
file(GLOB cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/kernels/cuda/*.cu)
file(GLOB cuda_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/kernels/cuda/*.h
     ${PROJECT_SOURCE_DIR}/src/kernels/*.h ${PROJECT_SOURCE_DIR}/src/kernels/*.def
     ${PROJECT_SOURCE_DIR}/src/base/base.h ${PROJECT_SOURCE_DIR}/include/penumbra/ctx.h
     ${PROJECT_SOURCE_DIR}/include/penumbra/error.h)
if(PNB_CUDA STREQUAL "AUTO" AND (PNB_SANITIZE OR PNB_TSAN OR PNB_FUZZ OR PNB_CHECK_ONLY))
    set(PNB_CUDA_FOUND FALSE)
elseif(PNB_CUDA)
    find_program(PNB_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin)
    get_filename_component(nvcc_path "${PNB_NVCC}" REALPATH)
    get_filename_component(toolkit "${nvcc_path}" DIRECTORY)
    get_filename_component(toolkit "${toolkit}" DIRECTORY)
    set(cuda_paths HINTS ${toolkit} PATH_SUFFIXES lib64 lib targets/${CMAKE_SYSTEM_PROCESSOR}-linux/lib)
    find_library(PNB_CUDART NAMES cudart_static ${cuda_paths})
    find_path(PNB_CUBLAS_INCLUDE cublasLt.h HINTS ${toolkit}/include
              PATH_SUFFIXES targets/${CMAKE_SYSTEM_PROCESSOR}-linux/include)
    if(PNB_NVCC AND PNB_CUDART AND PNB_CUBLAS_INCLUDE)
        set(PNB_CUDA_FOUND TRUE)
    elseif(NOT PNB_CUDA STREQUAL "AUTO")
        message(FATAL_ERROR "PNB_CUDA=ON, but one is missing: nvcc (${PNB_NVCC}), libcudart_static.a "
                            "(${PNB_CUDART}), cublasLt.h (${PNB_CUBLAS_INCLUDE})")
    endif()
endif()

if(PNB_CUDA_FOUND)
    set(nvcc_flags -O3 -std=c++17 -Xcompiler=-fPIC,-O2,-Wall,-Wextra)
    foreach(arch IN LISTS PNB_CUDA_ARCH)
        list(APPEND nvcc_flags -gencode=arch=compute_${arch},code=sm_${arch})
    endforeach()
    list(GET PNB_CUDA_ARCH -1 last)
    list(APPEND nvcc_flags -gencode=arch=compute_${last},code=compute_${last})
    if(PNB_WERROR)
        list(APPEND nvcc_flags -Werror=all-warnings -Xcompiler=-Werror)
    endif()
    foreach(source IN LISTS cuda_sources)
        get_filename_component(name ${source} NAME_WE)
        set(object ${PROJECT_BINARY_DIR}/cuda/${name}.o)
        add_custom_command(OUTPUT ${object}
                           COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/cuda
                           COMMAND ${PNB_NVCC} ${nvcc_flags} -D_GNU_SOURCE -I${PROJECT_SOURCE_DIR}/src
                                   -I${PROJECT_SOURCE_DIR}/include -I${PNB_CUBLAS_INCLUDE}
                                   -c ${source} -o ${object}
                           DEPENDS ${source} ${cuda_headers}
                           COMMENT "CUDA kernels ${name}" VERBATIM)
        list(APPEND PNB_CUDA_OBJECTS ${object})
    endforeach()
    add_custom_target(pnb_cuda_objects DEPENDS ${PNB_CUDA_OBJECTS}) # made once for all who link them
    target_link_libraries(pnb_cuda INTERFACE ${PNB_CUDART} stdc++ rt ${CMAKE_DL_LIBS})
    set(PNB_CUDA_LIBS " ${PNB_CUDART} -lstdc++ -lrt -ldl")
    message(STATUS "CUDA: ${PNB_NVCC}, for ${PNB_CUDA_ARCH}")
else()
    message(STATUS "CUDA left out (no nvcc, or a tree of checks): built without --device cuda")
endif()
