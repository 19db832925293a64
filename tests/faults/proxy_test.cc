// Tests ranks with a proxy between them. The proxy makes paths slow or lossy, cuts a path, or
// replays recorded data as an eavesdropper could.
#include <map>
#include <numeric>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/faults/job.h"
#include "tests/support/tcp_proxy.h"

namespace tutti::test {
namespace {

using testing::HasSubstr;

constexpr const char* listened_on = "127.0.0.2";
constexpr const char* advertised = "127.0.0.3";
constexpr int ports_each = 4;  // for data, control and a store, and a spare port

// `Proxied` runs a job whose connections all go through a proxy, except rank 0's own connection to the store.
class Proxied : public testing::Test {
 protected:
  void start(int size, Process::Environment variables, int started) {
    first_port_ = unused_port();
    std::vector<std::uint16_t> ports(static_cast<std::size_t>(size * ports_each) + 1);
    std::iota(ports.begin(), ports.end(), first_port_);
    proxy_.emplace(advertised, listened_on, ports, weather_);
    ASSERT_EQ(proxy_->problem(), "");
    variables["TUTTI_BIND_ADDRESS"] = listened_on;
    variables["TUTTI_ADVERTISE_ADDRESS"] = advertised;
    job_.emplace(size, std::move(variables), 0);
    for (int rank = 0; rank < started; ++rank) start_rank(rank);
  }
  void start_rank(int rank) {
    const int first = first_port_ + 1 + rank * ports_each;
    const std::string where = rank == 0 ? listened_on : advertised;
    job_->start(rank,
                {{"TUTTI_PORT_RANGE", std::to_string(first) + "-" + std::to_string(first + ports_each - 1)},
                 {"TUTTI_INIT_METHOD", "tcp://" + where + ":" + std::to_string(first_port_)}});
  }
  std::string reports() {
    std::string all;
    for (const auto& rank : job_->ranks) all += rank->report();
    return all;
  }

  std::uint16_t first_port_ = 0;  // the store's port
  Weather weather_;
  std::optional<TcpProxy> proxy_;
  std::optional<Job> job_;
};

TEST_F(Proxied, DelayAndLossChangeNoResult) {
  weather_.delay_us = 2000;
  weather_.jitter_us = 4000;
  weather_.loss = 60;
  start(3, {}, 3);
  ASSERT_TRUE(job_->are_ready()) << reports();
  EXPECT_GT(proxy_->records().size(), 5u);
  weather_.loss = 10;
  EXPECT_FALSE((*job_)[0].wait(std::chrono::milliseconds(800)));
  job_->expect_good_end();
}

TEST_F(Proxied, ACutIsALostPeerAfterTheLimit) {
  start(2, {{"TUTTI_HEARTBEAT", "3s"}}, 2);
  ASSERT_TRUE(job_->are_ready()) << reports();
  weather_.cut = true;
  for (int rank = 0; rank < 2; ++rank) {
    Process& process = (*job_)[rank];
    EXPECT_EQ(process.wait(), 1) << process.report();
    EXPECT_THAT(process.err(), HasSubstr("peer_lost: "));
    EXPECT_THAT(process.err(), HasSubstr("rank " + std::to_string(1 - rank) + " (host "));
  }
}

// Sends the recorded bytes to the same port a second time, and returns the answer.
std::string replay(const TcpProxy::Record& record) {
  const int descriptor = connect_to(listened_on, record.port);
  if (descriptor < 0) return "nothing listens";
  send(descriptor, record.said.data(), record.said.size(), MSG_NOSIGNAL);
  std::string answer;
  for (;;) {
    pollfd readable{descriptor, POLLIN, 0};
    char bytes[4096];
    if (poll(&readable, 1, 20'000) <= 0) {
      answer += " and stays open";
      break;
    }
    const ssize_t got = recv(descriptor, bytes, sizeof bytes, 0);
    if (got <= 0) break;
    answer.append(bytes, static_cast<std::size_t>(got));
  }
  close(descriptor);
  return answer;
}

// A guard's notice has 64 bytes. The verdict is its twelfth byte (core/security/messages.h).
constexpr std::size_t notice = 64, verdict = 11;

void expect_refused(const TcpProxy::Record& record) {
  SCOPED_TRACE("port " + std::to_string(record.port));
  ASSERT_GE(record.answered.size(), 2 * notice);
  ASSERT_EQ(record.answered[notice + verdict], 2);  // the original was accepted
  const std::string answer = replay(record);
  // The port sends a new nonce (a random number), then a refusal of the proof, and no further data.
  ASSERT_LE(answer.size(), 2 * notice);
  ASSERT_GE(answer.size(), notice);
  EXPECT_EQ(answer[verdict], 1);
  EXPECT_NE(answer.substr(verdict + 1, notice - verdict),
            record.answered.substr(verdict + 1, notice - verdict));
  EXPECT_TRUE(answer.size() < 2 * notice || answer[notice + verdict] == 3);
}

TEST_F(Proxied, ARecordedHandshakeIsWorthNothing) {
  start(3, {{"TUTTI_TOKEN", "4d7c1f0a93b25e68"}}, 2);
  // Returns a recorded connection to the store's port. The store still runs, since rank 2 has not
  // arrived.
  const auto to_the_store = [&] {
    for (const TcpProxy::Record& record : proxy_->records()) {
      if (record.port == first_port_ && record.answered.size() > 2 * notice) return record;
    }
    return TcpProxy::Record{};
  };
  for (int i = 0; i < 3000 && to_the_store().said.empty(); ++i) usleep(10'000);
  ASSERT_FALSE(to_the_store().said.empty()) << reports();
  expect_refused(to_the_store());
  start_rank(2);
  ASSERT_TRUE(job_->are_ready()) << reports();
  // `by_port` maps each data port and each control port to one recorded connection.
  std::map<std::uint16_t, TcpProxy::Record> by_port;
  for (const TcpProxy::Record& record : proxy_->records()) {
    if (record.port != first_port_ && record.answered.size() >= 2 * notice) by_port[record.port] = record;
  }
  EXPECT_GE(by_port.size(), 3u);
  for (const auto& [port, record] : by_port) expect_refused(record);
  job_->expect_good_end();
  EXPECT_THAT((*job_)[0].err(), HasSubstr("has another token"));
}

}  // namespace
}  // namespace tutti::test
