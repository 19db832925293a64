#include "collectives/record/trace.h"

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <tutti/log.h>

#include "collectives/schedule/algorithm.h"
#include "core/error_text.h"
#include "core/fork_guard.h"
#include "core/json.h"
#include "core/new_file.h"
#include "core/signals_blocked.h"

namespace tutti {

namespace {

constexpr std::size_t most_events = 16 * 1024;  // in the buffer between two writes
constexpr std::chrono::milliseconds writing_interval{100};
constexpr off_t longest_file = off_t{1} << 30;  // in bytes
constexpr std::string_view end_of_file = "\n]\n";

// The times in the file count from an origin: the most recent time that is a multiple of this step after the
// start of 1970. The origin is normally the same for all ranks of a job. Times since 1970 itself would be too
// large: readers keep times as floating-point numbers, and would lose digits.
constexpr std::int64_t origin_step_ns = std::int64_t{1'000'000} * 1'000'000'000;

std::int64_t wall_clock_offset_ns() {
  using std::chrono::duration_cast;
  using std::chrono::nanoseconds;
  const auto wall = duration_cast<nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  return wall % origin_step_ns - History::time_of(Deadline::Clock::now());
}

std::string microsecond_text(std::int64_t ns) {
  std::string digits = std::to_string(ns < 0 ? 0 : ns);
  digits.insert(0, digits.size() < 4 ? 4 - digits.size() : 0, '0');
  digits.insert(digits.size() - 3, 1, '.');
  return digits;
}

// Returns 0 or an errno.
int write_at(int file, off_t at, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = pwrite(file, text.data(), text.size(), at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : ENOSPC;
    text.remove_prefix(static_cast<std::size_t>(written));
    at += written;
  }
  return 0;
}

}  // namespace

struct Trace::State {
  State(Descriptor opened, std::string file_name, int world_rank)
      : file(std::move(opened)), name(std::move(file_name)), rank(world_rank) {
    pending.reserve(most_events);
  }

  void run();
  void write_out();
  void append(std::string text);
  void describe(std::string& text, const Event& event) const;
  void phase(std::string& text, const Event& event, const char* phase, History::Time at) const;

  const Descriptor file;
  const std::string name;
  const int rank;
  const std::int64_t offset_ns = wall_clock_offset_ns();
  const std::uint32_t generation = fork_generation();

  std::mutex mutex;  // protects the buffer
  std::condition_variable wanted;
  std::vector<Event> pending;
  std::uint64_t dropped = 0;
  bool stopping = false;

  std::mutex writing;  // protects the file; locked before `mutex`
  std::vector<Event> taken;
  off_t end = 0;  // where the next write begins: it overwrites `end_of_file`
  bool broken = false;

  std::thread thread;
};

void Trace::State::phase(std::string& text, const Event& event, const char* phase, History::Time at) const {
  JsonWriter json;
  const bool wait = event.kind == Event::Kind::wait;
  json.begin_object().field("name", (wait ? "wait " : "") + std::string(name_of(event.call)));
  json.field("cat", wait ? "wait" : event.transfer ? "transfer" : "collective").field("ph", phase);
  json.field("pid", rank).field("tid", event.thread);
  if (!wait) {
    const std::string id = std::to_string(event.context) + (event.transfer ? "t" : "c");
    json.key("id2").begin_object().field("local", id + std::to_string(event.number)).end_object();
  }
  json.key("args").begin_object();
  if (*phase != 'e') {
    json.field("call", tutti::describe(event.call));
    if (event.context != 0) {
      json.field("communicator", std::uint64_t{event.context}).field("number", event.number);
    }
    const Algorithm* algorithm = event.algorithm == 0 ? nullptr : find_algorithm(event.algorithm);
    if (algorithm != nullptr) json.field("algorithm", algorithm->name);
    if (const auto bytes = known_bytes(event.call)) json.field("bytes", *bytes);
    if (event.failed) json.field("failed", true);
  }
  json.end_object();
  // `JsonWriter` does not write numbers with a fraction.
  std::string object = json.take();
  object += ",\"ts\":" + microsecond_text(at + offset_ns);
  if (*phase == 'X') object += ",\"dur\":" + microsecond_text(event.ended - event.began);
  text += ",\n" + object + "}";
}

void Trace::State::describe(std::string& text, const Event& event) const {
  if (event.kind == Event::Kind::wait) return phase(text, event, "X", event.began);
  // Operations overlap, so they are asynchronous events with a beginning and an end.
  phase(text, event, "b", event.issued != 0 ? event.issued : event.began);
  if (event.issued != 0) phase(text, event, "n", event.began);
  phase(text, event, "e", event.ended);
}

void Trace::State::append(std::string text) {
  if (broken || text.empty()) return;
  text += end_of_file;
  const FileSizeSignalBlocked no_signal;
  const int error =
      end + static_cast<off_t>(text.size()) > longest_file ? EFBIG : write_at(file.get(), end, text);
  if (error == 0) {
    end += static_cast<off_t>(text.size() - end_of_file.size());
    return;
  }
  broken = true;
  log::warn("the trace ends here: ", name, ": ", error_text(error));
  // This makes the file valid JSON again. The failed write has overwritten at most the `end_of_file` behind
  // the earlier events.
  static_cast<void>(write_at(file.get(), end, end_of_file));
  static_cast<void>(ftruncate(file.get(), end + static_cast<off_t>(end_of_file.size())));
}

void Trace::State::write_out() {
  const std::lock_guard one_at_a_time(writing);
  std::uint64_t lost = 0;
  taken.clear();
  taken.reserve(most_events);
  {
    const std::lock_guard lock(mutex);
    pending.swap(taken);
    lost = std::exchange(dropped, 0);
  }
  std::string text;
  for (const Event& event : taken) describe(text, event);
  if (lost != 0) {
    text += ",\n{\"name\":\"" + std::to_string(lost) +
            " events dropped\",\"ph\":\"i\",\"s\":\"p\",\"pid\":" + std::to_string(rank) +
            ",\"tid\":0,\"ts\":" + microsecond_text(now() + offset_ns) + "}";
  }
  append(std::move(text));
}

void Trace::State::run() {
  pthread_setname_np(pthread_self(), "tutti-trace");
  for (bool last = false; !last;) {
    {
      std::unique_lock lock(mutex);
      wanted.wait_for(lock, writing_interval, [&] { return stopping || pending.size() > most_events / 2; });
      last = stopping;
    }
    write_out();
  }
}

Result<std::unique_ptr<Trace>> Trace::create(const std::string& file, int rank, const std::string& process) {
  Result<Descriptor> opened = open_new_file(file);
  if (!opened.ok()) return opened.status().with_context("cannot write the trace " + file);
  auto state = std::make_unique<State>(*std::move(opened), file, rank);
  JsonWriter json;
  json.begin_object().field("name", "process_name").field("ph", "M").field("pid", rank).field("tid", 0);
  json.key("args").begin_object().field("name", process).end_object().end_object();
  state->append("[\n" + json.take());
  State* const running = state.get();
  try {
    const SignalsBlocked blocked;
    state->thread = std::thread([running] { running->run(); });
  } catch (const std::system_error& error) {
    return Status(Code::resource_exhausted, std::string("no thread for the trace: ") + error.what());
  }
  return std::unique_ptr<Trace>(new Trace(std::move(state)));
}

Trace::Trace(std::unique_ptr<State> state) : state_(std::move(state)) {}

Trace::~Trace() {
  if (state_->generation != fork_generation()) {
    static_cast<void>(state_.release());  // its thread does not exist here, and may have held its locks
    return;
  }
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->wanted.notify_one();
  state_->thread.join();
}

void Trace::add(const Event& event) {
  State& state = *state_;
  if (state.generation != fork_generation()) return;
  const std::lock_guard lock(state.mutex);
  if (state.pending.size() == most_events) {
    ++state.dropped;
    return;
  }
  state.pending.push_back(event);
  if (event.kind == Event::Kind::wait) state.pending.back().thread = syscall(SYS_gettid);
  if (state.pending.size() == most_events / 2 + 1) state.wanted.notify_one();
}

void Trace::flush() {
  if (state_->generation == fork_generation()) state_->write_out();
}

}  // namespace tutti
