# tutti_test(NAME SOURCES ... LIBS ... [LABELS ...] [TIMEOUT s] [ARGS ...] [CORES n] [COST n] [SERIAL] [WAITS]
#            [ONE_THREAD])
#
# Adds the GoogleTest program build/<preset>/bin/tests/NAME and one ctest entry for each of its
# suites, `NAME.Suite`. An entry for each test would need a process for each test. An entry for each
# whole program would leave cores idle, and would hide which part of the program failed. The labels
# of an entry are the folder of its area (unit, conformance, ...) and LABELS. CI also runs tests
# with the label "sanitize" under the sanitizers, but not under tsan if the program has only one
# thread (ONE_THREAD), since ThreadSanitizer would find nothing there. TIMEOUT applies to one suite.
# It is meant to end only suites that hang, so it is far longer than a suite takes on a slow
# machine. No other test runs at the same time as a SERIAL suite. A suite counts as one busy core,
# or as CORES busy cores. A suite that waits most of the time (WAITS) counts as a quarter of a core.
# ctest starts the suites with the highest COST first. A suite in which every test is skipped counts
# as skipped. Sources may use TUTTI_BIN_DIR (the folder of `tutti` and the examples) and
# TUTTI_SOURCE_DIR.
set(TUTTI_TEST_DISCOVER ${CMAKE_CURRENT_LIST_DIR}/discover.cmake)
set(TUTTI_TEST_SKIP_CODE 77)
# `./dev test` counts in quarters of a core, so a test that keeps a core busy has four PROCESSORS in ctest.
set(TUTTI_TEST_CORE 4)

# A sanitizer stops the program at its first finding. ctest then reports a failure.
set(TUTTI_TEST_ENVIRONMENT
    ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1
    UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
    TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1)

function(tutti_test name)
  cmake_parse_arguments(PARSE_ARGV 1 TEST "ONE_THREAD;SERIAL;WAITS" "CORES;COST;TIMEOUT" "SOURCES;LIBS;LABELS;ARGS")
  if(TEST_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "tutti_test(${name}): unknown arguments: ${TEST_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 300)
  endif()
  if(TUTTI_SANITIZE)
    math(EXPR TEST_TIMEOUT "${TEST_TIMEOUT} * 4")
  endif()
  if(NOT TEST_CORES)
    set(TEST_CORES 1)
  endif()
  math(EXPR processors "${TEST_CORES} * ${TUTTI_TEST_CORE}")
  set(schedule "PROCESSORS ${processors}")
  if(TEST_COST)
    string(APPEND schedule " COST ${TEST_COST}")
  endif()
  if(TEST_WAITS)
    # ctest starts a suite with WAITS first, and other tests use the rest of its core.
    set(schedule "PROCESSORS 1 COST 20")
  endif()
  file(RELATIVE_PATH area ${PROJECT_SOURCE_DIR}/tests ${CMAKE_CURRENT_SOURCE_DIR})
  string(REGEX REPLACE "/.*" "" area "${area}")

  add_executable(${name} ${TEST_SOURCES})
  target_link_libraries(${name} PRIVATE tutti_test_main ${TEST_LIBS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/tests)
  target_compile_definitions(${name} PRIVATE TUTTI_BIN_DIR="${PROJECT_BINARY_DIR}/bin"
                                             TUTTI_SOURCE_DIR="${PROJECT_SOURCE_DIR}")

  # The suites are known only once the program exists, so a step after linking writes the file that ctest reads.
  set(listing ${CMAKE_CURRENT_BINARY_DIR}/${name}_suites.cmake)
  set(include_file ${CMAKE_CURRENT_BINARY_DIR}/${name}_include.cmake)
  list(JOIN TEST_ARGS "|" arguments)
  set(labels ${area} ${TEST_LABELS})
  if(NOT "sanitize" IN_LIST labels)
    # The source files of one program may use one name for different things, so no unity build can join them.
    set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  elseif(TEST_ONE_THREAD AND TUTTI_SANITIZE MATCHES thread)
    list(REMOVE_ITEM labels sanitize)
  else()
    add_dependencies(sanitized ${name})
  endif()
  file(WRITE ${include_file} "if(EXISTS \"${listing}\")\n  include(\"${listing}\")\nelse()\n"
                             "  add_test(${name}_NOT_BUILT ${name}_NOT_BUILT)\n"
                             "  set_tests_properties(${name}_NOT_BUILT PROPERTIES LABELS \"${labels}\")\nendif()\n")
  list(JOIN labels "|" labels)
  list(JOIN TUTTI_TEST_ENVIRONMENT "|" environment)
  add_custom_command(
    TARGET ${name} POST_BUILD BYPRODUCTS ${listing}
    COMMAND ${CMAKE_COMMAND} -D NAME=${name} -D PROGRAM=$<TARGET_FILE:${name}> -D LISTING=${listing}
            -D "ARGS=${arguments}" -D "LABELS=${labels}" -D "ENVIRONMENT=${environment}" -D TIMEOUT=${TEST_TIMEOUT}
            -D SERIAL=${TEST_SERIAL} -D "SCHEDULE=${schedule}" -D SKIP_CODE=${TUTTI_TEST_SKIP_CODE}
            -D SUMMARY=${PROJECT_BINARY_DIR}/test_summary.txt -P ${TUTTI_TEST_DISCOVER}
    VERBATIM)
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${include_file})
endfunction()
