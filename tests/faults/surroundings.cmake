# Interrupted, forked, without descriptors, with a clock that jumps.
add_executable(adversity_rank ../support/adversity_rank.cc)
target_link_libraries(adversity_rank PRIVATE tutti_static tutti_options)
set_target_properties(adversity_rank PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/tests)
tutti_test(faults_surroundings SOURCES surroundings_test.cc LIBS tutti_test_process LABELS sanitize TIMEOUT 900)
add_dependencies(faults_surroundings adversity_rank)
