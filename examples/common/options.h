#pragma once

#include <charconv>
#include <cstdlib>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/tutti.h>

// `Options` is the command line of the examples in C++. The options have the names that PyTorch programs use:
//   --rank R --world-size N --init-method URL --backend tutti
// "--rank=0" means the same as "--rank 0". The backend "tutti" leaves the choice of transports to
// tutti. Any other backend is the name of a transport, such as "tcp". Missing options are taken from the
// environment variables that `tutti run` and other launchers set.
class Options {
 public:
  // `extra` holds the names of further options of the example.
  Options(int argc, char** argv, const std::vector<std::string>& extra = {}) {
    std::vector<std::string> known{"rank", "world-size", "init-method", "backend"};
    known.insert(known.end(), extra.begin(), extra.end());
    for (int i = 1; i < argc; ++i) i += take(argv[i], i + 1 < argc ? argv[i + 1] : nullptr, known, argv[0]);

    if (has("rank")) init.rank = number("rank", 0);
    if (has("world-size")) init.world_size = number("world-size", 0);
    init.url = text("init-method", "");
    const std::string backend = text("backend", "tutti");
    if (backend != "tutti") init.transports = {backend};
  }

  tutti::InitOptions init;

  bool has(const std::string& name) const { return values_.count(name) != 0; }
  std::string text(const std::string& name, const std::string& otherwise) const {
    return has(name) ? values_.at(name) : otherwise;
  }
  // Returns the option's value as a number of the same type as `otherwise`. Returns `otherwise` if
  // the option is not given.
  template <class Number>
  Number number(const std::string& name, Number otherwise) const {
    if (!has(name)) return otherwise;
    const std::string& value = values_.at(name);
    Number result{};
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
    if (error == std::errc() && end == value.data() + value.size()) return result;
    throw std::invalid_argument("--" + name + ": \"" + value + "\" is not a valid number, or out of range");
  }

 private:
  // Reads the option `argument`. Returns 1 if its value is the next argument, otherwise 0.
  int take(std::string_view argument, const char* next, const std::vector<std::string>& known,
           const char* program) {
    if (argument == "--help" || argument == "-h") {
      std::cout << "usage: " << program;
      for (const std::string& name : known) std::cout << " [--" << name << " VALUE]";
      std::cout << std::endl;
      std::exit(0);
    }
    const std::size_t equals = argument.find('=');
    const bool dashes = argument.substr(0, 2) == "--";
    std::string name(dashes ? argument.substr(2, equals == argument.npos ? equals : equals - 2) : argument);
    for (char& c : name) c = c == '_' ? '-' : c;
    bool found = false;
    for (const std::string& one : known) found = found || one == name;
    if (!dashes || !found)
      throw std::invalid_argument("unknown argument " + std::string(argument) + " (see --help)");
    if (equals == argument.npos && next == nullptr)
      throw std::invalid_argument("--" + name + " needs a value");
    values_[name] = equals == argument.npos ? next : std::string(argument.substr(equals + 1));
    return equals == argument.npos ? 1 : 0;
  }

  std::map<std::string, std::string> values_;
};
