#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "tools/doctor/examined.h"

namespace tutti::tools::doctor {

// These functions make healthy hosts. A test then adds a fault. Interface N of host H has the
// address 10.N.0.(H+1).
inline std::string address_of(std::size_t host, int card = 0) {
  return "10." + std::to_string(card) + ".0." + std::to_string(host + 1);
}

inline HostFacts healthy_facts(std::size_t host, int cards = 1) {
  HostFacts facts;
  facts.version = "0.1.0";
  facts.build = "3fa92c11d0e4";
  facts.kernel = "6.1.0";
  facts.processor = "a processor";
  facts.cores = 4;
  facts.memlock = unlimited;
  facts.open_files = 1024;
  facts.shm_bytes = facts.shm_free = std::uint64_t{1} << 30;
  facts.interfaces.push_back(
      {.name = "lo", .loopback = true, .mtu = 65536, .addresses = {{"127.0.0.1", 8, 0}}});
  for (int card = 0; card < cards; ++card) {
    facts.interfaces.push_back({.name = "eth" + std::to_string(card),
                                .mtu = 1500,
                                .speed = 10'000,
                                .addresses = {{address_of(host, card), 24, 4000}}});
  }
  return facts;
}

inline Path healthy_path(std::size_t from, std::size_t to, int card = 0) {
  return {.from = address_of(from, card),
          .to = address_of(to, card),
          .port = 4000,
          .outcome = Outcome::reached,
          .round_trip_us = 50,
          .full_packet = 1500,
          .largest_packet = 1500,
          .bandwidth = 1e9};
}

// Returns hosts that all use their first interface (card), and that reach each other over all cards.
inline Examined healthy(std::size_t hosts, int cards = 1) {
  static const std::vector<std::string> names = {"alpha", "beta", "gamma", "delta"};
  Examined examined;
  for (std::size_t host = 0; host < hosts; ++host) {
    ExaminedHost& one = examined.hosts.emplace_back();
    one.name = host < names.size() ? names[host] : "host" + std::to_string(host);
    one.facts = healthy_facts(host, cards);
    one.usage.addresses = {address_of(host)};
    one.clock = ClockOffset{.ahead = 0.0001, .uncertainty = 0.001};
    for (std::size_t to = 0; to < hosts; ++to) {
      if (to == host) continue;
      Connection& connection = examined.connections.emplace_back();
      connection.from = host;
      connection.to = to;
      for (int card = 0; card < cards; ++card) connection.paths.push_back(healthy_path(host, to, card));
    }
  }
  return examined;
}

// Returns the path from the host `from` to the card of the host `to`.
inline Path& path_of(Examined& examined, std::size_t from, std::size_t to, std::size_t card = 0) {
  for (Connection& connection : examined.connections) {
    if (connection.from == from && connection.to == to) return connection.paths.at(card);
  }
  throw std::out_of_range("no such connection");
}

inline void cut(Path& path, Outcome outcome = Outcome::timed_out) {
  path.outcome = outcome;
  path.error = outcome == Outcome::refused ? "Connection refused" : "Connection timed out";
}

}  // namespace tutti::tools::doctor
