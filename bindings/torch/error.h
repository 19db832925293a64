#pragma once

#include <chrono>
#include <exception>

namespace tutti_torch {

// Returns the calling thread's last error of the C interface as an exception with the library's message.
// torch raises it as torch.distributed.DistBackendError (RuntimeError for wrong arguments). If the operation
// timed out, the message says that its time limit was `timeout`.
std::exception_ptr last_error(int code, const char* what, std::chrono::milliseconds timeout);

// Throws that exception unless `code` is TUTTI_OK. Call this only after calls without a time limit: the
// message of a timeout would say 0 ms.
void check(int code, const char* what);

}  // namespace tutti_torch
