#include "tools/doctor/wording.h"

#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "core/shown.h"

namespace tutti::tools::doctor {

std::string join(const std::vector<std::string>& names, std::size_t most) {
  const std::size_t named = names.size() <= most ? names.size() : most - 1;
  std::string text;
  for (std::size_t i = 0; i < named; ++i) text += (i > 0 ? ", " : "") + printable(names[i]);
  if (named < names.size()) text += fmt::format(" and {} more", names.size() - named);
  return text;
}

std::string names_of(const Examined& examined, const std::vector<std::size_t>& hosts) {
  std::vector<std::string> names;
  for (const std::size_t host : hosts) names.push_back(examined.hosts[host].name);
  return join(names);
}

std::string size_text(std::uint64_t bytes) {
  if (bytes == unlimited) return "unlimited";
  constexpr std::array units = {"", "K", "M", "G", "T", "P", "E"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  const bool is_whole = value >= 10 || std::fmod(value, 1) == 0;
  return fmt::format("{:.{}f}{}", value, is_whole ? 0 : 1, units[unit]);
}

std::string time_text(double microseconds) {
  if (!(microseconds > 0)) return "-";
  if (microseconds < 1000) return fmt::format("{:.0f} us", microseconds);
  return fmt::format("{:.1f} ms", microseconds / 1000);
}

std::string rate_text(double bytes_per_second) {
  if (!(bytes_per_second > 0)) return "-";
  const double bits = bytes_per_second * 8;
  if (bits < 1e9) return fmt::format("{:.0f} Mb/s", bits / 1e6);
  return fmt::format("{:.{}f} Gb/s", bits / 1e9, bits < 1e10 ? 2 : 1);
}

std::string offset_text(double seconds) {
  if (std::abs(seconds) < 50e-6) return "0.0 ms";
  if (std::abs(seconds) < 1) return fmt::format("{:+.1f} ms", seconds * 1e3);
  return fmt::format("{:+.1f} s", seconds);
}

std::string failure_text(const Path& path) {
  if (path.outcome == Outcome::wrong_host) return "another host has this address, too";
  return path.error.empty() ? "no answer" : printable(path.error);
}

std::string interface_text(const ExaminedHost& host, const std::string& address) {
  const InterfaceFacts* owner = host.facts ? owner_of(*host.facts, address) : nullptr;
  return printable(owner != nullptr ? owner->name : address);
}

}  // namespace tutti::tools::doctor
