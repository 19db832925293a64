#include "rendezvous/meeting/detached_call.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "core/signals_blocked.h"

namespace tutti {
namespace {

// This is the time between two calls of `interrupted`.
constexpr std::chrono::milliseconds question_interval{100};

}  // namespace

struct DetachedCall::State {
  std::mutex mutex;
  std::condition_variable returned;
  std::optional<Result<int>> result;
};

DetachedCall::DetachedCall(std::function<int()> work) : state_(std::make_shared<State>()) {
  const SignalsBlocked blocked;
  try {
    std::thread([state = state_, work = std::move(work)] {
      const int outcome = work();
      const std::lock_guard lock(state->mutex);
      state->result = outcome;
      state->returned.notify_all();
    }).detach();
  } catch (const std::system_error& error) {
    state_->result =
        Status(Code::resource_exhausted, std::string("a thread cannot be started: ") + error.what());
  }
}

Result<int> DetachedCall::wait(const std::function<bool()>& interrupted, Deadline deadline) const {
  std::unique_lock lock(state_->mutex);
  const auto there = [this] { return state_->result.has_value(); };
  for (;;) {
    const Deadline piece = earlier(deadline, Deadline::after(question_interval));
    if (state_->returned.wait_until(lock, piece.when(), there)) return *state_->result;
    if (deadline.expired()) return Status(Code::timeout, "there is no answer");
    lock.unlock();
    if (interrupted && interrupted()) return Status(Code::aborted, "interrupted while there was no answer");
    lock.lock();
  }
}

bool DetachedCall::has_returned() const {
  const std::lock_guard lock(state_->mutex);
  return state_->result.has_value();
}

}  // namespace tutti
