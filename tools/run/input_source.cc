#include "tools/run/input_source.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <asio/post.hpp>
#include <sys/epoll.h>
#include <unistd.h>

#include "core/descriptor.h"

namespace tutti::tools {
namespace {

constexpr std::size_t most_at_once = 16 * 1024;

}  // namespace

InputSource::InputSource(asio::io_context& io, int fd, std::size_t credit, OnInput on_input)
    : io_(io), fd_(fd), on_input_(std::move(on_input)), buffer_(most_at_once), credit_(credit) {
  Descriptor watch(epoll_create1(EPOLL_CLOEXEC));
  epoll_event event = {};
  event.events = EPOLLIN;
  if (watch && epoll_ctl(watch.get(), EPOLL_CTL_ADD, fd_, &event) == 0) {
    readable_.emplace(io, watch.release());
  }
  await_input();
}

void InputSource::give(std::uint64_t credit) {
  credit_ += credit;
  await_input();
}

void InputSource::await_input() {
  if (waiting_ || ended_ || credit_ == 0) return;
  waiting_ = true;
  const auto handler = [this](const asio::error_code& error) {
    waiting_ = false;
    if (error) return;
    read_some();
    await_input();
  };
  if (readable_) {
    readable_->async_wait(asio::posix::stream_descriptor::wait_read, handler);
  } else {
    asio::post(io_, [handler] { handler({}); });
  }
}

void InputSource::read_some() {
  const ssize_t bytes = read(fd_, buffer_.data(), std::min<std::uint64_t>(buffer_.size(), credit_));
  if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (bytes > 0) {
    credit_ -= static_cast<std::uint64_t>(bytes);
    on_input_({buffer_.data(), static_cast<std::size_t>(bytes)});
  } else {
    ended_ = true;
    on_input_({});
  }
}

}  // namespace tutti::tools
