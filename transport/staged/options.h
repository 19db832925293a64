#pragma once

#include <cstddef>
#include <string>

namespace tutti::staged {

// `Options` are the parameters of a staged offload.
struct Options {
  // The file of the CUDA driver. If this is empty, the driver is the one that the process has loaded, or else
  // the one that the system finds.
  std::string cuda_library = {};
  // A piece of a call has at most this many bytes of each buffer, or one element of each block if
  // that is more. The number is a multiple of 8, and equal on all ranks.
  std::size_t piece_bytes = std::size_t{1} << 20;
};

}  // namespace tutti::staged
