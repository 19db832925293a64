#include "tools/run/input_pipe.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace tutti::tools {

InputPipe::InputPipe(asio::io_context& io, OnTaken on_taken) : writer_(io), on_taken_(std::move(on_taken)) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe2");
  reader_ = Descriptor(ends[0]);
  writer_.assign(ends[1]);
  writer_.non_blocking(true);  // the rank's end stays blocking, as a shell would make it
}

void InputPipe::write(std::string_view bytes) {
  kept_ += bytes;
  pass_on();
}

void InputPipe::end() {
  ended_ = true;
  pass_on();
}

void InputPipe::pass_on() {
  if (waiting_) return;
  std::size_t taken = 0;
  while (writer_.is_open() && taken < kept_.size()) {
    const ssize_t bytes = ::write(writer_.native_handle(), kept_.data() + taken, kept_.size() - taken);
    if (bytes >= 0) {
      taken += static_cast<std::size_t>(bytes);
    } else if (errno == EAGAIN) {
      await_room();
      break;
    } else if (errno != EINTR) {
      close();  // the rank has closed its stdin, or has ended
    }
  }
  if (!writer_.is_open()) taken = kept_.size();
  kept_.erase(0, taken);
  if (ended_ && kept_.empty()) close();
  if (taken > 0) on_taken_(taken);
}

void InputPipe::await_room() {
  waiting_ = true;
  writer_.async_wait(asio::posix::stream_descriptor::wait_write, [this](const asio::error_code& error) {
    if (error) return;
    waiting_ = false;
    pass_on();
  });
}

void InputPipe::close() {
  asio::error_code ignored;
  writer_.close(ignored);
}

}  // namespace tutti::tools
