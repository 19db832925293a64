#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <tutti/status.h>

#include "collectives/run/execution.h"
#include "collectives/run/run_binding.h"
#include "transport/message.h"

namespace tutti {

// `Transfers` carries out messages between this rank and others, all at once. It reports when the last of
// them has ended, with the first failure if there was one. It uses only some members of the binding: the
// mesh, and the functions that it reports to.
class Transfers final : public Execution {
 public:
  // `Received` describes the last message that was received.
  struct Received {
    int source = -1;  // world rank
    std::uint64_t tag = 0;
    std::uint64_t bytes = 0;
  };

  // Drops all messages and makes room for others. All earlier messages must have ended. The caller then fills
  // in `send(i)` and `recv(i)`, except for the members that the transport uses.
  void prepare(std::size_t sends, std::size_t recvs);
  struct Send : SendOp {
    Transfers* transfers = nullptr;
    int peer = -1;  // world rank
    bool posted = false;
  };
  struct Recv : RecvOp {
    Transfers* transfers = nullptr;
    bool posted = false;
  };
  Send& send(std::size_t i) { return sends_[i]; }
  Recv& recv(std::size_t i) { return recvs_[i]; }

  void start(const RunBinding& binding) override;
  void cancel(const Status& why) override;
  std::vector<int> awaited() const override;
  const Received& received() const { return received_; }
  // Returns the world ranks to which messages are sent.
  std::vector<int> destinations() const;
  // Returns the tag of the first receive or, if there is none, of the first send; 0 if there are no messages.
  std::uint64_t tag() const;

  // Does what `start` does, but only for a single message, which must be a send. Returns true if the message
  // has already been sent; then neither `finished` nor `failed` is called. Otherwise the caller must call
  // `go_on`, and the end of the message is reported after that.
  bool start_in_passing(const RunBinding& binding);
  void go_on() { one_less(); }

  // These functions do what `start` does, in two steps: the first posts the receives, and the second posts
  // the sends. Nothing is reported before the second step. The caller must take the second step even if it
  // has cancelled the messages; then nothing is sent.
  void start_receiving(const RunBinding& binding);
  void start_sending();

 private:
  void post_receives();
  void post_sends();
  void one_over(const Status& status);
  void one_less();

  std::vector<Send> sends_;
  std::vector<Recv> recvs_;
  const RunBinding* binding_ = nullptr;
  std::size_t open_ = 0;  // messages that have not ended, plus one while this class must not report yet
  bool cancelled_ = false;
  Status why_;  // the first failure, or the reason for the cancellation
  Received received_;
};

}  // namespace tutti
