#pragma once

#include <functional>

#include <sys/types.h>

namespace tutti::perf {

// A `Child` is a forked process that runs `work` and exits. The destructor kills the child if it
// is still running, and waits for its end. The kernel kills the child if the parent dies first.
class Child {
 public:
  explicit Child(const std::function<void()>& work);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

}  // namespace tutti::perf
