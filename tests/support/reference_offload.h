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

// `ReferenceOffload` is the smallest offload, for tests; it is declared last in this file.
//
// `ReferenceOptions` say how the reference offload behaves.
struct ReferenceOptions {
  bool host_memory = false;                      // it takes host memory, too
  unsigned polls = 0;                            // reports after so many polls; 0: from its own thread
  std::chrono::microseconds pause{0};            // every call takes this long
  std::function<std::string(int rank)> facts{};  // empty: the same on all ranks
  // Called when a session is opened, before anything else happens there.
  std::function<Status(OffloadPeers&)> opening{};
  // These say, for call number `call` of a rank's session, whether it fails or hangs there.
  std::function<Status(int rank, std::uint64_t call)> fails{};
  std::function<bool(int rank, std::uint64_t call)> hangs{};
};

// A `ReferenceMeeting` is where the sessions of one communicator meet.
class ReferenceMeeting {
 public:
  explicit ReferenceMeeting(std::size_t size) : size_(size) {}
  using Round = std::vector<RankInput>;  // by rank
  // Brings one rank's input to call number `call`, and returns the inputs of all ranks. Waits for the other
  // ranks, and for ever if their calls do not match. Returns null once `gives_up` is true.
  std::shared_ptr<const Round> join(std::uint64_t call, int rank, RankInput mine,
                                    const std::atomic<bool>& gives_up);
  // Lets the ranks look whether they shall give up.
  void wake();

 private:
  struct Filling {
    std::shared_ptr<Round> round;
    std::size_t arrived = 0;
    std::size_t left = 0;
    bool complete = false;  // all have arrived, and their calls match
  };

  const std::size_t size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, Filling> rounds_;
};

// A `ReferenceLibrary` is what the reference offloads of all ranks share: they are threads of one process.
class ReferenceLibrary {
 public:
  explicit ReferenceLibrary(ReferenceOptions options = {}) : options_(std::move(options)) {}

  const ReferenceOptions& options() const { return options_; }
  std::uint64_t new_number() { return ++numbers_; }
  std::shared_ptr<ReferenceMeeting> meeting(std::uint64_t number, std::size_t size);

  std::atomic<int> sessions{0};         // those that exist
  std::atomic<int> sessions_opened{0};  // those that have ever existed
  std::atomic<int> calls{0};
  std::atomic<int> registrations{0};

 private:
  const ReferenceOptions options_;
  std::atomic<std::uint64_t> numbers_{0};
  std::mutex mutex_;
  std::map<std::uint64_t, std::weak_ptr<ReferenceMeeting>> meetings_;
};

// A `ReferenceOffload` is one rank's end of the smallest offload: it carries out collectives between threads
// of one process, by straight loops. Memory that is marked as that of a device really is host memory, and a
// stream is a `ToyStream`. As with NCCL, calls that differ in their shape hang, and sum against max gives
// nonsense.
class ReferenceOffload final : public Offload {
 public:
  ReferenceOffload(std::shared_ptr<ReferenceLibrary> library, int rank)
      : library_(std::move(library)), rank_(rank) {}

  std::string_view name() const override { return "reference"; }
  std::string facts() const override;
  Status fits(std::span<const PeerInfo* const> members) const override;
  bool takes_host_memory() const override { return library_->options().host_memory; }
  Status takes(const Fingerprint& call) const override;
  Result<std::unique_ptr<OffloadSession>> open(OffloadPeers& peers) override;
  Result<std::unique_ptr<RegisteredMemory>> add_memory(std::span<std::byte> region) override;

 private:
  const std::shared_ptr<ReferenceLibrary> library_;
  const int rank_;
};

// Returns a function that makes the only offload of each rank, for `ClusterOptions::offloads`.
using MakeOffloads = std::function<std::vector<std::unique_ptr<Offload>>(int rank)>;
MakeOffloads reference_offloads(std::shared_ptr<ReferenceLibrary> library);
MakeOffloads reference_offloads(ReferenceOptions options);

}  // namespace tutti::test
