#include "collectives/record/recorder.h"

#include <cerrno>
#include <thread>
#include <utility>

#include <unistd.h>

#include <tutti/communicator.h>
#include <tutti/log.h>

#include "collectives/schedule/algorithm.h"
#include "core/error_text.h"
#include "core/json.h"
#include "core/new_file.h"
#include "transport/mesh/mesh.h"

namespace tutti {

namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;

constexpr int format_version = 1;

std::int64_t wall_clock_us() {
  return duration_cast<microseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Converts a time of this process's clock to microseconds since 1970, so that times of ranks on different
// hosts can be compared.
struct WallClock {
  std::int64_t offset =
      wall_clock_us() - duration_cast<microseconds>(Deadline::Clock::now().time_since_epoch()).count();
  std::int64_t us(History::Time time) const { return time / 1000 + offset; }
};

std::string_view name_of(History::State state) {
  switch (state) {
    case History::State::live:
      return "running";
    case History::State::finished:
      return "finished";
    case History::State::failed:
      return "failed";
    case History::State::none:
      break;
  }
  return "none";
}

void write_call(JsonWriter& json, const Fingerprint& call) {
  json.field("call", describe(call)).field("kind", name_of(call));
  if (call.part_of != Composite::none) return;
  if (call.kind != CollectiveKind::barrier) json.field("type", to_string(call.type));
  if (is_reduction(call.kind)) json.field("op", to_string(call.op));
  if (has_root(call.kind)) json.field("root", call.root);
  if (const auto bytes = known_bytes(call)) json.field("count", call.count).field("bytes", *bytes);
}

void write_times(JsonWriter& json, const History::Entry& entry, const WallClock& clock) {
  if (entry.issued != 0) json.field("issued_us", clock.us(entry.issued));
  if (entry.started != 0) json.field("started_us", clock.us(entry.started));
  if (entry.ended != 0) json.field("ended_us", clock.us(entry.ended));
}

void write_entry(JsonWriter& json, const History::Entry& entry, bool is_transfer, const WallClock& clock,
                 const std::vector<Recorded::Waiting>& waiting) {
  json.begin_object().field(is_transfer ? "number" : "sequence", entry.number);
  write_call(json, entry.call);
  if (is_transfer) {
    json.field("peer", entry.call.root);
    json.key("tag");
    entry.tag == any_tag ? json.value("any") : json.value(entry.tag);
  }
  const Algorithm* algorithm = entry.algorithm == 0 ? nullptr : find_algorithm(entry.algorithm);
  if (algorithm != nullptr) json.field("algorithm", algorithm->name);
  json.field("state", name_of(entry.state));
  write_times(json, entry, clock);
  for (const Recorded::Waiting& operation : waiting) {
    if (operation.is_transfer != is_transfer || operation.number != entry.number) continue;
    if (entry.issued == 0 && operation.since != 0) json.field("issued_us", clock.us(operation.since));
    json.key("waiting_for").begin_array();
    for (const int rank : operation.ranks) json.value(rank);
    json.end_array();
  }
  json.end_object();
}

Status write_file(const std::string& name, std::string_view text) {
  const Result<Descriptor> file = open_new_file(name);
  if (!file.ok()) return file.status();
  const int problem = write_all(file->get(), text);
  return problem == 0 ? Status() : Status(Code::resource_exhausted, error_text(problem));
}

}  // namespace

void Recorder::configure(std::string version, std::string job, std::string dump) {
  version_ = std::move(version);
  job_ = std::move(job);
  dump_ = std::move(dump);
}

// Does nothing in a forked child: a thread that does not exist there may hold the lock.
void Recorder::add(const Recorded& group) {
  if (driver_.forked()) return;
  const std::lock_guard lock(mutex_);
  groups_.emplace(&group, false);
}

void Recorder::remove(const Recorded& group) {
  if (driver_.forked()) return;
  const std::lock_guard lock(mutex_);
  groups_.erase(&group);
  answer_.erase(&group);
}

void Recorder::answer() {
  const std::lock_guard lock(mutex_);
  answer_.clear();
  for (const auto& [group, told] : groups_) answer_[group] = group->waiting();
  asked_ = false;
  answered_.notify_all();
}

// An unanswered question stays open, and the next caller waits for the same answer.
Recorder::Waiting Recorder::ask(std::chrono::milliseconds limit, bool& answered) {
  std::unique_lock lock(mutex_);
  if (!asked_) {
    asked_ = true;
    question_.recorder = this;
    question_.run = [](DriverTask& task) { static_cast<Question&>(task).recorder->answer(); };
    lock.unlock();
    driver_.post(question_);
    lock.lock();
  }
  answered = answered_.wait_for(lock, limit, [this] { return !asked_; });
  return answered ? answer_ : Waiting();
}

std::string Recorder::tell(std::chrono::milliseconds limit) {
  const std::lock_guard one_at_a_time(asking_);
  bool answered = false;
  const Waiting waiting = ask(limit, answered);
  const std::lock_guard lock(mutex_);
  return write(waiting, "asked", answered);
}

void Recorder::on_failure(const Recorded& group, const Status& why) {
  if (driver_.forked()) return;
  if (trace_ != nullptr) trace_->flush();
  if (dump_.empty()) return;
  Waiting waiting;
  std::string text;
  {
    const std::lock_guard lock(mutex_);
    const auto failed = groups_.find(&group);
    if (failed == groups_.end() || failed->second) return;
    for (auto& [member, told] : groups_) {
      waiting[member] = member->waiting();
      told = true;
    }
    text = write(waiting, why.to_string(), true);
  }
  const std::string name = expand_file_pattern(dump_, "tutti.json", file_name_parts());
  const Status written = write_file(name, text);
  if (written.ok()) {
    log::warn("the last operations of this rank are in ", name);
  } else {
    log::warn("cannot write ", name, ": ", written.message());
  }
}

void Recorder::stop() {
  const auto open = [this] {
    const std::lock_guard lock(mutex_);
    return asked_;
  };
  if (driver_.forked()) return;
  while (open()) {
    if (!driver_.progress()) std::this_thread::yield();
  }
}

Result<std::unique_ptr<Trace>> Recorder::start_trace(const std::string& pattern) {
  const PeerInfo& self = mesh_.peer(mesh_.rank());
  auto trace = Trace::create(expand_file_pattern(pattern, "trace.json", file_name_parts()), self.rank,
                             self.describe());
  if (trace.ok()) trace_ = trace->get();
  return trace;
}

FileNameParts Recorder::file_name_parts() const {
  const PeerInfo& self = mesh_.peer(mesh_.rank());
  return {.rank = self.rank, .host = self.host, .pid = self.pid, .job = job_};
}

std::string Recorder::write(const Waiting& waiting, std::string_view reason, bool answered) const {
  const PeerInfo& self = mesh_.peer(mesh_.rank());
  JsonWriter json;
  json.begin_object().field("format", format_version).field("tutti", version_).field("reason", reason);
  json.field("time_us", wall_clock_us());
  json.field("job", job_).field("rank", self.rank).field("size", mesh_.size());
  json.field("host", self.host).field("pid", self.pid);
  // `progress` is false if the driving thread was busy in tutti, or in a callback of the program, for the
  // whole time limit.
  json.field("progress", answered);
  json.key("communicators").begin_array();
  static const std::vector<Recorded::Waiting> nothing;
  for (const auto& [group, told] : groups_) {
    const auto found = waiting.find(group);
    write_group(json, *group, found == waiting.end() ? nothing : found->second);
  }
  json.end_array().end_object();
  return json.take() + "\n";
}

void Recorder::write_group(JsonWriter& json, const Recorded& group,
                           const std::vector<Recorded::Waiting>& waiting) const {
  const WallClock clock;
  json.begin_object().field("context", static_cast<std::uint64_t>(group.context()));
  json.field("rank", group.rank());
  json.key("ranks").begin_array();
  for (const int rank : group.ranks()) json.value(rank);
  json.end_array();
  json.field("status", group.status().to_string());
  json.field("issued", group.collectives_issued());
  json.key("awaited").begin_array();
  std::map<int, std::string> names;
  for (const Recorded::Waiting& operation : waiting) {
    for (const int rank : operation.ranks) names.emplace(rank, mesh_.peer(rank).describe());
  }
  for (const auto& [rank, name] : names) {
    json.begin_object().field("rank", rank).field("name", name).end_object();
  }
  json.end_array();
  json.key("operations").begin_array();
  for (const auto& entry : group.collectives().entries()) write_entry(json, entry, false, clock, waiting);
  json.end_array();
  json.key("transfers").begin_array();
  for (const auto& entry : group.transfers().entries()) write_entry(json, entry, true, clock, waiting);
  json.end_array().end_object();
}

}  // namespace tutti
