# How every folder of the house is compiled: one static library per layer for the tests to lean on, and the same
# objects once more in the installed library.
include(GNUInstallDirs)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

# <tutti/core/status.h> means the same in the tree and once installed.
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/include)
file(CREATE_LINK ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/include/tutti SYMBOLIC)

add_library(tutti_options INTERFACE)
target_include_directories(tutti_options INTERFACE ${PROJECT_BINARY_DIR}/include)
target_compile_options(tutti_options INTERFACE -Wall -Wextra -Wpedantic -Wnon-virtual-dtor
                                               $<$<CXX_COMPILER_ID:GNU>:-Wshadow=local>
                                               $<$<BOOL:${TUTTI_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  target_compile_options(tutti_options INTERFACE -Wthread-safety)
endif()
if(TUTTI_SANITIZE)
  target_compile_options(tutti_options INTERFACE -fsanitize=${TUTTI_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(tutti_options INTERFACE -fsanitize=${TUTTI_SANITIZE})
endif()

# tutti_layer(NAME SOURCES... DEPENDS...): static library tutti_NAME.
function(tutti_layer name)
  cmake_parse_arguments(LAYER "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(tutti_${name} STATIC ${LAYER_SOURCES})
  target_link_libraries(tutti_${name} PUBLIC tutti_options ${LAYER_DEPENDS})
  set_property(GLOBAL APPEND PROPERTY TUTTI_LAYERS tutti_${name})
endfunction()
