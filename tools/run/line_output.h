#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "tools/run/terminal.h"

namespace tutti::tools {

// A `LineSource` is one source of text for a `LineOutput`. The caller owns it.
struct LineSource {
  std::string tag;      // in front of each line
  std::string partial;  // the line that has not ended yet
  std::uint64_t total = 0;
  bool aged = false;  // `partial` has not grown since the last check
  bool watched = false;
};

// `LineOutput` shows the text of many sources on one terminal so that a line never mixes two sources.
//
// A line is shown when it is complete. An unfinished line is shown when it gets too long to keep,
// or when its source falls silent (progress bars, prompts). There is one exception: the unfinished
// line of a silent source is not shown yet if the source has written a multiple of 4096 bytes. The
// reason is that stdio flushes a full buffer of that size even in the middle of a line. After an
// unfinished line has been shown, the next text of another source starts on a new line.
class LineOutput {
 public:
  LineOutput(asio::io_context& io, Terminal& terminal, bool timestamp);

  void write(LineSource& source, std::string_view bytes);
  // Shows the rest of the text of a source that has ended.
  void finish(LineSource& source);
  // Shows whole lines from the launcher itself.
  void note(std::string_view lines);

 private:
  void show(LineSource& source, std::string_view text);
  void leave_open_line(const LineSource* next);
  std::string prefix(const LineSource& source) const;
  void watch(LineSource& source);
  void look();

  Terminal& terminal_;
  const bool timestamp_;
  const LineSource* open_ = nullptr;  // the source of the unfinished line at the cursor
  bool open_returned_ = false;        // the cursor is at the beginning of that line, after a carriage return
  asio::steady_timer timer_;
  std::vector<LineSource*> watched_;
};

}  // namespace tutti::tools
