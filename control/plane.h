#pragma once

#include <cstdint>
#include <string>

#include <tutti/status.h>

namespace tutti {

// A few bytes between ranks beside the data path: best effort, at most once, in no order.
struct ControlNote {
  int origin = -1;          // who wrote it
  std::uint32_t topic = 0;  // what it is about; the plane only carries it
  std::string body;
};
inline constexpr std::size_t max_control_body = 256 * 1024;

// What a rank is told, and says, that the others have given up; `self` describes it.
inline Status given_up(const std::string& self, int rank, const std::string& why) {
  return Status(Code::aborted, self + " was given up by the other ranks, and stays outside: " + why, rank);
}

// What a control plane tells its owner, on a thread of the plane's own: all of it must return soon, and none
// may call `start` or `stop`.
class ControlEvents {
 public:
  virtual ~ControlEvents() = default;
  // A rank died, froze or was cut off; here or elsewhere it was found out. Once for each rank at most.
  virtual void on_lost(int rank, const Status& why) = 0;
  // A rank has said goodbye.
  virtual void on_left(int rank) = 0;
  // The others have given up this rank: it stays outside. The last that is told.
  virtual void on_fenced(const Status& why) = 0;
  virtual void on_note(const ControlNote& note) = 0;
};

// How ranks hear of each other while nobody calls anything: who has died, and what a failing rank wants all
// others to know. Needs neither the application's threads nor the driver.
//
// Any thread may call; only `start` and `stop` ever wait.
class ControlPlane {
 public:
  virtual ~ControlPlane() = default;

  // Once. From now until `stop` returns, `events` is called.
  virtual void start(ControlEvents& events) = 0;
  // Says goodbye and ends, after half a second at the latest. Does nothing the second time.
  virtual void stop() = 0;

  // To all other ranks. Notes of the same topic with the same `key` are one and the same, whoever wrote them:
  // each rank hears the first only, and passes only that on. Zero: equal to no other.
  virtual void publish(std::uint32_t topic, std::uint64_t key, std::string body) = 0;
  // To one rank, by way of others if need be.
  virtual void send(int rank, std::uint32_t topic, std::string body) = 0;
  // Gives a rank up, everywhere. `on_lost` follows, unless that was known.
  virtual void give_up(int rank, const Status& why) = 0;
  // What this rank says of itself from now on when it meets others: how many times its world has shrunk.
  virtual void set_generation(std::uint32_t generation) = 0;
};

}  // namespace tutti
