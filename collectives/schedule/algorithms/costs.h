#pragma once

#include <algorithm>

#include "collectives/schedule/algorithms/layout.h"
#include "collectives/schedule/algorithms/tree.h"
#include "collectives/schedule/cost_model.h"
#include "collectives/schedule/topology.h"

// `Terms` computes the terms of closed-form costs. It uses only + - * / and comparisons, on values that all
// ranks share, and is compiled without fused multiply-adds. So every rank gets the same bits and makes the
// same choice.
namespace tutti {

// A `Path` is the cost of a connection for one rank while many ranks use the machine in the same pattern.
struct Path {
  double alpha = 0;         // as in LinkCost
  double gap = 0;           // port seconds per message
  double beta = 0;          // port seconds per byte, including other messages through the same port
  double core = 0;          // core seconds per message, summed over the ranks that share the core
  double core_byte = 0;     // core seconds per byte moved, summed over the same ranks
  double combine_byte = 0;  // core seconds per byte combined, summed over the same ranks
  double gamma = 0;         // seconds per byte combined, for a rank that has a core to itself
  double handshake = 0;
  std::uint64_t eager = 0;

  double arrival(double n) const {
    return alpha + n * beta + (n > static_cast<double>(eager) ? handshake : 0);
  }
  // Returns the seconds from one message to the next. If `combining` is true, each message is combined on
  // arrival.
  double pace(double n, bool combining) const {
    const double cores = core + n * (core_byte + (combining ? combine_byte : 0));
    return std::max({gap + n * beta, cores, combining ? n * gamma : 0});
  }
};

class Terms {
 public:
  Terms(const Problem& problem, const Tuning& tuning, const CostModel& model)
      : problem_(problem),
        tuning_(tuning),
        model_(model),
        hosts_(problem.topology == nullptr ? 1 : problem.topology->hosts()),
        crowd_(problem.topology == nullptr ? problem.size : problem.topology->most()) {}

  double p() const { return problem_.size; }
  double bytes() const { return static_cast<double>(problem_.count) * problem_.element_size; }
  int depth(int radix) const { return tree_depth(problem_.size, radix); }
  double gamma(double n) const { return model_.gamma * n * share(problem_.size); }

  // Returns the path if every rank sends to the rank that is `distance` further on, and receives the same
  // amount.
  Path shift(int distance) const { return shift(distance, distance); }
  // Returns the path if every rank sends several messages. The nearest receiver is `distance` ranks further
  // on; the mean distance of all receivers is `reach`.
  Path shift(int distance, int reach) const {
    // If the ranks of a host are not consecutive, all of them send to other hosts.
    const bool in_order = hosts_ > 1 && problem_.topology->regular();
    return path(hosts_ > 1, in_order ? std::min(reach, crowd_) : crowd_, distance, problem_.size, 2);
  }
  // Returns the path if the ranks exchange in pairs. The numbers of the two ranks differ by `distance`, a
  // power of two.
  Path exchange(int distance) const {
    const bool within = hosts_ == 1 || (problem_.topology->regular() && crowd_ % (2 * distance) == 0);
    return exchange(distance, within);
  }
  // Returns the path of such an exchange for a caller that knows whether each pair is `within` a host.
  Path exchange(int distance, bool within) const { return path(!within, crowd_, distance, problem_.size, 2); }
  // Returns the path of one round of a tree. In each range of `span` ranks, `fanout` ranks take
  // part, and one of them sends to the others.
  Path tree(int span, int fanout) const {
    return tree(span, fanout, hosts_ == 1 || (problem_.topology->regular() && crowd_ % span == 0));
  }
  // Returns the path of such a round for a caller that knows whether each range is `within` a host.
  Path tree(int span, int fanout, bool within) const {
    const int ranges = (problem_.size + span - 1) / std::max(span, 1);
    const int active = std::min(problem_.size, ranges * fanout);
    return path(!within, 1, span / 2, active, 1);
  }
  // Returns the path if all ranks send to one rank, or one rank sends to all others.
  Path rooted() const { return path(hosts_ > 1, 1, 2, std::min(2, problem_.size), 1); }

  // Returns the seconds until the last of `messages` messages has arrived. They have n bytes each, and are
  // sent one after the other through one port.
  double burst(double messages, double n, const Path& path) const {
    if (messages <= 0) return 0;
    return std::max(path.arrival(n) + (messages - 1) * (path.gap + n * path.beta),
                    messages * (path.core + n * path.core_byte));
  }
  // Returns the seconds that a `burst` takes if each message is combined on arrival. The slower of the
  // connection and the combining sets the pace.
  double reducing_burst(double messages, double n, const Path& path) const {
    if (messages <= 0) return 0;
    const double pace = std::max(path.gap + n * path.beta, path.gamma * n);
    return std::max(path.arrival(n) + (messages - 1) * pace + path.gamma * n, messages * path.pace(n, true));
  }
  double burst(double messages, double n, const Path& path, bool combining) const {
    return combining ? reducing_burst(messages, n, path) : burst(messages, n, path);
  }
  // Returns the seconds until the last segment has passed the last hop of a pipeline. The pipeline has `hops`
  // hops between neighbours. Each hop handles `slices` slices of at most `n` bytes in segments, and combines
  // them if `combining` is true.
  double pipeline(double hops, double slices, double n, bool combining) const {
    const double segment = segment_bytes(n, slices);
    const double segments = slices * pieces(n, segment);
    if (hops <= 0 || segments <= 0) return 0;
    return hops * hop(segment, combining) + (segments - 1) * shift(1).pace(segment, combining);
  }
  // Returns the seconds that a ring of `steps` steps takes. Each step moves a block of n bytes in segments.
  // Either the pace of the ports or the latency of the hops limits the ring.
  double ring(double steps, double n, bool combining) const {
    const double segment = segment_bytes(n, 4 * p());
    const double segments = pieces(n, segment);
    if (steps <= 0 || segments <= 0) return 0;
    const double around = hop(segment, combining);
    const double pace = shift(1).pace(segment, combining);
    return std::max(steps * segments * pace + around, steps * around + (segments - 1) * pace);
  }
  // Returns the seconds that neighbours take to exchange n bytes in one round.
  double turn(double n) const {
    const Path path = shift(1);
    return std::max(hop(0, false) + path.arrival(n) - path.alpha, path.core + n * path.core_byte);
  }
  // Returns the average seconds that n bytes take from one rank to the next. If the ranks of each host are
  // consecutive, few hops leave a host.
  double hop(double n, bool combining) const {
    const double far = shift(1).arrival(n) + (combining ? model_.gamma * n : 0);
    if (hosts_ == 1 || !problem_.topology->regular()) return far;
    const double near = path(false, 1, 1, problem_.size, 2).arrival(n) + (combining ? model_.gamma * n : 0);
    return near + (far - near) / crowd_;
  }
  // Returns the seconds that the rounds of circulant.h take for a vector of n bytes. Each round has up
  // to two messages, which are combined if `combining` is true.
  double circulant(double n, bool combining) const {
    double seconds = 0;
    for (int span = problem_.size; span > 1; span = (span + 1) / 2) {
      const int blocks = span / 2;
      const double piece = n * blocks / p() / (blocks > 1 ? 2 : 1);
      const double messages = blocks > 1 ? 2 : 1;
      seconds += burst(messages, piece, shift((span + 1) / 2), combining);
    }
    return seconds;
  }
  // Returns the seconds to move a whole vector of n bytes down or up a k-nomial tree. On the way up it may be
  // combined.
  double whole_tree(double n, int k, bool combining) const {
    double seconds = 0;
    for (int ranks = problem_.size; ranks > 1; ranks = (ranks + k - 1) / k) {
      seconds += burst(std::min(k, ranks) - 1, n, tree(ranks, k), combining);
    }
    return seconds;
  }
  // Returns the seconds to move a vector of n bytes down or up a binomial tree. Each level of the
  // tree moves half as much as the level above it.
  double halving_tree(double n) const {
    double seconds = 0;
    for (int ranks = problem_.size; ranks > 1; ranks = (ranks + 1) / 2) {
      n /= 2;
      seconds += burst(1, n, tree(ranks, 2));
    }
    return seconds;
  }

 private:
  // Returns how many ranks share a core if `active` ranks of the problem work at the same time: at least 1.
  // The problem may be one host's part of a larger collective. In that case the other hosts on the same
  // machine, such as containers, work on their own parts at the same time.
  double share(int active) const {
    if (model_.cores == 0) return 1;
    const double machine = static_cast<double>(crowd_) * model_.hosts_per_machine;
    const double here = hosts_ > 1 ? std::min<double>(active, machine)
                                   : static_cast<double>(active) * model_.hosts_per_machine;
    return std::max(1.0, here / model_.cores);
  }
  // `through` is the number of messages that pass a host's port at the same time. `active` is the number of
  // ranks that work at the same time. Each of them handles `ends` messages at once: 2 if it sends one and
  // receives one.
  Path path(bool far, int through, int distance, int active, int ends) const {
    const LinkCost& link = far ? model_.far : model_.near;
    const double shared = far ? std::max(through, 1) : 1;
    const double load = share(active) * ends;
    return {.alpha = link.alpha,
            .gap = link.gap,
            .beta = link.beta * shared * (distance > 1 ? model_.congestion : 1.0),
            .core = link.busy * load,
            .core_byte = link.busy_byte * load,
            .combine_byte = model_.gamma * share(active),
            .gamma = model_.gamma,
            .handshake = link.handshake,
            .eager = model_.eager};
  }
  static double pieces(double n, double segment) {
    return n > 0 ? static_cast<double>(static_cast<long>((n + segment - 1) / segment)) : 0;
  }
  double segment_bytes(double n, double passes) const {
    const auto elements = static_cast<std::uint64_t>(n / problem_.element_size);
    const Segments segments(problem_, tuning_, elements, static_cast<std::uint64_t>(passes));
    return std::min(std::max(n, 1.0), static_cast<double>(segments.unit()) * problem_.element_size);
  }

  const Problem& problem_;
  const Tuning& tuning_;
  const CostModel& model_;
  int hosts_;
  int crowd_;  // ranks on the host that has the most
};

inline bool always(const Problem&) { return true; }
inline bool power_of_two_ranks(const Problem& problem) { return (problem.size & (problem.size - 1)) == 0; }

}  // namespace tutti
