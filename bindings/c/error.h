#pragma once

#include <exception>
#include <new>
#include <string>
#include <utility>

#include <tutti/status.h>

// These functions keep each thread's last error, and convert exceptions to the codes of the C interface, so
// that no exception leaves the library.
namespace tutti::c {

// Makes `status` this thread's last error, and returns its code.
int fail(const Status& status);
// Returns this thread's last error.
Status last_error();
// Clears this thread's last error.
void forget_error();

inline Error invalid(std::string message) {
  return Error(Status(Code::invalid_argument, std::move(message)));
}

// Calls `body()`, which throws if it fails. Returns TUTTI_OK or the code of the error.
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
