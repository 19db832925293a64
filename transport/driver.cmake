list(APPEND TUTTI_TRANSPORT_SOURCES driver.cc driver_background.cc fork_guard.cc futex.cc poller.cc
     wait_queue.cc)
