find_package(Threads REQUIRED)
if(TUTTI_BUNDLE)
  set(OPENSSL_USE_STATIC_LIBS ON)
  # Protobuf stays shared: Debian's archive of it is not made for shared libraries.
endif()
find_package(spdlog REQUIRED)
find_package(Protobuf REQUIRED)
find_package(OpenSSL 3.0 REQUIRED)
if(TUTTI_BUNDLE AND TARGET fmt::fmt-header-only)
  # Some systems' spdlog has its fmt in a library of its own.
  get_target_property(spdlog_libraries spdlog::spdlog_header_only INTERFACE_LINK_LIBRARIES)
  list(TRANSFORM spdlog_libraries REPLACE "^fmt::fmt$" "fmt::fmt-header-only")
  set_target_properties(spdlog::spdlog_header_only PROPERTIES INTERFACE_LINK_LIBRARIES "${spdlog_libraries}")
endif()

# Asio is header-only and brings no CMake package on most systems.
find_path(ASIO_INCLUDE_DIR asio.hpp REQUIRED)
add_library(tutti_asio INTERFACE)
target_include_directories(tutti_asio SYSTEM INTERFACE ${ASIO_INCLUDE_DIR})
target_compile_definitions(tutti_asio INTERFACE ASIO_STANDALONE ASIO_NO_DEPRECATED)
target_link_libraries(tutti_asio INTERFACE Threads::Threads)
if(TUTTI_SANITIZE MATCHES thread)
  # Asio's fences around handlers: the sanitizer does not model them, and g++ therefore rejects them.
  target_compile_definitions(tutti_asio INTERFACE ASIO_DISABLE_FENCED_BLOCK)
endif()
