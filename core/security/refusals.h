#pragma once

#include <mutex>
#include <string>

#include "core/security/guard.h"

namespace tutti::security {

// `Refusals` takes a listener's guards that have failed: it tells the log, without letting strangers fill it,
// and remembers the last one that may explain why somebody is missing. Any thread.
class Refusals {
 public:
  // `where`: "tcp", "the store" ...
  void add(const char* where, const Guard& guard);
  // Of one who speaks our protocol; empty if there was none.
  std::string last() const;

 private:
  mutable std::mutex mutex_;
  std::string last_;
  int told_ = 0;
};

}  // namespace tutti::security
