#pragma once

#include <cstddef>
#include <memory>

namespace tutti::inproc {

class Hub;

// `Options` are what an inproc transport is made from.
struct Options {
  std::shared_ptr<Hub> hub;  // where it meets the others
  int rank = 0;
  // The bytes that may be on their way in one direction between two ranks, like a socket's buffer. One frame
  // is always allowed.
  std::size_t buffer = 256 * 1024;
};

}  // namespace tutti::inproc
