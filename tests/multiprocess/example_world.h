#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "tests/support/process.h"

namespace tutti::test {

using Arguments = std::vector<std::string>;

// `ExampleWorld` runs the ranks of an example, each in its own process. Its destructor kills the
// remaining ranks.
class ExampleWorld {
 public:
  Process& start(const std::string& example, const Arguments& arguments,
                 const Process::Environment& environment = {});
  void start_by_url(const std::string& example, const std::string& url, int size);
  void expect_success();
  Process& operator[](std::size_t index) { return processes_[index]; }

 private:
  std::deque<Process> processes_;
};

// Returns the command line of a program of this build.
Arguments command(const std::string& name, const Arguments& arguments = {});
Arguments by_url(const std::string& url, int rank, int size);
Process::Environment by_environment(std::uint16_t port, int rank, int size);
std::string tcp_url(std::uint16_t port);

// Returns the text that rank 0 prints only if the result is right.
std::string proof(const std::string& example, int size);

}  // namespace tutti::test
