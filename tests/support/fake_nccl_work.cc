#include "tests/support/fake_nccl_work.h"

#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "core/reduce.h"

namespace tutti::test {

namespace {

// These are tags of messages. A sum and a maximum have the same tag, since NCCL does not notice
// that they differ.
constexpr std::uint64_t reduces = 1 << 16;
constexpr std::uint64_t copies = 2 << 16;

ReduceOp op_of(nccl::Op op) {
  switch (op) {
    case nccl::product:
      return ReduceOp::product;
    case nccl::max:
      return ReduceOp::max;
    case nccl::min:
      return ReduceOp::min;
    default:
      return ReduceOp::sum;
  }
}

// `Turns` holds the order in which the groups of each device take their turns.
struct Turns {
  std::mutex mutex;
  int last = 0;
  std::map<int, std::set<int>> open;  // turns that have not ended, by device
};

Turns& turns() {
  static auto& all = *new Turns;
  return all;
}

using Elements = std::vector<std::vector<std::byte>>;  // by rank

// Multiplies all elements by a factor, if there is one.
void multiply(std::vector<std::byte>& elements, DataType type, const std::vector<std::byte>& factor) {
  const Reducer product(type, ReduceOp::product);
  for (std::size_t at = 0; !factor.empty() && at < elements.size(); at += factor.size())
    product(elements.data() + at, factor.data(), elements.data() + at, 1);
}

void fold(const Elements& inputs, std::byte* out, std::uint64_t count, DataType type, nccl::Op op) {
  const Reducer reducer(type, op_of(op));
  std::memcpy(out, inputs.front().data(), inputs.front().size());
  for (std::size_t rank = 1; rank < inputs.size(); ++rank) reducer(out, inputs[rank].data(), out, count);
  if (op == nccl::avg) divide(out, out, count, type, inputs.size());
}

}  // namespace

DataType type_of(nccl::Type type) {
  constexpr DataType types[] = {DataType::int8,     DataType::uint8,       DataType::int32,
                                DataType::uint32,   DataType::int64,       DataType::uint64,
                                DataType::float16,  DataType::float32,     DataType::float64,
                                DataType::bfloat16, DataType::float8_e4m3, DataType::float8_e5m2};
  return types[type];
}

void FakeWork::send(const std::byte* in, std::uint64_t bytes, int peer, std::uint64_t tag) {
  transfers_.push_back(
      {.sends = true, .peer = peer, .tag = tag, .memory = const_cast<std::byte*>(in), .bytes = bytes});
}

void FakeWork::receive(std::byte* out, std::uint64_t bytes, int peer, std::uint64_t tag) {
  transfers_.push_back({.sends = false, .peer = peer, .tag = tag, .memory = out, .bytes = bytes});
}

void FakeWork::copy_to_all(const std::byte* in, std::byte* out, std::uint64_t bytes, int root) {
  const auto tag = copies + static_cast<std::uint64_t>(root);
  for (int peer = 0; peer < comm_.size && comm_.rank == root; ++peer) send(in, bytes, peer, tag);
  receive(out, bytes, root, tag);
}

// Every rank sends a copy of its input to the root, which combines the inputs in the order of ranks.
void FakeWork::reduce(const std::byte* in, std::byte* out, std::uint64_t count, const Reduction& how,
                      int root) {
  const DataType type = type_of(how.type);
  const std::uint64_t bytes = count * size_of(type);
  const auto tag = reduces + static_cast<std::uint64_t>(root) * 256 + static_cast<std::uint64_t>(how.type);
  auto mine = std::make_shared<std::vector<std::byte>>(bytes);
  send(mine->data(), bytes, root, tag);
  before_.emplace_back([=] {
    std::memcpy(mine->data(), in, bytes);
    multiply(*mine, type, how.factor);
  });
  if (comm_.rank != root) return;
  auto inputs = std::make_shared<Elements>();
  for (int peer = 0; peer < comm_.size; ++peer) {
    std::vector<std::byte>& input = inputs->emplace_back(bytes);
    receive(input.data(), bytes, peer, tag);
  }
  after_.emplace_back([=] { fold(*inputs, out, count, type, how.op); });
}

void FakeWork::take_turn() {
  const std::lock_guard lock(turns().mutex);
  turn_ = ++turns().last;
  turns().open[comm_.device].insert(turn_);
}

void FakeWork::await_turn() const {
  const auto is_first = [this] {
    const std::lock_guard lock(turns().mutex);
    return *turns().open[comm_.device].begin() == turn_;
  };
  while (turn_ != 0 && !is_first() && !comm_.aborted)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
}

void FakeWork::end_turn() const {
  const std::lock_guard lock(turns().mutex);
  turns().open[comm_.device].erase(turn_);
}

void FakeWork::run() {
  begun_ = true;
  await_turn();
  while (hangs_ && !comm_.aborted) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  // ncclCommAbort does not wait for this work if the device is broken and the work has not begun. So the
  // buffers may no longer exist after an abort.
  for (const auto& step : before_) {
    if (!comm_.aborted) step();
  }
  comm_.channels.move(transfers_, comm_.aborted);
  for (const auto& step : after_) {
    if (!comm_.aborted) step();
  }
  end_turn();
  over_ = true;
}

}  // namespace tutti::test
