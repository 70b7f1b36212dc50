# Program, libraries, public headers, pkg-config file and CMake package.
file(GLOB public_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/penumbra/*.h)
install(FILES ${public_headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/penumbra)
install(TARGETS penumbra_shared penumbra_static
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(TARGET penumbra)
    install(TARGETS penumbra RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# What a static link needs beside the library; the OpenBLAS by its folder, see dependencies.cmake.
set(PNB_STATIC_LIBS "-L${PNB_OPENBLAS_DIR} ${PNB_RPATH_FLAGS} -Wl,-rpath,${PNB_OPENBLAS_DIR}")
string(APPEND PNB_STATIC_LIBS " -llapacke -lopenblas -ljpeg -lspng -lwebp -lz -lutf8proc")
string(APPEND PNB_STATIC_LIBS "${PNB_PICTURE_LIBS}")
if(FREETYPE_FOUND AND HARFBUZZ_FOUND)
    string(APPEND PNB_STATIC_LIBS " -lharfbuzz -lfreetype")
endif()
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
