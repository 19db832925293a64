#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>

#include "transport/cuda/device.h"
#include "transport/cuda/word.h"
#include "transport/offload/offload.h"
#include "transport/staged/pipeline.h"

namespace tutti::staged {

// A `Session` carries out the calls of one communicator, one after the other, on one device. It reports them
// in the order in which they were issued.
class Session final : public OffloadSession {
 public:
  // Opens a session. All members must call this function, and it blocks.
  static Result<std::unique_ptr<Session>> open(const cuda::Api& api, OffloadPeers& peers,
                                               std::size_t piece_bytes);
  ~Session() override;

  void issue(std::span<OffloadCall* const> calls) override;
  void abort(const Status& why) override;
  Result<StreamWait> wait_on(OffloadCall& call, void* stream) override;
  bool poll() override;
  bool prepare_sleep() override { return pipeline_->has_results(); }
  Deadline next_deadline() const override;

 private:
  using Calls = std::deque<std::unique_ptr<StagedCall>>;

  Session(std::unique_ptr<cuda::Device> device, int rank, int size, std::size_t piece_bytes)
      : device_(std::move(device)), rank_(rank), size_(size), piece_bytes_(piece_bytes) {}
  Status allocate(OffloadPeers& peers);
  // Checks a call and records the event after which it begins.
  Result<std::unique_ptr<StagedCall>> accept(OffloadCall& call) const;
  bool take_new_calls();
  bool move_on();
  bool start_pieces();
  bool report_calls();
  // Releases the streams that wait for call `number` or an earlier call.
  void release_streams(std::uint32_t number);
  // Releases all streams some time after a failure, even if copies are still under way.
  void lose_patience();
  Result<bool> may_begin(StagedCall& call);
  bool is_over(const StagedCall& call) const;

  const std::shared_ptr<cuda::Device> device_;
  const int rank_;
  const int size_;
  const std::size_t piece_bytes_;
  std::unique_ptr<HostCalls> host_;
  std::shared_ptr<cuda::Word> word_;  // counts the calls that have ended
  std::unique_ptr<Pipeline> pipeline_;
  std::atomic<std::size_t> open_calls_{0};  // calls that have not been reported
  std::mutex mutex_;                        // guards the next two members
  Calls new_calls_;
  std::uint32_t last_number_ = 0;
  // Only the driving thread uses these members.
  Calls calls_;
  std::size_t starting_ = 0;  // index of the first of `calls_` whose pieces have not all been started
  bool watches_device_ = false;
  Deadline patience_ = Deadline::never();  // streams wait for failed calls until this time
};

}  // namespace tutti::staged
