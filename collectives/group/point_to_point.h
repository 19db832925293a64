#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tutti/communicator.h>

#include "collectives/group/failure.h"
#include "collectives/group/gate.h"
#include "collectives/group/journal.h"
#include "collectives/group/live_operations.h"
#include "collectives/group/members.h"
#include "collectives/group/operation.h"
#include "collectives/group/shared_collectives.h"
#include "collectives/group/world.h"
#include "transport/mesh/mesh.h"

namespace tutti {

// `PointToPoint` sends and receives a communicator's messages between two ranks.
class PointToPoint final : public OperationOwner {
 public:
  PointToPoint(std::uint32_t context, World& world, const Members& members, Failure& failure,
               Journal& journal, LiveOperations& live, SharedCollectives& shared, Gate& gate);
  ~PointToPoint() override;

  // Any thread: the legs are one operation.
  Work issue(CollectiveKind kind, std::span<const Transfer> legs, const CallOptions& options);

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

  const std::uint32_t context_;
  const Composite part_of_;  // what all messages are part of
  const Members& members_;
  Mesh& mesh_;
  Failure& failure_;
  Journal& journal_;
  LiveOperations& live_;
  SharedCollectives& shared_;
  Gate& gate_;
  Operation* ready_send_ = nullptr;  // for the next message, driving; null: must be made anew
};

}  // namespace tutti
