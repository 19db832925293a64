#pragma once

#include <cstddef>
#include <string>

namespace tutti::staged {

// `Options` are the parameters of a staged offload.
struct Options {
  std::string driver = {};  // the library of the CUDA driver; if empty, it is looked for
  // Of each buffer, a piece of a call has at most this many bytes, or one element of each block if that is
  // more. A multiple of 8, equal on all ranks.
  std::size_t piece_bytes = std::size_t{1} << 20;
};

}  // namespace tutti::staged
