#include "tests/faults/job.h"

namespace tutti::test {

Job::Job(int world_size, Process::Environment variables, int started)
    : size(world_size), environment(std::move(variables)) {
  environment.try_emplace("TUTTI_TRANSPORTS", "tcp");
  environment.try_emplace("TUTTI_INIT_METHOD", "tcp://127.0.0.1:" + std::to_string(port));
  environment.try_emplace("TUTTI_WORLD_SIZE", std::to_string(size));
  for (int rank = 0; rank < started; ++rank) start(rank);
}

Process& Job::start(int rank, const Process::Environment& changes) {
  Process::Environment its = environment;
  its["TUTTI_RANK"] = std::to_string(rank);
  for (const auto& [name, value] : changes) its[name] = value;
  std::vector<std::string> command = {std::string(TUTTI_BIN_DIR) + "/tests/busy_rank", folder / "stop"};
  if (!text.empty()) command.push_back(text);
  ranks.push_back(std::make_unique<Process>(command, its));
  return *ranks.back();
}

bool Job::are_ready() {
  for (const auto& rank : ranks) {
    if (!rank->wait_for_output("ready\n")) return false;
  }
  return true;
}

void Job::expect_good_end() {
  std::ofstream(folder / "stop") << "now";
  for (const auto& rank : ranks) {
    EXPECT_EQ(rank->wait(), 0) << rank->report();
    EXPECT_NE(rank->out().find("rounds "), std::string::npos) << rank->report();
  }
}

}  // namespace tutti::test
