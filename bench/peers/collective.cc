#include "bench/peers/collective.h"

#include <algorithm>
#include <array>

namespace tutti::perf {
namespace {

struct Info {
  Collective collective;
  std::string_view name;
};

constexpr std::array infos = {
    Info{Collective::barrier, "barrier"},       Info{Collective::broadcast, "broadcast"},
    Info{Collective::reduce, "reduce"},         Info{Collective::all_reduce, "all_reduce"},
    Info{Collective::all_gather, "all_gather"}, Info{Collective::reduce_scatter, "reduce_scatter"},
    Info{Collective::all_to_all, "all_to_all"}, Info{Collective::gather, "gather"},
    Info{Collective::scatter, "scatter"},       Info{Collective::pingpong, "pingpong"},
};

// The period is odd, so no power of two is a multiple of it. A block in the wrong place then has
// wrong values, even if its length is a power of two.
constexpr std::size_t period = 1021;

// Element i of a `Sequence` is scale * (i % period) + offset. The input of rank r has scale 1 and offset
// 1000 * r.
class Sequence {
 public:
  Sequence(float scale, float offset) {
    for (std::size_t i = 0; i < period; ++i) values_[i] = scale * static_cast<float>(i) + offset;
  }

  // Visits `count` elements, starting at `first`, in stretches that do not wrap around the period.
  // Calls visit(done, values, length) for each stretch. `done` is the number of elements visited
  // before it.
  template <class Visit>
  void stretches(std::size_t first, std::size_t count, const Visit& visit) const {
    for (std::size_t done = 0; done < count;) {
      const std::size_t at = (first + done) % period;
      const std::size_t length = std::min(period - at, count - done);
      visit(done, values_.data() + at, length);
      done += length;
    }
  }

  std::size_t differences(const float* data, std::size_t first, std::size_t count) const {
    std::size_t wrong = 0;
    stretches(first, count, [&](std::size_t done, const float* expected, std::size_t length) {
      for (std::size_t i = 0; i < length; ++i) wrong += data[done + i] != expected[i];
    });
    return wrong;
  }

 private:
  std::array<float, period> values_;
};

Sequence input_of(int rank) { return {1, 1000.0f * static_cast<float>(rank)}; }

Sequence sum_of(int ranks) {
  return {static_cast<float>(ranks), 1000.0f * static_cast<float>(ranks * (ranks - 1) / 2)};
}

}  // namespace

std::span<const Collective> all_collectives() {
  static const auto all = [] {
    std::array<Collective, infos.size()> made{};
    std::ranges::transform(infos, made.begin(), &Info::collective);
    return made;
  }();
  return all;
}

std::string_view name_of(Collective collective) {
  return std::ranges::find(infos, collective, &Info::collective)->name;
}

bool has_blocks(Collective collective) {
  switch (collective) {
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
    case Collective::gather:
    case Collective::scatter:
      return true;
    default:
      return false;
  }
}

double bus_factor(Collective collective, int ranks) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  if (collective == Collective::all_reduce) return 2 * others;
  return has_blocks(collective) ? others : 1;
}

void fill_input(std::span<float> out, int rank) {
  input_of(rank).stretches(0, out.size(), [&](std::size_t done, const float* values, std::size_t length) {
    std::copy_n(values, length, out.data() + done);
  });
}

std::size_t count_wrong(Collective collective, const float* out, std::size_t count, int rank, int ranks) {
  const std::size_t mine = count * static_cast<std::size_t>(rank);
  const auto blocks_from_all = [&](std::size_t first) {
    std::size_t wrong = 0;
    for (int r = 0; r < ranks; ++r)
      wrong += input_of(r).differences(out + count * static_cast<std::size_t>(r), first, count);
    return wrong;
  };
  switch (collective) {
    case Collective::barrier:
      return 0;
    case Collective::broadcast:
      return input_of(root).differences(out, 0, count);
    case Collective::reduce:
      return rank == root ? sum_of(ranks).differences(out, 0, count) : 0;
    case Collective::all_reduce:
      return sum_of(ranks).differences(out, 0, count);
    case Collective::reduce_scatter:
      return sum_of(ranks).differences(out, mine, count);
    case Collective::all_gather:
      return blocks_from_all(0);
    case Collective::gather:
      return rank == root ? blocks_from_all(0) : 0;
    case Collective::all_to_all:
      return blocks_from_all(mine);
    case Collective::scatter:
      return input_of(root).differences(out, mine, count);
    case Collective::pingpong:
      return input_of(1 - rank).differences(out, 0, count);
  }
  return 0;
}

}  // namespace tutti::perf
