# Asks a GoogleTest program for its suites and writes one add_test() for each; see tutti_test.cmake.
execute_process(COMMAND ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE output RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} --gtest_list_tests failed: ${result}\n${output}")
endif()
foreach(variable IN ITEMS ARGS LABELS ENVIRONMENT)
  string(REPLACE "|" ";" ${variable} "${${variable}}")
endforeach()
set(quoted_args "")
foreach(argument IN LISTS ARGS)
  string(APPEND quoted_args " [==[${argument}]==]")
endforeach()

# Suite names start at the margin ("Types/KernelTest. # TypeParam = ..."). The names of their tests
# are indented.
string(REGEX MATCHALL "(^|\n)[^ \n]+\\." suites "${output}")
set(script "")
foreach(suite IN LISTS suites)
  string(STRIP "${suite}" suite)
  string(REGEX REPLACE "\\.$" "" suite "${suite}")
  if(suite MATCHES "DISABLED_")
    continue()
  endif()
  set(test "${NAME}.${suite}")
  string(APPEND script "add_test([==[${test}]==] [==[${PROGRAM}]==] [==[--gtest_filter=${suite}.*]==]${quoted_args})\n"
                       "set_tests_properties([==[${test}]==] PROPERTIES TIMEOUT ${TIMEOUT} "
                       "SKIP_RETURN_CODE ${SKIP_CODE} LABELS \"${LABELS}\" RUN_SERIAL ${SERIAL} ${SCHEDULE} "
                       "ENVIRONMENT \"${ENVIRONMENT};TEST_SUMMARY=${SUMMARY}\")\n")
endforeach()
file(WRITE ${LISTING} "${script}")
