#include "tools/run/options.h"

#include <filesystem>

#include <tutti/config_values.h>

#include "tools/command_line.h"

namespace tutti::tools {
namespace {

constexpr std::string_view no_copy = ":nocopy";

// `SplitArguments` separates the launcher's own options from the program's command line. The program begins
// after `--`, or at the first word that is neither an option nor an option's value. All words from there on
// belong to the program, even if they look like options.
struct SplitArguments {
  Arguments own;
  std::vector<std::string> program;
};

bool takes_value(const CLI::App& app, const std::string& word) {
  const CLI::Option* option = app.get_option_no_throw(word);
  return option != nullptr && option->get_items_expected_max() > 0;
}

// Translates mpirun's names of options into ours.
std::string own_name(const std::string& word) {
  if (word == "-np" || word == "--np") return "-n";
  if (word == "-wdir" || word == "-wd" || word == "--wd") return "--wdir";
  return word;
}

SplitArguments split(const CLI::App& app, const Arguments& arguments) {
  SplitArguments result;
  std::size_t i = 0;
  for (; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "--") {
      ++i;
      break;
    }
    if (word.size() < 2 || word[0] != '-') break;
    result.own.push_back(own_name(word));
    if (takes_value(app, result.own.back()) && i + 1 < arguments.size()) result.own.push_back(arguments[++i]);
  }
  result.program.assign(arguments.begin() + static_cast<std::ptrdiff_t>(i), arguments.end());
  return result;
}

class UsageOfRun : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App*, std::string) const override {
    return "Usage: tutti run -n N [OPTIONS] [--] PROGRAM [ARGUMENTS]...\n";
  }
};

std::string check_exports(const std::vector<std::string>& exports) {
  for (const std::string& entry : exports) {
    if (entry.empty() || entry[0] == '=') return "-x needs VAR or VAR=VALUE, not `" + entry + "`";
  }
  return {};
}

// `RunWords` holds the text of options that `understand` parses.
struct RunWords {
  int ranks = 0;
  std::string output;
  std::string grace = "2s";
};

void declare(CLI::App& app, RunOptions& options, RunWords& words) {
  app.formatter(std::make_shared<UsageOfRun>());
  add_ranks_option(app, words.ranks, "The number of ranks (also -np, --np)");
  app.add_option("-x", options.exports, "Set VAR for the ranks (VAR=VALUE); VAR alone passes on its value")
      ->type_name("VAR[=VALUE]")
      ->allow_extra_args(false);
  app.add_option("--wdir", options.folder, "The folder in which the ranks start (also -wdir, -wd, --wd)")
      ->type_name("DIR");
  app.add_option("--output-filename", words.output,
                 "Also write the ranks' output to DIR/1/rank.N/stdout and stderr; with :nocopy only there")
      ->type_name("DIR[:nocopy]");
  app.add_flag("--merge-stderr-to-stdout", options.output.merge_stderr, "Treat the ranks' stderr as stdout");
  app.add_flag("--tag-output", options.output.tag,
               "Start each line with [1,RANK]<stdout>: or [1,RANK]<stderr>:");
  app.add_flag("--timestamp-output", options.output.timestamp, "Start each line with the time");
  app.add_option("--kill-grace", words.grace, "The time between SIGTERM and SIGKILL when the ranks must end")
      ->type_name("DURATION")
      ->capture_default_str();
  app.add_flag("--enable-recovery", options.enable_recovery,
               "Let the others continue when a rank fails (Communicator::shrink); the exit status is 0\n"
               "if all the others end with 0");
}

// Parses `words` into `options`. Returns an error message, which is empty if the words are valid.
std::string understand(RunWords words, RunOptions& options) {
  if (words.ranks == 0) return "-n N, the number of ranks, is required; -n auto counts processors";
  if (std::string problem = check_exports(options.exports); !problem.empty()) return problem;
  if (options.program.empty()) return "no program given";
  options.placement.ranks = words.ranks;
  const auto grace = parse_duration(words.grace);
  if (!grace) return "--kill-grace needs a duration like 500ms or 10s, not `" + words.grace + "`";
  options.kill_grace = *grace;
  if (words.output.size() > no_copy.size() && words.output.ends_with(no_copy)) {
    words.output.resize(words.output.size() - no_copy.size());
    options.output.to_terminal = false;
  }
  if (!words.output.empty()) options.output.directory = std::filesystem::absolute(words.output);
  return {};
}

}  // namespace

std::variant<RunOptions, int> parse_run_options(const Arguments& arguments) {
  CLI::App app(
      "Starts a program as N ranks on this machine, serves the store at which they meet, and ends all\n"
      "of them when one fails. The exit status is that of the first rank to fail, 128+n for signal n;\n"
      "74 if none failed but output was lost (a full disk).",
      "tutti run");
  RunOptions options;
  RunWords words;
  declare(app, options, words);
  SplitArguments split_words = split(app, arguments);
  if (const auto status = parse(app, split_words.own)) return *status;
  options.program = std::move(split_words.program);
  if (const std::string problem = understand(std::move(words), options); !problem.empty())
    return usage_error(app, problem);
  return options;
}

}  // namespace tutti::tools
