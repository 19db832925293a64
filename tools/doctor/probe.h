#pragma once

#include <iosfwd>
#include <memory>
#include <string>

#include <tutti/config.h>
#include <tutti/status.h>

#include "tools/doctor/messages.h"
#include "tools/doctor/responder.h"

namespace tutti::tools::doctor {

// A `Probe` examines its host and the paths to other hosts. It serves a doctor that may run on
// another host.
class Probe {
 public:
  // Carries out the commands from `in` until the input ends. Each command is one line, and its
  // answer is written to `out`.
  void serve(std::istream& in, std::ostream& out);

 private:
  ProbeAnswer carry_out(const ProbeCommand& command);
  ProbeAnswer begin(const ProbeCommand& command);
  void listen(HostFacts& facts, const Config& config);

  std::string pass_;
  std::unique_ptr<Responder> responder_;
};

// Runs a probe on stdin and stdout. Returns the exit status.
int run_probe();

}  // namespace tutti::tools::doctor
