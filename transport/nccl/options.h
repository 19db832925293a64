#pragma once

#include <string>

namespace tutti::nccl {

// `Options` name the libraries. An empty name means the library that the process has loaded, or else the one
// that the system finds.
struct Options {
  std::string cuda_library = {};
  std::string nccl_library = {};
};

}  // namespace tutti::nccl
