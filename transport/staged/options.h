#pragma once

#include <cstddef>
#include <string>

namespace tutti::staged {

// `Options` are the parameters of a staged offload.
struct Options {
  std::string cuda_library = {};  // the file of the CUDA driver; if empty, the driver that the system finds
  // A piece of a call has at most this many bytes of each buffer, or one element of each block if
  // that is more. The number is a multiple of 8, and equal on all ranks.
  std::size_t piece_bytes = std::size_t{1} << 20;
};

}  // namespace tutti::staged
