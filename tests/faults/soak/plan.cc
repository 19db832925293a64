#include "tests/faults/soak/plan.h"

#include <algorithm>
#include <array>
#include <random>
#include <set>

namespace tutti::soak {

namespace {

// `Dice` draws random numbers. It does not use the standard distributions, since they differ between
// libraries.
class Dice {
 public:
  Dice(std::uint64_t seed, std::uint64_t number) : engine_(seed * 0x9e3779b97f4a7c15u + number) {
    engine_.discard(16);
  }
  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(engine_() % limit); }
  int between(int least, int most) {
    return least + static_cast<int>(below(static_cast<std::size_t>(most - least + 1)));
  }
  bool once_in(std::size_t times) { return below(times) == 0; }
  template <class Range>
  auto one_of(const Range& range) {
    return *std::next(std::begin(range), static_cast<std::ptrdiff_t>(below(std::size(range))));
  }

 private:
  std::mt19937_64 engine_;
};

Step draw_step(Dice& dice, const std::vector<test::CollectiveCase>& cases, bool only_collectives) {
  constexpr std::array<std::uint64_t, 8> counts = {0, 1, 3, 17, 640, 5'000, 5'000, 40'000};
  Step step;
  step.test = dice.one_of(cases);
  step.test.count = dice.one_of(counts);
  if (dice.once_in(40)) step.test.count = 300'000;
  step.test.root = dice.between(0, 5);
  step.test.timeout = {};
  if (only_collectives) return step;
  constexpr std::array kinds = {Step::Kind::burst, Step::Kind::ring, Step::Kind::split,
                                Step::Kind::allocated};
  if (dice.once_in(4)) step.kind = dice.one_of(kinds);
  step.parts = dice.between(2, 4);
  return step;
}

// Draws a fault for one of the ranks in `left`. Removes the ranks that the fault kills from `left`.
Fault draw_fault(Dice& dice, std::set<int>& left, std::size_t steps) {
  using Kind = Fault::Kind;
  constexpr std::array kinds = {Kind::kill, Kind::leave,    Kind::pair, Kind::abort,
                                Kind::late, Kind::disagree, Kind::stop, Kind::delay};
  Fault fault;
  if (left.size() < 2 || dice.once_in(3)) return fault;
  fault.kind = dice.one_of(kinds);
  if (fault.kind == Kind::pair && left.size() < 3) fault.kind = Kind::kill;
  fault.rank = dice.one_of(left);
  fault.step = dice.below(steps);
  fault.microseconds = dice.once_in(2) ? 0 : dice.between(0, 3000);
  fault.milliseconds = dice.between(20, 300) + (fault.kind == Kind::late ? 300 : 0);
  if (fault.kills()) left.erase(fault.rank);
  if (fault.kind == Kind::pair) {
    fault.second = dice.one_of(left);
    left.erase(fault.second);
  }
  return fault;
}

std::map<std::string, std::string> draw_variables(Dice& dice) {
  std::map<std::string, std::string> variables;
  variables["TUTTI_TRANSPORTS"] = dice.once_in(2) ? "tcp" : "shm";
  const auto perhaps = [&](const char* name, std::initializer_list<const char*> values) {
    const char* value = dice.one_of(values);
    if (*value != 0) variables[name] = value;
  };
  perhaps("TUTTI_EAGER_LIMIT", {"", "", "256", "4K"});
  perhaps("TUTTI_FRAGMENT", {"", "", "4K"});
  perhaps("TUTTI_SHM_WINDOW", {"", "", "64K", "0"});
  perhaps("TUTTI_SHM_RING", {"", "16K"});
  perhaps("TUTTI_TCP_SOCKETS", {"", "", "2"});
  perhaps("TUTTI_SPIN", {"", "0"});
  perhaps("TUTTI_TOKEN", {"", "of a soak"});
  if (variables.contains("TUTTI_TOKEN")) perhaps("TUTTI_TLS", {"", "", "1"});
  return variables;
}

}  // namespace

Episode Episode::draw(std::uint64_t seed, std::uint64_t number) {
  Dice dice(seed, number);
  Episode episode;
  episode.number = number;
  episode.size = dice.between(2, 6);
  episode.variables = draw_variables(dice);
  const std::vector<test::CollectiveCase> cases = test::collective_matrix(episode.size);
  std::set<int> left;
  for (int rank = 0; rank < episode.size; ++rank) left.insert(rank);
  for (int rounds = dice.between(3, 8); rounds > 0; --rounds) {
    Round round;
    const std::size_t steps = 2 + dice.below(6);
    round.fault = draw_fault(dice, left, steps);
    // A rank that waits for a point-to-point message cannot tell which rank is late or which rank makes a
    // different call. So rounds with these two faults contain only collectives.
    const bool only_collectives =
        round.fault.kind == Fault::Kind::late || round.fault.kind == Fault::Kind::disagree;
    while (round.steps.size() < steps) round.steps.push_back(draw_step(dice, cases, only_collectives));
    episode.rounds.push_back(std::move(round));
  }
  return episode;
}

std::string Step::describe() const {
  const std::string some = std::to_string(parts) + " ";
  switch (kind) {
    case Kind::collective:
      return test.describe();
    case Kind::burst:
      return some + "at once of count " + std::to_string(test.count);
    case Kind::ring:
      return "ring of count " + std::to_string(test.count);
    case Kind::split:
      return "in " + some + "parts " + test.describe();
    case Kind::allocated:
      return "allocated of count " + std::to_string(test.count);
  }
  return {};
}

std::string Fault::describe() const {
  const std::string who = "rank " + std::to_string(rank);
  const std::string when = " " + std::to_string(microseconds) + " us into step " + std::to_string(step);
  const std::string how_long = std::to_string(milliseconds) + " ms";
  switch (kind) {
    case Kind::none:
      return "nothing happens";
    case Kind::kill:
      return who + " is killed" + when;
    case Kind::leave:
      return who + " exits" + when;
    case Kind::pair:
      return who + " is killed" + when + ", rank " + std::to_string(second) + " as long into the shrink";
    case Kind::abort:
      return who + " aborts" + when;
    case Kind::late:
      return who + " does not reach step " + std::to_string(step) + " for " + how_long;
    case Kind::disagree:
      return who + " calls something else before step " + std::to_string(step);
    case Kind::stop:
      return who + " is stopped" + when + " for " + how_long;
    case Kind::delay:
      return who + " comes to step " + std::to_string(step) + " after " + how_long;
  }
  return {};
}

std::string Episode::describe() const {
  std::string text = "episode " + std::to_string(number) + ": " + std::to_string(size) + " ranks";
  for (const auto& [name, value] : variables) text += " " + name + "=" + value;
  text += "\n";
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    text += "  round " + std::to_string(i) + ": " + rounds[i].fault.describe();
    const char* mark = ": ";
    for (const Step& step : rounds[i].steps) {
      text += mark + step.describe();
      mark = "; ";
    }
    text += "\n";
  }
  return text;
}

}  // namespace tutti::soak
