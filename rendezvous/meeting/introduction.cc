#include "rendezvous/meeting/introduction.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>

#include <rendezvous/meeting/introduction.pb.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/random.h"
#include "rendezvous/meeting/program.h"
#include "rendezvous/store/told_failure.h"

namespace tutti {
namespace {

constexpr const char* own_job_variable = "TUTTI_JOB_ID";
constexpr const char* job_variables[] = {own_job_variable, "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID",
                                         "PMIX_NAMESPACE", "LSB_JOBID",           "PBS_JOBID"};

// Parses "NAME=value;NAME=value;" into a map.
std::map<std::string_view, std::string_view> settings_of(std::string_view digest) {
  std::map<std::string_view, std::string_view> settings;
  while (!digest.empty()) {
    const std::size_t end = digest.find(';');
    const std::string_view setting = digest.substr(0, end);
    digest = end == digest.npos ? std::string_view() : digest.substr(end + 1);
    const std::size_t equals = setting.find('=');
    if (equals != setting.npos) settings.emplace(setting.substr(0, equals), setting.substr(equals + 1));
  }
  return settings;
}

std::string setting(const std::map<std::string_view, std::string_view>& settings, std::string_view name) {
  const auto setting = settings.find(name);
  if (setting == settings.end()) return "unknown";
  return setting->second.empty() ? "not set" : "'" + std::string(setting->second) + "'";
}

// Errors quote what ranks say about their offloads, so these texts must be short and printable.
bool are_sound(const std::map<std::string, std::string>& offloads) {
  const auto printable = [](const std::string& text) {
    return text.size() <= max_offload_facts &&
           std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
  };
  return offloads.size() <= max_offloads && std::ranges::all_of(offloads, [&](const auto& each) {
           return printable(each.first) && printable(each.second);
         });
}

Status mismatch(const std::string& what, const Introduction& other) {
  return Status(Code::mismatch, what, other.rank);
}

}  // namespace

std::string boot_id() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), id);
  return id;
}

Introduction describe_this_process() {
  Introduction peer;
  char name[256] = "";
  if (gethostname(name, sizeof(name) - 1) == 0) peer.host = name;
  peer.pid = getpid();
  peer.boot_id = boot_id();
  struct stat info = {};
  if (stat("/proc/self/ns/net", &info) == 0) peer.network_namespace = info.st_ino;
  peer.nonce = random_hex(8);
  peer.program = rendezvous::program_of(rendezvous::start_command());
  for (const char* const variable : job_variables) {
    const char* const value = std::getenv(variable);
    if (value != nullptr && *value != '\0') peer.job.emplace(variable, value);
  }
  return peer;
}

std::string encode_introduction(const Introduction& peer) {
  wire::Introduction message;
  message.set_rank(static_cast<std::uint32_t>(peer.rank));
  message.set_world_size(static_cast<std::uint32_t>(peer.world_size));
  message.set_host(peer.host);
  message.set_pid(peer.pid);
  message.set_boot_id(peer.boot_id);
  message.set_network_namespace(peer.network_namespace);
  message.set_wire_digest(peer.wire_digest);
  for (const auto& [name, address] : peer.addresses) (*message.mutable_addresses())[name] = address;
  for (const auto& [name, facts] : peer.offloads) (*message.mutable_offloads())[name] = facts;
  message.set_version(peer.version);
  message.set_nonce(peer.nonce);
  for (const auto& [name, value] : peer.job) (*message.mutable_job())[name] = value;
  message.set_program(peer.program);
  return message.SerializeAsString();
}

Result<Introduction> decode_introduction(std::string_view text) {
  wire::Introduction message;
  constexpr std::uint32_t most = std::numeric_limits<std::int32_t>::max();
  if (!message.ParseFromArray(text.data(), static_cast<int>(text.size())) || message.rank() > most ||
      message.world_size() > most || message.world_size() == 0) {
    return Status(Code::protocol_error, "what a rank published about itself cannot be parsed");
  }
  Introduction peer;
  peer.rank = static_cast<int>(message.rank());
  peer.world_size = static_cast<int>(message.world_size());
  peer.host = message.host();
  peer.pid = message.pid();
  peer.boot_id = message.boot_id();
  peer.network_namespace = message.network_namespace();
  peer.wire_digest = message.wire_digest();
  for (const auto& [name, address] : message.addresses()) peer.addresses[name] = address;
  for (const auto& [name, facts] : message.offloads()) peer.offloads[name] = facts;
  if (!are_sound(peer.offloads)) {
    return Status(Code::protocol_error, "what rank " + std::to_string(peer.rank) +
                                            " published about its offloads is not a short text");
  }
  peer.version = message.version();
  peer.nonce = message.nonce();
  for (const auto& [name, value] : message.job()) peer.job[name] = value;
  peer.program = message.program();
  return peer;
}

Status check_same_job(const Introduction& a, const Introduction& b) {
  const bool named = a.job.contains(own_job_variable) && b.job.contains(own_job_variable);
  for (const auto& [name, value] : a.job) {
    const auto other = b.job.find(name);
    if (other == b.job.end() || other->second == value || (named && name != own_job_variable)) continue;
    return mismatch("two jobs meet at one place: " + name + " is '" + value + "' on " + a.describe() +
                        " but '" + other->second + "' on " + b.describe() +
                        "; give each job its own MASTER_PORT, or, if they are one job, both the "
                        "same TUTTI_JOB_ID",
                    b);
  }
  return {};
}

Status check_compatible(const Introduction& a, const Introduction& b) {
  const auto sides = [&](const std::string& left, const std::string& right) {
    return left + " on " + a.describe() + " but " + right + " on " + b.describe();
  };
  if (a.world_size != b.world_size) {
    return mismatch("world size " + std::to_string(a.world_size) + " vs " + std::to_string(b.world_size) +
                        ": " + sides(std::to_string(a.world_size), std::to_string(b.world_size)),
                    b);
  }
  if (a.version != b.version) return mismatch("version " + sides(a.version, b.version), b);
  const auto left = settings_of(a.wire_digest), right = settings_of(b.wire_digest);
  for (const auto& settings : {left, right}) {
    for (const auto& [name, ignored] : settings) {
      const std::string at_left = setting(left, name), at_right = setting(right, name);
      if (at_left != at_right) return mismatch(std::string(name) + " is " + sides(at_left, at_right), b);
    }
  }
  return {};
}

std::string encode_table(const std::vector<std::string>& encoded_introductions) {
  wire::Table table;
  for (const std::string& peer : encoded_introductions) table.add_ranks(peer);
  return table.SerializeAsString();
}

std::string encode_failure(const Status& failure) {
  wire::Table table;
  table.mutable_failure()->set_code(static_cast<std::uint32_t>(failure.code()));
  table.mutable_failure()->set_message(failure.message());
  table.mutable_failure()->set_peer(failure.peer());
  return table.SerializeAsString();
}

std::optional<Status> published_failure(std::string_view text) {
  wire::Table table;
  if (!table.ParseFromArray(text.data(), static_cast<int>(text.size())) || !table.has_failure())
    return std::nullopt;
  return told_failure(table.failure().code(), table.failure().message(), table.failure().peer());
}

Result<std::vector<Introduction>> decode_table(std::string_view text) {
  if (const std::optional<Status> failure = published_failure(text)) return *failure;
  wire::Table table;
  if (!table.ParseFromArray(text.data(), static_cast<int>(text.size())))
    return Status(Code::protocol_error, "the table of ranks cannot be parsed");
  std::vector<Introduction> peers;
  for (const std::string& encoded : table.ranks()) {
    Result<Introduction> peer = decode_introduction(encoded);
    if (!peer.ok()) return peer.status();
    peers.push_back(*std::move(peer));
  }
  return peers;
}

}  // namespace tutti
