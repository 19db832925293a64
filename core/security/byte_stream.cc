#include "core/security/byte_stream.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>

#include <sys/socket.h>
#include <sys/uio.h>

namespace tutti::security {
namespace {

// If a write has several parts with up to this many bytes in all, they are first copied into one buffer. That
// is faster than giving the kernel a list of buffers.
constexpr std::size_t gathered_bytes = 512;
constexpr int flags = MSG_NOSIGNAL | MSG_DONTWAIT;

template <class Spans>
std::size_t bytes_in(const Spans& spans) {
  std::size_t bytes = 0;
  for (const auto& span : spans) bytes += span.size();
  return bytes;
}

// A `Message` holds the buffers of one read or write in the form that recvmsg() and sendmsg() take.
class Message {
 public:
  template <class Spans>
  explicit Message(const Spans& spans) {
    assert(spans.size() <= vector_.size());
    for (const auto& span : spans) {
      vector_[header_.msg_iovlen++] = {const_cast<std::byte*>(span.data()), span.size()};
    }
    header_.msg_iov = vector_.data();
  }
  msghdr* get() { return &header_; }

 private:
  std::array<iovec, 16> vector_;
  msghdr header_{};
};

// Makes a system call, and repeats it when a signal has interrupted it. Returns how many bytes it moved.
template <class Call>
std::size_t moved(Call call, int& error) {
  ssize_t result = 0;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  error = result < 0 ? errno : 0;
  return result < 0 ? 0 : static_cast<std::size_t>(result);
}

std::size_t send_parts(int socket, ByteStream::Parts parts, std::size_t bytes, int& error) {
  std::array<std::byte, gathered_bytes> gathered;
  const std::byte* whole = parts.front().data();
  if (parts.size() > 1) {
    if (bytes > gathered.size()) {
      Message message(parts);
      return moved([&] { return ::sendmsg(socket, message.get(), flags); }, error);
    }
    std::byte* end = gathered.data();
    for (const auto& part : parts) end = std::copy(part.begin(), part.end(), end);
    whole = gathered.data();
  }
  return moved([&] { return ::send(socket, whole, bytes, flags); }, error);
}

}  // namespace

std::size_t ByteStream::read(int socket, std::span<std::byte> place, int& error) {
  error = 0;
  if (place.empty()) return 0;
  if (tls_ != nullptr) return tls_->read(place, error);
  const std::size_t got =
      moved([&] { return ::recv(socket, place.data(), place.size(), MSG_DONTWAIT); }, error);
  if (got == 0 && error == 0) error = EPIPE;
  return got;
}

std::size_t ByteStream::read(int socket, std::span<std::byte> first, std::span<std::byte> second,
                             int& error) {
  if (tls_ != nullptr || second.empty()) return read(socket, first, error);
  const std::array places = {first, second};
  Message message(places);
  const std::size_t got = moved([&] { return ::recvmsg(socket, message.get(), MSG_DONTWAIT); }, error);
  if (got == 0 && error == 0) error = EPIPE;
  return got;
}

std::size_t ByteStream::write(int socket, Parts parts, int& error) {
  error = 0;
  const std::size_t bytes = bytes_in(parts);
  if (bytes == 0) return 0;
  if (tls_ == nullptr) return send_parts(socket, parts, bytes, error);
  const std::size_t written = tls_->write(parts, error);
  if (written > 0) error = 0;
  return written;
}

}  // namespace tutti::security
