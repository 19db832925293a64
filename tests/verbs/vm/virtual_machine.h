#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/process.h"
#include "tests/support/scratch_folder.h"

namespace tutti::test {

struct VirtualMachineOptions {
  int devices = 2;  // Soft-RoCE devices: none, rxe0, or rxe0 and rxe1
  int mtu = 4200;   // of the cable between the devices; RoCE's path MTU is 4096 for 4200, and 1024 for 1500
  std::vector<std::string> modules = {};  // further modules of the kernel, for example "sch_netem"
  Process::Environment environment = {};  // variables of the command
  std::string folder = {};                // the folder to run in; if empty, the test's own folder
};

// A `VirtualMachine` runs one command on a kernel of its own, which has Soft-RoCE devices, so that RDMA can
// be tested without hardware. QEMU emulates the processors, so the virtual machine needs no special rights.
// The command sees the files of the host under the same paths. All files that the command writes are lost
// with the machine, except those in `shared`. The destructor ends the machine. The machine also ends if the
// test's process dies.
class VirtualMachine {
 public:
  // Returns why the host cannot run a virtual machine, or an empty text if it can. The first call in a build
  // folder fetches the kernel, which takes up to a minute.
  static std::string problem();

  // Throws std::runtime_error if the files of the virtual machine cannot be made.
  explicit VirtualMachine(const std::vector<std::string>& command, const VirtualMachineOptions& options = {});

  // Waits until the machine has ended, and returns the command's status, or 125 if the machine did not run
  // the command. Returns nothing if the machine still runs after `limit`.
  std::optional<int> wait(std::chrono::milliseconds limit);
  // Returns what the command has written to stdout so far.
  std::string out() const { return file("out"); }
  std::string err() const { return file("err"); }
  // Returns what the kernel and QEMU have written.
  std::string console() const;
  // Returns everything that a failed assertion should show.
  std::string report() const;
  // Returns the folder that the host and the machine share, under the same path.
  const std::string& shared() const { return folder_.path(); }
  pid_t qemu() const { return qemu_->pid(); }

 private:
  std::string file(const std::string& name) const;
  void write_job(const std::vector<std::string>& command, const VirtualMachineOptions& options) const;

  const ScratchFolder folder_;
  std::unique_ptr<Process> qemu_;
  std::optional<int> status_;
};

}  // namespace tutti::test
