#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

namespace tutti::test {

// Returns the TCP ports (IPv4) on which a process listens.
std::vector<std::uint16_t> listening_ports(pid_t pid);
std::size_t open_descriptors(pid_t pid);
// Returns a process's resident memory in bytes.
std::size_t memory_of(pid_t pid);

// A `LoopbackSocket` is a connection to a loopback port, for sending arbitrary bytes. Its
// descriptor is -1 if the connection failed.
class LoopbackSocket {
 public:
  explicit LoopbackSocket(std::uint16_t port);
  ~LoopbackSocket();
  LoopbackSocket(LoopbackSocket&& other) noexcept;
  LoopbackSocket& operator=(LoopbackSocket&&) = delete;

  bool is_connected() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  void say(const std::string& text);
  // Resets the connection, as a port scan does.
  void reset();
  // Waits for the other side to close the connection. Returns false if nothing happens for half a minute.
  bool is_dropped();

 private:
  int descriptor_;
};

}  // namespace tutti::test
