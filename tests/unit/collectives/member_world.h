#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectives/group/active_groups.h"
#include "collectives/group/failure.h"
#include "collectives/group/gate.h"
#include "collectives/group/journal.h"
#include "collectives/group/live_operations.h"
#include "collectives/group/members.h"
#include "collectives/group/parts.h"
#include "collectives/group/shared_collectives.h"
#include "control/desk.h"
#include "control/plane.h"

namespace tutti::test {

// A `PaperPlane` is a control plane that records its messages instead of sending them.
class PaperPlane final : public ControlPlane {
 public:
  struct Letter {
    int to;  // -1 means all ranks
    std::uint32_t topic;
    std::string body;
  };
  explicit PaperPlane(std::vector<Letter>& letters) : letters_(letters) {}

  void start(ControlEvents&) override {}
  void stop() override {}
  void publish(std::uint32_t topic, std::uint64_t, std::string body) override {
    letters_.push_back({-1, topic, std::move(body)});
  }
  void send(int rank, std::uint32_t topic, std::string body) override {
    letters_.push_back({rank, topic, std::move(body)});
  }
  void give_up(int, const Status&) override {}
  void set_generation(std::uint32_t) override {}

 private:
  std::vector<Letter>& letters_;
};

// `QuietMember` is a communicator without work.
class QuietMember final : public ActiveGroups::Member {
 public:
  using Member::Member;
  bool poll() override { return false; }

 private:
  bool rest() override { return true; }
};

// `MemberWorld` consists of the separate parts of one rank of a communicator. It has no peers,
// since the test plays the other ranks. Operations start, and then wait until the test ends them.
class MemberWorld : public Failure::Actor, public OperationOwner {
 public:
  // There is a control plane only if `talks` is true.
  explicit MemberWorld(int size, int rank = 0, bool talks = true);
  ~MemberWorld() override;

  // Makes an operation of this rank, like a collective call. The operation has a number, but has
  // not started yet.
  Operation& make(const Fingerprint& call, const CallOptions& options = {});
  // Makes an operation as `make` does, and starts it.
  Operation& begin(const Fingerprint& call, const CallOptions& options = {});

  // These functions implement `OperationOwner`.
  void start(Operation& operation) override { started.push_back(operation.sequence); }
  void on_failed(Operation& operation, const Status& why) override { operation.cancel(why); }
  void on_finished(Operation& operation, const Status& status) override { live.end(operation, status); }
  // These functions implement `Failure::Actor`.
  void spread_failure(const Status& why, bool) override {
    ++spread;
    shared.fail(why);
  }
  void end_operations(const Status& why) override;
  bool others_may_know() const override { return false; }

  static constexpr std::uint32_t context = 7;
  // The numbers of the operations, in the order in which they started.
  std::vector<std::uint64_t> started;
  std::vector<PaperPlane::Letter> letters;  // messages to the other ranks
  int spread = 0;                           // how often a failure was announced to the other ranks
  const std::shared_ptr<Engine> engine;
  Driver& driver;
  Mesh mesh;  // never started, since it is only needed to name ranks
  ControlDesk desk;
  const Members members;
  Failure failure;
  Journal journal{context, nullptr};
  ActiveGroups active{driver};
  QuietMember member{active};
  LiveOperations live;
  SharedCollectives shared;
  Gate gate;
  const Parts parts;
};

}  // namespace tutti::test
