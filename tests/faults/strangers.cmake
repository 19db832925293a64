add_executable(busy_rank ../support/busy_rank.cc)
# Instrumented where the library is.
target_link_libraries(busy_rank PRIVATE tutti_static tutti_options)
set_target_properties(busy_rank PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/tests)
tutti_test(faults_strangers
  SOURCES authentication_test.cc encryption_test.cc job.cc own_network.cc strangers_test.cc tls_attacks_test.cc
          ../support/certificates.cc ../support/sockets_of.cc ../support/tcp_proxy.cc ../support/tls_attacker.cc
  LIBS tutti_test_process tutti_core OpenSSL::SSL OpenSSL::Crypto TIMEOUT 900)
add_dependencies(faults_strangers busy_rank tutti_command)
