#include "transport/mpi/messenger.h"

#include <chrono>
#include <thread>
#include <utility>

#include <tutti/deadline.h>

#include "core/fork_guard.h"

namespace tutti::mpi {
namespace {

// MPI completes a cancelled receive at once, unless a large message is arriving in its memory.
constexpr std::chrono::milliseconds longest_withdrawal{200};

}  // namespace

Messenger::Messenger(const Library& library, Handle communicator, std::uint64_t world, int rank)
    : library_(library), communicator_(communicator), world_(world), rank_(rank), born_(fork_generation()) {}

Result<int> Messenger::take_tag() {
  const std::lock_guard lock(mutex_);
  if (next_tag_ > largest_tag)
    return Status(Code::resource_exhausted, "this process has made too many transports over MPI");
  return next_tag_++;
}

Status Messenger::usable() const {
  std::unique_lock<std::mutex> lock;
  return enter(lock);
}

// Takes the mutex. Returns ok, or why MPI can no longer be called. In a forked child, the mutex may be held
// by a thread that does not exist there.
Status Messenger::enter(std::unique_lock<std::mutex>& lock) const {
  if (born_ != fork_generation())
    return Status(Code::invalid_argument, "a forked child cannot use the MPI of its parent");
  lock = std::unique_lock(mutex_);
  if (!status_.ok()) return status_;
  if (!closed_ && !library_.is_finalized()) return {};
  return Status(Code::invalid_argument,
                "MPI is finalized in this process; destroy tutti's communicators before MPI_Finalize");
}

// Remembers the first failure. The caller holds the mutex.
Status Messenger::check(Outcome outcome, const char* call) {
  if (outcome == success) return {};
  status_ = library_.status_of(outcome, call);
  unfinished_.store(true);
  return status_;
}

Status Messenger::send(std::span<const std::byte> bytes, int to, int tag, Handle& request) {
  std::unique_lock<std::mutex> lock;
  if (Status status = enter(lock); !status.ok()) return status;
  return check(library_.start_send(bytes, to, tag, communicator_, request), "MPI_Isend");
}

Status Messenger::receive(std::span<std::byte> memory, int tag, Handle& request) {
  std::unique_lock<std::mutex> lock;
  if (Status status = enter(lock); !status.ok()) return status;
  return check(library_.start_receive(memory, tag, communicator_, request), "MPI_Irecv");
}

Result<bool> Messenger::has_sent(Handle& request) {
  std::unique_lock<std::mutex> lock;
  if (Status status = enter(lock); !status.ok()) return status;
  bool done = false;
  if (Status status = check(library_.test(request, done), "MPI_Test of a send"); !status.ok()) return status;
  return done;
}

Result<std::optional<std::size_t>> Messenger::received(Handle& request) {
  std::unique_lock<std::mutex> lock;
  if (Status status = enter(lock); !status.ok()) return status;
  bool done = false;
  std::optional<std::size_t> bytes;
  Status status = check(library_.test_receive(request, done, bytes), "MPI_Test of a receive");
  if (!status.ok()) return status;
  return bytes;
}

bool Messenger::withdraw(Handle& request) {
  std::unique_lock<std::mutex> lock;
  if (!enter(lock).ok() || !check(library_.cancel(request), "MPI_Cancel").ok()) return false;
  const Deadline deadline = Deadline::after(longest_withdrawal);
  for (;;) {
    bool done = false;
    if (!check(library_.test(request, done), "MPI_Test of a cancelled receive").ok()) return false;
    if (done) return true;
    if (deadline.expired()) return false;
    std::this_thread::yield();
  }
}

// A forked child has only a copy of the memory, and one of its parent's threads may hold the mutex.
void Messenger::keep(AlignedBytes memory) {
  unfinished_.store(true);
  if (born_ != fork_generation()) return;
  const std::lock_guard lock(mutex_);
  kept_.push_back(std::move(memory));
}

bool Messenger::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  return status_.ok() && !unfinished_.load();
}

}  // namespace tutti::mpi
