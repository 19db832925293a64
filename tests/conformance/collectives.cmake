tutti_test(conformance_collectives
  SOURCES collectives_test.cc communicator_test.cc registered_test.cc shared_memory_test.cc
          ../support/cluster.cc ../support/collective_case.cc ../support/collective_matrix.cc
  LIBS tutti_collectives
  LABELS sanitize
  TIMEOUT 600)
