#include "tools/run/options.h"

#include <filesystem>
#include <iostream>
#include <optional>
#include <utility>

#include <tutti/config_values.h>
#include <tutti/types.h>

#include "tools/command_line.h"
#include "tools/run/host_options.h"
#include "tools/run/spellings.h"

namespace tutti::tools {
namespace {

constexpr std::string_view no_copy = ":nocopy";

class UsageOfRun : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App*, std::string) const override {
    return "Usage: tutti run -n N [OPTIONS] [--] PROGRAM [ARGUMENTS]...\n"
           "       tutti run --hostfile FILE [OPTIONS] [--] PROGRAM [ARGUMENTS]...\n";
  }
};

std::optional<MapBy> parse_map_by(const std::string& text) {
  if (text == "slot") return MapBy::slot;
  if (text == "node") return MapBy::node;
  return std::nullopt;
}

std::optional<Binding> parse_binding(const std::string& text) {
  if (text == "none") return Binding::none;
  if (text == "core") return Binding::core;
  if (text == "numa") return Binding::numa;
  return std::nullopt;
}

// `RunWords` holds the values of options that `understand` turns into `RunOptions`.
struct RunWords {
  int ranks = 0;
  int per_host = 0;
  std::string output;
};

void declare_hosts(CLI::App& app, RunOptions& options, RunWords& words) {
  app.option_defaults()->group("Hosts and ranks");
  add_ranks_option(app, words.ranks,
                   "The number of ranks (also -np, -c); without it, the hosts get one for each slot");
  declare_host_list(app, options);
  app.add_option("-N", words.per_host,
                 "The most ranks for each host (also -ppn, -npernode, --map-by ppr:N:node)")
      ->check(CLI::Range(1, max_ranks).description(""))
      ->type_name("N");
  add_converted(app, "--map-by", options.placement.map_by, parse_map_by, "slot, node or ppr:N:node",
                "Fill one host after the other (slot, the default), or deal the ranks to the hosts\n"
                "in turn (node)")
      ->type_name("slot|node");
  app.add_flag("--oversubscribe", options.placement.oversubscribe, "Allow more ranks than slots");
  add_converted(app, "--bind-to", options.binding, parse_binding, "none, core or numa",
                "Tie each rank to a core, or to the cores of a NUMA node; the default is none")
      ->type_name("none|core|numa");
  app.add_flag("--dry-run", options.dry_run, "Print what would run on each host, and start nothing");
  app.add_flag("--doctor", options.doctor, "Test the hosts in place of running the program: tutti doctor")
      ->excludes("--dry-run");
}

void declare_ranks(CLI::App& app, RunOptions& options) {
  app.option_defaults()->group("What the ranks get");
  app.add_option("-x", options.exports,
                 "Set VAR for the ranks (VAR=VALUE), pass on its value (VAR), or pass on the values of all\n"
                 "variables that begin with VAR (VAR*)")
      ->type_name("VAR[=VALUE]")
      ->allow_extra_args(false);
  app.add_flag("--mpi-env", options.mpi_env, "Also set the variables of Open MPI: OMPI_COMM_WORLD_RANK, ...");
  app.add_option("--wdir", options.folder, "The folder in which the ranks start (also -wdir, -wd)")
      ->type_name("DIR");
}

void declare_output(CLI::App& app, RunOptions& options, RunWords& words) {
  app.option_defaults()->group("Output");
  app.add_option("--output-filename", words.output,
                 "Also write the ranks' output to DIR/1/rank.N/stdout and stderr; with :nocopy only there")
      ->type_name("DIR[:nocopy]");
  app.add_flag("--merge-stderr-to-stdout", options.output.merge_stderr, "Treat the ranks' stderr as stdout");
  app.add_flag("--tag-output", options.output.tag,
               "Start each line with [1,RANK]<stdout>: or [1,RANK]<stderr>:");
  app.add_flag("--timestamp-output", options.output.timestamp, "Start each line with the time");
}

void declare_end(CLI::App& app, RunOptions& options) {
  app.option_defaults()->group("The end of the job");
  add_duration(app, "--kill-grace", options.kill_grace, std::chrono::nanoseconds(0),
               "The time between SIGTERM and SIGKILL when the ranks must end");
  app.add_flag("--enable-recovery", options.enable_recovery,
               "Let the others continue when a rank fails (Communicator::shrink); the exit status is 0\n"
               "if all the others end with 0");
}

std::string check_exports(const std::vector<std::string>& exports) {
  for (const std::string& entry : exports) {
    const std::string name = entry.substr(0, entry.find('='));
    const std::size_t star = name.find('*');
    if (name.empty() || (star != name.npos && star + 1 != entry.size()))
      return "-x needs VAR, VAR* or VAR=VALUE, not `" + entry + "`";
  }
  return {};
}

// Turns `words` and the translation into options. Returns an error message, which is empty if both are valid.
std::string understand(RunWords words, const Translation& translation, RunOptions& options) {
  if (words.ranks > 0) options.placement.ranks = words.ranks;
  if (words.per_host > 0) options.placement.per_host = words.per_host;
  if (std::string problem = check_exports(options.exports); !problem.empty()) return problem;
  options.program = translation.program;
  if (options.program.empty() && !options.doctor) return "no program given";
  options.socket_ifname = translation.socket_ifname;
  options.abort_on_non_zero = translation.abort_on_non_zero;
  if (words.output.size() > no_copy.size() && words.output.ends_with(no_copy)) {
    words.output.resize(words.output.size() - no_copy.size());
    options.output.to_terminal = false;
  }
  if (!words.output.empty()) options.output.directory = std::filesystem::absolute(words.output);
  return {};
}

void warn_of(const std::vector<std::string>& ignored) {
  if (ignored.empty()) return;
  std::string list;
  for (const std::string& parameter : ignored) list += (list.empty() ? "" : ", ") + parameter;
  std::cerr << "tutti run: ignored, since only Open MPI knows their meaning: " << list << "\n";
}

}  // namespace

std::string folder_of(const RunOptions& options) {
  return options.folder.empty() ? std::filesystem::current_path() : std::filesystem::absolute(options.folder);
}

std::variant<RunOptions, int> parse_run_options(const Arguments& arguments) {
  CLI::App app(
      "Starts a program as N ranks, on this machine or on several hosts, and serves the store at which\n"
      "they meet. Ends all of them when one fails. The exit status is that of the first rank to fail,\n"
      "128+n for signal n; 74 if none failed but output was lost (a full disk). Options of mpirun work, too.",
      "tutti run");
  app.formatter(std::make_shared<UsageOfRun>());
  RunOptions options;
  RunWords words;
  declare_hosts(app, options, words);
  declare_way(app, options);
  declare_ranks(app, options);
  declare_output(app, options, words);
  declare_end(app, options);
  Result<Translation> translation =
      translate(arguments, [&app](const std::string& name) { return takes_value(app, name); });
  if (!translation.ok()) return usage_error(app, translation.status().message());
  if (const auto status = parse(app, translation->options)) return *status;
  if (const std::string problem = understand(std::move(words), *translation, options); !problem.empty())
    return usage_error(app, problem);
  warn_of(translation->ignored);
  return options;
}

}  // namespace tutti::tools
