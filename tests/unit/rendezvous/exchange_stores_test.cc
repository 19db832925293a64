// Tests how ranks meet over faulty stores.
#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "rendezvous/meeting/exchange.h"
#include "rendezvous/store/forwarding_store.h"
#include "rendezvous/store/memory/memory_store.h"

namespace tutti {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Outcome = Result<std::vector<PeerInfo>>;

Deadline ample() { return Deadline::after(seconds(60)); }

Introduction rank_of(int rank, int world_size) {
  Introduction self = describe_this_process();
  self.rank = rank;
  self.world_size = world_size;
  return self;
}

// `UsersStore` is a store as a user might write it. Each derived class has one fault.
class UsersStore : public Store {
 public:
  Status set(std::string_view key, std::string_view value, Deadline deadline) override {
    return store_.set(key, value, deadline);
  }
  Result<std::string> get(std::string_view key, Deadline deadline) override {
    return store_.get(key, deadline);
  }
  Status wait(std::span<const std::string> keys, Deadline deadline) override {
    return store_.wait(keys, deadline);
  }
  Result<std::int64_t> add(std::string_view key, std::int64_t delta, Deadline deadline) override {
    return store_.add(key, delta, deadline);
  }
  Result<std::string> compare_set(std::string_view key, std::string_view expected, std::string_view desired,
                                  Deadline deadline) override {
    return store_.compare_set(key, expected, desired, deadline);
  }
  Result<bool> delete_key(std::string_view key, Deadline deadline) override {
    return store_.delete_key(key, deadline);
  }
  Result<bool> exists(std::string_view key, Deadline deadline) override {
    return store_.exists(key, deadline);
  }

 private:
  MemoryStore store_;
};

// `ForgetfulStore` does not store a rank's introduction. It answers with the rank's own nonce, as
// if it had stored an earlier attempt of that rank.
class ForgetfulStore final : public UsersStore {
 public:
  Result<std::string> compare_set(std::string_view key, std::string_view expected, std::string_view desired,
                                  Deadline deadline) override {
    if (!key.starts_with("rank/")) return UsersStore::compare_set(key, expected, desired, deadline);
    Introduction holder = *decode_introduction(desired);
    holder.addresses["tcp"] = "another one";
    return encode_introduction(holder);
  }
};

TEST(Exchange, AStoreThatAnswersWithOurNonceIsNotAskedForEver) {
  ForgetfulStore store;
  const Outcome outcome = exchange(store, rank_of(1, 2), {}, Deadline::after(milliseconds(300)));
  EXPECT_EQ(outcome.status().code(), Code::timeout) << outcome.status().to_string();
}

// `HastyStore` does not wait for keys: it reports a timeout at once.
class HastyStore final : public UsersStore {
 public:
  Result<std::string> get(std::string_view key, Deadline) override {
    ++asked;
    return UsersStore::get(key, Deadline::after(milliseconds(0)));
  }
  Status wait(std::span<const std::string> keys, Deadline) override {
    ++asked;
    return UsersStore::wait(keys, Deadline::after(milliseconds(0)));
  }

  int asked = 0;
};

TEST(Exchange, AStoreThatDoesNotWaitIsNotAskedWithoutPause) {
  for (const int rank : {0, 1}) {
    HastyStore store;
    const Outcome outcome = exchange(store, rank_of(rank, 2), {}, Deadline::after(seconds(1)));
    EXPECT_EQ(outcome.status().code(), Code::timeout) << outcome.status().to_string();
    EXPECT_LT(store.asked, 300);
  }
}

// The server of a `DyingStore` dies during the first wait. The store reports only a timeout, as
// torch's stores do.
class DyingStore final : public UsersStore {
 public:
  Result<std::string> get(std::string_view, Deadline) override { return end(); }
  Status wait(std::span<const std::string>, Deadline) override { return end(); }
  Result<bool> exists(std::string_view key, Deadline deadline) override {
    if (dead_) return Status(Code::unreachable, "connection reset by peer");
    return UsersStore::exists(key, deadline);
  }

 private:
  Status end() {
    dead_ = true;
    return Status(Code::timeout, "wait timeout");
  }

  bool dead_ = false;
};

TEST(Exchange, AStoreThatDiesIsNotWaitedFor) {
  for (const int rank : {0, 1}) {
    DyingStore store;
    const Outcome outcome = exchange(store, rank_of(rank, 2), {}, Deadline::after(seconds(20)));
    EXPECT_EQ(outcome.status().code(), Code::unreachable) << outcome.status().to_string();
  }
}

TEST(Exchange, GarbageInTheKeysIsAnErrorNotACrash) {
  MemoryStore store;
  ASSERT_TRUE(store.set("session", "\xff\xff garbage", ample()).ok());
  EXPECT_EQ(exchange(store, rank_of(0, 2), {}, ample()).status().code(), Code::protocol_error);
  MemoryStore other;
  ASSERT_TRUE(other.set("table", "\xff\xff garbage", ample()).ok());
  EXPECT_EQ(exchange(other, rank_of(1, 2), {}, ample()).status().code(), Code::protocol_error);
  EXPECT_EQ(exchange(other, rank_of(2, 2), {}, ample()).status().code(), Code::invalid_argument);
}

// The key "done" should say how a meeting ended. In this test it holds an invalid value, or a value
// that belongs to another key.
TEST(Exchange, ADamagedEndIsAnErrorOnlyForThoseWhoFail) {
  for (const std::string& end : {std::string("\xff\xff garbage"), encode_table({}), std::string("0"),
                                 encode_table({encode_introduction(rank_of(0, 2))})}) {
    for (const bool fails : {true, false}) {
      MemoryStore store;
      ASSERT_TRUE(store.set("done", end, ample()).ok());
      ExchangeOptions options;
      options.single_use = true;
      options.connect = [&](const std::vector<PeerInfo>&) {
        return fails ? Status(Code::unreachable, "no way leads there") : Status();
      };
      const auto meet = [&](int rank) { return exchange(store, rank_of(rank, 2), options, ample()); };
      auto other = std::async(std::launch::async, meet, 1);
      for (const Outcome& outcome : {meet(0), other.get()}) {
        EXPECT_EQ(outcome.status().code(), fails ? Code::unreachable : Code::ok)
            << outcome.status().to_string();
      }
    }
  }
}

// `SlowStore` answers every request, but late.
class SlowStore final : public ForwardingStore {
 public:
  explicit SlowStore(Store& store) : ForwardingStore(store) {}

 protected:
  Status admit() const override {
    std::this_thread::sleep_for(milliseconds(900));
    return {};
  }
};

// A rank whose deadline has passed finishes the request in progress, and makes no further requests.
TEST(Exchange, ASlowStoreDelaysTheEndByOneAnswer) {
  for (const int rank : {0, 1}) {
    MemoryStore fast;
    SlowStore store(fast);
    const auto begin = Deadline::Clock::now();
    const Outcome outcome = exchange(store, rank_of(rank, 4), {}, Deadline::after(seconds(3)));
    EXPECT_EQ(outcome.status().code(), Code::timeout) << outcome.status().to_string();
    EXPECT_LT(Deadline::Clock::now() - begin, seconds(6));
  }
}

// The text of a failure comes from the store and may be very long, so a rank clips it.
TEST(Exchange, APublishedFailureIsClipped) {
  const std::string text = std::string(4094, 'x') + "\xe2\x82\xac" + std::string(6 << 20, 'y');
  MemoryStore store;
  ASSERT_TRUE(store.set("table", encode_failure(Status(Code::aborted, text)), ample()).ok());
  const Outcome outcome = exchange(store, rank_of(1, 2), {}, ample());
  EXPECT_EQ(outcome.status().code(), Code::aborted);
  EXPECT_EQ(outcome.status().message(),
            text.substr(0, 4094) + "... (" + std::to_string(text.size()) + " bytes)");
}

// `StallingStore` stalls when a rank leaves after the ranks have met.
class StallingStore final : public UsersStore {
 public:
  Result<bool> delete_key(std::string_view, Deadline deadline) override {
    std::this_thread::sleep_for(deadline.remaining());
    return Status(Code::timeout, "it does not answer");
  }
};

// After a meeting, a rank waits until the other ranks have left. If another rank does not leave or
// the store stalls, this wait ends long before the rank's deadline.
TEST(Exchange, TakingLeaveHasALimitOfItsOwn) {
  const auto begin = Deadline::Clock::now();
  auto stalled = std::async(std::launch::async, [] {
    StallingStore store;
    return exchange(store, rank_of(0, 1), {}, ample()).ok();
  });
  MemoryStore store;
  std::promise<void> stay;
  auto staying = std::async(std::launch::async, [&, over = stay.get_future()] {
    const auto connect = [&](const std::vector<PeerInfo>&) {
      over.wait();
      return Status();
    };
    return exchange(store, rank_of(1, 2), {.single_use = true, .connect = connect}, ample()).ok();
  });
  EXPECT_TRUE(exchange(store, rank_of(0, 2), {.single_use = true}, ample()).ok());
  EXPECT_TRUE(stalled.get());
  EXPECT_LT(Deadline::Clock::now() - begin, seconds(40));
  stay.set_value();
  EXPECT_TRUE(staying.get());
}

}  // namespace
}  // namespace tutti
