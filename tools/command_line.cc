#include <algorithm>
#include <iostream>

#include <tutti/tools/command_line.h>

namespace tutti::tools {

std::optional<int> parse(CLI::App& app, const Arguments& arguments) {
  try {
    Arguments reversed(arguments.rbegin(), arguments.rend());  // the order that CLI11 takes
    app.parse(std::move(reversed));
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    return 0;
  } catch (const CLI::ParseError& error) {
    return usage_error(app, error.what());
  }
}

int usage_error(const CLI::App& app, const std::string& message) {
  std::cerr << app.get_name() << ": " << message << "\nTry `" << app.get_name() << " --help`.\n";
  return exit_usage;
}

}  // namespace tutti::tools
