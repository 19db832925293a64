#include <cstddef>
#include <limits>
#include <string>

#include <tutti/collectives/arguments.h>

namespace tutti {

namespace {

Status invalid(std::string text) { return Status(Code::invalid_argument, std::move(text)); }

// More bytes than an object can have; sums and products stop there instead of wrapping round.
constexpr std::uint64_t too_much = std::numeric_limits<std::ptrdiff_t>::max();

std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  return b != 0 && a > too_much / b ? too_much : a * b;
}

std::uint64_t total(std::span<const std::uint64_t> counts) {
  std::uint64_t sum = 0;
  for (const std::uint64_t count : counts) sum = count > too_much - sum ? too_much : sum + count;
  return sum;
}

bool fits_memory(std::uint64_t count, DataType type) { return product(count, size_of(type)) < too_much; }

std::uint64_t total_before(std::span<const std::uint64_t> counts, int rank) {
  return total(counts.first(static_cast<std::size_t>(rank)));
}

// How many elements each side of a call holds on this rank, and where a rank's own block lies if one side is
// a block of the other.
struct Shape {
  std::uint64_t in = 0;
  std::uint64_t out = 0;
  bool has_in = true;
  bool has_out = true;
  bool in_within_out = false;  // in place means: the input is a block of the output
  bool out_within_in = false;
  std::uint64_t block_offset = 0;
};

struct Context {
  const Call& call;
  int rank;
  int size;
  bool is_root() const { return rank == call.root; }
  std::uint64_t p() const { return static_cast<std::uint64_t>(size); }
};

// Fills `shape` and the count of one rank's share.
Status shape_of(const Context& c, Shape& shape, std::uint64_t& count) {
  const Call& call = c.call;
  const std::uint64_t in = call.in.count;
  const std::uint64_t out = call.out.count;
  const auto r = static_cast<std::uint64_t>(c.rank);
  switch (call.kind) {
    case CollectiveKind::barrier:
      shape = {0, 0, false, false, false, false, 0};
      break;
    case CollectiveKind::all_reduce:
    case CollectiveKind::scan:
    case CollectiveKind::exscan:
      count = call.one_buffer ? out : in;
      shape = {count, count, true, true, false, false, 0};
      break;
    case CollectiveKind::reduce:
      count = call.one_buffer ? out : in;
      shape = {count, count, true, c.is_root(), false, false, 0};
      break;
    case CollectiveKind::broadcast:
      count = out;
      shape = {count, count, true, true, false, false, 0};
      break;
    case CollectiveKind::all_gather:
    case CollectiveKind::gather: {
      const bool all = call.kind == CollectiveKind::all_gather;
      count = call.one_buffer ? out / c.p() : in;
      if (call.one_buffer && out % c.p() != 0)
        return invalid("a buffer that does not divide by the world size");
      shape = {count, product(count, c.p()), true, all || c.is_root(), true, false, r * count};
      break;
    }
    case CollectiveKind::reduce_scatter:
      count = call.one_buffer ? in / c.p() : out;
      if (call.one_buffer && in % c.p() != 0)
        return invalid("a buffer that does not divide by the world size");
      shape = {product(count, c.p()), count, true, true, false, true, r * count};
      break;
    case CollectiveKind::scatter:
      count = out;
      shape = {product(count, c.p()), count, c.is_root(), true, false, true, r * count};
      break;
    case CollectiveKind::all_to_all:
      count = out / c.p();
      if (out % c.p() != 0) return invalid("a buffer that does not divide by the world size");
      shape = {out, out, true, true, false, false, 0};
      break;
    case CollectiveKind::all_gather_v:
      shape = {call.out_counts[r],
               total(call.out_counts),
               true,
               true,
               true,
               false,
               total_before(call.out_counts, c.rank)};
      break;
    case CollectiveKind::gather_v:
      shape = {in,
               c.is_root() ? total(call.out_counts) : 0,
               true,
               c.is_root(),
               c.is_root(),
               false,
               c.is_root() ? total_before(call.out_counts, c.rank) : 0};
      if (c.is_root()) shape.in = call.out_counts[r];
      break;
    case CollectiveKind::reduce_scatter_v:
      shape = {total(call.in_counts),
               call.in_counts[r],
               true,
               true,
               false,
               true,
               total_before(call.in_counts, c.rank)};
      break;
    case CollectiveKind::scatter_v:
      shape = {c.is_root() ? total(call.in_counts) : 0,
               out,
               c.is_root(),
               true,
               false,
               c.is_root(),
               c.is_root() ? total_before(call.in_counts, c.rank) : 0};
      if (c.is_root()) shape.out = call.in_counts[r];
      break;
    case CollectiveKind::all_to_all_v:
      shape = {total(call.in_counts), total(call.out_counts), true, true, false, false, 0};
      break;
    case CollectiveKind::send:
    case CollectiveKind::recv:
      return invalid("not a collective");
  }
  return Status();
}

// The _v kinds: as many counts as ranks where counts are needed.
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

Status check_size(const char* side, std::uint64_t have, std::uint64_t need, const void* data) {
  if (have != need) {
    return invalid(std::string(side) + " holds " + std::to_string(have) + " elements, needs " +
                   std::to_string(need));
  }
  if (need != 0 && data == nullptr) return invalid(std::string(side) + " is null");
  return Status();
}

// In place exactly, or apart; anything between is an error.
Status check_overlap(const Context& c, const Shape& shape, bool& in_place) {
  const auto& [in, out] = std::pair(c.call.in, c.call.out);
  const std::size_t element = size_of(out.type);
  const auto* in_begin = static_cast<const std::byte*>(in.data);
  const auto* out_begin = static_cast<const std::byte*>(out.data);
  const std::size_t in_bytes = shape.in * element;
  const std::size_t out_bytes = shape.out * element;
  in_place = false;
  if (in_bytes == 0 || out_bytes == 0) return Status();
  const std::size_t offset = shape.block_offset * element;
  if (shape.in_within_out) {
    in_place = in_begin == out_begin + offset;
  } else if (shape.out_within_in) {
    in_place = out_begin == in_begin + offset;
  } else {
    in_place = in_begin == out_begin && in_bytes == out_bytes;
  }
  if (in_place || in_begin + in_bytes <= out_begin || out_begin + out_bytes <= in_begin) return Status();
  return invalid("in and out overlap without being in place");
}

// In the in-place form one buffer plays both parts.
Call with_both_sides(const Call& call, int rank, int size) {
  Call both = call;
  if (!call.one_buffer) return both;
  const std::size_t element = size_of(call.out.type);
  const auto p = static_cast<std::uint64_t>(size);
  const auto block = [&](void* base, std::uint64_t count) {
    const std::size_t offset = static_cast<std::size_t>(rank) * count * element;
    return base == nullptr ? nullptr : static_cast<std::byte*>(base) + offset;
  };
  const std::uint64_t count = call.out.count / p;
  both.in = call.out;
  switch (call.kind) {
    case CollectiveKind::all_gather:
      both.in.data = block(call.out.data, count);
      both.in.count = count;
      break;
    case CollectiveKind::reduce_scatter:
      both.out.data = block(call.out.data, count);
      both.out.count = count;
      break;
    default:
      break;
  }
  return both;
}

}  // namespace

Result<CheckedCall> check(const Call& given, int rank, int size) {
  if (given.root < 0 || given.root >= size) {
    return invalid("root " + std::to_string(given.root) + " of " + std::to_string(size) + " ranks");
  }
  if (!fits_memory(given.in.count, given.in.type) || !fits_memory(given.out.count, given.out.type)) {
    return invalid("a buffer larger than memory can be");
  }
  const Call call = with_both_sides(given, rank, size);
  const Context context{call, rank, size};
  Status status = check_counts(context);
  Shape shape;
  std::uint64_t count = 0;
  if (status.ok()) status = shape_of(context, shape, count);
  if (!status.ok()) return status;
  const DataType type = shape.has_in ? call.in.type : call.out.type;
  if (shape.has_in && shape.has_out && call.in.type != call.out.type) {
    return invalid("in is " + std::string(to_string(call.in.type)) + ", out is " +
                   std::string(to_string(call.out.type)));
  }
  if (is_reduction(call.kind) && !call.op.supports(type)) {
    return Status(Code::unsupported, call.op.name() + " is not defined on " + std::string(to_string(type)));
  }
  if (shape.has_in) status = check_size("in", call.in.count, shape.in, call.in.data);
  if (status.ok() && shape.has_out) status = check_size("out", call.out.count, shape.out, call.out.data);
  bool in_place = false;
  if (status.ok() && shape.has_in && shape.has_out) status = check_overlap(context, shape, in_place);
  if (!status.ok()) return status;

  CheckedCall checked;
  checked.args.kind = call.kind;
  checked.args.type = type;
  checked.args.op = call.op;
  checked.args.root = call.root;
  checked.args.count = count;
  checked.args.input = shape.has_in ? call.in.data : nullptr;
  checked.args.output = shape.has_out ? call.out.data : nullptr;
  checked.args.input_counts = call.in_counts;
  checked.args.output_counts = call.out_counts;
  Problem& problem = checked.problem;
  problem.kind = call.kind;
  problem.rank = rank;
  problem.size = size;
  problem.root = call.root;
  problem.count = count;
  problem.element_size = static_cast<std::uint32_t>(size_of(type));
  problem.commutative = call.op.commutative();
  problem.average = call.op.kind() == ReduceOp::Kind::avg;
  problem.premultiplied = call.op.kind() == ReduceOp::Kind::premultiplied_sum;
  problem.in_place = in_place;
  problem.input_counts = call.in_counts;
  problem.output_counts = call.out_counts;
  const bool own_count_only = (call.kind == CollectiveKind::gather_v && !context.is_root()) ||
                              (call.kind == CollectiveKind::scatter_v && !context.is_root());
  if (own_count_only) {
    const bool gathers = call.kind == CollectiveKind::gather_v;
    checked.own_counts.assign(context.p(), 0);
    checked.own_counts[static_cast<std::size_t>(rank)] = gathers ? shape.in : shape.out;
    problem.input_counts = gathers ? std::span<const std::uint64_t>() : checked.own_counts;
    problem.output_counts = gathers ? checked.own_counts : std::span<const std::uint64_t>();
  }
  return checked;
}

Status check(const Transfer& transfer, int size) {
  const bool sends = transfer.direction == Transfer::Direction::send;
  const bool any_peer = !sends && transfer.peer == any_rank;
  if (!any_peer && (transfer.peer < 0 || transfer.peer >= size)) {
    return invalid("peer " + std::to_string(transfer.peer) + " of " + std::to_string(size) + " ranks");
  }
  const bool tag_fits = transfer.tag < (std::uint64_t{1} << 63) || (!sends && transfer.tag == any_tag);
  if (!tag_fits) return invalid("tag " + std::to_string(transfer.tag) + " is 2^63 or more");
  if (!fits_memory(transfer.buffer.count, transfer.buffer.type)) {
    return invalid("a buffer larger than memory can be");
  }
  if (transfer.buffer.count != 0 && transfer.buffer.data == nullptr) return invalid("the buffer is null");
  return Status();
}

}  // namespace tutti
