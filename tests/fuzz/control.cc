// Fuzzes the control plane of one rank (liveness::Overlay). Peers and strangers send any bytes at
// any time, such as incomplete greetings and frames with false contents. They may also send
// nothing, or close the connection. This file holds the other ends of all connections, and drives
// the clock of the control plane.
#include <array>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <tutti/log.h>

#include "control/liveness/overlay.h"
#include "tests/fuzz/input.h"

namespace tutti::fuzz {
namespace {

using namespace liveness;

constexpr int most_ranks = 9;
constexpr std::size_t most_ends = 24;

// `Events` checks the events that the control plane reports.
class Events final : public ControlEvents {
 public:
  Events(int self, int size) : self_(self), size_(size) {}
  void on_lost(int rank, const Status& why) override {
    require(is_other(rank) && !why.ok() && !fenced_ && gone_.insert(rank).second);
  }
  void on_left(int rank) override { require(is_other(rank) && !fenced_ && gone_.insert(rank).second); }
  void on_fenced(const Status& why) override {
    require(!why.ok() && !fenced_);
    fenced_ = true;
  }
  void on_note(const ControlNote& note) override {
    require(note.origin >= 0 && note.origin < size_ && note.body.size() <= max_control_body);
  }

 private:
  bool is_other(int rank) const { return rank >= 0 && rank < size_ && rank != self_; }
  const int self_, size_;
  std::set<int> gone_;
  bool fenced_ = false;
};

// `End` is the fuzzer's end of a connection.
struct End {
  Descriptor socket;
  bool dialled = false;  // the fuzzer has made the connection
  bool greeted = false;  // the overlay has sent its part of the greeting
  std::string heard = {};
};

std::vector<PeerInfo> peers(int size) {
  std::vector<PeerInfo> all(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].rank = static_cast<int>(i);
    // The last peer of the largest world has published no address.
    if (i == most_ranks - 1) continue;
    all[i].addresses[address_name] = format(Address{"127.0.0.1", 1, 100 + i, {}});
  }
  return all;
}

class World {
 public:
  World(int rank, int size) : rank_(rank), size_(size), events_(rank, size) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    listener_length_ = sizeof name;
    Descriptor listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    // The listener is a Unix socket, because many runs would use up the TCP ports. The kernel
    // chooses its abstract name.
    require(bind(listener.get(), reinterpret_cast<sockaddr*>(&name), sizeof name.sun_family) == 0 &&
            listen(listener.get(), 64) == 0);
    getsockname(listener.get(), reinterpret_cast<sockaddr*>(&listener_name_), &listener_length_);
    OverlayOptions options;
    options.rank = rank;
    options.peers = peers(size);
    options.nonce = 100 + static_cast<std::uint64_t>(rank);
    options.connect = [this](const SocketAddress&, security::Guard guard) {
      return connected(std::move(guard));
    };
    overlay_ = std::make_unique<Overlay>(std::move(options), std::move(listener), events_);
    overlay_->start(now_);
  }

  void turn(std::chrono::nanoseconds passed = {}) {
    now_ += passed;
    std::vector<pollfd> waits;
    overlay_->collect(waits);
    if (poll(waits.data(), waits.size(), 0) < 0) return;
    overlay_->run(waits, now_);
    static_cast<void>(overlay_->next());
    static_cast<void>(overlay_->unlinked());
    for (End& end : ends_) listen_to(end);
  }
  Overlay& overlay() { return *overlay_; }
  Clock::time_point now() const { return now_; }
  bool over() const { return overlay_->over(now_); }
  int size() const { return size_; }

  void dial() {
    Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (connect(socket.get(), reinterpret_cast<sockaddr*>(&listener_name_), listener_length_) == 0)
      keep({std::move(socket), true});
  }
  void say(std::size_t which, std::string_view bytes) {
    if (!ends_.empty())
      static_cast<void>(send(at(which).socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
  }
  void hang_up(std::size_t which) {
    if (!ends_.empty()) ends_.erase(ends_.begin() + static_cast<std::ptrdiff_t>(which % ends_.size()));
  }
  // Returns the hello that rank `from` of this world would send.
  Hello hello(int from, std::uint64_t job) const {
    Hello made;
    made.from = static_cast<std::uint32_t>(from);
    made.to = static_cast<std::uint32_t>(rank_);
    made.job = job;
    made.from_nonce = 100 + made.from;
    made.to_nonce = 100 + made.to;
    return made;
  }
  std::uint64_t job() const { return job_; }
  std::size_t ends() const { return ends_.size(); }

 private:
  End& at(std::size_t which) { return ends_[which % ends_.size()]; }
  void keep(End end) {
    if (ends_.size() == most_ends) ends_.erase(ends_.begin());
    ends_.push_back(std::move(end));
  }
  std::unique_ptr<Stream> connected(security::Guard guard) {
    int both[2];
    require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, both) == 0);
    keep({Descriptor(both[1])});
    return std::make_unique<Stream>(Descriptor(both[0]), std::move(guard));
  }
  // Checks that the overlay sends only valid messages, even after invalid input.
  void listen_to(End& end) {
    std::array<char, 16 * 1024> buffer;
    for (ssize_t got; (got = recv(end.socket.get(), buffer.data(), buffer.size(), 0)) > 0;)
      end.heard.append(buffer.data(), static_cast<std::size_t>(got));
    if (!end.greeted && !end.dialled && end.heard.size() >= hello_bytes) {
      const auto said = decode_hello(end.heard);
      require(said && static_cast<int>(said->from) == rank_);
      job_ = said->job;
      end.heard.erase(0, hello_bytes);
      end.greeted = true;
    }
    // The overlay refuses a peer whose greeting asks for a guard. The refusal is then a message of
    // the guard's protocol, not an `Answer`.
    const bool by_guard = end.heard.starts_with('\xd7');
    if (!end.greeted && end.dialled && !by_guard && end.heard.size() >= answer_bytes) {
      require(decode_answer(end.heard).has_value());
      end.heard.erase(0, answer_bytes);
      end.greeted = true;
    }
    if (!end.greeted) return;
    std::string_view rest = end.heard;
    Frame frame;
    Parsed parsed;
    while ((parsed = take_frame(rest, frame)) == Parsed::whole) {
    }
    require(parsed != Parsed::wrong);
    end.heard = std::string(rest);
  }

  const int rank_, size_;
  Events events_;
  Clock::time_point now_ = Clock::now();
  sockaddr_un listener_name_{};
  socklen_t listener_length_ = 0;
  std::uint64_t job_ = 0;
  std::vector<End> ends_;
  std::unique_ptr<Overlay> overlay_;  // destroyed first
};

// Returns the job number of a world of `size` ranks. Every connecting rank must send this number.
std::uint64_t job_of(int size) {
  static std::map<int, std::uint64_t> known;
  if (const auto found = known.find(size); found != known.end()) return found->second;
  World world(0, size);
  world.turn();
  world.turn();
  require(world.job() != 0);
  return known[size] = world.job();
}

// Connects and greets all neighbours, so that every link is up.
void link_all(World& world) {
  world.turn();
  for (std::size_t i = 0, outgoing = world.ends(); i < outgoing; ++i) world.say(i, encode(Answer{}));
  for (int rank = 0; rank < world.size(); ++rank) {
    world.dial();
    world.say(world.ends() - 1, encode(world.hello(rank, job_of(world.size()))));
    world.turn();
  }
}

Frame made_frame(Input& input) {
  Frame frame;
  frame.kind = static_cast<FrameKind>(1 + input.byte() % 5);
  frame.hops = input.byte();
  frame.code = static_cast<Code>(input.byte() % 12);
  frame.generation = input.byte() % 3;
  const std::uint8_t whom = input.byte();
  frame.origin = whom % 16;
  frame.target = whom / 16;
  frame.topic = input.byte() % 4;
  frame.key = input.byte();
  frame.body = input.text(input.byte() % 32);
  return frame;
}

void do_locally(World& world, Input& input) {
  const int rank = input.byte() % world.size();
  switch (input.byte() % 8) {
    case 0:
    case 1:
      return world.overlay().publish(input.byte() % 4, input.byte() % 8, std::string(input.text(8)));
    case 2:
    case 3:
      return world.overlay().send(rank, input.byte() % 4, std::string(input.text(8)));
    case 4:
    case 5:
      return world.overlay().give_up(rank, Status(Code::peer_lost, "given up", rank));
    case 6:
      return world.overlay().set_generation(input.byte());
    default:
      return world.overlay().leave(world.now());
  }
}

void step(World& world, Input& input) {
  const std::uint8_t what = input.byte();
  const std::size_t which = what / 8;
  switch (what % 8) {
    case 0:
      world.dial();
      return world.say(world.ends() - 1, encode(world.hello(input.byte() % 16, job_of(world.size()))));
    case 1:
      return world.dial();
    case 2:
      return world.say(which, encode(Answer{static_cast<Verdict>(1 + input.byte() % 5), input.byte()}));
    case 3:
      return world.say(which, encode(made_frame(input)));
    case 4:
      return world.say(which, input.text(input.byte()));
    case 5:
      return world.hang_up(which);
    case 6:
      return world.turn(std::chrono::milliseconds(20) * input.byte());
    default:
      return do_locally(world, input);
  }
}

void plane(Input input) {
  const int size = 2 + input.byte() % (most_ranks - 1);
  const std::uint8_t who = input.byte();
  World world(who % size, size);
  if (who >= 128) link_all(world);
  for (int i = 0; i < 200 && !input.empty() && !world.over(); ++i) {
    step(world, input);
    world.turn();
  }
}

void address(Input& input) {
  const auto parsed = liveness::parse_address(input.rest());
  if (!parsed) return;
  const auto again = liveness::parse_address(format(*parsed));
  require(again && again->host == parsed->host && again->port == parsed->port &&
          again->nonce == parsed->nonce && again->process == parsed->process);
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tutti::fuzz;
  static const tutti::Status quiet = tutti::log::configure(tutti::log::Level::error, "");
  require(quiet.ok());
  if (size > 0 && data[0] == 'a') {
    Input input(data + 1, size - 1);
    address(input);
  } else {
    plane(Input(data, size));
  }
  return 0;
}
