#include "bindings/torch/error.h"

#include <string>

#include <c10/util/Exception.h>

#include <tutti/c.h>

namespace tutti_torch {

std::exception_ptr last_error(int code, const char* what, std::chrono::milliseconds timeout) {
  std::string text = std::string("tutti: ") + what + ": ";
  // Gloo's timeout errors contain this text, and some programs search for it. So they recognize tutti's
  // timeouts, too.
  if (code == TUTTI_ERROR_TIMEOUT) text += "Timed out waiting " + std::to_string(timeout.count()) + "ms: ";
  text += tutti_error_message();
  const c10::SourceLocation here{__func__, __FILE__, static_cast<std::uint32_t>(__LINE__)};
  if (code == TUTTI_ERROR_INVALID_ARGUMENT) return std::make_exception_ptr(c10::Error(here, text));
  if (code == TUTTI_ERROR_UNSUPPORTED) return std::make_exception_ptr(c10::NotImplementedError(here, text));
  return std::make_exception_ptr(c10::DistBackendError(here, text));
}

void check(int code, const char* what) {
  if (code != TUTTI_OK) std::rethrow_exception(last_error(code, what, std::chrono::milliseconds(0)));
}

}  // namespace tutti_torch
