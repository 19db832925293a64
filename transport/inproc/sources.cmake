list(APPEND TUTTI_TRANSPORT_SOURCES inproc/channel.cc inproc/factory.cc inproc/hub.cc inproc/transport.cc)
