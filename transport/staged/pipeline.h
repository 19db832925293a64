#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "transport/cuda/device.h"
#include "transport/offload/offload.h"
#include "transport/staged/cutting.h"

namespace tutti::staged {

// A `StagedCall` is a call that a session has taken and has not reported yet.
struct StagedCall {
  OffloadCall* call = nullptr;
  Cutting cutting;
  std::unique_ptr<cuda::Event> before = nullptr;  // the call begins after this event, if any
  std::uint32_t number = 0;                       // the session's word reaches this value when the call ends
  std::optional<std::uint64_t> pieces = {};       // empty until the ranks have agreed on it
  bool asked = false;                             // the agreement on `pieces` has been started
  std::uint64_t started = 0;                      // pieces that have been started
  unsigned under_way = 0;                         // pieces started and not ended; the agreement is one
};

// A `Pipeline` carries out the pieces of calls on the host. It copies a piece into pinned memory,
// runs an ordinary collective there, and copies the result back. A few pieces are under way at the
// same time. All ranks start the same pieces in the same order.
//
// Only the driving thread calls it, and the device is `Current`.
class Pipeline {
 public:
  static constexpr std::size_t pieces_under_way = 4;

  // `self` describes this rank. A piece has at most `piece_bytes` bytes of each buffer. `device`
  // and `host` must outlive the pipeline.
  static Result<std::unique_ptr<Pipeline>> create(const cuda::Device& device, HostCalls& host,
                                                  const PeerInfo& self, std::size_t piece_bytes);

  bool has_room() const { return started_ - ended_ < slots_.size(); }
  // Starts the next piece of a call. If the call's number of pieces is not known yet, starts the agreement on
  // that number instead.
  void start(StagedCall& call);
  // Advances every piece that can advance. Returns whether any piece did.
  bool advance();
  // Returns whether a collective on the host has ended since the last `advance`.
  bool has_results() const;
  // Returns whether a copy is under way.
  bool is_copying() const;

  // Returns ok, or why all calls must end. If it is not ok, pieces under way end without a result.
  const Status& failure() const { return failure_; }
  // Makes all calls end with an error of this rank. The other ranks get the same error.
  void fail(const Status& why);
  // Makes all calls end with an error that all ranks know, or will learn of.
  void give_up(const Status& why);

 private:
  enum class Stage { free, copying_in, ready, calling, called, copying_out };
  struct Slot {
    Stage stage = Stage::free;
    std::byte* data = nullptr;  // pinned memory for an input, and behind it for an output
    cuda::Address address = 0;  // the same memory as the device sees it
    std::unique_ptr<cuda::Event> copied;
    StagedCall* call = nullptr;
    bool agrees = false;  // this collective is the agreement on the number of pieces
    std::uint64_t piece = 0;
    Status outcome;  // the outcome of the collective on the host
  };

  Pipeline(const cuda::Device& device, HostCalls& host, const PeerInfo& self, std::size_t piece_bytes);
  Status allocate();
  bool advance(Slot& slot);
  void call_host(Slot& slot);
  Call host_call(Slot& slot, const Part& in, const Part& out) const;
  void take_result(Slot& slot);
  // Copies a part of a buffer to the slot, or back. `offset` is the place in the slot.
  void copy(Slot& slot, const Part& part, cuda::Address buffer, std::size_t offset, bool to_device);
  Status enqueue(const Part& part, cuda::Address buffer, cuda::Address host, bool to_device);
  void release(Slot& slot);
  bool has_copied(Slot& slot);

  const cuda::Device& device_;
  HostCalls& host_;
  const std::string here_;
  const int world_rank_;
  const std::size_t piece_bytes_;
  std::unique_ptr<cuda::PinnedMemory> memory_;
  std::unique_ptr<cuda::Stream> in_;
  std::unique_ptr<cuda::Stream> out_;
  std::array<Slot, pieces_under_way> slots_;
  // Pieces are counted in the order in which they start. Piece n is in slot n modulo the number of slots.
  std::uint64_t started_ = 0;
  std::uint64_t called_ = 0;  // pieces whose collectives have been issued
  std::uint64_t ended_ = 0;
  Status failure_;
};

}  // namespace tutti::staged
