#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/doctor/examined.h"

// These functions make short texts that the findings and the report share. All texts are printable.
namespace tutti::tools::doctor {

// Returns "alpha, beta and 3 more".
std::string join(const std::vector<std::string>& names, std::size_t most = 5);
// Returns the names of the hosts with these numbers, in the form of `join`.
std::string names_of(const Examined& examined, const std::vector<std::size_t>& hosts);

// Returns "63G", "1.5M" or "unlimited", rounded.
std::string size_text(std::uint64_t bytes);
// These return texts such as "45 us", "1.2 ms" and "9.41 Gb/s". Each returns "-" if there is no
// value.
std::string time_text(double microseconds);
std::string rate_text(double bytes_per_second);
// Returns "+0.3 ms".
std::string offset_text(double seconds);
// Returns "Connection timed out", "Connection refused", ...
std::string failure_text(const Path& path);
// Returns the name of the interface that has the address, or the address.
std::string interface_text(const ExaminedHost& host, const std::string& address);

}  // namespace tutti::tools::doctor
