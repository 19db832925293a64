#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "tools/commands.h"

namespace tutti::tools {

// These are the exit statuses that shells expect of commands.
inline constexpr int exit_failure = 1;
inline constexpr int exit_usage = 2;
// This status means that some of the output could not be written. It is EX_IOERR of sysexits.h.
inline constexpr int exit_output_lost = 74;
inline constexpr int exit_cannot_execute = 126;
inline constexpr int exit_not_found = 127;
inline constexpr int exit_signal_base = 128;

// Parses the arguments into the variables that are bound to `app`. It prints the help if the user
// asked for it, or an error if the arguments are wrong. In both cases it returns the exit status. In
// all other cases it returns nothing.
std::optional<int> parse(CLI::App& app, const Arguments& arguments);

// Adds an option with a value of type `Value`, which `convert` makes from the text. `convert`
// returns nothing if the text is wrong. The error then contains `needs`, which describes the
// allowed values.
template <class Value, class Convert>
CLI::Option* add_converted(CLI::App& app, const std::string& name, Value& value, Convert convert,
                           const std::string& needs, const std::string& meaning) {
  const auto set = [&value, convert, name, needs](const std::string& text) {
    const auto converted = convert(text);
    if (!converted) throw CLI::ValidationError(name + " needs " + needs + ", not `" + text + "`");
    value = *converted;
  };
  return app.add_option_function<std::string>(name, set, meaning);
}

// Adds an option whose value is a duration of at least `least`.
void add_duration(CLI::App& app, const std::string& name, std::chrono::nanoseconds& value,
                  std::chrono::nanoseconds least, const std::string& meaning);

// Returns whether `app` has an option `name` (such as "--wdir") that takes a value.
bool takes_value(const CLI::App& app, const std::string& name);

// Adds the option -n, the number of ranks. The value `auto` means one rank for each processor that the ranks
// can use.
CLI::Option* add_ranks_option(CLI::App& app, int& ranks, const std::string& meaning);

// Prints "NAME: message" to stderr, with a hint to try --help. Returns `exit_usage`.
int usage_error(const CLI::App& app, const std::string& message);
int usage_error(const std::string& command, const std::string& message);

}  // namespace tutti::tools
