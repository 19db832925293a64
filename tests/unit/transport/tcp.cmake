tutti_test(unit_tcp
  SOURCES driver_test.cc driver_background_test.cc tcp_coalescing_test.cc tcp_congestion_test.cc tcp_connect_test.cc
          tcp_guard_test.cc tcp_hostile_test.cc tcp_parts_test.cc tcp_segments.cc tcp_sides_test.cc
  LIBS tutti_transport
  LABELS sanitize)
