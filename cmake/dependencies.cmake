# Libraries from the system, as imported targets. `tools/install-deps` installs them on Debian.
find_package(PkgConfig REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS C)
find_package(Threads REQUIRED)

pkg_check_modules(OPENBLAS openblas) # only a hint where to look
pkg_check_modules(JPEG REQUIRED IMPORTED_TARGET libjpeg)
pkg_check_modules(SPNG REQUIRED IMPORTED_TARGET spng)
pkg_check_modules(WEBP REQUIRED IMPORTED_TARGET libwebp)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)
pkg_check_modules(ZSTD IMPORTED_TARGET libzstd>=1.4) # shards packed by it
pkg_check_modules(SNAPPY IMPORTED_TARGET snappy) # pages of Parquet tables
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
# Pictures beside JPEG, PNG, WebP and BMP; each is left out when its library is not there.
pkg_check_modules(GIF IMPORTED_TARGET libgif)
pkg_check_modules(TIFF IMPORTED_TARGET libtiff-4>=4.5)
pkg_check_modules(HEIF IMPORTED_TARGET libheif>=1.15) # its header: the library is opened when needed
pkg_check_modules(RSVG librsvg-2.0>=2.52) # headers again, of both
pkg_check_modules(XML libxml-2.0)
pkg_check_modules(FREETYPE IMPORTED_TARGET freetype2)
pkg_check_modules(HARFBUZZ IMPORTED_TARGET harfbuzz)
pkg_check_modules(SQLITE IMPORTED_TARGET sqlite3>=3.35) # what collections are kept in
pkg_check_modules(POSTGRES IMPORTED_TARGET libpq>=13) # collections that several machines share
pkg_check_modules(MICROHTTPD IMPORTED_TARGET libmicrohttpd>=0.9.73) # `penumbra serve`

# Debian's `openblas` may be the pthread build, whose threads fight ours for the cores. The
# OpenMP build lives in a folder of its own, also when the alternatives system prefers another one.
find_library(PNB_OPENBLAS NAMES openblas
             HINTS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-openmp ${OPENBLAS_LIBRARY_DIRS})
find_path(PNB_OPENBLAS_INCLUDE NAMES cblas.h
          HINTS /usr/include/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-openmp ${OPENBLAS_INCLUDE_DIRS})
if(NOT PNB_OPENBLAS OR NOT PNB_OPENBLAS_INCLUDE)
    message(FATAL_ERROR "OpenBLAS was not found: apt-get install libopenblas-openmp-dev")
endif()
get_filename_component(PNB_OPENBLAS_DIR ${PNB_OPENBLAS} DIRECTORY)

# The run path goes into every program as DT_RPATH, not DT_RUNPATH: only DT_RPATH comes before
# LD_LIBRARY_PATH and is also used for what other libraries ask for, so one OpenBLAS ends up in the
# process, the OpenMP one.
set(CMAKE_INSTALL_RPATH ${PNB_OPENBLAS_DIR})
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON) # the other way pads it, and an empty part means "here"
set(PNB_RPATH_FLAGS -Wl,--disable-new-dtags)
add_link_options(${PNB_RPATH_FLAGS})

if(NOT CMAKE_CROSSCOMPILING AND NOT PNB_OPENBLAS_IS_OPENMP STREQUAL PNB_OPENBLAS)
    set(probe ${CMAKE_BINARY_DIR}/probe_openblas.c)
    file(WRITE ${probe} "int openblas_get_parallel(void);\n"
                        "int main(void) { return openblas_get_parallel() == 2 ? 0 : 1; }\n")
    try_run(probe_exit probe_compiles ${CMAKE_BINARY_DIR}/probe_openblas ${probe}
            LINK_OPTIONS -Wl,-rpath,${PNB_OPENBLAS_DIR} LINK_LIBRARIES ${PNB_OPENBLAS})
    if(NOT probe_compiles OR NOT probe_exit EQUAL 0)
        message(FATAL_ERROR "${PNB_OPENBLAS} is not the OpenMP build of OpenBLAS (its own threads "
                            "would fight ours): apt-get install libopenblas-openmp-dev")
    endif()
    set(PNB_OPENBLAS_IS_OPENMP ${PNB_OPENBLAS} CACHE INTERNAL "library that passed the check")
endif()

if(CMAKE_C_COMPILER_ID MATCHES "Clang" AND NOT PNB_SANITIZE AND NOT PNB_TSAN AND NOT PNB_FUZZ)
    message(STATUS "Clang brings its own OpenMP runtime beside OpenBLAS's: fine for checking, "
                   "but build with GCC for speed")
endif()

add_library(pnb_blas INTERFACE)
target_include_directories(pnb_blas SYSTEM INTERFACE ${PNB_OPENBLAS_INCLUDE})
target_link_libraries(pnb_blas INTERFACE ${PNB_OPENBLAS})

add_library(pnb_media INTERFACE)
target_link_libraries(pnb_media INTERFACE PkgConfig::JPEG PkgConfig::SPNG PkgConfig::WEBP
                      PkgConfig::ZLIB PkgConfig::UTF8PROC)

set(PNB_PICTURE_LIBS "") # for a static link
if(ZSTD_FOUND)
    target_link_libraries(pnb_media INTERFACE PkgConfig::ZSTD)
    target_compile_definitions(pnb_media INTERFACE PNB_HAVE_ZSTD)
    string(APPEND PNB_PICTURE_LIBS " -lzstd")
else()
    message(STATUS "libzstd missing (libzstd-dev): built without shards packed by zstd")
endif()
if(SNAPPY_FOUND)
    target_link_libraries(pnb_media INTERFACE PkgConfig::SNAPPY)
    set_source_files_properties(${PROJECT_SOURCE_DIR}/src/io/tables/parquet/parquet_codec.c PROPERTIES
                                COMPILE_DEFINITIONS PNB_HAVE_SNAPPY) # nobody else asks
    string(APPEND PNB_PICTURE_LIBS " -lsnappy")
else()
    message(STATUS "snappy missing (libsnappy-dev): built without Parquet pages packed by it")
endif()
if(GIF_FOUND)
    target_link_libraries(pnb_media INTERFACE PkgConfig::GIF)
    target_compile_definitions(pnb_media INTERFACE PNB_HAVE_GIF)
    string(APPEND PNB_PICTURE_LIBS " -lgif")
else()
    message(STATUS "giflib missing (libgif-dev): built without GIF pictures")
endif()
if(TIFF_FOUND)
    target_link_libraries(pnb_media INTERFACE PkgConfig::TIFF)
    target_compile_definitions(pnb_media INTERFACE PNB_HAVE_TIFF)
    string(APPEND PNB_PICTURE_LIBS " -ltiff")
else()
    message(STATUS "libtiff 4.5 missing (libtiff-dev): built without TIFF pictures")
endif()
if(HEIF_FOUND)
    target_include_directories(pnb_media SYSTEM INTERFACE ${HEIF_INCLUDE_DIRS})
    target_link_libraries(pnb_media INTERFACE ${CMAKE_DL_LIBS})
    target_compile_definitions(pnb_media INTERFACE PNB_HAVE_HEIF)
    string(APPEND PNB_PICTURE_LIBS " -ldl")
else()
    message(STATUS "libheif missing (libheif-dev): built without AVIF and HEIC pictures")
endif()

if(RSVG_FOUND AND XML_FOUND)
    target_include_directories(pnb_media SYSTEM INTERFACE ${RSVG_INCLUDE_DIRS} ${XML_INCLUDE_DIRS})
    target_link_libraries(pnb_media INTERFACE ${CMAKE_DL_LIBS})
    target_compile_definitions(pnb_media INTERFACE PNB_HAVE_RSVG)
    if(NOT HEIF_FOUND)
        string(APPEND PNB_PICTURE_LIBS " -ldl")
    endif()
else()
    message(STATUS "librsvg 2.52 or libxml2 missing (librsvg2-dev libxml2-dev): built without "
                   "`penumbra data clipart`, `data stamps` and `data mixed`")
endif()

add_library(pnb_http INTERFACE)
if(MICROHTTPD_FOUND)
    # its header alone: src/server/sockets/listen_library.c opens it
    target_include_directories(pnb_http SYSTEM INTERFACE ${MICROHTTPD_INCLUDE_DIRS})
    target_link_libraries(pnb_http INTERFACE ${CMAKE_DL_LIBS})
else()
    message(STATUS "libmicrohttpd 0.9.73 missing (libmicrohttpd-dev): built without `penumbra serve`")
endif()

# MPI: its headers alone; libmpi is opened by a process that mpirun started, and by no other. Only
# OpenMPI's handles are addresses that can be looked up, as src/peers/mpi.c does.
add_library(pnb_mpi INTERFACE)
target_link_libraries(pnb_mpi INTERFACE ${CMAKE_DL_LIBS})
pkg_check_modules(OPENMPI ompi-c>=4)
find_path(PNB_MPI_INCLUDE NAMES mpi.h HINTS ${OPENMPI_INCLUDE_DIRS} NO_DEFAULT_PATH)
if(OPENMPI_FOUND AND PNB_MPI_INCLUDE)
    target_include_directories(pnb_mpi SYSTEM INTERFACE ${PNB_MPI_INCLUDE})
else()
    unset(PNB_MPI_INCLUDE CACHE)
    message(STATUS "OpenMPI 4 missing (libopenmpi-dev): built without MPI; processes that torchrun "
                   "or srun start find each other by sockets")
endif()

add_library(pnb_fonts INTERFACE)
if(FREETYPE_FOUND AND HARFBUZZ_FOUND)
    # their headers alone: src/data/synth/emoji_glyph.c opens them
    target_include_directories(pnb_fonts SYSTEM INTERFACE ${FREETYPE_INCLUDE_DIRS} ${HARFBUZZ_INCLUDE_DIRS})
    target_link_libraries(pnb_fonts INTERFACE ${CMAKE_DL_LIBS})
    target_compile_definitions(pnb_fonts INTERFACE PNB_HAVE_FREETYPE)
else()
    message(STATUS "freetype2 or harfbuzz missing: built without `penumbra data emoji`")
endif()

# Approximate search: C++ behind one bridge, of which nothing gets out. The archive brings no list of
# what it needs itself.
find_library(FAISS_LIBRARY NAMES faiss)
find_path(FAISS_INCLUDE NAMES faiss/IndexHNSW.h)
include(CheckLanguage)
if(PNB_TSAN OR PNB_FUZZ)
    set(FAISS_LIBRARY "") # it is not instrumented
endif()
if(FAISS_LIBRARY AND FAISS_INCLUDE)
    # the C++ compiler beside the C compiler: their sanitizers and OpenMP are one
    if(NOT DEFINED CMAKE_CXX_COMPILER AND NOT DEFINED ENV{CXX})
        set(name g++)
        if(CMAKE_C_COMPILER_ID MATCHES "Clang")
            set(name clang++)
        endif()
        find_program(PNB_CXX NAMES ${name})
        if(PNB_CXX)
            set(CMAKE_CXX_COMPILER ${PNB_CXX})
        endif()
    endif()
    check_language(CXX)
endif()
add_library(pnb_faiss INTERFACE)
set(PNB_FAISS_LIBS "") # for a static link
if(FAISS_LIBRARY AND FAISS_INCLUDE AND CMAKE_CXX_COMPILER)
    enable_language(CXX)
    set(FAISS_FOUND TRUE)
    target_link_libraries(pnb_faiss INTERFACE ${FAISS_LIBRARY} pnb_blas stdc++)
    set(PNB_FAISS_LIBS " -lfaiss -lstdc++")
else()
    message(STATUS "FAISS missing (libfaiss-dev, g++): built without approximate search by hnsw and ivf")
endif()

add_library(pnb_databases INTERFACE)
set(PNB_DATABASE_LIBS "") # for a static link
if(SQLITE_FOUND)
    target_link_libraries(pnb_databases INTERFACE PkgConfig::SQLITE)
    target_compile_definitions(pnb_databases INTERFACE PNB_HAVE_SQLITE)
    string(APPEND PNB_DATABASE_LIBS " -lsqlite3")
else()
    message(STATUS "SQLite 3.35 missing (libsqlite3-dev): built without `penumbra collection`")
endif()
if(POSTGRES_FOUND)
    # its header alone: src/store/postgres/postgres_library.c opens it
    target_include_directories(pnb_databases SYSTEM INTERFACE ${POSTGRES_INCLUDE_DIRS})
    target_link_libraries(pnb_databases INTERFACE ${CMAKE_DL_LIBS})
    target_compile_definitions(pnb_databases INTERFACE PNB_HAVE_POSTGRES)
else()
    message(STATUS "libpq 13 missing (libpq-dev): built without collections in Postgres")
endif()
