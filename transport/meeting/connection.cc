#include "transport/meeting/connection.h"

namespace tutti::meeting {

security::Guard::State Connection::pass() {
  using State = security::Guard::State;
  if (guard_ == nullptr) return State::done;
  const State state = guard_->advance(socket_.get());
  if (state != State::done) return state;
  if (!guard_->is_open()) proved_ = guard_->from();
  stream_.encrypt(guard_->take_tls());
  guard_.reset();
  return State::done;
}

}  // namespace tutti::meeting
