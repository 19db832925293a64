#include "transport/shm/link.h"

#include <cerrno>

#include <sys/epoll.h>

#include "core/error_text.h"

namespace tutti::shm {

Link::Link(Context& context, Descriptor socket, security::Guard guard, LinkEvents& events)
    : context_(context), socket_(std::move(socket)), guard_(std::move(guard)), events_(&events) {}

Link::~Link() { close(); }

Status Link::start() {
  const Status watched = context_.watch(socket_.get(), EPOLLIN, *this);
  watching_ = watched.ok();
  if (watched.ok()) pass_guard();
  return watched;
}

int Link::send(const Note& note, std::span<const int> descriptors) const {
  const int error = socket_ ? send_note(socket_.get(), note, descriptors) : 0;
  return error == EPIPE || error == ECONNRESET ? 0 : error;
}

void Link::close() {
  if (watching_) context_.unwatch(socket_.get());
  watching_ = false;
  socket_.reset();
}

void Link::on_ready(std::uint32_t) {
  if (passed_) {
    read_note();
  } else {
    pass_guard();
  }
}

void Link::pass_guard() {
  using State = security::Guard::State;
  const State state = guard_.advance(socket_.get());
  if (waits_writable_ != (state == State::writing)) {
    waits_writable_ = state == State::writing;
    context_.rewatch(socket_.get(), waits_writable_ ? EPOLLOUT : EPOLLIN, *this);
  }
  if (state == State::done) {
    passed_ = true;
    events_->on_open(*this);
  } else if (state == State::failed) {
    const std::string why = guard_.status().message();
    break_off(why);
  }
}

// Reads one note only, since handling it may destroy the link.
void Link::read_note() {
  Note note;
  std::vector<Descriptor> descriptors;
  const int error = receive_note(socket_.get(), note, descriptors);
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
