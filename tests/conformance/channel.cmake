# A transport adds its fixture to this list.
list(APPEND TUTTI_CHANNEL_CONFORMANCE channel_inproc_test.cc channel_shm_test.cc)
include(channel_tcp.cmake OPTIONAL)
tutti_test(conformance_channel
  SOURCES channel_conformance.cc channel_conformance_failures.cc ${TUTTI_CHANNEL_CONFORMANCE}
  LIBS tutti_transport
  LABELS sanitize
  TIMEOUT 900)
