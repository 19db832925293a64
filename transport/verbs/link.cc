#include "transport/verbs/link.h"

#include <cerrno>
#include <span>
#include <utility>

#include <sys/epoll.h>

#include "core/error_text.h"
#include "core/security/guard.h"

namespace tutti::verbs {

Link::Link(Context& context, meeting::Connection connection, LinkEvents* events)
    : context_(context),
      connection_(std::move(connection)),
      events_(events),
      may_hear_guard_(events != nullptr && context.credentials == nullptr) {}

Link::~Link() {
  if (watching_) context_.unwatch(connection_.descriptor());
}

Status Link::start() {
  const Status watched = context_.watch(connection_.descriptor(), EPOLLIN, *this);
  watching_ = watched.ok();
  return watched;
}

void Link::send(const Note& note) {
  int error = 0;
  static_cast<void>(connection_.write(std::as_bytes(std::span(&note, 1)), error));
}

void Link::on_ready(std::uint32_t) {
  int error = 0;
  have_ += connection_.read(std::as_writable_bytes(std::span(&note_, 1)).subspan(have_), error);
  if (may_hear_guard_) {
    const auto arrived = std::as_bytes(std::span(&note_, 1)).first(have_);
    if (const auto refusal = security::refusal_by_guard(arrived, "it")) return break_off(*refusal);
  }
  if (error == EAGAIN) return;
  if (error == EPIPE)
    return break_off({Code::peer_lost, "its side of the connection was closed without a goodbye"});
  if (error != 0) return break_off({Code::peer_lost, error_text(error)});
  if (have_ < sizeof note_) return;
  have_ = 0;
  may_hear_guard_ = false;
  if (!note_.is_ours()) return break_off({Code::protocol_error, "it broke the protocol"});
  const Note note = note_;
  events_->on_note(note);
}

void Link::break_off(const Status& why) {
  context_.unwatch(connection_.descriptor());
  watching_ = false;
  connection_.close();
  events_->on_broken(why);
}

}  // namespace tutti::verbs
