list(APPEND TUTTI_TRANSPORT_SOURCES driver.cc driver_background.cc fork_guard.cc futex.cc poller.cc spin_policy.cc
     wait_queue.cc)
