#include <algorithm>
#include <queue>
#include <unordered_map>
#include <vector>

#include <tutti/collectives/simulator.h>

namespace tutti {
namespace {

struct Machine {
  double send_port = 0;  // free from then on
  double receive_port = 0;
  double core = 0;
};

struct StepRef {
  std::uint32_t rank = 0;
  std::uint32_t step = 0;
};

struct Event {
  double time;
  std::uint64_t order;  // among events of the same time: as they were scheduled
  StepRef at;
  enum class Kind : std::uint8_t { eligible, arrived, done } kind;
  bool operator>(const Event& other) const {
    return time != other.time ? time > other.time : order > other.order;
  }
};

// Where a message stands when one side has come: the receiver waits, or the message has arrived at `time`.
struct Meeting {
  double time;
  std::uint32_t receive;
  bool receiver_waits;
};

class Run {
 public:
  Run(const Problem& problem, std::vector<Schedule> schedules, const CostModel& model)
      : element_size_(problem.element_size),
        schedules_(std::move(schedules)),
        model_(model),
        machines_(schedules_.size()),
        meetings_(schedules_.size()),
        missing_(schedules_.size()) {}

  Simulation finish() {
    for (std::uint32_t rank = 0; rank < schedules_.size(); ++rank) {
      for (const Step& step : schedules_[rank].steps) missing_[rank].push_back(step.dependencies);
      for (const std::uint32_t step : schedules_[rank].ready) post(0, {rank, step}, Event::Kind::eligible);
      sent_bytes_.push_back(0);
    }
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      result_.seconds = std::max(result_.seconds, event.time);
      handle(event);
    }
    for (const std::uint64_t bytes : sent_bytes_) {
      result_.bytes += bytes;
      result_.max_rank_bytes = std::max(result_.max_rank_bytes, bytes);
    }
    return result_;
  }

 private:
  const Step& step(StepRef ref) const { return schedules_[ref.rank].steps[ref.step]; }
  double bytes(std::uint64_t count) const { return static_cast<double>(count) * element_size_; }
  void post(double time, StepRef at, Event::Kind kind) { events_.push({time, ++order_, at, kind}); }

  void handle(const Event& event) {
    switch (event.kind) {
      case Event::Kind::eligible:
        return start(event);
      case Event::Kind::arrived:
        return compute(event.time, event.at);
      case Event::Kind::done:
        return complete(event);
    }
  }

  void start(const Event& event) {
    const Step& s = step(event.at);
    switch (s.kind) {
      case StepKind::send:
        return send(event);
      case StepKind::recv:
      case StepKind::recv_reduce: {
        auto& waiting = meetings_[event.at.rank];
        const auto [meeting, first] = waiting.try_emplace(key(static_cast<std::uint32_t>(s.peer), s.index),
                                                          Meeting{event.time, event.at.step, true});
        if (first) return;
        deliver(std::max(event.time, meeting->second.time), event.at);
        waiting.erase(meeting);
        return;
      }
      default:
        return compute(event.time, event.at);
    }
  }

  // The message leaves when the sender's port is free, and is in when the receiver's port has taken it.
  void send(const Event& event) {
    const Step& s = step(event.at);
    Machine& sender = machines_[event.at.rank];
    const auto peer = static_cast<std::uint32_t>(s.peer);
    Machine& receiver = machines_[peer];
    const int apart = std::abs(static_cast<int>(event.at.rank) - s.peer);
    const bool near = std::min(apart, static_cast<int>(schedules_.size()) - apart) <= 1;
    const double transfer = bytes(s.left.count) * model_.beta * (near ? 1.0 : model_.far);
    const double busy = model_.overhead() + transfer;
    const double begin = std::max(event.time, sender.send_port);
    sender.send_port = begin + busy;
    const double arrival = std::max(begin + model_.alpha + transfer, receiver.receive_port + busy);
    receiver.receive_port = arrival;
    ++result_.messages;
    sent_bytes_[event.at.rank] += s.left.count * element_size_;
    post(begin + busy, event.at, Event::Kind::done);

    auto& waiting = meetings_[peer];
    const auto [meeting, first] =
        waiting.try_emplace(key(event.at.rank, s.index), Meeting{arrival, 0, false});
    if (first) return;
    deliver(std::max(arrival, meeting->second.time), {peer, meeting->second.receive});
    waiting.erase(meeting);
  }

  void deliver(double time, StepRef at) {
    post(time, at, step(at).kind == StepKind::recv_reduce ? Event::Kind::arrived : Event::Kind::done);
  }

  void compute(double time, StepRef at) {
    Machine& machine = machines_[at.rank];
    machine.core = std::max(time, machine.core) + bytes(step(at).out.count) * model_.gamma;
    post(machine.core, at, Event::Kind::done);
  }

  void complete(const Event& event) {
    const Schedule& schedule = schedules_[event.at.rank];
    const Step& s = schedule.steps[event.at.step];
    for (std::uint32_t i = 0; i < s.successor_count; ++i) {
      const std::uint32_t next = schedule.successors[s.first_successor + i];
      if (--missing_[event.at.rank][next] == 0)
        post(event.time, {event.at.rank, next}, Event::Kind::eligible);
    }
  }

  static std::uint64_t key(std::uint32_t peer, std::uint32_t index) {
    return std::uint64_t{peer} << 32 | index;
  }

  std::uint32_t element_size_;
  std::vector<Schedule> schedules_;
  const CostModel& model_;
  std::vector<Machine> machines_;
  std::vector<std::unordered_map<std::uint64_t, Meeting>> meetings_;  // by receiver, then (sender, index)
  std::vector<std::vector<std::uint32_t>> missing_;                   // dependencies not completed
  std::vector<std::uint64_t> sent_bytes_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t order_ = 0;
  Simulation result_;
};

}  // namespace

Simulation simulate(const Algorithm& algorithm, const Problem& problem, const Tuning& tuning,
                    const CostModel& model) {
  if (problem.kind == CollectiveKind::all_to_all_v) return {};
  std::vector<Schedule> schedules;
  schedules.reserve(static_cast<std::size_t>(problem.size));
  for (int rank = 0; rank < problem.size; ++rank) {
    Problem one = problem;
    one.rank = rank;
    schedules.push_back(build_schedule(algorithm, one, tuning));
  }
  return Run(problem, std::move(schedules), model).finish();
}

}  // namespace tutti
