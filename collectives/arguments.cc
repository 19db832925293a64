#include "collectives/arguments.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>

#include "transport/message.h"

namespace tutti {

namespace {

Status invalid(std::string text) { return Status(Code::invalid_argument, std::move(text)); }

Status no_type(DataType type) {
  return invalid(std::to_string(static_cast<int>(type)) + " is not a data type");
}

// Sums and products of counts saturate at this value, the largest size of an object, instead of wrapping
// around.
constexpr std::uint64_t too_much = std::numeric_limits<std::ptrdiff_t>::max();

std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  return b != 0 && a > too_much / b ? too_much : a * b;
}

std::uint64_t total(std::span<const std::uint64_t> counts) {
  std::uint64_t sum = 0;
  for (const std::uint64_t count : counts) sum = count > too_much - sum ? too_much : sum + count;
  return sum;
}

// Returns whether memory could have room for `count` elements. No element has more than eight bytes.
bool fits_memory(std::uint64_t count) { return count < too_much / 8; }

// A `Context` is a call on one rank.
struct Context {
  const Call& call;
  int rank;
  int size;
  bool is_root() const { return rank == call.root; }
  std::uint64_t p() const { return static_cast<std::uint64_t>(size); }
};

// Returns the number of elements of one rank's share, which becomes Problem::count.
std::uint64_t share(const Context& c) {
  switch (c.call.kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::reduce:
    case CollectiveKind::scan:
    case CollectiveKind::exscan:
    case CollectiveKind::all_gather:
    case CollectiveKind::gather:
      return c.call.in.count;
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::scatter:
      return c.call.out.count;
    case CollectiveKind::all_to_all:
      return c.call.out.count / c.p();
    default:
      return 0;
  }
}

// Checks that there is one count for each rank, if the call's kind has counts (its name ends in
// _v).
Status check_counts(const Context& c) {
  const auto wrong = [&](std::span<const std::uint64_t> counts, const char* which) {
    if (counts.size() == c.p()) return Status();
    return invalid(std::string(which) + " has " + std::to_string(counts.size()) + " entries for " +
                   std::to_string(c.size) + " ranks");
  };
  switch (c.call.kind) {
    case CollectiveKind::all_gather_v:
      return wrong(c.call.out_counts, "counts");
    case CollectiveKind::reduce_scatter_v:
      return wrong(c.call.in_counts, "counts");
    case CollectiveKind::gather_v:
      return c.is_root() ? wrong(c.call.out_counts, "counts") : Status();
    case CollectiveKind::scatter_v:
      return c.is_root() ? wrong(c.call.in_counts, "counts") : Status();
    case CollectiveKind::all_to_all_v: {
      const Status in = wrong(c.call.in_counts, "in_counts");
      return in.ok() ? wrong(c.call.out_counts, "out_counts") : in;
    }
    default:
      return Status();
  }
}

// Separate functions make the texts of errors, so that the checks themselves stay short enough to be inlined.
[[gnu::cold]] Status wrong_size(const char* side, std::uint64_t have, std::uint64_t need) {
  if (have == need) return invalid(std::string(side) + " is null");
  return invalid(std::string(side) + " holds " + std::to_string(have) + " elements, needs " +
                 std::to_string(need));
}

[[gnu::cold]] Status different(const std::string& in, const std::string& out) {
  return invalid("in is " + in + ", out is " + out);
}

Status check_size(const char* side, std::uint64_t have, std::uint64_t need, const void* data) {
  return have == need && (need == 0 || data != nullptr) ? Status() : wrong_size(side, have, need);
}

// Checks that both buffers lie in the same memory, and that they are either in place or do not overlap at
// all. If the smaller buffer corresponds to a block of the larger one, "in place" means that the smaller
// buffer is exactly that block.
Status check_overlap(const Context& c, Problem& problem) {
  const ConstBuffer& in = c.call.in;
  const Buffer& out = c.call.out;
  if (in.memory != out.memory) return different(to_string(in.memory), to_string(out.memory));
  if (in.bytes() == 0 || out.bytes() == 0) return Status();
  const auto* in_begin = static_cast<const std::byte*>(in.data);
  const auto* out_begin = static_cast<const std::byte*>(out.data);
  const std::size_t offset = own_block_offset(problem) * problem.element_size;
  problem.in_place =
      in.bytes() <= out.bytes() ? in_begin == out_begin + offset : out_begin == in_begin + offset;
  // In place, each received block replaces a sent block. If their sizes differed, a received block would
  // overwrite blocks that are still to be sent.
  if (problem.kind == CollectiveKind::all_to_all_v) {
    problem.in_place = problem.in_place && std::ranges::equal(problem.input_counts, problem.output_counts);
  }
  const bool apart = in_begin + in.bytes() <= out_begin || out_begin + out.bytes() <= in_begin;
  return problem.in_place || apart ? Status() : invalid("in and out overlap without being in place");
}

// Returns the type of the elements: the input's type if this rank has an input, and otherwise the output's
// type.
DataType type_of(const Context& c) { return has_input(c.call, c.rank) ? c.call.in.type : c.call.out.type; }

Status check_types(const Context& c, bool has_in, bool has_out) {
  const DataType in = c.call.in.type;
  const DataType out = c.call.out.type;
  if (has_in && has_out && in != out) {
    return different(std::string(to_string(in)), std::string(to_string(out)));
  }
  const DataType type = has_in ? in : out;
  if (is_reduction(c.call.kind) && !c.call.op->supports(type)) {
    return Status(Code::unsupported,
                  c.call.op->name() + " is not defined on " + std::string(to_string(type)));
  }
  if (product(share(c), c.p()) == too_much || total(c.call.in_counts) == too_much ||
      total(c.call.out_counts) == too_much) {
    return invalid("more elements than memory can hold");
  }
  return Status();
}

Problem problem_of(const Context& c) {
  const Call& call = c.call;
  const ReduceOp::Kind op = call.op->kind();
  Problem problem;
  problem.kind = call.kind;
  problem.rank = c.rank;
  problem.size = c.size;
  problem.root = call.root;
  problem.count = share(c);
  problem.element_size = static_cast<std::uint32_t>(size_of(type_of(c)));
  problem.commutative = call.op->commutative();
  problem.average = op == ReduceOp::Kind::avg;
  problem.premultiplied = op == ReduceOp::Kind::premultiplied_sum;
  problem.agrees = is_reduction(call.kind) && op == ReduceOp::Kind::user;
  problem.input_counts = call.in_counts;
  problem.output_counts = call.out_counts;
  // Ranks other than the root know only their own count: the size of their buffer.
  if (!c.is_root() && call.kind == CollectiveKind::gather_v) problem.output_counts = {&call.in.count, 1};
  if (!c.is_root() && call.kind == CollectiveKind::scatter_v) problem.input_counts = {&call.out.count, 1};
  return problem;
}

}  // namespace

Fingerprint fingerprint(const Call& call, int rank, int size) {
  const Context context{call, rank, size};
  Fingerprint print;
  print.kind = call.kind;
  print.part_of = call.part_of;
  if (call.kind != CollectiveKind::barrier) {
    const bool reads = has_input(call, rank);
    print.type = reads ? call.in.type : call.out.type;
    print.on_device = (reads ? call.in.memory : call.out.memory) != Memory();
  }
  if (is_reduction(call.kind)) print.op = call.op->kind();
  if (has_root(call.kind)) print.root = call.root;
  const Counted by = counted(call.kind);
  if (by == Counted::share) print.count = share(context);
  if (by == Counted::digest) {
    const bool gathers = call.kind == CollectiveKind::all_gather_v;
    print.count = digest_of(gathers ? call.out_counts : call.in_counts);
  }
  return print;
}

Result<Problem> check(const Call& call, int rank, int size) {
  if (call.root < 0 || call.root >= size) {
    return invalid("root " + std::to_string(call.root) + " of " + std::to_string(size) + " ranks");
  }
  for (const DataType type : {call.in.type, call.out.type}) {
    if (!is_data_type(type)) return no_type(type);
  }
  if (!fits_memory(call.in.count) || !fits_memory(call.out.count)) {
    return invalid("a buffer is larger than memory can be");
  }
  const Context context{call, rank, size};
  const bool has_in = has_input(call, rank);
  const bool has_out = has_output(call, rank);
  Status status = check_counts(context);
  if (status.ok()) status = check_types(context, has_in, has_out);
  if (!status.ok()) return status;
  Problem problem = problem_of(context);
  if (has_in) status = check_size("in", call.in.count, input_count(problem), call.in.data);
  if (status.ok() && has_out)
    status = check_size("out", call.out.count, output_count(problem), call.out.data);
  if (status.ok() && has_in && has_out) status = check_overlap(context, problem);
  if (!status.ok()) return status;
  return problem;
}

Status check(const Transfer& transfer, int size) {
  const bool sends = transfer.direction == Transfer::Direction::send;
  const bool any_peer = !sends && transfer.peer == any_rank;
  if (!any_peer && (transfer.peer < 0 || transfer.peer >= size)) {
    return invalid("peer " + std::to_string(transfer.peer) + " of " + std::to_string(size) + " ranks");
  }
  const bool tag_fits = transfer.tag < library_tag_bit || (!sends && transfer.tag == any_tag);
  if (!tag_fits) return invalid("tag " + std::to_string(transfer.tag) + " is 2^63 or more");
  if (!is_data_type(transfer.buffer.type)) return no_type(transfer.buffer.type);
  if (!fits_memory(transfer.buffer.count)) {
    return invalid("a buffer is larger than memory can be");
  }
  if (transfer.buffer.count != 0 && transfer.buffer.data == nullptr) return invalid("the buffer is null");
  return {};
}

Status useless_region() {
  return Status(Code::unsupported, "nothing here can use a registered region: pass none");
}

Status useless_stream(std::string_view why) {
  return Status(Code::unsupported, "nothing here can follow a stream (" + std::string(why) +
                                       "): wait for the stream before the call, and pass none");
}

Status useless_memory(std::string_view why) {
  return Status(Code::unsupported, "nothing here can use the memory of a CUDA device (" + std::string(why) +
                                       "): copy the elements to host memory first");
}

}  // namespace tutti
