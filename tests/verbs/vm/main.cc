// vm [--devices N] [--mtu N] [--module NAME]... COMMAND...
//
// Runs a command in a virtual machine with Soft-RoCE devices, in the same folder and on the same files.
// Output appears as it is written, and the status is the command's. A status of 125 means that the virtual
// machine has not run the command. 77 means that the host cannot run a virtual machine. In both cases, stderr
// says why.
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "tests/verbs/vm/virtual_machine.h"

namespace tutti::test {
namespace {

constexpr int skipped = 77;
constexpr int failed = 125;

// A `Shown` prints an output as it grows.
class Shown {
 public:
  explicit Shown(std::ostream& to) : to_(to) {}
  void update(const std::string& output) {
    if (output.size() <= printed_) return;
    to_ << output.substr(printed_) << std::flush;
    printed_ = output.size();
  }

 private:
  std::ostream& to_;
  std::size_t printed_ = 0;
};

int run(const std::vector<std::string>& command, const VirtualMachineOptions& options) {
  if (const std::string problem = VirtualMachine::problem(); !problem.empty()) {
    std::cerr << problem << "\n";
    return skipped;
  }
  VirtualMachine machine(command, options);
  Shown out(std::cout);
  Shown err(std::cerr);
  std::optional<int> status;
  while (!status) {
    status = machine.wait(std::chrono::milliseconds(200));
    out.update(machine.out());
    err.update(machine.err());
  }
  if (*status == failed) std::cerr << machine.console();
  return *status;
}

int run(int argc, char** argv) {
  VirtualMachineOptions options;
  int next = 1;
  for (; next + 1 < argc; next += 2) {
    const std::string option = argv[next];
    if (option == "--devices") {
      options.devices = std::atoi(argv[next + 1]);
    } else if (option == "--mtu") {
      options.mtu = std::atoi(argv[next + 1]);
    } else if (option == "--module") {
      options.modules.emplace_back(argv[next + 1]);
    } else {
      break;
    }
  }
  if (next >= argc) {
    std::cerr << "usage: vm [--devices N] [--mtu N] [--module NAME]... COMMAND...\n";
    return 2;
  }
  return run(std::vector<std::string>(argv + next, argv + argc), options);
}

}  // namespace
}  // namespace tutti::test

int main(int argc, char** argv) {
  try {
    return tutti::test::run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "vm: " << error.what() << "\n";
    return tutti::test::failed;
  }
}
