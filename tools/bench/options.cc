#include "tools/bench/options.h"

#include <tutti/config_values.h>

#include "bindings/cpp/transports.h"
#include "collectives/schedule/algorithm.h"
#include "tools/command_line.h"
#include "tools/names.h"

namespace tutti::tools {
namespace {

constexpr const char* rank_flag = "--as-rank";

struct Words {
  std::vector<std::string> collectives;
  std::string min_bytes = "8";
  std::string max_bytes = "16M";
  std::string type = "float32";
  std::string op = "sum";
  bool as_rank = false;
};

void declare(CLI::App& app, BenchOptions& options, Words& words) {
  app.add_option("COLLECTIVE", words.collectives, "all_reduce, broadcast, ..., sendrecv, pingpong; or all")
      ->required();
  add_ranks_option(
      app, options.launch_ranks,
      "Start N ranks here; without -n, use the ranks of `tutti run`, or a single rank if there are none");
  app.add_option("--min-bytes", words.min_bytes, "The smallest vector")->capture_default_str();
  app.add_option("--max-bytes", words.max_bytes, "The largest vector")->capture_default_str();
  app.add_option("--factor", options.factor, "The factor from one size to the next")
      ->check(CLI::Range(2, 1 << 20))
      ->capture_default_str();
  app.add_option("--type", words.type, "The elements' type")->capture_default_str();
  app.add_option("--op", words.op, "The operation that combines them")->capture_default_str();
  app.add_option("--transport", options.transport, "Use only this transport");
  app.add_option("--algorithm", options.algorithm, "Use this algorithm at all sizes");
  app.add_option("--iterations", options.iterations,
                 "The number of batches for each size; 0: as many as fit --budget-ms")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  app.add_option("--warmup", options.warmup,
                 "The number of operations before the first batch; 0: as many as take 10 ms")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  app.add_option("--batch", options.batch, "The number of operations in a batch; 0: as many as take 2 ms")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  app.add_option_function<int>(
         "--budget-ms", [&options](int ms) { options.budget = std::chrono::milliseconds(ms); },
         "The time for the batches of one size")
      ->check(CLI::Range(1, 1 << 20))
      ->default_str("200");
  app.add_option("--csv", options.csv, "Write the results to this file too")->type_name("FILE");
  app.add_flag(rank_flag, words.as_rank)->group("");
}

std::string names() {
  std::string result;
  for (const MeasuredInfo& info : measured_infos()) result += std::string(info.name) + ", ";
  return result + "all";
}

std::string check_algorithm(const BenchOptions& options) {
  for (const MeasuredInfo* info : options.measured) {
    if (!info->kind) return std::string(info->name) + " has no algorithms";
    if (find_algorithm(*info->kind, options.algorithm) != nullptr) continue;
    const std::string known = algorithm_names(*info->kind);
    return std::string(info->name) + " has no algorithm " + options.algorithm +
           did_you_mean(options.algorithm, known) + "; it has " + known;
  }
  return {};
}

std::string check_transport(const std::string& name) {
  std::string known;
  for (const TransportEntry& entry : transport_entries()) {
    if (entry.name == name) return {};
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  return no_such("transport", name, known);
}

std::string understand_collectives(const std::vector<std::string>& collectives, BenchOptions& options) {
  for (const std::string& name : collectives) {
    if (name == "all") {
      for (const MeasuredInfo& info : measured_infos()) options.measured.push_back(&info);
    } else if (const MeasuredInfo* info = find_measured(name)) {
      options.measured.push_back(info);
    } else {
      return "there is no measurement called " + name + did_you_mean(name, names()) +
             "; there are: " + names();
    }
  }
  return {};
}

// Parses `words` into `options`. Returns an error message, which is empty if the words are valid.
std::string understand(const Words& words, BenchOptions& options) {
  if (std::string problem = understand_collectives(words.collectives, options); !problem.empty())
    return problem;
  const auto least = parse_size(words.min_bytes);
  const auto most = parse_size(words.max_bytes);
  if (!least) return "--min-bytes needs a size like 8, 64K or 16M, not " + words.min_bytes;
  if (!most) return "--max-bytes needs a size like 8, 64K or 16M, not " + words.max_bytes;
  if (*least > *most) return "--min-bytes is larger than --max-bytes";
  if (*least == 0) return "--min-bytes must be at least 1";
  const auto type = parse_data_type(words.type);
  const auto op = parse_reduce_op(words.op);
  if (!type) return no_such("type", words.type, type_names());
  if (!op) return no_such("operation", words.op, op_names());
  for (const MeasuredInfo* info : options.measured) {
    if (info->reduces && !op->supports(*type)) return words.op + " is not defined on " + words.type;
  }
  options.min_bytes = *least;
  options.max_bytes = *most;
  options.type = *type;
  options.op = *op;
  if (!options.transport.empty()) {
    if (std::string problem = check_transport(options.transport); !problem.empty()) return problem;
  }
  return options.algorithm.empty() ? std::string() : check_algorithm(options);
}

}  // namespace

std::vector<std::uint64_t> BenchOptions::sizes(const MeasuredInfo& info) const {
  if (info.what == Measured::barrier) return {0};
  std::vector<std::uint64_t> result;
  for (std::uint64_t bytes = min_bytes; bytes < max_bytes; bytes *= factor) {
    result.push_back(bytes);
    if (bytes > max_bytes / factor) break;
  }
  result.push_back(max_bytes);
  return result;
}

std::variant<BenchOptions, int> parse_bench_options(const Arguments& arguments) {
  CLI::App app(
      "Measures collectives between the ranks of `tutti run`, or between N ranks that this command\n"
      "starts (-n). Every result is checked before and after timing. The time of a batch is the mean of its\n"
      "operations, on the slowest rank; shown are the median and the 99th percentile over all batches.\n"
      "Bandwidths (algbw, busbw) are as in nccl-tests. The exit status is 1 if a result was wrong.",
      "tutti bench");
  BenchOptions options;
  Words words;
  declare(app, options, words);
  if (const auto status = parse(app, arguments)) return *status;
  if (const std::string problem = understand(words, options); !problem.empty())
    return usage_error(app, problem);
  if (words.as_rank) options.launch_ranks = 0;
  return options;
}

Arguments arguments_of_rank(const Arguments& arguments) {
  Arguments result = arguments;
  result.insert(result.begin(), rank_flag);
  return result;
}

}  // namespace tutti::tools
