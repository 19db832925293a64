#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/cluster.h"
#include "tests/unit/collectives/counting_memory.h"

namespace tutti {
namespace {

using test::Cluster;

struct Sides {
  explicit Sides(std::size_t count, std::size_t ranks) : in(count * ranks), out(count * ranks), n(count) {}
  ConstBuffer input(std::size_t blocks = 1) const { return {in.data(), n * blocks, DataType::float32}; }
  Buffer output(std::size_t blocks = 1) { return {out.data(), n * blocks, DataType::float32}; }
  std::vector<float> in, out;
  std::size_t n;
};

struct Named {
  const char* name;
  std::function<Work(Communicator&, Sides&)> call;
};

const std::vector<Named>& calls() {
  static const auto p = [](Communicator& c) { return static_cast<std::size_t>(c.size()); };
  static const std::vector<Named> all = {
      {"all_reduce", [](auto& c, auto& m) { return c.all_reduce(m.input(), m.output(), ReduceOp::sum); }},
      {"all_reduce in place", [](auto& c, auto& m) { return c.all_reduce(m.output(), ReduceOp::max); }},
      {"average", [](auto& c, auto& m) { return c.all_reduce(m.output(), ReduceOp::avg); }},
      {"reduce", [](auto& c, auto& m) { return c.reduce(m.input(), m.output(), ReduceOp::sum, 1); }},
      {"broadcast", [](auto& c, auto& m) { return c.broadcast(m.output(), 1); }},
      {"all_gather", [](auto& c, auto& m) { return c.all_gather(m.input(), m.output(p(c))); }},
      {"reduce_scatter",
       [](auto& c, auto& m) { return c.reduce_scatter(m.input(p(c)), m.output(), ReduceOp::sum); }},
      {"all_to_all", [](auto& c, auto& m) { return c.all_to_all(m.input(p(c)), m.output(p(c))); }},
      {"gather", [](auto& c, auto& m) { return c.gather(m.input(), m.output(p(c)), 0); }},
      {"scatter", [](auto& c, auto& m) { return c.scatter(m.input(p(c)), m.output(), 0); }},
      {"scan", [](auto& c, auto& m) { return c.scan(m.input(), m.output(), ReduceOp::sum); }},
      {"exscan", [](auto& c, auto& m) { return c.exscan(m.input(), m.output(), ReduceOp::sum); }},
      {"barrier", [](auto& c, auto&) { return c.barrier(); }},
      {"send and recv",
       [](auto& c, auto& m) {
         const int next = (c.rank() + 1) % c.size();
         Work arrival = c.recv(m.output(), (c.rank() + c.size() - 1) % c.size(), 7);
         c.send(m.input(), next, 7).wait();
         return arrival;
       }},
  };
  return all;
}

// Repeats the call in many windows of a few calls each. Counts the allocations of all ranks in each window
// except the first, and returns the smallest count. Stops early after a window without allocations. Some
// windows may have allocations, because pools grow when the number of waiting messages reaches a
// new maximum. That number depends on the operating system's scheduler.
std::size_t fewest_allocations(Cluster& cluster, const Named& named, std::size_t count) {
  constexpr int windows = 40;
  constexpr int repetitions = 10;
  std::atomic<std::size_t> fewest = std::numeric_limits<std::size_t>::max();
  cluster.run([&](Communicator& communicator) {
    Sides memory(count, static_cast<std::size_t>(communicator.size()));
    std::size_t before = 0;
    for (int window = 0; window < windows && fewest > 0; ++window) {
      for (int i = 0; i < repetitions; ++i) named.call(communicator, memory).wait();
      communicator.barrier().wait();
      const std::size_t now = test::allocations();
      if (communicator.rank() == 0 && window > 0) fewest = std::min(fewest.load(), now - before);
      before = now;
      communicator.barrier().wait();  // all ranks see the same `fewest`
    }
  });
  return fewest;
}

class Allocation : public testing::TestWithParam<std::string> {};

TEST_P(Allocation, NoneInARepeatedCall) {
  for (const int size : {2, 3}) {
    Cluster cluster(size, {.transport = GetParam()});
    for (const Named& named : calls()) {
      for (const std::size_t count : {std::size_t{2}, std::size_t{5000}, std::size_t{100'000}}) {
        EXPECT_EQ(fewest_allocations(cluster, named, count), 0u)
            << named.name << " of " << count << " on " << size << " ranks";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Over, Allocation, testing::Values("inproc", "tcp"),
                         [](const auto& transport) { return transport.param; });

}  // namespace
}  // namespace tutti
