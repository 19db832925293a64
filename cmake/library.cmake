# This file defines the libraries that users get, tutti::tutti (shared) and tutti::tutti_static. It
# also installs them with the public headers. Both libraries consist of the objects of all layers,
# so this file is included after all layers.
include(CMakePackageConfigHelpers)

# Every header in include/tutti is installed and is public API. These headers include only each other and the standard
# library.
file(GLOB public_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/tutti/*.h)

get_property(TUTTI_LAYERS GLOBAL PROPERTY TUTTI_LAYERS)
list(TRANSFORM TUTTI_LAYERS REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
set(TUTTI_EXTERNAL "")
foreach(layer IN LISTS TUTTI_LAYERS)
  get_target_property(libraries ${layer} LINK_LIBRARIES)
  list(APPEND TUTTI_EXTERNAL ${libraries})
endforeach()
list(FILTER TUTTI_EXTERNAL EXCLUDE REGEX "^tutti_")
list(REMOVE_DUPLICATES TUTTI_EXTERNAL)

add_library(tutti_headers INTERFACE)
target_sources(tutti_headers INTERFACE FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include
                                       FILES ${public_headers})
target_compile_features(tutti_headers INTERFACE cxx_std_20)
set_target_properties(tutti_headers PROPERTIES EXPORT_NAME headers)

add_library(tutti SHARED ${objects})
add_library(tutti_static STATIC ${objects})
foreach(library IN ITEMS tutti tutti_static)
  add_library(tutti::${library} ALIAS ${library})
  set_target_properties(${library} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(${library} PUBLIC tutti_headers PRIVATE ${TUTTI_EXTERNAL})
endforeach()
set_target_properties(tutti PROPERTIES VERSION ${PROJECT_VERSION}
                                       SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

if(TUTTI_BUNDLE)
  set_target_properties(tutti PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH $ORIGIN)
  target_link_options(tutti PRIVATE -s)
endif()

# Hidden visibility covers tutti's own code; the version script also hides symbols from templates and static libraries.
set(version_script ${PROJECT_SOURCE_DIR}/cmake/tutti.map)
set_target_properties(tutti PROPERTIES LINK_DEPENDS ${version_script})
target_link_options(tutti PRIVATE -Wl,--version-script=${version_script} -Wl,--exclude-libs,ALL)
if(TUTTI_SANITIZE)
  target_link_options(tutti PRIVATE -fsanitize=${TUTTI_SANITIZE})
else()
  target_link_options(tutti PRIVATE -Wl,--no-undefined)
endif()

if(TUTTI_INSTALL)
  # There are two export sets, because only users of the static library need the packages that tutti
  # was built with.
  install(TARGETS tutti tutti_headers EXPORT tutti FILE_SET HEADERS)
  install(TARGETS tutti_static EXPORT tutti_static)
  set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tutti)
  install(EXPORT tutti NAMESPACE tutti:: DESTINATION ${package_dir} FILE tutti-shared.cmake)
  install(EXPORT tutti_static NAMESPACE tutti:: DESTINATION ${package_dir} FILE tutti-static.cmake)

  # A project that uses tutti_static has to find these packages too. A target's name begins with its package's name:
  # spdlog::spdlog is in the package spdlog.
  set(packages ${TUTTI_EXTERNAL})
  list(FILTER packages INCLUDE REGEX "::")
  list(TRANSFORM packages REPLACE "::.*" "")
  list(REMOVE_DUPLICATES packages)
  list(TRANSFORM packages REPLACE "^protobuf$" "Protobuf")
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/tutti-config.cmake.in
                                ${PROJECT_BINARY_DIR}/tutti-config.cmake INSTALL_DESTINATION ${package_dir})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/tutti-config-version.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/tutti-config.cmake ${PROJECT_BINARY_DIR}/tutti-config-version.cmake
          DESTINATION ${package_dir})

  # The pkg-config file is for C and for builds without CMake. It describes the shared library. All its paths are
  # relative, so that an install can be moved.
  file(RELATIVE_PATH path_to_headers ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_FULL_INCLUDEDIR})
  configure_file(${PROJECT_SOURCE_DIR}/cmake/tutti.pc.in ${PROJECT_BINARY_DIR}/tutti.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/tutti.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
endif()
