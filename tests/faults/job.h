#pragma once

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/process.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/sockets_of.h"

namespace tutti::test {

// `Job` runs ranks that compute together until the test tells them to end.
struct Job {
  ScratchFolder folder;
  std::uint16_t port = unused_port();
  int size;
  Process::Environment environment;
  std::string text;  // the text that the ranks send each other
  std::vector<std::unique_ptr<Process>> ranks;

  // The ranks have the environment `variables`. They use TCP unless `variables` name other transports. The
  // constructor starts ranks 0 to `started` - 1.
  Job(int world_size, Process::Environment variables, int started);
  explicit Job(int world_size, Process::Environment variables = {})
      : Job(world_size, std::move(variables), world_size) {}

  Process& operator[](int rank) { return *ranks[static_cast<std::size_t>(rank)]; }
  // Starts one more rank. `changes` add or replace variables of this rank.
  Process& start(int rank, const Process::Environment& changes = {});
  bool are_ready();
  // Tells the ranks to end, and expects that all ranks end without an error.
  void expect_good_end();
};

}  // namespace tutti::test
