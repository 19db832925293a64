#pragma once

#include <cstdint>
#include <string>

#include <tutti/status.h>

namespace tutti {

// A `ControlNote` carries a few bytes between ranks outside of the data path. It arrives at most once,
// perhaps never, and in no particular order.
struct ControlNote {
  int origin = -1;          // the rank that sent it
  std::uint32_t topic = 0;  // a ControlTopic, which the plane does not interpret
  std::string body;
};
inline constexpr std::size_t max_control_body = 256 * 1024;

// Returns the status for a rank that the other ranks have given up. `self` is that rank's description.
inline Status given_up(const std::string& self, int rank, const std::string& why) {
  return Status(Code::aborted, self + " was given up by the other ranks and stays excluded: " + why, rank);
}

// `ControlEvents` receives the notifications of a control plane, on the plane's own thread. Its functions
// must return soon, and must not call the plane's `start` or `stop`.
class ControlEvents {
 public:
  virtual ~ControlEvents() = default;
  // Reports that a rank died, froze or was cut off, no matter which rank noticed it. Each lost rank is
  // reported only once.
  virtual void on_lost(int rank, const Status& why) = 0;
  // Reports that a rank has said goodbye.
  virtual void on_left(int rank) = 0;
  // Reports that the other ranks have given up this rank for good. No further event follows.
  virtual void on_fenced(const Status& why) = 0;
  virtual void on_note(const ControlNote& note) = 0;
};

// A `ControlPlane` tells each rank which other ranks have died. It also delivers notes, for example when a
// rank reports a failure. It does both even while the application makes no calls. It needs neither the
// application's threads nor the driver.
//
// Any thread may call it. Only `start` and `stop` ever wait.
class ControlPlane {
 public:
  virtual ~ControlPlane() = default;

  // Starts the plane. Must be called only once. The plane calls `events` from now on until `stop` returns.
  virtual void start(ControlEvents& events) = 0;
  // Says goodbye and ends, after half a second at the latest. A second call does nothing.
  virtual void stop() = 0;

  // Sends a note to all other ranks. Notes of the same topic with the same `key` count as the same
  // note, even if different ranks send them. Each rank takes and passes on only the first of them.
  // Each note with the key zero counts as a new note.
  virtual void publish(std::uint32_t topic, std::uint64_t key, std::string body) = 0;
  // Sends a note to one rank, through other ranks if necessary.
  virtual void send(int rank, std::uint32_t topic, std::string body) = 0;
  // Declares a rank lost, on all ranks. `on_lost` follows, unless the rank was lost already.
  virtual void give_up(int rank, const Status& why) = 0;
  // Sets how many times this rank's world has shrunk. This rank reports the number to ranks that it connects
  // with from now on.
  virtual void set_generation(std::uint32_t generation) = 0;
};

}  // namespace tutti
