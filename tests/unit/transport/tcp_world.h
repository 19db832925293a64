#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <arpa/inet.h>
#include <dirent.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/conformance/channel_world.h"
#include "transport/tcp/address.h"
#include "transport/tcp/factory.h"
#include "transport/tcp/handshake.h"

namespace tutti::tcp {

using conformance::Node;
using conformance::Recv;
using conformance::Send;

// Makes a rank with the given tcp transport. The test itself may play the other ranks in `peers`.
inline std::unique_ptr<Node> make_node(int rank, std::vector<PeerInfo> peers,
                                       std::unique_ptr<Transport> transport,
                                       std::chrono::nanoseconds connect_timeout = std::chrono::seconds(30)) {
  MeshOptions options;
  options.rank = rank;
  options.peers = std::move(peers);
  options.transports.push_back(std::move(transport));
  options.connect_timeout = connect_timeout;
  return std::make_unique<Node>(std::move(options), true);
}

inline PeerInfo peer_info(int rank, const std::string& address) {
  return PeerInfo{rank, "host" + std::to_string(rank), 1000 + rank, "boot", 1, {{"tcp", address}}};
}

// A `Pair` has several ranks in this process (two by default), each with a tcp transport.
struct Pair {
  std::vector<std::string> addresses;
  std::vector<std::unique_ptr<Node>> nodes;

  explicit Pair(const Options& options = {}, int size = 2)
      : Pair(std::vector(static_cast<std::size_t>(size), options)) {}
  // Takes one entry of `options` for each rank.
  explicit Pair(const std::vector<Options>& options) {
    const int size = static_cast<int>(options.size());
    std::vector<std::unique_ptr<Transport>> transports;
    std::vector<PeerInfo> peers;
    for (int rank = 0; rank < size; ++rank) {
      transports.push_back(create(options[static_cast<std::size_t>(rank)]).take());
      addresses.push_back(transports.back()->address());
      peers.push_back(peer_info(rank, addresses.back()));
    }
    for (int rank = 0; rank < size; ++rank) {
      nodes.push_back(make_node(rank, peers, std::move(transports[static_cast<std::size_t>(rank)])));
    }
  }
  ~Pair() {
    std::vector<std::thread> threads;
    for (auto& node : nodes) threads.emplace_back([&node] { node->shut_down(); });
    for (auto& thread : threads) thread.join();
  }
  Node& operator[](std::size_t rank) { return *nodes[rank]; }
};

// Exchanges one message in each direction.
inline void expect_exchange(Node& a, int rank_a, Node& b, int rank_b, std::uint64_t sequence,
                            std::size_t bytes = 100) {
  Send to_b(bytes, conformance::collective(sequence), 1), to_a(bytes, conformance::collective(sequence), 2);
  Recv from_a(bytes, rank_a, conformance::collective(sequence)),
      from_b(bytes, rank_b, conformance::collective(sequence));
  a.post(from_b);
  b.post(from_a);
  a.post(rank_b, to_b);
  b.post(rank_a, to_a);
  EXPECT_TRUE(to_b.wait().ok()) << to_b.status.to_string();
  EXPECT_TRUE(to_a.wait().ok()) << to_a.status.to_string();
  EXPECT_TRUE(from_a.wait().ok() && from_a.holds(1)) << from_a.status.to_string();
  EXPECT_TRUE(from_b.wait().ok() && from_b.holds(2)) << from_b.status.to_string();
}

// A `RawSocket` is a plain TCP socket. A test uses it to imitate a foreign program or a misbehaving
// peer.
class RawSocket {
 public:
  explicit RawSocket(const std::string& address, const char* from = "127.0.0.1")
      : descriptor_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const SocketAddress own = *tutti::parse_address(from, 0);
    static_cast<void>(bind(descriptor_, own.raw(), own.length));
    const SocketAddress endpoint = parse_address(address)->endpoints.front();
    connected_ = connect(descriptor_, endpoint.raw(), endpoint.length) == 0;
  }
  explicit RawSocket(int descriptor) : descriptor_(descriptor), connected_(descriptor >= 0) {}
  ~RawSocket() { close(descriptor_); }
  RawSocket(const RawSocket&) = delete;
  RawSocket& operator=(const RawSocket&) = delete;

  bool connected() const { return connected_; }
  int descriptor() const { return descriptor_; }
  template <class Bytes>
  void send(const Bytes& bytes) {
    static_cast<void>(::send(descriptor_, std::data(bytes), std::size(bytes), MSG_NOSIGNAL));
  }
  // Waits for `bytes` bytes, or for the end of the stream. Returns the bytes that arrived.
  std::vector<std::byte> receive(std::size_t bytes) {
    std::vector<std::byte> all;
    while (all.size() < bytes) {
      pollfd readable{descriptor_, POLLIN, 0};
      if (poll(&readable, 1, 30'000) <= 0) break;
      std::array<std::byte, 4096> some;
      const ssize_t got = recv(descriptor_, some.data(), std::min(some.size(), bytes - all.size()), 0);
      if (got <= 0) {
        closed_ = true;
        break;
      }
      all.insert(all.end(), some.begin(), some.begin() + got);
    }
    return all;
  }
  // Returns whether the other side closes the connection without sending any bytes.
  bool is_closed_silently() { return receive(1).empty() && closed_; }
  std::optional<Verdict> verdict() {
    const auto bytes = receive(answer_bytes);
    if (bytes.size() != answer_bytes) return std::nullopt;
    return decode_answer(std::span(bytes).first<answer_bytes>());
  }

 private:
  int descriptor_;
  bool connected_ = false;
  bool closed_ = false;
};

// `OpenSockets` counts this process's listening sockets and its connected sockets.
struct OpenSockets {
  int listening = 0;
  int connected = 0;

  static OpenSockets now() {
    return {static_cast<int>(descriptors(false).size()), static_cast<int>(descriptors(true).size())};
  }
  static std::vector<int> descriptors(bool connected) {
    std::vector<int> found;
    DIR* const folder = opendir("/proc/self/fd");
    while (const dirent* entry = readdir(folder)) {
      const int descriptor = std::atoi(entry->d_name);
      int listens = 0;
      socklen_t length = sizeof listens;
      if (getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0) continue;
      sockaddr_storage peer;
      socklen_t peer_length = sizeof peer;
      const bool has_peer = getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &peer_length) == 0;
      if (connected ? has_peer : listens != 0) found.push_back(descriptor);
    }
    closedir(folder);
    return found;
  }
};

// Returns the hello that the process of rank `from` would send to rank `to`.
inline Hello proper_hello(const Pair& world, int from, int to) {
  Hello hello;
  hello.version = handshake_version;
  hello.from = static_cast<std::uint32_t>(from);
  hello.to = static_cast<std::uint32_t>(to);
  hello.from_nonce = parse_address(world.addresses[static_cast<std::size_t>(from)])->nonce;
  hello.to_nonce = parse_address(world.addresses[static_cast<std::size_t>(to)])->nonce;
  return hello;
}

}  // namespace tutti::tcp
