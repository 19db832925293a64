#include "tools/bench/report.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

#include <tutti/version.h>

namespace tutti::tools {
namespace {

template <class... Values>
std::string format(const char* form, Values... values) {
  char text[512];
  std::snprintf(text, sizeof text, form, values...);
  return text;
}

[[noreturn]] void fail(const std::string& file) {
  throw std::runtime_error("cannot write " + file + ": " + std::strerror(errno));
}

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace

Report::Report(const BenchOptions& options, int ranks) : options_(options), ranks_(ranks) {
  print(format("# tutti %s, %d ranks, transport %s, algorithm %s\n", std::string(version()).c_str(), ranks,
               options.transport.empty() ? "default" : options.transport.c_str(),
               options.algorithm.empty() ? "default" : options.algorithm.c_str()));
  if (options.csv.empty()) return;
  csv_.open(options.csv, std::ios::trunc);
  csv_ << "peer,collective,bytes,ranks,lat_us_median,lat_us_p99,algbw_GBps,busbw_GBps\n" << std::flush;
  if (!csv_) fail(options.csv);
}

void Report::begin(const MeasuredInfo& info) {
  print(format("#\n# %s\n#%11s %12s %12s %8s %12s %12s %11s %11s %8s\n", std::string(info.name).c_str(),
               "bytes", "count", "type", "redop", "median us", "p99 us", "algbw GB/s", "busbw GB/s",
               "wrong"));
}

void Report::add(const MeasuredInfo& info, std::uint64_t asked, const BenchOperation& operation,
                 const Measurement& found) {
  const double gigabytes = static_cast<double>(operation.bytes()) / 1e9;
  const double algorithm_bandwidth = gigabytes / (found.median_us / 1e6);
  const double bus_bandwidth = algorithm_bandwidth * info.bus_factor(ranks_);
  print(format("%12llu %12llu %12s %8s %12.2f %12.2f %11.4f %11.4f %8llu\n",
               static_cast<unsigned long long>(asked), static_cast<unsigned long long>(operation.elements()),
               std::string(to_string(options_.type)).c_str(),
               info.reduces ? options_.op.name().c_str() : "none", found.median_us, found.p99_us,
               algorithm_bandwidth, bus_bandwidth, static_cast<unsigned long long>(found.wrong)));
  if (!csv_.is_open() || found.wrong > 0) return;
  const std::string peer = options_.transport.empty() ? "tutti" : "tutti-" + options_.transport;
  csv_ << format("%s,%s,%llu,%d,%.2f,%.2f,%.4f,%.4f\n", peer.c_str(), std::string(info.name).c_str(),
                 static_cast<unsigned long long>(asked), ranks_, found.median_us, found.p99_us,
                 algorithm_bandwidth, bus_bandwidth)
       << std::flush;
  if (!csv_) fail(options_.csv);
}

}  // namespace tutti::tools
