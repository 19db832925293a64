#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <tutti/status.h>

#include "collectives/record/history.h"
#include "core/fingerprint.h"

namespace tutti {

// `Trace` writes the operations of a rank as Chrome trace events (docs/debugging.md), for Perfetto.
// Events go into a buffer of fixed size, which a separate thread writes to the file several times a
// second. If the buffer is full, further events are dropped, and the file says how many. After each
// write the file is valid JSON, even if the process is killed.
//
// In a forked child nothing is traced. Any thread may call these functions.
class Trace {
 public:
  // Creates the file, or replaces it. `process` describes the rank whose events these are.
  static Result<std::unique_ptr<Trace>> create(const std::string& file, int rank, const std::string& process);
  // Writes the remaining events.
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  // Returns the exact time; `History::coarse_now` is cheaper and less exact.
  static History::Time now() { return History::time_of(Deadline::Clock::now()); }

  struct Event {
    enum class Kind : std::uint8_t { operation, wait };
    Kind kind = Kind::operation;
    bool failed = false;
    bool transfer = false;
    std::uint32_t context = 0;  // 0: neither the context nor the number is known
    std::uint64_t number = 0;
    Fingerprint call;
    std::uint8_t algorithm = 0;
    History::Time issued = 0;  // only if the operation could not start at once
    History::Time began = 0;
    History::Time ended = 0;
    std::int64_t thread = 0;  // only for a wait; `add` fills it in
  };
  void add(const Event& event);
  // Returns once all events so far are in the file.
  void flush();

 private:
  struct State;
  explicit Trace(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tutti
