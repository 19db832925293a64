#include "rendezvous/launch/url.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Url, Tcp) {
  const InitUrl url = parse_url("tcp://node7:29500?rank=1&world_size=4&timeout=500ms").take();
  EXPECT_EQ(url.scheme, InitUrl::Scheme::tcp);
  EXPECT_EQ(url.host, "node7");
  EXPECT_EQ(url.port, 29500);
  EXPECT_EQ(url.rank, 1);
  EXPECT_EQ(url.world_size, 4);
  EXPECT_EQ(url.timeout, milliseconds(500));
  EXPECT_EQ(parse_url("tcp://10.0.0.1:1/").take().host, "10.0.0.1");
  EXPECT_FALSE(parse_url("tcp://h:1").take().rank.has_value());
}

TEST(Url, Ipv6) {
  const InitUrl url = parse_url("tcp://[fe80::1%eth0]:29500?rank=0").take();
  EXPECT_EQ(url.host, "fe80::1%eth0");
  EXPECT_EQ(url.port, 29500);
  EXPECT_EQ(parse_url("tcp://[::1]:80").take().host, "::1");
}

TEST(Url, File) {
  const InitUrl url = parse_url("file:///mnt/my%20job/7?rank=0&world_size=2&timeout=2m").take();
  EXPECT_EQ(url.scheme, InitUrl::Scheme::file);
  EXPECT_EQ(url.path, "/mnt/my job/7");
  EXPECT_EQ(url.timeout, seconds(120));
}

TEST(Url, Env) {
  EXPECT_EQ(parse_url("env://").take().scheme, InitUrl::Scheme::env);
  EXPECT_EQ(parse_url("env://?rank=3").take().rank, 3);
}

TEST(Url, ErrorsNameTheUrlAndTheFault) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"mpi://world", "nothing may follow mpi://"},
      {"", "expected env://"},
      {"host:29500", "expected env://"},
      {"http://a:1", "unknown scheme 'http'"},
      {"tcp://", "host is missing"},
      {"tcp://:29500", "host is missing"},
      {"tcp://host", "port is missing"},
      {"tcp://host:", "port is missing"},
      {"tcp://[::1]", "port is missing"},
      {"tcp://host:0", "port '0'"},
      {"tcp://host:65536", "port '65536'"},
      {"tcp://host:12x", "port '12x'"},
      {"tcp://::1:29500", "needs brackets"},
      {"tcp://[::1:29500", "no ']'"},
      {"tcp://[::1]29500", "expected ':port'"},
      {"tcp://h:1?rank=-1", "rank is '-1'"},
      {"tcp://h:1?rank=one", "rank is 'one'"},
      {"tcp://h:1?world_size=0", "world_size is '0'"},
      {"tcp://h:1?rank=2&world_size=2", "rank 2 is not below world_size 2"},
      {"tcp://h:1?rank=1&rank=1", "given twice"},
      {"tcp://h:1?rnk=1", "unknown parameter 'rnk'"},
      {"tcp://h:1?rank", "has no value"},
      {"tcp://h:1?timeout=soon", "timeout is 'soon'"},
      {"tcp://h:1?rank=99999999999", "rank is '99999999999'"},
      {"file://relative/path", "must be absolute"},
      {"file://", "must be absolute"},
      {"file:///folder/", "names a folder"},
      {"file:///a%zz", "bad %-escape"},
      {"file:///a%00b", "bad %-escape"},
      {"env://host", "nothing may follow"},
  };
  for (const auto& [url, fault] : cases) {
    const Status status = parse_url(url).status();
    EXPECT_EQ(status.code(), Code::invalid_argument) << url;
    EXPECT_NE(status.message().find("'" + url + "'"), std::string::npos) << status.to_string();
    EXPECT_NE(status.message().find(fault), std::string::npos) << url << ": " << status.to_string();
  }
}

}  // namespace
}  // namespace tutti
