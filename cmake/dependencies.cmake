find_package(Threads REQUIRED)
if(TUTTI_BUNDLE)
  set(OPENSSL_USE_STATIC_LIBS ON)
  # Protobuf stays shared, since Debian's static library cannot be linked into a shared library.
endif()
# Asio is header-only and has no CMake package on most systems.
find_path(ASIO_INCLUDE_DIR asio.hpp)
find_package(spdlog QUIET)
find_package(Protobuf QUIET)
find_package(OpenSSL 3.0 QUIET)
if(TUTTI_BUILD_TOOLS)
  find_package(CLI11 QUIET)
  find_package(nlohmann_json QUIET)
endif()

# The error names all missing packages at once, by their names in Debian.
set(needs ASIO_INCLUDE_DIR libasio-dev spdlog_FOUND libspdlog-dev Protobuf_FOUND libprotobuf-dev
          Protobuf_PROTOC_EXECUTABLE protobuf-compiler OpenSSL_FOUND libssl-dev)
if(TUTTI_BUILD_TOOLS)
  list(APPEND needs CLI11_FOUND libcli11-dev nlohmann_json_FOUND nlohmann-json3-dev)
endif()
set(missing "")
while(needs)
  list(POP_FRONT needs found package)
  if(NOT ${found})
    string(APPEND missing " ${package}")
  endif()
endwhile()
if(missing)
  message(FATAL_ERROR "tutti needs libraries that are missing or too old. On Debian and Ubuntu, this installs "
                      "them:\n  sudo apt-get install${missing}")
endif()

if(TUTTI_BUNDLE AND TARGET fmt::fmt-header-only)
  # On some systems spdlog uses fmt from a separate library. A bundle uses fmt's headers instead.
  get_target_property(spdlog_libraries spdlog::spdlog_header_only INTERFACE_LINK_LIBRARIES)
  list(TRANSFORM spdlog_libraries REPLACE "^fmt::fmt$" "fmt::fmt-header-only")
  set_target_properties(spdlog::spdlog_header_only PROPERTIES INTERFACE_LINK_LIBRARIES "${spdlog_libraries}")
endif()

add_library(tutti_asio INTERFACE)
target_include_directories(tutti_asio SYSTEM INTERFACE ${ASIO_INCLUDE_DIR})
target_compile_definitions(tutti_asio INTERFACE ASIO_STANDALONE ASIO_NO_DEPRECATED)
target_link_libraries(tutti_asio INTERFACE Threads::Threads)
if(TUTTI_SANITIZE MATCHES thread)
  # This turns off Asio's fences around handlers. g++ rejects fences in this build, because
  # ThreadSanitizer does not understand them.
  target_compile_definitions(tutti_asio INTERFACE ASIO_DISABLE_FENCED_BLOCK)
endif()
