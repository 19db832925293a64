#pragma once

#include <string>

namespace tutti::nccl {

// `Options` name the libraries. An empty name means the one that the process has loaded or the system finds.
struct Options {
  std::string cuda_library = {};
  std::string nccl_library = {};
};

}  // namespace tutti::nccl
