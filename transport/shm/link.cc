#include <cerrno>
#include <system_error>

#include <sys/epoll.h>

#include <tutti/transport/shm/link.h>

namespace tutti::shm {

Link::Link(Hub& hub, Descriptor socket, LinkEvents& events)
    : hub_(hub), socket_(std::move(socket)), events_(&events) {}

Link::~Link() { close(); }

Status Link::start() {
  const Status watched = hub_.watch(socket_.get(), EPOLLIN, *this);
  watching_ = watched.ok();
  return watched;
}

int Link::send(const Note& note, std::span<const int> descriptors) const {
  const int error = socket_ ? send_note(socket_.get(), note, descriptors) : 0;
  return error == EPIPE || error == ECONNRESET ? 0 : error;
}

void Link::close() {
  if (watching_) hub_.unwatch(socket_.get());
  watching_ = false;
  socket_.reset();
}

// One note a time: this may be gone after it.
void Link::on_ready(std::uint32_t) {
  Note note;
  std::vector<Descriptor> descriptors;
  const int error = receive_note(socket_.get(), note, descriptors);
  if (error == EAGAIN) return;
  if (error == 0) {
    events_->on_note(*this, note, std::move(descriptors));
    return;
  }
  close();
  switch (error) {
    case EPIPE:
      return events_->on_broken(*this, "its side of the connection was closed without a goodbye");
    case EBADMSG:
      return events_->on_broken(*this, "it broke the protocol");
    case EMFILE:
      return events_->on_broken(*this, "this process has no descriptors left for what it sent");
    default:
      return events_->on_broken(*this, std::generic_category().message(error));
  }
}

}  // namespace tutti::shm
