#pragma once

#include <map>
#include <mutex>
#include <string>

#include "core/security/guard.h"

namespace tutti::security {

// `Refusals` collects a listener's failed guards: it logs them, without letting strangers fill the log, and
// remembers the last one that may explain why a rank is missing. Each sort of failure has warnings of its
// own, so that many processes without a token do not hide the one with another token. Any thread may call it.
class Refusals {
 public:
  // `where`: "tcp", "the store" ...
  void add(const char* where, const Guard& guard);
  // The reason for the last refusal of a process that speaks our protocol; empty if there was none.
  std::string last() const;

 private:
  mutable std::mutex mutex_;
  std::string last_;
  std::map<Guard::Verdict, int> told_;  // warnings, by sort
};

}  // namespace tutti::security
