#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include <tutti/deadline.h>
#include <tutti/status.h>

#include "control/notes.h"

namespace tutti {

// `Inquiry` collects the progress of all members when an operation has timed out at one of them, and names
// the members that are late.
class Inquiry {
 public:
  // `about` is the operation, as described by the member where it timed out.
  Inquiry(ExpiredNote about, int size);

  const CallNote& call() const { return about_; }
  // Takes a rank's answer. Only its first answer about this operation counts.
  void take_answer(int rank, const HereNote& answer);
  // Notes that the operation has timed out on `rank` too. This means that the rank has called the operation,
  // so it need not answer.
  void take_report(int rank, const ExpiredNote& expired);
  // Returns whether all members have answered, or have had enough time to answer.
  bool is_over() const { return open_ == 0 || until_.expired(); }
  Deadline next_deadline() const { return until_; }
  // Names the members that have not called the operation, and those that have not answered.
  Status verdict(const std::function<std::string(int rank)>& describe) const;
  // Returns the only member that the verdict names, or -1 if it names none or several.
  int culprit() const;

 private:
  std::vector<int> silent() const;

  const ExpiredNote about_;
  const Deadline until_;
  std::vector<bool> answered_;
  std::vector<int> late_;
  std::size_t open_;  // answers that are still missing
};

}  // namespace tutti
