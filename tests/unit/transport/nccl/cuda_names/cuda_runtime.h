#pragma once

// This file stands for CUDA's own when the test includes NCCL's header, which needs only these two names. So
// the test needs no CUDA toolkit.
typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
