#include "tools/run/line_output.h"

#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace tutti::tools {
namespace {

// The tested `LineOutput` writes to a pipe instead of a terminal. `shown` returns its whole output
// so far.
class LineOutputTest : public testing::Test {
 protected:
  LineOutputTest() { fcntl(ends_[0], F_SETFL, O_NONBLOCK); }
  ~LineOutputTest() override {
    close(ends_[0]);
    close(ends_[1]);
  }

  std::string shown() {
    char bytes[65536];
    for (;;) {
      const ssize_t got = read(ends_[0], bytes, sizeof bytes);
      if (got <= 0) return shown_;
      shown_.append(bytes, static_cast<std::size_t>(got));
    }
  }
  // Lets all timers expire.
  void fall_silent() {
    io_.restart();
    io_.run();
  }

  const std::array<int, 2> ends_ = [] {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) std::abort();
    return ends;
  }();
  asio::io_context io_;
  Terminal terminal_{io_, ends_[1]};
  LineOutput lines_{io_, terminal_, false};
  LineSource a_ = source("[a]");
  LineSource b_ = source("[b]");
  LineSource plain_;
  std::string shown_;

  static LineSource source(const char* tag) {
    LineSource result;
    result.tag = tag;
    return result;
  }
};

TEST_F(LineOutputTest, WholeLinesAreShownAtOnce) {
  lines_.write(a_, "one\ntwo\n");
  lines_.write(plain_, "three\n");
  EXPECT_EQ(shown(), "[a]one\n[a]two\nthree\n");
}

TEST_F(LineOutputTest, PiecesOfALineComeTogether) {
  lines_.write(a_, "on");
  lines_.write(b_, "tw");
  EXPECT_EQ(shown(), "");
  lines_.write(b_, "o\nrest");
  lines_.write(a_, "e\n");
  lines_.finish(b_);
  EXPECT_EQ(shown(), "[b]two\n[a]one\n[b]rest");
}

TEST_F(LineOutputTest, EmptyLinesStay) {
  lines_.write(a_, "\n\nx\n");
  EXPECT_EQ(shown(), "[a]\n[a]\n[a]x\n");
}

TEST_F(LineOutputTest, SilenceShowsWhatIsUnfinished) {
  lines_.write(a_, "prompt> ");
  fall_silent();
  EXPECT_EQ(shown(), "[a]prompt> ");
  lines_.write(a_, "answer\nnext\n");
  EXPECT_EQ(shown(), "[a]prompt> answer\n[a]next\n");
}

TEST_F(LineOutputTest, SomebodyElseStartsANewLine) {
  lines_.write(a_, "half");
  fall_silent();
  lines_.write(b_, "whole\n");
  lines_.write(a_, "other half\n");
  EXPECT_EQ(shown(), "[a]half\n[b]whole\n[a]other half\n");
}

TEST_F(LineOutputTest, ACarriageReturnIsAStartOfLine) {
  lines_.write(plain_, "10%\r");
  fall_silent();
  lines_.write(b_, "whole\n");
  EXPECT_EQ(shown(), "10%\r[b]whole\n");
}

TEST_F(LineOutputTest, NotesStartOnANewLine) {
  lines_.write(a_, "half");
  fall_silent();
  lines_.note("note\n");
  lines_.note("note\n");
  EXPECT_EQ(shown(), "[a]half\nnote\nnote\n");
}

TEST_F(LineOutputTest, AFullStdioBufferIsNoPrompt) {
  const std::string page(4096, 'x');
  lines_.write(plain_, page);
  fall_silent();
  EXPECT_EQ(shown(), "");
  lines_.write(plain_, "\n");
  EXPECT_EQ(shown(), page + "\n");
}

TEST_F(LineOutputTest, NoLineIsKeptForever) {
  const std::string chunk(10000, 'x');
  for (int i = 0; i < 7; ++i) lines_.write(plain_, chunk);
  // Part of the line is shown at once, before the line ends.
  EXPECT_GE(shown().size(), 60000u);
}

TEST_F(LineOutputTest, TheReadersPaceIsKept) {
  // A pipe cannot hold all lines, so `LineOutput` keeps the rest until the pipe is read.
  const std::string line(99999, 'x');
  for (int i = 0; i < 10; ++i) lines_.write(plain_, line + "\n");
  EXPECT_GT(terminal_.backlog(), 0u);
  while (shown().size() < 1000000u) io_.run_one();
  EXPECT_EQ(terminal_.backlog(), 0u);
}

}  // namespace
}  // namespace tutti::tools
