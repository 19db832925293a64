#pragma once

#include <cstdint>
#include <string>

#include <tutti/status.h>

namespace tutti {

// `ControlNote` carries a few bytes between ranks outside the data path: best effort, at most once, in no
// order.
struct ControlNote {
  int origin = -1;          // the rank that wrote it
  std::uint32_t topic = 0;  // what it is about; the plane only carries it
  std::string body;
};
inline constexpr std::size_t max_control_body = 256 * 1024;

// Returns the status of a rank that the others have given up; `self` describes it.
inline Status given_up(const std::string& self, int rank, const std::string& why) {
  return Status(Code::aborted, self + " was given up by the other ranks, and stays outside: " + why, rank);
}

// `ControlEvents` is what a control plane tells its owner, on a thread of the plane's own. All calls must
// return soon, and none may call `start` or `stop`.
class ControlEvents {
 public:
  virtual ~ControlEvents() = default;
  // A rank died, froze or was cut off, as this rank or another one has noticed. Called once for each rank at
  // most.
  virtual void on_lost(int rank, const Status& why) = 0;
  // A rank has said goodbye.
  virtual void on_left(int rank) = 0;
  // The others have given up this rank. No event follows.
  virtual void on_fenced(const Status& why) = 0;
  virtual void on_note(const ControlNote& note) = 0;
};

// `ControlPlane` tells ranks about each other even while they call nothing: which of them have died, and what
// a failing rank wants all others to know. It needs neither the application's threads nor the driver.
//
// Any thread may call; only `start` and `stop` ever wait.
class ControlPlane {
 public:
  virtual ~ControlPlane() = default;

  // Called once. From now until `stop` returns, `events` is called.
  virtual void start(ControlEvents& events) = 0;
  // Says goodbye and ends, after half a second at the latest. Does nothing the second time.
  virtual void stop() = 0;

  // Sends to all other ranks. Notes of the same topic with the same `key` count as the same note, from any
  // rank: each rank receives only the first, and forwards only that. A key of zero equals no other.
  virtual void publish(std::uint32_t topic, std::uint64_t key, std::string body) = 0;
  // Sends to one rank, by way of others if need be.
  virtual void send(int rank, std::uint32_t topic, std::string body) = 0;
  // Gives a rank up on all ranks. `on_lost` follows, unless the rank was already lost.
  virtual void give_up(int rank, const Status& why) = 0;
  // Sets how many times this rank's world has shrunk, which it says from now on when it meets others.
  virtual void set_generation(std::uint32_t generation) = 0;
};

}  // namespace tutti
