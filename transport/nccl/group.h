#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <tutti/status.h>

#include "core/call.h"
#include "transport/cuda/device.h"
#include "transport/nccl/api.h"

namespace tutti::nccl {

// `Member` is this rank's end of an NCCL communicator.
struct Member {
  const Api& api;
  const cuda::Device& device;
  Comm comm;
  StreamHandle stream;  // all of the communicator's work is done in this stream
  int rank;
  int size;
};

// A `Group` hands several calls to NCCL, which carries them out together. The device must be
// `Current`.
class Group {
 public:
  explicit Group(const Member& member) : member_(member) {}

  // Hands the calls to NCCL. Sets `launched` to whether NCCL has put all of them into the stream. If not,
  // NCCL puts the rest into the stream in the background. Until that has happened, nothing else may be put
  // into the stream.
  Status start(std::span<const Call> calls, bool& launched);
  // Gives back the operations and the memory that the calls needed. NCCL must have put the calls into the
  // stream.
  Status finish();
  // Gives back only the memory. Call this instead of `finish` when NCCL's communicator no longer exists.
  Status free_memory();
  // Returns NCCL's first error, or success.
  Outcome error() const { return error_; }

 private:
  Status enqueue(const Call& call);
  Status reduce(const Call& call);
  Status reduce_blocks(const Call& call, Type type, Op op);
  Status gather_blocks(const Call& call);
  Status exchange(const Call& call);
  Status send(const std::byte* from, std::uint64_t bytes, int peer);
  Status receive(std::byte* to, std::uint64_t bytes, int peer);
  // Copies the input to separate memory, since the output will replace the input. Returns the copy's address.
  Result<const std::byte*> copy_of(const ConstBuffer& in);
  Status check(Outcome outcome, const char* attempt);

  const Member& member_;
  std::vector<Op> ops_;
  std::vector<cuda::Address> memory_;
  Outcome error_ = success;
};

}  // namespace tutti::nccl
