#include "tools/bench/operation.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include <tutti/config_values.h>

#include "tools/collective_size.h"

namespace tutti::tools {
namespace {

constexpr int root = 0;
constexpr std::size_t alignment = 4096;
constexpr int garbage = 0xa5;

constexpr MeasuredInfo infos[] = {
    {Measured::all_reduce, "all_reduce", CollectiveKind::all_reduce, true},
    {Measured::reduce, "reduce", CollectiveKind::reduce, true},
    {Measured::broadcast, "broadcast", CollectiveKind::broadcast},
    {Measured::all_gather, "all_gather", CollectiveKind::all_gather},
    {Measured::reduce_scatter, "reduce_scatter", CollectiveKind::reduce_scatter, true},
    {Measured::all_to_all, "all_to_all", CollectiveKind::all_to_all},
    {Measured::gather, "gather", CollectiveKind::gather},
    {Measured::scatter, "scatter", CollectiveKind::scatter},
    {Measured::scan, "scan", CollectiveKind::scan, true},
    {Measured::exscan, "exscan", CollectiveKind::exscan, true},
    {Measured::barrier, "barrier", CollectiveKind::barrier},
    {Measured::sendrecv, "sendrecv", std::nullopt},
    {Measured::pingpong, "pingpong", std::nullopt},
};

}  // namespace

double MeasuredInfo::bus_factor(int ranks) const {
  const double others = static_cast<double>(ranks - 1) / ranks;
  if (what == Measured::all_reduce) return 2 * others;
  return kind && has_blocks(*kind) ? others : 1;
}

std::span<const MeasuredInfo> measured_infos() { return infos; }

const MeasuredInfo* find_measured(std::string_view name) {
  for (const MeasuredInfo& info : infos) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

AlignedBytes BenchOperation::allocate(std::uint64_t bytes) {
  AlignedBytes memory = aligned_bytes(alignment, std::max<std::uint64_t>(1, bytes));
  if (memory == nullptr) throw std::runtime_error("no memory for a buffer of " + format_size(bytes));
  return memory;
}

BenchOperation::BenchOperation(Communicator& communicator, const MeasuredInfo& info, std::uint64_t bytes,
                               DataType type, const ReduceOp& op, const CallOptions& call)
    : communicator_(communicator),
      info_(info),
      op_(op),
      call_(call),
      pattern_(type, op, communicator.size()),
      rank_(communicator.rank()),
      ranks_(communicator.size()),
      count_(count_for(info.kind.value_or(CollectiveKind::send), bytes, ranks_, type)),
      elements_(info.kind && has_blocks(*info.kind) ? count_ * static_cast<std::uint64_t>(ranks_) : count_),
      in_(allocate(elements_ * size_of(type))),
      out_(allocate(elements_ * size_of(type))) {}

std::uint64_t BenchOperation::bytes() const { return elements_ * size_of(pattern_.type()); }

void BenchOperation::run() {
  Communicator& comm = communicator_;
  const Buffer in = whole(in_.get());
  const Buffer out = whole(out_.get());
  const int next = (rank_ + 1) % ranks_;
  const int previous = (rank_ + ranks_ - 1) % ranks_;
  switch (info_.what) {
    case Measured::all_reduce:
      return comm.all_reduce(in, out, op_, call_).wait();
    case Measured::reduce:
      return comm.reduce(in, out, op_, root, call_).wait();
    case Measured::broadcast:
      return comm.broadcast(out, root, call_).wait();
    case Measured::all_gather:
      return comm.all_gather(block(in_.get()), out, call_).wait();
    case Measured::reduce_scatter:
      return comm.reduce_scatter(in, block(out_.get()), op_, call_).wait();
    case Measured::all_to_all:
      return comm.all_to_all(in, out, call_).wait();
    case Measured::gather:
      return comm.gather(block(in_.get()), out, root, call_).wait();
    case Measured::scatter:
      return comm.scatter(in, block(out_.get()), root, call_).wait();
    case Measured::scan:
      return comm.scan(in, out, op_, call_).wait();
    case Measured::exscan:
      return comm.exscan(in, out, op_, call_).wait();
    case Measured::barrier:
      return comm.barrier(call_).wait();
    case Measured::sendrecv: {
      const Transfer both[] = {{Transfer::Direction::recv, out, previous, 0},
                               {Transfer::Direction::send, in, next, 0}};
      return comm.batch(both, call_).wait();
    }
    case Measured::pingpong:
      return run_pingpong();
  }
}

void BenchOperation::run_pingpong() {
  const int peer = 1 - rank_;
  if (rank_ == 0) communicator_.send(whole(in_.get()), peer, 0, call_).wait();
  communicator_.recv(whole(out_.get()), peer, 0, call_).wait();
  if (rank_ == 1) communicator_.send(whole(in_.get()), peer, 0, call_).wait();
}

void BenchOperation::fill() {
  const std::uint64_t size = size_of(pattern_.type());
  const bool one_block = info_.what == Measured::all_gather || info_.what == Measured::gather;
  pattern_.fill(rank_, 0, {in_.get(), (one_block ? count_ : elements_) * size});
  std::memset(out_.get(), garbage, elements_ * size);
  if (info_.what == Measured::broadcast && rank_ == root)
    pattern_.fill(rank_, 0, {out_.get(), elements_ * size});
}

std::uint64_t BenchOperation::count_wrong() const {
  Checker checker(pattern_);
  check(checker);
  return checker.wrong();
}

void BenchOperation::check(Checker& checker) const {
  const std::byte* out = out_.get();
  const std::uint64_t block_bytes = count_ * size_of(pattern_.type());
  const auto mine = static_cast<std::uint64_t>(rank_) * count_;
  switch (info_.what) {
    case Measured::all_reduce:
      return checker.expect_reduced(out, count_, 0, ranks_ - 1, 0);
    case Measured::reduce:
      if (rank_ == root) checker.expect_reduced(out, count_, 0, ranks_ - 1, 0);
      return;
    case Measured::reduce_scatter:
      return checker.expect_reduced(out, count_, 0, ranks_ - 1, mine);
    case Measured::scan:
      return checker.expect_reduced(out, count_, 0, rank_, 0);
    case Measured::exscan:
      if (rank_ > 0) checker.expect_reduced(out, count_, 0, rank_ - 1, 0);
      return;
    case Measured::broadcast:
      return checker.expect_input(out, count_, root, 0);
    case Measured::scatter:
      return checker.expect_input(out, count_, root, mine);
    case Measured::gather:
      if (rank_ != root) return;
      [[fallthrough]];
    case Measured::all_gather:
      for (int r = 0; r < ranks_; ++r)
        checker.expect_input(out + static_cast<std::uint64_t>(r) * block_bytes, count_, r, 0);
      return;
    case Measured::all_to_all:
      for (int r = 0; r < ranks_; ++r)
        checker.expect_input(out + static_cast<std::uint64_t>(r) * block_bytes, count_, r, mine);
      return;
    case Measured::sendrecv:
      return checker.expect_input(out, count_, (rank_ + ranks_ - 1) % ranks_, 0);
    case Measured::pingpong:
      return checker.expect_input(out, count_, 1 - rank_, 0);
    case Measured::barrier:
      return;
  }
}

}  // namespace tutti::tools
