#pragma once

#include <exception>
#include <new>
#include <string>
#include <utility>

#include <tutti/status.h>

// Between the C interface and exceptions: none gets out.
namespace tutti::c {

// Makes it this thread's last error; the code of `status`.
int fail(const Status& status);
// This thread's last error; and forgets it.
Status last_error();
void forget_error();

inline Error invalid(std::string message) {
  return Error(Status(Code::invalid_argument, std::move(message)));
}

// `body()`, which throws if it fails; TUTTI_OK or a code.
template <class Body>
int guarded(Body&& body) noexcept {
  try {
    body();
    return 0;
  } catch (const Error& error) {
    return fail(error.status());
  } catch (const std::bad_alloc&) {
    return fail(Status(Code::resource_exhausted, "out of memory"));
  } catch (const std::exception& error) {
    return fail(Status(Code::internal, error.what()));
  }
}

}  // namespace tutti::c
