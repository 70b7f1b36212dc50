# Program, libraries, public headers, manual pages, completion, pkg-config file, CMake package.
file(GLOB public_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/penumbra/*.h)
install(FILES ${public_headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/penumbra)
install(TARGETS penumbra_shared penumbra_static
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/share/penumbra/models
        DESTINATION ${CMAKE_INSTALL_DATADIR}/penumbra PATTERN "*.sha256" EXCLUDE)
if(TARGET penumbra)
    install(TARGETS penumbra RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    configure_file(${PROJECT_SOURCE_DIR}/cmake/penumbra.service.in penumbra.service @ONLY)
    install(FILES ${CMAKE_BINARY_DIR}/penumbra.service DESTINATION lib/systemd/system)
endif()

# What a static link needs beside the library; the OpenBLAS by its folder, see dependencies.cmake.
set(PNB_STATIC_LIBS "-L${PNB_OPENBLAS_DIR} ${PNB_RPATH_FLAGS} -Wl,-rpath,${PNB_OPENBLAS_DIR}")
string(APPEND PNB_STATIC_LIBS " -lopenblas -ljpeg -lspng -lwebp -lz -lutf8proc")
string(APPEND PNB_STATIC_LIBS "${PNB_PICTURE_LIBS}${PNB_DATABASE_LIBS}${PNB_FAISS_LIBS}${PNB_CUDA_LIBS}")
string(APPEND PNB_STATIC_LIBS " -ldl") # base/library.c
string(APPEND PNB_STATIC_LIBS " ${OpenMP_C_FLAGS} -lpthread -lm")

# The pkg-config file finds its prefix from its own place, so `cmake --install --prefix` may choose.
file(RELATIVE_PATH PNB_PREFIX_FROM_PC /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" PNB_PREFIX_FROM_PC ${PNB_PREFIX_FROM_PC})

include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/penumbra)
configure_file(${PROJECT_SOURCE_DIR}/cmake/penumbra.pc.in penumbra.pc @ONLY)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/penumbra-config.cmake.in
                              ${CMAKE_BINARY_DIR}/penumbra-config.cmake
                              INSTALL_DESTINATION ${package_dir}
                              PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(penumbra-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_BINARY_DIR}/penumbra.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${CMAKE_BINARY_DIR}/penumbra-config.cmake
        ${CMAKE_BINARY_DIR}/penumbra-config-version.cmake DESTINATION ${package_dir})

# Manual pages, completion and recipes, written by the program from its tables: penumbra(1), one page
# a command (docs/commands names them), a script for each of three shells, a file a recipe of train. Not in instrumented
# builds, nor when the program cannot run here.
if(TARGET penumbra AND NOT CMAKE_CROSSCOMPILING AND NOT (PNB_SANITIZE OR PNB_TSAN OR PNB_FUZZ OR PNB_CHECK_ONLY))
    file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/commands/*.md)
    set(commands "")
    foreach(page IN LISTS pages)
        get_filename_component(name ${page} NAME_WE)
        list(APPEND commands ${name})
    endforeach()
    set(share ${CMAKE_BINARY_DIR}/share)
    add_custom_command(
        OUTPUT ${share}/stamp
        COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:penumbra> -DOUT=${share}
                "-DCOMMANDS=${commands}" -P ${PROJECT_SOURCE_DIR}/cmake/manuals.cmake
        DEPENDS penumbra ${PROJECT_SOURCE_DIR}/cmake/manuals.cmake
        VERBATIM)
    add_custom_target(manuals ALL DEPENDS ${share}/stamp)
    install(DIRECTORY ${share}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
    install(DIRECTORY ${share}/recipes DESTINATION ${CMAKE_INSTALL_DATADIR}/penumbra)
    install(FILES ${share}/penumbra.bash RENAME penumbra
            DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(FILES ${share}/_penumbra DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
    install(FILES ${share}/penumbra.fish
            DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
