#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <tutti/status.h>

#include "collectives/record/history.h"
#include "core/fingerprint.h"

namespace tutti {

// Writes what a rank does as Chrome trace events (docs/debugging.md), for Perfetto. Events go into a buffer
// of fixed size, which a thread of its own writes out several times a second: when more comes than that,
// events are dropped, and the file says how many. After each writing the file is valid JSON, however the
// process ends.
//
// In a forked child nothing is traced. Everything is for any thread.
class Trace {
 public:
  // Replaces the file. `process`: whose events these are, in words.
  static Result<std::unique_ptr<Trace>> create(const std::string& file, int rank, const std::string& process);
  // Writes what is left.
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  // Exact, where histories are content with `coarse_now`.
  static History::Time now() { return History::time_of(Deadline::Clock::now()); }

  struct Event {
    enum class Kind : std::uint8_t { operation, wait };
    Kind kind = Kind::operation;
    bool failed = false;
    bool transfer = false;
    std::uint32_t context = 0;  // 0: not known, nor is the number
    std::uint64_t number = 0;
    Fingerprint call;
    std::uint8_t algorithm = 0;
    History::Time issued = 0;  // of an operation that could not start at once
    History::Time began = 0;
    History::Time ended = 0;
    std::int64_t thread = 0;  // of a wait; filled in here
  };
  void add(const Event& event);
  // Returns when everything so far is in the file.
  void flush();

 private:
  struct State;
  explicit Trace(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tutti
