#pragma once

#include <chrono>
#include <exception>

namespace tutti_torch {

// Returns the calling thread's last error of the C interface as an exception with the library's
// message. torch raises it as torch.distributed.DistBackendError, as RuntimeError for wrong arguments,
// or as NotImplementedError for unsupported calls. The message of a timeout says that the time limit was
// `timeout`.
std::exception_ptr last_error(int code, const char* what, std::chrono::milliseconds timeout);

// Throws the exception that `last_error` returns, unless `code` is TUTTI_OK. Call this only after calls that
// have no time limit, since the message of a timeout would say that the limit was 0 ms.
void check(int code, const char* what);

}  // namespace tutti_torch
