#pragma once

// This file replaces CUDA's file of this name when the test includes NCCL's header. That header uses nothing
// of it.
