#include "rendezvous/meeting/pmi_announcer.h"

#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include <tutti/config_values.h>

#include "core/random.h"
#include "core/security/digest.h"

namespace tutti {
namespace {

// A value of PMI cannot hold spaces or line ends, so the text is written in hex.
Secret in_hex(const Secret& text) {
  const std::string_view bytes = text.reveal();
  std::string hex = to_hex({reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()});
  Secret secret(hex);
  security::wipe(hex);
  return secret;
}

// Returns the text that `hex` stands for, or an empty text if it is damaged.
Secret from_hex(std::string_view hex) {
  constexpr std::string_view digits = "0123456789abcdef";
  if (hex.size() % 2 != 0 || hex.find_first_not_of(digits) != hex.npos) return {};
  std::string text;
  text.reserve(hex.size() / 2);  // reserved first, since growing would leave copies behind
  for (std::size_t i = 0; i < hex.size(); i += 2)
    text += static_cast<char>(digits.find(hex[i]) << 4 | digits.find(hex[i + 1]));
  Secret secret(text);
  security::wipe(text);
  return secret;
}

// A meeting's keys begin with this prefix, which contains the number of fences that this process passed
// before the meeting. The text is cut into pieces, whose keys end with 1, 2 and so on. The key that ends with
// 0 holds the number of pieces.
std::string key_prefix(const PmiClient& client) { return "tutti-" + std::to_string(client.fences()) + "-"; }

}  // namespace

PmiAnnouncer::PmiAnnouncer(PmiClient& client, std::function<bool()> interrupted)
    : client_(client), interrupted_(std::move(interrupted)) {}

Status PmiAnnouncer::publish(const Secret& text, Deadline deadline) {
  std::unique_lock<std::mutex> turn;
  if (Status status = client_.begin(turn, interrupted_, deadline); !status.ok()) return status;
  const std::string prefix = key_prefix(client_);
  const Secret hex = in_hex(text);
  std::string_view rest = hex.reveal();
  int pieces = 0;
  while (!rest.empty()) {
    const std::string_view piece = rest.substr(0, client_.value_limit());
    rest.remove_prefix(piece.size());
    Status status = client_.put(prefix + std::to_string(++pieces), piece, deadline);
    if (!status.ok()) return status;
  }
  if (Status status = client_.put(prefix + "0", std::to_string(pieces), deadline); !status.ok())
    return status;
  return client_.fence(deadline);
}

Result<Secret> PmiAnnouncer::read(Deadline deadline) {
  if (!text_.empty()) return text_;
  std::unique_lock<std::mutex> turn;
  if (Status status = client_.begin(turn, interrupted_, deadline); !status.ok()) return status;
  const std::string prefix = key_prefix(client_);
  if (Status status = client_.fence(deadline); !status.ok()) return status;
  Result<Secret> text = collect(prefix, deadline);
  if (text.ok()) text_ = *text;
  return text;
}

Result<Secret> PmiAnnouncer::collect(const std::string& prefix, Deadline deadline) {
  const Result<Secret> count = client_.get(prefix + "0", deadline);
  if (!count.ok()) return count.status();
  constexpr std::int64_t most = max_session_bytes;  // each piece holds at least one byte
  const std::int64_t pieces = parse_integer(count->reveal()).value_or(0);
  if (pieces < 1 || pieces > most) return Status(Code::invalid_argument, "the launcher has no session");
  Secret hex;
  for (std::int64_t i = 1; i <= pieces; ++i) {
    const Result<Secret> piece = client_.get(prefix + std::to_string(i), deadline);
    if (!piece.ok()) return piece.status();
    hex = Secret::joined({hex.reveal(), piece->reveal()});
  }
  Secret text = from_hex(hex.reveal());
  if (text.empty()) return Status(Code::invalid_argument, "the launcher has damaged the session");
  return text;
}

}  // namespace tutti
