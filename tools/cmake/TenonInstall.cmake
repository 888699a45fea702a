# `cmake --install build/PRESET --prefix DIR [--component NAME]`
#
#   bin/tenon                                   component tool
#   lib/libtenon.so.*, libtenon_framework.so.*  component runtime
#   libexec/tenon/tenon-probe, tenon-worker, tenon-hiprtc  component runtime
#   libexec/tenon/tenon-drivers                 component tool
#   lib/tenon/plugins/libtenon_backend_*.so     component plugins
#   include/tenon, lib/cmake/Tenon, lib/pkgconfig, lib/libtenon*.so   component development
#
# A prefix may be moved as a whole: run paths, the CMake package and the pkg-config files are relative to where they lie.
# The folder of libraries is `lib` on every machine, for an installed tree is copied between machines with different habits;
# -DCMAKE_INSTALL_LIBDIR=lib/x86_64-linux-gnu, as packagers of distributions set it, is followed everywhere.
set(CMAKE_INSTALL_LIBDIR lib CACHE PATH "Folder of libraries below the prefix")
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

foreach(folder BINDIR LIBDIR INCLUDEDIR)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${folder}}")
    message(FATAL_ERROR "CMAKE_INSTALL_${folder} is ${CMAKE_INSTALL_${folder}}\n"
                        "why: an absolute folder could not be moved with the prefix\ntry: give it relative to the prefix")
  endif()
endforeach()
set(tenon_plugin_destination ${CMAKE_INSTALL_LIBDIR}/tenon/plugins) # where libtenon.so looks: beside itself
set(tenon_cmake_destination ${CMAKE_INSTALL_LIBDIR}/cmake/Tenon)
set(tenon_pc_destination ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# ---- names for other projects: Tenon::abi (headers), Tenon::tenon (C), Tenon::framework (C++)
set_target_properties(tenon_abi PROPERTIES EXPORT_NAME abi)
add_library(Tenon::abi ALIAS tenon_abi)
install(TARGETS tenon_abi EXPORT TenonTargets INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

foreach(library tenon tenon_framework)
  if(TARGET ${library})
    string(REPLACE "tenon_" "" name ${library})
    set_target_properties(${library} PROPERTIES EXPORT_NAME ${name} INSTALL_RPATH "$ORIGIN")
    add_library(Tenon::${name} ALIAS ${library})
    install(TARGETS ${library} EXPORT TenonTargets
            LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development
            INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  endif()
endforeach()
if(TARGET tenon_framework)
  target_compile_features(tenon_framework INTERFACE cxx_std_20)
endif()

# ---- plugins: link none of our libraries. A vendor library from an unusual place (TENON_ONEDNN_ROOT) stays findable.
get_property(tenon_backend_folders DIRECTORY ${CMAKE_SOURCE_DIR}/backends PROPERTY SUBDIRECTORIES)
foreach(folder ${tenon_backend_folders})
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(plugin ${targets})
    get_target_property(type ${plugin} TYPE)
    if(type STREQUAL "MODULE_LIBRARY" AND plugin MATCHES "^tenon_backend_")
      set_target_properties(${plugin} PROPERTIES INSTALL_RPATH "$ORIGIN" INSTALL_RPATH_USE_LINK_PATH ON)
      install(TARGETS ${plugin} LIBRARY DESTINATION ${tenon_plugin_destination} COMPONENT plugins)
    endif()
  endforeach()
endforeach()

# ---- the command
if(TARGET tenon_cli)
  file(RELATIVE_PATH to_libraries /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
  set_target_properties(tenon_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${to_libraries}")
  install(TARGETS tenon_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tool)
endif()

# ---- headers
set(tenon_header_folders ${CMAKE_SOURCE_DIR}/abi/include/tenon)
if(TARGET tenon_framework)
  list(APPEND tenon_header_folders ${CMAKE_SOURCE_DIR}/framework/include/tenon)
endif()
install(DIRECTORY ${tenon_header_folders} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp" PATTERN "*.def")

# ---- the CMake package and the pkg-config files
configure_package_config_file(${CMAKE_SOURCE_DIR}/tools/cmake/TenonConfig.cmake.in ${CMAKE_BINARY_DIR}/install/TenonConfig.cmake
                              INSTALL_DESTINATION ${tenon_cmake_destination} PATH_VARS tenon_plugin_destination)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/install/TenonConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT TenonTargets NAMESPACE Tenon:: DESTINATION ${tenon_cmake_destination} COMPONENT development)
install(FILES ${CMAKE_BINARY_DIR}/install/TenonConfig.cmake ${CMAKE_BINARY_DIR}/install/TenonConfigVersion.cmake
        DESTINATION ${tenon_cmake_destination} COMPONENT development)

file(RELATIVE_PATH tenon_pc_to_prefix /${tenon_pc_destination} /)
string(REGEX REPLACE "/$" "" tenon_pc_to_prefix "${tenon_pc_to_prefix}")
set(tenon_pcs tenon)
if(TARGET tenon_framework)
  list(APPEND tenon_pcs tenon-framework)
endif()
foreach(pc ${tenon_pcs})
  configure_file(${CMAKE_SOURCE_DIR}/tools/cmake/${pc}.pc.in ${CMAKE_BINARY_DIR}/install/${pc}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/install/${pc}.pc DESTINATION ${tenon_pc_destination} COMPONENT development)
endforeach()
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
