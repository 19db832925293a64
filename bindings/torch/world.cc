#include "bindings/torch/world.h"

#include <exception>
#include <future>
#include <mutex>

#include "bindings/torch/error.h"
#include "bindings/torch/signals.h"
#include "bindings/torch/work.h"

namespace tutti_torch {
namespace {

// Ctrl-C ends a wait after this time at most.
constexpr std::chrono::milliseconds interrupt_interval{100};

// A `DefaultWorld` is never destroyed, since groups may outlive static objects.
struct DefaultWorld {
  std::mutex mutex;
  std::weak_ptr<World> world;
};

DefaultWorld*& default_world() {
  static auto* world = new DefaultWorld;
  return world;
}

// A `MadeGroup` is the outcome of one call of tutti_comm_group.
struct MadeGroup {
  int code = TUTTI_OK;
  tutti_comm* comm = nullptr;
  std::exception_ptr error;
};

MadeGroup make(tutti_comm* all, const std::vector<int>& ranks, std::chrono::milliseconds timeout) {
  tutti_call_options options = TUTTI_CALL_OPTIONS_INIT;
  options.timeout_ns = std::chrono::nanoseconds(timeout).count();
  MadeGroup made;
  made.code = tutti_comm_group(all, ranks.data(), ranks.size(), 0, &options, &made.comm);
  if (made.code != TUTTI_OK) made.error = last_error(made.code, "making a group", timeout);
  return made;
}

}  // namespace

// Does nothing in a forked child, because a thread that exists only in the parent may hold a lock
// for ever.
World::~World() {
  if (birth_.forked_since()) return;
  tutti_comm_free(maker_);
  completions_->stop();
}

void World::serve_as_default(const std::shared_ptr<World>& world) {
  const std::lock_guard lock(default_world()->mutex);
  default_world()->world = world;
}

void World::forget_default() { default_world() = new DefaultWorld; }

std::shared_ptr<World> World::of_default_group() {
  const std::lock_guard lock(default_world()->mutex);
  return default_world()->world.lock();
}

tutti_comm* World::make_group(const std::vector<int>& ranks, std::chrono::milliseconds timeout) {
  birth_.check();
  if (tutti_comm_status(maker_) != TUTTI_OK) return nullptr;
  std::future<MadeGroup> outcome;
  {
    const SignalsBlocked blocked;
    outcome = std::async(std::launch::async, make, maker_, ranks, timeout);
  }
  while (outcome.wait_for(interrupt_interval) != std::future_status::ready) {
    try {
      check_interrupt();
    } catch (...) {
      static_cast<void>(tutti_comm_abort(maker_, "interrupted"));
      tutti_comm_free(outcome.get().comm);
      throw;
    }
  }
  const MadeGroup made = outcome.get();
  const bool lost = made.code == TUTTI_ERROR_PEER_LOST || made.code == TUTTI_ERROR_ABORTED;
  if (made.code != TUTTI_OK && !lost) std::rethrow_exception(made.error);
  return made.comm;
}

}  // namespace tutti_torch
