#include "tests/verbs/lone_rank.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "core/security/guard.h"
#include "core/security/messages.h"
#include "transport/meeting/socket.h"
#include "transport/tcp/factory.h"
#include "transport/verbs/factory.h"
#include "transport/verbs/gid.h"

namespace tutti::verbs {

RawPeer::RawPeer(const Address& to)
    : socket_(socket(to.endpoints.front().family(), SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const timeval patience{60, 0};
  EXPECT_EQ(setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
  const SocketAddress& endpoint = to.endpoints.front();
  EXPECT_EQ(connect(socket_.get(), endpoint.raw(), endpoint.length), 0);
}

void RawPeer::say(const Note& note) {
  EXPECT_EQ(send(socket_.get(), &note, sizeof note, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof note));
}

Note RawPeer::hear() {
  Note note;
  EXPECT_EQ(recv(socket_.get(), &note, sizeof note, MSG_WAITALL), static_cast<ssize_t>(sizeof note));
  return note;
}

Note RawPeer::ask(const Note& note) {
  say(note);
  return hear();
}

bool RawPeer::is_closed() {
  std::byte first{};
  return recv(socket_.get(), &first, 1, 0) == 0;
}

Door::Door() : socket_(meeting::listen_on("test", "127.0.0.1", 0, 0).take()) {}

SocketAddress Door::address() const { return *meeting::local_address(socket_.get()); }

bool Door::is_knocked() const {
  pollfd waits{socket_.get(), POLLIN, 0};
  return poll(&waits, 1, 0) == 1;
}

Descriptor Door::let_in() const {
  pollfd waits{socket_.get(), POLLIN, 0};
  if (poll(&waits, 1, 60'000) != 1) return {};
  Descriptor guest(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  Note hello;
  const bool complete =
      recv(guest.get(), &hello, sizeof hello, MSG_WAITALL) == static_cast<ssize_t>(sizeof hello);
  return complete ? std::move(guest) : Descriptor();
}

bool Door::turn_away() const { return static_cast<bool>(let_in()); }

void Door::deny() const {
  const Descriptor guest = let_in();
  std::array<unsigned char, security::Guard::message_bytes> notice{};
  std::ranges::copy(security::notice_magic, notice.begin());
  EXPECT_EQ(send(guest.get(), notice.data(), notice.size(), MSG_NOSIGNAL), std::ssize(notice));
}

void Door::refuse(const Descriptor& guest, const Status& why) {
  Note note;
  note.why.set(why);
  EXPECT_EQ(send(guest.get(), &note, sizeof note, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof note));
}

LoneRank::LoneRank(const meeting::Endpoints& endpoints, bool has_tcp)
    : library_(
          {provider::ethernet_device("fake0", "10.0.0.1"), provider::ethernet_device("fake1", "10.0.0.2")}) {
  std::vector<PeerInfo> peers;
  for (int rank = 0; rank < 2; ++rank) {
    Options options;
    options.functions = &provider::Provider::functions();
    options.settings.devices = "=fake" + std::to_string(rank);
    transports_.push_back(create(options).take());
    Address address = *parse_address(transports_.back()->address());
    if (rank == 1 && !endpoints.empty()) address.endpoints = endpoints;
    peers.push_back({rank, "host", 1000 + rank, "boot", 1, {{"verbs", format(address)}}});
    addresses_.push_back(std::move(address));
    if (!has_tcp) continue;
    transports_of_tcp_.push_back(tcp::create({}).take());
    peers.back().addresses["tcp"] = transports_of_tcp_.back()->address();
  }
  MeshOptions mesh;
  mesh.peers = peers;
  mesh.transports.push_back(std::move(transports_.front()));
  if (has_tcp) mesh.transports.push_back(std::move(transports_of_tcp_.front()));
  node_ = std::make_unique<conformance::Node>(std::move(mesh), true);
}

Note LoneRank::hello() const {
  Note hello;
  hello.kind = NoteKind::connect;
  hello.from = 1;
  hello.from_nonce = addresses_[1].nonce;
  hello.to_nonce = addresses_[0].nonce;
  hello.end = {.queue_pair = 1, .slots = 32, .slot_bytes = 1024, .mtu = IBV_MTU_1024};
  hello.end.kind = static_cast<std::uint8_t>(GidKind::v2_ipv4);
  return hello;
}

}  // namespace tutti::verbs
