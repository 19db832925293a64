#pragma once

#include <map>
#include <mutex>
#include <string>

#include "core/security/guard.h"

namespace tutti::security {

// `Refusals` records the failures of a listener's guards. It logs them, but does not let strangers fill the
// log. It remembers the last failure that may explain why a rank is missing. Each kind of failure has its own
// limit on warnings. Therefore, even a large number of processes without a token cannot hide a process with a
// wrong token. Any thread may call it.
class Refusals {
 public:
  // Records a failure. `where` is "tcp" or "the store", for example.
  void add(const char* where, const Guard& guard);
  // Returns the reason for the last refusal of a process that speaks our protocol but could not prove that it
  // belongs to the job. Returns an empty text if there was no such refusal.
  std::string last() const;

 private:
  mutable std::mutex mutex_;
  std::string last_;
  std::map<Guard::Verdict, int> told_;  // number of warnings, by kind
};

}  // namespace tutti::security
