#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <tutti/types.h>

#include "tests/support/fake_nccl_channels.h"
#include "transport/nccl/api.h"

namespace tutti::test {
class FakeWork;
}

// An `ncclComm` is a communicator of the fake NCCL.
struct ncclComm {
  ncclComm(const std::string& name, int of_rank, int of_size, int of_device)
      : rank(of_rank), size(of_size), device(of_device), channels(name, of_rank, of_size) {}

  const int rank;
  const int size;
  const int device;
  tutti::test::FakeChannels channels;
  std::atomic<bool> aborted{false};

  std::mutex mutex;  // guards the following members
  bool initialized = false;
  bool finalized = false;
  bool blocking = false;  // the communicator is never in progress
  // The number of queries for which the communicator stays in progress.
  int queries_left = 0;
  // The work that is launched when `queries_left` is 0; null if no work waits.
  std::shared_ptr<tutti::test::FakeWork> waiting;
  tutti::cuda::StreamHandle waiting_for = nullptr;  // the stream into which `waiting` will be put
  std::vector<std::shared_ptr<tutti::test::FakeWork>> launched;
  tutti::nccl::Outcome error = tutti::nccl::success;
  int calls = 0;
  std::map<std::byte*, std::size_t> registered;  // maps the first address to the number of bytes
  struct Operation {
    bool exists = true;
    std::vector<std::byte> factor;
  };
  std::vector<Operation> operations;  // premultiplied sums, including destroyed ones
};

namespace tutti::test {

// A `FakeWork` is the work of a communicator for the collectives of a group.
class FakeWork {
 public:
  explicit FakeWork(ncclComm& comm) : comm_(comm) {}

  // A `Reduction` says how elements are reduced.
  struct Reduction {
    nccl::Type type;
    nccl::Op op;
    // The factor by which every input is multiplied, as bytes of one element; empty if there is no factor.
    std::vector<std::byte> factor;
  };
  // `in` and `out` are addresses that the host can access. A null `out` means that this rank needs no output.
  void reduce(const std::byte* in, std::byte* out, std::uint64_t count, const Reduction& how, int root);
  void copy_to_all(const std::byte* in, std::byte* out, std::uint64_t bytes, int root);
  void send(const std::byte* in, std::uint64_t bytes, int peer, std::uint64_t tag);
  void receive(std::byte* out, std::uint64_t bytes, int peer, std::uint64_t tag);
  void hang() { hangs_ = true; }
  // Makes `run` wait until the groups that have called this function earlier for the same device have ended.
  void take_turn();

  // Does the work, and waits for the other ranks. Returns early if the communicator is aborted.
  void run();
  // These return whether `run` has begun, and whether it has ended.
  bool begun() const { return begun_; }
  bool over() const { return over_; }

 private:
  void await_turn() const;
  void end_turn() const;

  ncclComm& comm_;
  bool hangs_ = false;
  int turn_ = 0;  // 0 if this work waits for no other group
  std::atomic<bool> begun_{false};
  std::atomic<bool> over_{false};
  std::vector<FakeTransfer> transfers_;
  std::vector<std::function<void()>> before_;  // run before the transfers; `after_` runs after them
  std::vector<std::function<void()>> after_;
};

// Returns tutti's type.
DataType type_of(nccl::Type type);

}  // namespace tutti::test
