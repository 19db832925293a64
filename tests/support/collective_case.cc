#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>

#include <tutti/core/float16.h>
#include <tutti/core/reduce.h>
#include <tutti/tests/support/collective_case.h>

namespace tutti::test {

namespace {

using Kind = CollectiveKind;

template <class Visit>
auto with_type(DataType type, Visit visit) {
  switch (type) {
    case DataType::int8:
      return visit(std::int8_t{});
    case DataType::uint8:
      return visit(std::uint8_t{});
    case DataType::int32:
      return visit(std::int32_t{});
    case DataType::uint32:
      return visit(std::uint32_t{});
    case DataType::int64:
      return visit(std::int64_t{});
    case DataType::uint64:
      return visit(std::uint64_t{});
    case DataType::float16:
      return visit(float16{});
    case DataType::bfloat16:
      return visit(bfloat16{});
    case DataType::float32:
      return visit(float{});
    case DataType::float64:
      return visit(double{});
    case DataType::boolean:
      return visit(bool{});
    case DataType::float8_e4m3:
      return visit(float8_e4m3{});
    case DataType::float8_e5m2:
      return visit(float8_e5m2{});
  }
  return visit(std::uint8_t{});
}

void put(DataType type, std::byte* to, double value) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    T element;
    if constexpr (std::is_arithmetic_v<T>) {
      element = static_cast<T>(value);
    } else {
      element = T(static_cast<float>(value));
    }
    std::memcpy(to, &element, sizeof element);
    return 0;
  });
}

// Inputs are below this, so that `ranks` of them add up exactly.
int value_range(DataType type) {
  switch (type) {
    case DataType::boolean:
    case DataType::float8_e4m3:
    case DataType::float8_e5m2:
      return 2;
    case DataType::int8:
    case DataType::uint8:
      return 8;
    case DataType::float16:
    case DataType::bfloat16:
      return 15;
    default:
      return 1009;
  }
}

double input_value(const CollectiveCase& test, int rank, std::uint64_t i, int size) {
  if (test.op.kind() == ReduceOp::Kind::product && is_reduction(test.kind)) {
    return i % static_cast<std::uint64_t>(size) == static_cast<std::uint64_t>(rank) ? 2 : 1;
  }
  const auto range = static_cast<std::uint64_t>(value_range(test.type));
  const bool halved = test.op.kind() == ReduceOp::Kind::premultiplied_sum && test.type == DataType::int8;
  return static_cast<double>((static_cast<std::uint64_t>(rank) * 7 + i * 3 + i / 64) % range /
                             (halved ? 2 : 1));
}

double combine(const ReduceOp& op, DataType type, double a, double b) {
  const auto bits = [&](auto operation) {
    return static_cast<double>(operation(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)));
  };
  switch (op.kind()) {
    case ReduceOp::Kind::sum:
    case ReduceOp::Kind::avg:
    case ReduceOp::Kind::premultiplied_sum:
      return type == DataType::boolean ? std::max(a, b) : a + b;
    case ReduceOp::Kind::product:
      return a * b;
    case ReduceOp::Kind::min:
      return std::min(a, b);
    case ReduceOp::Kind::max:
      return std::max(a, b);
    case ReduceOp::Kind::bit_and:
      return bits([](auto x, auto y) { return x & y; });
    case ReduceOp::Kind::bit_or:
      return bits([](auto x, auto y) { return x | y; });
    case ReduceOp::Kind::bit_xor:
      return bits([](auto x, auto y) { return x ^ y; });
    case ReduceOp::Kind::user:
      return b != 0 ? b : a;
  }
  return 0;
}

// The reduction of element i over ranks [0, end), as bytes of the type.
void put_reduced(const CollectiveCase& test, std::byte* to, std::uint64_t i, int end, int size) {
  const double factor = test.op.kind() == ReduceOp::Kind::premultiplied_sum ? test.op.factor() : 1;
  double value = input_value(test, 0, i, size) * factor;
  for (int r = 1; r < end; ++r)
    value = combine(test.op, test.type, value, input_value(test, r, i, size) * factor);
  put(test.type, to, value);
  if (test.op.kind() == ReduceOp::Kind::avg) divide(to, to, 1, test.type, static_cast<std::size_t>(size));
}

// Counts of the _v kinds: uneven, some of them zero.
std::uint64_t uneven(std::uint64_t count, int rank) {
  return count * static_cast<std::uint64_t>((rank + 1) % 3) / 2;
}
std::uint64_t uneven_pair(std::uint64_t count, int from, int to) { return uneven(count, from + 2 * to); }

struct Layout {
  std::vector<std::uint64_t> in_counts;  // one block per rank, or a single one
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

// The value of element i of rank r's input; blocks are numbered through.
void put_input(const CollectiveCase& test, std::byte* to, int rank, std::uint64_t i, int size) {
  put(test.type, to, input_value(test, rank, i, size));
}

void fill_input(const CollectiveCase& test, std::byte* to, std::uint64_t count, int rank, int size) {
  const std::size_t element = size_of(test.type);
  for (std::uint64_t i = 0; i < count; ++i) put_input(test, to + i * element, rank, i, size);
}

std::uint64_t before(const std::vector<std::uint64_t>& counts, int rank) {
  return std::accumulate(counts.begin(), counts.begin() + rank, std::uint64_t{0});
}

// What the output must hold; `unchanged` says that the output must be as it was.
void fill_expected(const CollectiveCase& test, const Layout& layout, std::byte* to, int rank, int size,
                   bool& unchanged) {
  const std::size_t element = size_of(test.type);
  const std::uint64_t n = layout.out();
  for (int r = 0; r < size; ++r) {
    const std::uint64_t offset = layout.out_counts.size() > 1 ? before(layout.out_counts, r) : 0;
    const std::uint64_t block =
        layout.out_counts.size() > 1 ? layout.out_counts[static_cast<std::size_t>(r)] : 0;
    for (std::uint64_t i = 0; i < block; ++i) {
      std::uint64_t source = i;
      if (test.kind == Kind::all_to_all || test.kind == Kind::all_to_all_v) {
        source += before(layout_of(test, r, size).in_counts, rank);
      }
      put_input(test, to + (offset + i) * element, r, source, size);
    }
  }
  if (layout.out_counts.size() > 1) return;
  for (std::uint64_t i = 0; i < n; ++i) {
    std::byte* const at = to + i * element;
    switch (test.kind) {
      case Kind::broadcast:
        put_input(test, at, test.root, i, size);
        break;
      case Kind::scatter:
        put_input(test, at, test.root, static_cast<std::uint64_t>(rank) * test.count + i, size);
        break;
      case Kind::scatter_v: {
        const Layout of_root = layout_of(test, test.root, size);
        put_input(test, at, test.root, before(of_root.in_counts, rank) + i, size);
        break;
      }
      case Kind::scan:
        put_reduced(test, at, i, rank + 1, size);
        break;
      case Kind::exscan:
        unchanged = rank == 0;
        if (rank > 0) put_reduced(test, at, i, rank, size);
        break;
      case Kind::reduce_scatter:
      case Kind::reduce_scatter_v:
        put_reduced(test, at, before(layout.in_counts, rank) + i, size, size);
        break;
      case Kind::all_gather:
      case Kind::all_gather_v:
      case Kind::gather:
      case Kind::gather_v:
      case Kind::all_to_all:
      case Kind::all_to_all_v:
        put_input(test, at, 0, i, size);
        break;  // a world of one
      default:
        put_reduced(test, at, i, size, size);
    }
  }
}

constexpr std::byte guard{0xa5};

// Memory with a guard on both sides, in `given` or of its own.
class Guarded {
 public:
  Guarded(std::size_t bytes, std::span<std::byte> given) : own_(given.empty() ? bytes + 2 * case_guard : 0) {
    memory_ = given.empty() ? std::span(own_) : given.first(bytes + 2 * case_guard);
    std::fill(memory_.begin(), memory_.end(), guard);
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

// Where the own block lies when one side is a block of the other, in elements.
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
        const std::size_t element = size_of(type);
        const std::vector<std::byte> zero(element);
        for (std::size_t i = 0; i < count; ++i) {
          const auto* r = static_cast<const std::byte*>(right) + i * element;
          const auto* l = static_cast<const std::byte*>(left) + i * element;
          const bool is_zero = std::memcmp(r, zero.data(), element) == 0;
          std::memmove(static_cast<std::byte*>(out) + i * element, is_zero ? l : r, element);
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
  fill_input(test, in.data(), layout.in(), rank, size);
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
  const std::vector<std::byte> original(static_cast<std::byte*>(to.data),
                                        static_cast<std::byte*>(to.data) + out.size());

  by(comm, test, {from, to, layout.in_counts, layout.out_counts});

  std::vector<std::byte> expected(out.size());
  bool unchanged = !layout.has_out;
  if (layout.has_out) fill_expected(test, layout, expected.data(), rank, size, unchanged);
  if (unchanged) expected = original;
  const auto* result = static_cast<const std::byte*>(to.data);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (result[i] == expected[i]) continue;
    return test.describe() + ": wrong element " + std::to_string(i / element) + " of " +
           std::to_string(layout.out()) + " on rank " + std::to_string(rank) + " of " + std::to_string(size);
  }
  if (!in.intact() || !out.intact())
    return test.describe() + ": wrote beyond a buffer on rank " + std::to_string(rank);
  if (!input_holds_output && !std::equal(input.begin(), input.end(), in.data())) {
    return test.describe() + ": changed its input on rank " + std::to_string(rank);
  }
  return {};
}

}  // namespace tutti::test
