list(APPEND TUTTI_TRANSPORT_SOURCES
     tcp/address.cc
     tcp/channel.cc
     tcp/channel_sides.cc
     tcp/congestion.cc
     tcp/connector.cc
     tcp/factory.cc
     tcp/handshake.cc
     tcp/listener.cc
     tcp/side.cc
     tcp/socket.cc
     tcp/transport.cc)
