#pragma once

#include <array>
#include <cstddef>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

constexpr int pixels = 64;  // per image: 8 x 8
constexpr int classes = 10;

struct Image {
  std::array<float, pixels> grey;  // 0 (paper) to 1 (ink)
  int digit;
};

// `Digits` holds the images of data/digits.csv. The test images are used only to measure the accuracy.
struct Digits {
  std::vector<Image> train;
  std::vector<Image> test;
};

// A `Slice` is the indices from `first` up to, but not including, `last`.
struct Slice {
  std::size_t first;
  std::size_t last;
  std::size_t size() const { return last - first; }
};

// Returns the slice of `count` items that belongs to `rank`. The slices of all ranks are disjoint, cover all
// items, and differ in size by at most one.
inline Slice share(std::size_t count, int rank, int ranks) {
  return {count * rank / ranks, count * (rank + 1) / ranks};
}

inline Image parse_image(const std::string& line) {
  std::istringstream fields(line);
  Image image{};
  for (float& grey : image.grey) {
    char comma = 0;
    if (!(fields >> grey >> comma) || comma != ',' || grey < 0 || grey > 16)
      throw std::runtime_error("bad image");
    grey /= 16;
  }
  if (!(fields >> image.digit) || image.digit < 0 || image.digit >= classes)
    throw std::runtime_error("bad digit");
  return image;
}

// Reads the images from the first of `paths` that exists. Every fifth image is a test image.
inline Digits load_digits(std::initializer_list<std::string> paths) {
  std::string tried;
  for (const std::string& path : paths) {
    if (path.empty()) continue;
    tried += " " + path;
    std::ifstream file(path);
    if (!file) continue;
    Digits digits;
    std::string line;
    for (std::size_t i = 0; std::getline(file, line); ++i) {
      try {
        (i % 5 == 4 ? digits.test : digits.train).push_back(parse_image(line));
      } catch (const std::exception& error) {
        throw std::runtime_error(path + ", line " + std::to_string(i + 1) + ": " + error.what());
      }
    }
    if (digits.test.empty()) throw std::runtime_error(path + " holds too few images");
    return digits;
  }
  throw std::runtime_error("cannot read the images; looked at" + tried);
}
