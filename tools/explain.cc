#include <iomanip>
#include <iostream>
#include <sstream>

#include <tutti/config.h>
#include <tutti/config_values.h>

#include "collectives/run/board.h"
#include "collectives/schedule/algorithm.h"
#include "collectives/schedule/selector.h"
#include "collectives/schedule/simulator.h"
#include "tools/collective_size.h"
#include "tools/command_line.h"
#include "tools/lower_bound.h"
#include "tools/machine.h"
#include "tools/names.h"
#include "tools/predict.h"

namespace tutti::tools {
namespace {

constexpr std::size_t steps_shown = 40;
constexpr int ranks_of_a_host = 8;  // used by --scaling
constexpr int most_simulated = 4096;
// `tutti explain` refuses a simulation if all ranks together have more steps than this. The
// schedules of all ranks are in memory at the same time, and a step takes about a hundred bytes.
constexpr std::uint64_t most_simulated_steps = 16'000'000;

struct ExplainOptions {
  std::string collective;
  int ranks = 0;
  std::string bytes = "1M";
  std::string type = "float32";
  std::string op = "sum";
  int root = 0;
  int rank = 0;
  std::string algorithm;
  bool all_steps = false;
  int simulate = 0;
  std::string validate;
  bool scaling = false;
  MachineOptions machine;
};

// A `Question` is the parsed form of the options.
struct Question {
  Problem problem;
  std::uint64_t bytes = 0;
  DataType type = DataType::float32;
  const Algorithm* algorithm = nullptr;
  Machine machine;
  std::shared_ptr<const Topology> topology;
};

void declare(CLI::App& app, ExplainOptions& options) {
  app.add_option("COLLECTIVE", options.collective, "all_reduce, broadcast, ...");
  app.add_option("-n,--ranks", options.ranks, "The world size")->check(CLI::Range(1, 1 << 20));
  app.add_option("--bytes", options.bytes, "The size of a rank's whole vector (4096, 64K, 1M)")
      ->capture_default_str();
  app.add_option("--type", options.type, "The elements' type")->capture_default_str();
  app.add_option("--op", options.op, "The operation that combines them")->capture_default_str();
  app.add_option("--root", options.root, "The root, if the collective has one")->capture_default_str();
  app.add_option("--rank", options.rank, "The rank whose steps to show")->capture_default_str();
  app.add_option("--algorithm", options.algorithm, "Explain this algorithm instead of the selector's choice");
  app.add_flag("--all-steps", options.all_steps, "Show the steps of long schedules too");
  app.add_option("--simulate", options.simulate,
                 "Also run the schedules of this number of ranks on the model machine")
      ->check(CLI::Range(1, most_simulated));
  declare(app, options.machine);
  app.add_option("--validate", options.validate,
                 "Instead of explaining: compare a CSV file of `tutti bench` with predictions")
      ->type_name("FILE");
  app.add_flag("--scaling", options.scaling,
               "Instead of explaining: print all algorithms from 8 to 100000 ranks as CSV, 8 on each host");
}

// Returns whether `tutti explain` supports this kind. It does so if the single size of --bytes
// determines the amount of data on every rank.
bool explainable(CollectiveKind kind) {
  return !to_string(kind).ends_with("_v") && kind != CollectiveKind::send && kind != CollectiveKind::recv;
}

std::string known_collectives() {
  std::string names;
  for (int i = 0; i < collective_kind_count; ++i) {
    const auto kind = static_cast<CollectiveKind>(i);
    if (explainable(kind)) names += (names.empty() ? "" : ", ") + std::string(to_string(kind));
  }
  return names;
}

// Sets the number of ranks and their hosts, unless a job has already set them. Returns an error
// message, which is empty if the options are valid.
std::string place_ranks(const ExplainOptions& options, Question& question) {
  question.problem.size = question.topology == nullptr ? options.ranks : question.topology->size();
  if (question.problem.size == 0) return "--ranks is required";
  if (options.machine.hosts > question.problem.size) return "--hosts must not be more than --ranks";
  if (question.topology == nullptr)
    question.topology = topology_of(question.problem.size, options.machine.hosts);
  return {};
}

// Parses the options into `question`. Returns an error message, which is empty if the options are valid.
std::string understand(const ExplainOptions& options, Question& question) {
  if (options.collective.empty()) return "COLLECTIVE is required";
  const auto kind = parse_collective_kind(options.collective);
  if (!kind || !explainable(*kind)) {
    return no_such("collective to explain", options.collective, known_collectives());
  }
  if (std::string problem = place_ranks(options, question); !problem.empty()) return problem;
  const int ranks = question.problem.size;
  const auto bytes = parse_size(options.bytes);
  const auto type = parse_data_type(options.type);
  const auto op = parse_reduce_op(options.op);
  if (!bytes) return "--bytes needs a size like 4096, 64K or 1M, not " + options.bytes;
  if (!type) return no_such("type", options.type, type_names());
  if (!op) return no_such("operation", options.op, op_names());
  if (*bytes % size_of(*type) != 0) {
    return "--bytes " + options.bytes + " is not a whole number of " + options.type + "s, of " +
           std::to_string(size_of(*type)) + " bytes each";
  }
  if (is_reduction(*kind) && !op->supports(*type)) return options.op + " is not defined on " + options.type;
  if (options.root < 0 || options.root >= ranks) return "--root must be a rank";
  if (options.rank < 0 || options.rank >= ranks) return "--rank must be below --ranks";
  question.algorithm = find_algorithm(*kind, options.algorithm);
  if (!options.algorithm.empty() && question.algorithm == nullptr) {
    const std::string known = algorithm_names(*kind);
    return options.collective + " has no algorithm " + options.algorithm +
           did_you_mean(options.algorithm, known) + "; it has " + known;
  }
  question.bytes = *bytes;
  question.type = *type;
  question.problem.kind = *kind;
  question.problem.rank = options.rank;
  question.problem.root = options.root;
  question.problem.count = count_for(*kind, *bytes, ranks, *type);
  question.problem.element_size = static_cast<std::uint32_t>(size_of(*type));
  question.problem.average = is_reduction(*kind) && *op == ReduceOp::avg;
  question.problem.topology = question.topology.get();
  return {};
}

std::string microseconds(double seconds) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(2) << seconds * 1e6 << " us";
  return text.str();
}

void print_candidates(const Question& question, const Selector& selector, const Choice& choice) {
  std::cout << "candidates, by what the model expects:\n";
  for (const Choice& candidate : selector.rank(question.problem)) {
    std::cout << (candidate.algorithm == choice.algorithm ? "  * " : "    ") << describe(candidate) << "\n";
  }
  std::cout << "algorithms of " << to_string(question.problem.kind) << ": "
            << algorithm_names(question.problem.kind) << "\n";
}

void print_steps(const Question& question, const Choice& choice, bool all) {
  const Schedule schedule = build_schedule(*choice.algorithm, question.problem, choice.tuning);
  std::uint64_t messages = 0;
  std::uint64_t elements = 0;
  for (const Step& step : schedule.steps) {
    if (step.kind != StepKind::send) continue;
    ++messages;
    elements += step.left.count;
  }
  std::cout << "\nsteps of rank " << question.problem.rank << ": " << schedule.steps.size() << ", sending "
            << messages << " messages, " << elements * question.problem.element_size << " bytes; scratch "
            << schedule.scratch_count * question.problem.element_size << " bytes; slices count elements\n";
  std::istringstream lines(schedule.to_string());
  std::string line;
  for (std::size_t shown = 0; std::getline(lines, line); ++shown) {
    if (!all && schedule.steps.size() > steps_shown && shown == steps_shown) {
      std::cout << "  ... " << schedule.steps.size() - steps_shown << " more (--all-steps)\n";
      break;
    }
    std::cout << "  " << line << "\n";
  }
}

void print_bound(const Problem& problem, const CostModel& model) {
  const LowerBound bound = lower_bound(problem, model);
  std::cout << "lower bound at " << problem.size << " ranks: " << microseconds(bound.seconds())
            << " (latency " << microseconds(bound.latency);
  if (!bound.shared) std::cout << ", bandwidth " << microseconds(bound.bandwidth);
  std::cout << (bound.shared ? ", combining and copying " : ", combining ") << microseconds(bound.compute)
            << ")\n";
}

// Simulates the collective and prints the result. Returns the exit status.
int print_simulation(const ExplainOptions& options, Question& question, const Selector& selector) {
  const int ranks = options.simulate;
  question.topology = topology_of(ranks, std::min(ranks, options.machine.hosts));
  question.problem.topology = question.topology.get();
  question.problem.size = ranks;
  question.problem.rank = 0;
  question.problem.root = question.problem.root < ranks ? question.problem.root : 0;
  question.problem.count = count_for(question.problem.kind, question.bytes, ranks, question.type);
  const auto choice =
      selector.choose(question.problem, question.algorithm == nullptr ? 0 : question.algorithm->id);
  if (!choice.ok()) {
    std::cerr << "tutti explain: " << choice.status().message() << "\n";
    return exit_failure;
  }
  if (choice->algorithm->shared) {
    std::cerr << "tutti explain: " << choice->algorithm->name
              << " sends no messages, which are what --simulate runs: give --hosts, or --transport tcp\n";
    return exit_failure;
  }
  const std::size_t steps = build_schedule(*choice->algorithm, question.problem, choice->tuning).steps.size();
  if (steps > most_simulated_steps / static_cast<std::uint64_t>(ranks)) {
    std::cerr << "tutti explain: " << choice->algorithm->name << " takes " << steps << " steps on each of "
              << ranks << " ranks, too many to simulate\n";
    return exit_failure;
  }
  const Simulation result = simulate(*choice->algorithm, question.problem, choice->tuning, selector.model());
  std::cout << "\nsimulated on " << ranks << " ranks: " << describe(*choice) << " expected, "
            << microseconds(result.seconds) << " simulated; " << result.messages << " messages, "
            << result.bytes << " bytes, " << result.max_rank_bytes << " bytes sent by the busiest rank\n";
  print_bound(question.problem, selector.model());
  return 0;
}

// Prints "all_gather of 1M (65536 float32 a block) on 4 ranks of 2 hosts".
void print_question(const Question& question) {
  const Problem& problem = question.problem;
  const bool blocks = has_blocks(problem.kind);
  std::cout << to_string(problem.kind);
  if (problem.kind != CollectiveKind::barrier) {
    const std::uint64_t block = problem.count * problem.element_size;
    std::cout << " of " << format_size(blocks ? block * static_cast<std::uint64_t>(problem.size) : block)
              << " (" << problem.count << " " << to_string(question.type) << (blocks ? " a block" : "")
              << ")";
  }
  std::cout << " on " << problem.size << (problem.size == 1 ? " rank" : " ranks");
  if (question.topology != nullptr && question.topology->hosts() > 1)
    std::cout << " of " << question.topology->hosts() << " hosts";
}

// Compares a file with predictions. Returns the exit status.
int print_validation(const ExplainOptions& options, const Question& question, const Selector& selector) {
  std::cout << "# " << question.machine.source << ": " << describe(question.machine.model) << "\n";
  const std::string problem = validate(options.validate, selector, question.topology.get(), std::cout);
  if (problem.empty()) return 0;
  std::cerr << "tutti explain: " << problem << "\n";
  return exit_failure;
}

// Prints which algorithm runs, why, and what it does. Returns the exit status.
int explain(const ExplainOptions& options, Question& question, const Selector& selector) {
  const auto choice =
      selector.choose(question.problem, question.algorithm == nullptr ? 0 : question.algorithm->id);
  if (!choice.ok()) {
    std::cerr << "tutti explain: " << choice.status().message() << "\n";
    return exit_failure;
  }
  const auto ranked = selector.rank(question.problem);
  const bool cheapest = !ranked.empty() && ranked.front().algorithm == choice->algorithm;
  const char* why = question.algorithm != nullptr ? "asked for by --algorithm"
                    : cheapest                    ? "the cheapest by the model"
                                                  : "asked for by TUTTI_ALGORITHM";
  print_question(question);
  const CostModel& model = question.machine.model;
  std::cout << "\ncosts: " << question.machine.source << "\n  within a host: " << describe(model.near)
            << "\n";
  if (question.topology != nullptr) std::cout << "  between hosts: " << describe(model.far) << "\n";
  std::cout << "  combining " << model.gamma * 1e9 << " ns/B; " << describe_cores(model) << "\n\n"
            << "chosen: " << describe(*choice) << ", " << why << "\n";
  print_candidates(question, selector, *choice);
  print_bound(question.problem, selector.model());
  print_steps(question, *choice, options.all_steps);
  return options.simulate == 0 ? 0 : print_simulation(options, question, selector);
}

}  // namespace

int explain_command(const Arguments& arguments) {
  CLI::App app(
      "Shows which algorithm a collective would use, why, and its steps. Only --measure and --job send\n"
      "messages.",
      "tutti explain");
  ExplainOptions options;
  declare(app, options);
  if (const auto status = parse(app, arguments)) return *status;
  // The CSV files of `tutti bench` and the scaling charts are about messages, not shared memory.
  const bool explaining = options.validate.empty() && !options.scaling;
  if (!explaining && options.machine.transport.empty()) options.machine.transport = "tcp";
  Question question;
  if (options.machine.job) {
    question.machine = machine_of(options.machine);
    question.topology = question.machine.topology;
    if (question.machine.rank != 0) return 0;
  }
  if (explaining) {
    if (const std::string problem = understand(options, question); !problem.empty())
      return usage_error(app, problem);
  }
  const Config config = Config::from_environment().take();
  if (!options.machine.job) question.machine = machine_of(options.machine);
  const Selector selector =
      Selector::create(question.machine.model, format_algorithm_choices(config.algorithm)).take();
  if (options.scaling) {
    print_scaling(selector, ranks_of_a_host, std::cout);
    return 0;
  }
  if (!options.validate.empty()) return print_validation(options, question, selector);
  // Ranks that share memory may also use the algorithms that need no messages. These algorithms need a window
  // (memory of each rank that all ranks read), so its size is set here.
  const bool one_host = question.topology == nullptr || question.topology->hosts() == 1;
  if (question.machine.transport == "shm" && one_host)
    question.problem.window_bytes = Board::whole_lines(config.shm_window);
  return explain(options, question, selector);
}

}  // namespace tutti::tools
