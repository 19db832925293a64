#include "core/file_pattern.h"

#include <cstdint>

#include <sys/stat.h>

namespace tutti {

namespace {

bool is_folder(const std::string& path) {
  struct stat found = {};
  return path.ends_with('/') || (stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode));
}

// Returns the text in a form that is safe as part of a file's name. The name of a job may contain anything.
// The result cannot lead out of the folder (as `..` or an empty text would), and cannot control a terminal.
std::string in_one_folder(std::string text) {
  for (char& c : text) c = c == '/' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '_' : c;
  if (text.empty() || text.front() == '.') text.insert(0, 1, '_');
  return text;
}

std::string replace(std::string_view pattern, const FileNameParts& parts) {
  std::string result;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    switch (next) {
      case 'r':
        result += std::to_string(parts.rank);
        break;
      case 'h':
        result += in_one_folder(parts.host);
        break;
      case 'p':
        result += std::to_string(parts.pid);
        break;
      case 'j':
        result += in_one_folder(parts.job);
        break;
      case '%':
        result += '%';
        break;
      default:
        result += pattern[i];
        continue;
    }
    ++i;
  }
  return result;
}

}  // namespace

std::string expand_file_pattern(std::string_view pattern, std::string_view name, const FileNameParts& parts) {
  std::string whole(pattern);
  if (is_folder(whole)) {
    if (!whole.ends_with('/')) whole += '/';
    whole += name;
  }
  if (whole.find("%r") == whole.npos && whole.find("%p") == whole.npos) {
    const std::size_t slash = whole.rfind('/');
    const std::size_t first = slash == whole.npos ? 0 : slash + 1;
    const std::size_t dot = whole.rfind('.');
    whole.insert(dot == whole.npos || dot <= first ? whole.size() : dot, ".%r");
  }
  return replace(whole, parts);
}

}  // namespace tutti
