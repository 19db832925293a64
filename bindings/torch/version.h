#pragma once

#include <torch/version.h>

// True if the extension is compiled for this version of torch or a later one.
#define TUTTI_TORCH_AT_LEAST(major, minor) \
  (TORCH_VERSION_MAJOR > (major) || (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))
