// Tests a peer that connects again before its first attempt has ended.
#include <array>
#include <memory>
#include <span>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "core/descriptor.h"
#include "tests/conformance/channel_world.h"
#include "tests/verbs/provider/provider.h"
#include "transport/verbs/address.h"
#include "transport/verbs/factory.h"
#include "transport/verbs/gid.h"
#include "transport/verbs/note.h"

namespace tutti::verbs {
namespace {

using conformance::Node;

// A `RawPeer` is a connection that the test makes to the transport of a rank.
class RawPeer {
 public:
  explicit RawPeer(const Address& to)
      : socket_(socket(to.endpoints.front().family(), SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval patience{60, 0};
    EXPECT_EQ(setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    const SocketAddress& endpoint = to.endpoints.front();
    EXPECT_EQ(connect(socket_.get(), endpoint.raw(), endpoint.length), 0);
  }
  // Sends a note, and returns the answer.
  Note ask(const Note& note) {
    EXPECT_EQ(send(socket_.get(), &note, sizeof note, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof note));
    Note answer;
    EXPECT_EQ(recv(socket_.get(), &answer, sizeof answer, MSG_WAITALL), static_cast<ssize_t>(sizeof answer));
    return answer;
  }

 private:
  Descriptor socket_;
};

// The test plays rank 1, which connects a second time. Rank 0 has not noticed that the first attempt is over.
TEST(VerbsRetry, APeerThatConnectsAgainIsWelcome) {
  const provider::Provider library({provider::ethernet_device("fake0", "10.0.0.1")});
  Options options;
  options.functions = &provider::Provider::functions();
  std::vector<std::unique_ptr<tutti::Transport>> transports;
  std::vector<PeerInfo> peers;
  std::vector<Address> addresses;
  for (int rank = 0; rank < 2; ++rank) {
    transports.push_back(create(options).take());
    peers.push_back({rank, "host", 1000 + rank, "boot", 1, {{"verbs", transports.back()->address()}}});
    addresses.push_back(*published_by(peers.back()));
  }
  MeshOptions mesh;
  mesh.peers = peers;
  mesh.transports.push_back(std::move(transports.front()));
  Node node(std::move(mesh), true);

  Note hello;
  hello.kind = NoteKind::connect;
  hello.from = 1;
  hello.from_nonce = addresses[1].nonce;
  hello.to_nonce = addresses[0].nonce;
  hello.end = {.queue_pair = 1, .slots = 32, .slot_bytes = 1024, .mtu = IBV_MTU_1024};
  hello.end.kind = static_cast<std::uint8_t>(GidKind::v2_ipv4);
  RawPeer first(addresses[0]), second(addresses[0]);
  EXPECT_EQ(first.ask(hello).kind, NoteKind::welcome);
  const Note answer = second.ask(hello);
  EXPECT_EQ(answer.kind, NoteKind::welcome) << answer.why.failure(0).to_string();
}

}  // namespace
}  // namespace tutti::verbs
