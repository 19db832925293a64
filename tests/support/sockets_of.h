#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

namespace tutti::test {

// Returns the TCP ports on which a process listens (IPv4; in this network namespace).
std::vector<std::uint16_t> listening_ports(pid_t pid);
std::size_t open_descriptors(pid_t pid);
// Returns the resident memory in bytes.
std::size_t memory_of(pid_t pid);

// A `LoopbackSocket` is a connection to a port of loopback that can send anything. The descriptor is -1 if
// there is none.
class LoopbackSocket {
 public:
  explicit LoopbackSocket(std::uint16_t port);
  ~LoopbackSocket();
  LoopbackSocket(LoopbackSocket&& other) noexcept;
  LoopbackSocket& operator=(LoopbackSocket&&) = delete;

  bool is_connected() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  void say(const std::string& text);
  // Ends the connection by a reset, as a port scan does.
  void reset();
  // Waits for the other side to close; returns false if it has not after half a minute.
  bool is_dropped();

 private:
  int descriptor_;
};

}  // namespace tutti::test
