#include "tests/faults/fault_world.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include <gtest/gtest.h>

namespace tutti::test {

std::int64_t monotonic_now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

FaultWorld::FaultWorld(int size, const std::vector<std::string>& words, const Options& options) {
  // All test programs are in one folder, which may have been moved since they were built.
  const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  std::vector<std::string> command = {here / options.program};
  command.insert(command.end(), words.begin(), words.end());
  const std::string store = "tcp://127.0.0.1:" + std::to_string(unused_port());
  for (int rank = 0; rank < size; ++rank) {
    Process::Environment environment = {{"TUTTI_RANK", std::to_string(rank)},
                                        {"TUTTI_WORLD_SIZE", std::to_string(size)},
                                        {"TUTTI_INIT_METHOD", store},
                                        {"TUTTI_HEARTBEAT", options.heartbeat},
                                        {"TUTTI_TRANSPORTS", options.transport}};
    for (const auto& [name, value] : options.more) environment[name] = value;
    if (rank == 0) {
      for (const auto& [name, value] : options.only_rank_0) environment[name] = value;
    }
    ranks_.emplace_back(command, environment);
  }
}

bool FaultWorld::ready() {
  for (Process& process : ranks_) {
    if (process.wait_for_output("ready\n")) continue;
    ADD_FAILURE() << "not ready: " << process.report();
    return false;
  }
  return true;
}

std::optional<Failure> FaultWorld::failure(int number) {
  Process& process = rank(number);
  if (!process.wait_for_output("failed ") || !process.wait_for_output("\n")) return std::nullopt;
  const std::string out = process.out();
  std::istringstream line(out.substr(out.find("failed ") + 7));
  Failure failure;
  line >> failure.when >> failure.code >> std::ws;
  std::getline(line, failure.message);
  return failure;
}

std::optional<double> FaultWorld::shrunk(int number, int size) {
  Process& process = rank(number);
  const std::string start = "shrunk " + std::to_string(size) + " ";
  if (!process.wait_for_output(start)) return std::nullopt;
  const std::string out = process.out();
  std::istringstream line(out.substr(out.find(start) + start.size()));
  double completed = 0, nanoseconds = 0;
  line >> completed >> nanoseconds;
  return nanoseconds / 1e6;
}

bool FaultWorld::names(const std::string& message, int number) {
  return message.find("rank " + std::to_string(number) + " (host ") != message.npos &&
         message.find("pid " + std::to_string(rank(number).pid()) + ")") != message.npos;
}

std::string FaultWorld::report() {
  std::string text;
  for (const Process& process : ranks_) text += process.report() + "\n";
  return text;
}

std::uint64_t argument(const std::string& name, std::uint64_t otherwise) {
  std::ifstream file("/proc/self/cmdline");
  const std::string line(std::istreambuf_iterator<char>(file), {});
  std::istringstream words(line);
  for (std::string word; std::getline(words, word, '\0');) {
    if (word == "--" + name && std::getline(words, word, '\0')) return std::stoull(word);
  }
  return otherwise;
}

double percentile(std::vector<double> values, double percent) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const double place = percent / 100 * static_cast<double>(values.size() - 1);
  return values[static_cast<std::size_t>(place + 0.5)];
}

}  // namespace tutti::test
