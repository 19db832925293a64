#pragma once

// This file replaces CUDA's file of this name when the test includes NCCL's header, so the test needs no CUDA
// toolkit. That header needs only these two names.
typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
