#pragma once

// This file stands for CUDA's own when the test includes NCCL's header, which uses nothing of it.
