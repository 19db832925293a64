# tutti_layer() compiles one layer (a folder of the source tree) into a static library, which tests link. The same
# objects also go into the installed library (cmake/library.cmake).
include(GNUInstallDirs)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
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
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

add_library(tutti_options INTERFACE)
# Public headers are included as <tutti/...>, all others by their path from the root of the source tree.
target_include_directories(tutti_options INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR})
target_compile_options(tutti_options INTERFACE -Wall -Wextra -Wpedantic
                                               $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
                                               $<$<CXX_COMPILER_ID:GNU>:-Wshadow=local>
                                               $<$<BOOL:${TUTTI_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # The optimised operator+ of std::string causes false alarms (GCC bug 105651).
  target_compile_options(tutti_options INTERFACE -Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  target_compile_options(tutti_options INTERFACE -Wthread-safety)
endif()
if(TUTTI_SANITIZE)
  target_compile_options(tutti_options INTERFACE -fsanitize=${TUTTI_SANITIZE} -fno-sanitize-recover=all
                                                 -fno-omit-frame-pointer)
  target_link_options(tutti_options INTERFACE -fsanitize=${TUTTI_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # GCC warns without reason about code that the sanitizers insert. The set of these warnings even
    # depends on the length of the path to the source tree.
    target_compile_options(tutti_options INTERFACE -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread
                                                   -Wno-maybe-uninitialized)
  endif()
endif()

if(TUTTI_FUZZ)
  target_compile_options(tutti_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# tutti_layer(NAME SOURCES... DEPENDS...) adds the static library tutti_NAME.
function(tutti_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 LAYER "" "" "SOURCES;DEPENDS")
  add_library(tutti_${name} STATIC ${LAYER_SOURCES})
  target_link_libraries(tutti_${name} PUBLIC tutti_options ${LAYER_DEPENDS})
  set_property(GLOBAL APPEND PROPERTY TUTTI_LAYERS tutti_${name})
endfunction()
