find_package(Threads REQUIRED)
find_package(spdlog REQUIRED)
find_package(Protobuf REQUIRED)
find_package(OpenSSL 3.0 REQUIRED)

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
