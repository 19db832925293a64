#include "tests/support/link_peer.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <span>

#include <poll.h>

#include "tests/support/process.h"

namespace tutti::test {
namespace {

constexpr std::size_t length_bytes = 4;

bool wait_for(int socket, short events) {
  pollfd entry{socket, events, 0};
  return poll(&entry, 1, static_cast<int>(ample.count())) > 0;
}

std::size_t length_of(std::string_view frame) {
  std::size_t length = 0;
  for (std::size_t i = length_bytes; i-- > 0;) length = length << 8 | static_cast<unsigned char>(frame[i]);
  return length;
}

}  // namespace

void LinkPeer::send_frame(std::string_view bytes) {
  std::string frame;
  for (std::size_t i = 0; i < length_bytes; ++i) frame.push_back(static_cast<char>(bytes.size() >> (8 * i)));
  frame += bytes;
  for (std::size_t sent = 0; sent < frame.size();) {
    int error = 0;
    sent += connection_.write(std::as_bytes(std::span(frame).subspan(sent)), error);
    if (error == EAGAIN && wait_for(connection_.descriptor(), POLLOUT)) continue;
    if (error != 0) return;
  }
}

std::optional<std::string> LinkPeer::receive_frame() {
  for (;;) {
    if (incoming_.size() >= length_bytes && incoming_.size() - length_bytes >= length_of(incoming_)) {
      std::string bytes = incoming_.substr(length_bytes, length_of(incoming_));
      incoming_.erase(0, length_bytes + bytes.size());
      if (bytes.empty()) continue;  // a sign of life
      return bytes;
    }
    std::array<std::byte, 16 * 1024> buffer;
    int error = 0;
    const std::size_t got = connection_.read(buffer, error);
    incoming_.append(reinterpret_cast<const char*>(buffer.data()), got);
    if (got > 0 || (error == EAGAIN && wait_for(connection_.descriptor(), POLLIN))) continue;
    return std::nullopt;
  }
}

}  // namespace tutti::test
