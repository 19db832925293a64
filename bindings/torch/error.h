#pragma once

#include <chrono>
#include <exception>

namespace tutti_torch {

// Returns the calling thread's last error of the C interface as an exception with the library's message.
// torch raises it as torch.distributed.DistBackendError (RuntimeError for wrong arguments).
std::exception_ptr last_error(int code, const char* what, std::chrono::milliseconds timeout);

// Throws that exception, with a timeout of 0 ms, unless `code` is TUTTI_OK. Use this only after calls that do
// not wait for an operation with a time limit.
void check(int code, const char* what);

}  // namespace tutti_torch
