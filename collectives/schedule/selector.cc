#include "collectives/schedule/selector.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <sstream>

namespace tutti {
namespace {

constexpr std::array<std::uint32_t, 7> radixes = {2, 3, 4, 5, 6, 7, 8};
constexpr std::array<std::uint64_t, 10> segment_sizes = {
    0, 4u << 10, 8u << 10, 16u << 10, 32u << 10, 64u << 10, 128u << 10, 256u << 10, 1u << 20, 4u << 20};

bool fits(const Algorithm& algorithm, const Problem& problem) {
  const bool ordered = problem.commutative || !is_reduction(problem.kind) || algorithm.rank_order;
  return algorithm.kind == problem.kind && ordered && algorithm.applies(problem);
}

std::string name_of(const Algorithm& algorithm) {
  return std::string(to_string(algorithm.kind)) + ":" + std::string(algorithm.name);
}

Status invalid_choice(std::string message) { return Status(Code::invalid_argument, std::move(message)); }

Result<const Algorithm*> parse_override(const std::string& item) {
  const std::size_t colon = item.find(':');
  if (colon == std::string::npos) {
    return invalid_choice("algorithm override '" + item + "' is not of the form collective:algorithm");
  }
  const std::string collective = item.substr(0, colon);
  const auto kind = parse_collective_kind(collective);
  if (!kind)
    return invalid_choice("algorithm override '" + item + "': no collective is called '" + collective + "'");
  const std::string name = item.substr(colon + 1);
  const Algorithm* algorithm = find_algorithm(*kind, name);
  if (algorithm == nullptr) {
    return invalid_choice("algorithm override '" + item + "': " + collective + " has no algorithm '" + name +
                          "'; it has: " + algorithm_names(*kind));
  }
  return algorithm;
}

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::string byte_text(std::uint64_t bytes) {
  if (bytes >= 1u << 20 && bytes % (1u << 20) == 0) return std::to_string(bytes >> 20) + " MiB";
  if (bytes >= 1u << 10 && bytes % (1u << 10) == 0) return std::to_string(bytes >> 10) + " KiB";
  return std::to_string(bytes) + " B";
}

}  // namespace

std::string describe(const Choice& choice) {
  if (choice.algorithm == nullptr) return "none";
  std::string text(choice.algorithm->name);
  const unsigned knobs = choice.algorithm->knobs;
  if ((knobs & radix_knob) != 0) text += ", radix " + std::to_string(choice.tuning.radix);
  if ((knobs & window_knob) != 0) text += ", window " + std::to_string(choice.tuning.window);
  if ((knobs & segment_knob) != 0) {
    text += choice.tuning.segment_bytes == 0 ? ", unsegmented"
                                             : ", segments of " + byte_text(choice.tuning.segment_bytes);
  }
  std::array<char, 32> seconds{};
  std::snprintf(seconds.data(), seconds.size(), ": %.1f us", choice.seconds * 1e6);
  return text + seconds.data();
}

Result<Selector> Selector::create(CostModel model, const std::string& overrides) {
  Selector selector;
  selector.model_ = model;
  std::istringstream list(overrides);
  for (std::string item; std::getline(list, item, ',');) {
    item = trimmed(item);
    if (item.empty()) continue;
    const Result<const Algorithm*> algorithm = parse_override(item);
    if (!algorithm.ok()) return algorithm.status();
    selector.overrides_.push_back(*algorithm);
  }
  return selector;
}

Choice Selector::tuned(const Algorithm& algorithm, const Problem& problem) const {
  Choice best{&algorithm, {}, algorithm.cost(problem, {}, model_)};
  const auto consider = [&](const Tuning& tuning) {
    const double seconds = algorithm.cost(problem, tuning, model_);
    if (seconds < best.seconds) best = {&algorithm, tuning, seconds};
  };
  Tuning tuning;
  if ((algorithm.knobs & radix_knob) != 0) {
    for (const std::uint32_t radix : radixes) {
      tuning.radix = radix;
      if (radix <= static_cast<std::uint32_t>(problem.size)) consider(tuning);
    }
  }
  if ((algorithm.knobs & segment_knob) != 0) {
    tuning = best.tuning;
    for (const std::uint64_t segment : segment_sizes) {
      tuning.segment_bytes = segment;
      consider(tuning);
    }
  }
  return best;
}

Result<Choice> Selector::choose(const Problem& problem, std::uint8_t algorithm_id) const {
  if (algorithm_id != 0) {
    const Algorithm* algorithm = find_algorithm(algorithm_id);
    if (algorithm == nullptr)
      return invalid_choice("there is no algorithm with number " + std::to_string(algorithm_id));
    if (!fits(*algorithm, problem)) {
      return invalid_choice("algorithm " + name_of(*algorithm) + " does not apply to " +
                            (problem.commutative ? "" : "non-commutative ") +
                            std::string(to_string(problem.kind)) + " on " + std::to_string(problem.size) +
                            " ranks");
    }
    return tuned(*algorithm, problem);
  }
  for (const Algorithm* algorithm : overrides_) {
    if (fits(*algorithm, problem)) return tuned(*algorithm, problem);
  }
  const std::vector<Choice> choices = rank(problem);
  if (choices.empty())
    return invalid_choice("there is no algorithm for " + std::string(to_string(problem.kind)));
  return choices.front();
}

std::vector<Choice> Selector::rank(const Problem& problem) const {
  std::vector<Choice> choices;
  for (const Algorithm& algorithm : algorithms()) {
    if (fits(algorithm, problem)) choices.push_back(tuned(algorithm, problem));
  }
  // Shared algorithms come first: with them, ranks read data where it lies, while messages would have to copy
  // it.
  std::stable_sort(choices.begin(), choices.end(), [](const Choice& a, const Choice& b) {
    if (a.algorithm->shared != b.algorithm->shared) return a.algorithm->shared;
    return a.seconds < b.seconds;
  });
  return choices;
}

}  // namespace tutti
