#include "rendezvous/meeting/program.h"

#include <fstream>

namespace tutti::rendezvous {
namespace {

std::string without_folder(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// These options of Python take the next word as their value.
bool takes_a_value(const std::string& option) { return option == "-W" || option == "-X"; }

}  // namespace

std::vector<std::string> start_command() {
  std::vector<std::string> words;
  std::ifstream file("/proc/self/cmdline");
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

std::string program_of(const std::vector<std::string>& words) {
  if (words.empty()) return {};
  const std::string name = without_folder(words.front());
  if (!name.starts_with("python")) return name;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "-c") return {};
    if (word == "-m") return i + 1 < words.size() ? words[i + 1] : std::string();
    if (!word.starts_with("-")) return without_folder(word);
    if (takes_a_value(word)) ++i;
  }
  return {};
}

}  // namespace tutti::rendezvous
