#include "tools/doctor/findings.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace tutti::tools::doctor {

std::vector<Finding> find_all(const Examined& examined) {
  std::vector<Finding> all;
  for (auto* find : {find_in_hosts, find_unreached, find_mtus, find_in_cards, find_notes}) {
    for (Finding& finding : find(examined)) all.push_back(std::move(finding));
  }
  std::ranges::stable_sort(all, std::greater<>(), &Finding::is_problem);
  return all;
}

}  // namespace tutti::tools::doctor
