list(APPEND TUTTI_TRANSPORT_SOURCES
     shm/address.cc
     shm/bell.cc
     shm/channel.cc
     shm/connector.cc
     shm/factory.cc
     shm/gathering.cc
     shm/joining.cc
     shm/link.cc
     shm/listener.cc
     shm/local_socket.cc
     shm/pipe.cc
     shm/segment.cc
     shm/shared_memory.cc
     shm/shares.cc
     shm/transport.cc)
