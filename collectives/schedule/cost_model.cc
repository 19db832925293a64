#include "collectives/schedule/cost_model.h"

#include <array>
#include <cstdio>

namespace tutti {

bool is_possible(const CostModel& model) {
  constexpr double most_seconds = 1e3;
  constexpr double most_congestion = 1e3;
  constexpr int most_cores = 1 << 16;
  constexpr int most_hosts = 1 << 20;
  const auto within = [](double value, double most) { return value >= 0 && value <= most; };  // false for NaN
  for (const LinkCost& link : {model.near, model.far}) {
    for (const double seconds :
         {link.alpha, link.gap, link.beta, link.busy, link.busy_byte, link.handshake}) {
      if (!within(seconds, most_seconds)) return false;
    }
  }
  return within(model.gamma, most_seconds) && within(model.signal, most_seconds) &&
         within(model.congestion, most_congestion) && model.cores >= 0 && model.cores <= most_cores &&
         model.hosts_per_machine >= 1 && model.hosts_per_machine <= most_hosts;
}

CostModel shipped_model(std::string_view near_transport) {
  CostModel model;
  // These costs are for loopback TCP between two cores that run nothing else.
  model.near = {
      .alpha = 9e-6, .gap = 6e-6, .beta = 0.25e-9, .busy = 7e-6, .busy_byte = 0.2e-9, .handshake = 11e-6};
  if (near_transport == "shm") {
    model.near = {.alpha = 0.5e-6,
                  .gap = 0.15e-6,
                  .beta = 0.12e-9,
                  .busy = 0.15e-6,
                  .busy_byte = 0.1e-9,
                  .handshake = 0.5e-6};
  }
  // These costs are for a data-centre network of about 25 Gbit/s.
  model.far = {
      .alpha = 25e-6, .gap = 5e-6, .beta = 0.4e-9, .busy = 4e-6, .busy_byte = 0.2e-9, .handshake = 25e-6};
  model.gamma = 0.03e-9;
  return model;
}

std::string describe(const LinkCost& link) {
  std::array<char, 200> text{};
  std::snprintf(text.data(), text.size(),
                "alpha %.2f us, gap %.2f us, beta %.3f ns/B, core %.2f us and %.3f ns/B, handshake %.2f us",
                link.alpha * 1e6, link.gap * 1e6, link.beta * 1e9, link.busy * 1e6, link.busy_byte * 1e9,
                link.handshake * 1e6);
  return text.data();
}

std::string describe_cores(const CostModel& model) {
  if (model.cores == 0) return "a core for every rank";
  const std::string sharers =
      model.hosts_per_machine == 1 ? "a host" : "for " + std::to_string(model.hosts_per_machine) + " hosts";
  return std::to_string(model.cores) + " cores " + sharers;
}

std::string describe(const CostModel& model) {
  std::array<char, 100> combining{};
  std::snprintf(combining.data(), combining.size(), "combining %.3f ns/B", model.gamma * 1e9);
  return "within a host: " + describe(model.near) + "; between hosts: " + describe(model.far) + "; " +
         combining.data() + ", " + describe_cores(model);
}

}  // namespace tutti
