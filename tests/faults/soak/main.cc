// Runs random collectives with random faults, in real processes:
//   soak [--seconds N] [--seed S] [--episodes N] [--first N] [--log FILE] [--plan]
// An episode is a job of 2 to 6 ranks. The actions and faults of each rank are drawn from the seed and
// written to the log (FILE, or stdout). The same seed gives the same episodes. `--plan` writes the log and
// runs nothing.
//
// If there is a problem, the program describes it on stderr, and the exit status is 1. `--seed S
// --first N --episodes 1` repeats episode N.
#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <span>
#include <string>

#include "tests/faults/soak/job.h"
#include "tests/faults/soak/player.h"

namespace {

using tutti::soak::Episode;

struct Options {
  double seconds = 10;
  std::uint64_t seed = std::random_device{}();
  std::uint64_t first = 0;
  std::uint64_t episodes = 0;  // zero means as many as fit into `seconds`
  std::string log;
  bool plan = false;
};

Options parse(std::span<char*> words) {
  Options options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string name = words[i];
    if (name == "--plan") {
      options.plan = true;
      continue;
    }
    if (++i == words.size()) throw std::invalid_argument(name + " needs a value");
    const std::string value = words[i];
    if (name == "--seconds") {
      options.seconds = std::stod(value);
    } else if (name == "--seed") {
      options.seed = std::stoull(value);
    } else if (name == "--first") {
      options.first = std::stoull(value);
    } else if (name == "--episodes") {
      options.episodes = std::stoull(value);
    } else if (name == "--log") {
      options.log = value;
    } else {
      throw std::invalid_argument("no option " + name);
    }
  }
  return options;
}

int play(std::uint64_t seed, std::uint64_t number) {
  tutti::soak::Player(Episode::draw(seed, number)).play();
  return 0;
}

struct Totals {
  std::uint64_t episodes = 0, rounds = 0, steps = 0, repeated = 0;
  std::map<tutti::soak::Fault::Kind, int> faults;

  void add(const Episode& episode) {
    ++episodes;
    for (const auto& round : episode.rounds) {
      ++rounds;
      steps += round.steps.size();
      ++faults[round.fault.kind];
    }
  }
  void print() const {
    using Kind = tutti::soak::Fault::Kind;
    const auto count = [&](Kind kind) { return faults.contains(kind) ? faults.at(kind) : 0; };
    std::fprintf(stderr,
                 "%llu episodes, %llu rounds, %llu steps; killed %d, exited %d, pairs killed %d, aborted %d, "
                 "late %d, disagreed %d, stopped %d, delayed %d; repeated %llu\n",
                 static_cast<unsigned long long>(episodes), static_cast<unsigned long long>(rounds),
                 static_cast<unsigned long long>(steps), count(Kind::kill), count(Kind::leave),
                 count(Kind::pair), count(Kind::abort), count(Kind::late), count(Kind::disagree),
                 count(Kind::stop), count(Kind::delay), static_cast<unsigned long long>(repeated));
  }
};

// Runs an episode. Runs the episode again if it failed while the whole machine was suspended for
// longer than the plan's deadlines.
bool run(std::uint64_t seed, const Episode& episode, Totals& totals) {
  for (;;) {
    tutti::soak::Job job(seed, episode);
    const std::string problem = job.watch();
    if (problem.empty()) return true;
    std::fprintf(stderr, "seed %llu, episode %llu:\n%s%s\n", static_cast<unsigned long long>(seed),
                 static_cast<unsigned long long>(episode.number), episode.describe().c_str(),
                 problem.c_str());
    if (job.longest_gap() < 2) return false;
    ++totals.repeated;
    std::fprintf(stderr, "the whole machine was suspended for %.0f s: running the episode again\n",
                 job.longest_gap());
  }
}

int soak(const Options& options) {
  std::ofstream file;
  if (!options.log.empty()) file.open(options.log);
  std::ostream& log = options.log.empty() ? std::cout : file;
  log << "seed " << options.seed << "\n" << std::flush;
  if (!options.log.empty())
    std::fprintf(stderr, "seed %llu\n", static_cast<unsigned long long>(options.seed));
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(options.seconds);
  Totals totals;
  bool good = true;
  for (std::uint64_t number = options.first; good; ++number) {
    const bool enough = options.episodes > 0 ? number == options.first + options.episodes
                                             : std::chrono::steady_clock::now() >= end;
    if (enough) break;
    const Episode episode = Episode::draw(options.seed, number);
    log << episode.describe() << std::flush;
    if (options.plan) continue;
    good = run(options.seed, episode, totals);
    log << "  " << (good ? "as planned" : "NOT as planned") << "\n" << std::flush;
    totals.add(episode);
  }
  if (!options.plan) totals.print();
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::span<char*> words(argv + 1, static_cast<std::size_t>(argc - 1));
  if (words.size() == 3 && std::string(words[0]) == "--rank")
    return play(std::stoull(words[1]), std::stoull(words[2]));
  return soak(parse(words));
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
