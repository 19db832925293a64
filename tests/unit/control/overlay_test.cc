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
#include "transport/meeting/socket.h"

namespace {

// `NameService` is a name service that answers nothing until `answers` is true.
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

// These replace the C library's functions.
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

// `World` has rank 0 of three ranks. Rank 0 connects to the other two: rank 1 has a literal address, rank 2 a
// host name.
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
    options.connect = [this](const SocketAddress& address, security::Guard guard) {
      int both[2];
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, both), 0);
      connected.push_back(address.text());
      ends.emplace_back(both[1]);
      return std::make_unique<Stream>(Descriptor(both[0]), std::move(guard));
    };
    auto listener = meeting::listen_on("control", "127.0.0.1", 0, 0).take();
    port = port_of(listener);
    overlay = std::make_unique<Overlay>(std::move(options), std::move(listener), events);
    overlay->start(now);
  }
  void turn(milliseconds passed = milliseconds(0)) {
    now += passed;
    std::vector<pollfd> waits;
    overlay->collect(waits);
    poll(waits.data(), waits.size(), 0);
    overlay->run(waits, now);
  }
  std::string hear(std::size_t end) {
    std::string bytes(4096, '\0');
    const ssize_t got = recv(ends[end].get(), bytes.data(), bytes.size(), 0);
    bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return bytes;
  }
  void say(std::size_t end, const std::string& bytes) {
    EXPECT_EQ(send(ends[end].get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // Links rank 0 with both other ranks.
  void link() {
    {
      const std::lock_guard lock(name_service().mutex);
      name_service().answers = true;
    }
    name_service().changed.notify_all();
    for (int i = 0; i < 10'000 && ends.size() < 2; ++i) {
      turn(milliseconds(1));
      usleep(1000);
    }
    ASSERT_EQ(ends.size(), 2u);
    for (const std::size_t end : {0u, 1u}) say(end, encode(Answer{}));
    for (int i = 0; i < 3; ++i) turn();
    for (const std::size_t end : {0u, 1u}) EXPECT_EQ(hear(end).size(), hello_bytes);
  }

  NoEvents events;
  Clock::time_point now = Clock::now();
  std::vector<std::string> connected;
  std::vector<Descriptor> ends;
  std::uint16_t port = 0;
  std::unique_ptr<Overlay> overlay;
};

TEST(Overlay, ASlowNameServiceDelaysNoHeartbeat) {
  World world;
  world.turn();
  ASSERT_EQ(world.connected, std::vector<std::string>{"10.0.0.1:4711"});
  world.turn();
  EXPECT_EQ(world.hear(0).size(), hello_bytes);
  world.say(0, encode(Answer{}));
  world.turn();
  // Rank 0 asks the name service for rank 2's address once. In some seconds of its own clock, it looks for
  // the answer dozens of times. It must not wait for the answer.
  const auto begin = Clock::now();
  int heartbeats = 0;
  for (int i = 0; i < 150; ++i) {
    world.turn(milliseconds(50));
    std::string heard = world.hear(0);
    std::string_view rest = heard;
    for (Frame frame; take_frame(rest, frame) == Parsed::whole;) ++heartbeats;
    world.say(0, encode(Frame{}));
  }
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(20));
  EXPECT_GE(heartbeats, 2);
  EXPECT_EQ(world.connected.size(), 1u);
  {
    NameService& service = name_service();
    std::unique_lock lock(service.mutex);
    service.changed.wait(lock, [&] { return service.asked > 0; });
    EXPECT_EQ(service.asked, 1);
    service.answers = true;
    service.changed.notify_all();
  }
  for (int i = 0; i < 10'000 && world.connected.size() == 1; ++i) {
    usleep(1000);
    world.turn();
    world.turn(milliseconds(10 * (i % 10 == 0)));
  }
  ASSERT_EQ(world.connected.size(), 2u);
  EXPECT_EQ(world.connected[1], "10.0.0.7:4711");
}

std::string note(std::uint64_t key, std::uint8_t hops) {
  return encode(Frame{.kind = FrameKind::publish, .hops = hops, .origin = 1, .key = key});
}

// A rank that has forgotten a note's key passes the note on once more. Without a limit, a member that
// publishes enough notes at once would make them circulate for ever.
TEST(Overlay, ANoteIsPassedOnSoManyTimesOnly) {
  World world;
  ASSERT_NO_FATAL_FAILURE(world.link());
  world.say(0, note(1, 255) + note(2, 1) + note(3, 0));
  world.turn();
  EXPECT_EQ(world.events.notes, 3);
  const std::string heard = world.hear(1);
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
    world.say(0, note(static_cast<std::uint64_t>(i % many + 1), 0));
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
  const SocketAddress address = *tutti::parse_address("127.0.0.1", world.port);
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

// A distant rank needs several round trips to say who it is. In that time, many strangers that are nearer can
// connect.
TEST(Overlay, ACrowdFromOneAddressDisplacesItselfOnly) {
  World world;
  const SocketAddress address = *tutti::parse_address("127.0.0.1", world.port);
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

// A rank has sent a part of its hello. Then many strangers connect from the same host.
TEST(Overlay, ASilentCrowdDisplacesNoRankOfItsHostThatHasBegun) {
  World world;
  const SocketAddress address = *tutti::parse_address("127.0.0.1", world.port);
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

// Runs rank 0 of two ranks, with rank 1 at `host`. Returns the text in which rank 0 reports the loss of rank
// 1, and how long that took by the clock of rank 0. If `silent`, no attempt to connect is answered. If
// `error` is given too, each attempt fails with that error instead.
std::pair<std::string, milliseconds> loss_of(const std::string& host, bool silent, int error = 0) {
  OverlayOptions options;
  for (int rank = 0; rank < 2; ++rank) {
    PeerInfo peer;
    peer.rank = rank;
    peer.addresses[address_name] = format(Address{host, 4711, 1, {}});
    options.peers.push_back(peer);
  }
  std::vector<Descriptor> ends;
  const auto unanswered = [&](const SocketAddress&, security::Guard guard) {
    int both[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, both), 0);
    ends.emplace_back(both[1]);
    return std::make_unique<Stream>(Descriptor(both[0]), std::move(guard), error);
  };
  if (silent) options.connect = unanswered;
  Losses events;
  Overlay overlay(std::move(options), meeting::listen_on("control", "127.0.0.1", 0, 0).take(), events);
  const auto begin = Clock::now();
  auto now = begin;
  overlay.start(now);
  for (; events.lost.empty() && now < begin + std::chrono::minutes(1); now += milliseconds(10)) {
    std::vector<pollfd> waits;
    overlay.collect(waits);
    poll(waits.data(), waits.size(), 0);
    overlay.run(waits, now);
  }
  return {events.lost[1].message(), std::chrono::duration_cast<milliseconds>(now - begin)};
}

TEST(Overlay, WhereTheNetworkDoesNotLeadIsSaidSoon) {
  const auto [text, after] = loss_of("255.255.255.255", false);  // TCP cannot connect there
  EXPECT_THAT(text, HasSubstr("no control connection with it could be made at 255.255.255.255:4711: "));
  EXPECT_THAT(text, HasSubstr("unreachable"));
  EXPECT_THAT(text, HasSubstr("TUTTI_PORT_RANGE"));
  EXPECT_LT(after, milliseconds(5000));
}

// Rank 0 soon gives up after an error of the network. After a shortage on its own host, it keeps trying until
// its time limit.
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
  Overlay overlay(std::move(options), meeting::listen_on("control", "127.0.0.1", 0, 0).take(), events);
  Clock::time_point now = Clock::now();
  overlay.start(now);
  EXPECT_EQ(overlay.unlinked().code(), Code::timeout);
  std::vector<pollfd> waits;
  overlay.collect(waits);
  overlay.run(waits, now);
  const Status why = overlay.unlinked();
  EXPECT_EQ(why.code(), Code::resource_exhausted);
  EXPECT_THAT(why.message(), HasSubstr("file descriptors that it may have"));
  EXPECT_EQ(why.message().find("firewall"), std::string::npos) << why.message();
}

}  // namespace
}  // namespace tutti::liveness
