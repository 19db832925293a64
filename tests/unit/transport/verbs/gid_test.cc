// Tests which addresses (GIDs) of a port are chosen. The tables are like those of real clusters.
#include "transport/verbs/gid.h"

#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <gtest/gtest.h>

namespace tutti::verbs {
namespace {

struct Row {
  const char* address;  // null: the index cannot be read
  std::uint32_t type = IBV_GID_TYPE_ROCE_V2;
};
std::vector<Row> table;

int query(ibv_context*, std::uint32_t, std::uint32_t index, ibv_gid_entry* entry, std::uint32_t,
          std::size_t) {
  if (index >= table.size()) return EINVAL;
  if (table[index].address == nullptr) return ENODATA;
  entry->gid_type = table[index].type;
  return inet_pton(AF_INET6, table[index].address, entry->gid.raw) == 1 ? 0 : EINVAL;
}

// Returns the kinds and indexes that are chosen, such as "RoCEv2, IPv4 at 3; ".
std::string chosen(std::vector<Row> rows, std::optional<int> wanted = {}) {
  table = std::move(rows);
  Functions functions{};
  functions.query_gid_ex = query;
  ibv_context context{};
  ibv_port_attr attributes{};
  attributes.gid_tbl_len = static_cast<int>(table.size());
  std::string text;
  for (const Gid& gid : usable_gids(functions, context, 1, attributes, wanted))
    text += std::string(to_string(gid.kind)) + " at " + std::to_string(gid.index) + "; ";
  return text;
}

const Row link_local_v1{"fe80::1", IBV_GID_TYPE_ROCE_V1};
const Row link_local{"fe80::1"};
const Row ipv4_v1{"::ffff:10.7.0.1", IBV_GID_TYPE_ROCE_V1};
const Row ipv4{"::ffff:10.7.0.1"};
const Row ipv6{"2001:db8::1"};
const Row empty{"::"};
const Row unreadable{nullptr};

TEST(VerbsGid, BestKindFirst) {
  EXPECT_EQ(chosen({link_local_v1, link_local, ipv4_v1, ipv4, ipv6}),
            "RoCEv2, IPv4 at 3; RoCEv2, IPv6 at 4; RoCEv2, link-local IPv6 at 1; RoCEv1 at 0; ");
  EXPECT_EQ(chosen({link_local, ipv6}), "RoCEv2, IPv6 at 1; RoCEv2, link-local IPv6 at 0; ");
  EXPECT_EQ(chosen({link_local_v1, ipv4_v1}), "RoCEv1 at 0; ");
  EXPECT_EQ(chosen({{"fe80::2:c903:1:2345", IBV_GID_TYPE_IB}}), "InfiniBand at 0; ");
}

// A container with its own network sees only the indexes that belong to this network.
TEST(VerbsGid, EmptyAndUnreadableIndexesAreSkipped) {
  EXPECT_EQ(chosen({unreadable, unreadable, empty, ipv4, unreadable, ipv4}), "RoCEv2, IPv4 at 3; ");
  EXPECT_EQ(chosen({unreadable, empty}), "");
  EXPECT_EQ(chosen({}), "");
}

TEST(VerbsGid, TheWantedIndexOnly) {
  EXPECT_EQ(chosen({link_local_v1, ipv4}, 0), "RoCEv1 at 0; ");
  EXPECT_EQ(chosen({link_local_v1, ipv4}, 1), "RoCEv2, IPv4 at 1; ");
  EXPECT_EQ(chosen({link_local_v1, ipv4}, 7), "");
}

TEST(VerbsGid, Text) {
  Gid gid;
  ASSERT_EQ(inet_pton(AF_INET6, "::ffff:10.7.0.1", gid.value.raw), 1);
  EXPECT_EQ(gid.text(), "10.7.0.1");
  ASSERT_EQ(inet_pton(AF_INET6, "fe80::1", gid.value.raw), 1);
  EXPECT_EQ(gid.text(), "fe80::1");
}

}  // namespace
}  // namespace tutti::verbs
