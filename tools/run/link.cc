#include "tools/run/link.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <utility>

#include <sys/epoll.h>
#include <sys/socket.h>

#include <tutti/config_values.h>

#include "core/error_text.h"

namespace tutti::tools {
namespace {

constexpr int frames_per_lease = 5;
constexpr std::size_t length_bytes = 4;
// These limit the work of one call of `on_ready`, so that the other handlers of the loop can run,
// too.
constexpr std::size_t read_bytes = 16 * 1024;
constexpr int reads_at_once = 4;
constexpr std::size_t write_bytes_at_once = 256 * 1024;

void append_length(std::string& frames, std::size_t length) {
  for (std::size_t i = 0; i < length_bytes; ++i) frames.push_back(static_cast<char>(length >> (8 * i)));
}

std::size_t length_at_front(std::string_view frames) {
  std::size_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) {
    length |= static_cast<std::size_t>(static_cast<unsigned char>(frames[i])) << (8 * i);
  }
  return length;
}

Status reason_of(int error) {
  if (error == EPIPE) return {Code::peer_lost, "the connection has ended"};
  if (error == EPROTO) return {Code::protocol_error, "what has arrived is not encrypted as agreed"};
  return {Code::peer_lost, error_text(error)};
}

}  // namespace

Link::Link(EventLoop& loop, meeting::Connection connection, LinkEvents& events, const LinkOptions& options)
    : loop_(loop), connection_(std::move(connection)), events_(events), options_(options) {
  watched_ = loop_.watch(connection_.descriptor(), EPOLLIN, *this);
  set_timer();
}

Link::~Link() { stop(); }

void Link::send(const google::protobuf::MessageLite& record) {
  if (!*open_) return;
  const bool waits = backlog() > 0;
  append_length(outgoing_, record.ByteSizeLong());
  record.AppendToString(&outgoing_);
  if (!waits) flush(write_bytes_at_once);
}

void Link::set_lease(std::chrono::nanoseconds lease) {
  if (!*open_) return;
  options_.lease = lease;
  set_timer();
}

void Link::close() {
  if (*open_) flush(backlog());
  stop();
}

void Link::stop() {
  if (!std::exchange(*open_, false)) return;
  loop_.timers.cancel(*this);
  loop_.unwatch(connection_.descriptor());
  connection_.close();
  outgoing_.clear();
  sent_ = 0;
}

void Link::end(const Status& why) {
  stop();
  events_.on_end(why);
}

void Link::on_ready(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) flush(write_bytes_at_once);
  if ((events & ~std::uint32_t{EPOLLOUT}) != 0) receive();
}

void Link::flush(std::size_t most) {
  for (std::size_t left = std::min(most, backlog()); left > 0;) {
    int error = 0;
    const auto rest = std::as_bytes(std::span(outgoing_)).subspan(sent_, left);
    const std::size_t written = connection_.write(rest, error);
    if (written > 0) said_ = Clock::now();
    sent_ += written;
    left -= written;
    if (error == EAGAIN) break;
    if (error == 0) continue;
    // Bytes that have arrived can still be read. They may hold a record that explains the failure.
    // After these bytes, a read returns the end.
    shutdown(connection_.descriptor(), SHUT_RDWR);
    sent_ = outgoing_.size();
    break;
  }
  // The sent bytes are removed when they are more than half of the buffer. So each byte is moved at
  // most once on average.
  if (sent_ > backlog()) outgoing_.erase(0, std::exchange(sent_, 0));
  const bool write_again = backlog() > 0;
  if (std::exchange(writing_, write_again) == write_again) return;
  loop_.rewatch(connection_.descriptor(), write_again ? EPOLLIN | EPOLLOUT : EPOLLIN, *this);
}

void Link::receive() {
  const std::shared_ptr<const bool> open = open_;
  std::array<char, read_bytes> buffer;
  int error = 0;
  for (int reads = 0; error == 0 && (reads < reads_at_once || connection_.has_pending()); ++reads) {
    const std::size_t got = connection_.read(std::as_writable_bytes(std::span(buffer)), error);
    incoming_.append(buffer.data(), got);
    if (got > 0) heard_ = Clock::now();
  }
  deliver();
  if (*open && error != 0 && error != EAGAIN) end(reason_of(error));
}

void Link::deliver() {
  const std::shared_ptr<const bool> open = open_;
  std::string arrived = std::exchange(incoming_, {});  // it must outlive the link
  std::size_t taken = 0;
  while (*open && arrived.size() - taken >= length_bytes) {
    const std::string_view rest = std::string_view(arrived).substr(taken);
    const std::size_t length = length_at_front(rest);
    if (length > options_.longest_record) {
      return end({Code::protocol_error, "it announces a record of " + std::to_string(length) + " bytes; " +
                                            std::to_string(options_.longest_record) + " are allowed"});
    }
    if (rest.size() - length_bytes < length) break;
    taken += length_bytes + length;
    if (length > 0) events_.on_record(rest.substr(length_bytes, length));
  }
  if (!*open) return;
  arrived.erase(0, taken);
  incoming_ = std::move(arrived);
}

void Link::set_timer() {
  // The timer must ring at once in two cases. If the connection has already received bytes, no
  // event comes for these bytes. If the connection is not watched, no events come at all.
  if (!watched_.ok() || connection_.has_pending()) return loop_.timers.set(*this, Deadline::at(heard_));
  loop_.timers.set(*this, earlier(Deadline::after(options_.lease, heard_),
                                  Deadline::after(options_.lease / frames_per_lease, said_)));
}

// The timer is not set again each time that bytes arrive or leave. It rings at its old time, and
// this function then sets it to the new time.
void Link::on_timer() {
  if (!watched_.ok()) return end(Status(watched_));  // a copy, which outlives the link
  if (is_silent() || connection_.has_pending()) {
    // Bytes that have already arrived count as a sign of life. This process may have been stopped,
    // so that it could not read them.
    const std::shared_ptr<const bool> open = open_;
    receive();
    if (!*open) return;
    if (is_silent())
      return end({Code::timeout, "nothing has arrived from it for " + format_duration(options_.lease)});
  }
  const Clock::time_point now = Clock::now();
  if (now >= Deadline::after(options_.lease / frames_per_lease, said_).when()) {
    said_ = now;
    if (backlog() == 0) append_length(outgoing_, 0);
    flush(write_bytes_at_once);
  }
  set_timer();
}

}  // namespace tutti::tools
