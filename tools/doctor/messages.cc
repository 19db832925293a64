#include "tools/doctor/messages.h"

#include <algorithm>
#include <vector>

#include <nlohmann/json.hpp>

namespace tutti::tools::doctor {

// These macros must be in this namespace. They define functions, which the JSON library looks up in
// the namespace of the arguments.
// An unknown text becomes `Outcome::failed`.
NLOHMANN_JSON_SERIALIZE_ENUM(Outcome, {{Outcome::failed, "failed"},
                                       {Outcome::reached, "reached"},
                                       {Outcome::refused, "refused"},
                                       {Outcome::timed_out, "timed_out"},
                                       {Outcome::unreachable, "unreachable"},
                                       {Outcome::wrong_host, "wrong_host"}})
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(AddressFacts, address, prefix, port)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(InterfaceFacts, name, loopback, mtu, speed, addresses)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(RdmaPort, name, active)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(HostFacts, version, build, kernel, processor, cores, memlock,
                                                open_files, shm_bytes, shm_free, interfaces, filter,
                                                filter_variable, port_range, route, listen_problem,
                                                has_folder, rdma, cards, no_cards, gpus)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Target, host, address, port)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Path, from, to, port, outcome, error, round_trip_us,
                                                full_packet, largest_packet, bandwidth)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(CardTest, rank, address, port)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ProbeCommand, what, host, pass, folder, addresses, targets,
                                                cards)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ProbeAnswer, problem, facts, clock_ns, routes, paths, port,
                                                failure)

using nlohmann::json;

namespace {

// Returns the message as a line of JSON. Bytes that are not UTF-8 are replaced, since texts of the
// system may hold any bytes.
template <class Message>
std::string line_of(const Message& message) {
  return json(message).dump(-1, ' ', false, json::error_handler_t::replace);
}

// An answer with more interfaces or addresses than this is rejected. The doctor compares the
// addresses of all hosts with each other, so a false answer with very many addresses could keep it
// busy for a long time.
constexpr std::size_t most_interfaces = 256;
constexpr std::size_t most_addresses = 64;

bool makes_sense(const ProbeAnswer& answer) {
  return answer.facts.interfaces.size() <= most_interfaces &&
         std::ranges::all_of(answer.facts.interfaces, [](const InterfaceFacts& interface) {
           return interface.addresses.size() <= most_addresses;
         });
}

bool makes_sense(const ProbeCommand&) { return true; }

// Returns whether all numbers are integers, except in the members that are floating-point numbers. The JSON
// library would convert any other number to an integer without checking that it fits.
bool has_integers_only(const json& message) {
  std::vector<const json*> to_visit = {&message};
  while (!to_visit.empty()) {
    const json& visited = *to_visit.back();
    to_visit.pop_back();
    for (const auto& [key, member] : visited.items()) {
      if (member.is_number_float() && key != "round_trip_us" && key != "bandwidth") return false;
      if (member.is_structured()) to_visit.push_back(&member);
    }
  }
  return true;
}

// Returns whether each integer in `converted` is the one that was received. The JSON library cuts an integer
// that does not fit into its member.
bool has_same_integers(const json& converted, const json& received) {
  if (converted.is_number_integer()) return converted.dump() == received.dump();
  if (converted.is_array()) return std::ranges::equal(converted, received, has_same_integers);
  if (!converted.is_object()) return true;
  for (const auto& [key, member] : converted.items()) {
    if (received.contains(key) && !has_same_integers(member, received.at(key))) return false;
  }
  return true;
}

template <class Message>
Result<Message> parse(std::string_view line) {
  try {
    const json parsed = json::parse(line);
    if (parsed.is_object() && has_integers_only(parsed)) {
      Message message = parsed.get<Message>();
      if (makes_sense(message) && has_same_integers(json(message), parsed)) return message;
    }
  } catch (const json::exception&) {  // the error is reported below
  }
  return Status(Code::protocol_error, "not a message of tutti doctor");
}

}  // namespace

std::string to_line(const ProbeCommand& command) { return line_of(command); }
std::string to_line(const ProbeAnswer& answer) { return line_of(answer); }
Result<ProbeCommand> parse_command(std::string_view line) { return parse<ProbeCommand>(line); }
Result<ProbeAnswer> parse_answer(std::string_view line) { return parse<ProbeAnswer>(line); }

}  // namespace tutti::tools::doctor
