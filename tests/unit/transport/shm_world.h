#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "tests/conformance/channel_world.h"
#include "transport/shm/address.h"
#include "transport/shm/factory.h"
#include "transport/shm/local_socket.h"

namespace tutti::shm {

using conformance::Node;

inline PeerInfo peer_info(int rank, const std::string& address) {
  return PeerInfo{rank, "host" + std::to_string(rank), 1000 + rank, "boot", 1, {{"shm", address}}};
}

inline std::unique_ptr<Node> make_node(int rank, std::vector<PeerInfo> peers,
                                       std::unique_ptr<Transport> transport) {
  MeshOptions options;
  options.rank = rank;
  options.peers = std::move(peers);
  options.transports.push_back(std::move(transport));
  return std::make_unique<Node>(std::move(options), true);
}

// A `World` has several ranks in this process, each with a shm transport.
struct World {
  std::vector<PeerInfo> peers;
  std::vector<std::unique_ptr<Node>> nodes;

  // `extra` is the address of an additional rank, which the test itself plays.
  explicit World(int size, const std::string& extra = {}, const Options& options = {})
      : World(std::vector(static_cast<std::size_t>(size), options), extra) {}
  // Takes one entry of `options` for each rank.
  explicit World(const std::vector<Options>& options, const std::string& extra = {}) {
    const int size = static_cast<int>(options.size());
    std::vector<std::unique_ptr<Transport>> transports;
    for (int rank = 0; rank < size; ++rank) {
      transports.push_back(create(options[static_cast<std::size_t>(rank)]).take());
      peers.push_back(peer_info(rank, transports.back()->address()));
    }
    if (!extra.empty()) peers.push_back(peer_info(size, extra));
    for (int rank = 0; rank < size; ++rank) {
      nodes.push_back(make_node(rank, peers, std::move(transports[static_cast<std::size_t>(rank)])));
    }
  }
  ~World() {
    std::vector<std::thread> threads;
    for (auto& node : nodes) threads.emplace_back([&node] { node->shut_down(); });
    for (auto& thread : threads) thread.join();
  }
  Node& operator[](int rank) { return *nodes[static_cast<std::size_t>(rank)]; }
  int size() const { return static_cast<int>(nodes.size()); }
};

// A `Wish` is a request for a segment, with its result. A test can wait for the result. A wish must
// be destroyed before its node.
struct Wish : ShareRequest, SharedSegmentEvents {
  Node& node;
  std::atomic<std::uint32_t> over{0};
  bool posted = false;
  int completions = 0;
  Status status;
  std::unique_ptr<SharedSegment> segment;
  std::vector<std::pair<int, Status>> lost;

  Wish(Node& at, std::vector<int> who, std::uint64_t name, std::uint64_t size,
       Deadline until = conformance::patience())
      : node(at) {
    key = name;
    members = std::move(who);
    bytes = size;
    deadline = until;
    events = this;
    done = [](ShareRequest& request, Result<std::unique_ptr<SharedSegment>> result) {
      auto& self = static_cast<Wish&>(request);
      ++self.completions;
      self.status = result.status();
      if (result.ok()) self.segment = *std::move(result);
      self.over.store(1);
      self.node.driver.notify(self.over);
    };
  }
  ~Wish() override {
    if (posted && over.load() == 0) node.shut_down();  // no callbacks come after that
    let_go();
  }
  void post() {
    posted = true;
    node.drive([this] { node.mesh.share(*this); });
  }
  const Status& wait() {
    EXPECT_TRUE(node.driver.wait(over, conformance::patience())) << "timed out";
    return status;
  }
  void let_go() {
    if (segment != nullptr) node.drive([this] { segment.reset(); });
  }
  void on_member_lost(int member, const Status& why) override { lost.emplace_back(member, why); }
  bool until_lost() {
    return node.until([this] { return !lost.empty(); });
  }
};

inline std::vector<int> ranks(int size) {
  std::vector<int> all;
  for (int rank = 0; rank < size; ++rank) all.push_back(rank);
  return all;
}

// These constants are the key and size of the shared segment, and the proof of a channel.
inline constexpr std::uint64_t key = 7;
inline constexpr std::uint64_t bytes = 10'000;
inline constexpr std::uint64_t proof = 4711;

inline int make_memfd(std::size_t size, bool sealed = true, unsigned flags = 0) {
  const int memfd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);
  if (memfd < 0) return memfd;
  EXPECT_EQ(ftruncate(memfd, static_cast<off_t>(size)), 0);
  if (sealed) fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  return memfd;
}

// Returns the first note that rank `from` sends to rank `to`. It contains the nonces of both ranks. All ranks
// know all nonces.
inline Note first_note(const World& world, NoteKind kind, int from, int to) {
  const auto nonce = [&](int rank) {
    return parse_address(world.peers[static_cast<std::size_t>(rank)].addresses.at("shm"))->nonce;
  };
  Note note;
  note.kind = kind;
  note.from = static_cast<std::uint32_t>(from);
  note.to = static_cast<std::uint32_t>(to);
  note.from_nonce = nonce(from);
  note.to_nonce = nonce(to);
  return note;
}

inline Note share_note(const World& world, int from, int members) {
  Note note = first_note(world, NoteKind::share, from, 0);
  note.key = key;
  note.bytes = bytes;
  note.member = static_cast<std::uint32_t>(from);
  note.members = static_cast<std::uint32_t>(members);
  return note;
}

inline Note connect_note(const World& world, int from, int to, std::uint64_t ring) {
  Note note = first_note(world, NoteKind::connect, from, to);
  note.bytes = ring;
  note.proof = proof;
  return note;
}

// A `RawBell` is a bell of the test. The test can send the bell's descriptor to ranks.
class RawBell {
 public:
  RawBell() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends), 0);
    rope_ = Descriptor(ends[0]);
    ear_ = Descriptor(ends[1]);
  }
  int get() const { return rope_.get(); }
  bool has_rung() const {
    pollfd readable{ear_.get(), POLLIN, 0};
    return ::poll(&readable, 1, 30'000) == 1;
  }
  // Returns true if the bell has not rung. Otherwise takes one ring and returns false.
  bool is_silent() const {
    char ignored;
    return recv(ear_.get(), &ignored, 1, MSG_DONTWAIT) < 0;
  }

 private:
  Descriptor rope_, ear_;
};

// A `RawPeer` is the test's end of a local socket. It can send any notes.
class RawPeer {
 public:
  explicit RawPeer(Descriptor socket) : socket_(std::move(socket)) {}
  // Connects to the address of a transport.
  explicit RawPeer(const std::string& address) {
    int error = 0;
    socket_ = connect_local(parse_address(address)->name, error);
    EXPECT_EQ(error, 0);
  }

  void send(const Note& note, const std::vector<int>& descriptors = {}) {
    EXPECT_EQ(send_note(socket_.get(), note, descriptors), 0);
  }
  // Receives the next note. Returns zero, or the errno of receive_note.
  int receive(Note& note) {
    descriptors.clear();
    pollfd readable{socket_.get(), POLLIN, 0};
    if (::poll(&readable, 1, 30'000) <= 0) return ETIMEDOUT;
    return receive_note(socket_.get(), note, descriptors);
  }
  bool is_closed() {
    Note note;
    return receive(note) == EPIPE;
  }
  void close() { socket_.reset(); }
  int descriptor() const { return socket_.get(); }

  std::vector<Descriptor> descriptors;  // received with the last note

 private:
  Descriptor socket_;
};

}  // namespace tutti::shm
