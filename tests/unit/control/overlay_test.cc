// Tests the control plane's state machine. The test holds the other ends of the connections, and sets the
// clock.
#include "control/liveness/overlay.h"

#include <atomic>
#include <condition_variable>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <tutti/log.h>

#include "core/error_text.h"
#include "tests/support/scratch_folder.h"
#include "tests/unit/control/lone_overlay.h"

namespace {

// `NameService` is a name service that does not answer until `answers` is true.
struct NameService {
  std::mutex mutex;
  std::condition_variable changed;
  bool answers = false;
  int asked = 0;
};

// The name service is never destroyed, since a thread may still wait for its answer when the process ends.
NameService& name_service() {
  static auto* const service = new NameService;
  return *service;
}

struct Entry {
  addrinfo info{};
  sockaddr_in address{};
};

}  // namespace

// These functions replace those of the C library.
extern "C" int getaddrinfo(const char*, const char*, const addrinfo*, addrinfo** list) {
  NameService& service = name_service();
  std::unique_lock lock(service.mutex);
  ++service.asked;
  service.changed.notify_all();
  service.changed.wait(lock, [&] { return service.answers; });
  auto* const entry = new Entry;
  entry->address.sin_family = AF_INET;
  entry->address.sin_addr.s_addr = htonl(0x0a000007);
  entry->info.ai_family = AF_INET;
  entry->info.ai_addr = reinterpret_cast<sockaddr*>(&entry->address);
  entry->info.ai_addrlen = sizeof entry->address;
  *list = &entry->info;
  return 0;
}

extern "C" void freeaddrinfo(addrinfo* list) { delete reinterpret_cast<Entry*>(list); }

namespace tutti::liveness {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

class NoEvents final : public ControlEvents {
 public:
  void on_lost(int rank, const Status& why) override { ADD_FAILURE() << rank << ": " << why.to_string(); }
  void on_left(int rank) override { ADD_FAILURE() << rank; }
  void on_fenced(const Status& why) override { ADD_FAILURE() << why.to_string(); }
  void on_note(const ControlNote&) override { ++notes; }
  int notes = 0;
};

// `World` has rank 0 of three ranks. Rank 0 connects to the other two ranks. Rank 1 has a literal
// address, and rank 2 has a host name.
class World {
 public:
  explicit World(security::SharedCredentials credentials = nullptr) {
    OverlayOptions options;
    for (int rank = 0; rank < 3; ++rank) {
      PeerInfo peer;
      peer.rank = rank;
      peer.addresses[address_name] = format(Address{rank == 2 ? "two.example" : "10.0.0.1", 4711, 1, {}});
      options.peers.push_back(peer);
    }
    options.nonce = 1;
    options.credentials = std::move(credentials);
    options.connect = connect_to_test(attempts);
    rank = std::make_unique<LoneOverlay>(std::move(options), events);
  }
  void turn(milliseconds passed = milliseconds(0)) { rank->turn(passed); }
  const Descriptor& end(std::size_t attempt) const { return attempts[attempt].end; }
  // Links rank 0 with both other ranks.
  void link() {
    {
      const std::lock_guard lock(name_service().mutex);
      name_service().answers = true;
    }
    name_service().changed.notify_all();
    for (int i = 0; i < 10'000 && attempts.size() < 2; ++i) {
      turn(milliseconds(1));
      usleep(1000);
    }
    ASSERT_EQ(attempts.size(), 2u);
    for (const std::size_t i : {0u, 1u}) say(end(i), encode(Answer{}));
    for (int i = 0; i < 3; ++i) turn();
    for (const std::size_t i : {0u, 1u}) EXPECT_EQ(hear(end(i)).size(), hello_bytes);
  }

  NoEvents events;
  std::vector<Attempt> attempts;
  std::unique_ptr<LoneOverlay> rank;
};

TEST(Overlay, ASlowNameServiceDelaysNoHeartbeat) {
  World world;
  world.turn();
  ASSERT_EQ(world.attempts.size(), 1u);
  EXPECT_EQ(world.attempts[0].address.text(), "10.0.0.1:4711");
  world.turn();
  EXPECT_EQ(hear(world.end(0)).size(), hello_bytes);
  say(world.end(0), encode(Answer{}));
  world.turn();
  // Rank 0 asks the name service for rank 2's address once. Within some seconds of its own clock,
  // it checks dozens of times whether the answer has come. It must not block until the answer
  // comes.
  const auto begin = Clock::now();
  int heartbeats = 0;
  for (int i = 0; i < 150; ++i) {
    world.turn(milliseconds(50));
    std::string heard = hear(world.end(0));
    std::string_view rest = heard;
    for (Frame frame; take_frame(rest, frame) == Parsed::whole;) ++heartbeats;
    say(world.end(0), encode(Frame{}));
  }
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(20));
  EXPECT_GE(heartbeats, 2);
  EXPECT_EQ(world.attempts.size(), 1u);
  {
    NameService& service = name_service();
    std::unique_lock lock(service.mutex);
    service.changed.wait(lock, [&] { return service.asked > 0; });
    EXPECT_EQ(service.asked, 1);
    service.answers = true;
    service.changed.notify_all();
  }
  for (int i = 0; i < 10'000 && world.attempts.size() == 1; ++i) {
    usleep(1000);
    world.turn();
    world.turn(milliseconds(10 * (i % 10 == 0)));
  }
  ASSERT_EQ(world.attempts.size(), 2u);
  EXPECT_EQ(world.attempts[1].address.text(), "10.0.0.7:4711");
}

std::string note(std::uint64_t key, std::uint8_t hops) {
  return encode(Frame{.kind = FrameKind::publish, .hops = hops, .origin = 1, .key = key});
}

// A rank that has forgotten a note's key forwards the note again. Without a limit, enough notes at
// the same time would circulate forever.
TEST(Overlay, ANoteIsPassedOnSoManyTimesOnly) {
  World world;
  ASSERT_NO_FATAL_FAILURE(world.link());
  say(world.end(0), note(1, 255) + note(2, 1) + note(3, 0));
  world.turn();
  EXPECT_EQ(world.events.notes, 3);
  const std::string heard = hear(world.end(1));
  std::map<std::uint64_t, int> hops;
  std::string_view rest = heard;
  for (Frame frame; take_frame(rest, frame) == Parsed::whole;) hops[frame.key] = frame.hops;
  EXPECT_EQ(hops, (std::map<std::uint64_t, int>{{1, 63}, {2, 0}}));
}

TEST(Overlay, EachOfManyNotesIsTakenOnce) {
  World world;
  ASSERT_NO_FATAL_FAILURE(world.link());
  constexpr int many = 20'000;
  for (int i = 0; i < 2 * many; ++i) {
    say(world.end(0), note(static_cast<std::uint64_t>(i % many + 1), 0));
    if (i % 50 == 0) world.turn();
  }
  world.turn();
  EXPECT_EQ(world.events.notes, many);
}

// Returns the log of a rank to which a stranger sends `text`.
std::string log_about(const std::string& text, security::SharedCredentials credentials) {
  const test::ScratchFolder folder;
  const std::string file = folder.path() + "/log";
  EXPECT_TRUE(log::configure(log::Level::debug, file).ok());
  World world(std::move(credentials));
  const int stranger = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const SocketAddress address = *tutti::parse_address("127.0.0.1", world.rank->port);
  EXPECT_EQ(connect(stranger, address.raw(), address.length), 0);
  EXPECT_EQ(send(stranger, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  std::string logged;
  for (int i = 0; i < 10'000 && logged.find("a connection") == logged.npos; ++i) {
    world.turn();
    std::ifstream input(file);
    logged.assign(std::istreambuf_iterator<char>(input), {});
    usleep(1000);
  }
  close(stranger);
  EXPECT_TRUE(log::configure(log::Level::warn).ok());
  return logged;
}

TEST(Overlay, WhoIsTurnedAwayIsInTheLog) {
  EXPECT_THAT(log_about("GET / HTTP/1.1\r\n\r\n", nullptr),
              HasSubstr("control: dropped an unidentified connection"));
  security::Settings settings;
  settings.token = Secret("a token");
  const auto credentials = security::Credentials::create(settings).take();
  EXPECT_THAT(log_about("GET / HTTP/1.1\r\n\r\n", credentials), HasSubstr("control: refused a connection"));
  const std::string without = log_about(encode(Hello{.from = 1}), credentials);
  EXPECT_THAT(without, HasSubstr("warn"));
  EXPECT_THAT(without, HasSubstr("control: refused a connection: "));
  EXPECT_THAT(without, HasSubstr("has no token"));
}

// A distant rank needs several round trips to prove its identity. Many nearer strangers can connect in that
// time, but must not displace the rank.
TEST(Overlay, ACrowdFromOneAddressDisplacesItselfOnly) {
  World world;
  const SocketAddress address = *tutti::parse_address("127.0.0.1", world.rank->port);
  const auto stranger_from = [&](const char* from) {
    Descriptor stranger(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const SocketAddress own = *tutti::parse_address(from, 0);
    EXPECT_EQ(bind(stranger.get(), own.raw(), own.length), 0);
    EXPECT_EQ(connect(stranger.get(), address.raw(), address.length), 0);
    return stranger;
  };
  const auto is_closed = [](const Descriptor& stranger) {
    char none;
    return recv(stranger.get(), &none, 1, MSG_DONTWAIT) == 0;
  };
  const Descriptor far = stranger_from("127.0.0.9");
  world.turn();
  std::vector<Descriptor> crowd;
  for (int i = 0; i < 200; ++i) crowd.push_back(stranger_from("127.0.0.1"));
  for (int i = 0; i < 10'000 && !is_closed(crowd[100]); ++i) world.turn();
  EXPECT_TRUE(is_closed(crowd[100]));
  EXPECT_FALSE(is_closed(far));
}

// A rank has sent a part of its hello when many strangers connect from the rank's host. They must not
// displace the rank.
TEST(Overlay, ASilentCrowdDisplacesNoRankOfItsHostThatHasBegun) {
  World world;
  const SocketAddress address = *tutti::parse_address("127.0.0.1", world.rank->port);
  const auto stranger = [&] {
    Descriptor made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(made.get(), address.raw(), address.length), 0);
    return made;
  };
  const auto is_closed = [](const Descriptor& end) {
    char none;
    return recv(end.get(), &none, 1, MSG_DONTWAIT) == 0;
  };
  const Descriptor slow = stranger();
  const std::string hello = encode(Hello{.from = 1});
  ASSERT_EQ(send(slow.get(), hello.data(), 8, MSG_NOSIGNAL), 8);
  for (int i = 0; i < 10; ++i) world.turn();
  std::vector<Descriptor> crowd;
  for (int i = 0; i < 200; ++i) crowd.push_back(stranger());
  for (int i = 0; i < 10'000 && !is_closed(crowd[100]); ++i) world.turn();
  EXPECT_TRUE(is_closed(crowd[100]));
  EXPECT_FALSE(is_closed(slow));
}

class Losses final : public ControlEvents {
 public:
  void on_lost(int rank, const Status& why) override { lost[rank] = why; }
  void on_left(int rank) override { ADD_FAILURE() << rank; }
  void on_fenced(const Status& why) override { ADD_FAILURE() << why.to_string(); }
  void on_note(const ControlNote&) override {}

  std::map<int, Status> lost;
};

// Runs rank 0 of two ranks, with rank 1 at `host`. Returns the text in which rank 0 reports the
// loss of rank 1, and the time until that report by the clock of rank 0. If `silent` is true, no
// attempt to connect is answered. If `error` is not 0, each of these attempts fails with that error
// instead.
std::pair<std::string, milliseconds> loss_of(const std::string& host, bool silent, int error = 0) {
  OverlayOptions options;
  for (int rank = 0; rank < 2; ++rank) {
    PeerInfo peer;
    peer.rank = rank;
    peer.addresses[address_name] = format(Address{host, 4711, 1, {}});
    options.peers.push_back(peer);
  }
  std::vector<Attempt> attempts;
  if (silent) options.connect = connect_to_test(attempts, error);
  Losses events;
  LoneOverlay played(std::move(options), events);
  const auto begin = played.now;
  while (events.lost.empty() && played.now < begin + std::chrono::minutes(1)) played.turn(milliseconds(10));
  return {events.lost[1].message(), std::chrono::duration_cast<milliseconds>(played.now - begin)};
}

TEST(Overlay, WhereTheNetworkDoesNotLeadIsSaidSoon) {
  const auto [text, after] = loss_of("255.255.255.255", false);  // TCP cannot connect there
  EXPECT_THAT(text, HasSubstr("no control connection with it could be made at 255.255.255.255:4711: "));
  EXPECT_THAT(text, HasSubstr("unreachable"));
  EXPECT_THAT(text, HasSubstr("TUTTI_PORT_RANGE"));
  EXPECT_LT(after, milliseconds(5000));
}

// After an error of the network, rank 0 soon gives up. After a shortage on its own host, it keeps
// trying until its time limit.
TEST(Overlay, AShortageOfThisHostIsNotTakenForTheOthersRejection) {
  const std::chrono::nanoseconds patience = OverlayOptions{}.limit;
  for (const int error : {EHOSTUNREACH, ENETUNREACH, EACCES})
    EXPECT_LT(loss_of("10.0.0.1", true, error).second, patience) << error_text(error);
  for (const int error : {EADDRNOTAVAIL, ENOBUFS, ENOMEM, EAGAIN})
    EXPECT_GE(loss_of("10.0.0.1", true, error).second, patience) << error_text(error);
}

TEST(Overlay, WhereNothingAnswersIsNamed) {
  EXPECT_THAT(loss_of("10.0.0.1", true).first, HasSubstr("made at 10.0.0.1:4711: nothing answered"));
}

// Rank 0 reports a lack of descriptors at once, since waiting does not help. The message must not blame a
// firewall.
TEST(Overlay, ALackOfDescriptorsIsSaidAtOnce) {
  OverlayOptions options;
  for (int rank = 0; rank < 2; ++rank) {
    PeerInfo peer;
    peer.rank = rank;
    peer.addresses[address_name] = format(Address{"10.0.0.1", 4711, 1, {}});
    options.peers.push_back(peer);
  }
  options.connect = [](const SocketAddress&, security::Guard) {
    errno = EMFILE;
    return std::unique_ptr<Stream>();
  };
  NoEvents events;
  LoneOverlay played(std::move(options), events);
  EXPECT_EQ(played.overlay->unlinked().code(), Code::timeout);
  played.turn();
  const Status why = played.overlay->unlinked();
  EXPECT_EQ(why.code(), Code::resource_exhausted);
  EXPECT_THAT(why.message(), HasSubstr("file descriptors that it may have"));
  EXPECT_EQ(why.message().find("firewall"), std::string::npos) << why.message();
}

}  // namespace
}  // namespace tutti::liveness
