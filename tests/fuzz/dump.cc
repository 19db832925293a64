// Fuzzes the reader of dumps in `tutti debug --merge`. Each line of the input is the dump of a rank.
#include <vector>

#include "tests/fuzz/input.h"
#include "tools/debug/merge.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tutti;
  fuzz::Input input(data, size);
  std::vector<tools::RankDump> dumps;
  while (!input.empty()) {
    auto dump = tools::parse_dump(input.line());
    if (dump.ok()) dumps.push_back(std::move(dump).take());
  }
  fuzz::require(!tools::merge(dumps).empty());
  return 0;
}
