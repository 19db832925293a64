#pragma once

// This file replaces CUDA's file of the same name when the test includes NCCL's header. So the test
// needs no CUDA toolkit. NCCL's header needs only these two names.
typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
