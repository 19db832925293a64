#pragma once

#include <string>

namespace tutti::perf {

// Loopback TCP between this process and others, under the named congestion control, or the system's default
// if it is empty. Rates are GB/s.
enum class Sending { copied, pinned };  // pinned: MSG_ZEROCOPY
double tcp_stream_rate(int connections, const std::string& congestion, Sending how = Sending::copied);
// Both ways at once over one connection; bytes of one direction.
double tcp_duplex_rate(const std::string& congestion);
// Half a round trip of 8 bytes in microseconds; `polling`: asks again and again instead of sleeping in the
// kernel.
double tcp_pingpong(bool polling, const std::string& congestion);

// Whether this process may choose it.
bool has_congestion_control(const std::string& name);

}  // namespace tutti::perf
