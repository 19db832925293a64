tutti_test(unit_shm SOURCES shm_bell_test.cc shm_channel_test.cc shm_guard_test.cc shm_hostile_test.cc shm_ring_test.cc shm_share_test.cc LIBS tutti_transport LABELS sanitize)
