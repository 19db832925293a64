tutti_test(conformance_collectives
  SOURCES collectives_test.cc communicator_test.cc registered_test.cc shared_memory_test.cc user_calls_test.cc
          ../support/cluster.cc ../support/collective_case.cc ../support/collective_values.cc ../support/collective_matrix.cc
  LIBS tutti_collectives
  LABELS sanitize
  TIMEOUT 1200)

tutti_test(conformance_c
  SOURCES c_collectives_test.cc c_interface_test.cc
          ../support/cluster.cc ../support/collective_case.cc ../support/collective_values.cc ../support/collective_matrix.cc
  LIBS tutti_c
  LABELS sanitize)
