#include "tools/run/start_failure.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "core/error_text.h"
#include "tools/command_line.h"

namespace tutti::tools {
namespace {

constexpr std::string_view elf_magic = "\177ELF";

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line(256, '\0');
  file.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<std::size_t>(file.gcount()));
  return line.substr(0, line.find('\n'));
}

// Returns a command that runs the file with an interpreter, such as "python3 hello.py", or nothing if the
// file's name suggests no interpreter.
std::string by_interpreter(const std::string& name, const std::string& path, const std::string& search_path) {
  if (path.ends_with(".py")) {
    const bool plain = find_program("python", search_path).problem == 0;
    return (plain ? "python " : "python3 ") + name;
  }
  return path.ends_with(".sh") ? "sh " + name : "";
}

// Says why the file cannot be executed, and suggests what would help.
std::string remedy(const std::string& name, const FoundProgram& found, const std::string& search_path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(found.path, ignored)) return ": it is a folder";
  const std::string start = first_line(found.path);
  const std::string interpreted = by_interpreter(name, found.path, search_path);
  if (found.problem == ENOEXEC && start.starts_with(elf_magic))
    return ": it is built for another kind of machine";
  if (found.problem == ENOEXEC) {
    return ": it is not a program, and its first line names none (#!); try " +
           (interpreted.empty() ? "sh " + name : interpreted);
  }
  return ": it may not be executed; try " + (interpreted.empty() ? "" : interpreted + ", or ") + "chmod +x " +
         found.path;
}

}  // namespace

StartFailure cannot_start(const std::string& name, const FoundProgram& found,
                          const std::string& search_path) {
  std::error_code ignored;
  if (found.problem == ENOENT && !std::filesystem::exists(found.path, ignored)) {
    const bool searched = name.find('/') == std::string::npos;
    return {exit_not_found, name + ": not found" + (searched ? " in PATH or in the current folder" : "")};
  }
  const std::string failure = "cannot start " + name;
  if (found.problem == ENOENT) {
    const std::string line = first_line(found.path);
    return {exit_cannot_execute, failure + ": it needs a file that is not there: " +
                                     (line.starts_with("#!") ? "the program of its first line, " + line
                                                             : "its loader (ldd " + found.path + ")")};
  }
  if (found.problem == EACCES || found.problem == ENOEXEC || found.problem == EISDIR) {
    return {exit_cannot_execute, failure + remedy(name, found, search_path)};
  }
  return {exit_failure, failure + ": " + error_text(found.problem)};
}

}  // namespace tutti::tools
