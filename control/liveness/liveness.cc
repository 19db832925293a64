#include "control/liveness/liveness.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <span>

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <tutti/log.h>

#include "core/error_text.h"
#include "core/fork_guard.h"
#include "core/random.h"
#include "core/signals_blocked.h"
#include "transport/driver/futex.h"
#include "transport/meeting/socket.h"

namespace tutti {

using liveness::Clock;
using liveness::Overlay;

namespace {

int milliseconds_until(Clock::time_point when) {
  if (when == Clock::time_point::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(when - Clock::now()).count();
  return static_cast<int>(std::clamp<decltype(left)>(left, 0, INT_MAX));
}

}  // namespace

Result<std::unique_ptr<Liveness>> Liveness::create(const LivenessOptions& options) {
  auto listener =
      meeting::listen_on("control connections", options.bind, options.first_port, options.last_port);
  if (!listener.ok()) return listener.status();
  std::unique_ptr<Liveness> made(new Liveness(options, *std::move(listener)));
  if (!made->wake_)
    return Status(Code::resource_exhausted,
                  "cannot make a descriptor for the control thread: " + error_text(errno));
  return made;
}

Liveness::Liveness(LivenessOptions options, Descriptor listener)
    : options_(std::move(options)),
      listener_(std::move(listener)),
      wake_(Descriptor::guarded(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))),
      born_(fork_generation()) {
  address_.host = options_.advertise.empty() ? options_.bind : options_.advertise;
  address_.port = liveness::port_of(listener_);
  address_.nonce = random_number();
  address_.process = liveness::own_identity();
}

Liveness::~Liveness() {
  if (forked()) {
    // In a forked child the thread does not exist, and its data may be inconsistent. So the child leaves both
    // alone.
    static_cast<void>(overlay_.release());
    forget(thread_);
    return;
  }
  stop();
}

bool Liveness::forked() const { return born_ != fork_generation(); }

void Liveness::meet(int rank, std::vector<PeerInfo> peers) {
  overlay_options_ = {rank,           std::move(peers),     options_.limit,
                      address_.nonce, options_.credentials, options_.hello_limit};
}

void Liveness::start(ControlEvents& events) {
  overlay_ = std::make_unique<Overlay>(overlay_options_, std::move(listener_), events);
  try {
    const SignalsBlocked blocked;
    thread_ = std::thread([this] { run(*overlay_); });
  } catch (const std::system_error& error) {
    log::warn("cannot start the control thread (", error.what(),
              "): failures of other ranks are noticed late");
    overlay_.reset();
  }
}

void Liveness::run(Overlay& overlay) {
  pthread_setname_np(pthread_self(), "tutti-control");
  overlay.start(Clock::now());
  std::vector<pollfd> waits;
  std::vector<Command> commands;
  while (!overlay.over(Clock::now())) {
    overlay.collect(waits);
    waits.push_back({wake_.get(), POLLIN, 0});
    if (poll(waits.data(), waits.size(), milliseconds_until(overlay.next())) < 0) {
      for (pollfd& wait : waits) wait.revents = 0;
    }
    std::uint64_t wakes = 0;
    static_cast<void>(read(wake_.get(), &wakes, sizeof wakes));
    waits.pop_back();
    overlay.run(waits, Clock::now());
    {
      const std::lock_guard lock(mutex_);
      commands.swap(commands_);
    }
    for (const Command& command : commands) command(overlay);
    commands.clear();
    judge_links(overlay);
  }
}

void Liveness::judge_links(const Overlay& overlay) {
  if (judged_.load() != 0) return;
  const Status unlinked = overlay.unlinked();
  {
    const std::lock_guard lock(mutex_);
    unlinked_ = unlinked;
  }
  if (unlinked.code() == Code::timeout) return;
  judged_.store(1);
  futex_wake(judged_);
}

void Liveness::post(Command command) {
  if (forked()) return;
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back(std::move(command));
  }
  const std::uint64_t one = 1;
  while (write(wake_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

Status Liveness::wait_linked(Deadline deadline) {
  if (!thread_.joinable()) return {};
  while (judged_.load() == 0 && !deadline.expired()) futex_wait(judged_, 0, deadline);
  const std::lock_guard lock(mutex_);
  return unlinked_;
}

void Liveness::stop() {
  if (forked() || !thread_.joinable()) return;
  post([](Overlay& overlay) { overlay.leave(Clock::now()); });
  thread_.join();
  overlay_.reset();
}

void Liveness::publish(std::uint32_t topic, std::uint64_t key, std::string body) {
  post([topic, key, text = std::move(body)](Overlay& overlay) { overlay.publish(topic, key, text); });
}

void Liveness::send(int rank, std::uint32_t topic, std::string body) {
  post([rank, topic, text = std::move(body)](Overlay& overlay) { overlay.send(rank, topic, text); });
}

void Liveness::give_up(int rank, const Status& why) {
  post([rank, why](Overlay& overlay) { overlay.give_up(rank, why); });
}

void Liveness::set_generation(std::uint32_t generation) {
  post([generation](Overlay& overlay) { overlay.set_generation(generation); });
}

}  // namespace tutti
