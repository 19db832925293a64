#include "rendezvous/launch/slurm.h"

namespace tutti {

std::string first_slurm_host(std::string_view node_list) {
  // Each bracket contributes its first element: "rack[2-3]n[08,11]-ib" starts with "rack2n08-ib".
  std::string host;
  for (std::size_t i = 0; i < node_list.size() && node_list[i] != ',';) {
    if (node_list[i] != '[') {
      host += node_list[i++];
      continue;
    }
    const std::size_t close = node_list.find(']', i);
    if (close == node_list.npos) return {};
    const std::string_view inside = node_list.substr(i + 1, close - i - 1);
    host += inside.substr(0, inside.find_first_of(",-"));
    i = close + 1;
  }
  return host;
}

std::uint16_t slurm_port(std::string_view job_id, std::string_view step_id) {
  constexpr std::uint32_t first = 10000, count = 20000;
  std::uint32_t hash = 2166136261u;  // FNV-1a
  for (const std::string_view part : {job_id, std::string_view("."), step_id}) {
    for (const char c : part) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  }
  return static_cast<std::uint16_t>(first + hash % count);
}

}  // namespace tutti
