#include "bench/limits/timing.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace tutti::perf {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double time_of(const std::function<void()>& call, int calls) {
  constexpr std::size_t fewest = 3;
  call();
  std::vector<double> times;
  const double end = seconds_now() + std::chrono::duration<double>(span).count();
  while (seconds_now() < end || times.size() < fewest) {
    const double begin = seconds_now();
    for (int i = 0; i < calls; ++i) call();
    times.push_back((seconds_now() - begin) / calls);
  }
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
  return times[times.size() / 2];
}

void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

}  // namespace tutti::perf
