#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/status.h>

#include "collectives/record/history.h"
#include "collectives/record/trace.h"
#include "core/file_pattern.h"
#include "transport/driver/driver.h"

namespace tutti {

class JsonWriter;
class Mesh;

// `Recorded` is the flight recorder's view of a communicator. Any thread may use it, except where noted.
class Recorded {
 public:
  // A `Waiting` is an operation in flight: its number in `collectives` or `transfers`, and the world ranks
  // that it waits for.
  struct Waiting {
    bool is_transfer;
    std::uint64_t number;
    History::Time since;  // when it was issued; 0 if no clock has been read for it yet
    std::vector<int> ranks;
  };

  virtual ~Recorded() = default;
  virtual std::uint32_t context() const = 0;
  virtual int rank() const = 0;
  // Returns the world rank of each member.
  virtual const std::vector<int>& ranks() const = 0;
  virtual Status status() const = 0;
  virtual std::uint64_t collectives_issued() const = 0;
  virtual const History& collectives() const = 0;
  virtual const History& transfers() const = 0;
  // Only the driving thread may call this.
  virtual std::vector<Waiting> waiting() const = 0;
};

// `Recorder` is the flight recorder of a rank. It writes the last operations of all communicators
// as JSON when a user asks for them, or when a communicator fails (docs/debugging.md). It reads
// them from the communicators' histories.
class Recorder {
 public:
  Recorder(Driver& driver, const Mesh& mesh) : driver_(driver), mesh_(mesh) {}
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Must be called before there are communicators. `dump` is a pattern (core/file_pattern.h) for the name of
  // the file that a failure writes. If `dump` is empty, failures write no file.
  void configure(std::string version, std::string job, std::string dump);

  // Starts a trace, which must outlive this recorder. This function, too, must be called before there are
  // communicators. `pattern` is the pattern for the name of the trace's file. When a communicator fails, the
  // trace is flushed to that file.
  Result<std::unique_ptr<Trace>> start_trace(const std::string& pattern);

  // Any thread may call these. A communicator must be removed before it is destroyed.
  void add(const Recorded& group);
  void remove(const Recorded& group);

  // Returns the last operations of all communicators as JSON. It asks the driving thread for the ranks that
  // each operation in flight waits for, and waits up to `limit` for the answer. Without an answer, the JSON
  // does not contain those ranks. The driving thread must not call this.
  std::string tell(std::chrono::milliseconds limit = std::chrono::seconds(1));
  // Called when a communicator has failed. Writes the file, unless an earlier failure has already written a
  // file with this communicator. So the first failure's file shows what led to that failure. Only the driving
  // thread may call this.
  void on_failure(const Recorded& group, const Status& why);
  // Waits until the driving thread has answered the last question. Must be called before the driver is
  // destroyed.
  void stop();

 private:
  // `Waiting` maps each communicator to its operations in flight, with the ranks that they wait for.
  using Waiting = std::map<const Recorded*, std::vector<Recorded::Waiting>>;
  struct Question : DriverTask {
    Recorder* recorder = nullptr;
  };

  Waiting ask(std::chrono::milliseconds limit, bool& answered);
  void answer();
  std::string write(const Waiting& waiting, std::string_view reason, bool answered) const;
  void write_group(JsonWriter& json, const Recorded& group,
                   const std::vector<Recorded::Waiting>& waiting) const;
  FileNameParts file_name_parts() const;

  Driver& driver_;
  const Mesh& mesh_;
  std::string version_;
  std::string job_;
  std::string dump_;
  Trace* trace_ = nullptr;

  // The driving thread takes this mutex, so no thread that holds it may wait for the driving thread.
  std::mutex mutex_;
  std::map<const Recorded*, bool> groups_;  // the value says whether a file contains the communicator
  std::mutex asking_;                       // one question at a time
  Question question_;
  bool asked_ = false;  // true while a question has not been answered
  Waiting answer_;
  std::condition_variable answered_;
};

}  // namespace tutti
