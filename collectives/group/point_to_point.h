#pragma once

#include <span>
#include <string>
#include <vector>

#include <tutti/communicator.h>

#include "collectives/group/copiers.h"
#include "collectives/group/operation.h"
#include "collectives/group/parts.h"
#include "collectives/run/staged_transfers.h"
#include "core/fingerprint.h"

namespace tutti {

// `PointToPoint` sends and receives a communicator's messages between two ranks.
class PointToPoint final : public OperationOwner {
 public:
  PointToPoint(const Parts& parts, Copiers& copiers) : parts_(parts), copiers_(copiers) {}
  ~PointToPoint() override;

  // Checks the transfers `legs`, and issues all of them as one operation. Any thread may call.
  Work issue(std::span<const Transfer> legs, const CallOptions& options);
  // Issues messages of the library itself, which are part of the user's call `part_of`. Their tags have the
  // `library_tag_bit`. Any thread may call.
  Work issue_own(std::span<const Transfer> legs, Composite part_of, const CallOptions& options);

  // These functions implement OperationOwner.
  void start(Operation& operation) override;
  void on_failed(Operation& operation, const Status& why) override;
  void on_finished(Operation& operation, const Status& status) override;

 private:
  void bind(Transfers::Send& node, const Transfer& leg, const Fingerprint& call) const;
  void bind(Transfers::Recv& node, const Transfer& leg, const Fingerprint& call) const;
  void bind(Operation& operation, std::span<const Transfer> legs);
  // Gives host memory to the messages in device memory.
  Status stage(Operation& operation, std::span<const Transfer> legs, void* stream);
  Status blamed(const Status& why) const;
  Work refuse_staged(Operation& operation, const Status& why);
  Work launch(std::span<const Transfer> legs, const Fingerprint& call, const CallOptions& options);
  bool send_in_passing(const Transfer& leg, const Fingerprint& call, const CallOptions& options, Work& work);

  const Parts parts_;
  Copiers& copiers_;
  // Only the driving thread uses these members.
  Operation* ready_send_ = nullptr;  // prepared for the next message, or null
  StagedTransfers::Order order_;
};

}  // namespace tutti
