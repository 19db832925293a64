# tutti_test(NAME SOURCES ... LIBS ... [LABELS ...] [TIMEOUT s] [ARGS ...] [SERIAL] [WAITS])
#
# A GoogleTest program build/<preset>/bin/tests/NAME with one ctest entry per test suite, `NAME.Suite`: finer would
# cost a process per test, coarser would leave cores idle and hide which part failed. Labels: the area's folder
# (unit, conformance, ...) and LABELS; "sanitize" means that CI runs it under the sanitizers too. TIMEOUT is for one
# suite, and for what hangs: far above what a slow machine takes. SERIAL suites run with nothing beside them. Suites
# that wait for most of their time (WAITS) take a quarter of a core. A suite in which every test skipped counts as
# skipped. Sources may use TUTTI_BIN_DIR (where `tutti` and the examples are)
# and TUTTI_SOURCE_DIR.
set(TUTTI_TEST_DISCOVER ${CMAKE_CURRENT_LIST_DIR}/discover.cmake)
set(TUTTI_TEST_SKIP_CODE 77)
# `./dev test` counts quarters of a core: what keeps one busy is four PROCESSORS for ctest.
set(TUTTI_TEST_CORE 4)

# Sanitizers stop at the first finding; ctest then shows it as a failure.
set(TUTTI_TEST_ENVIRONMENT
    ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1
    UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
    TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1)

function(tutti_test name)
  cmake_parse_arguments(PARSE_ARGV 1 TEST "SERIAL;WAITS" "TIMEOUT" "SOURCES;LIBS;LABELS;ARGS")
  if(TEST_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "tutti_test(${name}): unknown arguments: ${TEST_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 300)
  endif()
  if(TUTTI_SANITIZE)
    math(EXPR TEST_TIMEOUT "${TEST_TIMEOUT} * 4")
  endif()
  set(schedule "PROCESSORS ${TUTTI_TEST_CORE}")
  if(TEST_WAITS)
    set(schedule "PROCESSORS 1 COST 20")  # they start first, and leave room for others
  endif()
  file(RELATIVE_PATH area ${PROJECT_SOURCE_DIR}/tests ${CMAKE_CURRENT_SOURCE_DIR})
  string(REGEX REPLACE "/.*" "" area "${area}")

  add_executable(${name} ${TEST_SOURCES})
  target_link_libraries(${name} PRIVATE tutti_test_main ${TEST_LIBS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/tests)
  target_compile_definitions(${name} PRIVATE TUTTI_BIN_DIR="${PROJECT_BINARY_DIR}/bin"
                                             TUTTI_SOURCE_DIR="${PROJECT_SOURCE_DIR}")

  # The suites are only known once the program exists: a step after its link writes what ctest reads.
  set(listing ${CMAKE_CURRENT_BINARY_DIR}/${name}_suites.cmake)
  set(include_file ${CMAKE_CURRENT_BINARY_DIR}/${name}_include.cmake)
  list(JOIN TEST_ARGS "|" arguments)
  set(labels ${area} ${TEST_LABELS})
  if("sanitize" IN_LIST labels)
    add_dependencies(sanitized ${name})
  else()
    # Files of these may call different things by the same names.
    set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  endif()
  list(JOIN labels "|" labels)
  list(JOIN TUTTI_TEST_ENVIRONMENT "|" environment)
  add_custom_command(
    TARGET ${name} POST_BUILD BYPRODUCTS ${listing}
    COMMAND ${CMAKE_COMMAND} -D NAME=${name} -D PROGRAM=$<TARGET_FILE:${name}> -D LISTING=${listing}
            -D "ARGS=${arguments}" -D "LABELS=${labels}" -D "ENVIRONMENT=${environment}" -D TIMEOUT=${TEST_TIMEOUT}
            -D SERIAL=${TEST_SERIAL} -D "SCHEDULE=${schedule}" -D SKIP_CODE=${TUTTI_TEST_SKIP_CODE}
            -D SUMMARY=${PROJECT_BINARY_DIR}/test_summary.txt -P ${TUTTI_TEST_DISCOVER}
    VERBATIM)
  file(WRITE ${include_file} "if(EXISTS \"${listing}\")\n  include(\"${listing}\")\nelse()\n"
                             "  add_test(${name}_NOT_BUILT ${name}_NOT_BUILT)\n"
                             "  set_tests_properties(${name}_NOT_BUILT PROPERTIES LABELS \"${TEST_LABELS}\")\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${include_file})
endfunction()
