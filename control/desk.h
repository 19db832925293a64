#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <tutti/status.h>

#include "control/client.h"
#include "control/plane.h"
#include "transport/driver/driver.h"
#include "transport/mesh/context_table.h"

namespace tutti {

class Mesh;

// `ControlDesk` connects a world with its control plane. It takes the plane's events on the plane's thread,
// and passes them to the mesh and to all communicators on the driving thread. It also sends notes of
// communicators to other ranks.
//
// Only the driving thread may call the functions, except for `start`, `stop`, `publish`, `send` and the
// functions of `ControlEvents`.
class ControlDesk final : public ControlEvents {
 public:
  ControlDesk(Driver& driver, Mesh& mesh);
  ~ControlDesk() override;  // `stop` must have been called

  // Starts the plane and listens to it. May be called at most once. Without a plane, the desk does nothing.
  void start(std::unique_ptr<ControlPlane> plane);
  // Says goodbye to the other ranks. The caller must not be the driving thread.
  void stop();

  // Returns true if the plane runs and the other ranks have not given up this one.
  bool listens() const { return plane_ != nullptr && !fenced_; }
  // These functions add and remove a communicator, at the beginning and the end of its life.
  void add(ControlClient& client);
  void remove(ControlClient& client);
  // Tells all ranks that a communicator has failed here.
  void tell_failure(std::uint32_t context, const Status& why);
  // Tells the other members (world ranks) of a communicator that this rank will not join it. Some of them may
  // have made the communicator already, or may make it later.
  void renounce(std::uint32_t context, const std::vector<int>& members, const Status& why);
  // These functions send a note, like the functions of ControlPlane with the same names. The receiving rank
  // passes the note to `ControlClient::on_note`. Any thread may call them once there is a communicator.
  // Without a plane they do nothing.
  void publish(std::uint32_t topic, std::uint64_t key, std::string body);
  void send(int rank, std::uint32_t topic, std::string body);
  // These functions return whether a rank has been lost, and whether it has said goodbye.
  bool is_lost(int rank) const { return lost_.contains(rank); }
  bool has_left(int rank) const { return left_.contains(rank); }
  bool is_fenced() const { return fenced_; }
  // Declares a rank lost, here and on all other ranks.
  void give_up(int rank, const Status& why);
  // Records the decision about the shrinking of a communicator. From then on the desk answers notes about
  // this shrinking, even when the communicator does not exist any more.
  void remember(std::uint32_t context, std::string decision);
  // Returns how many times this world has shrunk.
  std::uint32_t generation() const { return generation_; }
  void set_generation(std::uint32_t generation);
  Driver& driver() { return driver_; }

  // These are the functions of ControlEvents, which the plane's thread calls.
  void on_lost(int rank, const Status& why) override;
  void on_left(int rank) override;
  void on_fenced(const Status& why) override;
  void on_note(const ControlNote& note) override;

 private:
  enum class What : std::uint8_t { lost, left, fenced, note };
  struct Event {
    What what;
    int rank;
    Status why;
    ControlNote note;
  };
  struct Task : DriverTask {
    ControlDesk* desk = nullptr;
  };
  void hand_over(Event event);
  void read_inbox();
  void handle(const Event& event);
  void lose(int rank, const Status& why);
  void read_note(const ControlNote& note);
  void answer_shrink(const ControlNote& note, std::uint32_t context, bool alive);
  void act();

  Driver& driver_;
  Mesh& mesh_;
  std::unique_ptr<ControlPlane> plane_;
  Task task_;
  std::mutex mutex_;
  std::vector<Event> inbox_;
  bool posted_ = false;

  // Only the driving thread touches the members below.
  std::vector<ControlClient*> clients_;
  std::map<int, Status> lost_;
  std::vector<int> losses_;  // in the order in which they became known
  std::set<int> left_;
  std::map<std::uint32_t, std::string> decisions_;
  ContextRanges closed_;  // contexts of closed communicators
  std::uint32_t generation_ = 0;
  bool fenced_ = false;
  Status why_fenced_;
};

}  // namespace tutti
