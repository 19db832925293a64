#include "collectives/group/failure.h"

#include <chrono>
#include <utility>

#include "control/plane.h"

namespace tutti {

namespace {

// When a connection ends, other ranks have this long to report a better cause. After that, the peer of the
// connection is blamed.
constexpr std::chrono::milliseconds grace{50};

}  // namespace

Failure::Failure(int rank, std::string name, Actor& actor)
    : rank_(rank), name_(std::move(name)), actor_(actor) {}

void Failure::note(const Status& why) {
  const std::lock_guard lock(mutex_);
  if (happened_.load(std::memory_order_relaxed)) return;
  const bool lost_ourselves = why.code() == Code::peer_lost && why.peer() == rank_;
  cause_ = lost_ourselves ? given_up(name_, rank_, why.message()) : why;
  happened_.store(true, std::memory_order_release);
}

Status Failure::status() const {
  if (!happened()) return Status();
  const std::lock_guard lock(mutex_);
  return cause_;
}

void Failure::note_known(const Status& why) {
  known_ |= !happened();
  note(why);
}

void Failure::suspect(const Status& why) {
  if (why.code() != Code::peer_lost || !actor_.others_may_know()) {
    note(why);
  } else if (!suspects_ && !happened()) {
    suspects_ = true;
    suspicion_ = why;
    confirmed_at_ = Deadline::after(grace);
  }
}

void Failure::confirm_suspicion() {
  if (!suspects_ || !confirmed_at_.expired()) return;
  suspects_ = false;
  note(suspicion_);
}

void Failure::act_now() {
  acting_ = true;
  suspects_ = false;
  const Status why = status();
  if (!std::exchange(spread_, true)) actor_.spread_failure(why, known_);
  actor_.end_operations(why);
  acting_ = false;
}

}  // namespace tutti
