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

// `ControlDesk` connects a world with its control plane. It takes events from the plane's thread to the
// driving thread, and there to the mesh and all communicators. It sends their notes to other ranks.
//
// "Driving" means that only the driving thread may call the function.
class ControlDesk final : public ControlEvents {
 public:
  ControlDesk(Driver& driver, Mesh& mesh);
  ~ControlDesk() override;  // requires `stop`

  // Listens to the plane from now on. Called once, or never: then nothing here has any effect.
  void start(std::unique_ptr<ControlPlane> plane);
  // Says goodbye. The caller must not be the driving thread.
  void stop();

  // Driving. Returns whether there is a control plane to hear the others.
  bool listens() const { return plane_ != nullptr && !fenced_; }
  // Driving: every communicator, as long as it lives.
  void add(ControlClient& client);
  void remove(ControlClient& client);
  // Driving. Tells all ranks that a communicator has failed here.
  void tell_failure(std::uint32_t context, const Status& why);
  // Driving. Tells its other members (world ranks) that this rank will not be in a communicator, which some
  // of them may have already, or make later.
  void renounce(std::uint32_t context, const std::vector<int>& members, const Status& why);
  // Any thread, once there is a communicator; see ControlPlane. Without a plane they do nothing. What is sent
  // comes to `ControlClient::on_note` there.
  void publish(std::uint32_t topic, std::uint64_t key, std::string body);
  void send(int rank, std::uint32_t topic, std::string body);
  // Driving. True if a rank has been lost, or has said goodbye.
  bool is_lost(int rank) const { return lost_.contains(rank); }
  bool has_left(int rank) const { return left_.contains(rank); }
  bool is_fenced() const { return fenced_; }
  // Driving. Gives a rank up, here and everywhere.
  void give_up(int rank, const Status& why);
  // Driving. Stores the decision about a communicator. All later notes about its shrinking are answered with
  // it, even when the communicator is gone.
  void remember(std::uint32_t context, std::string decision);
  // Driving. How many times this world has shrunk.
  std::uint32_t generation() const { return generation_; }
  void set_generation(std::uint32_t generation);
  Driver& driver() { return driver_; }

  // ControlEvents, on the plane's thread.
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

  // Driving.
  std::vector<ControlClient*> clients_;
  std::map<int, Status> lost_;
  std::vector<int> losses_;  // in the order of their arrival
  std::set<int> left_;
  std::map<std::uint32_t, std::string> decisions_;
  ContextRanges closed_;  // communicators
  std::uint32_t generation_ = 0;
  bool fenced_ = false;
  Status why_fenced_;
};

}  // namespace tutti
