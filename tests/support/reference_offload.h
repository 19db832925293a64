#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/support/reference_arithmetic.h"
#include "transport/offload/offload.h"

namespace tutti::test {

// `ReferenceOptions` say how a `ReferenceOffload` (below) behaves.
struct ReferenceOptions {
  bool host_memory = false;  // also accepts host memory
  // A session reports a call in the `polls`-th poll after the end of the call. If `polls` is zero,
  // the session's thread reports the call at once.
  unsigned polls = 0;
  std::chrono::microseconds pause{0};            // every call takes at least this long
  std::function<std::string(int rank)> facts{};  // all ranks have the same facts if this is empty
  // `ReferenceOffload::open` calls this function first. An error makes the opening fail.
  std::function<Status(OffloadPeers&)> opening{};
  // Returns whether calls of a rank can follow a stream. An error means that they cannot.
  std::function<Status(int rank, void* stream)> follows{};
  // These say whether call number `call` of a session fails on a rank, and whether it hangs there.
  std::function<Status(int rank, std::uint64_t call)> fails{};
  std::function<bool(int rank, std::uint64_t call)> hangs{};
  std::function<void(int rank)> closing{};  // the destructor of a session calls this function first
};

// A `ReferenceMeeting` connects the sessions of one communicator.
class ReferenceMeeting {
 public:
  explicit ReferenceMeeting(std::size_t size) : size_(size) {}
  using Round = std::vector<RankInput>;  // by rank
  // Adds one rank's input to call number `call`, and waits for the other ranks. Returns the inputs
  // of all ranks if their calls match. If the calls do not match or a rank is missing, `join` waits until
  // `gives_up` is true, and then returns null.
  std::shared_ptr<const Round> join(std::uint64_t call, int rank, RankInput mine,
                                    const std::atomic<bool>& gives_up);
  // Makes the ranks that wait in `join` check `gives_up` again.
  void wake();

 private:
  struct Filling {
    std::shared_ptr<Round> round;
    std::size_t arrived = 0;
    std::size_t left = 0;
    bool complete = false;  // all ranks have arrived, and their calls match
  };

  const std::size_t size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, Filling> rounds_;
};

// A `ReferenceLibrary` is shared by the reference offloads of all ranks. The ranks are threads of one
// process.
class ReferenceLibrary {
 public:
  explicit ReferenceLibrary(ReferenceOptions options = {}) : options_(std::move(options)) {}

  const ReferenceOptions& options() const { return options_; }
  std::uint64_t new_number() { return ++numbers_; }
  std::shared_ptr<ReferenceMeeting> meeting(std::uint64_t number, std::size_t size);

  std::atomic<int> sessions{0};         // existing sessions
  std::atomic<int> sessions_opened{0};  // all sessions that have been opened so far
  std::atomic<int> calls{0};
  std::atomic<int> registrations{0};
  std::atomic<int> aborts_while_closing{0};  // calls of `abort` on a session during its destructor

 private:
  const ReferenceOptions options_;
  std::atomic<std::uint64_t> numbers_{0};
  std::mutex mutex_;
  std::map<std::uint64_t, std::weak_ptr<ReferenceMeeting>> meetings_;
};

// A `ReferenceOffload` is one rank's end of a minimal offload for tests. It carries out collectives between
// threads of one process, by simple loops. Buffers that are marked as device memory really are host memory,
// and a stream is a `ToyStream`. Calls that differ in kind, root, type or count hang, as with NCCL. The
// offload does not notice if some ranks call a sum and others a maximum. The ranks then get different
// results.
class ReferenceOffload final : public Offload {
 public:
  ReferenceOffload(std::shared_ptr<ReferenceLibrary> library, int rank)
      : library_(std::move(library)), rank_(rank) {}

  std::string_view name() const override { return "reference"; }
  std::string facts() const override;
  Status fits(std::span<const PeerInfo* const> members) const override;
  bool takes_host_memory() const override { return library_->options().host_memory; }
  Status can_follow(void* stream, Memory memory) const override;
  Status takes(const Fingerprint& call, std::span<const PeerInfo* const> members) const override;
  Result<std::unique_ptr<OffloadSession>> open(OffloadPeers& peers) override;
  Result<std::unique_ptr<RegisteredMemory>> add_memory(std::span<std::byte> region) override;

 private:
  const std::shared_ptr<ReferenceLibrary> library_;
  const int rank_;
};

// A `MakeOffloads` makes the offloads of a rank (see `ClusterOptions::offloads`). The result of
// `reference_offloads` gives each rank a single `ReferenceOffload`.
using MakeOffloads = std::function<std::vector<std::unique_ptr<Offload>>(int rank)>;
MakeOffloads reference_offloads(std::shared_ptr<ReferenceLibrary> library);
MakeOffloads reference_offloads(ReferenceOptions options);

}  // namespace tutti::test
