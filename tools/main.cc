#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <string_view>

#include <tutti/version.h>

#include "tools/command_line.h"
#include "tools/commands.h"
#include "tools/names.h"

namespace {

struct Command {
  std::string_view name;
  std::string_view summary;  // empty if users do not type the command
  int (*run)(const tutti::tools::Arguments& arguments);
};

constexpr Command commands[] = {
    {"run", "start a program as several ranks that find each other", tutti::tools::run_command},
    {"bench", "measure collectives, checking every result", tutti::tools::bench_command},
    {"info", "show what tutti can do and finds on this machine", tutti::tools::info_command},
    {"doctor", "test the hosts of a job, and say what is wrong and how to fix it",
     tutti::tools::doctor_command},
    {"explain", "show which algorithm would be chosen, why, and its steps", tutti::tools::explain_command},
    {"debug", "show the operations of running ranks, and which rank is behind", tutti::tools::debug_command},
    {"store", "serve the store at which ranks meet", tutti::tools::store_command},
    {"agent", "", tutti::tools::agent_command},
};

void print_usage(std::ostream& out) {
  out << "Usage: tutti COMMAND [OPTIONS]...\n\n";
  for (const Command& command : commands) {
    if (command.summary.empty()) continue;
    out << "  " << command.name << std::string(10 - command.name.size(), ' ') << command.summary << "\n";
  }
  out << "\n`tutti COMMAND --help` describes a command; `tutti --version` prints the version.\n";
}

// Flushes the output of a successful command, and returns the exit status. If an earlier flush has
// failed (`tutti bench` flushes each line), the error may lack the reason, since `errno` no longer
// holds it.
int finish_output(std::string_view name) {
  errno = 0;
  std::fflush(stdout);  // also flushes std::cout, which shares the buffer
  if (std::ferror(stdout) == 0) return 0;
  std::cerr << "tutti " << name << ": cannot write to stdout" << (errno == 0 ? "" : ": ")
            << (errno == 0 ? "" : std::strerror(errno)) << "\n";
  return tutti::tools::exit_output_lost;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  if (name == "--help" || name == "-h" || name == "help") {
    print_usage(std::cout);
    return finish_output(name);
  }
  if (name == "--version") {
    std::cout << "tutti " << tutti::version() << "\n";
    return finish_output(name);
  }
  for (const Command& command : commands) {
    if (command.name != name) continue;
    try {
      const int status = command.run(tutti::tools::Arguments(argv + 2, argv + argc));
      return status == 0 ? finish_output(name) : status;
    } catch (const std::exception& error) {
      std::cerr << "tutti " << name << ": " << error.what() << "\n";
      return tutti::tools::exit_failure;
    }
  }
  if (!name.empty()) {
    std::string known;
    for (const Command& command : commands) {
      if (!command.summary.empty()) known += std::string(command.name) + ",";
    }
    std::cerr << "tutti: unknown command `" << name << "`"
              << tutti::tools::did_you_mean(std::string(name), known) << "\n";
  }
  print_usage(std::cerr);
  return tutti::tools::exit_usage;
}
