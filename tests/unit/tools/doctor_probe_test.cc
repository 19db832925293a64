// Tests the probes of `tutti doctor` and their connections, over loopback.
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <tutti/address.h>

#include "tools/doctor/card_tester.h"
#include "tools/doctor/path_tester.h"
#include "tools/doctor/probe.h"
#include "tools/doctor/responder.h"
#include "tools/doctor/test_socket.h"

namespace tutti::tools::doctor {
namespace {

using testing::HasSubstr;

const std::string pass(pass_bytes, 'p');
constexpr const char* loopback_address = "127.0.0.1";

class DoctorResponder : public testing::Test {
 protected:
  void SetUp() override {
    const auto port = responder_.listen(loopback_address, {});
    ASSERT_TRUE(port.ok()) << port.status().message();
    target_ = {.host = 7, .address = loopback_address, .port = *port};
    responder_.start();
  }

  // Returns a new connection on which no bytes have been sent.
  TestSocket connect() const { return connect(target_); }
  static TestSocket connect(const Target& target) {
    const SocketAddress address = *parse_address(target.address, target.port);
    Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(socket.get(), address.raw(), address.length), 0);
    fcntl(socket.get(), F_SETFL, O_NONBLOCK);
    return TestSocket(std::move(socket));
  }

  // Sends the bytes. Returns whether the responder then closes the connection without an answer.
  bool is_closed_after(const std::string& bytes) const {
    TestSocket socket = connect();
    const Deadline deadline = Deadline::after(std::chrono::minutes(1));
    char answer = 0;
    if (!socket.send(bytes, deadline).ok()) return true;
    const auto received = socket.receive_some({&answer, 1}, deadline);
    return received.ok() ? *received == 0 : received.status().code() == Code::peer_lost;
  }

  Responder responder_{7, pass};
  Target target_;
};

TEST_F(DoctorResponder, IsMeasured) {
  const std::vector<Path> paths = test_paths({target_, target_}, pass);
  ASSERT_EQ(paths.size(), 2u);
  for (const Path& path : paths) {
    EXPECT_EQ(path.outcome, Outcome::reached) << path.error;
    EXPECT_EQ(path.from, loopback_address);
    EXPECT_EQ(path.to, loopback_address);
    EXPECT_GT(path.round_trip_us, 0);
    EXPECT_GT(path.full_packet, 500);
    EXPECT_EQ(path.largest_packet, path.full_packet);
    EXPECT_GT(path.bandwidth, 0);
  }
}

TEST_F(DoctorResponder, TellsWhichHostItIs) {
  Target other = target_;
  other.host = 8;
  EXPECT_EQ(test_paths({other}, pass).at(0).outcome, Outcome::wrong_host);
}

TEST_F(DoctorResponder, ClosesConnectionsWithoutThePass) {
  EXPECT_TRUE(is_closed_after(std::string(greeting_start) + std::string(pass_bytes, 'q')));
  EXPECT_TRUE(is_closed_after("GET / HTTP/1.1\r\nHost: a.host.with.a.long.name.example\r\n\r\n"));
  EXPECT_EQ(test_paths({target_}, std::string(pass_bytes, 'q')).at(0).outcome, Outcome::failed);
  EXPECT_EQ(test_paths({target_}, pass).at(0).outcome, Outcome::reached);
}

TEST_F(DoctorResponder, ClosesConnectionsThatAskForSomethingElse) {
  for (const std::string& request : {header_of('x', 0), header_of(request_message, longest_message + 1)}) {
    TestSocket socket = connect();
    const Deadline deadline = Deadline::after(std::chrono::minutes(1));
    char host[4];
    ASSERT_TRUE(socket.send(std::string(greeting_start) + pass + request, deadline).ok());
    ASSERT_TRUE(socket.receive(host, deadline).ok());
    EXPECT_EQ(socket.receive(host, deadline).code(), Code::peer_lost);
  }
}

TEST_F(DoctorResponder, ServesOthersWhileStrangersAreSilent) {
  std::vector<TestSocket> strangers;
  for (int i = 0; i < 10; ++i) strangers.push_back(connect());
  EXPECT_EQ(test_paths({target_}, pass).at(0).outcome, Outcome::reached);
}

// A listener whose queue is full drops the first packets of further connections, so the probe gets no answer.
TEST_F(DoctorResponder, IsMeasuredIfAnotherAddressIsSilent) {
  const Descriptor silent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  SocketAddress address = *parse_address(loopback_address, 0);
  ASSERT_EQ(bind(silent.get(), address.raw(), address.length), 0);
  ASSERT_EQ(listen(silent.get(), 0), 0);
  ASSERT_EQ(getsockname(silent.get(), reinterpret_cast<sockaddr*>(&address.storage), &address.length), 0);
  const Target other{.host = 7, .address = loopback_address, .port = address.port()};
  const TestSocket only = connect(other);
  const std::vector<Path> paths = test_paths({other, target_}, pass);
  EXPECT_EQ(paths.at(0).outcome, Outcome::timed_out);
  EXPECT_EQ(paths.at(1).outcome, Outcome::reached) << paths.at(1).error;
}

TEST(DoctorPath, ThatIsClosedSaysWhy) {
  Target target{.host = 1, .address = loopback_address, .port = 0};
  {
    Responder responder(1, pass);
    target.port = *responder.listen(loopback_address, {});
  }
  const std::vector<Path> paths = test_paths({target, {.host = 1, .address = "nonsense", .port = 1}}, pass);
  EXPECT_EQ(paths.at(0).outcome, Outcome::refused);
  EXPECT_EQ(paths.at(0).error, "Connection refused");
  EXPECT_EQ(paths.at(1).outcome, Outcome::failed);
}

TEST(DoctorResponderPorts, AreThoseOfTheRange) {
  Responder first(1, pass), second(2, pass);
  std::uint16_t base = 0;
  {
    Responder any(3, pass);
    base = *any.listen(loopback_address, {});
  }
  const auto port = first.listen(loopback_address, PortRange{base, base});
  ASSERT_TRUE(port.ok()) << port.status().message();
  EXPECT_EQ(*port, base);
  EXPECT_THAT(second.listen(loopback_address, PortRange{base, base}).status().message(),
              HasSubstr("(TUTTI_PORT_RANGE) is free on 127.0.0.1"));
}

TEST(DoctorProbe, AnswersEachCommand) {
  std::istringstream in(to_line(ProbeCommand{.what = "test"}) + "\n" +
                        to_line(ProbeCommand{.what = "begin", .pass = "short"}) + "\n" +
                        to_line(ProbeCommand{.what = "begin",
                                             .host = 3,
                                             .pass = pass,
                                             .folder = "/no/such/folder",
                                             .addresses = {"127.0.0.1"}}) +
                        "\n" + to_line(ProbeCommand{.what = "clock"}) + "\n" +
                        to_line(ProbeCommand{.what = "routes", .addresses = {"127.0.0.1", "nonsense"}}) +
                        "\nnonsense\n" + to_line(ProbeCommand{.what = "test"}) + "\n");
  std::ostringstream out;
  Probe().serve(in, out);
  std::istringstream lines(out.str());
  std::vector<ProbeAnswer> answers;
  for (std::string line; std::getline(lines, line);) answers.push_back(parse_answer(line).take());
  ASSERT_EQ(answers.size(), 7u);
  EXPECT_EQ(answers[0].problem, "no such command: test");  // the command came before `begin`
  EXPECT_THAT(answers[1].problem, HasSubstr("wrong length"));
  EXPECT_EQ(answers[2].problem, "");
  EXPECT_GT(answers[2].facts.cores, 0);
  EXPECT_FALSE(answers[2].facts.has_folder);
  EXPECT_EQ(answers[2].facts.route, "127.0.0.1");
  EXPECT_GT(answers[2].facts.memlock, 0u);
  EXPECT_FALSE(answers[2].facts.interfaces.empty());
  EXPECT_GT(answers[3].clock_ns, 1'000'000'000'000'000'000);
  EXPECT_THAT(answers[4].routes, testing::ElementsAre("127.0.0.1", ""));
  EXPECT_NE(answers[5].problem, "");
  EXPECT_EQ(answers[6].problem, "");
}

TEST(DoctorProbe, NamesAFreePort) {
  const Config config = Config::from_environment().take();
  EXPECT_NE(free_port(loopback_address, config).take(), 0);
  EXPECT_THAT(free_port("192.0.2.1", config).status().message(), HasSubstr("cannot listen on 192.0.2.1"));
}

// Returns the results of a test by this transport at rank 0 and at rank 1.
std::vector<std::string> results_of_test(const std::string& transport) {
  CardTest test{.rank = 1, .address = loopback_address};
  test.port = free_port(loopback_address, Config::from_environment().take()).take();
  std::string at_1;
  std::thread other([&] { at_1 = test_cards(test, transport); });
  const std::string at_0 = test_cards({0, test.address, test.port}, transport);
  other.join();
  return {at_0, at_1};
}

TEST(DoctorProbe, TestsWhetherMessagesPass) {
  EXPECT_THAT(results_of_test("tcp"), testing::Each(""));
  EXPECT_THAT(results_of_test("no transport"), testing::Each(HasSubstr("no transport")));
}

// The words of the failure show the doctor that the devices have not been tested (findings_cards.cc).
TEST(DoctorProbe, SaysThatThereAreTooFewPorts) {
  Responder responder(1, pass);
  const std::string port = std::to_string(*responder.listen(loopback_address, {}));
  setenv("TUTTI_PORT_RANGE", (port + "-" + port).c_str(), 1);
  const auto refused = testing::HasSubstr("no port of " + port + "-" + port + " (TUTTI_PORT_RANGE) is free");
  const auto none = free_port(loopback_address, Config::from_environment().take());
  EXPECT_THAT(none.status().message(), refused);
  std::istringstream in(to_line(ProbeCommand{.what = "port", .addresses = {loopback_address}}) + "\n");
  std::ostringstream out;
  Probe().serve(in, out);
  EXPECT_THAT(parse_answer(out.str()).take().failure, refused);
  CardTest test{.rank = 0, .address = loopback_address};
  test.port = free_port(loopback_address, {}).take();
  EXPECT_THAT(test_cards(test, "tcp"), refused);
  unsetenv("TUTTI_PORT_RANGE");
}

}  // namespace
}  // namespace tutti::tools::doctor
