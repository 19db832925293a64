#include "tools/run/meeting_place.h"

#include <chrono>

#include <gtest/gtest.h>

#include <tutti/address.h>
#include <tutti/credentials.h>

#include "rendezvous/store/tcp/store_client.h"

namespace tutti::tools {
namespace {

using namespace std::chrono_literals;

// Connects to the store with the token, or without a token if `token` is empty.
Status connect(const MeetingPlace& place, const std::string& token) {
  security::Settings settings;
  settings.token = Secret(token);
  tcp::StoreClientOptions options;
  options.credentials = security::Credentials::create(settings).take();
  const SocketAddress address = *parse_address(place.address, place.store->port());
  return tcp::try_connect_store(address, Deadline::after(10s), options).status();
}

TEST(MeetingPlace, ServesAStoreThatDemandsTheToken) {
  const auto place = open_meeting_place({{"TUTTI_TOKEN", "0123456789abcdef"}}, "127.0.0.1");
  ASSERT_TRUE(place.ok()) << place.status().to_string();
  EXPECT_EQ(place->address, "127.0.0.1");
  EXPECT_GT(place->master_port, 0);
  EXPECT_NE(place->master_port, place->store->port());
  EXPECT_TRUE(connect(*place, "0123456789abcdef").ok());
  EXPECT_EQ(connect(*place, "").code(), Code::unauthenticated);
}

TEST(MeetingPlace, NamesAWrongVariable) {
  const auto place = open_meeting_place({{"TUTTI_TLS", "perhaps"}}, "127.0.0.1");
  ASSERT_FALSE(place.ok());
  EXPECT_NE(place.status().message().find("TUTTI_TLS"), std::string::npos);
}

TEST(MeetingPlace, ObservesThePortRangeUnlessTheAddressIsLoopback) {
  const auto open = open_meeting_place({{"TUTTI_PORT_RANGE", "20000-20999"}}, "0.0.0.0");
  ASSERT_TRUE(open.ok()) << open.status().to_string();
  EXPECT_GE(open->store->port(), 20000);
  EXPECT_LE(open->store->port(), 20999);
  // The only port of this range is in use.
  const Environment full = {{"TUTTI_PORT_RANGE", std::to_string(open->store->port())}};
  EXPECT_EQ(open_meeting_place(full, "0.0.0.0").status().code(), Code::resource_exhausted);
  EXPECT_TRUE(open_meeting_place(full, loopback).ok());
}

SocketAddress at(const std::string& literal) { return *parse_address(literal, 0); }

// This host has two interfaces, each in a different network. A filter may choose one of them.
Result<MeetingAddress> choose(const std::vector<std::string>& peers, const std::string& filter = {}) {
  const std::vector<Interface> all = {{"eth0", false, {at("10.1.0.7")}}, {"eth1", false, {at("10.2.0.7")}}};
  std::vector<SocketAddress> addresses;
  for (const std::string& peer : peers) addresses.push_back(at(peer));
  return address_among(all, {filter, "TUTTI_SOCKET_IFNAME"}, addresses,
                       [](const SocketAddress& peer) -> std::optional<SocketAddress> {
                         if (peer.host().starts_with("10.1.")) return at("10.1.0.7");
                         if (peer.host().starts_with("10.2.")) return at("10.2.0.7");
                         return std::nullopt;
                       });
}

TEST(AddressAmong, WithoutPeersIsLoopback) { EXPECT_EQ(choose({})->address, loopback); }

TEST(AddressAmong, IsTheOneFromWhichThePeersAreReached) {
  EXPECT_EQ(choose({"10.2.0.8", "10.2.0.9"})->address, "10.2.0.7");
  EXPECT_EQ(choose({"10.2.0.8", "10.2.0.9"})->doubt, "");
  EXPECT_EQ(choose({"10.3.0.8", "10.2.0.9"})->address, "10.2.0.7");
}

TEST(AddressAmong, DoubtsIfPeersAreReachedFromDifferentAddresses) {
  const auto chosen = choose({"10.2.0.8", "10.1.0.9"});
  EXPECT_EQ(chosen->address, "10.2.0.7");
  EXPECT_NE(chosen->doubt.find("from 10.2.0.7 and from 10.1.0.7"), std::string::npos);
}

TEST(AddressAmong, ObeysTheFilter) {
  EXPECT_EQ(choose({"10.2.0.8", "10.1.0.9"}, "=eth0")->address, "10.1.0.7");
  EXPECT_EQ(choose({"10.2.0.8", "10.1.0.9"}, "=eth0")->doubt, "");
  EXPECT_EQ(choose({"10.2.0.8"}, "eth")->address, "10.2.0.7");
  EXPECT_EQ(choose({"10.2.0.8"}, "=eth0")->address, "10.1.0.7");
  EXPECT_EQ(choose({"10.2.0.8"}, "ib").status().code(), Code::invalid_argument);
}

TEST(AddressAmong, FailsWithoutARoute) { EXPECT_EQ(choose({"10.3.0.8"}).status().code(), Code::unreachable); }

}  // namespace
}  // namespace tutti::tools
