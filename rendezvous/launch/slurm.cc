#include "rendezvous/launch/slurm.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include <tutti/config_values.h>
#include <tutti/types.h>

namespace tutti {
namespace {

constexpr std::size_t most_hosts = 64 * 1024;  // a list that stands for more hosts is rejected

// Splits at commas outside of brackets.
std::vector<std::string_view> split_items(std::string_view list) {
  std::vector<std::string_view> items;
  std::size_t begin = 0;
  bool inside = false;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] == '[') inside = true;
    if (list[i] == ']') inside = false;
    if (list[i] != ',' || inside) continue;
    items.push_back(list.substr(begin, i - begin));
    begin = i + 1;
  }
  items.push_back(list.substr(begin));
  return items;
}

// Expands the text between brackets: "08-11,15" gives "08", "09", "10", "11" and "15".
std::vector<std::string> expand_numbers(std::string_view text) {
  std::vector<std::string> numbers;
  for (const std::string_view range : split_items(text)) {
    const std::string_view first = range.substr(0, range.find('-'));
    const std::string_view last = first.size() == range.size() ? first : range.substr(first.size() + 1);
    const std::optional<std::int64_t> begin = parse_integer(first);
    const std::optional<std::int64_t> end = parse_integer(last);
    if (!begin || !end || *begin < 0 || *end < *begin) return {};
    if (static_cast<std::size_t>(*end - *begin) >= most_hosts - numbers.size()) return {};
    for (std::int64_t number = *begin; number <= *end; ++number) {
      const std::string digits = std::to_string(number);
      const std::size_t zeros = first.size() - std::min(first.size(), digits.size());
      numbers.push_back(std::string(zeros, '0') + digits);
    }
  }
  return numbers;
}

// Expands an item of a list. Each bracket multiplies the names: "r[2-3]n[08,11]" gives "r2n08", "r2n11",
// "r3n08" and "r3n11".
std::vector<std::string> expand_item(std::string_view item) {
  std::vector<std::string> names = {""};
  while (!item.empty()) {
    const std::size_t open = std::min(item.find('['), item.size());
    for (std::string& name : names) name += item.substr(0, open);
    item.remove_prefix(open);
    if (item.empty()) break;
    const std::size_t close = item.find(']');
    if (close == item.npos) return {};
    const std::vector<std::string> numbers = expand_numbers(item.substr(1, close - 1));
    if (numbers.size() * names.size() > most_hosts) return {};
    std::vector<std::string> longer;
    for (const std::string& name : names) {
      for (const std::string& number : numbers) longer.push_back(name + number);
    }
    names = std::move(longer);
    item.remove_prefix(close + 1);
  }
  return names;
}

}  // namespace

std::vector<std::string> expand_slurm_hosts(std::string_view node_list) {
  std::vector<std::string> hosts;
  for (const std::string_view item : split_items(node_list)) {
    const std::vector<std::string> names = expand_item(item);
    if (item.empty() || names.empty() || names.size() > most_hosts - hosts.size()) return {};
    hosts.insert(hosts.end(), names.begin(), names.end());
  }
  return hosts;
}

std::vector<int> expand_slurm_counts(std::string_view counts) {
  std::vector<int> result;
  for (const std::string_view item : split_items(counts)) {
    const std::size_t bracket = std::min(item.find("(x"), item.size());
    const std::optional<std::int64_t> count = parse_integer(item.substr(0, bracket));
    std::optional<std::int64_t> times = 1;
    if (bracket < item.size()) {
      if (!item.ends_with(')')) return {};
      times = parse_integer(item.substr(bracket + 2, item.size() - bracket - 3));
    }
    if (!count || *count < 0 || *count > max_ranks || !times || *times < 1) return {};
    if (static_cast<std::size_t>(*times) > most_hosts - result.size()) return {};
    result.insert(result.end(), static_cast<std::size_t>(*times), static_cast<int>(*count));
  }
  return result;
}

bool in_slurm_step(std::string_view step_id) {
  constexpr std::int64_t last_ordinary = 0xfffffff0;  // SLURM_MAX_NORMAL_STEP_ID
  const std::optional<std::int64_t> number = parse_integer(step_id);
  return !step_id.empty() && !(number && *number > last_ordinary);
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
