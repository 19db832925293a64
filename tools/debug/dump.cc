#include <nlohmann/json.hpp>

#include <tutti/tools/debug/dump.h>

namespace tutti::tools {

namespace {

using Json = nlohmann::json;

RankDump::Operation operation_of(const Json& json, bool is_transfer) {
  RankDump::Operation operation;
  operation.number = json.at(is_transfer ? "number" : "sequence").get<std::uint64_t>();
  operation.call = json.at("call").get<std::string>();
  const auto state = json.at("state").get<std::string>();
  operation.running = state == "running";
  operation.failed = state == "failed";
  operation.issued_us = json.value("issued_us", std::int64_t{0});
  operation.ended_us = json.value("ended_us", std::int64_t{0});
  operation.waiting_for = json.value("waiting_for", std::vector<int>());
  return operation;
}

RankDump::Communicator communicator_of(const Json& json) {
  RankDump::Communicator communicator;
  communicator.context = json.at("context").get<std::uint64_t>();
  communicator.ranks = json.at("ranks").get<std::vector<int>>();
  communicator.status = json.at("status").get<std::string>();
  communicator.issued = json.at("issued").get<std::uint64_t>();
  for (const Json& awaited : json.at("awaited")) {
    communicator.names[awaited.at("rank").get<int>()] = awaited.at("name").get<std::string>();
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
  dump.job = json.at("job").get<std::string>();
  dump.rank = json.at("rank").get<int>();
  dump.size = json.at("size").get<int>();
  dump.host = json.at("host").get<std::string>();
  dump.pid = json.at("pid").get<std::int64_t>();
  dump.reason = json.at("reason").get<std::string>();
  dump.time_us = json.at("time_us").get<std::int64_t>();
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
    return Status(Code::invalid_argument, error.what());
  }
}

}  // namespace tutti::tools
