tutti_test(unit_mesh
  SOURCES context_table_test.cc counting_new.cc frame_test.cc spin_policy_test.cc stream_allocation_test.cc stream_channel_test.cc stream_cancel_test.cc
          stream_hostile_test.cc
  LIBS tutti_transport
  LABELS sanitize)
