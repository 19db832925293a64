// Tests the error of an agent that cannot call its launcher back. `callback_test.cc` tests calls
// that succeed or are refused.
#include "tools/run/dial.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/descriptor.h"
#include "core/security/ends.h"
#include "transport/meeting/socket.h"

namespace tutti::tools {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string unused_secret(64, 'a');

TEST(Dial, SaysWhyEachEndpointHasFailed) {
  std::vector<std::string> closed;
  for (const char* address : {"127.0.0.1", "127.0.0.2"}) {
    const Descriptor socket = meeting::listen_on("a process that ends", address, 0, 0).take();
    closed.push_back(security::own_address(socket.get()));
  }
  const Call call{.endpoints = closed, .job = "a job", .secret = unused_secret, .limit = 1s};
  const Status why = dial(call).status();
  EXPECT_EQ(why.code(), Code::timeout);
  for (const std::string& endpoint : closed)
    EXPECT_THAT(why.message(), HasSubstr(endpoint + ": Connection refused"));
  EXPECT_THAT(why.message(), HasSubstr("--call-back ADDRESS"));
  EXPECT_THAT(why.message(), Not(HasSubstr(unused_secret)));
}

TEST(Dial, SaysWhichEndpointMakesNoSense) {
  for (const char* endpoint :
       {"127.0.0.1", "127.0.0.1:0", "127.0.0.1:70000", "a.host:1", "127.0.0.1:1x", ""}) {
    const Call call{.endpoints = {endpoint}, .job = "a job", .secret = unused_secret};
    EXPECT_EQ(dial(call).status().code(), Code::invalid_argument) << endpoint;
  }
}

}  // namespace
}  // namespace tutti::tools
