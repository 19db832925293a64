tutti_test(conformance_store
  SOURCES store_cases.cc store_guard_test.cc store_strangers_test.cc store_tcp_test.cc store_test.cc
          store_wills_test.cc
  LIBS tutti_rendezvous
  LABELS sanitize)
