#include "tests/verbs/vm/virtual_machine.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <sys/utsname.h>

namespace tutti::test {
namespace {

using Words = std::vector<std::string>;

constexpr const char* kernel = KERNEL_FOLDER;  // the unpacked kernel stays in this folder of the build
constexpr int cannot = 77;                     // the status of unpack_kernel.sh where there is no kernel
constexpr int no_command = 125;                // the status of a machine that has not run its command

std::string tool(const std::string& name) {
  return std::string(TUTTI_SOURCE_DIR) + "/tests/verbs/vm/" + name;
}

std::string last_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

// Returns a word that the shell reads as `text`.
std::string quoted(const std::string& text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

std::string find_problem() {
  if (std::getenv("TEST_NO_VM") != nullptr) return "no virtual machine: --no-vm was given to ./dev test";
  utsname system{};
  uname(&system);
  if (std::string(system.machine) != "x86_64") {
    return std::string("no virtual machine: it needs an x86_64 machine, and this is ") + system.machine;
  }
  // `ip` runs inside the machine, but is a file of the host.
  for (const std::string program : {"qemu-system-x86_64", "busybox", "cpio", "dpkg-deb", "xz", "ip"}) {
    if (Process({"sh", "-c", "command -v " + program}).wait() != 0) {
      return "no virtual machine: there is no " + program;
    }
  }
  Process unpack({tool("unpack_kernel.sh"), kernel});
  const auto status = unpack.wait(std::chrono::minutes(15));
  if (status == cannot) return last_line(unpack.err());
  if (status != 0) throw std::runtime_error(unpack.report());
  return {};
}

void make_initrd(const std::string& file, const Words& more_modules) {
  // crc32_generic comes first: Soft-RoCE asks for it by name as soon as a device is made.
  Words command = {tool("make_initrd.sh"),
                   kernel,
                   file,
                   "crc32_generic",
                   "virtio_pci",
                   "9pnet_virtio",
                   "9p",
                   "overlay",
                   "veth",
                   "rdma_rxe",
                   "ib_uverbs",
                   "rdma_ucm"};
  command.insert(command.end(), more_modules.begin(), more_modules.end());
  Process process(command);
  if (process.wait() != 0) throw std::runtime_error(process.report());
}

// Returns the command that starts QEMU. The kernel's messages go into the file `console`.
Words qemu_command(const std::string& initrd, const std::string& shared, const std::string& console) {
  return {
      "qemu-system-x86_64",
      "-machine",
      "q35",
      "-accel",
      "tcg,thread=multi",
      "-cpu",
      "max",
      "-smp",
      "2",
      "-m",
      "2G",
      "-nodefaults",
      "-no-user-config",
      "-no-reboot",
      "-display",
      "none",
      "-serial",
      "file:" + console,
      "-kernel",
      std::string(kernel) + "/vmlinux",
      "-initrd",
      initrd,
      "-virtfs",
      "local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap",
      "-virtfs",
      "local,path=" + shared + ",mount_tag=shared,security_model=none",
      "-append",
      "console=ttyS0 quiet panic=-1 no_timer_check tsc=reliable mitigations=off nowatchdog shared=" + shared};
}

}  // namespace

std::string VirtualMachine::problem() {
  static const std::string found = find_problem();
  return found;
}

VirtualMachine::VirtualMachine(const Words& command, const VirtualMachineOptions& options) {
  write_job(command, options);
  make_initrd(folder_ / "initrd", options.modules);
  qemu_ = std::make_unique<Process>(qemu_command(folder_ / "initrd", shared(), folder_ / "console"));
}

// Writes the script that runs in the machine.
void VirtualMachine::write_job(const Words& command, const VirtualMachineOptions& options) const {
  std::ofstream job(folder_ / "job");
  job << "export shared=" << quoted(shared()) << "\n";
  for (const char* const name : {"HOME", "LANG", "TEST_ALL"}) {
    if (const char* const value = std::getenv(name)) job << "export " << name << "=" << quoted(value) << "\n";
  }
  for (const auto& [name, value] : options.environment) {
    if (value) job << "export " << name << "=" << quoted(*value) << "\n";
  }
  const std::string folder =
      options.folder.empty() ? std::filesystem::current_path().string() : options.folder;
  job << "cd " << quoted(folder) << "\n"
      << quoted(tool("guest.sh")) << " " << options.devices << " " << options.mtu;
  for (const std::string& word : command) job << " " << quoted(word);
  job << "\n";
}

std::optional<int> VirtualMachine::wait(std::chrono::milliseconds limit) {
  if (!qemu_->wait(limit)) return std::nullopt;
  const std::string status = file("status");
  status_ = status.empty() ? no_command : std::stoi(status);
  return status_;
}

std::string VirtualMachine::file(const std::string& name) const {
  std::ostringstream text;
  text << std::ifstream(folder_ / name).rdbuf();
  return text.str();
}

std::string VirtualMachine::console() const { return file("console") + qemu_->out() + qemu_->err(); }

std::string VirtualMachine::report() const {
  return "job:\n" + file("job") + "status: " + (status_ ? std::to_string(*status_) : "still running") +
         "\nstdout:\n" + out() + "\nstderr:\n" + err() + "\nconsole:\n" + console();
}

}  // namespace tutti::test
