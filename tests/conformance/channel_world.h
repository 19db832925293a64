#pragma once

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "transport/driver/driver.h"
#include "transport/mesh/mesh.h"

namespace tutti::conformance {

inline constexpr std::uint32_t test_context = 1;
inline constexpr MessageLimits tiny{.eager = 256, .credit = 8192, .fragment = 1024};
// Returns a deadline that a healthy transport never reaches. It keeps tests from hanging.
inline Deadline patience() { return Deadline::after(std::chrono::seconds(60)); }

// A `TransportFixture` is the interface that a transport must implement for these tests.
class TransportFixture {
 public:
  virtual ~TransportFixture() = default;
  virtual std::string name() const = 0;
  // Creates the transport of one rank of a new world. With `small_buffers`, the transport's queues are as
  // small as possible.
  virtual std::unique_ptr<Transport> create(int rank, bool small_buffers, const MessageLimits& limits) = 0;
  // Returns why the transport cannot run here, or an empty text if it can.
  virtual std::string why_not() const { return {}; }
  // Called once per world, before its transports are created.
  virtual void new_world() {}
};
using MakeFixture = std::unique_ptr<TransportFixture> (*)();

inline const Status gave_up(Code::timeout, "gave up");
// Returns the call to which all collective messages of these tests belong, unless a test sets
// another call.
inline Fingerprint usual_call() { return {.kind = CollectiveKind::all_reduce, .count = 64}; }

// `TestContext` records the events of the mesh. All operations count as issued unless a test says
// otherwise.
class TestContext final : public ContextEvents {
 public:
  Known operation(std::uint64_t sequence) const override {
    const auto found = operations.find(sequence);
    if (found != operations.end()) return found->second.known();
    return {issued ? &usual : nullptr, false};
  }
  void on_mismatch(int peer, std::uint64_t sequence, const Fingerprint*, const Status& why) override {
    mismatches.push_back({peer, sequence, why});
    ++events;
  }
  void on_abort(int, const Status& why) override { aborts.push_back(why), ++events; }
  void on_peer_down(int peer, const Status& why) override { downs[peer] = why, ++events; }

  struct Operation {
    Fingerprint call;
    bool finished = false;
    Known known() const { return {&call, finished}; }
  };
  struct Mismatch {
    int peer;
    std::uint64_t sequence;
    Status why;
  };
  std::map<std::uint64_t, Operation> operations;
  std::vector<Mismatch> mismatches;
  std::vector<Status> aborts;
  std::map<int, Status> downs;
  std::atomic<int> events{0};
  Fingerprint usual = usual_call();
  bool issued = true;
};

class Node;

// `Waitable` is a send or receive for which a thread can wait.
template <class Op>
struct Waitable : Op {
  std::vector<std::byte> memory;
  Driver* driver = nullptr;
  std::atomic<std::uint32_t> over{0};
  int completions = 0;
  Status status;

  explicit Waitable(std::size_t bytes) : memory(bytes) {
    this->done = [](Op& op, const Status& why) {
      auto& self = static_cast<Waitable&>(op);
      ++self.completions;
      self.status = why;
      Driver& waker = *self.driver;
      self.over.store(1);  // the waiting thread may destroy `self` at once
      waker.notify(self.over);
    };
  }
  const Status& wait() {
    EXPECT_TRUE(driver->wait(over, patience())) << "timed out";
    return status;
  }
};

struct Send : Waitable<SendOp> {
  Send(std::size_t bytes, MessageTag tag, int seed) : Waitable(bytes) {
    fill(memory, seed);
    data = memory.data();
    header.tag = tag;
    header.bytes = bytes;
    header.call = usual_call();
  }
  static void fill(std::vector<std::byte>& memory, int seed) {
    for (std::size_t i = 0; i < memory.size(); ++i) {
      memory[i] = static_cast<std::byte>((i * 31 + i / 4093 + static_cast<std::size_t>(seed)) & 0xff);
    }
  }
};

struct Recv : Waitable<RecvOp> {
  Recv(std::size_t size, int from, MessageTag name) : Waitable(size) {
    peer = from;
    tag = name;
    call = usual_call();
    bytes = size;
    sink.out = memory.data();
  }
  bool holds(int seed) const {
    std::vector<std::byte> expected(received.bytes);
    Send::fill(expected, seed);
    return received.bytes <= memory.size() && std::equal(expected.begin(), expected.end(), memory.begin());
  }
};

inline MessageTag collective(std::uint64_t sequence, std::uint32_t index = 0) {
  return {test_context, index, sequence};
}
inline MessageTag user(std::uint64_t tag) { return {test_context | user_context_bit, 0, tag}; }

// `Node` is one rank of a `World`.
class Node {
 public:
  Node(MeshOptions options, bool attached, bool background = true)
      : driver(driver_options(background)), mesh(driver, std::move(options)) {
    DriverGuard guard(driver);
    EXPECT_TRUE(mesh.start().ok());
    if (attached) mesh.attach(test_context, context);
  }
  ~Node() { shut_down(); }

  void shut_down() { mesh.shutdown(Deadline::after(std::chrono::seconds(10))); }
  // Runs `work` while this thread drives.
  template <class Work>
  void drive(Work work) {
    DriverGuard guard(driver);
    work();
  }
  void post(int to, Send& op) {
    op.driver = &driver;
    DriverGuard guard(driver);
    mesh.send(to, op);
  }
  void post(Recv& op) {
    op.driver = &driver;
    DriverGuard guard(driver);
    mesh.recv(op);
  }
  // Drives until the condition holds. Returns false if it does not hold within a minute. The
  // condition is checked while this thread drives.
  template <class Condition>
  bool until(Condition condition) {
    const Deadline deadline = patience();
    while (!deadline.expired()) {
      {
        DriverGuard guard(driver);
        if (condition()) return true;
      }
      std::atomic<std::uint32_t> never{0};
      driver.wait(never, Deadline::after(std::chrono::milliseconds(1)));
    }
    return false;
  }
  ChannelCounters counters() {
    DriverGuard guard(driver);
    return mesh.counters();
  }
  // Drops all connections without a goodbye, like a process that dies.
  void crash() {
    DriverGuard guard(driver);
    for (int peer = 0; peer < mesh.size(); ++peer) {
      if (peer != mesh.rank()) mesh.fail_peer(peer, Status(Code::internal, "crashed", mesh.rank()));
    }
  }

  Driver driver;
  TestContext context;
  Mesh mesh;

 private:
  static DriverOptions driver_options(bool background) {
    DriverOptions options;
    options.background = background;
    options.spin = std::chrono::nanoseconds(0);  // there may be more ranks than cores
    return options;
  }
};

struct WorldOptions {
  bool small_buffers = false;
  bool attached = true;
  bool background = true;  // whether each rank has a thread that drives while no call drives
  MessageLimits limits{};
  // Set if the limits of rank 0 differ from the other ranks' limits.
  std::optional<MessageLimits> limits_of_rank_0 = {};
};

// `World` runs N ranks in this process.
class World {
 public:
  World(MakeFixture make, int ranks, WorldOptions options = {}) : fixture_(make()) {
    fixture_->new_world();
    std::vector<std::unique_ptr<Transport>> transports;
    std::vector<PeerInfo> peers;
    for (int rank = 0; rank < ranks; ++rank) {
      const MessageLimits& limits =
          rank == 0 && options.limits_of_rank_0 ? *options.limits_of_rank_0 : options.limits;
      transports.push_back(fixture_->create(rank, options.small_buffers, limits));
      PeerInfo info{rank, "host" + std::to_string(rank), 1000 + rank, "boot", 1, {}};
      info.addresses[std::string(transports.back()->name())] = transports.back()->address();
      peers.push_back(info);
    }
    for (int rank = 0; rank < ranks; ++rank) {
      MeshOptions mesh;
      mesh.rank = rank;
      mesh.peers = peers;
      mesh.limits = options.limits;
      mesh.transports.push_back(std::move(transports[static_cast<std::size_t>(rank)]));
      nodes_.push_back(std::make_unique<Node>(std::move(mesh), options.attached, options.background));
    }
  }
  ~World() {
    each([](Node& node) { node.shut_down(); });
  }

  int size() const { return static_cast<int>(nodes_.size()); }
  Node& operator[](int rank) { return *nodes_[static_cast<std::size_t>(rank)]; }
  // Runs `work` for each rank in its own thread. Returns when all have finished.
  template <class Work>
  void each(Work work) {
    std::vector<std::thread> threads;
    for (auto& node : nodes_) threads.emplace_back([&work, &node] { work(*node); });
    for (std::thread& thread : threads) thread.join();
  }

 private:
  std::unique_ptr<TransportFixture> fixture_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

}  // namespace tutti::conformance
