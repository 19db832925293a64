# Random collectives with random faults: `./dev soak`, and a short one among the tests.
add_executable(soak soak/job.cc soak/main.cc soak/plan.cc soak/player.cc ../support/collective_case.cc ../support/collective_values.cc
               ../support/collective_matrix.cc)
target_link_libraries(soak PRIVATE tutti_static tutti_options tutti_test_process)
set_target_properties(soak PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/tests)
tutti_test(faults_soak SOURCES soak_test.cc LIBS tutti_test_process LABELS sanitize TIMEOUT 900 SERIAL)
add_dependencies(faults_soak soak)
