// Measures the limits of this machine, for comparison with the other results. This program measures each
// metric once, and prints a line "metric,value,unit" for it. `./dev bench` runs it in every round.
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "bench/limits/memory.h"
#include "bench/limits/signals.h"
#include "bench/limits/sockets.h"
#include "bench/limits/timing.h"

namespace tutti::perf {
namespace {

struct Metric {
  std::string name;
  const char* unit;
  std::function<double()> measure;
};

std::vector<Metric> memory_metrics() {
  constexpr std::size_t small = mebibyte;
  constexpr std::size_t large = 64 * mebibyte;
  return {
      {"memcpy_1MiB", "GB/s", [] { return copy_rate(small, 1); }},
      {"memcpy_64MiB", "GB/s", [] { return copy_rate(large, 1); }},
      {"memcpy_64MiB_2threads", "GB/s", [] { return copy_rate(large, 2); }},
      {"sum_1MiB", "GB/s", [] { return sum_rate(small, 1); }},
      {"sum_64MiB", "GB/s", [] { return sum_rate(large, 1); }},
      {"sum_64MiB_2threads", "GB/s", [] { return sum_rate(large, 2); }},
      {"all_reduce_64MiB_2threads", "GB/s", [] { return all_reduce_bound(large); }},
      {"process_vm_readv_64MiB", "GB/s", [] { return read_process_rate(large); }},
      {"cache_line_pingpong", "us", [] { return cache_line_pingpong(Waiting::spin); }},
      {"cache_line_exchange", "us", cache_line_exchange},
      {"cache_line_pingpong_yield", "us", [] { return cache_line_pingpong(Waiting::yield); }},
      {"futex_pingpong", "us", [] { return cache_line_pingpong(Waiting::futex); }},
  };
}

void add_tcp_metrics(std::vector<Metric>& metrics, const std::string& congestion) {
  const std::string end = congestion.empty() ? "" : "_" + congestion;
  metrics.push_back({"tcp_stream" + end, "GB/s", [=] { return tcp_stream_rate(1, congestion); }});
  metrics.push_back(
      {"tcp_stream_2connections" + end, "GB/s", [=] { return tcp_stream_rate(2, congestion); }});
  metrics.push_back(
      {"tcp_stream_zerocopy" + end, "GB/s", [=] { return tcp_stream_rate(1, congestion, Sending::pinned); }});
  metrics.push_back({"tcp_duplex" + end, "GB/s", [=] { return tcp_duplex_rate(congestion); }});
  metrics.push_back({"tcp_pingpong_blocking" + end, "us", [=] { return tcp_pingpong(false, congestion); }});
  metrics.push_back({"tcp_pingpong_polling" + end, "us", [=] { return tcp_pingpong(true, congestion); }});
}

}  // namespace
}  // namespace tutti::perf

int main() {
  using namespace tutti::perf;
  std::vector<Metric> metrics = memory_metrics();
  add_tcp_metrics(metrics, "");
  for (const char* congestion : {"reno", "cubic"}) {
    if (has_congestion_control(congestion)) add_tcp_metrics(metrics, congestion);
  }
  for (const Metric& metric : metrics) {
    std::printf("%s,%.4f,%s\n", metric.name.c_str(), metric.measure(), metric.unit);
    std::fflush(stdout);
  }
}
