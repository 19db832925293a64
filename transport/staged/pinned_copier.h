#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>

#include "transport/cuda/device.h"
#include "transport/offload/copier.h"
#include "transport/staged/word_link.h"

namespace tutti::staged {

// A `PinnedCopier` copies in pieces, through a small amount of pinned memory. The device copies to or from
// the pinned memory, and the driving thread copies between the pinned memory and the memory of the job.
// Copies of a few pieces are under way at the same time. Pieces begin in the order in which the jobs were
// started, except that a job may have to wait for its link.
class PinnedCopier final : public Copier {
 public:
  static Result<std::unique_ptr<PinnedCopier>> create(const cuda::Api& api, int device,
                                                      std::size_t piece_bytes);
  ~PinnedCopier() override;

  const std::string& name() const override { return name_; }
  Result<std::unique_ptr<StreamLink>> link(void* stream) override;
  void start(CopyJob& job) override;
  void cancel(CopyJob& job, const Status& why) override;
  bool poll() override;
  Deadline next_deadline() const override;

 private:
  static constexpr std::size_t pieces_under_way = 4;
  struct Slot {
    CopyJob* job = nullptr;     // null: the slot is free
    std::byte* data = nullptr;  // pinned memory
    cuda::Address address = 0;  // the same memory as the device sees it
    std::unique_ptr<cuda::Event> copied;
    std::size_t offset = 0;  // the piece's place in the job
    std::size_t bytes = 0;
  };

  PinnedCopier(std::unique_ptr<cuda::Device> device, std::size_t piece_bytes)
      : device_(std::move(device)), name_(device_->name()), piece_bytes_(piece_bytes) {}
  Status allocate();
  bool is_idle() const;
  bool begin_pieces();
  // Returns the first job that may begin a piece; null if there is none.
  CopyJob* next_job();
  void begin(Slot& slot, CopyJob& job);
  Status enqueue(const Slot& slot) const;
  void record(const Slot& slot);
  bool has_copied(const Slot& slot);
  void end(Slot& slot);
  // Lets no further piece of the job begin.
  void fail(CopyJob& job, const Status& why);
  // Reports the job if it has ended.
  void settle(CopyJob& job);

  const std::shared_ptr<const cuda::Device> device_;
  const std::string name_;
  const std::size_t piece_bytes_;
  std::unique_ptr<cuda::PinnedMemory> memory_;
  std::unique_ptr<cuda::Stream> to_host_;
  std::unique_ptr<cuda::Stream> to_device_;
  std::array<Slot, pieces_under_way> slots_;
  std::deque<CopyJob*> jobs_;  // those with pieces that have not begun
};

}  // namespace tutti::staged
