#include "collectives/schedule/calibration.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <ctime>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "core/reduce.h"

namespace tutti {

namespace {

using Clock = std::chrono::steady_clock;

// An experiment runs at least `fewest_rounds` times, even on slow networks or busy cores. After that it stops
// when `patience` has passed or when it has run `most_rounds` times. The six experiments of a pair together
// take a few milliseconds.
constexpr std::chrono::microseconds patience{700};
constexpr int fewest_rounds = 3;
constexpr int most_rounds = 16;
// Measured costs may differ from the shipped ones by at most these factors, within a host and between hosts.
// The second factor is far larger, since networks differ much more than hosts do.
constexpr double factor_within = 20;
constexpr double factor_between = 1e6;
// A rank that polls is on its core all the time, apart from short interruptions. A rank that is on
// its core for less than this share of the time sleeps while it waits.
constexpr double share_of_pollers = 0.75;
constexpr std::size_t burst_length = 16;
constexpr std::size_t small = 8;
// These two sizes are large enough to measure a slope. The smaller one is typical for the segments of
// pipelines.
constexpr std::size_t medium = 64 << 10;
constexpr std::size_t large = 320 << 10;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Returns how many seconds this thread has run on a core so far.
double core_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// A `Span` says how long something takes, and for how much of that time this thread runs on a core.
struct Span {
  double seconds = std::numeric_limits<double>::infinity();
  double core = std::numeric_limits<double>::infinity();
  // Returns whether this rank sleeps while it waits for the other one. If it does not sleep, `core`
  // includes the waiting, and does not say how much work the rank has.
  bool sleeps() const { return core < share_of_pollers * seconds; }
};

// The tag of the first message of a round tells the follower what to do next.
enum Request : std::uint64_t {
  answer,       // send the same number of bytes back
  take_burst,   // more small messages follow; answer the last
  trade_small,  // a small message in both directions at once
  trade_large,  // a large message in both directions at once
  finish,
  payload,  // belongs to an earlier request
};

// A `Pair` is two ranks that exchange messages. One of them, the leader, measures the time and tells the
// other what to do.
class Pair {
 public:
  Pair(Communicator& communicator, int peer)
      : communicator_(communicator), peer_(peer), out_(large), in_(large) {}

  LinkCost lead();
  void follow();

 private:
  Transfer leg(Transfer::Direction direction, std::size_t bytes, std::uint64_t tag) {
    auto& memory = direction == Transfer::Direction::send ? out_ : in_;
    return {direction, Buffer(memory.data(), bytes, DataType::uint8), peer_, tag};
  }
  Transfer sending(std::size_t bytes, std::uint64_t tag) {
    return leg(Transfer::Direction::send, bytes, tag);
  }
  Transfer receiving(std::size_t bytes) { return leg(Transfer::Direction::recv, bytes, payload); }
  void run(const std::vector<Transfer>& legs) { communicator_.batch(legs).wait(); }
  // Returns one message in each direction. Both ranks exchange them at the same time, after the follower has
  // received the request.
  std::vector<Transfer> trade(std::size_t bytes) { return {receiving(bytes), sending(bytes, payload)}; }

  // Returns the shortest times of several rounds: the times of a round that nothing disturbs.
  template <class Round>
  Span best_of(Round round) {
    Span best;
    const auto begin = Clock::now();
    for (int i = 0; i < fewest_rounds || (i < most_rounds && Clock::now() - begin < patience); ++i) {
      const double used = core_seconds();  // a system call, so it must not be between the two times
      const auto start = Clock::now();
      round();
      best.seconds = std::min(best.seconds, seconds_since(start));
      best.core = std::min(best.core, core_seconds() - used);
    }
    return best;
  }
  // Returns the times of a round trip, in which each rank sends one message and receives one.
  Span round_trip(std::size_t bytes) {
    return best_of([&] { run({sending(bytes, answer), receiving(bytes)}); });
  }

  Communicator& communicator_;
  int peer_;
  std::vector<std::byte> out_, in_;
};

LinkCost Pair::lead() {
  LinkCost link;
  run({sending(small, answer), receiving(small)});  // this establishes the connection
  const Span least = round_trip(small);
  link.alpha = least.seconds / 2;
  const Span burst = best_of([&] {
    std::vector<Transfer> legs(burst_length, sending(small, payload));
    legs.front().tag = take_burst;
    legs.push_back(receiving(small));
    run(legs);
  });
  link.gap = (burst.seconds - 2 * link.alpha) / (burst_length - 1);
  // This measurement exchanges single messages, as most collectives do. In a burst, a rank would handle
  // several messages at once, and `busy` would be too low.
  const Span traded_small = best_of([&] {
    run({sending(small, trade_small)});
    run(trade(small));
  });
  link.busy = least.sleeps() ? least.core / 2 : (traded_small.seconds - link.alpha) / 2;
  const Span with_medium = round_trip(medium);
  const Span with_large = round_trip(large);
  const double time_medium = with_medium.seconds / 2;
  const double time_large = with_large.seconds / 2;
  // The slope excludes the fixed cost of a message. If noise hides the slope, `beta` is estimated from the
  // whole time.
  const double slope = (time_large - time_medium) / (large - medium);
  const double whole = (time_large - link.alpha) / large;
  link.beta = slope > whole / 4 ? std::min(slope, whole) : whole;
  link.handshake = time_medium - medium * link.beta - link.alpha;
  const Span traded = best_of([&] {
    run({sending(small, trade_large)});
    run(trade(large));
  });
  link.busy_byte = with_large.sleeps() ? (with_large.core - with_medium.core) / (2 * (large - medium))
                                       : (traded.seconds - 2 * link.alpha - link.handshake) / (2 * large);
  run({sending(small, finish)});
  return link;
}

void Pair::follow() {
  for (;;) {
    Work work = communicator_.recv(Buffer(in_.data(), large, DataType::uint8), peer_);
    work.wait();
    const Work::Received request = work.received();
    const auto bytes = static_cast<std::size_t>(request.bytes);
    switch (request.tag) {
      case answer:
        run({sending(bytes, payload)});
        break;
      case take_burst: {
        run(std::vector<Transfer>(burst_length - 1, receiving(small)));
        run({sending(small, payload)});
        break;
      }
      case trade_small:
        run(trade(small));
        break;
      case trade_large:
        run(trade(large));
        break;
      default:
        return;
    }
  }
}

// Returns the seconds that a sum takes per byte. Its operands are in cache, but not in the first level. The
// same is usually true of messages when they are combined.
double measure_combining() {
  constexpr std::size_t count = 32768;
  std::vector<float> left(count, 1), right(count, 1);
  const Reducer sum(DataType::float32, ReduceOp::sum);
  double best = 1;
  for (int round = 0; round < 8; ++round) {
    const auto begin = Clock::now();
    sum(left.data(), right.data(), left.data(), count);
    best = std::min(best, seconds_since(begin));
  }
  return best / (count * sizeof(float));
}

// `TwoRanks` has the two ranks that measure a class of connection; the first one leads.
using TwoRanks = std::pair<int, int>;

std::optional<TwoRanks> pair_within(const Topology& topology) {
  for (int host = 0; host < topology.hosts(); ++host) {
    const auto members = topology.members(host);
    if (members.size() >= 2) return TwoRanks{members[0], members[1]};
  }
  return std::nullopt;
}

std::optional<TwoRanks> pair_between(const Topology& topology) {
  if (topology.hosts() < 2) return std::nullopt;
  return TwoRanks{topology.members(0)[0], topology.members(1)[0]};
}

constexpr std::uint64_t result_tag = finish + 100;

// Lets the pair measure, and gives rank 0 the result.
void measure(Communicator& communicator, const std::optional<TwoRanks>& pair, LinkCost& link, double factor) {
  if (!pair) return;
  const auto [leader, follower] = *pair;
  const int rank = communicator.rank();
  LinkCost measured;
  const auto buffer = [&] { return Buffer(&measured, sizeof measured / sizeof(double), DataType::float64); };
  if (rank == leader) measured = Pair(communicator, follower).lead();
  if (rank == follower) Pair(communicator, leader).follow();
  if (rank == leader && rank != 0) communicator.send(buffer(), 0, result_tag).wait();
  if (rank != 0) return;
  if (leader != 0) communicator.recv(buffer(), leader, result_tag).wait();
  link = plausible(measured, link, factor);
}

}  // namespace

LinkCost plausible(const LinkCost& measured, const LinkCost& shipped, double factor) {
  const auto like = [&](double value, double usual) {
    return value >= usual / factor && value <= usual * factor;  // false if `value` is not a number
  };
  if (!like(measured.alpha, shipped.alpha) || !like(measured.beta, shipped.beta)) return shipped;
  LinkCost link = measured;
  // Most of the other figures are differences between measurements, which noise distorts more easily. So each
  // figure is kept within bounds.
  const auto between = [](double value, double least, double most) {
    return value >= least ? std::min(value, most) : least;  // also `least` if `value` is not a number
  };
  link.gap = between(measured.gap, link.alpha / 20, link.alpha);
  link.busy = between(measured.busy, link.gap / 4, link.alpha);
  link.busy_byte = between(measured.busy_byte, link.beta / 4, link.beta);
  link.handshake = between(measured.handshake, 0.0, 4 * link.alpha);
  return link;
}

CostModel agree_on_costs(Communicator& communicator, const Topology& topology, const CostModel& shipped,
                         bool measuring) {
  static_assert(sizeof(LinkCost) % sizeof(double) == 0);
  CostModel model = shipped;
  if (measuring) {
    measure(communicator, pair_within(topology), model.near, factor_within);
    measure(communicator, pair_between(topology), model.far, factor_between);
    if (communicator.rank() == 0) model.gamma = std::clamp(measure_combining(), 1e-12, 1e-8);
  }
  std::array<std::byte, sizeof model> bytes;
  std::memcpy(bytes.data(), &model, sizeof model);
  communicator.broadcast(Buffer(bytes.data(), bytes.size(), DataType::uint8), 0, {.algorithm = "binomial"})
      .wait();
  std::memcpy(&model, bytes.data(), sizeof model);
  // All ranks received the same costs, so all of them fail here. No rank may use its own costs instead, since
  // ranks could then choose different algorithms.
  if (!is_possible(model)) {
    throw Error(
        Status(Code::protocol_error, "rank 0 sent impossible costs of messages: " + describe(model), 0));
  }
  return model;
}

}  // namespace tutti
