#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include <tutti/deadline.h>
#include <tutti/status.h>

namespace tutti {

// `Failure` keeps the first cause of a communicator's failure. Later causes are dropped.
//
// A cause may be noted anywhere, even inside a callback of the mesh. It takes effect at the next safe point,
// which is a call of `act`. Only the driving thread calls these functions, except where a comment says
// otherwise.
class Failure {
 public:
  // An `Actor` ends the operations that are in flight when the communicator fails.
  class Actor {
   public:
    virtual ~Actor() = default;
    // Tells the other members of the failure. Called once. If `known` is true, the members know of the
    // failure already, or will learn of it from the control plane.
    virtual void spread_failure(const Status& why, bool known) = 0;
    virtual void end_operations(const Status& why) = 0;
    // Returns whether other ranks may know better than this rank why a connection has ended.
    virtual bool others_may_know() const = 0;
  };

  // `rank` is this rank's number in the world, and `name` describes this rank in errors.
  Failure(int rank, std::string name, Actor& actor);

  // Keeps the cause, unless there is one already. Any thread may call.
  void note(const Status& why);
  // Any thread may call.
  bool happened() const { return happened_.load(std::memory_order_acquire); }
  // Returns the cause, or ok as long as there is none. Any thread may call.
  Status status() const;

  // Keeps a cause that all members know already, or will learn from the control plane.
  void note_known(const Status& why);
  // Notes a cause that only this rank has seen. If the cause is the end of a connection, other ranks get a
  // moment to report a better cause.
  void suspect(const Status& why);
  bool suspects() const { return suspects_; }
  // Notes the suspected cause, once other ranks have had enough time to report a better cause.
  void confirm_suspicion();
  Deadline next_deadline() const { return suspects_ ? confirmed_at_ : Deadline::never(); }

  // If there is a cause, lets the actor end the operations in flight. Must not be called inside a callback of
  // the mesh.
  void act() {
    if (happened() && !acting_) act_now();
  }
  // Returns whether the other members have been told of the failure.
  bool is_spread() const { return spread_; }

 private:
  void act_now();

  const int rank_;
  const std::string name_;
  Actor& actor_;
  mutable std::mutex mutex_;
  std::atomic<bool> happened_{false};
  Status cause_;
  bool known_ = false;
  bool spread_ = false;
  bool acting_ = false;
  bool suspects_ = false;
  Status suspicion_;
  Deadline confirmed_at_ = Deadline::never();
};

}  // namespace tutti
