#pragma once

#include <string>

namespace tutti::nccl {

// `Options` configure the offload. They name the libraries: an empty name means the library that the process
// has loaded, or else the one that the system finds.
struct Options {
  std::string cuda_library = {};
  std::string nccl_library = {};
  // If true, everything that leaves a host must be encrypted. NCCL encrypts nothing, so `create` then fails.
  bool encrypted = false;
};

}  // namespace tutti::nccl
