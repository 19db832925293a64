#include "tests/multiprocess/example_world.h"

#include <chrono>

#include <gtest/gtest.h>

namespace tutti::test {

Process& ExampleWorld::start(const std::string& example, const Arguments& arguments,
                             const Process::Environment& environment) {
  return processes_.emplace_back(command(example, arguments), environment);
}

void ExampleWorld::start_by_url(const std::string& example, const std::string& url, int size) {
  for (int rank = 0; rank < size; ++rank) start(example, by_url(url, rank, size));
}

void ExampleWorld::expect_success() {
  for (Process& process : processes_)
    EXPECT_EQ(process.wait(std::chrono::minutes(10)), 0) << process.report();
}

Arguments command(const std::string& name, const Arguments& arguments) {
  Arguments words{TUTTI_BIN_DIR "/" + name};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

Arguments by_url(const std::string& url, int rank, int size) {
  return {"--init-method", url, "--rank", std::to_string(rank), "--world-size", std::to_string(size)};
}

Process::Environment by_environment(std::uint16_t port, int rank, int size) {
  return {{"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", std::to_string(port)},
          {"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(size)}};
}

std::string tcp_url(std::uint16_t port) { return "tcp://127.0.0.1:" + std::to_string(port); }

std::string proof(const std::string& example, int size) {
  const std::string n = std::to_string(size);
  if (example == "01_hello") return "All " + n + " ranks met: together they counted to " + n;
  if (example == "02_all_reduce") return "sum, in place: [" + n + ", ";
  if (example == "03_broadcast_gather") return "pi is 3.141592654, and all " + n + " ranks know it";
  if (example == "04_async_overlap") return "all 8 sums are right";
  return "all " + n + " ranks hold bitwise equal weights (hash ";
}

}  // namespace tutti::test
