#include "transport/shm/link.h"

#include <cerrno>

#include <sys/epoll.h>

#include "core/error_text.h"

namespace tutti::shm {

Link::Link(Context& context, Descriptor socket, security::Guard guard, LinkEvents& events)
    : context_(context), connection_(std::move(socket), std::move(guard)), events_(&events) {}

Link::Link(Context& context, meeting::Connection connection)
    : context_(context), connection_(std::move(connection)) {}

Link::~Link() { close(); }

Status Link::start() {
  const Status watched = context_.watch(connection_.descriptor(), EPOLLIN, *this);
  watching_ = watched.ok();
  if (watched.ok() && connection_.is_guarded()) pass_guard();
  return watched;
}

int Link::send(const Note& note, std::span<const int> descriptors) const {
  const int error = connection_ ? send_note(connection_.descriptor(), note, descriptors) : 0;
  return error == EPIPE || error == ECONNRESET ? 0 : error;
}

void Link::close() {
  if (watching_) context_.unwatch(connection_.descriptor());
  watching_ = false;
  connection_.close();
}

Code Link::failure() const {
  const security::Guard* const guard = connection_.guard();
  return guard == nullptr || guard->status().ok() ? Code::peer_lost : guard->status().code();
}

void Link::on_ready(std::uint32_t) {
  if (connection_.is_guarded()) {
    pass_guard();
  } else {
    read_note();
  }
}

void Link::pass_guard() {
  using State = security::Guard::State;
  const State state = connection_.pass();
  if (waits_writable_ != (state == State::writing)) {
    waits_writable_ = state == State::writing;
    context_.rewatch(connection_.descriptor(), waits_writable_ ? EPOLLOUT : EPOLLIN, *this);
  }
  if (state == State::done) {
    events_->on_open(*this);
  } else if (state == State::failed) {
    const std::string why = connection_.guard()->status().message();
    break_off(why);
  }
}

// Reads a single note, since handling it may destroy the link.
void Link::read_note() {
  Note note;
  std::vector<Descriptor> descriptors;
  const int error = receive_note(connection_.descriptor(), note, descriptors);
  switch (error) {
    case 0:
      return events_->on_note(*this, note, std::move(descriptors));
    case EAGAIN:
      return;
    case EPIPE:
      return break_off("its side of the connection was closed without a goodbye");
    case EBADMSG:
      return break_off("it broke the protocol");
    default:
      return break_off(error_text(error));
  }
}

void Link::break_off(const std::string& why) {
  close();
  events_->on_broken(*this, why);
}

}  // namespace tutti::shm
