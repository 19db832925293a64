// Fuzzes the answers of the probes of `tutti doctor`. Each line of the input is the answer of a
// host. The answer also describes the host's paths to the next host.
#include "tests/fuzz/input.h"
#include "tools/doctor/examined.h"
#include "tools/doctor/findings.h"
#include "tools/doctor/messages.h"
#include "tools/doctor/report.h"

namespace {

using namespace tutti;
using namespace tutti::tools::doctor;

constexpr std::size_t most_hosts = 8;

Examined read(fuzz::Input input) {
  Examined examined;
  std::vector<ProbeAnswer> answers;
  while (!input.empty() && answers.size() < most_hosts) {
    auto answer = parse_answer(input.line());
    if (answer.ok()) answers.push_back(std::move(answer).take());
  }
  for (std::size_t host = 0; host < answers.size(); ++host) {
    const ProbeAnswer& answer = answers[host];
    fuzz::require(to_line(parse_answer(to_line(answer)).take()) == to_line(answer));
    ExaminedHost& one = examined.hosts.emplace_back();
    one.name = "host" + std::to_string(host);
    one.facts = answer.facts;
    one.problem = answer.problem;
    one.usage = usage_of(answer.facts, answer.routes.empty() ? "" : answer.routes.front());
    one.clock = ClockOffset{.ahead = static_cast<double>(answer.clock_ns) * 1e-9, .uncertainty = 0};
    const std::size_t to = (host + 1) % answers.size();
    if (to != host) examined.connections.push_back({.from = host, .to = to, .paths = answer.paths});
  }
  return examined;
}

void choose_targets(const Examined& examined) {
  std::vector<Resident> residents;
  for (const ExaminedHost& host : examined.hosts) residents.push_back({&*host.facts, &host.usage});
  for (const Connection& connection : examined.connections) {
    for (const Target& target : targets_of(residents, connection.from, connection.to)) {
      fuzz::require(target.host == connection.to && target.port != 0);
    }
  }
}

// The text may contain line feeds, but no other control characters.
void check_text(const std::string& text) {
  for (const char c : text) fuzz::require(c == '\n' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Examined examined = read(fuzz::Input(data, size));
  choose_targets(examined);
  check_text(tables(examined, false));
  check_text(verdict(find_all(examined)));
  return 0;
}
