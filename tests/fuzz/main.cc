// Runs a fuzz target on the inputs of a corpus, and on prefixes of each input, since data from outside may
// end anywhere. Each file is one input. The exception is `found`, which has one input on each line, in
// hexadecimal digits. Builds for libFuzzer use the main() of libFuzzer.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t most_beginnings = 512;

Bytes read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

std::vector<Bytes> inputs_of(const std::filesystem::path& path) {
  if (path.filename() != "found") return {read_file(path)};
  std::vector<Bytes> inputs;
  std::ifstream lines(path);
  for (std::string line; std::getline(lines, line);) {
    Bytes& input = inputs.emplace_back();
    for (std::size_t i = 0; i + 1 < line.size(); i += 2) {
      input.push_back(static_cast<std::uint8_t>(std::stoi(line.substr(i, 2), nullptr, 16)));
    }
  }
  return inputs;
}

void run(const Bytes& whole) {
  const std::size_t step = std::max<std::size_t>(1, whole.size() / most_beginnings);
  for (std::size_t size = 0; size < whole.size(); size += step) {
    const Bytes beginning(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    LLVMFuzzerTestOneInput(beginning.data(), beginning.size());
  }
  LLVMFuzzerTestOneInput(whole.data(), whole.size());
}

}  // namespace

int main(int argc, char** argv) {
  int inputs = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::printf("%s\n", entry.path().filename().c_str());
      std::fflush(stdout);
      for (const Bytes& input : inputs_of(entry.path())) {
        run(input);
        ++inputs;
      }
    }
  }
  std::printf("%d inputs\n", inputs);
  return inputs > 0 ? 0 : 1;
}
