#include "rendezvous/launch/interfaces.h"

#include <gtest/gtest.h>

#include "rendezvous/meeting/session.h"

namespace tutti {
namespace {

SocketAddress at(const std::string& literal) { return *parse_address(literal, 0); }

Interface interface(const std::string& name, const std::vector<std::string>& addresses) {
  Interface made{name, name == "lo", {}};
  for (const std::string& address : addresses) made.addresses.push_back(at(address));
  return made;
}

const std::vector<Interface> host = {
    interface("lo", {"127.0.0.1", "::1"}),  interface("docker0", {"172.17.0.1"}),
    interface("virbr0", {"192.168.122.1"}), interface("eth0", {"10.1.0.7", "fd00::7"}),
    interface("eth1", {"10.2.0.7"}),        interface("ib0", {"10.3.0.7"}),
    interface("ib1", {"10.3.1.7"}),         interface("vethabc", {"169.254.9.1"}),
};

std::string names(const Result<std::vector<Interface>>& chosen) {
  if (!chosen.ok()) return chosen.status().to_string();
  std::string text;
  for (const Interface& one : *chosen) text += (text.empty() ? "" : " ") + one.name;
  return text;
}

std::string filtered(const std::string& filter) {
  return names(select_interfaces(host, {filter, "TUTTI_SOCKET_IFNAME"}, std::nullopt));
}

TEST(Interfaces, FilterByPrefix) {
  EXPECT_EQ(filtered("eth"), "eth0 eth1");
  EXPECT_EQ(filtered("ib"), "ib0 ib1");
  EXPECT_EQ(filtered("eth1, ib"), "eth1 ib0 ib1");
  EXPECT_EQ(filtered("lo"), "lo");
  EXPECT_EQ(filtered("docker"), "docker0");  // named explicitly
}

TEST(Interfaces, FilterExactAndExcluding) {
  EXPECT_EQ(filtered("=ib0,eth1"), "ib0 eth1");
  EXPECT_EQ(filtered("^docker,virbr,veth,ib"), "eth0 eth1");
  EXPECT_EQ(filtered("^=eth,ib0,docker0"), "virbr0 eth0 eth1 ib1 vethabc");
  EXPECT_EQ(filtered("^=lo,10.2.0.0/15,docker0"), "virbr0 eth0 vethabc");
  EXPECT_EQ(filtered("^eth0"), "docker0 virbr0 eth1 ib0 ib1 vethabc");
}

TEST(Interfaces, FilterByAddressBlock) {
  EXPECT_EQ(filtered("10.3.0.0/16"), "ib0 ib1");
  EXPECT_EQ(filtered("10.2.0.0/24,10.3.1.0/24"), "eth1 ib1");
  EXPECT_EQ(filtered("10.1.0.7/32"), "eth0");
  // An address of an interface is used only if it is in the block.
  const auto v6 = select_interfaces(host, {"fd00::/8", "V"}, std::nullopt).take();
  ASSERT_EQ(v6.size(), 1u);
  ASSERT_EQ(v6[0].addresses.size(), 1u);
  EXPECT_EQ(v6[0].addresses[0].host(), "fd00::7");
  EXPECT_EQ(filtered("0.0.0.0/0"), "lo docker0 virbr0 eth0 eth1 ib0 ib1 vethabc");
}

TEST(Interfaces, FilterErrorsNameTheVariableAndWhatThereIs) {
  for (const std::string bad : {"wlan", "=eth", "10.9.0.0/16"}) {
    const Status status = select_interfaces(host, {bad, "NCCL_SOCKET_IFNAME"}, std::nullopt).status();
    EXPECT_EQ(status.code(), Code::invalid_argument);
    EXPECT_NE(status.message().find("NCCL_SOCKET_IFNAME is '" + bad + "'"), std::string::npos)
        << status.to_string();
    EXPECT_NE(status.message().find("eth0 10.1.0.7"), std::string::npos) << status.to_string();
  }
  for (const std::string bad : {"10.0.0.0/33", "10.0.0/8", "eth/3", "10.0.0.0/x"}) {
    EXPECT_NE(filtered(bad).find("is not an address block"), std::string::npos) << bad;
  }
}

TEST(Interfaces, DefaultRoutesToTheStore) {
  EXPECT_EQ(names(select_interfaces(host, {}, at("10.2.0.7"))), "eth1");
  EXPECT_EQ(names(select_interfaces(host, {}, at("fd00::7"))), "eth0");
  EXPECT_EQ(names(select_interfaces(host, {}, at("127.0.0.1"))), "lo");
  EXPECT_EQ(names(select_interfaces(host, {}, at("127.0.1.1"))), "lo");
  EXPECT_EQ(names(select_interfaces(host, {}, at("172.17.0.1"))), "eth0");  // docker0 is never a default
  EXPECT_EQ(names(select_interfaces(host, {}, std::nullopt)), "eth0");
  const std::vector<Interface> lonely = {host[0], host[1]};
  EXPECT_EQ(names(select_interfaces(lonely, {}, std::nullopt)), "lo");
  EXPECT_EQ(select_interfaces({}, {}, std::nullopt).status().code(), Code::unsupported);
}

TEST(Interfaces, VariablesInOrder) {
  setenv("GLOO_SOCKET_IFNAME", "g", 1);
  unsetenv("NCCL_SOCKET_IFNAME");
  EXPECT_EQ(interface_filter("").variable, "GLOO_SOCKET_IFNAME");
  setenv("NCCL_SOCKET_IFNAME", "n", 1);
  EXPECT_EQ(interface_filter("").text, "n");
  EXPECT_EQ(interface_filter("t").variable, "TUTTI_SOCKET_IFNAME");
  unsetenv("NCCL_SOCKET_IFNAME");
  unsetenv("GLOO_SOCKET_IFNAME");
  EXPECT_EQ(interface_filter("").text, "");
}

TEST(Interfaces, OfThisHost) {
  const std::vector<Interface> here = list_interfaces().take();
  ASSERT_FALSE(here.empty());
  for (const Interface& one : here) {
    EXPECT_FALSE(one.addresses.empty());
    for (const SocketAddress& address : one.addresses)
      EXPECT_EQ(address.is_loopback(), one.loopback) << address.host();
  }
  EXPECT_TRUE(route_source(at("127.0.0.1"))->is_loopback());
}

TEST(Addresses, ParseAndPrint) {
  EXPECT_EQ(parse_address("10.0.0.1", 5)->text(), "10.0.0.1:5");
  EXPECT_EQ(parse_address("[::1]", 5)->text(), "[::1]:5");
  EXPECT_FALSE(parse_address("localhost", 5));
  EXPECT_FALSE(parse_address("10.0.0", 5));
  EXPECT_TRUE(at("127.0.1.1").is_loopback());
  EXPECT_TRUE(at("::ffff:127.0.0.1").is_loopback());
  EXPECT_FALSE(at("10.0.0.1").is_loopback());
  EXPECT_TRUE(names_loopback("localhost"));
  EXPECT_FALSE(names_loopback("host"));
  EXPECT_EQ(format_endpoint("fe80::1", 1), "[fe80::1]:1");
}

TEST(ListenAddresses, AsNarrowAsTheNameAllows) {
  using List = std::vector<std::string>;
  EXPECT_EQ(listen_addresses("127.0.0.1", {at("127.0.0.1")}, host), List{"127.0.0.1"});
  EXPECT_EQ(listen_addresses("::1", {at("::1")}, host), List{"::1"});
  EXPECT_EQ(listen_addresses("localhost", {at("::1"), at("127.0.0.1")}, host), List{"127.0.0.1"});
  EXPECT_EQ(listen_addresses("10.1.0.7", {at("10.1.0.7")}, host), List{"10.1.0.7"});
  EXPECT_EQ(listen_addresses("node7", {at("10.1.0.7")}, host), List{"10.1.0.7"});
  EXPECT_EQ(listen_addresses("debian", {at("127.0.1.1")}, host), List{""});
  EXPECT_EQ(listen_addresses("node7", {at("10.1.0.7"), at("fd00::7")}, host), List{""});
  EXPECT_EQ(listen_addresses("service", {at("10.96.0.1")}, host), List{""});
}

}  // namespace
}  // namespace tutti
