#include "tools/machine.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <tutti/config.h>
#include <tutti/init.h>

#include "collectives/group/world.h"
#include "tools/job_machine.h"

namespace tutti::tools {
namespace {

// `MeetingPlace` is a temporary folder in which two ranks meet.
class MeetingPlace {
 public:
  MeetingPlace() {
    std::string form = std::filesystem::temp_directory_path() / "tutti-explain-XXXXXX";
    if (::mkdtemp(form.data()) == nullptr) throw std::runtime_error("cannot make a folder like " + form);
    path_ = form;
  }
  ~MeetingPlace() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  MeetingPlace(const MeetingPlace&) = delete;
  MeetingPlace& operator=(const MeetingPlace&) = delete;
  std::string url() const { return "file://" + path_.string() + "/meeting"; }

 private:
  std::filesystem::path path_;
};

// Lets two ranks in this process meet and measure the cost of messages between them.
CostModel measure_once(const std::string& transport) {
  const MeetingPlace place;
  std::array<std::exception_ptr, 2> failures;
  CostModel costs;
  const auto run = [&](int rank) {
    try {
      const Communicator communicator =
          init({.url = place.url(), .rank = rank, .world_size = 2, .transports = {transport}});
      if (rank == 0) costs = world_of(communicator).selector.model();
    } catch (...) {
      failures[static_cast<std::size_t>(rank)] = std::current_exception();
    }
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return costs;
}

// Returns the best of several measurements. If a measurement is implausible, `measure_once` returns
// the costs that tutti ships with. This function returns those costs only if no measurement was
// plausible.
CostModel measure_here(const std::string& transport) {
  const LinkCost shipped = shipped_model(transport).near;
  CostModel best = measure_once(transport);
  for (int i = 1; i < measurements; ++i) {
    const CostModel next = measure_once(transport);
    if (next.near == shipped) continue;
    if (best.near == shipped || is_faster(next.near, best.near)) best = next;
  }
  return best;
}

// Returns the transport that ranks of one host would use.
std::string preferred(const Config& config) {
  for (const std::string& transport : config.transports) {
    if (transport == "shm" || transport == "tcp") return transport;
  }
  return "shm";
}

Machine machine_of_job() {
  JobMachine job = measure_job();
  Machine machine{.model = job.model, .rank = job.rank};
  machine.transport = preferred(Config::from_environment().take());
  machine.source = "measured by the ranks of this job";
  machine.topology = std::make_shared<const Topology>(std::move(job.topology));
  return machine;
}

}  // namespace

void declare(CLI::App& app, MachineOptions& options) {
  app.add_flag("--job", options.job,
               "Be a rank of the job that `tutti run` has started: use its hosts, and measure its costs");
  app.add_option("--hosts", options.hosts,
                 "The number of hosts; their numbers of ranks differ by one at most")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--transport", options.transport,
                 "The transport between the ranks of a host; by default, the one that ranks choose")
      ->check(CLI::IsMember({"tcp", "shm"}));
  app.add_flag("--measure", options.measure, "Measure the costs of messages on this machine, and use these");
  app.add_option("--cores", options.cores, "The cores of a host; 0: one for every rank")
      ->check(CLI::Range(0, 1 << 20));
  app.add_option("--alpha", options.alpha_us, "Microseconds for a message within a host");
  app.add_option("--beta", options.beta_ns, "Nanoseconds for a byte within a host");
  app.add_option("--gamma", options.gamma_ns, "Nanoseconds for a byte combined");
  app.add_option("--far-alpha", options.far_alpha_us, "Microseconds for a message between hosts");
  app.add_option("--far-beta", options.far_beta_ns, "Nanoseconds for a byte between hosts");
}

Machine machine_of(const MachineOptions& options) {
  Machine machine;
  if (options.job) return machine_of_job();
  const Config config = Config::from_environment().take();
  machine.transport = options.transport.empty() ? preferred(config) : options.transport;
  const std::string& transport = machine.transport;
  if (options.measure) {
    machine.model = measure_here(transport);
    const bool believed = !(machine.model.near == shipped_model(transport).near);
    machine.source = believed
                         ? "measured here over " + transport
                         : "shipped, for " + transport +
                               ": the measured costs are impossible, because other processes use the cores";
  } else {
    machine.model = shipped_model(transport);
    machine.model.eager = config.eager_limit;
    machine.source = "shipped, for " + transport;
  }
  if (options.transport.empty()) machine.source += ", which ranks of a host use by default";
  if (options.cores >= 0) machine.model.cores = options.cores;
  // Some other costs of a link become fixed fractions of alpha or beta if the user gives alpha or
  // beta.
  const auto set = [&](LinkCost& link, const std::optional<double>& alpha,
                       const std::optional<double>& beta) {
    if (alpha) link.alpha = *alpha * 1e-6;
    if (alpha) link.gap = link.alpha / 4;
    if (alpha) link.busy = link.handshake = link.alpha / 8;
    if (beta) link.beta = *beta * 1e-9;
    if (beta) link.busy_byte = link.beta / 4;
    if (alpha || beta) machine.source += ", changed by options";
  };
  set(machine.model.near, options.alpha_us, options.beta_ns);
  set(machine.model.far, options.far_alpha_us, options.far_beta_ns);
  if (options.gamma_ns) machine.model.gamma = *options.gamma_ns * 1e-9;
  return machine;
}

std::unique_ptr<const Topology> topology_of(int ranks, int hosts) {
  if (hosts <= 1) return nullptr;
  std::vector<int> host_of;
  for (int rank = 0; rank < ranks; ++rank)
    host_of.push_back(static_cast<int>(static_cast<long>(rank) * hosts / ranks));
  return std::make_unique<const Topology>(host_of);
}

}  // namespace tutti::tools
