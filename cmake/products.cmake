# What is built from the rooms: libpenumbra, the program, the golden runner, the benches.
set(library_rooms ${PNB_ROOMS})
list(REMOVE_ITEM library_rooms report program server commands)
foreach(room IN LISTS library_rooms)
    get_target_property(type pnb_room_${room} TYPE)
    if(NOT type STREQUAL "INTERFACE_LIBRARY")
        list(APPEND library_objects $<TARGET_OBJECTS:pnb_room_${room}>)
    endif()
endforeach()
list(APPEND library_objects ${PNB_CUDA_OBJECTS})
set(library_links OpenMP::OpenMP_C pnb_mpi pnb_blas pnb_cuda pnb_media pnb_fonts pnb_faiss pnb_databases m)

# Exported: pnb_<letter>..., the public API; pnb__..., shared between our files, stays inside.
set(version_script ${CMAKE_BINARY_DIR}/penumbra.map)
file(CONFIGURE OUTPUT ${version_script}
     CONTENT "PENUMBRA_${PROJECT_VERSION_MAJOR} {\n  global: pnb_[a-z]*;\n  local: *;\n};\n")

add_library(penumbra_static STATIC ${library_objects})
add_library(penumbra_shared SHARED ${library_objects})
foreach(library penumbra_static penumbra_shared)
    if(PNB_CUDA_OBJECTS)
        add_dependencies(${library} pnb_cuda_objects)
    endif()
    set_target_properties(${library} PROPERTIES OUTPUT_NAME penumbra LINKER_LANGUAGE C)
    target_include_directories(${library} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                               $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()
target_link_libraries(penumbra_shared PRIVATE ${library_links})
target_link_options(penumbra_shared PRIVATE -Wl,--version-script=${version_script} -Wl,--no-undefined)
set_target_properties(penumbra_shared PROPERTIES VERSION ${PROJECT_VERSION}
                      SOVERSION ${PROJECT_VERSION_MAJOR} LINK_DEPENDS ${version_script})

if(PNB_SANITIZE OR PNB_TSAN OR PNB_FUZZ)
    set_target_properties(penumbra_static penumbra_shared PROPERTIES EXCLUDE_FROM_ALL ON)
endif()

file(GLOB cli_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cli/*.c)
if(cli_sources)
    pnb_add_whole_program(penumbra commands ${cli_sources})
    set_target_properties(penumbra PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
    # where shipped: names are looked for when the program does not stand beside share/
    target_compile_definitions(penumbra PRIVATE
        PNB_MODELS="${CMAKE_INSTALL_FULL_DATADIR}/penumbra/models")
endif()

file(GLOB golden_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/golden/*.c)
if(golden_sources)
    pnb_add_program(golden commands ${golden_sources})
    set_target_properties(golden PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
endif()

# bench/<name>.c -> build/bench/<name>, built by `make bench` only.
add_custom_target(bench_programs)
file(GLOB bench_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*.c)
foreach(source IN LISTS bench_sources)
    get_filename_component(name ${source} NAME_WE)
    pnb_add_program(bench_${name} commands EXCLUDE_FROM_ALL ${source})
    set_target_properties(bench_${name} PROPERTIES OUTPUT_NAME ${name}
                          RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
    add_dependencies(bench_programs bench_${name})
endforeach()
