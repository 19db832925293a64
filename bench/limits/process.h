#pragma once

#include <functional>

#include <sys/types.h>

namespace tutti::perf {

// A forked process that runs `work` and exits; killed, if need be, and waited for by the destructor, and by
// the kernel when this process dies.
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
