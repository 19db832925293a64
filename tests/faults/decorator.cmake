# A faulty transport around a good one.
tutti_test(faults_decorator
  SOURCES decorator_test.cc ../support/cluster.cc ../support/collective_case.cc ../support/collective_values.cc ../support/faulty_transport.cc
  LIBS tutti_collectives
  LABELS sanitize
  TIMEOUT 900)
