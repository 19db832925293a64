#include "tools/command_line.h"

#include <algorithm>
#include <iostream>

#include <tutti/config.h>
#include <tutti/config_values.h>

#include "tools/processors.h"

namespace tutti::tools {

std::optional<int> parse(CLI::App& app, const Arguments& arguments) {
  try {
    Arguments reversed(arguments.rbegin(), arguments.rend());  // the order that CLI11 expects
    app.parse(std::move(reversed));
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    return 0;
  } catch (const CLI::ParseError& error) {
    return usage_error(app, error.what());
  }
}

CLI::Option* add_ranks_option(CLI::App& app, int& ranks, const std::string& meaning) {
  const auto number = [](const std::string& text) {
    return text == "auto" ? std::to_string(usable_processors()) : text;
  };
  return app.add_option("-n", ranks, meaning + ";\nauto: one for each processor that the ranks can use")
      ->transform(number)
      ->check(CLI::Range(1, max_ranks).description(""))
      ->type_name("N|auto");
}

void add_duration(CLI::App& app, const std::string& name, std::chrono::nanoseconds& value,
                  std::chrono::nanoseconds least, const std::string& meaning) {
  const auto convert = [least](const std::string& text) {
    const auto duration = parse_duration(text);
    return duration && *duration >= least ? duration : std::nullopt;
  };
  const std::string needs = "a duration like 500ms or 10s" +
                            (least.count() > 0 ? ", of at least " + format_duration(least) : std::string());
  add_converted(app, name, value, convert, needs, meaning)
      ->type_name("DURATION")
      ->default_str(format_duration(value));
}

int usage_error(const CLI::App& app, const std::string& message) {
  return usage_error(app.get_name(), message);
}

int usage_error(const std::string& command, const std::string& message) {
  std::cerr << command << ": " << message << "\nTry `" << command << " --help`.\n";
  return exit_usage;
}

}  // namespace tutti::tools
