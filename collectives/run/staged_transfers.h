#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string_view>
#include <vector>

#include <tutti/status.h>

#include "collectives/run/execution.h"
#include "collectives/run/run_binding.h"
#include "collectives/run/transfers.h"
#include "transport/offload/copier.h"
#include "transport/offload/stream_link.h"

namespace tutti {

// `StagedTransfers` carries out messages of which some lie in device memory (docs/seams/memory.md). It copies
// outgoing messages to host memory, and lets a `Transfers` carry out all messages. Then it copies the
// received ones to the devices.
class StagedTransfers final : public Execution {
 public:
  // An `Order` keeps the sends to each peer in the order in which their operations have started, no matter
  // how long the copies take. Otherwise a later message could be matched in place of an earlier one.
  class Order {
   public:
    // Returns whether no operation waits with its sends. If one does, all later operations that send must be
    // `StagedTransfers`, too.
    bool empty() const { return waiting_.empty(); }

   private:
    friend StagedTransfers;
    void join(StagedTransfers& operation) { waiting_.push_back(&operation); }
    void leave(StagedTransfers& operation);
    // Lets all operations send that need not wait any more.
    void advance();
    StagedTransfers* take_next();

    std::deque<StagedTransfers*> waiting_;  // in the order in which they have started
  };

  // --- the thread that issues the operation ---

  // Prepares for other messages. `messages` holds them, and their memory is host memory except where `stage`
  // says otherwise. `link` may be null if there is no device memory.
  void prepare(Transfers& messages, Order& order, std::unique_ptr<StreamLink> link);
  // These functions say that the memory of one message is device memory, and replace it by memory of the
  // host. The message must not be empty. Errors: resource_exhausted.
  Status stage(Transfers::Send& message, Copier& copier);
  Status stage(Transfers::Recv& message, Copier& copier);
  // Frees what belongs to the messages.
  void clear();

  // --- driving ---

  void start(const RunBinding& binding) override;
  void cancel(const Status& why) override;
  std::vector<int> awaited() const override;
  // Returns the name of a device that has not made all copies.
  std::string_view awaited_library() const override;
  Result<StreamWait> wait_on(void* stream) override;
  // Returns whether the execution has failed because a device could not copy.
  bool copy_failed() const { return copy_failed_; }

 private:
  enum class Stage : std::uint8_t { copying_to_host, ready, exchanging, copying_to_device };
  struct Copy : CopyJob {
    StagedTransfers* owner = nullptr;
    Copier* copier = nullptr;
    const Transfers::Recv* message = nullptr;  // null: it is a send
    std::unique_ptr<std::byte[]> memory;
    bool runs = false;
  };

  Status stage(Copy& copy, void* device, std::size_t bytes, Copier& copier);
  void copy(bool to_device);
  void one_over(const Status& status);
  void one_less();
  void send();
  void exchanged(const Status& status);
  void finish(const Status& status);

  Transfers* messages_ = nullptr;
  Order* order_ = nullptr;
  std::unique_ptr<StreamLink> link_;
  std::deque<Copy> copies_;
  const RunBinding* binding_ = nullptr;
  RunBinding own_;  // the messages report to this object
  Stage stage_ = Stage::copying_to_host;
  std::size_t open_ = 0;  // copies that run, plus one while this class must not go on yet
  bool copy_failed_ = false;
  bool cancelled_ = false;
  Status why_;  // the first failure of a copy, or the reason for the cancellation
};

}  // namespace tutti
