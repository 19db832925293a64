#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <asio/io_context.hpp>

#include <tutti/status.h>

#include "tools/run/agent_events.h"
#include "tools/run/line_output.h"
#include "tools/run/options.h"
#include "tools/run/terminal.h"

namespace tutti::tools {

// `Output` writes the ranks' output to the launcher's stdout and stderr and to log files. It keeps the end of
// each rank's stderr in memory, for the report about a rank that failed.
class Output {
 public:
  Output(asio::io_context& io, const OutputOptions& options);
  ~Output();

  // Prepares for ranks 0 to `ranks` - 1 and creates their log files. An error names the file.
  Status open(int ranks);
  void write(int rank, Stream stream, std::string_view bytes);
  // Shows the rest of the output of a rank that has ended.
  void finish(int rank);
  // Returns the last lines of the rank's stderr, or of its stdout if the two are merged.
  std::vector<std::string> last_lines(int rank) const;
  // Returns whether some output of the ranks could not be written. The user has already been told.
  bool lost() const { return lost_; }
  // Returns true if the output has no reader: the reader of stdout has exited, and there are no log
  // files.
  bool unread() const { return options_.directory.empty() && out_.reader_gone(); }
  // Writes the launcher's own lines to stderr.
  void note(const std::string& lines);

  // Returns how many bytes still wait to be written to the launcher's stdout and stderr, because their
  // readers are slow.
  std::size_t backlog() const;
  void discard_backlog();
  void on_progress(const std::function<void()>& callback);

 private:
  class LogFile;
  struct RankStream {
    LineSource source;
    std::unique_ptr<LogFile> file;
  };
  struct Rank {
    RankStream streams[2];
    std::string tail;
  };

  Status open_file(RankStream& stream, int rank, const char* name);
  void note_lost(const std::string& name, const std::string& problem);
  void look_at_terminals();
  LineOutput& lines(Stream stream) { return stream == Stream::err && err_lines_ ? *err_lines_ : out_lines_; }

  const OutputOptions options_;
  Terminal out_;
  LineOutput out_lines_;
  // These are absent if stdout and stderr are the same file. Then both streams use `out_lines_`, because two
  // `LineOutput` objects would mix their unfinished lines.
  std::optional<Terminal> err_;
  std::optional<LineOutput> err_lines_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  bool lost_ = false;
  bool terminal_lost_ = false;
};

}  // namespace tutti::tools
