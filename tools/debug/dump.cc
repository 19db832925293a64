#include "tools/debug/dump.h"

#include <nlohmann/json.hpp>

#include "core/shown.h"

namespace tutti::tools {

namespace {

using Json = nlohmann::json;

// Returns an integer, or throws. `get<T>()` alone would also accept any floating-point number, even a
// fraction or a huge number.
template <class T>
T integer(const Json& json) {
  if (!json.is_number_integer()) throw Json::type_error::create(302, "an integer was expected", &json);
  return json.get<T>();
}

template <class T>
T integer_or_zero(const Json& object, const char* key) {
  return object.contains(key) ? integer<T>(object.at(key)) : T{0};
}

// Returns text that is safe to print on a terminal. A dump comes from another process, so its text may not be
// safe.
std::string text_of(const Json& json) { return printable(json.get<std::string>()); }

std::vector<int> integers(const Json& json) {
  std::vector<int> numbers;
  for (const Json& number : json) numbers.push_back(integer<int>(number));
  return numbers;
}

RankDump::Operation operation_of(const Json& json, bool is_transfer) {
  RankDump::Operation operation;
  operation.number = integer<std::uint64_t>(json.at(is_transfer ? "number" : "sequence"));
  operation.call = text_of(json.at("call"));
  const auto state = text_of(json.at("state"));
  operation.running = state == "running";
  operation.failed = state == "failed";
  operation.issued_us = integer_or_zero<std::int64_t>(json, "issued_us");
  operation.ended_us = integer_or_zero<std::int64_t>(json, "ended_us");
  if (json.contains("waiting_for")) operation.waiting_for = integers(json.at("waiting_for"));
  return operation;
}

RankDump::Communicator communicator_of(const Json& json) {
  RankDump::Communicator communicator;
  communicator.context = integer<std::uint64_t>(json.at("context"));
  communicator.ranks = integers(json.at("ranks"));
  communicator.status = text_of(json.at("status"));
  communicator.issued = integer<std::uint64_t>(json.at("issued"));
  for (const Json& awaited : json.at("awaited")) {
    communicator.names[integer<int>(awaited.at("rank"))] = text_of(awaited.at("name"));
  }
  for (const Json& operation : json.at("operations")) {
    communicator.operations.push_back(operation_of(operation, false));
  }
  for (const Json& transfer : json.at("transfers")) {
    communicator.transfers.push_back(operation_of(transfer, true));
  }
  return communicator;
}

RankDump dump_of(const Json& json) {
  RankDump dump;
  dump.job = text_of(json.at("job"));
  dump.rank = integer<int>(json.at("rank"));
  dump.size = integer<int>(json.at("size"));
  dump.host = text_of(json.at("host"));
  dump.pid = integer<std::int64_t>(json.at("pid"));
  dump.reason = text_of(json.at("reason"));
  dump.time_us = integer<std::int64_t>(json.at("time_us"));
  dump.progress = json.at("progress").get<bool>();
  for (const Json& communicator : json.at("communicators")) {
    dump.communicators.push_back(communicator_of(communicator));
  }
  return dump;
}

}  // namespace

std::string RankDump::name() const {
  return "rank " + std::to_string(rank) + " (host " + host + ", pid " + std::to_string(pid) + ")";
}

Result<RankDump> parse_dump(std::string_view text) {
  try {
    return dump_of(Json::parse(text));
  } catch (const Json::exception& error) {
    // The JSON library begins each error text with its own name for the error, in brackets. This
    // code removes that name.
    const std::string why = error.what();
    const std::size_t name_end = why.find("] ");
    return Status(Code::invalid_argument,
                  "is not a dump of a rank: " + why.substr(name_end == why.npos ? 0 : name_end + 2));
  }
}

}  // namespace tutti::tools
