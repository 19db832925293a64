#pragma once

// This file replaces CUDA's file of the same name when the test includes NCCL's header. It is
// empty, since NCCL's header uses none of its contents.
