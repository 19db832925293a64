# Builds and runs project/ in a fresh folder: MODE installed (cmake --install, moved elsewhere, find_package) or
# subdirectory (add_subdirectory, configured only: the same sources were compiled by the build that runs this).
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
              -D CMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -D CMAKE_BUILD_TYPE=Debug)

if(MODE STREQUAL "subdirectory")
  run(${configure} -D TUTTI_SOURCE=${SOURCE})
  return()
endif()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/made_here)
# A package that works only where it was installed first would fail here.
file(RENAME ${work}/made_here ${work}/used_here)
run(${configure} -D CMAKE_PREFIX_PATH=${work}/used_here)
run(${CMAKE_COMMAND} --build ${work}/build)
run(${work}/build/use_tutti)
run(${work}/build/use_tutti_static)
