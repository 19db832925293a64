#pragma once

#include <span>
#include <string>
#include <vector>

#include <tutti/communicator.h>

#include "collectives/group/operation.h"
#include "collectives/group/parts.h"
#include "core/fingerprint.h"

namespace tutti {

// `PointToPoint` sends and receives a communicator's messages between two ranks.
class PointToPoint final : public OperationOwner {
 public:
  explicit PointToPoint(const Parts& parts) : parts_(parts) {}
  ~PointToPoint() override;

  // Checks the legs and issues them as one operation. Any thread may call.
  Work issue(std::span<const Transfer> legs, const CallOptions& options);

  // OperationOwner
  void start(Operation& operation) override;
  void on_part_over(Operation& operation, const Status& status) override;
  void cancel(Operation& operation, const Status& why) override;
  std::vector<int> awaited(const Operation& operation) const override;
  std::string name_awaited(const Operation& operation) const override;

 private:
  void bind(Operation::SendLeg& node, const Transfer& leg, const Fingerprint& call, Operation& owner);
  void bind(Operation::RecvLeg& node, const Transfer& leg, const Fingerprint& call, Operation& owner);
  bool send_in_passing(const Transfer& leg, const Fingerprint& call, const CallOptions& options, Work& work);

  const Parts parts_;
  Operation* ready_send_ = nullptr;  // prepared for the next message; null if none is; driving
};

}  // namespace tutti
