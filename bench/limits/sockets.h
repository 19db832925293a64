#pragma once

#include <string>

namespace tutti::perf {

// These functions measure loopback TCP between this process and others. `congestion` names the
// congestion control, and an empty text means the system's default. Rates are in GB/s.
enum class Sending { copied, pinned };  // pinned: MSG_ZEROCOPY
double tcp_stream_rate(int connections, const std::string& congestion, Sending how = Sending::copied);
// Measures one connection that carries data in both directions at once. The rate counts one direction.
double tcp_duplex_rate(const std::string& congestion);
// Returns half the time of a round trip of 8 bytes, in microseconds. With `polling`, the receiver polls the
// socket instead of sleeping in the kernel.
double tcp_pingpong(bool polling, const std::string& congestion);

// Returns whether this process may use the congestion control `name`.
bool has_congestion_control(const std::string& name);

}  // namespace tutti::perf
