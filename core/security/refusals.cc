#include "core/security/refusals.h"

#include <tutti/log.h>

namespace tutti::security {
namespace {

constexpr int most_warnings = 10;  // for each kind of failure

}  // namespace

void Refusals::add(const char* where, const Guard& guard) {
  const Status& why = guard.status();
  bool warn = false;
  if (guard.is_noteworthy() && why.code() == Code::unauthenticated) {
    const std::lock_guard lock(mutex_);
    last_ = why.message();
    int& told = told_[guard.verdict()];
    warn = told < most_warnings;
    told += warn ? 1 : 0;
  }
  if (warn) {
    log::warn(where, ": refused a connection: ", why.message());
  } else {
    log::debug(where, ": refused a connection: ", why.message());
  }
}

std::string Refusals::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

}  // namespace tutti::security
