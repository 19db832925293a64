#pragma once

#include <cstdint>
#include <string>

namespace tutti::tools::doctor {

// A `Target` is an address at which the probe of a host listens.
struct Target {
  std::uint32_t host = 0;  // the number of the host
  std::string address = {};
  std::uint16_t port = 0;
};

enum class Outcome {
  reached,
  refused,
  timed_out,
  unreachable,  // the sender has no route, or a router or firewall has said that there is none
  wrong_host,   // another host of the run answered, since it has the same address
  failed,       // `error` says why
};

// A `Path` is the result of a probe's test of one address of another host.
struct Path {
  std::string from = {};  // the address from which packets leave; empty if that is not known
  std::string to = {};
  std::uint16_t port = 0;
  Outcome outcome = Outcome::failed;
  std::string error = {};

  // The following members have a meaning only if the host was reached.
  double round_trip_us = 0;
  int full_packet = 0;     // the size in bytes of the largest packet that the kernel sends
  int largest_packet = 0;  // the size of the largest packet that arrives
  double bandwidth = 0;    // in bytes per second; 0 if it could not be measured
};

}  // namespace tutti::tools::doctor
