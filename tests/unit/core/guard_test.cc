#include "core/security/guard.h"

#include <fstream>
#include <functional>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/descriptor.h"
#include "core/security/messages.h"
#include "tests/unit/core/guard_ends.h"

namespace tutti::security {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;
using State = Guard::State;

SharedCredentials holder_of(const std::string& token, const std::string& job = "") {
  Settings settings;
  settings.token = Secret(token);
  settings.job = job;
  return Credentials::create(settings).take();
}

Deadline ample() { return Deadline::after(seconds(60)); }

constexpr Parties one_to_two{Service::data, 1, 2};

Guard connector(const std::string& token, const Parties& parties = one_to_two, const std::string& job = "") {
  return Guard::connecting(token.empty() ? nullptr : holder_of(token, job), parties, ample());
}
Guard acceptor(const std::string& token, Service service = Service::data, std::uint32_t self = 2,
               const std::string& job = "") {
  return Guard::accepting(token.empty() ? nullptr : holder_of(token, job), service, self, ample());
}

TEST(Guard, LetsHoldersOfTheSameTokenPassAndTakesNothingElse) {
  for (const int type : {SOCK_STREAM, SOCK_SEQPACKET}) {
    Connection connection(type);
    Guard connects = connector("secret"), accepts = acceptor("secret");
    meet(connection, connects, accepts);
    ASSERT_EQ(connects.advance(connection.left), State::done) << connects.status().to_string();
    ASSERT_EQ(accepts.advance(connection.right), State::done) << accepts.status().to_string();
    EXPECT_EQ(accepts.from(), 1u);
    send_all(connection.left, "what follows");
    EXPECT_EQ(receive_all(connection.right), "what follows");
    send_all(connection.right, "the answer");
    EXPECT_EQ(receive_all(connection.left), "the answer");
  }
}

TEST(Guard, WithoutTokensNothingIsSaid) {
  Connection connection;
  Guard connects = connector(""), accepts = acceptor("");
  EXPECT_EQ(connects.advance(connection.left), State::done);
  EXPECT_EQ(accepts.advance(connection.right), State::reading);
  send_all(connection.left, "hello");
  EXPECT_EQ(accepts.advance(connection.right), State::done);
  EXPECT_EQ(receive_all(connection.right), "hello");
}

TEST(Guard, AnotherTokenIsRefusedOnBothSides) {
  Connection connection;
  Guard connects = connector("mine"), accepts = acceptor("yours");
  meet(connection, connects, accepts);
  for (const Guard* guard : {&connects, &accepts}) {
    EXPECT_EQ(guard->status().code(), Code::unauthenticated);
    EXPECT_THAT(guard->status().message(), HasSubstr("another token"));
    EXPECT_THAT(guard->status().message(), HasSubstr("rank 1 at "));
    EXPECT_THAT(guard->status().message(), HasSubstr("rank 2 at "));
    EXPECT_THAT(guard->status().message(), Not(HasSubstr("mine")));
  }
  EXPECT_TRUE(accepts.is_noteworthy());
  // The peer has proved nothing: any process may claim to be rank 1.
  EXPECT_THAT(accepts.status().message(), HasSubstr("a process that calls itself rank 1 at "));
}

// Returns both ends of a TCP connection.
std::pair<Descriptor, Descriptor> connect_by_tcp() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const raw = reinterpret_cast<sockaddr*>(&address);
  const Descriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(bind(listener.get(), raw, length), 0);
  EXPECT_EQ(listen(listener.get(), 1), 0);
  EXPECT_EQ(getsockname(listener.get(), raw, &length), 0);
  Descriptor connects(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(connect(connects.get(), raw, length), 0);
  EXPECT_EQ(fcntl(connects.get(), F_SETFL, O_NONBLOCK), 0);
  Descriptor accepts(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  return {std::move(connects), std::move(accepts)};
}

// The error must still contain the address, although the system forgets the address of a peer that
// has reset its connection.
TEST(Guard, WhoHasResetItsConnectionIsNamedByItsAddress) {
  auto [left, right] = connect_by_tcp();
  const std::string address = own_address(left.get());
  Guard connects = connector("mine"), accepts = acceptor("yours");
  connects.advance(left.get());
  accepts.advance(right.get());  // asks for a proof
  connects.advance(left.get());  // sends a proof
  const linger reset = {.l_onoff = 1, .l_linger = 0};
  ASSERT_EQ(setsockopt(left.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
  left.reset();
  EXPECT_EQ(accepts.advance(right.get()), State::failed);
  EXPECT_THAT(accepts.status().message(), HasSubstr("rank 1 at " + address));
}

TEST(Guard, OneSideWithoutATokenIsRefusedOnBoth) {
  {
    Connection connection;
    Guard connects = connector("secret"), accepts = acceptor("");
    meet(connection, connects, accepts);
    EXPECT_EQ(connects.status().code(), Code::unauthenticated);
    EXPECT_EQ(accepts.status().code(), Code::unauthenticated);
    EXPECT_THAT(connects.status().message(), HasSubstr("has no token"));
    EXPECT_THAT(accepts.status().message(), HasSubstr("has no token"));
  }
  // The guard receives a plain greeting instead of another guard's opening.
  for (const std::string greeting : {"TUTTIST\n and more", "tutti?\r\n and more"}) {
    Connection connection;
    Guard accepts = acceptor("secret");
    send_all(connection.left, greeting);
    EXPECT_EQ(accepts.advance(connection.right), State::failed);
    EXPECT_EQ(accepts.status().code(), Code::unauthenticated);
    EXPECT_TRUE(accepts.is_noteworthy());
    const std::string answer = receive_all(connection.left);
    const auto refusal = refusal_by_guard(bytes_of(answer), "the store");
    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->code(), Code::unauthenticated);
    EXPECT_THAT(refusal->message(), HasSubstr("asks for a token"));
  }
}

TEST(Guard, StrangersAreTurnedAwayAtTheFirstWrongByteWithoutAWord) {
  const std::vector<std::string> greetings = {"GET / HTTP/1.1\r\n", std::string("\x16\x03\x01\x02\x00", 5),
                                              "\xd7tuttx", std::string(10'000, '\0'), "tuttx"};
  for (const std::string& greeting : greetings) {
    Connection connection;
    Guard accepts = acceptor("secret");
    send_all(connection.left, greeting);
    EXPECT_EQ(accepts.advance(connection.right), State::failed);
    EXPECT_EQ(accepts.status().code(), Code::protocol_error);
    EXPECT_FALSE(accepts.is_noteworthy());
    EXPECT_EQ(receive_all(connection.left), "");
  }
  // The connecting side also refuses a process without a guard.
  Connection connection;
  Guard connects = connector("secret");
  send_all(connection.right, "HTTP/1.1 400 Bad Request\r\n");
  EXPECT_EQ(connects.advance(connection.left), State::failed);
  EXPECT_EQ(connects.status().code(), Code::protocol_error);
}

TEST(Guard, WhoDoesNotAnswerHasItsTime) {
  Connection connection;
  Guard accepts = Guard::accepting(holder_of("secret"), Service::data, 2, Deadline::after(seconds(0)));
  EXPECT_EQ(accepts.advance(connection.right), State::failed);
  EXPECT_EQ(accepts.status().code(), Code::timeout);
  Guard connects = connector("secret");
  EXPECT_EQ(connects.advance(connection.left), State::reading);
  shutdown(connection.right, SHUT_RDWR);
  EXPECT_EQ(connects.advance(connection.left), State::failed);
  EXPECT_EQ(connects.status().code(), Code::peer_lost);
}

TEST(Guard, AnotherServiceRankOrJobIsAnotherProof) {
  const auto outcome = [](Guard connects, Guard accepts) {
    Connection connection;
    meet(connection, connects, accepts);
    return std::pair(connects.status().code(), accepts.status().code());
  };
  using Codes = std::pair<Code, Code>;
  const Codes not_meant{Code::unreachable, Code::unreachable},
      denied{Code::unauthenticated, Code::unauthenticated};
  EXPECT_EQ(outcome(connector("secret"), acceptor("secret", Service::control)), not_meant);
  EXPECT_EQ(outcome(connector("secret"), acceptor("secret", Service::launch)), not_meant);
  EXPECT_EQ(outcome(connector("secret"), acceptor("secret", Service::data, 3)), not_meant);
  EXPECT_EQ(outcome(connector("secret", one_to_two, "a"), acceptor("secret", Service::data, 2, "b")), denied);
  // One store serves several jobs, so the job need not match.
  EXPECT_EQ(outcome(connector("secret", {Service::store, 1, nobody}, "a"),
                    acceptor("secret", Service::store, nobody, "b")),
            Codes(Code::ok, Code::ok));
}

TEST(Guard, AReplayedHandshakeIsRefused) {
  Recording recording;
  {
    Guard connects = connector("secret"), accepts = acceptor("secret");
    recording.run(connects, accepts);
    ASSERT_TRUE(connects.status().ok() && accepts.status().ok());
    ASSERT_EQ(recording.to_right.size(), 2u);
  }
  {  // replays the bytes of the connecting side
    Connection connection;
    Guard accepts = acceptor("secret");
    for (const std::string& said : recording.to_right) {
      send_all(connection.left, said);
      accepts.advance(connection.right);
    }
    EXPECT_EQ(accepts.advance(connection.right), State::failed);
    EXPECT_EQ(accepts.status().code(), Code::unauthenticated);
  }
  {  // replays the bytes of the accepting side
    Connection connection;
    Guard connects = connector("secret");
    for (const std::string& said : recording.to_left) {
      send_all(connection.right, said);
      connects.advance(connection.left);
    }
    EXPECT_EQ(connects.advance(connection.left), State::failed);
    EXPECT_EQ(connects.status().code(), Code::unauthenticated);
  }
}

// A stranger without a token sends a rank's own messages back to that rank, as if they came from a peer.
TEST(Guard, AReflectedHandshakeIsRefused) {
  Connection ours, theirs;
  Guard victim = acceptor("secret"), also_victim = connector("secret");
  // The stranger forwards the opening to the accepting side, and forwards the challenge back to the
  // connecting side.
  also_victim.advance(theirs.left);
  send_all(ours.left, receive_all(theirs.right));
  victim.advance(ours.right);
  const std::string challenge = receive_all(ours.left);
  send_all(theirs.right, challenge);
  also_victim.advance(theirs.left);
  const std::string proof = receive_all(theirs.right);
  ASSERT_EQ(proof.size(), digest_bytes);
  // The connecting side does not accept its own proof as a proof of the accepting side.
  std::string verdict = challenge;
  verdict[11] = 2;
  verdict.replace(body_offset, digest_bytes, proof);
  send_all(theirs.right, verdict);
  EXPECT_EQ(also_victim.advance(theirs.left), State::failed);
  EXPECT_EQ(also_victim.status().code(), Code::unauthenticated);
}

TEST(Guard, WhoAcceptsWithoutTheTokenIsFoundOut) {
  Connection connection;
  Guard connects = connector("secret");
  std::string notice(Guard::message_bytes, '\0');
  std::memcpy(notice.data(), notice_magic.data(), notice_magic.size());
  notice[8] = static_cast<char>(guard_version);
  notice[11] = 1;
  send_all(connection.right, notice);
  connects.advance(connection.left);
  notice[11] = 2;
  send_all(connection.right, notice);
  EXPECT_EQ(connects.advance(connection.left), State::failed);
  EXPECT_EQ(connects.status().code(), Code::unauthenticated);
  EXPECT_THAT(connects.status().message(), HasSubstr("cannot prove"));
}

TEST(Guard, WhoAcceptsGetsOneProofOnly) {
  Connection connection;
  Guard connects = connector("secret");
  std::string challenge(Guard::message_bytes, '\0');
  std::memcpy(challenge.data(), notice_magic.data(), notice_magic.size());
  challenge[8] = static_cast<char>(guard_version);
  challenge[11] = 1;
  for (int i = 0; i < 10; ++i) send_all(connection.right, challenge);
  EXPECT_EQ(connects.advance(connection.left), State::failed);
  EXPECT_EQ(connects.status().code(), Code::protocol_error);
  EXPECT_EQ(receive_all(connection.right).size(), Guard::message_bytes + digest_bytes);
}

TEST(Guard, EveryChangedByteIsNoticed) {
  // The opening and the proof go from left to right. The challenge and the verdict go from right to left.
  const std::size_t total = 3 * Guard::message_bytes + digest_bytes;
  for (std::size_t position = 0; position < total; ++position) {
    Guard connects = connector("secret"), accepts = acceptor("secret");
    std::size_t seen = 0;
    Recording().run(connects, accepts, [&](std::string& text) {
      if (position >= seen && position < seen + text.size()) text[position - seen] ^= 1;
      seen += text.size();
    });
    // No proof covers the version, the mode and the reserved bytes of the last message, so a change of these
    // bytes has no effect.
    const std::size_t last = 2 * Guard::message_bytes + digest_bytes;
    const bool unused = position >= last + 8 && position < last + body_offset && position != last + 11;
    EXPECT_EQ(connects.status().ok() && accepts.status().ok(), unused) << "byte " << position;
  }
}

TEST(Guard, AnyGarbageIsEndedOrWaitedFor) {
  std::uint64_t seed = 1;
  for (int round = 0; round < 2000; ++round) {
    Connection connection;
    Guard connects = connector("secret"), accepts = acceptor("secret");
    std::string text(static_cast<std::size_t>(round % 200), '\0');
    for (char& c : text)
      c = static_cast<char>((seed = seed * 6364136223846793005 + 1442695040888963407) >> 56);
    if (round % 3 == 0)
      text.insert(0, reinterpret_cast<const char*>(opening_magic.data()), opening_magic.size());
    if (round % 3 == 1)
      text.insert(0, reinterpret_cast<const char*>(notice_magic.data()), notice_magic.size());
    if (text.empty()) continue;
    send_all(connection.left, text);
    send_all(connection.right, text);
    for (int turn = 0; turn < 5; ++turn) {
      EXPECT_NE(accepts.advance(connection.right), State::done);
      EXPECT_NE(connects.advance(connection.left), State::done);
    }
  }
}

TEST(Token, ComesFromTheVariableOrTheFirstLineOfAFile) {
  const std::string path = "/tmp/tutti-token-" + std::to_string(getpid());
  const auto from = [](const std::map<std::string, std::string>& values) {
    return settings_from(Config::from_values(values).take());
  };
  EXPECT_TRUE(from({}).take().token.empty());
  EXPECT_EQ(from({{"TUTTI_TOKEN", "abc"}}).take().token.reveal(), "abc");
  std::ofstream(path) << "from a file\nand more\n";
  EXPECT_EQ(from({{"TUTTI_TOKEN_FILE", path}}).take().token.reveal(), "from a file");
  EXPECT_EQ(from({{"TUTTI_TOKEN_FILE", path}, {"TUTTI_TOKEN", "abc"}}).status().code(),
            Code::invalid_argument);
  for (const char* blank : {"", "\n", " \t\r\n", "\nsecond line\n"}) {
    std::ofstream(path, std::ios::trunc) << blank;
    EXPECT_THAT(from({{"TUTTI_TOKEN_FILE", path}}).status().message(), HasSubstr("empty"));
  }
  std::ofstream(path, std::ios::trunc) << std::string(5000, 'x');
  EXPECT_THAT(from({{"TUTTI_TOKEN_FILE", path}}).status().message(), HasSubstr("longer"));
  unlink(path.c_str());
  EXPECT_THAT(from({{"TUTTI_TOKEN_FILE", path}}).status().message(), HasSubstr(path));
  EXPECT_THAT(from({{"TUTTI_TOKEN_FILE", "/tmp"}}).status().message(), HasSubstr("regular"));
}

TEST(Token, IsNotShown) {
  const Config config = Config::from_values({{"TUTTI_TOKEN", "abracadabra"}}).take();
  EXPECT_THAT(describe(config), Not(HasSubstr("abracadabra")));
  EXPECT_THAT(describe(config), HasSubstr("(set)"));
  EXPECT_THAT(config.wire_digest(), Not(HasSubstr("abracadabra")));
}

}  // namespace
}  // namespace tutti::security
