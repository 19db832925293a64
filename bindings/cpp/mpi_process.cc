#include "bindings/cpp/mpi_process.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <utility>

#include "core/backoff.h"
#include "core/fork_guard.h"
#include "core/random.h"
#include "core/security/digest.h"
#include "rendezvous/launch/environment.h"
#include "rendezvous/meeting/detached_call.h"

namespace tutti {
namespace {

// A waiting rank lets MPI progress this often at first, and less and less often later.
constexpr std::chrono::milliseconds first_pause{1};
constexpr std::chrono::milliseconds longest_pause{10};
// `interrupted` is called this often.
constexpr std::chrono::milliseconds question_interval{100};

}  // namespace

MpiProcess& MpiProcess::instance() {
  static auto* const process = new MpiProcess();
  return *process;
}

MpiProcess::MpiProcess() : born_(fork_generation()) {}

Status MpiProcess::begin(std::unique_lock<std::mutex>& turn, const std::string& library,
                         std::function<bool()> interrupted, Deadline deadline) {
  turn = std::unique_lock(mutex_, std::try_to_lock);
  if (!turn) {
    return Status(
        Code::invalid_argument,
        "another thread meets ranks through MPI; call one init after the other, on all ranks in the "
        "same order");
  }
  interrupted_ = std::move(interrupted);
  if (!status_.ok()) return status_;
  if (born_ != fork_generation())
    return Status(Code::invalid_argument, "a forked child cannot use the MPI of its parent");
  if (Status status = load(library); !status.ok()) return status;
  if (Status status = initialize(deadline); !status.ok()) return status;
  if (Status status = check_thread(); !status.ok()) return status;
  if (Status status = find_place(); !status.ok()) return status;
  if (Status status = check_launcher(); !status.ok()) return status;
  if (Status status = copy_world(deadline); !status.ok()) return status;
  return agree_on_world(deadline);
}

Status MpiProcess::load(const std::string& chosen) {
  if (library_) return {};
  launcher_ = mpi::launcher_of(environment_of_process());
  const std::vector<std::string> names = mpi::library_names(chosen, launcher_);
  Result<std::unique_ptr<mpi::Library>> library = mpi::Library::open(names);
  if (!library.ok()) {
    return Status(Code::unsupported, "no MPI can be used: " + library.status().message() +
                                         "; install the launcher's MPI, or let TUTTI_MPI_LIBRARY name its "
                                         "library");
  }
  library_ = *std::move(library);
  return {};
}

Status MpiProcess::initialize(Deadline deadline) {
  if (library_->is_finalized()) {
    return Status(Code::invalid_argument, "MPI is already finalized in this process, by " +
                                              library_->describe() +
                                              "; call init before MPI_Finalize, or meet elsewhere");
  }
  if (library_->is_initialized()) return {};
  const DetachedCall call([this] { return library_->initialize(); });
  const Result<int> outcome = call.wait(interrupted_, deadline);
  if (outcome.status().code() == Code::timeout) {
    return fail(
        Status(Code::timeout, "MPI_Init_thread of " + library_->describe() +
                                  " has not returned within the time given; it waits for all ranks of "
                                  "the launch"));
  }
  if (!outcome.ok()) return fail(outcome.status().with_context("MPI_Init_thread"));
  if (*outcome != mpi::success) return fail(library_->status_of(*outcome, "MPI_Init_thread"));
  // This handler runs before the handlers that MPI's libraries have registered.
  if (std::atexit([] { instance().finalize(); }) != 0)
    return fail(Status(Code::resource_exhausted, "no more functions can be registered for the exit"));
  return {};
}

void MpiProcess::finalize() {
  if (!status_.ok() || born_ != fork_generation() || library_->is_finalized()) return;
  if (messenger_ && !messenger_->close()) return;
  static_cast<void>(library_->finalize());
}

// MPI must allow calls by this thread. It need not allow calls by several threads at once, unless tutti's
// messages travel through it, since `init` returns only after its last call of MPI.
Status MpiProcess::check_thread() const {
  const mpi::ThreadLevel level = library_->thread_level();
  if (level == mpi::ThreadLevel::serialized || level == mpi::ThreadLevel::multiple) return {};
  if (library_->is_on_main_thread()) return {};
  return Status(Code::invalid_argument,
                "MPI allows calls only by the thread that has initialized it; initialize MPI with "
                "MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE, or call init on that thread");
}

Status MpiProcess::find_place() {
  const mpi::Handle world = library_->world();
  const Status rank = library_->status_of(library_->rank_in(world, rank_), "MPI_Comm_rank");
  return rank.ok() ? library_->status_of(library_->size_of(world, size_), "MPI_Comm_size") : rank;
}

// If the process and its launcher use different MPIs, MPI tells the process that it is the only rank.
Status MpiProcess::check_launcher() const {
  if (!launcher_ || launcher_->size == size_) return {};
  return Status(Code::mismatch, "the library " + library_->describe() + " finds " + std::to_string(size_) +
                                    (size_ == 1 ? " rank" : " ranks") + ", but the launcher, " +
                                    launcher_->description +
                                    ", has started another number: they belong to different MPIs; let "
                                    "TUTTI_MPI_LIBRARY name the launcher's library");
}

Status MpiProcess::copy_world(Deadline deadline) {
  if (has_copy_) return {};
  Status started =
      library_->status_of(library_->start_copy(library_->world(), communicator_, request_), "MPI_Comm_idup");
  if (!started.ok()) return fail(started);
  if (Status status = wait("MPI_Comm_idup", deadline); !status.ok()) return fail(status);
  has_copy_ = true;
  return library_->status_of(library_->return_errors(communicator_), "MPI_Comm_set_errhandler");
}

// Agrees with the other processes on a number that no other MPI world has.
Status MpiProcess::agree_on_world(Deadline deadline) {
  if (messenger_) return {};
  const Status started = start_broadcast(Secret(rank_ == 0 ? std::to_string(random_number()) : ""));
  if (!started.ok()) return started;
  const Result<Secret> text = finish_broadcast(deadline);
  if (!text.ok()) return text.status();
  std::uint64_t world = 0;
  const std::string_view digits = text->reveal();
  std::from_chars(digits.data(), digits.data() + digits.size(), world);
  messenger_.emplace(*library_, communicator_, world, rank_);
  return {};
}

Result<mpi::Messenger*> MpiProcess::messenger() {
  if (!status_.ok()) return status_;
  if (!messenger_) return Status(Code::unsupported, "the process has not joined an MPI world");
  const mpi::ThreadLevel level = library_->thread_level();
  if (level == mpi::ThreadLevel::serialized || level == mpi::ThreadLevel::multiple) return &*messenger_;
  return Status(Code::invalid_argument,
                "MPI allows calls by one thread only, but the transport mpi calls it on several threads; "
                "initialize MPI with MPI_THREAD_MULTIPLE or MPI_THREAD_SERIALIZED");
}

Status MpiProcess::start_broadcast(const Secret& text) {
  const std::string_view letters = text.reveal();
  std::ranges::fill(bytes_, std::byte{0});
  std::ranges::transform(letters, bytes_.begin(), [](char letter) { return std::byte(letter); });
  const mpi::Outcome outcome = library_->start_broadcast(bytes_, 0, communicator_, request_);
  return outcome == mpi::success ? Status() : fail(library_->status_of(outcome, "MPI_Ibcast"));
}

Result<bool> MpiProcess::progress() {
  if (!status_.ok()) return status_;
  bool done = false;
  const mpi::Outcome outcome = library_->test(request_, done);
  if (outcome != mpi::success) return fail(library_->status_of(outcome, "MPI_Test"));
  return done;
}

Result<Secret> MpiProcess::finish_broadcast(Deadline deadline) {
  if (Status status = wait("MPI_Ibcast", deadline); !status.ok()) return fail(status);
  const auto end = std::ranges::find(bytes_, std::byte{0});
  const Secret text(std::string_view(reinterpret_cast<const char*>(bytes_.data()),
                                     static_cast<std::size_t>(end - bytes_.begin())));
  std::ranges::fill(bytes_, std::byte{0});
  return text;
}

Status MpiProcess::wait(const std::string& call, Deadline deadline) {
  Backoff backoff(first_pause, longest_pause);
  Deadline question = Deadline::after(question_interval);
  for (;;) {
    const Result<bool> done = progress();
    if (!done.ok()) return done.status();
    if (*done) return {};
    if (deadline.expired())
      return Status(Code::timeout, "not all ranks have come to init within the time given (" + call + ")");
    if (question.expired()) {
      question = Deadline::after(question_interval);
      if (interrupted_ && interrupted_())
        return Status(Code::aborted, "interrupted while not all ranks had come to init (" + call + ")");
    }
    std::this_thread::sleep_for(backoff.next());
  }
}

// Remembers a failure, after which MPI is not called again.
Status MpiProcess::fail(const Status& status) {
  if (status_.ok())
    status_ = Status(Code::invalid_argument, "MPI cannot be used any more: " + status.message());
  return status;
}

}  // namespace tutti
