#include "rendezvous/meeting/pmi_client.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <utility>

#include <fcntl.h>

#include <tutti/config_values.h>
#include <tutti/log.h>

#include "core/descriptor.h"
#include "core/fork_guard.h"
#include "core/security/digest.h"
#include "rendezvous/store/long_wait.h"

namespace tutti {
namespace {

// A launcher's line is little longer than a value, and a value has at most a kilobyte.
constexpr std::size_t longest_line = 8192;
// Neither Slurm nor MPICH's own library accepts a longer request than this.
constexpr std::int64_t longest_request = 1024;
constexpr std::size_t longest_key = 32;
constexpr std::int64_t least_value = 32;
// This is the answer to `put`. It may quote the request, which may contain the job's token, so errors must
// not quote this answer.
constexpr std::string_view put_answer = "put_result";
// The goodbye may take at most this long.
constexpr std::chrono::seconds parting_limit{2};

Secret line_of(const Secret& request) { return Secret::joined({"cmd=", request.reveal(), "\n"}); }

// Returns the value of `name` in a line "cmd=answer name=value ...", or an empty text.
std::string_view value_in(std::string_view line, std::string_view name) {
  while (!line.empty()) {
    const std::string_view word = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(line.size(), word.size() + 1));
    if (word.size() > name.size() && word.starts_with(name) && word[name.size()] == '=')
      return word.substr(name.size() + 1);
  }
  return {};
}

}  // namespace

PmiClient::PmiClient(int socket)
    : number_(socket),
      born_(fork_generation()),
      stream_(Descriptor::guarded(fcntl(socket, F_DUPFD_CLOEXEC, 0))) {}

PmiClient::~PmiClient() {
  if (!spoken_ || !status_.ok() || born_ != fork_generation()) return;
  stream_.ask_when_waiting({});
  const Deadline limit = Deadline::after(parting_limit);
  constexpr std::string_view goodbye = "cmd=finalize\n";
  // Waits for the answer, since a launcher that cannot send its answer reports a failure.
  if (stream_.send(goodbye.data(), goodbye.size(), limit).ok()) static_cast<void>(receive_line(limit).ok());
}

Status PmiClient::begin(std::unique_lock<std::mutex>& turn, std::function<bool()> interrupted,
                        Deadline deadline) {
  turn = std::unique_lock(mutex_, std::try_to_lock);
  if (!turn) {
    return Status(Code::invalid_argument,
                  "another thread meets ranks through the launcher's PMI; call one init after the other, on "
                  "all ranks in the same order");
  }
  interrupted_ = std::move(interrupted);
  stream_.ask_when_waiting(interrupted_);
  return spoken_ ? status_ : say_hello(deadline);
}

Status PmiClient::say_hello(Deadline deadline) {
  if (!stream_.is_open()) return fail(Status(Code::unreachable, "this descriptor is not open"));
  const Result<Secret> hello =
      ask(Secret("init pmi_version=1 pmi_subversion=1"), "response_to_init", deadline);
  if (!hello.ok()) return hello.status();
  spoken_ = true;
  const std::string_view version = value_in(hello->reveal(), "pmi_version");
  if (!version.empty() && version != "1")
    return fail(Status(Code::protocol_error, "it speaks version " + std::string(version) + ", not 1"));
  const Result<Secret> limits = ask(Secret("get_maxes"), "maxes", deadline);
  if (!limits.ok()) return limits.status();
  const Result<Secret> space = ask(Secret("get_my_kvsname"), "my_kvsname", deadline);
  if (!space.ok()) return space.status();
  space_ = value_in(space->reveal(), "kvsname");
  // The launcher's limit includes the NUL that ends a text in C.
  const std::int64_t most = parse_integer(value_in(limits->reveal(), "vallen_max")).value_or(0) - 1;
  const std::size_t frame = line_of(put_request(std::string(longest_key, 'k'), {})).reveal().size();
  const std::int64_t room = longest_request - static_cast<std::int64_t>(frame);
  if (std::min(most, room) < least_value)
    return fail(Status(Code::protocol_error, "it has no room for values"));
  value_limit_ = static_cast<std::size_t>(std::min(most, room));
  return {};
}

Secret PmiClient::put_request(std::string_view key, std::string_view value) const {
  return Secret::joined({"put kvsname=", space_, " key=", key, " value=", value});
}

Status PmiClient::put(const std::string& key, std::string_view value, Deadline deadline) {
  return ask(put_request(key, value), put_answer, deadline).status();
}

Result<Secret> PmiClient::get(const std::string& key, Deadline deadline) {
  Result<Secret> line = ask(Secret::joined({"get kvsname=", space_, " key=", key}), "get_result", deadline);
  if (!line.ok()) return line;
  return Secret(value_in(line->reveal(), "value"));
}

Status PmiClient::fence(Deadline deadline) {
  LongWait wait;
  stream_.ask_when_waiting([this, &wait] {
    if (wait.is_due()) {
      log::warn("this process has waited for ", wait.waited(),
                " for other ranks: not all have reached the launcher's fence (PMI)");
    }
    return interrupted_ && interrupted_();
  });
  Status passed = ask(Secret("barrier_in"), "barrier_out", deadline).status();
  stream_.ask_when_waiting(interrupted_);
  if (passed.ok()) ++fences_;
  if (passed.code() == Code::timeout)
    return Status(Code::timeout, "not all ranks have come to the launcher's fence within the time given");
  return passed;
}

Result<Secret> PmiClient::ask(const Secret& request, std::string_view answer, Deadline deadline) {
  if (!status_.ok()) return status_;
  const Secret line_sent = line_of(request);
  const std::string_view bytes = line_sent.reveal();
  if (Status sent = stream_.send(bytes.data(), bytes.size(), deadline); !sent.ok()) return fail(sent);
  Result<Secret> line = receive_line(deadline);
  if (!line.ok()) return fail(line.status());
  const std::string_view result = value_in(line->reveal(), "rc");
  if (value_in(line->reveal(), "cmd") != answer || (!result.empty() && result != "0")) {
    // The launcher may quote the request, so the reason is left out if the request was secret.
    const std::string_view why = answer == put_answer ? std::string_view() : value_in(line->reveal(), "msg");
    return fail(Status(Code::protocol_error,
                       "it gives no " + std::string(answer) + (why.empty() ? "" : ": " + std::string(why))));
  }
  return line;
}

Result<Secret> PmiClient::receive_line(Deadline deadline) {
  std::array<char, longest_line> line;
  std::size_t size = 0;
  Status status;
  // The launcher sends nothing but one line for each request, so the line ends where the received bytes end.
  while (status.ok() && (size == 0 || line[size - 1] != '\n')) {
    if (size == line.size()) {
      status = Status(Code::protocol_error, "its answer is too long");
      break;
    }
    const Result<std::size_t> got =
        stream_.receive_some(std::as_writable_bytes(std::span(line).subspan(size)), deadline);
    if (got.ok()) size += *got;
    status = got.status();
  }
  const Secret text(std::string_view(line.data(), status.ok() ? size - 1 : 0));
  security::wipe(line);
  if (!status.ok()) return status;
  return text;
}

// Remembers a failure. After a failure the client sends no more requests, since the next answer could belong
// to an earlier request.
Status PmiClient::fail(const Status& status) {
  status_ =
      Status(Code::invalid_argument, "the launcher does not serve PMI (PMI_FD is " + std::to_string(number_) +
                                         "): " + status.message() + "; set MASTER_ADDR and MASTER_PORT");
  const bool gave_up = status.code() == Code::timeout || status.code() == Code::aborted;
  return gave_up ? status : status_;
}

}  // namespace tutti
