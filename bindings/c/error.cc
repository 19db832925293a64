#include "bindings/c/error.h"

#include <string>
#include <string_view>

#include <tutti/c.h>
#include <tutti/status.h>
#include <tutti/version.h>

namespace tutti::c {

namespace {

static_assert(static_cast<int>(Code::ok) == TUTTI_OK);
static_assert(static_cast<int>(Code::timeout) == TUTTI_ERROR_TIMEOUT);
static_assert(static_cast<int>(Code::peer_lost) == TUTTI_ERROR_PEER_LOST);
static_assert(static_cast<int>(Code::aborted) == TUTTI_ERROR_ABORTED);
static_assert(static_cast<int>(Code::mismatch) == TUTTI_ERROR_MISMATCH);
static_assert(static_cast<int>(Code::unauthenticated) == TUTTI_ERROR_UNAUTHENTICATED);
static_assert(static_cast<int>(Code::unreachable) == TUTTI_ERROR_UNREACHABLE);
static_assert(static_cast<int>(Code::invalid_argument) == TUTTI_ERROR_INVALID_ARGUMENT);
static_assert(static_cast<int>(Code::unsupported) == TUTTI_ERROR_UNSUPPORTED);
static_assert(static_cast<int>(Code::resource_exhausted) == TUTTI_ERROR_RESOURCE_EXHAUSTED);
static_assert(static_cast<int>(Code::protocol_error) == TUTTI_ERROR_PROTOCOL);
static_assert(static_cast<int>(Code::internal) == TUTTI_ERROR_INTERNAL);

struct Last {
  Status status;
  std::string text;
};

Last& last() {
  thread_local Last value;
  return value;
}

bool is_code(int code) { return code >= TUTTI_OK && code <= TUTTI_ERROR_INTERNAL; }

}  // namespace

int fail(const Status& status) {
  last() = {status, status.ok() ? std::string() : status.to_string()};
  return static_cast<int>(status.code());
}

Status last_error() { return last().status; }

void forget_error() { last() = {}; }

}  // namespace tutti::c

const char* tutti_code_name(int code) {
  // `to_string` returns string literals, which end with a NUL.
  return tutti::c::is_code(code) ? tutti::to_string(static_cast<tutti::Code>(code)).data() : "unknown";
}

const char* tutti_error_message() { return tutti::c::last().text.c_str(); }

int tutti_error_peer() { return tutti::c::last().status.peer(); }

int tutti_error_set(int code, const char* message) {
  const auto known = tutti::c::is_code(code) ? static_cast<tutti::Code>(code) : tutti::Code::internal;
  const std::string text = message == nullptr ? "" : message;
  return tutti::c::fail(known == tutti::Code::ok ? tutti::Status() : tutti::Status(known, text));
}

const char* tutti_version() { return tutti::version().data(); }
