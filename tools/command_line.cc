#include "tools/command_line.h"

#include <algorithm>
#include <iostream>

#include <tutti/config.h>

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

int usage_error(const CLI::App& app, const std::string& message) {
  return usage_error(app.get_name(), message);
}

int usage_error(const std::string& command, const std::string& message) {
  std::cerr << command << ": " << message << "\nTry `" << command << " --help`.\n";
  return exit_usage;
}

}  // namespace tutti::tools
