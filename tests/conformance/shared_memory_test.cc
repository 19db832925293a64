// Tests ranks that share memory: sleeping ranks are woken, and ranks that make different calls get
// an error.

#include <atomic>
#include <functional>
#include <future>
#include <random>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/cluster.h"

namespace tutti::test {
namespace {

using testing::HasSubstr;

class SharedMemory : public testing::TestWithParam<int> {};

// No rank polls, so a rank sleeps whenever it has to wait. The test varies the places at which
// ranks wait. A missed wake-up makes an operation time out.
TEST_P(SharedMemory, SleepersAreWoken) {
  Cluster ranks(GetParam(), {.transport = "shared", .driver = {.spin = std::chrono::nanoseconds(0)}});
  ranks.run([](Communicator& comm) {
    std::mt19937 common(7);
    std::mt19937 mine(static_cast<std::uint32_t>(comm.rank()));
    std::vector<std::int32_t> data(8'000);
    for (int i = 0; i < 600; ++i) {
      const std::uint32_t draw = common();
      const std::size_t count = draw % 8 == 0 ? data.size() : draw % 5;
      const int root = static_cast<int>(draw / 8) % comm.size();
      const bool sums = draw / 64 % 2 == 0;
      const std::span<std::int32_t> part(data.data(), count);
      std::fill(part.begin(), part.end(), i + comm.rank());
      if (mine() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(mine() % 100));
      Work work = sums ? comm.all_reduce(part, ReduceOp::sum) : comm.broadcast(part, root);
      Work after = draw % 7 == 0 ? comm.barrier() : Work();
      if (mine() % 2 == 0 && draw % 7 == 0) after.wait();
      work.wait();
      if (draw % 7 == 0) after.wait();
      const int expected = sums ? i * comm.size() + comm.size() * (comm.size() - 1) / 2 : i + root;
      for (const std::int32_t value : part) ASSERT_EQ(value, expected) << "operation " << i;
    }
    EXPECT_EQ(comm.statistics().messages_sent, 0u);
  });
}

// Any TUTTI_SHM_WINDOW works: elements are aligned in windows of any size.
TEST_P(SharedMemory, WindowsOfAnySize) {
  for (const std::uint64_t bytes : {1u, 700u, 1001u, 4097u, 50'001u}) {
    Cluster ranks(GetParam(), {.transport = "shared", .window_bytes = bytes});
    ranks.run([bytes](Communicator& comm) {
      std::vector<double> data(30'000, comm.rank() + 1);
      comm.all_reduce(data, ReduceOp::sum).wait();
      const double expected = comm.size() * (comm.size() + 1) / 2;
      for (const double value : data) ASSERT_EQ(value, expected) << bytes;
    });
  }
}

Status ending(Work work) {
  try {
    work.wait();
    return Status();
  } catch (const Error& error) {
    return error.status();
  }
}

// One rank makes a different call. Some ranks notice this only after a few more operations, but all of them
// get an error that names both calls.
TEST_P(SharedMemory, EveryMismatchIsToldToAll) {
  struct Variant {
    const char* name;
    std::function<Work(Communicator&, Buffer, bool)> call;
  };
  const auto prefix = [](const Buffer& buffer, std::size_t count) {
    return Buffer(buffer.data, count, buffer.type);
  };
  const std::vector<Variant> variants = {
      {"roots", [](Communicator& c, Buffer b, bool odd) { return c.broadcast(b, odd ? 1 : 0); }},
      {"a slot or the windows",
       [&](Communicator& c, Buffer b, bool odd) {
         return c.all_reduce(prefix(b, odd ? 3 : 8'000), ReduceOp::sum);
       }},
      {"a vote or none", [&](Communicator& c, Buffer b,
                             bool odd) { return c.all_reduce(prefix(b, odd ? 40'000 : 2), ReduceOp::sum); }},
      {"windows or none",
       [](Communicator& c, Buffer b, bool odd) { return odd ? c.barrier() : c.broadcast(b, 0); }},
      {"messages",
       [&](Communicator& c, Buffer b, bool odd) {
         return c.all_reduce(prefix(b, 10), ReduceOp::sum, {.algorithm = odd ? "ring" : "shared_direct"});
       }},
  };
  for (const Variant& variant : variants) {
    for (const bool after_many : {false, true}) {
      Cluster ranks(GetParam(), {.transport = "shared"});
      ranks.run([&](Communicator& comm) {
        std::vector<float> data(40'000, 1.0f);
        if (after_many) {
          for (int i = 0; i < 20; ++i) comm.broadcast(Buffer(data.data(), 5, DataType::float32), i % 2);
        }
        Status status = ending(variant.call(comm, data, comm.rank() == 1));
        for (int i = 0; i < 20 && status.ok(); ++i) status = ending(comm.barrier());
        EXPECT_EQ(status.code(), Code::mismatch) << variant.name << ": " << status.to_string();
        const std::string& text = status.message();
        const auto calls = [&](const std::string& one) {
          return text.find(one + " called ") != std::string::npos ||
                 text.find(one + " calls ") != std::string::npos;
        };
        EXPECT_TRUE(calls("rank 1 (host test, pid 1001)")) << variant.name << ": " << text;
        bool other = calls("this rank");
        for (int rank = 0; rank < comm.size(); ++rank) other |= rank != 1 && calls(comm.describe(rank));
        EXPECT_TRUE(other) << variant.name << ": " << text;
      });
    }
  }
}

// A requested algorithm applies only to the call that requests it. A rank may keep the schedule of
// its last call for its next call (`Habits`), depending on the thread that drives. So perhaps only some
// ranks have kept a schedule.
TEST_P(SharedMemory, AnAlgorithmIsForOneCall) {
  Cluster ranks(GetParam(), {.transport = "shared", .timeout = std::chrono::seconds(20)});
  ranks.run([](Communicator& comm) {
    std::vector<std::int32_t> data(40'000, 1);
    const std::span<std::int32_t> few(data.data(), 8);
    const auto by_slices = [&](std::span<std::int32_t> part) {
      return comm.all_reduce(part, ReduceOp::sum, {.algorithm = "shared_slices"});
    };
    for (const std::span<std::int32_t> part : {few, std::span(data)}) {
      std::fill(data.begin(), data.end(), 1);
      if (comm.rank() == 0) {  // rank 0 issues the call in a callback, while it drives
        std::promise<Work> issued;
        std::uint8_t byte[1] = {};
        Work message = comm.recv(byte, 1);
        message.then([&](const Status&) { issued.set_value(by_slices(part)); });
        comm.send(byte, 1).wait();
        message.wait();
        issued.get_future().get().wait();
      } else {
        std::uint8_t byte[1] = {};
        if (comm.rank() == 1) comm.recv(byte, 0).wait();
        if (comm.rank() == 1) comm.send(byte, 0).wait();
        by_slices(part).wait();
      }
      std::int32_t expected = comm.size();
      for (int i = 0; i < 3; ++i) {
        comm.all_reduce(part, ReduceOp::sum).wait();
        expected *= comm.size();
        for (const std::int32_t value : part) ASSERT_EQ(value, expected);
      }
    }
  });
}

// A rank that makes no call also learns of the failure. Its communicator is inactive
// (`ActiveGroups`) and does not read the board, so the control plane must tell the rank.
TEST_P(SharedMemory, ATimeoutNamesAllWhoAreMissingAndTheyLearnOfIt) {
  constexpr int polls_until_rest = 2000;
  Cluster ranks(GetParam(), {.transport = "shared", .control = true});
  std::atomic<int> together{0};
  ranks.run([&](Communicator& comm) {
    std::vector<float> data(4, 1.0f);
    comm.all_reduce(data, ReduceOp::sum).wait();
    for (int i = 0; i < polls_until_rest; ++i) comm.progress();
    ++together;
    for (int i = 0; i < 60'000 && together < comm.size(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (comm.rank() == 0) {
      const Status status =
          ending(comm.all_reduce(data, ReduceOp::sum, {.timeout = std::chrono::milliseconds(100)}));
      EXPECT_EQ(status.code(), Code::timeout) << status.to_string();
      for (int rank = 1; rank < comm.size(); ++rank) {
        EXPECT_THAT(status.message(), HasSubstr(comm.describe(rank)));
      }
    } else {
      for (int i = 0; i < 60'000 && comm.status().ok(); ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      EXPECT_EQ(comm.status().code(), Code::timeout);
      EXPECT_EQ(ending(comm.all_reduce(data, ReduceOp::sum)).code(), Code::timeout);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, SharedMemory, testing::Values(2, 3, 5),
                         [](const auto& parameter) { return std::to_string(parameter.param); });

}  // namespace
}  // namespace tutti::test
