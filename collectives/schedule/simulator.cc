#include "collectives/schedule/simulator.h"

#include <algorithm>
#include <queue>
#include <unordered_map>
#include <vector>

#include "collectives/schedule/topology.h"

namespace tutti {
namespace {

// These are the bytes that a packet of a TCP connection carries. A packet has at most 65,535 bytes
// on the loopback interface, and 1500 on Ethernet. The headers take 52 of them.
constexpr double near_packet = 65483;
constexpr double far_packet = 1448;

// `Ports` has the times from which the outgoing and the incoming port of a rank or a host are free.
struct Ports {
  double out = 0;
  double in = 0;
};

// `Cores` has the time from which each core of a machine is free. The list is empty if no two ranks share a
// core.
using Cores = std::vector<double>;

struct Host {
  Ports ports;
  std::uint64_t sent_bytes = 0;
  Cores* cores = nullptr;
};

struct Rank {
  Ports ports;
  double thread = 0;  // the time from which the rank is free: it does one thing at a time
  Host* host = nullptr;
};

struct StepRef {
  std::uint32_t rank = 0;
  std::uint32_t step = 0;
};

struct Event {
  double time;
  std::uint64_t order;  // the order in which events of the same time were scheduled
  StepRef at;
  enum class Kind : std::uint8_t { eligible, landing, landed, done } kind;
  double arrival = 0;            // landing: the time when the last byte arrives
  double work = 0;               // landing: how long the receiver's core is busy with the message
  std::uint32_t repetition = 0;  // landing, landed: the sender's repetition
  bool operator>(const Event& other) const {
    return time != other.time ? time > other.time : order > other.order;
  }
};

// A `Meeting` is the state of a message that only one side has reached. Either the receiver has
// waited since `time`, or the message arrived at `time`.
struct Meeting {
  double time;
  std::uint32_t receive;
  bool receiver_waits;
};

class SimulatedRun {
 public:
  SimulatedRun(const Problem& problem, std::vector<Schedule> schedules, const CostModel& model,
               int repetitions)
      : element_size_(problem.element_size),
        schedules_(std::move(schedules)),
        model_(model),
        repetitions_(static_cast<std::uint32_t>(repetitions)),
        ranks_(schedules_.size()),
        meetings_(schedules_.size()),
        missing_(schedules_.size()),
        progress_(schedules_.size()),
        topology_(problem.topology),
        hosts_(topology_ == nullptr ? 1 : static_cast<std::size_t>(topology_->hosts())) {
    const auto sharing = static_cast<std::size_t>(model.hosts_per_machine);
    machines_.resize((hosts_.size() + sharing - 1) / sharing,
                     Cores(static_cast<std::size_t>(model.cores), 0.0));
    for (std::size_t host = 0; host < hosts_.size(); ++host) hosts_[host].cores = &machines_[host / sharing];
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) ranks_[rank].host = &hosts_[host_of(rank)];
  }

  Simulation finish() {
    for (std::uint32_t rank = 0; rank < schedules_.size(); ++rank) {
      sent_bytes_.push_back(0);
      missing_[rank].resize(schedules_[rank].steps.size());
      repeat(rank, 0);
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
    for (const Host& host : hosts_)
      result_.max_host_bytes = std::max(result_.max_host_bytes, host.sent_bytes);
    return result_;
  }

 private:
  const Step& step(StepRef ref) const { return schedules_[ref.rank].steps[ref.step]; }
  double bytes(std::uint64_t count) const { return static_cast<double>(count) * element_size_; }
  void post(double time, StepRef at, Event::Kind kind, double arrival = 0, double work = 0,
            std::uint32_t repetition = 0) {
    events_.push({time, ++order_, at, kind, arrival, work, repetition});
  }
  std::size_t host_of(std::size_t rank) const {
    return topology_ == nullptr ? 0 : static_cast<std::size_t>(topology_->host_of(static_cast<int>(rank)));
  }

  // Starts the next repetition of a rank.
  void repeat(std::uint32_t rank, double time) {
    const Schedule& schedule = schedules_[rank];
    for (std::size_t i = 0; i < schedule.steps.size(); ++i)
      missing_[rank][i] = schedule.steps[i].dependencies;
    progress_[rank].open = schedule.steps.size();
    for (const std::uint32_t step : schedule.ready) post(time, {rank, step}, Event::Kind::eligible);
  }

  void handle(const Event& event) {
    switch (event.kind) {
      case Event::Kind::eligible:
        return start(event);
      case Event::Kind::landing:
        return land(event);
      case Event::Kind::landed:
        return meet(event);
      case Event::Kind::done:
        return complete(event);
    }
  }

  void start(const Event& event) {
    const Step& s = step(event.at);
    if (s.kind == StepKind::send) return send(event);
    if (s.kind != StepKind::recv && s.kind != StepKind::recv_reduce) return compute(event.time, event.at);
    auto& waiting = meetings_[event.at.rank];
    const auto [meeting, first] = waiting.try_emplace(
        key(progress_[event.at.rank].repetition, s.peer, s.index), Meeting{event.time, event.at.step, true});
    if (first) return;
    deliver(std::max(event.time, meeting->second.time), event.at);
    waiting.erase(meeting);
  }

  // Returns how long a message of n bytes keeps a core busy at one end. Small messages travel together while
  // an earlier message of the same sender to the same receiver is under way. Each packet carries as many of
  // them as fit, and a rank is woken once for each packet. The messages of a burst follow each other at
  // intervals of `gap`, and each interval includes the work of both ends.
  double work_of(double n, bool within, bool follows_another) const {
    const LinkCost& link = within ? model_.near : model_.far;
    const double together = link.gap / 2 + link.busy * n / (within ? near_packet : far_packet);
    return (follows_another ? std::min(together, link.busy) : link.busy) + n * link.busy_byte;
  }
  static std::uint64_t stream(std::uint32_t from, std::uint32_t to) { return std::uint64_t{from} << 32 | to; }

  // Occupies the rank and a core of its machine for `seconds`. The work begins at `time`, or as soon as both
  // are free if that is later. Returns when the work begins.
  double occupy(std::uint32_t rank, double time, double seconds) {
    double& thread = ranks_[rank].thread;
    double begin = std::max(time, thread);
    Cores& cores = *ranks_[rank].host->cores;
    if (!cores.empty()) {
      const auto core = std::min_element(cores.begin(), cores.end());
      begin = std::max(begin, *core);
      *core = begin + seconds;
    }
    thread = begin + seconds;
    return begin;
  }

  // The message leaves when the sender and its port are free. It has arrived when the receiver's port has
  // taken it.
  void send(const Event& event) {
    const Step& s = step(event.at);
    const std::uint32_t from = event.at.rank;
    const auto to = static_cast<std::uint32_t>(s.peer);
    const bool within = host_of(from) == host_of(to);
    const LinkCost& link = within ? model_.near : model_.far;
    const int apart = std::abs(static_cast<int>(from) - s.peer);
    const bool neighbours = std::min(apart, static_cast<int>(schedules_.size()) - apart) <= 1;
    const double n = bytes(s.left.count);
    const double transfer = n * link.beta * (neighbours ? 1.0 : model_.congestion);
    const double handshake = n > static_cast<double>(model_.eager) ? link.handshake : 0;
    const double work = work_of(n, within, under_way_[stream(from, to)]++ > 0);
    const double worked = occupy(from, event.time, work);
    Ports& sender = ranks_[from].ports;
    Ports& receiver = ranks_[to].ports;
    double begin = std::max(worked, sender.out);
    double arrival = link.alpha + handshake + transfer;
    if (within) {
      arrival += begin;
    } else {
      // The bytes of all ranks of a host pass its port one after the other. The other costs of a message are
      // separate for each rank.
      Ports& host_sender = ranks_[from].host->ports;
      Ports& host_receiver = ranks_[to].host->ports;
      begin = std::max(begin, host_sender.out);
      host_sender.out = begin + transfer;
      arrival = std::max(begin + arrival, host_receiver.in + transfer);
      host_receiver.in = arrival;
    }
    sender.out = begin + link.gap + transfer;
    arrival = std::max(arrival, receiver.in + link.gap + transfer);
    receiver.in = arrival;
    ++result_.messages;
    sent_bytes_[from] += s.left.count * element_size_;
    if (!within) ranks_[from].host->sent_bytes += s.left.count * element_size_;
    post(std::max(sender.out, worked + work), event.at, Event::Kind::done);
    post(std::max(event.time, arrival - work), event.at, Event::Kind::landing, arrival, work,
         progress_[from].repetition);
  }

  // The receiver takes the message in while the bytes arrive. A receiver with nothing else to do finishes
  // when the last byte arrives.
  void land(const Event& event) {
    const Step& s = step(event.at);
    const auto to = static_cast<std::uint32_t>(s.peer);
    const double end = occupy(to, event.time, event.work) + event.work;
    post(std::max(end, event.arrival), event.at, Event::Kind::landed, 0, 0, event.repetition);
  }

  void meet(const Event& event) {
    const Step& s = step(event.at);
    const auto to = static_cast<std::uint32_t>(s.peer);
    --under_way_[stream(event.at.rank, to)];
    auto& waiting = meetings_[to];
    const auto [meeting, first] = waiting.try_emplace(
        key(event.repetition, static_cast<int>(event.at.rank), s.index), Meeting{event.time, 0, false});
    if (first) return;
    deliver(event.time, {to, meeting->second.receive});
    waiting.erase(meeting);
  }

  void deliver(double time, StepRef at) {
    if (step(at).kind == StepKind::recv_reduce) return compute(time, at);
    post(time, at, Event::Kind::done);
  }

  void compute(double time, StepRef at) {
    const double work = bytes(step(at).out.count) * model_.gamma;
    post(occupy(at.rank, time, work) + work, at, Event::Kind::done);
  }

  void complete(const Event& event) {
    const Schedule& schedule = schedules_[event.at.rank];
    for (const std::uint32_t next : schedule.successors_of(schedule.steps[event.at.step])) {
      if (--missing_[event.at.rank][next] == 0)
        post(event.time, {event.at.rank, next}, Event::Kind::eligible);
    }
    Progress& progress = progress_[event.at.rank];
    if (--progress.open == 0 && ++progress.repetition < repetitions_) repeat(event.at.rank, event.time);
  }

  // A key has 16 bits for the repetition, 24 for the rank and 24 for the message. That is more than any
  // simulation needs.
  static std::uint64_t key(std::uint32_t repetition, int peer, std::uint32_t index) {
    return std::uint64_t{repetition} << 48 | static_cast<std::uint64_t>(peer) << 24 | index;
  }

  std::uint32_t element_size_;
  std::vector<Schedule> schedules_;
  struct Progress {
    std::size_t open = 0;  // steps that have not completed
    std::uint32_t repetition = 0;
  };

  const CostModel& model_;
  std::uint32_t repetitions_;
  std::vector<Rank> ranks_;
  std::vector<std::unordered_map<std::uint64_t, Meeting>> meetings_;  // by receiver, then by `key`
  std::vector<std::vector<std::uint32_t>> missing_;                   // dependencies that have not completed
  std::vector<Progress> progress_;
  const Topology* topology_;
  std::vector<Host> hosts_;
  std::vector<Cores> machines_;
  std::vector<std::uint64_t> sent_bytes_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t order_ = 0;
  // This counts, for each sender and receiver, the messages that the receiver has not taken in yet.
  std::unordered_map<std::uint64_t, int> under_way_;
  Simulation result_;
};

}  // namespace

Simulation simulate(const Algorithm& algorithm, const Problem& problem, const Tuning& tuning,
                    const CostModel& model, int repetitions) {
  if (problem.kind == CollectiveKind::all_to_all_v) return {};
  std::vector<Schedule> schedules;
  schedules.reserve(static_cast<std::size_t>(problem.size));
  for (int rank = 0; rank < problem.size; ++rank) {
    Problem one = problem;
    one.rank = rank;
    schedules.push_back(build_schedule(algorithm, one, tuning));
  }
  Simulation result = SimulatedRun(problem, std::move(schedules), model, repetitions).finish();
  result.seconds /= repetitions;
  return result;
}

}  // namespace tutti
