tutti_test(unit_tcp SOURCES driver_test.cc LIBS tutti_transport LABELS sanitize)
