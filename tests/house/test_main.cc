#include <cstdlib>
#include <iostream>
#include <string>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace {

// ctest interprets this exit code as "skipped" (TUTTI_TEST_SKIP_CODE in tests/cmake/tutti_test.cmake).
constexpr int skip_exit_code = 77;

std::string one_line(const char* text) {
  std::string line(text);
  for (char& c : line) {
    if (c == '\n') c = ' ';
  }
  return line;
}

// `Summary` records the skipped tests and the reasons, since ctest does not show the output of a
// suite that passed. It appends to a file that `./dev test` summarizes at the end. Each process adds a
// line `ran N passed N failed N skipped N`, and a line for each skip.
class Summary : public testing::EmptyTestEventListener {
 public:
  void OnTestEnd(const testing::TestInfo& test) override {
    const testing::TestResult& result = *test.result();
    if (!result.Skipped()) return;
    std::string reason = "no reason given";
    for (int i = 0; i < result.total_part_count(); ++i) {
      const testing::TestPartResult& part = result.GetTestPartResult(i);
      if (part.skipped() && *part.message() != '\0') reason = one_line(part.message());
    }
    lines_ += std::string("skip ") + test.test_suite_name() + "." + test.name() + ": " + reason + "\n";
  }

  void OnTestProgramEnd(const testing::UnitTest& unit) override {
    std::cout << lines_ << std::flush;
    const char* path = std::getenv("TEST_SUMMARY");
    if (path == nullptr) return;
    lines_ += "ran " + std::to_string(unit.test_to_run_count()) + " passed " +
              std::to_string(unit.successful_test_count()) + " failed " +
              std::to_string(unit.failed_test_count()) + " skipped " +
              std::to_string(unit.skipped_test_count()) + "\n";
    // Many test programs share the file, so all lines are appended in a single write.
    const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0) return;
    if (write(fd, lines_.data(), lines_.size()) < 0) std::cerr << "cannot write " << path << "\n";
    close(fd);
  }

 private:
  std::string lines_;
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  testing::UnitTest& unit = *testing::UnitTest::GetInstance();
  unit.listeners().Append(new Summary);
  const int result = RUN_ALL_TESTS();
  if (result != 0) return result;
  if (unit.test_to_run_count() > 0 && unit.skipped_test_count() == unit.test_to_run_count())
    return skip_exit_code;
  return 0;
}
