#pragma once

#include <algorithm>

#include <tutti/collectives/algorithms/layout.h>
#include <tutti/collectives/algorithms/tree.h>
#include <tutti/collectives/cost_model.h>

// The terms that closed-form costs are made of. Only + - * / and comparisons on values that all ranks share,
// and compiled without contraction to fused operations, so that every rank gets the same bits and chooses
// alike.
namespace tutti {

class Terms {
 public:
  Terms(const Problem& problem, const Tuning& tuning, const CostModel& model)
      : problem_(problem), tuning_(tuning), model_(model) {}

  double p() const { return problem_.size; }
  double bytes() const { return static_cast<double>(problem_.count) * problem_.element_size; }
  double gamma(double n) const { return model_.gamma * n; }
  double alpha() const { return model_.alpha; }
  double overhead() const { return model_.overhead(); }
  int depth(int radix) const { return tree_depth(problem_.size, radix); }

  // `messages` of n bytes each, one after the other through one port, until the last has arrived.
  double burst(double messages, double n, bool far) const {
    if (messages <= 0) return 0;
    return model_.alpha + (messages - 1) * model_.overhead() + messages * transfer(n, far);
  }
  // The same, each combined on arrival: the slower of wire and kernel sets the pace.
  double reducing_burst(double messages, double n, bool far) const {
    if (messages <= 0) return 0;
    const double pace = std::max(model_.overhead() + transfer(n, far), gamma(n));
    return model_.alpha + transfer(n, far) + (messages - 1) * pace + gamma(n);
  }
  double transfer(double n, bool far) const { return n * model_.beta * (far ? model_.far : 1.0); }

  // A pipeline of `hops` hops between neighbours, each handling `slices` slices of at most `n` bytes in
  // segments, combining at every hop or not: until the last segment has passed the last hop.
  double pipeline(double hops, double slices, double n, bool combining) const {
    const double segment = segment_bytes(n, slices);
    const double segments =
        n > 0 ? slices * static_cast<double>(static_cast<long>((n + segment - 1) / segment)) : 0;
    if (hops <= 0 || segments <= 0) return 0;
    const double combine = combining ? gamma(segment) : 0;
    const double pace = std::max(overhead() + transfer(segment, false), combine);
    return hops * (alpha() + transfer(segment, false) + combine) + (segments - 1) * pace;
  }
  // A ring of `steps` steps, each a block of n bytes in segments: bound by the ports, or by the way around.
  double ring(double steps, double n, bool combining) const {
    const double segment = segment_bytes(n, 4 * p());
    const double segments = n > 0 ? static_cast<double>(static_cast<long>((n + segment - 1) / segment)) : 0;
    if (steps <= 0 || segments <= 0) return 0;
    const double combine = combining ? gamma(segment) : 0;
    const double port = std::max(segments * overhead() + transfer(n, false), combining ? gamma(n) : 0);
    const double round_trip = alpha() + transfer(segment, false) + combine;
    return std::max(steps * port + round_trip,
                    steps * round_trip + (segments - 1) * (overhead() + transfer(segment, false)));
  }

 private:
  double segment_bytes(double n, double passes) const {
    const auto elements = static_cast<std::uint64_t>(n / problem_.element_size);
    const Segments segments(problem_, tuning_, elements, static_cast<std::uint64_t>(passes));
    return std::min(std::max(n, 1.0), static_cast<double>(segments.unit()) * problem_.element_size);
  }

  const Problem& problem_;
  const Tuning& tuning_;
  const CostModel& model_;
};

inline bool always(const Problem&) { return true; }
inline bool power_of_two_ranks(const Problem& problem) { return (problem.size & (problem.size - 1)) == 0; }

}  // namespace tutti
