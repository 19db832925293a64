#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <tutti/deadline.h>
#include <tutti/status.h>

#include "core/descriptor.h"

namespace tutti::tools::doctor {

// A `TestSocket` is one end of a connection between two probes. Its calls block until their deadline.
//
// The side that connects sends a greeting: `greeting_start` and the secret of the run. The other
// side answers with the number of its host, in four bytes, the least significant first. The side
// that connected then sends requests:
//
// - message: a header, and as many bytes as the header says. The answer is the byte
//   `request_message`.
// - burst: a header, and any number of bytes until the sender closes its direction. The answer is
//   two numbers of eight bytes: the number of bytes that arrived, and the time in nanoseconds.
class TestSocket {
 public:
  // `socket` must be in non-blocking mode. The calls fail as soon as the descriptor `stop` is
  // readable, if one is given.
  explicit TestSocket(Descriptor socket, int stop = -1) : socket_(std::move(socket)), stop_(stop) {}

  int descriptor() const { return socket_.get(); }
  // Waits until the connection has been made. Returns 0 or an errno. The errno is ETIMEDOUT at the
  // deadline.
  int await_connection(Deadline deadline) const;
  // These return `timeout` at the deadline, and `peer_lost` if the connection has failed or ended.
  Status send(std::string_view bytes, Deadline deadline);
  Status receive(std::span<char> bytes, Deadline deadline);
  // Receives at least one byte. Returns 0 if the other side has closed its direction.
  Result<std::size_t> receive_some(std::span<char> bytes, Deadline deadline);
  // Closes the direction in which this side sends.
  void finish();

 private:
  Status await(short events, Deadline deadline) const;

  Descriptor socket_;
  int stop_;
};

inline constexpr std::string_view greeting_start = "tutti-doctor-1\r\n";
inline constexpr std::size_t pass_bytes = 32;
inline constexpr std::size_t header_bytes = 5;
inline constexpr char request_message = 'm';
inline constexpr char request_burst = 'b';
inline constexpr std::size_t longest_message = std::size_t{128} * 1024;

// Returns the header of a request: the kind, and the number of bytes that follow.
std::string header_of(char kind, std::size_t bytes);

template <std::size_t count>
std::string to_bytes(std::uint64_t number) {
  std::string bytes(count, '\0');
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(number >> (8 * i));
  return bytes;
}

std::uint64_t from_bytes(std::string_view bytes);

}  // namespace tutti::tools::doctor
