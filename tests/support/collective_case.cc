#include "tests/support/collective_case.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>

#include "tests/support/collective_values.h"

namespace tutti::test {

namespace {

using Kind = CollectiveKind;

// Returns one rank's count for the _v kinds. Counts are uneven, and some are zero.
std::uint64_t uneven(std::uint64_t count, int rank) {
  return count * static_cast<std::uint64_t>((rank + 1) % 3) / 2;
}
std::uint64_t uneven_pair(std::uint64_t count, int from, int to) { return uneven(count, from + 2 * to); }

struct Layout {
  std::vector<std::uint64_t> in_counts;  // one block for each rank, or a single block
  std::vector<std::uint64_t> out_counts;
  bool has_in = true;
  bool has_out = true;
  std::uint64_t in() const { return std::accumulate(in_counts.begin(), in_counts.end(), std::uint64_t{0}); }
  std::uint64_t out() const {
    return std::accumulate(out_counts.begin(), out_counts.end(), std::uint64_t{0});
  }
};

Layout layout_of(const CollectiveCase& test, int rank, int size) {
  const auto p = static_cast<std::size_t>(size);
  const std::uint64_t n = test.count;
  const bool root = rank == test.root;
  std::vector<std::uint64_t> blocks(p, n);
  std::vector<std::uint64_t> ragged(p);
  std::vector<std::uint64_t> to_each(p);
  std::vector<std::uint64_t> from_each(p);
  for (int r = 0; r < size; ++r) {
    const auto i = static_cast<std::size_t>(r);
    ragged[i] = uneven(n, r);
    to_each[i] = uneven_pair(n, rank, r);
    from_each[i] = uneven_pair(n, r, rank);
  }
  const std::vector<std::uint64_t> own{ragged[static_cast<std::size_t>(rank)]};
  switch (test.kind) {
    case Kind::all_reduce:
    case Kind::scan:
    case Kind::exscan:
      return {{n}, {n}};
    case Kind::reduce:
      return {{n}, {n}, true, root};
    case Kind::broadcast:
      return {{n}, {n}};
    case Kind::all_gather:
      return {{n}, blocks};
    case Kind::all_gather_v:
      return {own, ragged};
    case Kind::reduce_scatter:
      return {blocks, {n}};
    case Kind::reduce_scatter_v:
      return {ragged, own};
    case Kind::all_to_all:
      return {blocks, blocks};
    case Kind::all_to_all_v:
      return {to_each, from_each};
    case Kind::gather:
      return {{n}, blocks, true, root};
    case Kind::gather_v:
      return {own, ragged, true, root};
    case Kind::scatter:
      return {blocks, {n}, root, true};
    case Kind::scatter_v:
      return {ragged, own, root, true};
    default:
      return {{0}, {0}, false, false};
  }
}

std::uint64_t before(const std::vector<std::uint64_t>& counts, int rank) {
  return std::accumulate(counts.begin(), counts.begin() + rank, std::uint64_t{0});
}

// Overwrites `to` with the right output.
void fill_expected(const CollectiveCase& test, const Layout& layout, std::byte* to, int rank, int size) {
  if (layout.out_counts.size() > 1) {
    const bool from_each = test.kind == Kind::all_to_all || test.kind == Kind::all_to_all_v;
    for (int r = 0; r < size; ++r) {
      const std::uint64_t block = layout.out_counts[static_cast<std::size_t>(r)];
      const std::uint64_t first = from_each ? before(layout_of(test, r, size).in_counts, rank) : 0;
      fill_input(test, to, r, first, block, size);
      to += block * size_of(test.type);
    }
    return;
  }
  const std::uint64_t n = layout.out();
  switch (test.kind) {
    case Kind::broadcast:
      fill_input(test, to, test.root, 0, n, size);
      break;
    case Kind::scatter:
    case Kind::scatter_v:
      fill_input(test, to, test.root, before(layout_of(test, test.root, size).in_counts, rank), n, size);
      break;
    case Kind::scan:
      fill_reduced(test, to, 0, n, rank + 1, size);
      break;
    case Kind::exscan:
      if (rank > 0) fill_reduced(test, to, 0, n, rank, size);
      break;
    case Kind::all_gather:
    case Kind::all_gather_v:
    case Kind::gather:
    case Kind::gather_v:
    case Kind::all_to_all:
    case Kind::all_to_all_v:
      fill_input(test, to, 0, 0, n, size);
      break;  // reached only if there is one rank, whose output equals its input
    default:  // reductions; the output of a reduce_scatter is this rank's block
      fill_reduced(test, to, layout.in_counts.size() > 1 ? before(layout.in_counts, rank) : 0, n, size, size);
  }
}

constexpr std::byte guard{0xa5};

// `Guarded` is memory with guard bytes on both sides. It lies in `given`, or in new memory if
// `given` is empty.
class Guarded {
 public:
  Guarded(std::size_t bytes, std::span<std::byte> given) : own_(given.empty() ? bytes + 2 * case_guard : 0) {
    memory_ = given.empty() ? std::span(own_) : given.first(bytes + 2 * case_guard);
    std::memset(memory_.data(), std::to_integer<int>(guard), memory_.size());
  }
  std::byte* data() { return memory_.data() + case_guard; }
  std::size_t size() const { return memory_.size() - 2 * case_guard; }
  bool intact() const {
    const auto is_guard = [](std::byte byte) { return byte == guard; };
    const auto before = memory_.first(case_guard);
    const auto after = memory_.last(case_guard);
    return std::all_of(before.begin(), before.end(), is_guard) &&
           std::all_of(after.begin(), after.end(), is_guard);
  }

 private:
  std::vector<std::byte> own_;
  std::span<std::byte> memory_;
};

Work issue(Communicator& comm, const CollectiveCase& test, const CaseCall& call) {
  const auto& [in, out, in_counts, out_counts] = call;
  const CallOptions options{.timeout = test.timeout, .algorithm = test.algorithm};
  switch (test.kind) {
    case Kind::all_reduce:
      return test.in_place ? comm.all_reduce(out, test.op, options)
                           : comm.all_reduce(in, out, test.op, options);
    case Kind::reduce:
      return comm.reduce(in, out, test.op, test.root, options);
    case Kind::broadcast:
      return comm.broadcast(out, test.root, options);
    case Kind::all_gather:
      return test.in_place ? comm.all_gather(out, options) : comm.all_gather(in, out, options);
    case Kind::all_gather_v:
      return comm.all_gather_v(in, out, out_counts, options);
    case Kind::reduce_scatter:
      return comm.reduce_scatter(in, out, test.op, options);
    case Kind::reduce_scatter_v:
      return comm.reduce_scatter_v(in, out, in_counts, test.op, options);
    case Kind::all_to_all:
      return test.in_place ? comm.all_to_all(out, options) : comm.all_to_all(in, out, options);
    case Kind::all_to_all_v:
      return comm.all_to_all_v(in, in_counts, out, out_counts, options);
    case Kind::gather:
      return comm.gather(in, out, test.root, options);
    case Kind::gather_v:
      return comm.gather_v(in, out, out_counts, test.root, options);
    case Kind::scatter:
      return comm.scatter(in, out, test.root, options);
    case Kind::scatter_v:
      return comm.scatter_v(in, in_counts, out, test.root, options);
    case Kind::scan:
      return test.in_place ? comm.scan(out, test.op, options) : comm.scan(in, out, test.op, options);
    case Kind::exscan:
      return test.in_place ? comm.exscan(out, test.op, options) : comm.exscan(in, out, test.op, options);
    default:
      return comm.barrier(options);
  }
}

// Returns the index of the first byte that differs, or the number of bytes if none does. It first compares
// all bytes in one call, since a sanitizer makes a loop over single bytes slow.
std::size_t first_difference(const std::byte* data, const std::vector<std::byte>& expected) {
  if (expected.empty() || std::memcmp(data, expected.data(), expected.size()) == 0) return expected.size();
  return static_cast<std::size_t>(std::mismatch(expected.begin(), expected.end(), data).first -
                                  expected.begin());
}

// Returns the offset, in elements, of the rank's own block within the larger of its two buffers.
// The larger buffer is the output of an all_gather, and the input of a reduce_scatter.
std::uint64_t own_block(const CollectiveCase& test, const Layout& layout, int rank) {
  switch (test.kind) {
    case Kind::all_gather:
    case Kind::all_gather_v:
      return before(layout.out_counts, rank);
    case Kind::reduce_scatter:
    case Kind::reduce_scatter_v:
      return before(layout.in_counts, rank);
    default:
      return 0;
  }
}

template <class Bits>
void take_last_nonzero(const void* left, const void* right, void* out, std::size_t count) {
  const auto* const l = static_cast<const Bits*>(left);
  const auto* const r = static_cast<const Bits*>(right);
  auto* const result = static_cast<Bits*>(out);
  for (std::size_t i = 0; i < count; ++i) result[i] = r[i] != 0 ? r[i] : l[i];
}

}  // namespace

std::string CollectiveCase::describe() const {
  std::string text = std::string(to_string(kind)) + " " + std::string(to_string(type));
  if (is_reduction(kind)) text += " " + op.name();
  text += " count " + std::to_string(count);
  if (has_root(kind)) text += " root " + std::to_string(root);
  if (in_place) text += " in place";
  if (!algorithm.empty()) text += " by " + algorithm;
  return text;
}

bool has_in_place(CollectiveKind kind) {
  return kind == Kind::all_reduce || kind == Kind::reduce || kind == Kind::all_gather ||
         kind == Kind::all_gather_v || kind == Kind::reduce_scatter || kind == Kind::reduce_scatter_v ||
         kind == Kind::all_to_all || kind == Kind::scan || kind == Kind::exscan;
}

ReduceOp last_nonzero() {
  return ReduceOp::user(
      "last_nonzero",
      [](const void* left, const void* right, void* out, std::size_t count, DataType type, void*) {
        switch (size_of(type)) {
          case 1:
            return take_last_nonzero<std::uint8_t>(left, right, out, count);
          case 2:
            return take_last_nonzero<std::uint16_t>(left, right, out, count);
          case 4:
            return take_last_nonzero<std::uint32_t>(left, right, out, count);
          default:
            return take_last_nonzero<std::uint64_t>(left, right, out, count);
        }
      },
      false);
}

void perform(Communicator& communicator, const CollectiveCase& test, const CaseCall& call) {
  issue(communicator, test, call).wait();
}

std::string run_case(Communicator& comm, const CollectiveCase& test, const CaseMemory& memory,
                     const Perform& by) {
  try {
    return attempt_case(comm, test, memory, by);
  } catch (const Error& error) {
    return test.describe() + ": " + error.what();
  }
}

std::string attempt_case(Communicator& comm, const CollectiveCase& test, const CaseMemory& memory,
                         const Perform& by) {
  const int rank = comm.rank();
  const int size = comm.size();
  const std::size_t element = size_of(test.type);
  const Layout layout = layout_of(test, rank, size);
  Guarded in(layout.in() * element, memory.input);
  Guarded out(layout.out() * element, memory.output);
  fill_input(test, in.data(), rank, 0, layout.in(), size);
  const std::vector<std::byte> input(in.data(), in.data() + in.size());

  ConstBuffer from(in.data(), layout.in(), test.type);
  Buffer to(out.data(), layout.out(), test.type);
  const std::uint64_t block = own_block(test, layout, rank);
  const bool input_holds_output = test.in_place && layout.in() > layout.out();
  if (test.kind == Kind::broadcast) {
    if (rank == test.root) std::copy(input.begin(), input.end(), out.data());
  } else if (test.in_place && layout.has_out && layout.has_in) {
    if (input_holds_output) {
      to.data = in.data() + block * element;
    } else {
      std::copy(input.begin(), input.end(), out.data() + block * element);
      from.data = out.data() + block * element;
    }
  }
  const auto* const result = static_cast<const std::byte*>(to.data);
  std::vector<std::byte> expected(result, result + out.size());
  by(comm, test, {from, to, layout.in_counts, layout.out_counts});

  if (layout.has_out) fill_expected(test, layout, expected.data(), rank, size);
  if (const std::size_t i = first_difference(result, expected); i < expected.size()) {
    return test.describe() + ": wrong element " + std::to_string(i / element) + " of " +
           std::to_string(layout.out()) + " on rank " + std::to_string(rank) + " of " + std::to_string(size);
  }
  if (!in.intact() || !out.intact())
    return test.describe() + ": wrote beyond a buffer on rank " + std::to_string(rank);
  if (!input_holds_output && first_difference(in.data(), input) < input.size()) {
    return test.describe() + ": changed its input on rank " + std::to_string(rank);
  }
  return {};
}

}  // namespace tutti::test
