#pragma once

#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/process.h"
#include "tests/support/scratch_folder.h"

// These helpers are for tests in which another project's launcher starts the program pmi_rank.
namespace tutti::test {

inline const std::string pmi_rank = TUTTI_BIN_DIR "/tests/pmi_rank";

using Words = std::vector<std::string>;

inline Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

inline bool is_installed(const std::string& program) {
  Process search({"sh", "-c", "command -v " + program});
  return search.wait() == 0;
}

// Returns the output that rank 0 writes after the ranks have met once.
inline std::string sum_on(int ranks) {
  return "sum " + std::to_string(ranks * (ranks - 1) / 2) + " of " + std::to_string(ranks) + "\n";
}

// `Errors` is a file that receives the stderr of the ranks. A launcher might lose the last lines,
// since it ends the job as soon as a rank fails.
class Errors {
 public:
  // Returns the command of a rank whose stderr goes to the file. `command` is a line of shell.
  Words rank(const std::string& command = pmi_rank + " 1") const {
    return {"sh", "-c", "exec 2>>" + file_ + "; " + command};
  }
  // Waits until the file contains `text`. Returns false if that takes longer than `ample`.
  bool wait_for(const std::string& text) const {
    const auto end = std::chrono::steady_clock::now() + ample;
    while (this->text().find(text) == std::string::npos) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return true;
  }
  std::string text() const {
    std::ifstream in(file_);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  ScratchFolder folder_;
  std::string file_ = folder_ / "errors";
};

}  // namespace tutti::test
