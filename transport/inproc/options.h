#pragma once

#include <cstddef>
#include <memory>

namespace tutti::inproc {

class Hub;

// `Options` are what an inproc transport is made from.
struct Options {
  std::shared_ptr<Hub> hub;  // where it meets the others
  int rank = 0;
  // The buffer limits the bytes on their way in one direction between two ranks, as a socket's buffer does. A
  // frame that is larger passes alone.
  std::size_t buffer = 256 * 1024;
};

}  // namespace tutti::inproc
