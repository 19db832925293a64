#include "tools/run/meeting_place.h"

#include <chrono>

#include <gtest/gtest.h>

#include <tutti/address.h>
#include <tutti/credentials.h>

#include "rendezvous/store/tcp/store_client.h"

namespace tutti::tools {
namespace {

using namespace std::chrono_literals;

// Connects to the store with the token, or without one if `token` is empty.
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

}  // namespace
}  // namespace tutti::tools
