#include "collectives/record/trace.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <unistd.h>

namespace tutti {
namespace {

using nlohmann::json;

class TraceTest : public ::testing::Test {
 protected:
  ~TraceTest() override { std::remove(file_.c_str()); }
  json content() const {
    std::ifstream file(file_);
    std::ostringstream text;
    text << file.rdbuf();
    return json::parse(text.str());
  }
  std::unique_ptr<Trace> trace() const { return Trace::create(file_, 3, "rank \"3\"").take(); }

  const std::string file_ = ::testing::TempDir() + "tutti_trace_" + std::to_string(getpid()) + ".json";
};

Trace::Event event_of(std::uint64_t number) {
  Trace::Event event;
  event.context = 1;
  event.number = number;
  event.began = Trace::now();
  event.ended = event.began + 1;
  return event;
}

TEST_F(TraceTest, IsValidFromTheBeginningOn) {
  const auto started = trace();
  EXPECT_EQ(content().size(), 1u);
  started->flush();
  EXPECT_EQ(content().size(), 1u);
  started->add(event_of(1));
  started->flush();
  EXPECT_EQ(content().size(), 3u);
}

TEST_F(TraceTest, TellsWhatHappened) {
  {
    const auto started = trace();
    Trace::Event event = event_of(7);
    event.call = {.kind = CollectiveKind::broadcast, .type = DataType::float64, .root = 2, .count = 5};
    event.issued = event.began - 1500;
    event.failed = true;
    started->add(event);
    event.kind = Trace::Event::Kind::wait;
    event.ended = event.began + 2'001'234;
    started->add(event);
  }
  const json events = content();
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0]["args"]["name"], "rank \"3\"");
  EXPECT_EQ(events[1]["ph"], "b");
  EXPECT_EQ(events[2]["ph"], "n");
  EXPECT_EQ(events[3]["ph"], "e");
  EXPECT_EQ(events[1]["name"], "broadcast");
  EXPECT_EQ(events[1]["id2"], events[3]["id2"]);
  EXPECT_EQ(events[1]["args"]["bytes"], 40);
  EXPECT_EQ(events[1]["args"]["failed"], true);
  EXPECT_NEAR(events[2]["ts"].get<double>() - events[1]["ts"].get<double>(), 1.5, 0.01);
  EXPECT_EQ(events[4]["ph"], "X");
  EXPECT_NEAR(events[4]["dur"].get<double>(), 2001.234, 0.001);
  EXPECT_EQ(events[4]["name"], "wait broadcast");
}

// Several threads add more events than fit. The trace counts the events that do not fit.
TEST_F(TraceTest, MemoryIsBounded) {
  constexpr int threads = 4;
  constexpr std::uint64_t each = 50'000;
  {
    const auto started = trace();
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i) {
      all.emplace_back([&started, i] {
        for (std::uint64_t n = 0; n < each; ++n)
          started->add(event_of(static_cast<std::uint64_t>(i) * each + n));
      });
    }
    for (std::thread& thread : all) thread.join();
  }
  std::uint64_t kept = 0;
  std::uint64_t dropped = 0;
  for (const json& event : content()) {
    kept += event["ph"] == "b" ? 1 : 0;
    if (event["ph"] == "i") dropped += std::stoull(event["name"].get<std::string>());
  }
  EXPECT_EQ(kept + dropped, threads * each);
}

TEST_F(TraceTest, AFileThatCannotBeWrittenIsNamed) {
  const auto refused = Trace::create("/no/such/folder/trace", 0, "");
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("/no/such/folder/trace"), std::string::npos);
}

// A limit on the file's size imitates a full disk.
TEST_F(TraceTest, EventsFromBeforeTheDiskWasFullStayValid) {
  std::shared_ptr<Trace> started = trace();
  started->add(event_of(1));
  started->flush();
  const std::size_t events = content().size();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit full{std::filesystem::file_size(file_), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
  started->add(event_of(2));
  started->flush();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  started.reset();
  EXPECT_EQ(content().size(), events);
}

}  // namespace
}  // namespace tutti
