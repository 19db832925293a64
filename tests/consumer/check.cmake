# Builds and runs programs in a fresh folder. MODE says how they get tutti:
#   installed     project/ by find_package, from an install that was moved to another folder
#   pkg_config    the C example by pkg-config, from such an install
#   subdirectory  project/ by add_subdirectory; only configured, since tutti's own build compiles the same sources
cmake_minimum_required(VERSION 3.23)

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "${command}: ${result}\n${output}")
  endif()
  message(STATUS "${output}")
endfunction()

set(work ${WORK}/${MODE})
file(REMOVE_RECURSE ${work})
set(configure ${CMAKE_COMMAND} -G ${GENERATOR} -S ${PROJECT} -B ${work}/build -D CMAKE_CXX_COMPILER=${COMPILER}
              -D CMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -D CMAKE_C_COMPILER=${C_COMPILER} -D CMAKE_BUILD_TYPE=Debug)

if(MODE STREQUAL "subdirectory")
  run(${configure} -D TUTTI_SOURCE=${SOURCE})
  return()
endif()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/made_here)
# The installed files are moved, so that a package fails if it works only in its original folder.
file(RENAME ${work}/made_here ${work}/used_here)
set(used ${work}/used_here)

if(MODE STREQUAL "pkg_config")
  find_program(PKG_CONFIG pkg-config)
  if(NOT PKG_CONFIG)
    message(STATUS "skipped: there is no pkg-config")
    return()
  endif()
  # These are the commands of examples/README.md.
  set(ENV{PKG_CONFIG_PATH} ${used}/${LIBDIR}/pkgconfig)
  execute_process(COMMAND ${PKG_CONFIG} --cflags --libs tutti
                  OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${PKG_CONFIG} --variable=libdir tutti
                  OUTPUT_VARIABLE libdir OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  run(${C_COMPILER} -std=c11 -o ${work}/hello ${used}/share/tutti/examples/c/hello.c ${flags} -Wl,-rpath,${libdir})
  run(${used}/bin/tutti run -n 2 -- ${work}/hello)
  return()
endif()

# Every link in the installed examples' guides must lead to a file that is also installed.
file(GLOB_RECURSE guides ${used}/share/tutti/examples/*.md)
foreach(guide IN LISTS guides)
  file(READ ${guide} text)
  get_filename_component(folder ${guide} DIRECTORY)
  string(REGEX MATCHALL "\\]\\([^):#]+\\)" links "${text}")
  foreach(link IN LISTS links)
    string(REGEX REPLACE "\\]\\((.*)\\)" "\\1" link "${link}")
    if(NOT EXISTS ${folder}/${link})
      message(FATAL_ERROR "${guide} points to ${link}, which is not installed")
    endif()
  endforeach()
endforeach()

run(${configure} -D CMAKE_PREFIX_PATH=${used})
run(${CMAKE_COMMAND} --build ${work}/build)
foreach(program IN ITEMS use_tutti use_tutti_static interface_c interface_cc)
  run(${work}/build/${program})
endforeach()
