#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tutti {

// `FileNameParts` holds what a pattern inserts into the name of a file. Each rank writes its own file.
struct FileNameParts {
  int rank = 0;
  std::string host;
  std::int64_t pid = 0;
  std::string job;
};

// Returns the name that `pattern` stands for: %r is the rank, %h the host, %p the process, %j the
// job, %% a percent sign. If `pattern` is a folder, the file is `name` in that folder. If the
// pattern contains neither %r nor %p, the rank is inserted before the last suffix: "trace.json"
// becomes "trace.3.json" on rank 3. So ranks do not overwrite each other's files.
std::string expand_file_pattern(std::string_view pattern, std::string_view name, const FileNameParts& parts);

}  // namespace tutti
