# tests/meta/*.sh: checks of the sources, and of the products of a Release build. Sanitizers add
# symbols of their own, so a sanitized tree looks at the Release tree named by PNB_RELEASE_DIR.
set(release_dir ${CMAKE_BINARY_DIR})
if(PNB_SANITIZE OR PNB_TSAN OR PNB_FAULTS)
    set(release_dir ${PNB_RELEASE_DIR})
endif()

function(pnb_meta_test name)
    pnb_register_test(meta_${name} bash ${PROJECT_SOURCE_DIR}/tests/meta/${name}.sh)
    set_property(TEST meta_${name} APPEND PROPERTY ENVIRONMENT
                 PNB_SOURCE_DIR=${PROJECT_SOURCE_DIR} PNB_RELEASE_DIR=${release_dir})
    set_tests_properties(meta_${name} PROPERTIES SKIP_RETURN_CODE 77)
endfunction()

foreach(name layers house advice paths faults headers format style counting run_tests check_only deps
        bench_results optional sanitizers)
    pnb_meta_test(${name})
endforeach()
if(release_dir)
    foreach(name symbols blas install address_space)
        pnb_meta_test(${name})
    endforeach()
else()
    message(STATUS "No PNB_RELEASE_DIR: checks of symbols, BLAS and installation are left out")
endif()
